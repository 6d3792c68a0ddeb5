//! Regression trees with best splits. Their cuts show along which features, and at which values, the targets
//! change.
//!
//! Each tree uses all rows, and a random subset of the features at every node (Breiman 2001, without the
//! bootstrap). Its cuts therefore are where they reduce the squared error most.

use crate::data::goes_right;
use crate::mondrian::feature_rates::binned_axis::Axis;
use crate::mondrian::feature_rates::constant_features::ConstantFeatures;
use crate::mondrian::feature_rates::uncommon::{Places, Uncommon};
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
    /// By feature, where most rows share a rank.
    uncommon: Vec<Option<Uncommon<u32>>>,
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
        let ranks: Vec<Vec<u32>> = axes.iter().map(|axis| ranks(&axis.values[..n])).collect();
        let uncommon = ranks.iter().map(|ranks| Uncommon::of(ranks)).collect();
        Self { axes, targets, ranks, uncommon, n_tries }
    }

    /// Returns the cuts of the nodes of one tree.
    pub(crate) fn tree(&self, mut stream: Stream) -> Vec<SplitChoice> {
        let mut choices = Vec::new();
        let mut rows: Vec<u32> = (0..self.targets.len() as u32).collect();
        let mut features: Vec<usize> = (0..self.axes.len()).collect();
        let mut places = Places::of(&rows, rows.len());
        let mut own = Vec::new();
        let mut stack = vec![(0, rows.len(), ConstantFeatures::none(self.axes.len()))];
        while let Some((start, end, mut constant)) = stack.pop() {
            let node = &rows[start..end];
            if node.len() < MIN_SAMPLES_SPLIT {
                continue;
            }
            let all = self.sums(node);
            let mut best: Option<BestSplit> = None;
            for tried in 0..self.n_tries {
                draw_next(&mut features, tried, &mut stream);
                let feature = features[tried];
                if constant.contains(feature) {
                    continue;
                }
                let uncommon = self.uncommon[feature].as_ref().filter(|of| of.rows.len() < node.len());
                let split = if let Some(uncommon) = uncommon {
                    own.clear();
                    own.extend(places.within(&uncommon.rows, start, end));
                    if own.is_empty() {
                        constant.insert(feature);
                        continue;
                    }
                    self.best_split_of_few(feature, (&own, uncommon.common), (node, &all))
                } else {
                    if self.is_constant(node, feature) {
                        constant.insert(feature);
                        continue;
                    }
                    self.best_split(node, feature)
                };
                if split.as_ref().is_some_and(|s| best.as_ref().is_none_or(|b| s.gain > b.gain + s.least)) {
                    best = split;
                }
            }
            let Some(split) = best else { continue };
            if node.len() >= MIN_RECORDED {
                choices.push(self.choice(node, &split, &constant));
            }
            let ranks = &self.ranks[split.feature];
            let is_right = |row: u32| goes_right(ranks[row as usize], split.rank);
            let middle = places.part(&mut rows, (start, end), is_right);
            stack.push((start, middle, constant.clone()));
            stack.push((middle, end, constant));
        }
        choices
    }

    fn is_constant(&self, node: &[u32], feature: usize) -> bool {
        let rank = |&row: &u32| self.ranks[feature][row as usize];
        node.iter().all(|row| rank(row) == rank(&node[0]))
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

    /// The number of rows, and the sums of their targets and of the squares of these.
    fn sums(&self, rows: &[u32]) -> [f64; 3] {
        rows.iter().fold([0.0; 3], |[n, sum, squares], &row| {
            let y = self.targets[row as usize];
            [n + 1.0, sum + y, squares + y * y]
        })
    }

    /// The same as [`best_split`](Self::best_split), given the rows of a node whose rank is not the common one, in order of
    /// rank, and the sums of all its rows.
    fn best_split_of_few(
        &self,
        feature: usize,
        (own, common): (&[u32], u32),
        (node, &[n, total, squares]): (&[u32], &[f64; 3]),
    ) -> Option<BestSplit> {
        let rank = |row: u32| self.ranks[feature][row as usize];
        let of_own = self.sums(own);
        let of_common = [n - of_own[0], total - of_own[1]];
        let below = own.partition_point(|&row| rank(row) < common);
        // Ranks, each with a row that has it, the number of its rows and the sum of their targets, in order.
        let group = |rows: &[u32]| {
            let [n, sum, _] = self.sums(rows);
            (rank(rows[0]), rows[0], [n, sum])
        };
        let same = |a: &u32, b: &u32| rank(*a) == rank(*b);
        let mut groups: Vec<(u32, u32, [f64; 2])> = own[..below].chunk_by(same).map(group).collect();
        if of_common[0] > 0.0 {
            let row = node.iter().copied().find(|&row| rank(row) == common)?;
            groups.push((common, row, of_common));
        }
        groups.extend(own[below..].chunk_by(same).map(group));
        let least = 1e-12 * squares;
        let mut best: Option<(f64, usize)> = None;
        let (mut left, mut sum) = (0.0, 0.0);
        for (i, (_, _, [own, own_sum])) in groups[..groups.len() - 1].iter().enumerate() {
            (left, sum) = (left + own, sum + own_sum);
            let rest = total - sum;
            let gain = sum * sum / left + rest * rest / (n - left) - total * total / n;
            if gain > best.map_or(0.0, |(most, _)| most) + least {
                best = Some((gain, i));
            }
        }
        best.map(|(gain, i)| {
            let value = |group: usize| self.axes[feature].values[groups[group].1 as usize];
            let threshold = 0.5 * value(i) + 0.5 * value(i + 1);
            BestSplit { gain, least, feature, rank: groups[i].0, threshold }
        })
    }

    fn choice(&self, node: &[u32], split: &BestSplit, constant: &ConstantFeatures) -> SplitChoice {
        let range = |(feature, axis): (usize, &Axis)| {
            let rows = if constant.contains(feature) { &node[..1] } else { node };
            rows.iter().map(|&row| axis.values[row as usize]).fold(
                (f64::INFINITY, f64::NEG_INFINITY),
                |(low, high), value| {
                    (if value < low { value } else { low }, if value > high { value } else { high })
                },
            )
        };
        let (low, high) = self.axes.iter().enumerate().map(range).unzip();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Few rows with uncommon values tell the best split as all rows do.
    #[test]
    fn uncommon_values_tell_the_best_split() {
        const N: usize = 200;
        let mut stream = Stream::new(4, 0);
        for seed in 0..50 {
            let value = |stream: &mut Stream| {
                if stream.unit() < 0.1 { (6.0 * stream.unit()).floor() - 2.0 } else { 0.0 }
            };
            let values: Vec<f64> = (0..N).map(|_| value(&mut stream)).collect();
            let y: Vec<f64> = values.iter().map(|x| x.abs() + stream.unit()).collect();
            let axes = [Axis::new(values, -2.0, 4.0)];
            let grower = BestSplitGrower::new(&axes, &y);
            let Some(uncommon) = &grower.uncommon[0] else { continue };
            let mut rows: Vec<u32> = (0..N as u32).collect();
            crate::random::shuffle::shuffle_first(&mut rows, N, &mut Stream::new(seed, 1));
            let places = Places::of(&rows, N);
            let node = &rows[20..150];
            let own: Vec<u32> = places.within(&uncommon.rows, 20, 150).collect();
            let few =
                grower.best_split_of_few(0, (&own, uncommon.common), (node, &grower.sums(node))).unwrap();
            let all = grower.best_split(node, 0).unwrap();
            assert_eq!((few.rank, few.threshold), (all.rank, all.threshold));
            assert!((few.gain - all.gain).abs() < 1e-9 * all.gain);
        }
    }
}
