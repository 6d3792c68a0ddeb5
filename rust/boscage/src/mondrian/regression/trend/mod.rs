//! A linear function of the features beside the trees of the joint model.
//!
//! Far away from all rows the trees' functions go back to their prior mean at once. The thesis wishes for
//! regressors in the leaves (section 6.5.4). Here one regressor is shared by all leaves:
//!
//! `y = mu_H + z(x)' b + sum of trees + noise`, with the prior `b ~ N(0, tau^2 I)`.
//!
//! `z(x)` is one and the features, in units of their reference ranges and counted from the middle. That a
//! slope is the same beyond the range as within is a guess. So on either side of the range it changes by a
//! further coefficient, of variance [`CHANGE`] `tau^2`. Where no row lies beyond, the mean continues with the
//! slope, and the prior of the change adds to the variance. Let `A = K + s^2 I` be the covariance of the
//! joint model, `Z` the matrix of all `z`, and `r = y - mu_H`. The posterior is that of universal kriging
//! (Rasmussen and Williams 2006, section 2.7):
//!
//! - `b` has the covariance `C^-1`, `C = I / tau^2 + Z' A^-1 Z`, and the mean `C^-1 Z' A^-1 r`;
//! - the trees' part of the mean is `K(x, .) A^-1 (r - Z b)`;
//! - the uncertainty of `b` adds `(z - h)' C^-1 (z - h)` to the variance, where `h = Z' A^-1 K(., x)` is the
//!   trees' prediction of `z` itself: next to nothing among the rows, and more and more beyond them.
//!
//! All this takes `A^-1` of `r` and of the columns of `Z`, which are only further right-hand sides of a
//! system that is solved anyway. `tau` maximises the likelihood of the targets, which the same products give
//! in closed form (`posterior`).
//!
//! The trees' own hierarchies, whose spread is that of the predictions, explain the residuals `y - z' b`.
//! Hyperparameters have to be chosen before `b` is known. They are those of the residuals of an ordinary
//! least-squares line (`start_line`).

pub(crate) mod posterior;
pub(crate) mod start_line;

use std::borrow::Cow;

use crate::data::{RowId, RowTargets, Scalar};
use crate::mondrian::forest::Forest;
use crate::mondrian::process::domain::{Domain, MAX_LEVEL};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::settings::Trend;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeKind;
use crate::mondrian::tree::statistics::Statistics;

/// The greatest number of features that a trend has: those with the greatest rates, of equal ones the first.
const MAX_FEATURES: usize = 14;

/// A row that is farther away, in units of a feature's range, counts as being so far away: sums over rows are finite, also in
/// single precision. Training rows are hardly ever farther away (`Domain::level_of`).
const FARTHEST: f64 = (1u128 << MAX_LEVEL) as f64;

/// How much a slope may change where its feature leaves the reference range: the prior variance in units of the slope's own.
const CHANGE: f64 = 0.5;

/// The entries of `z(x)`: one, some features, and for some of these how far they are above or below their range.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    features: Vec<Feature>,
    /// Of the features above and below, those about which there are rows.
    beyond: Vec<Beyond>,
}

#[derive(Debug, Clone, Copy)]
struct Feature {
    index: usize,
    middle: f64,
    range: f64,
}

/// A feature (by its place) above or below its range.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Beyond {
    place: usize,
    above: bool,
}

impl Beyond {
    /// How far, given the feature in units of its range, from the middle.
    fn distance(self, z: f64) -> f64 {
        (if self.above { z - 0.5 } else { -0.5 - z }).max(0.0)
    }
}

impl Columns {
    /// Features that are never cut or have no range have no part in a trend.
    pub(crate) fn of(domain: &Domain, trend: &Trend) -> Self {
        let (low, high, weights) = (domain.low(), domain.high(), domain.weights());
        let mut features: Vec<usize> =
            (0..low.len()).filter(|&d| weights[d] > 0.0 && (high[d] - low[d]).is_normal()).collect();
        if let Some(some) = &trend.features {
            features.retain(|feature| some.contains(feature));
        }
        features.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        features.truncate(MAX_FEATURES);
        features.sort_unstable();
        let feature = |index: usize| {
            let range = high[index] - low[index];
            Feature { index, middle: low[index] + 0.5 * range, range }
        };
        Self { features: features.into_iter().map(feature).collect(), beyond: Vec::new() }
    }

