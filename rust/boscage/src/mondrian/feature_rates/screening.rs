//! The features of a wide table that matter most, found before rates are learned.
//!
//! To learn rates takes time in proportion to the features, and a forest's boxes take as much memory. Where there are
//! thousands, most say nothing of the targets. So boosted regression trees (Friedman 2001) are fitted first, and the
//! features whose splits reduce the squared error most are kept. The trees see few bins of each feature, and of these
//! only the values other than 0: a pass over all features takes as long as there are such values, of which a table of
//! words or of categories has few.
//!
//! Classes are fitted as numbers: each tree sees the residuals of all classes' indicators in a random direction.

use crate::control::{Run, map};
use crate::data::{Rows, goes_right};
use crate::error::{Result, check_room};
use crate::mondrian::feature_rates::extra_trees::TargetKind;
use crate::random::keyed::Stream;
use crate::validate::check_lengths;

/// Bins of a feature, at most.
const BINS: usize = 16;
const TREES: usize = 40;
/// Splits on a path, at most.
const DEPTH: usize = 5;
/// The least number of rows on either side of a split.
const MIN_ROWS: f64 = 5.0;
/// The part of a tree's fit that residuals lose.
const LEARNING_RATE: f64 = 0.3;
/// What the best split of all rows counts, so that features without a split in the trees have an order, too.
const ALONE: f64 = 1e-3;
/// What rounding may add to a square, in units of targets.
const ROUNDING: f64 = 1e-12;
/// No node: the tree is not split further where the row is.
const CLOSED: u32 = u32::MAX;

/// The numbers of the `n` features that matter most for the targets, ascending; of all features if they are no more.
///
/// # Errors
/// Lengths that differ, no rows; targets that are not finite or, of classes, not whole numbers from 0 on; too many features; an
/// interrupt.
pub fn most_important_features(
    rows: Rows<'_>,
    targets: &[f64],
    kind: TargetKind,
    n: usize,
    seed: u64,
    run: &Run<'_>,
) -> Result<Vec<u32>> {
    let (n_rows, n_features) = (rows.n_rows(), rows.n_features());
    check_lengths(rows, targets.len())?;
    check_room("the features' numbers", n_features.saturating_mul(size_of::<Column>()))?;
    let targets = &*kind.numbered(targets)?;
    let mut features: Vec<u32> = (0..n_features as u32).collect();
    if n_features > n {
        let columns = columns(rows);
        let mut booster = Booster { columns: &columns, residuals: residuals(targets, kind), n_rows };
        let worth = booster.worth(Stream::new(seed, 0), run)?;
        features.sort_by(|&a, &b| worth[b as usize].total_cmp(&worth[a as usize]));
        features.truncate(n);
        features.sort_unstable();
    }
    Ok(features)
}

/// A feature in bins.
#[derive(Debug)]
struct Column {
    /// The rows whose values are not 0, and their bins.
    stored: Vec<(u32, u8)>,
    n_bins: usize,
    bin_of_zero: usize,
}

impl Column {
    fn new(values: &[(u32, f64)], n_rows: usize) -> Self {
        let mut sorted: Vec<f64> = values.iter().map(|&(_, value)| value).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |part: usize| sorted[(sorted.len() - 1) * part / BINS];
        // The greatest values of the bins; the last one has no end.
        let mut ends: Vec<f64> = if sorted.is_empty() { Vec::new() } else { (0..=BINS).map(at).collect() };
        if values.len() < n_rows {
            ends.push(0.0);
        }
        ends.sort_unstable_by(f64::total_cmp);
        ends.dedup();
        ends.pop();
        let bin = |value: f64| ends.partition_point(|&end| goes_right(value, end));
        Self {
            stored: values.iter().map(|&(row, value)| (row, bin(value) as u8)).collect(),
            n_bins: ends.len() + 1,
            bin_of_zero: bin(0.0),
        }
    }
}

fn columns(rows: Rows<'_>) -> Vec<Column> {
    let mut values = vec![Vec::new(); rows.n_features()];
    for row in 0..rows.n_rows() {
        for (feature, value) in rows.nonzero(row) {
            values[feature].push((row as u32, value));
        }
    }
    values.into_iter().map(|values| Column::new(&values, rows.n_rows())).collect()
}

