//! A pilot forest that looks at labels, and says which features matter.
//!
//! Extremely randomised trees (Geurts et al. 2006): at every node some features, one random cut each, and
//! of these the cut that takes away most impurity. A feature's importance is the impurity that its cuts
//! took away, weighted by rows. The Mondrian forest takes its rates from it (thesis section 6.5.4 names
//! irrelevant features as its weakness), after which nothing looks at labels any more.

use super::forest::Run;
use super::keyed::Stream;
use crate::control::map;
use crate::data::Rows;
use crate::error::{Error, Result};

/// What the targets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PilotTask {
    /// Class numbers 0, 1, ...; impurity is Gini's.
    Classification,
    /// Numbers; impurity is the variance.
    Regression,
}

/// Rows that each tree of the pilot sees at the most.
const MAX_ROWS: usize = 10_000;
/// A node of fewer rows is not split.
const MIN_SAMPLES_SPLIT: usize = 5;

/// The importance of every feature for the targets; they sum to one (all equal if no cut helps).
///
/// # Errors
/// Lengths that differ, no rows; an interrupt.
pub fn pilot_importances(
    rows: Rows<'_>,
    targets: &[f64],
    task: PilotTask,
    n_estimators: usize,
    seed: u64,
    run: &Run<'_>,
) -> Result<Vec<f64>> {
    let (n_rows, n_features) = (rows.n_rows(), rows.n_features());
    if n_rows == 0 {
        return Err(Error::Empty { n_rows, n_features });
    }
    if targets.len() != n_rows {
        return Err(Error::Length {
            what: "y",
            found: targets.len(),
            expected: n_rows,
            why: "one a row of X",
        });
    }
    let columns: Vec<Vec<f64>> =
        (0..n_features).map(|d| (0..n_rows).map(|i| rows.at(i, d)).collect()).collect();
    let n_classes = match task {
        PilotTask::Classification => targets.iter().fold(0, |k, &y| k.max(y as usize + 1)),
        PilotTask::Regression => 0,
    };
    let pilot = Pilot { columns: &columns, targets, n_classes };
    let trees = map(run.n_threads, n_estimators, |i| {
        run.control.check()?;
        Ok(pilot.tree(Stream::new(seed, i)))
    });
    let mut sum = vec![0.0; n_features];
    for tree in trees {
        let tree: Result<Vec<f64>> = tree;
        sum.iter_mut().zip(tree?).for_each(|(sum, own)| *sum += own);
    }
    let total: f64 = sum.iter().sum();
    if total <= 0.0 {
        return Ok(vec![1.0 / n_features as f64; n_features]);
    }
    Ok(sum.into_iter().map(|importance| importance / total).collect())
}

struct Pilot<'a> {
    columns: &'a [Vec<f64>],
    targets: &'a [f64],
    /// 0 for regression.
    n_classes: usize,
}

impl Pilot<'_> {
    /// The impurity that each feature's cuts took away in one tree.
    fn tree(&self, mut stream: Stream) -> Vec<f64> {
        let n_features = self.columns.len();
        let mut importances = vec![0.0; n_features];
        let mut rows = self.sample(&mut stream);
        let mut features: Vec<usize> = (0..n_features).collect();
        let n_tries = n_features.div_ceil(3).max(n_features.min(8));
        let mut stack = vec![(0, rows.len())];
        while let Some((start, end)) = stack.pop() {
            let node = &mut rows[start..end];
            let all = self.impurity(node.iter().copied());
            if node.len() < MIN_SAMPLES_SPLIT || all.total <= 1e-12 * node.len() as f64 {
                continue;
            }
            let mut best: Option<(f64, usize, f64)> = None;
            for tried in 0..n_tries {
                let other = tried + stream.below(n_features - tried);
                features.swap(tried, other);
                let d = features[tried];
                let Some(threshold) = self.random_cut(node, d, &mut stream) else {
                    continue;
                };
                let gain = all.total - self.after(node, d, threshold, &all);
                if best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, d, threshold));
                }
            }
            let Some((gain, d, threshold)) = best else {
                continue;
            };
            importances[d] += gain.max(0.0);
            let column = &self.columns[d];
            let mut middle = 0;
            for i in 0..node.len() {
                if column[node[i] as usize] <= threshold {
                    node.swap(i, middle);
                    middle += 1;
                }
            }
            stack.extend([(start, start + middle), (start + middle, end)]);
        }
        let n = rows.len() as f64;
        importances.into_iter().map(|importance| importance / n).collect()
    }

    /// Rows of one tree: all of them, or as many as a tree may see.
    fn sample(&self, stream: &mut Stream) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.targets.len() as u32).collect();
        if rows.len() > MAX_ROWS {
            for i in 0..MAX_ROWS {
                let other = i + stream.below(rows.len() - i);
                rows.swap(i, other);
            }
            rows.truncate(MAX_ROWS);
        }
        rows
    }

    /// A uniform cut between a node's smallest and largest value.
    fn random_cut(&self, node: &[u32], d: usize, stream: &mut Stream) -> Option<f64> {
        let column = &self.columns[d];
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for &row in node {
            let value = column[row as usize];
            low = if value < low { value } else { low };
            high = if value > high { value } else { high };
        }
        (low < high).then(|| {
            let at = low + stream.unit() * (high - low);
            if at < high { at } else { low }
        })
    }

    fn impurity(&self, rows: impl Iterator<Item = u32>) -> Impurity {
        let mut impurity = Impurity::new(self.n_classes);
        for row in rows {
            impurity.add(self.targets[row as usize]);
        }
        impurity.finish()
    }

    /// Impurity on both sides of a cut together.
    fn after(&self, node: &[u32], d: usize, threshold: f64, all: &Impurity) -> f64 {
        let column = &self.columns[d];
        let left = self.impurity(node.iter().copied().filter(|&row| column[row as usize] <= threshold));
        left.total + left.rest_of(all)
    }
}

/// Rows' targets as sums from which impurity follows.
struct Impurity {
    n: f64,
    sum: f64,
    square: f64,
    counts: Vec<f64>,
    /// Impurity times number of rows.
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

    /// The total of those of `all` that are not here.
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
