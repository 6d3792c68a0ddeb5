//! A forest of extremely randomised trees, which measures the relevance of features.
//!
//! Extremely randomised trees (Geurts et al. 2006) try one random cut along each of some features at every
//! node, and make the cut that reduces impurity most. The importance of a feature is the total reduction by
//! its cuts, weighted by rows. The Mondrian forest derives its rates from these trees, since irrelevant
//! features are the weakness that section 6.5.4 of the thesis names. The process itself does not use targets.

use std::borrow::Cow;

use crate::control::{Run, map};
use crate::data::{Rows, goes_right};
use crate::error::Result;
use crate::mondrian::feature_rates::constant_features::ConstantFeatures;
use crate::mondrian::feature_rates::uncommon::{Places, Uncommon};
use crate::random::keyed::Stream;
use crate::random::shuffle::{draw_next, shuffle_first};
use crate::validate::{MAX_TREES, check, check_count, check_lengths, check_targets};

/// The kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// Class numbers 0, 1, ...; the impurity is Gini's.
    Classification,
    /// Numbers; the impurity is the variance.
    Regression,
}

impl TargetKind {
    /// Targets, with classes numbered so that none is without rows.
    ///
    /// # Errors
    /// As [`check_targets`]; [`Error::InvalidSetting`] for a class that is no whole number from 0 on.
    pub(super) fn numbered(self, targets: &[f64]) -> Result<Cow<'_, [f64]>> {
        check_targets(targets)?;
        if self == Self::Regression {
            return Ok(Cow::Borrowed(targets));
        }
        if let Some(y) = targets.iter().find(|y| **y < 0.0 || y.fract() != 0.0) {
            check("y", false, "whole numbers from 0 on for classes", &format!("{y:?}"))?;
        }
        let mut classes = targets.to_vec();
        classes.sort_unstable_by(f64::total_cmp);
        classes.dedup();
        let number = |y: &f64| classes.partition_point(|class| class < y) as f64;
        Ok(Cow::Owned(targets.iter().map(number).collect()))
    }
}

/// Largest number of rows of a tree.
const MAX_ROWS: usize = 10_000;
/// Nodes with fewer rows are not split.
const MIN_SAMPLES_SPLIT: usize = 5;

/// Nodes with fewer rows are not recorded: their gains are small, and mostly due to chance.
const MIN_RECORDED: usize = 20;
const ITERATIONS: usize = 100;
/// Features that are tried at a node, at most; else a third of all. The time of a tree grows with them.
const MOST_TRIES: usize = 300;

/// The relevance of each feature to extremely randomised trees, in two measures.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtraTreesRates {
    /// The reduction of impurity by each feature's cuts, normalised to sum to one.
    pub importances: Vec<f64>,
    /// The rates under which a Mondrian process makes the trees' cuts with the greatest likelihood, in units
    /// of one over a feature's range. Their mean is one.
    pub rates: Vec<f64>,
}

/// Importances of the features for the targets, and rates for a Mondrian process (all equal if no cut helps).
///
/// A Mondrian process cuts a node along feature `d`, of extent `e_d`, with probability `w_d e_d / sum w e`. A
/// node of these trees chooses the best of the features that it tried. Its choices, weighted by the reduction
/// of impurity, have a likelihood as a function of `w` (Luce's choice model), which Hunter's (2004)
/// minorisation maximises. Unlike importances, rates do not depend on how far outliers stretch the range of a
/// feature.
///
/// # Errors
/// Lengths that differ, no rows; missing values; targets that are not finite or, of classes, not whole numbers from 0 on; no
/// trees or too many; an interrupt.
pub fn extra_trees_rates(
    rows: Rows<'_>,
    targets: &[f64],
    kind: TargetKind,
    n_estimators: usize,
    seed: u64,
    run: &Run<'_>,
) -> Result<ExtraTreesRates> {
    let (n_rows, n_features) = (rows.n_rows(), rows.n_features());
    rows.complete()?;
    check_lengths(rows, targets.len())?;
    check_count("n_estimators", n_estimators, MAX_TREES)?;
    let targets = &*kind.numbered(targets)?;
    let mut columns: Vec<Vec<f64>> =
        (0..n_features).map(|d| (0..n_rows).map(|i| rows.at(i, d)).collect()).collect();
    let n_classes = match kind {
        TargetKind::Classification => targets.iter().fold(0, |k, &y| k.max(y as usize + 1)),
        TargetKind::Regression => 0,
    };
    let unit = |column: &mut Vec<f64>| {
        let (low, high) = range(column.iter().copied());
        let unit = 1.0 / (high - low);
        if unit.is_finite() && unit > 0.0 {
            return unit;
        }
        // A process does not cut a range that is too narrow or too wide for a rate.
        column.fill(0.0);
        1.0
    };
    let units = columns.iter_mut().map(unit).collect();
    let uncommon = columns.iter().map(|column| Uncommon::of(column)).collect();
    let grower = ExtraTreeGrower { columns: &columns, uncommon, units, targets, n_classes };
    let trees = map(run.n_threads, n_estimators, |i| {
        run.control.check()?;
        Ok(grower.tree(Stream::new(seed, i)))
    });
    let mut importances = vec![0.0; n_features];
    let mut choices = Vec::new();
    for found in trees {
        let found: Result<(Vec<f64>, TreeChoices)> = found;
        let (own, chosen) = found?;
        importances.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        choices.push(chosen);
    }
    let total: f64 = importances.iter().sum();
    if total <= 0.0 {
        return Ok(ExtraTreesRates {
            importances: vec![1.0 / n_features as f64; n_features],
            rates: vec![1.0; n_features],
        });
    }
    for importance in &mut importances {
        *importance /= total;
    }
    let rates = maximum_likelihood_rates(&choices, n_features);
    Ok(ExtraTreesRates { importances, rates })
}