    /// One of each kind.
    fn all_beyond(&self) -> impl Iterator<Item = Beyond> + use<> {
        (0..self.features.len()).flat_map(|place| [false, true].map(|above| Beyond { place, above }))
    }

    pub(crate) fn len(&self) -> usize {
        self.n_lines() + self.beyond.len()
    }

    /// The number of entries that are those of a line.
    pub(crate) fn n_lines(&self) -> usize {
        1 + self.features.len()
    }

    /// The prior variance of every coefficient, in units of `tau^2`.
    pub(crate) fn prior(&self) -> Vec<f64> {
        let line = std::iter::repeat_n(1.0, self.n_lines());
        line.chain(self.beyond.iter().map(|_| CHANGE)).collect()
    }

    /// The variance of the entries about which there are no rows, in units of `tau^2`.
    pub(crate) fn without_rows(&self, x: impl Fn(usize) -> f64) -> f64 {
        let others = self.all_beyond().filter(|beyond| !self.beyond.contains(beyond));
        others.map(|beyond| CHANGE * beyond.distance(self.features[beyond.place].z(&x)).powi(2)).sum()
    }

    /// Slopes per unit of every feature, given the coefficients.
    pub(crate) fn slopes(&self, coefficients: &[f64], n_features: usize) -> Vec<f64> {
        let mut slopes = vec![0.0; n_features];
        for (feature, coefficient) in self.features.iter().zip(&coefficients[1..]) {
            slopes[feature.index] = coefficient / feature.range;
        }
        slopes
    }

    /// What each feature adds, given the coefficients.
    pub(crate) fn by_part(&self, coefficients: &[f64]) -> Vec<TrendPart> {
        let (slopes, changes) = coefficients[1..].split_at(self.features.len());
        let change = |place: usize, above: bool| {
            let wanted = Beyond { place, above };
            self.beyond.iter().zip(changes).find(|(beyond, _)| **beyond == wanted).map_or(0.0, |(_, &c)| c)
        };
        let part = |(place, (&Feature { index, middle, range }, &slope))| {
            let (below, above) = (change(place, false), change(place, true));
            TrendPart { feature: index, middle, range, slope, below, above }
        };
        self.features.iter().zip(slopes).enumerate().map(part).collect()
    }

    /// What the entries of each feature add to the trend at a row.
    pub(crate) fn parts(
        &self,
        coefficients: &[f64],
        x: impl Fn(usize) -> f64,
        n_features: usize,
    ) -> Vec<f64> {
        let mut parts = vec![0.0; n_features];
        let entries: Vec<f64> = self.of_row(x).zip(coefficients).map(|(z, of_z)| z * of_z).collect();
        let places = (0..self.features.len()).chain(self.beyond.iter().map(|beyond| beyond.place));
        for (place, entry) in places.zip(&entries[1..]) {
            parts[self.features[place].index] += entry;
        }
        parts
    }

    /// `z` of a row, given its features.
    pub(crate) fn of_row(&self, x: impl Fn(usize) -> f64) -> impl Iterator<Item = f64> {
        let z: Vec<f64> = self.features.iter().map(|feature| feature.z(&x)).collect();
        let beyond: Vec<f64> = self.beyond.iter().map(|beyond| beyond.distance(z[beyond.place])).collect();
        std::iter::once(1.0).chain(z).chain(beyond)
    }
}

impl Feature {
    fn z(&self, x: impl Fn(usize) -> f64) -> f64 {
        ((x(self.index) - self.middle) / self.range).clamp(-FARTHEST, FARTHEST)
    }
}

/// What one feature adds to the trend: a slope, which changes at both ends of the reference range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrendPart {
    /// The feature.
    pub feature: usize,
    /// The middle of its reference range, where it adds nothing.
    pub middle: f64,
    /// The width of that range, in units of which it counts.
    pub range: f64,
    /// What a unit adds.
    pub slope: f64,
    /// What each unit that the feature is below the range adds further.
    pub below: f64,
    /// The same above the range.
    pub above: f64,
}

/// All rows' `z` and targets, in an order that does not depend on that of their coming.
#[derive(Debug)]
pub(crate) struct Design {
    pub(crate) columns: Columns,
    pub(crate) order: Vec<RowId>,
    /// Row after row.
    z: Vec<f64>,
    pub(crate) targets: Vec<f64>,
    /// None if all are 1.
    weights: Option<Vec<f64>>,
}