/// Targets less their means, in units of their spread: indicators of classes, or numbers; by kind of target.
fn residuals(targets: &[f64], kind: TargetKind) -> Vec<Vec<f64>> {
    let centred = |values: Vec<f64>| -> Vec<f64> {
        let n = values.len() as f64;
        let mean = values.iter().map(|value| value / n).sum::<f64>();
        let largest = |from: f64| values.iter().map(|value| (value - from).abs()).fold(0.0, f64::max);
        // Targets that are all the same may differ from their mean by rounding.
        let unit = largest(mean).max(ROUNDING * largest(0.0)).max(f64::MIN_POSITIVE);
        values.iter().map(|value| (value - mean) / unit).collect()
    };
    match kind {
        TargetKind::Regression => vec![centred(targets.to_vec())],
        TargetKind::Classification => {
            let n_classes = targets.iter().fold(0, |n, &y| n.max(y as usize + 1));
            let of =
                |class: usize| targets.iter().map(|&y| f64::from(u8::from(y as usize == class))).collect();
            (0..n_classes).map(|class| centred(of(class))).collect()
        }
    }
}

/// A sum of targets, and their number.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    sum: f64,
    n: f64,
}

impl Sum {
    fn add(&mut self, target: f64) {
        self.sum += target;
        self.n += 1.0;
    }

    fn less(self, other: Self) -> Self {
        Self { sum: self.sum - other.sum, n: self.n - other.n }
    }

    fn and(self, other: Self) -> Self {
        Self { sum: self.sum + other.sum, n: self.n + other.n }
    }

    /// By how much the mean reduces the sum of squares.
    fn square(self) -> f64 {
        self.sum * self.sum / self.n
    }
}

/// The best split of a node.
#[derive(Debug, Clone, Copy)]
struct Split {
    gain: f64,
    feature: usize,
    /// The last bin on the left.
    bin: usize,
}

/// A tree that grows, level by level: the nodes of its last level, and the target and node of each row.
struct Level {
    targets: Vec<f64>,
    node_of: Vec<u32>,
    totals: Vec<Sum>,
}

struct Booster<'a> {
    columns: &'a [Column],
    /// By class, or of the only number: what the trees so far leave.
    residuals: Vec<Vec<f64>>,
    n_rows: usize,
}