/// The choices at the recorded nodes of a tree.
#[derive(Debug, Default)]
struct TreeChoices {
    /// By node: the chosen feature, its gain, and the end of the node's candidates.
    nodes: Vec<(u32, f64, usize)>,
    /// The features that were tried, and the node's extents along them.
    candidates: Vec<(u32, f32)>,
}

fn maximum_likelihood_rates(choices: &[TreeChoices], n_features: usize) -> Vec<f64> {
    /// Prior gain of each feature, as a share of all gains, so that no rate becomes 0 or infinite.
    const PRIOR: f64 = 1e-3;
    let d = n_features as f64;
    let mut gains = vec![0.0; n_features];
    for &(feature, gain, _) in choices.iter().flat_map(|tree| &tree.nodes) {
        gains[feature as usize] += gain;
    }
    let total: f64 = gains.iter().sum();
    let mut rates = vec![1.0; n_features];
    if total.is_nan() || total <= 0.0 {
        return rates;
    }
    for _ in 0..ITERATIONS {
        let mut expected = vec![PRIOR * total / d; n_features];
        for tree in choices {
            let mut start = 0;
            for &(_, gain, end) in &tree.nodes {
                let candidates = &tree.candidates[start..end];
                start = end;
                let rate: f64 =
                    candidates.iter().map(|&(d, extent)| rates[d as usize] * f64::from(extent)).sum();
                for &(d, extent) in candidates {
                    expected[d as usize] += gain * f64::from(extent) / rate;
                }
            }
        }
        for ((rate, gain), expected) in rates.iter_mut().zip(&gains).zip(expected) {
            *rate = (gain + PRIOR * total / d) / expected;
        }
        let mean = rates.iter().sum::<f64>() / d;
        for rate in &mut rates {
            *rate /= mean;
        }
    }
    rates
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (if value < low { value } else { low }, if value > high { value } else { high })
    })
}

struct ExtraTreeGrower<'a> {
    columns: &'a [Vec<f64>],
    /// By feature, where most rows share a value.
    uncommon: Vec<Option<Uncommon<f64>>>,
    /// The reciprocal of each feature's range.
    units: Vec<f64>,
    targets: &'a [f64],
    /// Number of classes; 0 for regression.
    n_classes: usize,
}

