//! A linear function of the features beside the trees.
//!
//! Where classes change along a line that is not parallel to an axis, or slowly, trees need many rows to say what a few slopes
//! say. So the forest's probabilities are multiplied by `exp(c v(x) g_k(x))` (`calibration`), where
//!
//! `g_k(x) = u(x) (z(x) - m)' b_k`.
//!
//! `z(x)` are the features that are numbers, in units of their reference ranges, `m` is their mean, and `b_k` is the ridge
//! regression of the class's codes, 1 for its rows and 0 for others:
//!
//! `min over a, b_k of sum_i w_i (y_ik - a_k - (z_i - m)' b_k)^2 + s |b_k|^2`.
//!
//! The penalty `s` is that of all classes together, by generalised cross-validation (Golub, Heath and Wahba 1979). There is no
//! function unless that finds slopes that are better than none by some margin. With weights, rows count as `(sum w)^2 / sum w^2`
//! rows there (Kish 1965).
//!
//! *Away from the rows* the function fades, so that the prior stays. With `M = (Z' W Z + s I)^-1` for the centred `Z`,
//! `q(x) = 1 / sum w + z' M z` is the variance of the regression at `x`, in units of that of the codes' noise. Up to a bound, below
//! which it is at nearly all rows (left out), `u` is 1; beyond, the square of the bound over `q`. So a line counts neither
//! beyond the rows nor in a corner where features have values together that they never have in rows. `v` is the nearness of
//! rows as trees see it (`calibration::link::nearness`).
//!
//! *Without a row* of weight `w` the regression misses its codes by `e / (1 - w q)` with `e = y - fit`, and `q` is `q / (1 - w q)`:
//! identities for the same `s`. So left-out values need no other fit.
//!
//! *How many rows.* At most [`TREND_ROWS`] rows, chosen by their contents, so that the function depends on the set of rows alone,
//! and its cost on a stream is bounded. The rows that calibrate are the first of them.

use std::collections::BTreeSet;

use crate::control::Run;
use crate::data::{RowId, Rows};
use crate::error::{Error, Result};
use crate::math::matrices::small_cholesky::Cholesky;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::forest::Forest;
use crate::mondrian::process::domain::Domain;
use crate::random::keyed::Key;

/// Rows that slopes are fitted to (at most).
pub const TREND_ROWS: usize = 3000;
/// With fewer rows there are no slopes.
const MIN_ROWS: usize = 20;
/// With more classes there are none.
const MAX_CLASSES: usize = 100;
/// The greatest number of features that have slopes: those with the greatest rates, of equal ones the first.
const MAX_FEATURES: usize = 128;
/// Penalties, in units of the squares of `z`.
const PENALTIES: [f64; 9] = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0];
/// The least residual degrees of freedom, as a share of those without slopes.
const LEAST_FREE: f64 = 0.7;
/// The share of rows at which the function counts in full.
const KNOWN: f64 = 0.95;
/// By how much the logarithm of the score must fall for slopes to be better than none, times the number of rows.
const MARGIN: f64 = 6.0;
/// If one minus a row's leverage is less, its values without it are 0.
const LEAST_OF_OTHERS: f64 = 1e-9;
/// A row that is farther away in a feature, in units of its reference range, counts as being so far away.
const FARTHEST: f64 = 1e6;
/// Test rows whose values one task computes.
const CHUNK: usize = 1024;

/// A linear function for each class, and how much it counts.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassTrend {
    /// How much logarithms of probabilities change with the function's values near rows.
    pub weight: f64,
    /// The features that have slopes.
    pub features: Vec<usize>,
    /// The lower ends of their reference ranges.
    pub low: Vec<f64>,
    /// The widths of these.
    pub width: Vec<f64>,
    /// Where the function is 0: mean places.
    pub means: Vec<f64>,
    /// The slopes along whole ranges, `n_features x n_classes`.
    pub slopes: Vec<f64>,
    /// The lower triangle of the Cholesky factor of the regression's matrix, `n_features x n_features`.
    pub factor: Vec<f64>,
    /// One over the number of rows, and the variance of the regression up to which the function counts in full.
    pub variances: [f64; 2],
}

