//! All trees of a forest as one model: a target is the sum of the trees' functions, and does not come from
//! one of them.
//!
//! In a mixture of trees, each tree alone explains the targets. Its function has to be as smooth as a single
//! tree's must be, and the mean of all functions is smoother still. In the joint model, a target is the sum
//! of one function for each of the `T` trees, and noise. The function of a tree is a Brownian motion, as in
//! the hierarchy, with a `T`-th of its variance. The sum is then a Gaussian process with the covariance `K`
//! of `mondrian::joint`, whose clock is the hierarchy's. The posterior mean is `mu_H + K(x, .) a`, where
//! `(K + s^2 I) a = y - mu_H`. A trend (`regression::trend`) adds a linear function of the features.

use crate::control::Run;
use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::row_order::in_order;
use crate::mondrian::joint::{System, Trees};
use crate::mondrian::prediction::shared_path::SharedPath;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hierarchy::branch_clock::clock_gain;
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::hierarchy::tree_predictive::StopsAndLaws;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::settings::RegressionSettings;
use crate::mondrian::regression::trend::posterior::{Coefficients, Given, Linear, Products};
use crate::mondrian::regression::trend::start_line::StartLine;
use crate::mondrian::regression::trend::{Design, Residuals, dot};
use crate::mondrian::tree::arena::NodeId;

/// The share of the targets' norm that may remain unexplained when weights are found that predict.
const TOLERANCE: f64 = 1e-10;
/// The smallest noise as a share of `gamma_1`: with less, rows that coincide get weights that cancel to the
/// last bit.
const LEAST_NOISE: f64 = 1e-9;
/// Right-hand sides that are solved for at once.
const LANES: usize = 8;

/// A joint model in standard units, which are the same for shifted and scaled targets. The coarse part of the prior is not
/// in its kernel: its mean, all that is used of it, goes to `mu_H` far away with or without that part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standard {
    /// With `mu_H = 0` and `gamma_1 = 1`.
    pub(crate) hyper: Hyperparameters,
    mu: f64,
    unit: f64,
}

impl Standard {
    pub(crate) fn new(hyper: &Hyperparameters) -> Self {
        let noise_variance = coarse(hyper.noise_variance / hyper.gamma1);
        Self {
            hyper: Hyperparameters {
                mu: 0.0,
                gamma1: 1.0,
                noise_variance,
                delay: 0.0,
                coarse: CoarsePrior::NONE,
                ..*hyper
            },
            mu: hyper.mu,
            unit: hyper.gamma1.sqrt(),
        }
    }

    /// The same units with other hyperparameters, given in them.
    pub(crate) fn with(self, hyper: Hyperparameters) -> Self {
        Self { hyper, ..self }
    }

    pub(crate) fn target(&self, y: f64) -> f64 {
        (y - self.mu) / self.unit
    }

    /// A variance of targets in the model's units.
    pub(crate) fn variance_of(&self, variance: f64) -> f64 {
        variance / (self.unit * self.unit)
    }

    /// A difference of targets in the model's units.
    fn difference_of(&self, difference: f64) -> f64 {
        difference / self.unit
    }

    /// A difference of targets, given in the model's units.
    pub(crate) fn difference(&self, standard: f64) -> f64 {
        self.unit * standard
    }

    /// A target, given in the model's units.
    pub(crate) fn mean(&self, standard: f64) -> f64 {
        self.mu + self.difference(standard)
    }
}

/// A number with the last half of its digits rounded off, in which the rounding of targets would show.
fn coarse(value: f64) -> f64 {
    const LAST: u64 = 1 << 28;
    f64::from_bits((value.to_bits() + LAST / 2) & !(LAST - 1))
}

/// The model with its hyperparameters, of targets whose mean is 0.
pub(crate) struct Joint<'a> {
    hyper: Hyperparameters,
    system: System<'a>,
}

impl<'a> Joint<'a> {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(
        trees: &'a Trees,
        weights: Option<&[f64]>,
        hyper: Hyperparameters,
        run: &'a Run<'a>,
    ) -> Result<Self> {
        let noise_variance = hyper.noise_variance.max(LEAST_NOISE * hyper.gamma1);
        let system = System::new(trees, |time| hyper.clock(time), (noise_variance, weights), run)?;
        Ok(Self { hyper, system })
    }

    fn n_trees(&self) -> usize {
        self.system.n_trees()
    }

