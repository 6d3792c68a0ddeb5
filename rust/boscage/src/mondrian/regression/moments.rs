//! Statistics for regression: number, mean and sum of squares of the targets at each node.
//!
//! With weights, a row of weight `w` counts as `w` rows: numbers of rows are sums of weights, and means and sums of squares are
//! weighted.

use crate::data::{RowId, RowTargets, Weight, fetch};
use crate::error::Result;
use crate::mondrian::cells::statistics::CellStatistics;
use crate::mondrian::cells::summary::Words;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;

/// Mean and sum of squared deviations from it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mean: f64,
    /// Zero exactly if all targets are the same.
    pub(crate) squares: f64,
}

impl Moments {
    /// Of some targets, which are sorted first, so that their order does not matter.
    pub(crate) fn of(targets: &mut [f64]) -> Self {
        targets.sort_unstable_by(f64::total_cmp);
        let (first, last) = (targets[0], targets[targets.len() - 1]);
        if first == last {
            return Self { mean: first, squares: 0.0 };
        }
        let n = targets.len() as f64;
        let mean = targets.iter().map(|y| y / n).sum::<f64>();
        let squares = targets.iter().map(|y| (y - mean) * (y - mean)).sum::<f64>();
        Self { mean, squares: squares.max(f64::MIN_POSITIVE) }
    }

    /// Of some targets and their weights, which sum to `n`; they are sorted first, too.
    fn of_weighted(targets: &mut [(f64, f64)], n: f64) -> Self {
        targets.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (first, last) = (targets[0].0, targets[targets.len() - 1].0);
        if first == last {
            return Self { mean: first, squares: 0.0 };
        }
        let mean = targets.iter().map(|(y, weight)| weight / n * y).sum::<f64>();
        let squares = targets.iter().map(|(y, weight)| weight * (y - mean) * (y - mean)).sum::<f64>();
        Self { mean, squares: squares.max(f64::MIN_POSITIVE) }
    }

    /// Of two sets together, of so many rows.
    fn join(self, n: f64, other: Self, m: f64) -> Self {
        if self.mean == other.mean && self.squares == 0.0 && other.squares == 0.0 {
            return self;
        }
        let apart = other.mean - self.mean;
        let share = m / (n + m);
        let squares = self.squares + other.squares + apart * apart * n * share;
        Self { mean: self.mean + apart * share, squares: squares.max(f64::MIN_POSITIVE) }
    }
}

/// The moments at every node of one tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeMoments {
    moments: Vec<Moments>,
    /// By node the sum of weights, as far as there are such nodes; 0 if all rows have the weight 1.
    weights: Vec<f64>,
}

impl NodeMoments {
    pub(crate) fn moments(&self, node: NodeId) -> Moments {
        self.moments[node.index()]
    }

    /// The weight of a node that has so many rows.
    pub(crate) fn weight(&self, node: NodeId, n_rows: usize) -> f64 {
        let weight = self.weights.get(node.index()).copied().unwrap_or_default();
        if weight > 0.0 { weight } else { n_rows as f64 }
    }

    /// Whether some rows of a node have another weight than 1.
    pub(crate) fn is_weighted(&self, node: NodeId) -> bool {
        self.weights.get(node.index()).is_some_and(|&weight| weight > 0.0)
    }

    /// Sets the weight of a node; 0 if all rows have the weight 1.
    fn set_weight(&mut self, node: NodeId, weight: f64) {
        if self.weights.len() <= node.index() && weight > 0.0 {
            self.weights.resize(node.index() + 1, 0.0);
        }
        if let Some(own) = self.weights.get_mut(node.index()) {
            *own = weight;
        }
    }

    fn set_weighted_leaf(&mut self, leaf: NodeId, rows: &[RowId], targets: RowTargets<'_, f64>) {
        let (weight, moments) = moments_of(rows.iter().copied(), targets);
        self.set(leaf, moments);
        self.set_weight(leaf, weight);
    }

    fn set(&mut self, node: NodeId, moments: Moments) {
        if self.moments.len() <= node.index() {
            self.moments.resize(node.index() + 1, Moments::default());
        }
        self.moments[node.index()] = moments;
    }
}

