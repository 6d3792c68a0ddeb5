//! Metric learning: changes the measure of cuts until rows that are near each other have similar targets.
//!
//! In a Mondrian process with rates `w_d` and feature maps `g_d`, two rows are separated after an exponential
//! time with rate
//!
//! `d(x, x') = sum_d w_d |g_d(x) - g_d(x')|`.
//!
//! So a forest predicts approximately as kernel regression with a Laplace kernel of this distance. This
//! module fits the masses of all bins, which determine `w` and `g`, so that kernel regression predicts each
//! row `i` from the other rows with a small squared error:
//!
//! `y_i ~ sum_j k_ij y_j / sum_j k_ij`, `k_ij = exp(-d(x_i, x_j) / h_i)`, `j != i`.
//!
//! The width `h_i` is half the distance of the sixth nearest row. This is metric learning for kernel
//! regression (Weinberger and Tesauro 2007), in the metric of the Mondrian process. The squared error is
//! minimised by stochastic gradients (Adam, Kingma and Ba 2015), starting from the measure of
//! `cut_likelihood`, with a penalty on the distance from it.

use crate::control::{Run, map};
use crate::error::Result;
use crate::mondrian::feature_rates::binned_axis::Axis;
use crate::mondrian::feature_rates::cut_likelihood::Measure;
use crate::random::keyed::Stream;
use crate::random::shuffle::shuffle_first;

/// More steps fit the rows more closely, and predict others less well.
const STEPS: usize = 60;
/// Number of rows predicted in a step; the smaller number if more features are learned than
/// [`MANY_FEATURES`].
const QUERIES: usize = 100;
const FEWER_QUERIES: usize = 64;
/// Number of rows from which they are predicted; the smaller number under the same condition.
const ROWS: usize = 2000;
const FEWER_ROWS: usize = 1200;
const MANY_FEATURES: usize = 64;
/// Index of the neighbour (from 0) whose kernel weight is `exp(-2)`.
const NEIGHBOUR: usize = 5;
/// Strength of the penalty: a log rate that differs by one costs the squared error of this many rows.
const PENALTY: f64 = 20.0;
const LEARNING_RATE: f64 = 0.1;
const MOMENTUM: f64 = 0.9;
const SMOOTHING: f64 = 0.98;
const EPSILON: f64 = 1e-5;
/// Least rate of a feature, as a share of the greatest rate.
const LEAST_WEIGHT: f64 = 1e-4;
/// Queries that a thread handles as one task. Results depend on it, but not on the number of threads.
const BLOCK: usize = 32;
const LANES: usize = 8;

/// Learns the measure of the given features. Other features keep their rates, and have the base measure on
/// their bins.
///
/// # Errors
/// An interrupt.
pub(crate) fn learn(
    axes: &[Axis],
    targets: &[f64],
    start: &Measure,
    features: &[usize],
    mut stream: Stream,
    run: &Run<'_>,
) -> Result<Measure> {
    let (n_queries, n_rows) =
        if features.len() > MANY_FEATURES { (FEWER_QUERIES, FEWER_ROWS) } else { (QUERIES, ROWS) };
    let n = targets.len().min(n_rows);
    if n <= NEIGHBOUR + 1 || features.is_empty() {
        return Ok(start.clone());
    }
    let problem = MetricProblem::new(axes, features, &targets[..n]);
    let begin = problem.parameters(start);
    let mut parameters = begin.clone();
    let mut adam = Adam::new(parameters.len());
    let mut order: Vec<usize> = (0..n).collect();
    for step in 0..STEPS {
        run.control.check()?;
        shuffle_first(&mut order, n_queries.min(n), &mut stream);
        let queries = &order[..n_queries.min(n)];
        let coordinates = problem.coordinates(&parameters);
        let pulls = problem.gradient(&coordinates, queries, &|_, distances| width(distances), run.n_threads);
        let mut gradient = problem.by_parameter(&parameters, &pulls);
        problem.penalise(&parameters, &begin, PENALTY / n as f64, &mut gradient);
        let left = 3.0 * (1.0 - step as f64 / STEPS as f64);
        adam.step(&mut parameters, &gradient, LEARNING_RATE * left.min(1.0));
    }
    Ok(problem.measure(&parameters, start))
}

