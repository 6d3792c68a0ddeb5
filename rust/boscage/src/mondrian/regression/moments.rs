//! Statistics for regression: number, mean and sum of squares of the targets at each node.

use crate::data::{RowId, RowTargets, fetch};
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

    /// Of two sets together.
    fn join(self, n: usize, other: Self, m: usize) -> Self {
        if self.mean == other.mean && self.squares == 0.0 && other.squares == 0.0 {
            return self;
        }
        let (n, m) = (n as f64, m as f64);
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
}

impl NodeMoments {
    pub(crate) fn moments(&self, node: NodeId) -> Moments {
        self.moments[node.index()]
    }

    fn set(&mut self, node: NodeId, moments: Moments) {
        if self.moments.len() <= node.index() {
            self.moments.resize(node.index() + 1, Moments::default());
        }
        self.moments[node.index()] = moments;
    }
}

impl Statistics for NodeMoments {
    type Target = f64;

    fn set_leaf(&mut self, leaf: NodeId, rows: &[RowId], targets: RowTargets<'_, f64>) {
        /// Few leaves have more rows.
        const FEW: usize = 16;
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
        let same = squares == 0.0 && added.iter().all(|&row| targets.of(row) == mean);
        // The parent's moments depend on the number of rows.
        same.then_some(true)
    }

    fn shrink_leaf(&mut self, leaf: NodeId, _: usize, _: &[RowId], _: RowTargets<'_, f64>) -> Option<bool> {
        self.is_uniform(leaf).then_some(true)
    }

    fn join(&mut self, split: NodeId, (left, n): (NodeId, usize), (right, m): (NodeId, usize)) -> bool {
        self.set(split, self.moments(left).join(n, self.moments(right), m));
        true
    }

    fn is_uniform(&self, node: NodeId) -> bool {
        self.moments(node).squares == 0.0
    }

    fn clear(&mut self, _: NodeId) {}

    fn shrink_to_fit(&mut self) {
        self.moments.shrink_to_fit();
    }

    fn fetch_all(&self) {
        fetch(&self.moments);
    }

    fn bytes(&self) -> usize {
        self.moments.capacity() * size_of::<Moments>()
    }
}