impl Design {
    pub(crate) fn new(forest: &Forest<NodeMoments>, trend: &Trend, order: &[RowId]) -> Self {
        let mut columns = Columns::of(&forest.domain, trend);
        let all: Vec<Beyond> = columns.all_beyond().collect();
        let mut has_rows = vec![false; all.len()];
        for &row in order {
            let x = forest.filled_view(row);
            for (beyond, has_rows) in all.iter().zip(&mut has_rows) {
                *has_rows |= beyond.distance(columns.features[beyond.place].z(|d| x.at(d))) > 0.0;
            }
        }
        columns.beyond =
            all.into_iter().zip(has_rows).filter(|(_, has)| *has).map(|(beyond, _)| beyond).collect();
        let mut z = Vec::with_capacity(order.len() * columns.len());
        for &row in order {
            let x = forest.filled_view(row);
            z.extend(columns.of_row(|d| x.at(d)));
        }
        let rows = forest.row_targets();
        let targets = order.iter().map(|&row| rows.of(row)).collect();
        let weights = rows.weights_of(order);
        Self { columns, order: order.to_vec(), z, targets, weights }
    }

    /// As how many rows the row at a place counts.
    pub(crate) fn weight(&self, place: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[place])
    }

    /// The weights by row, unless all are 1.
    fn weights_by_row(&self) -> Option<Vec<f64>> {
        let weights = self.weights.as_ref()?;
        let mut by_row = vec![1.0; self.order.iter().max().map_or(0, |&row| row as usize + 1)];
        self.order.iter().zip(weights).for_each(|(&row, &weight)| by_row[row as usize] = weight);
        Some(by_row)
    }

    /// `z` of the row at a place.
    pub(crate) fn row(&self, place: usize) -> &[f64] {
        let width = self.columns.len();
        &self.z[place * width..(place + 1) * width]
    }

    /// The target of the row at a place, less a linear function.
    pub(crate) fn residual(&self, place: usize, coefficients: &[f64]) -> f64 {
        self.targets[place] - dot(self.row(place), coefficients)
    }
}

/// What a linear function leaves of the targets.
pub(crate) struct Residuals {
    /// By row.
    targets: Vec<f64>,
    weights: Option<Vec<f64>>,
}

impl Residuals {
    pub(crate) fn new(design: &Design, coefficients: &[f64]) -> Self {
        let mut targets = vec![0.0; design.order.iter().max().map_or(0, |&row| row as usize + 1)];
        for (place, &row) in design.order.iter().enumerate() {
            targets[row as usize] = design.residual(place, coefficients);
        }
        Self { targets, weights: design.weights_by_row() }
    }

    pub(crate) fn observed(&self) -> Observed<'_> {
        let targets = RowTargets { targets: &self.targets, weights: self.weights.as_deref() };
        Observed { targets, are_residuals: true }
    }
}

/// The moments of targets at the nodes of a tree, which holds the moments of others.
fn moments<S: Scalar>(tree: &Tree<S, NodeMoments>, targets: RowTargets<'_, f64>) -> NodeMoments {
    let arena = &tree.arena;
    let mut moments = NodeMoments::default();
    let mut rows = Vec::new();
    for &node in arena.preorder().iter().rev() {
        match arena.kind(node) {
            NodeKind::Leaf => {
                rows.clear();
                rows.extend(arena.leaf_rows(node));
                moments.set_leaf(node, &rows, targets);
            }
            NodeKind::Split(left, right) => {
                let [left, right] = [left, right].map(|child| (child, arena.n_rows(child)));
                moments.join(node, left, right);
            }
        }
    }
    moments
}

/// What the trees' hierarchies explain: the targets, or what a trend leaves of them.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'a> {
    /// By row.
    pub(crate) targets: RowTargets<'a, f64>,
    are_residuals: bool,
}

impl<'a> Observed<'a> {
    pub(crate) fn targets_of(forest: &'a Forest<NodeMoments>) -> Self {
        Self { targets: forest.row_targets(), are_residuals: false }
    }

    /// The moments at the nodes of a tree: those that it keeps, or those of residuals, which are computed whenever they are needed,
    /// since those of all trees would take much memory.
    pub(crate) fn moments<S: Scalar>(&self, tree: &'a Tree<S, NodeMoments>) -> Cow<'a, NodeMoments> {
        if self.are_residuals {
            Cow::Owned(moments(tree, self.targets))
        } else {
            Cow::Borrowed(&tree.statistics)
        }
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests;