    /// The sums of weights by tree and node.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn sums<const L: usize>(&self, weights: &[[f64; L]]) -> Result<Vec<Vec<[f64; L]>>> {
        self.system.sums(weights)
    }

    /// Each tree's share of the rows' weights, in `L` problems, out of which other rows are left.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights<const L: usize>(
        &self,
        targets: &[[f64; L]],
        left_out: impl Fn(usize, usize) -> bool,
        tolerance: f64,
    ) -> Result<Vec<[f64; L]>> {
        self.system.weights(targets, left_out, tolerance)
    }

    /// A tree's share of the mean of a row that it holds with weight 0, `path` leading to its leaf;
    /// `branch` is where the row branches off from the leaf's other rows.
    pub(crate) fn left_out(
        &self,
        tree: usize,
        sum: impl Fn(NodeId) -> f64,
        path: &[NodeId],
        branch: Option<&Stop>,
    ) -> f64 {
        let whole: f64 = path.iter().map(|&node| self.system.span(tree, node) * sum(node)).sum();
        match (branch, path.last()) {
            (Some(stop), Some(&leaf)) => {
                let span = self.system.span(tree, leaf);
                let Hyperparameters { gamma1, gamma2, delay, .. } = self.hyper;
                let probability = branch_time::branch_probability(stop);
                let gain = gamma1 * branch_time::expected_clock(stop, gamma2, delay, probability)
                    - self.hyper.clock(stop.after);
                whole - (span - branch_time::expected_span(probability, span, gain)) * sum(leaf)
            }
            _ => whole,
        }
    }
}

/// The rows in an order that depends neither on that of their arrival nor on shifts and scales of the targets.
pub(crate) fn common_order<S: Scalar>(
    forest: &Forest<NodeMoments>,
    storage: &Storage<S, NodeMoments>,
) -> Vec<RowId> {
    let tree = &storage.trees[0];
    let centre = tree.arena.root().map_or(0.0, |root| tree.statistics.moments(root).mean);
    in_order(forest, storage, |a, b| (a - centre).abs().total_cmp(&(b - centre).abs()).then(a.total_cmp(&b)))
}

/// The joint model of a forest, which weights are solved for.
pub(crate) struct JointWeights {
    trees: Trees,
    order: Vec<RowId>,
    targets: Vec<f64>,
    weights: Option<Vec<f64>>,
    /// With a trend: all rows' `z`, and the line from which its coefficients are counted.
    line: Option<(Design, StartLine)>,
}

impl JointWeights {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new<S: Scalar>(
        settings: &RegressionSettings,
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let order = common_order(forest, storage);
        let trees = Trees::new(&storage.trees, &order, forest.settings.lifetime, run)?;
        let targets = order.iter().map(|&row| forest.targets[row as usize]).collect();
        let weights = forest.row_targets().weights_of(&order);
        let line = settings.trend.as_ref().filter(|_| !order.is_empty()).map(|trend| {
            let design = Design::new(forest, trend, &order);
            let line = StartLine::new(&design);
            (design, line)
        });
        Ok(Self { trees, order, targets, weights, line })
    }

    /// What the trend of a solution leaves of the targets, if there is one.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn residuals<S: Scalar>(
        &self,
        solution: &Solution,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Option<Residuals>> {
        let both = self.line.as_ref().zip(solution.linear.as_ref());
        both.map(|((design, _), linear)| Residuals::new(design, &linear.coefficients, storage, run))
            .transpose()
    }