/// The width of a query's kernel: half the distance of the sixth nearest row.
fn width(distances: &[f32]) -> f32 {
    let mut sorted = distances.to_vec();
    let (_, distance, _) = sorted.select_nth_unstable_by(NEIGHBOUR, f32::total_cmp);
    0.5 * *distance + 1e-9
}

/// The rows, their targets, and the layout of the parameters.
///
/// The parameters are the logarithms of the features' rates, followed, feature by feature, by the logarithms
/// of the bins' rates relative to the base measure.
struct MetricProblem<'a> {
    axes: &'a [Axis],
    features: &'a [usize],
    /// Index of the first bin of each learned feature among the parameters.
    starts: Vec<usize>,
    /// By learned feature and row: the row's bin, and the share of the bin below the row.
    bins: Vec<Vec<(u32, f32)>>,
    targets: Vec<f32>,
}

impl<'a> MetricProblem<'a> {
    fn new(axes: &'a [Axis], features: &'a [usize], targets: &[f64]) -> Self {
        let mut end = features.len();
        let mut starts = Vec::new();
        let mut bins = Vec::new();
        for axis in features.iter().map(|&d| &axes[d]) {
            starts.push(end);
            end += axis.n_bins();
            let of = |value: &f64| {
                let (bin, share) = axis.bin(*value);
                (bin as u32, share as f32)
            };
            bins.push(axis.values[..targets.len()].iter().map(of).collect());
        }
        Self { axes, features, starts, bins, targets: tamed(targets) }
    }

    fn axis(&self, f: usize) -> &Axis {
        &self.axes[self.features[f]]
    }

    /// The indices of a learned feature's bins among the parameters.
    fn of_bins(&self, f: usize) -> std::ops::Range<usize> {
        self.starts[f]..self.starts[f] + self.axis(f).n_bins()
    }

    fn parameters(&self, measure: &Measure) -> Vec<f64> {
        let mut parameters: Vec<f64> =
            self.features.iter().map(|&d| libm::log(measure.weights[d] + 1e-4)).collect();
        for (f, &d) in self.features.iter().enumerate() {
            let all: f64 = measure.masses[d].iter().sum();
            let relative = measure.masses[d].iter().zip(&self.axis(f).base);
            parameters.extend(relative.map(|(mass, base)| libm::log(mass / (all * base) + 1e-3)));
        }
        parameters
    }

    /// The masses of a learned feature's bins.
    fn masses(&self, parameters: &[f64], f: usize) -> Vec<f64> {
        let rate = libm::exp(parameters[f]);
        let bins = parameters[self.of_bins(f)].iter().zip(&self.axis(f).base);
        bins.map(|(relative, base)| rate * base * libm::exp(*relative)).collect()
    }

    /// The coordinates `w_d g_d(x)` of all rows, by learned feature, padded to a whole number of lanes.
    fn coordinates(&self, parameters: &[f64]) -> Vec<Vec<f32>> {
        let padded = self.targets.len().next_multiple_of(LANES);
        let of = |(f, bins): (usize, &Vec<(u32, f32)>)| {
            let masses = self.masses(parameters, f);
            let mut below = 0.0;
            let pieces: Vec<(f32, f32)> = masses
                .iter()
                .map(|mass| {
                    below += mass;
                    ((below - mass) as f32, *mass as f32)
                })
                .collect();
            let at = |&(bin, share): &(u32, f32)| {
                let (below, mass) = pieces[bin as usize];
                below + share * mass
            };
            let mut column: Vec<f32> = bins.iter().map(at).collect();
            column.resize(padded, 0.0);
            column
        };
        self.bins.iter().enumerate().map(of).collect()
    }