impl ClassTrend {
    /// Of features that are numbers, are cut and have a range.
    fn without_slopes(domain: &Domain) -> Self {
        let (low, high, rates) = (domain.low(), domain.high(), domain.weights());
        let is_number = |d: usize| domain.categories().iter().all(|&(category, _)| category as usize != d);
        let may_have = |&d: &usize| rates[d] > 0.0 && (high[d] - low[d]).is_normal() && is_number(d);
        let mut features: Vec<usize> = (0..low.len()).filter(may_have).collect();
        features.sort_by(|&a, &b| rates[b].total_cmp(&rates[a]));
        features.truncate(MAX_FEATURES);
        features.sort_unstable();
        let (low, width): (Vec<f64>, Vec<f64>) = features.iter().map(|&d| (low[d], high[d] - low[d])).unzip();
        let means = vec![0.0; features.len()];
        let (slopes, factor) = (Vec::new(), Vec::new());
        Self { weight: 0.0, features, low, width, means, slopes, factor, variances: [0.0; 2] }
    }

    /// The places of a row, less the means.
    fn places<'a>(&'a self, x: impl Fn(usize) -> f64 + 'a) -> impl Iterator<Item = f64> + 'a {
        let ranges = self.low.iter().zip(&self.width).zip(&self.means);
        let place = move |(&d, ((low, width), mean)): (&usize, ((&f64, &f64), &f64))| {
            ((x(d) - low) / width).clamp(-FARTHEST, FARTHEST) - mean
        };
        self.features.iter().zip(ranges).map(place)
    }

    /// The variance of the regression at a place, in units of that of the codes' noise.
    fn variance(&self, factor: &Cholesky, z: &[f64]) -> f64 {
        self.variances[0] + factor.half_solve(z).iter().map(|x| x * x).sum::<f64>()
    }

    /// How much of the function counts at a variance.
    fn fade(&self, variance: f64) -> f64 {
        let ratio = self.variances[1] / variance;
        if ratio < 1.0 { ratio * ratio } else { 1.0 }
    }

    /// Adds the values for a row before they fade, given its places, to those in `out`, class by class.
    fn add_values(&self, z: &[f64], out: &mut [f64]) {
        for (z, slopes) in z.iter().zip(self.slopes.chunks_exact(out.len())) {
            out.iter_mut().zip(slopes).for_each(|(out, slope)| *out += z * slope);
        }
    }

    /// The values for rows, `n_rows x n_classes`, whatever the weight.
    ///
    /// # Errors
    /// A function of other features or classes; a number of features other than in `fit`; an interrupt.
    pub(super) fn predict(
        &self,
        domain: &Domain,
        rows: Rows<'_>,
        n_classes: usize,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        self.check(domain.n_features(), n_classes)?;
        let mut filled = Vec::new();
        let rows = domain.complete(rows, &mut filled)?;
        let factor = Cholesky::of_lower(self.features.len(), self.factor.clone());
        let chunks = run.map_ranges(rows.n_rows(), CHUNK, |own| {
            let mut values = vec![0.0; own.len() * n_classes];
            for (i, out) in own.zip(values.chunks_exact_mut(n_classes)) {
                let z: Vec<f64> = self.places(|d| rows.at(i, d)).collect();
                self.add_values(&z, out);
                let left = self.fade(self.variance(&factor, &z));
                scale(out, left);
            }
            Ok(values)
        })?;
        Ok(chunks.concat())
    }

    fn check(&self, n_features: usize, n_classes: usize) -> Result<()> {
        let n = self.features.len();
        let sizes = [&self.low, &self.width, &self.means].map(Vec::len);
        let fits = sizes == [n; 3] && [self.slopes.len(), self.factor.len()] == [n * n_classes, n * n];
        if fits && self.features.iter().all(|&feature| feature < n_features) {
            return Ok(());
        }
        let expected = "a trend of the forest's features and classes";
        Err(Error::InvalidSetting { name: "link", expected, found: format!("one with {n} features") })
    }
}

fn scale(values: &mut [f64], by: f64) {
    for value in values {
        *value *= by;
    }
}

/// The function of a forest, before its weight is known, and what its values without a row follow from.
#[derive(Debug, Clone)]
pub(super) struct TrendFit {
    design: Design,
    factor: Cholesky,
    /// What the rows are to which it is fitted: features, class and weight.
    rows: BTreeSet<(Key, usize, u64)>,
}

/// Rows as the regression takes them, and its coefficients.
#[derive(Debug, Clone)]
struct Design {
    trend: ClassTrend,
    /// The places of the live classes, by class.
    columns: Vec<usize>,
    /// The classes' shares of the rows' weights.
    shares: Vec<f64>,
    n_rows: f64,
    mean_weight: f64,
}