/// Weight and moments of some rows.
fn moments_of(rows: impl Iterator<Item = RowId>, targets: RowTargets<'_, f64>) -> (f64, Moments) {
    let mut own: Vec<(f64, f64)> = rows.map(|row| (targets.of(row), targets.weight(row))).collect();
    let weight = own.iter().map(|&(_, weight)| Weight::of(weight)).sum::<Weight>().float();
    (weight, Moments::of_weighted(&mut own, weight))
}

/// Weight and mean of some rows.
pub(crate) fn weighted(rows: impl Iterator<Item = RowId>, targets: RowTargets<'_, f64>) -> (f64, f64) {
    let (weight, moments) = moments_of(rows, targets);
    (weight, moments.mean)
}

impl CellStatistics for NodeMoments {
    type Root = (Moments, f64);

    fn summarise(&self, node: NodeId, words: &mut Vec<u64>) {
        let Moments { mean, squares } = self.moments(node);
        let weight = self.weights.get(node.index()).copied().unwrap_or_default();
        words.extend([mean, squares, weight].map(f64::to_bits));
    }

    fn read(words: &mut Words<'_>) -> Result<Self::Root> {
        Ok((Moments { mean: words.number()?, squares: words.number()? }, words.number()?))
    }

    fn set_stub(&mut self, stub: NodeId, (moments, weight): Self::Root) {
        self.set(stub, moments);
        self.set_weight(stub, weight);
    }
}

impl Statistics for NodeMoments {
    type Target = f64;

    fn set_leaf(&mut self, leaf: NodeId, rows: &[RowId], targets: RowTargets<'_, f64>) {
        /// Few leaves have more rows.
        const FEW: usize = 16;
        if !targets.weigh_one(rows) {
            return self.set_weighted_leaf(leaf, rows, targets);
        }
        let target = |&row: &RowId| targets.of(row);
        let moments = match rows {
            [row] => Moments { mean: target(row), squares: 0.0 },
            _ if rows.len() <= FEW => {
                let mut few = [0.0; FEW];
                few.iter_mut().zip(rows).for_each(|(at, row)| *at = target(row));
                Moments::of(&mut few[..rows.len()])
            }
            _ => Moments::of(&mut rows.iter().map(target).collect::<Vec<f64>>()),
        };
        self.set(leaf, moments);
        self.set_weight(leaf, 0.0);
    }

    fn grow_leaf(
        &mut self,
        leaf: NodeId,
        _: usize,
        added: &[RowId],
        targets: RowTargets<'_, f64>,
    ) -> Option<bool> {
        let Moments { mean, squares } = self.moments(leaf);
        // Otherwise the mean has to be computed from all rows in sorted order, not in that of their
        // arrival.
        let same = squares == 0.0
            && !self.is_weighted(leaf)
            && targets.weigh_one(added)
            && added.iter().all(|&row| targets.of(row) == mean);
        // The parent's moments depend on the number of rows.
        same.then_some(true)
    }

    fn shrink_leaf(&mut self, leaf: NodeId, _: usize, _: &[RowId], _: RowTargets<'_, f64>) -> Option<bool> {
        (self.is_uniform(leaf) && !self.is_weighted(leaf)).then_some(true)
    }

    fn join(&mut self, split: NodeId, (left, n): (NodeId, usize), (right, m): (NodeId, usize)) -> bool {
        let weighs = self.is_weighted(left) || self.is_weighted(right);
        let (n, m) = (self.weight(left, n), self.weight(right, m));
        self.set(split, self.moments(left).join(n, self.moments(right), m));
        self.set_weight(split, if weighs { n + m } else { 0.0 });
        true
    }

    fn is_uniform(&self, node: NodeId) -> bool {
        self.moments(node).squares == 0.0
    }

    fn clear(&mut self, _: NodeId) {}

    fn reset(&mut self) {
        self.moments.clear();
        self.weights.clear();
    }

    fn fetch_all(&self) {
        fetch(&self.moments);
    }

    fn bytes(&self) -> usize {
        self.moments.capacity() * size_of::<Moments>() + self.weights.capacity() * size_of::<f64>()
    }
}