    /// The gradient of the queries' mean squared error with respect to the coordinates, by learned feature
    /// and row. `width` returns the width of a query's kernel, given the query and its distances; it is
    /// treated as a constant.
    fn gradient(
        &self,
        coordinates: &[Vec<f32>],
        queries: &[usize],
        width: &(impl Fn(usize, &[f32]) -> f32 + Sync),
        n_threads: usize,
    ) -> Vec<Vec<f32>> {
        let padded = self.targets.len().next_multiple_of(LANES);
        let blocks = map(n_threads, queries.len().div_ceil(BLOCK), |block| {
            let part = &queries[block * BLOCK..((block + 1) * BLOCK).min(queries.len())];
            let mut pulls = vec![vec![0.0; padded]; coordinates.len()];
            for &query in part {
                let kernel = self.kernel(coordinates, query, width);
                let pull = kernel.pull(&self.targets, queries.len());
                for (column, pulls) in coordinates.iter().zip(&mut pulls) {
                    pulls[query] += add_pull(pulls, column, column[query], &pull);
                }
            }
            pulls
        });
        let mut blocks = blocks.into_iter();
        let mut sums = blocks.next().unwrap_or_default();
        for block in blocks {
            for (sum, pulls) in sums.iter_mut().zip(block) {
                sum.iter_mut().zip(pulls).for_each(|(sum, pull)| *sum += pull);
            }
        }
        sums
    }

    /// The kernel weights of all rows but the query, and its prediction.
    fn kernel(
        &self,
        coordinates: &[Vec<f32>],
        query: usize,
        width: &impl Fn(usize, &[f32]) -> f32,
    ) -> RowKernel {
        let n = self.targets.len();
        let mut distances = vec![0.0; n.next_multiple_of(LANES)];
        for column in coordinates {
            let at = column[query];
            distances.iter_mut().zip(column).for_each(|(sum, other)| *sum += (other - at).abs());
        }
        distances[query] = f32::INFINITY;
        distances[n..].fill(f32::INFINITY);
        let width = width(query, &distances);
        let nearest = distances.iter().fold(f32::INFINITY, |least, &d| if d < least { d } else { least });
        let mut weights = distances;
        for weight in &mut weights {
            let away = (*weight - nearest) / width;
            // Smaller weights would not change a sum in `f32`.
            *weight = if away < 20.0 { libm::expf(-away) } else { 0.0 };
        }
        let total: f32 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= total;
        }
        let prediction = weights.iter().zip(&self.targets).map(|(weight, y)| weight * y).sum();
        RowKernel { weights, width, prediction, error: prediction - self.targets[query] }
    }

    /// The gradient with respect to the parameters, from that with respect to the coordinates. The part for
    /// rates is centred, since their common scale has no meaning.
    fn by_parameter(&self, parameters: &[f64], pulls: &[Vec<f32>]) -> Vec<f64> {
        let mut gradient = vec![0.0; parameters.len()];
        for (f, bins) in self.bins.iter().enumerate() {
            let masses = self.masses(parameters, f);
            let mut above = vec![0.0; masses.len()];
            let own = &mut gradient[self.of_bins(f)];
            for (&(bin, share), &pull) in bins.iter().zip(&pulls[f]) {
                own[bin as usize] += f64::from(share * pull);
                above[bin as usize] += f64::from(pull);
            }
            // The coordinate of a row includes the masses of all bins below its own.
            let mut sum = 0.0;
            for k in (0..masses.len()).rev() {
                own[k] = (own[k] + sum) * masses[k];
                sum += above[k];
            }
            gradient[f] = gradient[self.of_bins(f)].iter().sum();
        }
        let rates = &mut gradient[..self.features.len()];
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        for rate in rates {
            *rate -= mean;
        }
        gradient
    }

    fn penalise(&self, parameters: &[f64], begin: &[f64], penalty: f64, gradient: &mut [f64]) {
        let rates = std::iter::repeat_n(&1.0, self.features.len());
        let bases = self.features.iter().flat_map(|&d| &self.axes[d].base);
        for (k, base) in rates.chain(bases).enumerate() {
            gradient[k] += penalty * base * (parameters[k] - begin[k]);
        }
    }

    fn measure(&self, parameters: &[f64], start: &Measure) -> Measure {
        let greatest = parameters[..self.features.len()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = LEAST_WEIGHT * libm::exp(greatest);
        let mut weights: Vec<f64> = start.weights.iter().map(|weight| weight.max(least)).collect();
        let mut masses: Vec<Vec<f64>> = self.axes.iter().map(|axis| axis.base.clone()).collect();
        for (f, &d) in self.features.iter().enumerate() {
            masses[d] = self.masses(parameters, f);
            weights[d] = masses[d].iter().sum::<f64>().max(least);
        }
        Measure { weights, masses }
    }
}