impl Booster<'_> {
    /// By how much the splits of each feature reduce the squared error.
    fn worth(&mut self, mut stream: Stream, run: &Run<'_>) -> Result<Vec<f64>> {
        let level = self.root(&mut stream);
        let alone = map(run.n_threads, self.columns.len(), |feature| {
            best_splits(feature, &self.columns[feature], &level, &mut Vec::new())[0]
                .map_or(0.0, |best| best.gain)
        });
        let mut worth: Vec<f64> = alone.into_iter().map(|gain| ALONE * gain).collect();
        for _ in 0..TREES {
            run.control.check()?;
            self.tree(&mut stream, run, &mut worth);
        }
        Ok(worth)
    }

    /// All rows in one node, with targets in a random direction.
    fn root(&self, stream: &mut Stream) -> Level {
        let mut targets = vec![0.0; self.n_rows];
        for residuals in &self.residuals {
            let share = if self.residuals.len() == 1 { 1.0 } else { stream.unit() - 0.5 };
            targets.iter_mut().zip(residuals).for_each(|(target, own)| *target += share * own);
        }
        Level { totals: totals(&targets, &vec![0; self.n_rows], 1), node_of: vec![0; self.n_rows], targets }
    }

    /// Fits a tree, and takes a part of its fit from the residuals.
    fn tree(&mut self, stream: &mut Stream, run: &Run<'_>, worth: &mut [f64]) {
        let mut level = self.root(stream);
        let mut leaf_of = vec![0; self.n_rows];
        let mut n_leaves = 1;
        for _ in 0..DEPTH {
            let splits = self.splits(&level, run);
            if splits.iter().all(Option::is_none) {
                break;
            }
            let mut left = Vec::with_capacity(splits.len());
            let mut n_nodes = 0;
            for split in &splits {
                left.push(if split.is_some() { n_nodes } else { CLOSED });
                n_nodes += 2 * u32::from(split.is_some());
                if let Some(Split { gain, feature, .. }) = *split {
                    worth[feature] += gain;
                }
            }
            let right = self.goes_right(&level, &splits);
            for ((node, leaf), right) in level.node_of.iter_mut().zip(&mut leaf_of).zip(right) {
                if *node == CLOSED {
                    continue;
                }
                let below = left[*node as usize];
                *node = if below == CLOSED { CLOSED } else { below + u32::from(right) };
                if *node != CLOSED {
                    *leaf = n_leaves + *node as usize;
                }
            }
            n_leaves += n_nodes as usize;
            level.totals = totals(&level.targets, &level.node_of, n_nodes as usize);
        }
        for residuals in &mut self.residuals {
            let mut means = vec![Sum::default(); n_leaves];
            residuals.iter().zip(&leaf_of).for_each(|(&own, &leaf)| means[leaf].add(own));
            for (own, &leaf) in residuals.iter_mut().zip(&leaf_of) {
                *own -= LEARNING_RATE * means[leaf].sum / means[leaf].n;
            }
        }
    }

    /// The best split of each node, if one reduces the squared error.
    fn splits(&self, level: &Level, run: &Run<'_>) -> Vec<Option<Split>> {
        /// Features at a time.
        const CHUNK: usize = 64;
        let n = self.columns.len();
        let of_chunks = map(run.n_threads, n.div_ceil(CHUNK), |chunk| {
            let mut best = vec![None; level.totals.len()];
            let mut sums = Vec::new();
            for feature in chunk * CHUNK..n.min((chunk + 1) * CHUNK) {
                take_better(&mut best, &best_splits(feature, &self.columns[feature], level, &mut sums));
            }
            best
        });
        let mut best = vec![None; level.totals.len()];
        for of_chunk in of_chunks {
            take_better(&mut best, &of_chunk);
        }
        best
    }

    /// Whether each row is on the right of its node's split.
    fn goes_right(&self, level: &Level, splits: &[Option<Split>]) -> Vec<bool> {
        let of_node = |node: u32| splits.get(node as usize).copied().flatten();
        let zero_goes_right =
            |split: Split| goes_right(self.columns[split.feature].bin_of_zero as u32, split.bin as u32);
        let mut right: Vec<bool> =
            level.node_of.iter().map(|&node| of_node(node).is_some_and(zero_goes_right)).collect();
        for (node, split) in splits.iter().enumerate() {
            let Some(split) = split else { continue };
            for &(row, bin) in &self.columns[split.feature].stored {
                if level.node_of[row as usize] == node as u32 {
                    right[row as usize] = goes_right(u32::from(bin), split.bin as u32);
                }
            }
        }
        right
    }
}

fn totals(targets: &[f64], node_of: &[u32], n_nodes: usize) -> Vec<Sum> {
    let mut totals = vec![Sum::default(); n_nodes];
    for (&target, &node) in targets.iter().zip(node_of).filter(|(_, node)| **node != CLOSED) {
        totals[node as usize].add(target);
    }
    totals
}

/// Replaces splits by better ones; of equal ones the first stays.
fn take_better(best: &mut [Option<Split>], others: &[Option<Split>]) {
    for (best, other) in best.iter_mut().zip(others) {
        if other.is_some_and(|other| best.is_none_or(|best| other.gain > best.gain)) {
            *best = *other;
        }
    }
}

