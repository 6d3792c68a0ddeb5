//! A linear function of the features beside the trees.
//!
//! Where classes change along a line that is not parallel to an axis, or slowly, trees need many rows to say what a few slopes
//! say. So the forest's probabilities are multiplied by `exp(c g_k(x))` (`calibration`), where
//!
//! `g_k(x) = v(x) (z(x) - m)' b_k`.
//!
//! `z(x)` are features in units of their reference ranges and not beyond these, `m` is their mean, and `b_k` is the ridge
//! regression of the class's codes, 1 for its rows and 0 for others:
//!
//! `min over a, b_k of sum_i w_i (y_ik - a_k - (z_i - m)' b_k)^2 + r |b_k|^2`.
//!
//! The penalty `r` is that of all classes together, by generalised cross-validation (Golub, Heath and Wahba 1979). There is no
//! function where that finds none better than slopes of 0. Categories have no slopes.
//!
//! *Away from the rows* the function fades, so that the prior stays: `v(x) = exp(-sum of w_d e_d)`, where `e_d` is how far the row
//! lies beyond the reference range of feature `d`, in units of it, and `w_d` the rate of cuts. That is the probability that a
//! Mondrian process of lifetime one leaves the row with the box of the ranges.
//!
//! *Without a row.* With `M = (Z' W Z + r I)^-1` for the centred `Z`, a row has the leverage `l = w (1 / sum w + z' M z)`, and the
//! regression without it misses its codes by `(y - fit) / (1 - l)`: an identity for the same `r`. So left-out values need no
//! other fit.
//!
//! *How many rows.* At most [`TREND_ROWS`] rows, chosen by their contents, so that the function is one of the set of rows and its
//! cost on a stream is bounded. The rows that calibrate are the first of them.

use crate::data::{RowId, Rows};
use crate::error::Result;
use crate::math::small_cholesky::Cholesky;
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::forest::Forest;
use crate::mondrian::process::domain::Domain;

/// Rows that slopes are fitted to (at most).
pub const TREND_ROWS: usize = 3000;
/// With fewer rows there are no slopes.
const MIN_ROWS: usize = 10;
/// With more classes there are none.
const MAX_CLASSES: usize = 100;
/// The greatest number of features that have slopes: those with the greatest rates, of equal ones the first.
const MAX_FEATURES: usize = 128;
/// Penalties, in units of the squares of `z`.
const PENALTIES: [f64; 9] = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0];
/// The least share of the degrees of freedom that slopes leave.
const LEAST_FREE: f64 = 0.05;
/// The least part of a row's codes that others explain, where its codes without it are known.
const LEAST_OF_OTHERS: f64 = 1e-9;

/// A linear function for each class, and how much it counts.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassTrend {
    /// How much logarithms of probabilities change with the function's values.
    pub weight: f64,
    /// The features on which it depends: those that are cut and have a range.
    pub features: Vec<usize>,
    /// The rates of cuts in these.
    pub rates: Vec<f64>,
    /// The lower ends of their reference ranges.
    pub low: Vec<f64>,
    /// The widths of these.
    pub width: Vec<f64>,
    /// Where the function is 0: mean places within the ranges, between 0 and 1.
    pub means: Vec<f64>,
    /// The slopes along whole ranges, `n_features x n_classes`; 0 for features that have none.
    pub slopes: Vec<f64>,
}

impl ClassTrend {
    fn without_slopes(domain: &Domain, n_classes: usize) -> Self {
        let (low, high, rates) = (domain.low(), domain.high(), domain.weights());
        let counts = |&d: &usize| rates[d] > 0.0 && (high[d] - low[d]).is_normal();
        let features: Vec<usize> = (0..low.len()).filter(counts).collect();
        let of = |value: &dyn Fn(usize) -> f64| features.iter().map(|&d| value(d)).collect::<Vec<f64>>();
        Self {
            weight: 0.0,
            rates: of(&|d| rates[d]),
            low: of(&|d| low[d]),
            width: of(&|d| high[d] - low[d]),
            means: vec![0.0; features.len()],
            slopes: vec![0.0; features.len() * n_classes],
            features,
        }
    }

    /// The numbers of the features that may have slopes, among those on which it depends.
    fn with_slopes(&self, domain: &Domain) -> Vec<usize> {
        let is_number = |&i: &usize| {
            domain.categories().iter().all(|&(category, _)| category as usize != self.features[i])
        };
        let mut chosen: Vec<usize> = (0..self.features.len()).filter(is_number).collect();
        chosen.sort_by(|&a, &b| self.rates[b].total_cmp(&self.rates[a]));
        chosen.truncate(MAX_FEATURES);
        chosen.sort_unstable();
        chosen
    }