/// The kernel regression of one query: the weights of all rows, and the error.
struct RowKernel {
    weights: Vec<f32>,
    width: f32,
    prediction: f32,
    error: f32,
}

impl RowKernel {
    /// The gradient of the query's part of the mean squared error with respect to the distance of each row.
    fn pull(&self, targets: &[f32], n_queries: usize) -> Vec<f32> {
        let factor = -2.0 * self.error / (self.width * n_queries as f32);
        let mut pull: Vec<f32> = (self.weights.iter().zip(targets))
            .map(|(weight, y)| factor * weight * (y - self.prediction))
            .collect();
        pull.resize(self.weights.len(), 0.0);
        pull
    }
}

/// Adds each row's term along one feature to its gradient. Returns the term of the query, whose coordinate is
/// `at`.
fn add_pull(gradient: &mut [f32], column: &[f32], at: f32, pull: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let rows = gradient.as_chunks_mut::<LANES>().0.iter_mut();
    for ((gradient, column), pull) in rows.zip(column.as_chunks::<LANES>().0).zip(pull.as_chunks::<LANES>().0)
    {
        // The sign without a branch. Rows with the query's value have sign +1 instead of 0; their terms
        // cancel, since they are in the query's bin.
        let mut signed = [0.0; LANES];
        for lane in 0..LANES {
            signed[lane] = pull[lane] * 1.0_f32.copysign(at - column[lane]);
        }
        for lane in 0..LANES {
            gradient[lane] -= signed[lane];
            sums[lane] += signed[lane];
        }
    }
    sums.iter().sum()
}

/// Targets in units of their standard deviation; large ones are compressed logarithmically.
fn tamed(targets: &[f64]) -> Vec<f32> {
    let n = targets.len() as f64;
    let mean = targets.iter().map(|y| y / n).sum::<f64>();
    let variance = targets.iter().map(|y| (y - mean) * (y - mean) / n).sum::<f64>();
    let scale = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    let tame = |y: &f64| {
        let z = (y - mean) / scale;
        (0.5 * libm::log1p(z.abs() / 0.5)).copysign(z) as f32
    };
    targets.iter().map(tame).collect()
}

/// Adam (Kingma and Ba 2015, Algorithm 1).
struct Adam {
    mean: Vec<f64>,
    square: Vec<f64>,
    steps: i32,
}

impl Adam {
    fn new(n: usize) -> Self {
        Self { mean: vec![0.0; n], square: vec![0.0; n], steps: 0 }
    }