impl TrendFit {
    /// The function of some rows, in an order that does not depend on that of their coming; none without two classes, with
    /// few rows or many classes, or if slopes explain little.
    pub(super) fn new(forest: &Forest<ClassCounts>, classes: &ClassTable, rows: &[RowId]) -> Option<Self> {
        if !(2..=MAX_CLASSES).contains(&classes.live().len()) || rows.len() < MIN_ROWS {
            return None;
        }
        let mut design = Design::new(forest, classes, rows);
        let (sums, z) = design.centre(forest, rows);
        let (slopes, factor) = sums.best_slopes(&design.shares)?;
        design.trend.slopes = slopes;
        design.trend.factor = factor.lower().to_vec();
        design.trend.variances = [1.0 / design.n_rows, 0.0];
        design.trend.variances[1] = design.known_variance(forest, (rows, &z), &factor);
        let rows = rows.iter().map(|&row| design.content(forest, row)).collect();
        Some(Self { design, factor, rows })
    }

    /// The function with a weight.
    pub(super) fn with_weight(&self, weight: f64) -> ClassTrend {
        ClassTrend { weight, ..self.design.trend.clone() }
    }

    /// The values for rows of the forest, `n_rows x n_classes`, each of the function without the row. Copies of a row to which
    /// it is fitted stand for that row.
    pub(super) fn left_out(&self, forest: &Forest<ClassCounts>, rows: &[RowId]) -> Vec<f64> {
        let Design { trend, shares, .. } = &self.design;
        let mut values = vec![0.0; rows.len() * shares.len()];
        for (&row, out) in rows.iter().zip(values.chunks_exact_mut(shares.len())) {
            let x = forest.filled_view(row);
            let z: Vec<f64> = trend.places(|d| x.at(d)).collect();
            trend.add_values(&z, out);
            if self.rows.contains(&self.design.content(forest, row)) {
                self.take_out(&z, self.design.class_and_weight(forest, row), out);
            } else {
                scale(out, trend.fade(trend.variance(&self.factor, &z)));
            }
        }
        values
    }

    /// Makes values of a row those without it, given its class and weight.
    fn take_out(&self, z: &[f64], (class, weight): (usize, f64), out: &mut [f64]) {
        let (trend, n) = (&self.design.trend, self.design.n_rows);
        let variance = trend.variance(&self.factor, z);
        let of_others = 1.0 - weight * variance;
        if of_others < LEAST_OF_OTHERS || n - weight < LEAST_OF_OTHERS * n {
            out.fill(0.0);
            return;
        }
        for (k, (value, share)) in out.iter_mut().zip(&self.design.shares).enumerate() {
            let code = f64::from(u8::from(k == class));
            let fit = code - (code - share - *value) / of_others;
            *value = fit - (n * share - weight * code) / (n - weight);
        }
        scale(out, trend.fade(variance / of_others));
    }
}

impl Design {
    fn new(forest: &Forest<ClassCounts>, classes: &ClassTable, rows: &[RowId]) -> Self {
        let (targets, n_rows) = (forest.row_targets(), rows.len() as f64);
        Self {
            trend: ClassTrend::without_slopes(&forest.domain),
            columns: classes.columns(),
            shares: vec![0.0; classes.live().len()],
            n_rows,
            mean_weight: rows.iter().map(|&row| targets.weight(row)).sum::<f64>() / n_rows,
        }
    }

    /// Sets means and shares; returns the sums of products about the means, and the rows' places less these, row after row.
    fn centre(&mut self, forest: &Forest<ClassCounts>, rows: &[RowId]) -> (Sums, Vec<f64>) {
        let n_slopes = self.trend.features.len();
        let mut z = Vec::with_capacity(rows.len() * n_slopes);
        let mut means = vec![0.0; n_slopes];
        for &row in rows {
            let (class, weight) = self.class_and_weight(forest, row);
            self.shares[class] += weight / self.n_rows;
            let x = forest.filled_view(row);
            let start = z.len();
            z.extend(self.trend.places(|d| x.at(d)));
            means.iter_mut().zip(&z[start..]).for_each(|(mean, z)| *mean += weight * z / self.n_rows);
        }
        let mut sums = Sums::new(n_slopes, self.shares.len(), self.n_rows);
        for (i, &row) in rows.iter().enumerate() {
            let own = &mut z[i * n_slopes..(i + 1) * n_slopes];
            own.iter_mut().zip(&means).for_each(|(z, mean)| *z -= mean);
            sums.add(own, self.class_and_weight(forest, row));
        }
        self.trend.means = means;
        (sums, z)
    }