impl ExtraTreeGrower<'_> {
    /// Fits one tree. Returns the reduction of impurity by each feature's cuts, and the recorded choices.
    fn tree(&self, mut stream: Stream) -> (Vec<f64>, TreeChoices) {
        let mut choices = TreeChoices::default();
        let n_features = self.columns.len();
        let mut importances = vec![0.0; n_features];
        let mut rows = self.sample(&mut stream);
        let mut places = Places::of(&rows, self.targets.len());
        let mut own = Vec::new();
        let mut features: Vec<usize> = (0..n_features).collect();
        let n_tries = n_features.div_ceil(3).max(n_features.min(8)).min(MOST_TRIES);
        let mut stack = vec![(0, rows.len(), ConstantFeatures::none(n_features))];
        while let Some((start, end, mut constant)) = stack.pop() {
            let node = &rows[start..end];
            let all = self.impurity(node.iter().copied());
            if node.len() < MIN_SAMPLES_SPLIT || all.total <= 1e-12 * node.len() as f64 {
                continue;
            }
            let mut best: Option<(f64, usize, f64)> = None;
            for tried in 0..n_tries {
                draw_next(&mut features, tried, &mut stream);
                let d = features[tried];
                if constant.contains(d) {
                    continue;
                }
                let uncommon = self.uncommon[d].as_ref().filter(|uncommon| uncommon.rows.len() < node.len());
                let looked_at = match uncommon {
                    Some(uncommon) => {
                        own.clear();
                        own.extend(places.within(&uncommon.rows, start, end));
                        &own
                    }
                    None => node,
                };
                let common = uncommon.filter(|_| own.len() < node.len()).map(|uncommon| uncommon.common);
                let values = looked_at.iter().map(|&row| self.columns[d][row as usize]);
                let (low, high) = range(values.chain(common));
                if low >= high {
                    constant.insert(d);
                    continue;
                }
                let at = low + stream.unit() * (high - low);
                let threshold = if at < high { at } else { low };
                if node.len() >= MIN_RECORDED {
                    choices.candidates.push((d as u32, ((high - low) * self.units[d]) as f32));
                }
                let rest_goes_right = uncommon.is_none_or(|uncommon| goes_right(uncommon.common, threshold));
                let gain = all.total - self.after(looked_at, d, threshold, (rest_goes_right, &all));
                if best.is_none_or(|(most, ..)| gain > most + all.rounding()) {
                    best = Some((gain, d, threshold));
                }
            }
            let Some((gain, d, threshold)) = best else {
                continue;
            };
            importances[d] += gain.max(0.0);
            if node.len() >= MIN_RECORDED {
                choices.nodes.push((d as u32, gain.max(0.0), choices.candidates.len()));
            }
            let column = &self.columns[d];
            let is_right = |row: u32| goes_right(column[row as usize], threshold);
            let middle = places.part(&mut rows, (start, end), is_right);
            stack.push((start, middle, constant.clone()));
            stack.push((middle, end, constant));
        }
        let n = rows.len() as f64;
        (importances.into_iter().map(|importance| importance / n).collect(), choices)
    }

    /// The rows of one tree: all of them, or a random subset of the largest allowed size.
    fn sample(&self, stream: &mut Stream) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.targets.len() as u32).collect();
        if rows.len() > MAX_ROWS {
            shuffle_first(&mut rows, MAX_ROWS, stream);
            rows.truncate(MAX_ROWS);
        }
        rows
    }

    fn impurity(&self, rows: impl Iterator<Item = u32>) -> Impurity {
        let mut impurity = Impurity::new(self.n_classes);
        for row in rows {
            impurity.add(self.targets[row as usize]);
        }
        impurity.finish()
    }

    /// The impurities on both sides of a cut, added. Rows that are not looked at go to the same side.
    fn after(
        &self,
        rows: &[u32],
        d: usize,
        threshold: f64,
        (rest_goes_right, all): (bool, &Impurity),
    ) -> f64 {
        let column = &self.columns[d];
        let is_apart = |row: u32| goes_right(column[row as usize], threshold) != rest_goes_right;
        let apart = self.impurity(rows.iter().copied().filter(|&row| is_apart(row)));
        apart.total + apart.rest_of(all)
    }
}

/// Sums over the targets of some rows, from which impurity is computed.
struct Impurity {
    n: f64,
    sum: f64,
    square: f64,
    counts: Vec<f64>,
    /// Impurity times the number of rows.
    total: f64,
}

impl Impurity {
    fn new(n_classes: usize) -> Self {
        Self { n: 0.0, sum: 0.0, square: 0.0, counts: vec![0.0; n_classes], total: 0.0 }
    }

    fn add(&mut self, y: f64) {
        self.n += 1.0;
        if self.counts.is_empty() {
            self.sum += y;
            self.square += y * y;
        } else {
            self.counts[y as usize] += 1.0;
        }
    }

    fn finish(mut self) -> Self {
        if self.n > 0.0 {
            self.total = if self.counts.is_empty() {
                (self.square - self.sum * self.sum / self.n).max(0.0)
            } else {
                self.n - self.counts.iter().map(|c| c * c).sum::<f64>() / self.n
            };
        }
        self
    }

    /// What two gains may differ by where they are the same: features that divide rows alike gain the same.
    fn rounding(&self) -> f64 {
        1e-12 * if self.counts.is_empty() { self.square } else { self.n }
    }

    /// The sums over the rows of `all` that are not in this set.
    fn rest_of(&self, all: &Self) -> f64 {
        let counts = all.counts.iter().zip(&self.counts).map(|(all, own)| all - own).collect();
        let rest = Self {
            n: all.n - self.n,
            sum: all.sum - self.sum,
            square: all.square - self.square,
            counts,
            total: 0.0,
        };
        rest.finish().total
    }
}