    /// The weights and sums that determine means, without one row if it is given. `given` is for the trend, if there is one.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn solve(
        &self,
        model: &Standard,
        given: Given,
        left_out: Option<RowId>,
        run: &Run<'_>,
    ) -> Result<Solution> {
        let without = |place: usize, _| Some(self.order[place]) == left_out;
        let joint = Joint::new(&self.trees, self.weights.as_deref(), model.hyper, run)?;
        let (weights, linear) = match &self.line {
            None => {
                let targets: Vec<[f64; 1]> = self.targets.iter().map(|&y| [model.target(y)]).collect();
                (joint.weights(&targets, without, TOLERANCE)?, None)
            }
            Some(line) => {
                let (weights, linear) = self.solve_with_trend(&joint, model, line, given, without)?;
                (weights, Some(linear))
            }
        };
        let sums = joint.sums(&weights)?.into_iter().map(|tree| tree.concat()).collect();
        let weights = by_row(&self.order, 1, weights.as_flattened());
        Ok(Solution { weights, sums, linear })
    }

    /// The weights of what a trend leaves of the targets, and the trend.
    fn solve_with_trend(
        &self,
        joint: &Joint<'_>,
        model: &Standard,
        (design, line): &(Design, StartLine),
        given: Given,
        without: impl Fn(usize, usize) -> bool + Copy,
    ) -> Result<(Vec<[f64; 1]>, Linear)> {
        let (n, width) = (self.order.len(), design.columns.len());
        // Targets are solved for beside the columns: they come first.
        let mut sides = vec![vec![0.0; n]; 1 + width];
        for place in 0..n {
            sides[0][place] = model.difference_of(design.residual(place, &line.coefficients));
            for (side, &z) in sides[1..].iter_mut().zip(design.row(place)) {
                side[place] = z;
            }
        }
        let mut solved: Vec<Vec<f64>> = Vec::with_capacity(sides.len());
        for some in sides.chunks(LANES) {
            solved.extend(match some.len() {
                1 | 2 => weights_of::<2>(joint, some, without)?,
                3 | 4 => weights_of::<4>(joint, some, without)?,
                _ => weights_of::<LANES>(joint, some, without)?,
            });
        }
        let n_trees = joint.n_trees() as f64;
        let product = |i: usize, j: usize| n_trees * dot(&sides[i], &solved[j]);
        let mut pivot: Vec<f64> = line.coefficients.iter().map(|&b| model.difference_of(b)).collect();
        pivot[0] = model.target(line.coefficients[0]);
        let posterior = Coefficients::new(
            &Products {
                pivot: &pivot,
                prior: &design.columns.prior(),
                squares: &(0..width * width)
                    .map(|k| product(1 + k / width, 1 + k % width))
                    .collect::<Vec<f64>>(),
                with_targets: &(0..width).map(|i| product(1 + i, 0)).collect::<Vec<f64>>(),
                of_targets: product(0, 0),
                n_rows: n,
                weight: (0..n).map(|place| design.weight(place)).sum(),
            },
            given,
        );
        let weight = |place: usize| {
            let of_columns = posterior.beyond_pivot.iter().zip(&solved[1..]);
            [solved[0][place] - of_columns.map(|(b, solved)| b * solved[place]).sum::<f64>()]
        };
        let weights = (0..n).map(weight).collect();
        let mut of_columns = vec![0f32; n * width];
        let mut sums: Vec<Vec<f32>> = Vec::new();
        for (first, some) in solved[1..].chunks(LANES).enumerate() {
            let first = first * LANES;
            let each = in_lanes::<LANES>(some, n);
            let found = joint.sums(&each)?;
            sums.resize(found.len(), Vec::new());
            for (sums, found) in sums.iter_mut().zip(&found) {
                sums.resize(found.len() * width, 0.0);
                for (node, found) in found.iter().enumerate() {
                    for (lane, &sum) in found.iter().enumerate().take(some.len()) {
                        sums[node * width + first + lane] = sum as f32;
                    }
                }
            }
            for (place, each) in each.iter().enumerate() {
                for (lane, &weight) in each.iter().enumerate().take(some.len()) {
                    of_columns[place * width + first + lane] = weight as f32;
                }
            }
        }
        let weights_by_row = by_row(&self.order, width, &of_columns);
        let columns = design.columns.clone();
        Ok((weights, Linear::new(columns, &pivot, posterior, model.unit, (weights_by_row, sums))))
    }
}

/// The weights of at most `L` right-hand sides.
fn weights_of<const L: usize>(
    joint: &Joint<'_>,
    sides: &[Vec<f64>],
    without: impl Fn(usize, usize) -> bool,
) -> Result<Vec<Vec<f64>>> {
    let found = joint.weights(&in_lanes::<L>(sides, sides[0].len()), without, TOLERANCE)?;
    Ok((0..sides.len()).map(|lane| found.iter().map(|found| found[lane]).collect()).collect())
}

/// At most `L` vectors side by side, with zeros for those that are lacking.
fn in_lanes<const L: usize>(vectors: &[Vec<f64>], n: usize) -> Vec<[f64; L]> {
    (0..n)
        .map(|place| std::array::from_fn(|lane| vectors.get(lane).map_or(0.0, |vector| vector[place])))
        .collect()
}