    /// A row's place in a range, given the number of the feature among those on which it depends.
    fn place(&self, i: usize, x: &impl Fn(usize) -> f64) -> f64 {
        (x(self.features[i]) - self.low[i]) / self.width[i]
    }

    /// Adds the values for a row, before the function fades, to zeros; returns how much is left of them.
    fn add_values(&self, x: &impl Fn(usize) -> f64, out: &mut [f64]) -> f64 {
        let mut beyond = 0.0;
        for (i, slopes) in self.slopes.chunks_exact(out.len()).enumerate() {
            let place = self.place(i, x);
            let within = place.clamp(0.0, 1.0);
            beyond += self.rates[i] * (place - within).abs();
            let z = within - self.means[i];
            out.iter_mut().zip(slopes).for_each(|(out, slope)| *out += z * slope);
        }
        libm::exp(-beyond)
    }

    /// The values for rows, `n_rows x n_classes`, whatever the weight.
    ///
    /// # Errors
    /// A number of features other than in `fit`.
    pub(super) fn predict(&self, domain: &Domain, rows: Rows<'_>) -> Result<Vec<f64>> {
        let mut filled = Vec::new();
        let rows = domain.complete(rows, &mut filled)?;
        let n_classes = self.slopes.len() / self.features.len();
        let mut values = vec![0.0; rows.n_rows() * n_classes];
        for (i, out) in values.chunks_exact_mut(n_classes).enumerate() {
            let left = self.add_values(&|d| rows.at(i, d), out);
            for value in out {
                *value *= left;
            }
        }
        Ok(values)
    }
}

/// The function of a forest, before its weight is known, and what its values without a row follow from.
#[derive(Debug, Clone)]
pub(super) struct TrendFit {
    trend: ClassTrend,
    /// The numbers of the features that may have slopes.
    with_slopes: Vec<usize>,
    live: Vec<Class>,
    /// The classes' shares of the rows' weights.
    shares: Vec<f64>,
    factor: Cholesky,
    /// The rows that it is fitted to, sorted, and their weights, whose mean is 1.
    rows: Vec<(RowId, f64)>,
}

/// Sums over the rows that slopes are fitted to.
struct Sums {
    squares: Vec<f64>,
    /// With codes, `n_features x n_classes`.
    products: Vec<f64>,
    n_rows: f64,
}

impl TrendFit {
    /// The function of some rows, in an order that does not depend on that of their coming; none without two classes, with
    /// few rows or many classes, or if slopes explain nothing.
    pub(super) fn new(forest: &Forest<ClassCounts>, classes: &ClassTable, rows: &[RowId]) -> Option<Self> {
        let live = classes.live();
        if !(2..=MAX_CLASSES).contains(&live.len()) || rows.len() < MIN_ROWS {
            return None;
        }
        let mut trend = ClassTrend::without_slopes(&forest.domain, live.len());
        let with_slopes = trend.with_slopes(&forest.domain);
        let (n, width) = (rows.len() as f64, with_slopes.len());
        let targets = forest.row_targets();
        let mean_weight = rows.iter().map(|&row| targets.weight(row)).sum::<f64>() / n;
        let weights: Vec<f64> = rows.iter().map(|&row| targets.weight(row) / mean_weight).collect();
        let mut z = Vec::with_capacity(rows.len() * width);
        for &row in rows {
            let x = forest.filled_view(row);
            z.extend(with_slopes.iter().map(|&i| trend.place(i, &|d| x.at(d)).clamp(0.0, 1.0)));
        }
        let (mut means, mut shares) = (vec![0.0; width], vec![0.0; live.len()]);
        let columns = columns(&live, rows.iter().map(|&row| forest.targets[row as usize]));
        for (i, (&weight, &column)) in weights.iter().zip(&columns).enumerate() {
            let own = &z[i * width..(i + 1) * width];
            means.iter_mut().zip(own).for_each(|(mean, z)| *mean += weight * z / n);
            shares[column] += weight / n;
        }
        z.chunks_exact_mut(width.max(1))
            .for_each(|own| own.iter_mut().zip(&means).for_each(|(z, m)| *z -= m));
        let sums = Sums::of(&z, &weights, (&columns, live.len()), width);
        let (penalty, slopes) = sums.best_slopes(&shares)?;
        let factor = sums.factor(width, penalty)?;
        for ((&i, mean), slopes) in with_slopes.iter().zip(means).zip(slopes.chunks_exact(live.len())) {
            trend.means[i] = mean;
            trend.slopes[i * live.len()..(i + 1) * live.len()].copy_from_slice(slopes);
        }
        let mut rows: Vec<(RowId, f64)> = rows.iter().copied().zip(weights).collect();
        rows.sort_unstable_by_key(|&(row, _)| row);
        Some(Self { trend, with_slopes, live, shares, factor, rows })
    }