/// The best split of each node along a feature.
fn best_splits(feature: usize, column: &Column, level: &Level, sums: &mut Vec<Sum>) -> Vec<Option<Split>> {
    let n_bins = column.n_bins;
    sums.clear();
    sums.resize(n_bins * level.totals.len(), Sum::default());
    for &(row, bin) in &column.stored {
        let node = level.node_of[row as usize];
        if node != CLOSED {
            sums[node as usize * n_bins + bin as usize].add(level.targets[row as usize]);
        }
    }
    let of_node = |(&total, bins): (&Sum, &mut [Sum])| {
        let stored = bins.iter().fold(Sum::default(), |all, &bin| all.and(bin));
        bins[column.bin_of_zero] = bins[column.bin_of_zero].and(total.less(stored));
        let mut best: Option<Split> = None;
        let mut left = Sum::default();
        for (bin, &own) in bins[..n_bins - 1].iter().enumerate() {
            left = left.and(own);
            let right = total.less(left);
            if left.n.min(right.n) < MIN_ROWS {
                continue;
            }
            let gain = left.square() + right.square() - total.square();
            if gain > best.map_or(ROUNDING * total.n, |best| best.gain) {
                best = Some(Split { gain, feature, bin });
            }
        }
        best
    };
    level.totals.iter().zip(sums.chunks_exact_mut(n_bins)).map(of_node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 400;
    const D: usize = 300;

    /// A sparse table of zeros and ones, and numbers in some features.
    fn table() -> Vec<f64> {
        let mut stream = Stream::new(5, 0);
        let mut value = |d: usize| match d % 3 {
            0 => f64::from(u8::from(stream.unit() < 0.1)),
            1 => stream.unit() - 0.5,
            _ => 1.0,
        };
        (0..N * D).map(|k| value(k % D)).collect()
    }

    fn found(y: &[f64], kind: TargetKind, n: usize, n_threads: usize) -> Vec<u32> {
        let x = table();
        let run = Run { n_threads, ..Run::default() };
        most_important_features(Rows::from_f64(&x, D).unwrap(), y, kind, n, 1, &run).unwrap()
    }

    #[test]
    fn features_that_matter_are_found() {
        let x = table();
        let at = |i: usize, d: usize| x[i * D + d];
        let both = |i: usize| f64::from(u8::from(at(i, 4) > 0.0 && at(i, 7) > 0.0));
        let y: Vec<f64> =
            (0..N).map(|i| 3.0 * at(i, 30) - 2.0 * at(i, 63) + at(i, 40).powi(2) + 2.0 * both(i)).collect();
        let numbers = found(&y, TargetKind::Regression, 20, 1);
        assert!([4, 7, 30, 63].iter().all(|d| numbers.contains(d)), "{numbers:?}");
        let codes: Vec<f64> =
            y.iter().map(|&y| f64::from(u8::from(y > 0.0)) + f64::from(u8::from(y > 2.0))).collect();
        let classes = found(&codes, TargetKind::Classification, 20, 1);
        assert!([4, 7, 30, 63].iter().all(|d| classes.contains(d)), "{classes:?}");
        assert_eq!(found(&codes, TargetKind::Classification, 20, 3), classes);
        assert!(classes.iter().all(|d| d % 3 != 2), "a constant feature: {classes:?}");
    }

    #[test]
    fn all_features_if_they_are_few() {
        let y = vec![1.0; N];
        assert_eq!(found(&y, TargetKind::Regression, D, 1), (0..D as u32).collect::<Vec<u32>>());
        assert_eq!(found(&y, TargetKind::Regression, 7, 1), (0..7).collect::<Vec<u32>>());
    }

    /// The sums of a node's bins give the squared error that a split removes.
    #[test]
    fn gains_are_those_of_the_squared_error() {
        let x = table();
        let columns = columns(Rows::from_f64(&x, D).unwrap());
        let y: Vec<f64> = (0..N).map(|i| x[i * D + 1] + x[i * D + 3]).collect();
        let booster = Booster { columns: &columns, residuals: vec![y.clone()], n_rows: N };
        let level = booster.root(&mut Stream::new(1, 0));
        for d in [1, 3] {
            let split = best_splits(d, &columns[d], &level, &mut Vec::new())[0].unwrap();
            let right = booster.goes_right(&level, &[Some(split)]);
            let error = |side: Option<bool>| {
                let own: Vec<f64> =
                    (0..N).filter(|&i| side.is_none_or(|side| right[i] == side)).map(|i| y[i]).collect();
                let mean = own.iter().sum::<f64>() / own.len() as f64;
                own.iter().map(|y| (y - mean).powi(2)).sum::<f64>()
            };
            let gain = error(None) - error(Some(false)) - error(Some(true));
            assert!((gain - split.gain).abs() < 1e-9, "{gain} and {}", split.gain);
            let greatest_left = (0..N).filter(|&i| !right[i]).map(|i| x[i * D + d]).fold(f64::MIN, f64::max);
            assert!((0..N).all(|i| right[i] == (x[i * D + d] > greatest_left)));
        }
    }
}