/// Some numbers for each row, which are given in an order of the rows.
fn by_row<T: Copy + Default>(order: &[RowId], width: usize, in_order: &[T]) -> Vec<T> {
    let mut by_row = vec![T::default(); width * order.iter().max().map_or(0, |&row| row as usize + 1)];
    for (&row, own) in order.iter().zip(in_order.chunks_exact(width)) {
        by_row[width * row as usize..][..width].copy_from_slice(own);
    }
    by_row
}

/// Weights of the rows, each tree's share of them, and their sums by tree and node.
#[derive(Debug, Clone)]
pub(crate) struct Solution {
    pub(crate) weights: Vec<f64>,
    pub(crate) sums: Vec<Vec<f64>>,
    pub(crate) linear: Option<Linear>,
}

/// The joint model at a stop of a test row's path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedStop {
    clock: f64,
    /// The tree's share of the mean down to there, of a row that does not branch off before.
    mean: f64,
}

/// What test rows share of their paths, and the clock that the last one shares with the rows below each of its stops.
#[derive(Debug, Clone, Default)]
pub(crate) struct JointPath {
    passed: SharedPath<PassedStop>,
    spans: Vec<f64>,
    /// Number of the last row's first stops above which it does not branch off.
    inside: usize,
    /// For [`smooth`]: the sums down to each stop of a row that does not branch off before; those of the first stops are known.
    smoothed: Vec<f64>,
    n_known: usize,
}

/// A tree's share of the mean of a row: sums by node, each times the expected clock that the row and the
/// node's rows share below the node's parent. The tree is given by its number.
pub(crate) fn mean(
    (tree, sum): (usize, impl Fn(NodeId) -> f64),
    hyper: &Hyperparameters,
    StopsAndLaws { stops, laws }: StopsAndLaws<'_>,
    JointPath { passed, spans, inside, n_known, .. }: &mut JointPath,
) -> f64 {
    let (mut together, mut mean, mut above) = (1.0, 0.0, 0.0);
    spans.clear();
    *inside = 0;
    for (i, (stop, law)) in stops.iter().zip(laws).enumerate() {
        let PassedStop { clock, mean: shared } = passed.at(i, (tree, stop.node), |before| {
            *n_known = i.min(*n_known);
            let before = before.unwrap_or(PassedStop { clock: 0.0, mean: 0.0 });
            let clock = hyper.clock(stop.time);
            let span = (clock - before.clock).max(0.0);
            PassedStop { clock, mean: before.mean + span * sum(stop.node) }
        });
        let span = (clock - above).max(0.0);
        above = clock;
        let Some(law) = law else {
            spans.push(together * span);
            if together == 1.0 {
                // The sums above were added for the row before.
                mean = shared;
                *inside = i + 1;
            } else {
                mean += together * span * sum(stop.node);
            }
            continue;
        };
        let gain = clock_gain(law, stop, hyper).mean;
        let expected = together * branch_time::expected_span(law.probability, span, gain);
        spans.push(expected);
        mean += expected * sum(stop.node);
        together *= 1.0 - law.probability;
    }
    mean
}

/// Adds a tree's share of the means of a row for several right-hand sides, of which `sum` has the sums, along the path on which
/// [`mean`] was found.
pub(crate) fn smooth(
    JointPath { spans, inside, smoothed, n_known, .. }: &mut JointPath,
    stops: &[Stop],
    n_sides: usize,
    sum: impl Fn(NodeId, usize) -> f64,
    means: &mut Vec<f64>,
) {
    means.resize(n_sides, 0.0);
    smoothed.truncate(*n_known * n_sides);
    for i in *n_known..*inside {
        for side in 0..n_sides {
            let above = i.checked_sub(1).map_or(0.0, |above| smoothed[above * n_sides + side]);
            smoothed.push(above + spans[i] * sum(stops[i].node, side));
        }
    }
    *n_known = (*inside).max(*n_known);
    if let Some(last) = inside.checked_sub(1) {
        let known = &smoothed[last * n_sides..][..n_sides];
        means.iter_mut().zip(known).for_each(|(mean, known)| *mean += known);
    }
    for (stop, span) in stops.iter().zip(spans).skip(*inside) {
        for (side, mean) in means.iter_mut().enumerate() {
            *mean += *span * sum(stop.node, side);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
