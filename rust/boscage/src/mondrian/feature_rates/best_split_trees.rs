//! Regression trees with best splits. Their cuts show along which features, and at which values, the targets
//! change.
//!
//! Each tree uses all rows, and a random subset of the features at every node (Breiman 2001, without the
//! bootstrap). Its cuts therefore are where they reduce the squared error most.

use crate::data::goes_right;
use crate::mondrian::feature_rates::binned_axis::Axis;
use crate::random::keyed::Stream;
use crate::random::shuffle::draw_next;

/// Nodes with fewer rows are not split.
const MIN_SAMPLES_SPLIT: usize = 10;
/// Nodes with fewer rows are not recorded: their gains are small, and mostly due to chance.
const MIN_RECORDED: usize = 20;

/// The recorded cut of a node.
#[derive(Debug, Clone)]
pub(crate) struct SplitChoice {
    pub(crate) feature: usize,
    /// The bin that contains the cut.
    pub(crate) bin: usize,
    /// The reduction of the squared error.
    pub(crate) gain: f64,
    /// The bounding box of the node's rows.
    pub(crate) low: Vec<f64>,
    pub(crate) high: Vec<f64>,
}

/// Grows trees on the rows of some axes.
pub(crate) struct BestSplitGrower<'a> {
    axes: &'a [Axis],
    /// Targets minus their mean, so that squares of sums lose little precision.
    targets: Vec<f64>,
    /// By feature and row: the number of distinct smaller values.
    ranks: Vec<Vec<u32>>,
    n_tries: usize,
}

/// The best cut of a node along one feature.
struct BestSplit {
    gain: f64,
    /// What rounding may add to a gain.
    least: f64,
    feature: usize,
    /// The greatest rank on the left.
    rank: u32,
    threshold: f64,
}

impl<'a> BestSplitGrower<'a> {
    /// Uses the first `targets.len()` rows of the axes.
    pub(crate) fn new(axes: &'a [Axis], targets: &[f64]) -> Self {
        let n = targets.len();
        let mean = targets.iter().map(|y| y / n as f64).sum::<f64>();
        let d = axes.len();
        let n_tries = if d <= 40 { (7 * d).div_ceil(10) } else { (3 * d).div_ceil(10) };
        let targets = targets.iter().map(|y| y - mean).collect();
        let ranks = axes.iter().map(|axis| ranks(&axis.values[..n])).collect();
        Self { axes, targets, ranks, n_tries }
    }

    /// Returns the cuts of the nodes of one tree.
    pub(crate) fn tree(&self, mut stream: Stream) -> Vec<SplitChoice> {
        let mut choices = Vec::new();
        let mut rows: Vec<u32> = (0..self.targets.len() as u32).collect();
        let mut features: Vec<usize> = (0..self.axes.len()).collect();
        let mut stack = vec![(0, rows.len())];
        while let Some((start, end)) = stack.pop() {
            let node = &mut rows[start..end];
            if node.len() < MIN_SAMPLES_SPLIT {
                continue;
            }
            let mut best: Option<BestSplit> = None;
            for tried in 0..self.n_tries {
                draw_next(&mut features, tried, &mut stream);
                let split = self.best_split(node, features[tried]);
                if split.as_ref().is_some_and(|s| best.as_ref().is_none_or(|b| s.gain > b.gain + s.least)) {
                    best = split;
                }
            }
            let Some(split) = best else { continue };
            if node.len() >= MIN_RECORDED {
                choices.push(self.choice(node, &split));
            }
            let ranks = &self.ranks[split.feature];
            let mut middle = 0;
            for i in 0..node.len() {
                if !goes_right(ranks[node[i] as usize], split.rank) {
                    node.swap(i, middle);
                    middle += 1;
                }
            }
            stack.extend([(start, start + middle), (start + middle, end)]);
        }
        choices
    }

    /// The cut of a feature that reduces the squared error most; None if no cut reduces it.
    fn best_split(&self, node: &[u32], feature: usize) -> Option<BestSplit> {
        let ranks = &self.ranks[feature];
        let mut keys: Vec<u64> =
            node.iter().map(|&row| u64::from(ranks[row as usize]) << 32 | u64::from(row)).collect();
        keys.sort_unstable();
        let target = |key: u64| self.targets[(key & u64::from(u32::MAX)) as usize];
        let n = keys.len() as f64;
        let total: f64 = keys.iter().map(|&key| target(key)).sum();
        let all = total * total / n;
        // A gain must exceed rounding errors. So must the difference of two gains: features that divide rows alike gain the same.
        let least = 1e-12 * keys.iter().map(|&key| target(key) * target(key)).sum::<f64>();
        let mut best: Option<(f64, usize)> = None;
        let mut sum = 0.0;
        for i in 0..keys.len() - 1 {
            sum += target(keys[i]);
            if keys[i] >> 32 == keys[i + 1] >> 32 {
                continue;
            }
            let left = (i + 1) as f64;
            let rest = total - sum;
            let gain = sum * sum / left + rest * rest / (n - left) - all;
            if gain > best.map_or(0.0, |(most, _)| most) + least {
                best = Some((gain, i));
            }
        }
        best.map(|(gain, i)| {
            let value = |key: u64| self.axes[feature].values[(key & u64::from(u32::MAX)) as usize];
            let threshold = 0.5 * value(keys[i]) + 0.5 * value(keys[i + 1]);
            BestSplit { gain, least, feature, rank: (keys[i] >> 32) as u32, threshold }
        })
    }

    fn choice(&self, node: &[u32], split: &BestSplit) -> SplitChoice {
        let range = |axis: &Axis| {
            node.iter().map(|&row| axis.values[row as usize]).fold(
                (f64::INFINITY, f64::NEG_INFINITY),
                |(low, high), value| {
                    (if value < low { value } else { low }, if value > high { value } else { high })
                },
            )
        };
        let (low, high) = self.axes.iter().map(range).unzip();
        let bin = match &self.axes[split.feature] {
            axis if axis.n_bins() > 0 => axis.bin(split.threshold).0,
            _ => 0,
        };
        SplitChoice { feature: split.feature, bin, gain: split.gain, low, high }
    }
}

fn ranks(values: &[f64]) -> Vec<u32> {
    let mut distinct = values.to_vec();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup();
    values.iter().map(|value| distinct.partition_point(|other| other < value) as u32).collect()
}