    /// The variance below which that of the regression without the row is at nearly all rows.
    fn known_variance(
        &self,
        forest: &Forest<ClassCounts>,
        (rows, z): (&[RowId], &[f64]),
        factor: &Cholesky,
    ) -> f64 {
        let variance = |(&row, z): (&RowId, &[f64])| {
            let variance = self.trend.variance(factor, z);
            variance / (1.0 - self.class_and_weight(forest, row).1 * variance).max(LEAST_OF_OTHERS)
        };
        // There are slopes: some were better than none.
        let places = z.chunks_exact(self.trend.features.len());
        let mut variances: Vec<f64> = rows.iter().zip(places).map(variance).collect();
        variances.sort_unstable_by(f64::total_cmp);
        variances[(KNOWN * (rows.len() - 1) as f64) as usize]
    }

    /// The place of a row's class, and its weight over the mean weight.
    fn class_and_weight(&self, forest: &Forest<ClassCounts>, row: RowId) -> (usize, f64) {
        let class = self.columns[forest.targets[row as usize] as usize];
        (class, forest.row_targets().weight(row) / self.mean_weight)
    }

    fn content(&self, forest: &Forest<ClassCounts>, row: RowId) -> (Key, usize, u64) {
        let (class, weight) = self.class_and_weight(forest, row);
        (forest.contents_key(row), class, weight.to_bits())
    }
}

/// Sums over the rows that slopes are fitted to.
struct Sums {
    n_slopes: usize,
    n_classes: usize,
    n_rows: f64,
    squares_of_weights: f64,
    /// The lower triangle.
    squares: Vec<f64>,
    /// With codes, `n_slopes x n_classes`.
    products: Vec<f64>,
}

impl Sums {
    fn new(n_slopes: usize, n_classes: usize, n_rows: f64) -> Self {
        let (squares, products) = (vec![0.0; n_slopes * n_slopes], vec![0.0; n_slopes * n_classes]);
        Self { n_slopes, n_classes, n_rows, squares_of_weights: 0.0, squares, products }
    }

    /// Adds a row, given its centred places.
    fn add(&mut self, z: &[f64], (class, weight): (usize, f64)) {
        self.squares_of_weights += weight * weight;
        for (i, own) in z.iter().enumerate() {
            let weighted = weight * own;
            self.products[i * self.n_classes + class] += weighted;
            let row = &mut self.squares[i * self.n_slopes..=i * self.n_slopes + i];
            row.iter_mut().zip(z).for_each(|(square, other)| *square += weighted * other);
        }
    }

    fn factor(&self, penalty: f64) -> Option<Cholesky> {
        let n = self.n_slopes;
        Cholesky::new(n, |i, j| self.squares[i * n + j] + if i == j { penalty } else { 0.0 })
    }

    /// The slopes, and how much they explain of the codes' squares.
    fn slopes(&self, factor: &Cholesky, penalty: f64) -> (Vec<f64>, f64) {
        let (mut slopes, mut explained) = (vec![0.0; self.products.len()], 0.0);
        for k in 0..self.n_classes {
            let products: Vec<f64> = self.products.iter().skip(k).step_by(self.n_classes).copied().collect();
            for (i, slope) in factor.solve(&products).into_iter().enumerate() {
                // The sum of squares falls by b' Z' W y + s b' b.
                explained += slope * (products[i] + penalty * slope);
                slopes[i * self.n_classes + k] = slope;
            }
        }
        (slopes, explained)
    }

    /// The slopes of the best penalty, and the factor of its matrix, if any are better than none.
    fn best_slopes(&self, shares: &[f64]) -> Option<(Vec<f64>, Cholesky)> {
        // As how many rows of equal weights they count.
        let n = self.n_rows * self.n_rows / self.squares_of_weights;
        if n < MIN_ROWS as f64 {
            return None;
        }
        let free = n - 1.0;
        let total: f64 = shares.iter().map(|share| self.n_rows * share * (1.0 - share)).sum();
        let (mut least, mut best) = (total / (free * free) * libm::exp(-MARGIN / n), None);
        for penalty in PENALTIES {
            let Some(factor) = self.factor(penalty) else { continue };
            let (slopes, explained) = self.slopes(&factor, penalty);
            let left = free - self.n_slopes as f64 + penalty * factor.trace_of_inverse();
            let score = (total - explained).max(0.0) / (left * left);
            if left >= LEAST_FREE * free && score < least {
                (least, best) = (score, Some((slopes, factor)));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests;