    fn step(&mut self, parameters: &mut [f64], gradient: &[f64], rate: f64) {
        self.steps += 1;
        let seen = |decay: f64| 1.0 - decay.powi(self.steps);
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((parameter, slope), (mean, square)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *mean = MOMENTUM * *mean + (1.0 - MOMENTUM) * slope;
            *square = SMOOTHING * *square + (1.0 - SMOOTHING) * slope * slope;
            let spread = (*square / seen(SMOOTHING)).sqrt() + EPSILON;
            *parameter -= rate * (*mean / seen(MOMENTUM)) / spread;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Axes over `[0, 1]` of rows with `d` uniform features.
    fn axes(n: usize, d: usize) -> Vec<Axis> {
        (0..d)
            .map(|d| {
                let mut stream = Stream::new(d as u64, 0);
                Axis::new((0..n).map(|_| stream.unit()).collect(), 0.0, 1.0)
            })
            .collect()
    }

    fn flat(axes: &[Axis]) -> Measure {
        let masses: Vec<Vec<f64>> = axes.iter().map(|axis| axis.base.clone()).collect();
        Measure { weights: vec![1.0; axes.len()], masses }
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let axes = axes(60, 3);
        let targets: Vec<f64> =
            (0..60).map(|i| axes[0].values[i] * 3.0 + (9.0 * axes[1].values[i]).sin()).collect();
        let problem = MetricProblem::new(&axes, &[0, 1, 2], &targets);
        let parameters: Vec<f64> = problem
            .parameters(&flat(&axes))
            .iter()
            .enumerate()
            .map(|(i, p)| p + (i as f64).sin() / 3.0)
            .collect();
        let queries: Vec<usize> = (0..40).collect();
        let coordinates = problem.coordinates(&parameters);
        let widths: Vec<f32> =
            queries.iter().map(|&q| problem.kernel(&coordinates, q, &|_, d| width(d)).width).collect();
        let fixed = |query: usize, _: &[f32]| widths[query];
        let loss = |parameters: &[f64]| -> f64 {
            let coordinates = problem.coordinates(parameters);
            let squares =
                queries.iter().map(|&q| f64::from(problem.kernel(&coordinates, q, &fixed).error).powi(2));
            squares.sum::<f64>() / queries.len() as f64
        };
        let pulls = problem.gradient(&coordinates, &queries, &fixed, 1);
        let found = problem.by_parameter(&parameters, &pulls);
        let step = 1e-3;
        let mut numeric: Vec<f64> = (0..parameters.len())
            .map(|k| {
                let at = |by: f64| {
                    let mut moved = parameters.clone();
                    moved[k] += by;
                    loss(&moved)
                };
                (at(step) - at(-step)) / (2.0 * step)
            })
            .collect();
        let mean = numeric[..3].iter().sum::<f64>() / 3.0;
        numeric[..3].iter_mut().for_each(|rate| *rate -= mean);
        let greatest = numeric.iter().fold(0.0_f64, |most, g| most.max(g.abs()));
        for (k, (found, numeric)) in found.iter().zip(&numeric).enumerate() {
            assert!((found - numeric).abs() < 0.01 * greatest, "parameter {k}: {found}, {numeric}");
        }
    }

    /// The target varies only in a quarter of one feature. The rate of this feature, and there its measure,
    /// must be large.
    #[test]
    fn finds_a_planted_metric() {
        let axes = axes(1500, 4);
        let wave = |x: f64| if x < 0.25 { (60.0 * x).sin() } else { 0.0 };
        let targets: Vec<f64> = axes[2].values.iter().map(|&x| wave(x)).collect();
        let run = Run::default();
        let learned = learn(&axes, &targets, &flat(&axes), &[0, 1, 2, 3], Stream::new(1, 0), &run).unwrap();
        let others = [0, 1, 3].map(|d| learned.weights[d]).into_iter().fold(0.0, f64::max);
        assert!(learned.weights[2] > 10.0 * others, "{:?}", learned.weights);
        let share = |d: usize| {
            let map = axes[d].map(&learned.masses[d]).unwrap();
            f64::from(map.coordinate(0.0, 1.0, 0.25))
        };
        assert!(share(2) > 0.6, "{}", share(2));
        let two = Run { n_threads: 2, ..run };
        let again = learn(&axes, &targets, &flat(&axes), &[0, 1, 2, 3], Stream::new(1, 0), &two).unwrap();
        assert_eq!(learned.weights, again.weights);
    }
}