    /// The function with a weight.
    pub(super) fn with_weight(&self, weight: f64) -> ClassTrend {
        ClassTrend { weight, ..self.trend.clone() }
    }

    /// The values for rows of the forest, each of the function without the row: `n_rows x n_classes`.
    pub(super) fn left_out(&self, forest: &Forest<ClassCounts>, rows: &[RowId]) -> Vec<f64> {
        let columns = columns(&self.live, rows.iter().map(|&row| forest.targets[row as usize]));
        let mut values = vec![0.0; rows.len() * self.live.len()];
        for ((&row, own), out) in rows.iter().zip(columns).zip(values.chunks_exact_mut(self.live.len())) {
            let x = forest.filled_view(row);
            let left = self.trend.add_values(&|d| x.at(d), out);
            if let Ok(at) = self.rows.binary_search_by_key(&row, |&(row, _)| row) {
                self.without((own, self.rows[at].1), &|d| x.at(d), out);
            }
            for value in out {
                *value *= left;
            }
        }
        values
    }

    /// Makes values of a row those without it, given its class and weight.
    fn without(&self, (own, weight): (usize, f64), x: &impl Fn(usize) -> f64, out: &mut [f64]) {
        let n = self.rows.len() as f64;
        let z = |&i: &usize| self.trend.place(i, x).clamp(0.0, 1.0) - self.trend.means[i];
        let z: Vec<f64> = self.with_slopes.iter().map(z).collect();
        let half = self.factor.half_solve(&z);
        let of_row = weight * (1.0 / n + half.iter().map(|x| x * x).sum::<f64>());
        let rest = 1.0 - of_row;
        if rest < LEAST_OF_OTHERS || n - weight < LEAST_OF_OTHERS * n {
            out.fill(0.0);
            return;
        }
        for (k, (value, share)) in out.iter_mut().zip(&self.shares).enumerate() {
            let code = f64::from(u8::from(k == own));
            let fit = code - (code - share - *value) / rest;
            *value = fit - (n * share - weight * code) / (n - weight);
        }
    }
}

impl Sums {
    /// Of centred places, row after row.
    fn of(z: &[f64], weights: &[f64], (columns, n_classes): (&[usize], usize), width: usize) -> Self {
        let (mut squares, mut products) = (vec![0.0; width * width], vec![0.0; width * n_classes]);
        for (i, (&weight, &column)) in weights.iter().zip(columns).enumerate() {
            let own = &z[i * width..(i + 1) * width];
            for (j, z) in own.iter().enumerate() {
                let z = weight * z;
                products[j * n_classes + column] += z;
                let row = &mut squares[j * width..=j * width + j];
                row.iter_mut().zip(own).for_each(|(square, other)| *square += z * other);
            }
        }
        Self { squares, products, n_rows: weights.len() as f64 }
    }

    fn factor(&self, width: usize, penalty: f64) -> Option<Cholesky> {
        Cholesky::new(width, |i, j| self.squares[i * width + j] + if i == j { penalty } else { 0.0 })
    }

    /// The best penalty and its slopes, if any are better than none.
    fn best_slopes(&self, shares: &[f64]) -> Option<(f64, Vec<f64>)> {
        let n_classes = shares.len();
        let width = self.products.len() / n_classes;
        let free = self.n_rows - 1.0;
        let total: f64 = shares.iter().map(|share| self.n_rows * share * (1.0 - share)).sum();
        let (mut least, mut best) = (total / (free * free), None);
        for penalty in PENALTIES {
            let Some(factor) = self.factor(width, penalty) else { continue };
            let (mut slopes, mut explained) = (vec![0.0; self.products.len()], 0.0);
            for k in 0..n_classes {
                let products: Vec<f64> = self.products.iter().skip(k).step_by(n_classes).copied().collect();
                for (j, slope) in factor.solve(&products).into_iter().enumerate() {
                    // The sum of squares falls by b' Z' W y + r b' b.
                    explained += slope * (products[j] + penalty * slope);
                    slopes[j * n_classes + k] = slope;
                }
            }
            let left = free - width as f64 + penalty * factor.trace_of_inverse();
            let score = (total - explained).max(0.0) / (left * left);
            if left >= LEAST_FREE * free && score < least {
                (least, best) = (score, Some((penalty, slopes)));
            }
        }
        best
    }
}

/// The places of rows' classes among those that are live.
fn columns(live: &[Class], classes: impl Iterator<Item = Class>) -> Vec<usize> {
    let place =
        |class: Class| live.iter().position(|&other| other == class).expect("classes with rows are live");
    classes.map(place).collect()
}

#[cfg(test)]
mod tests;
