//! Statistics of leaves, for the kernels grow, prune and shift.

use crate::bart::leaves::normal::LeafLikelihoods;
use crate::bart::state::row_passes::{among, join_labels, only_if, part};
use crate::bart::state::tree::{NodeLabel, Transfer, TreeState};

/// Statistics of the leaves of one tree, by node, given the other trees.
pub(crate) trait LeafStatistics {
    /// Statistics of a set of rows.
    type Sum: Copy;

    /// The statistics of a leaf.
    fn sum(&self, id: NodeLabel) -> Self::Sum;

    /// The statistics of two leaves combined.
    fn join(a: Self::Sum, b: Self::Sum) -> Self::Sum;

    /// Logarithm of the marginal likelihood of `n` rows (eq. 4.9), up to a constant that all trees share.
    fn log_likelihood(&self, n: u32, sum: Self::Sum) -> f64;

    /// The number of a leaf's rows whose rank is not above `rank`, and the statistics of these and of the
    /// leaf's other rows.
    fn part(&self, tree: &TreeState, id: NodeLabel, ranks: &[u32], rank: u32) -> (u32, [Self::Sum; 2]);

    /// The number of `rows` that are in a leaf, and the statistics of these and of the leaf's other rows.
    fn among(&self, labels: &[NodeLabel], id: NodeLabel, rows: &[u32]) -> (u32, [Self::Sum; 2]);

    /// Moves those of `rows` that are in leaf `from` to leaf `to`. The new statistics of both are given.
    fn moved(
        &mut self,
        labels: &mut [NodeLabel],
        rows: &[u32],
        from: (NodeLabel, Self::Sum),
        to: (NodeLabel, Self::Sum),
    );

    /// The statistics of all nodes after some rows have moved to other leaves.
    fn after(&self, transfers: &[Transfer]) -> Vec<Self::Sum>;

    /// Sets the statistics of all nodes, after the labels of rows have changed.
    fn rerouted(&mut self, transfers: &[Transfer], sums: Vec<Self::Sum>);

    /// Sets the statistics of two new leaves, after the labels of their rows have changed.
    fn grown(&mut self, n_nodes: usize, id: NodeLabel, children: [(NodeLabel, Self::Sum); 2]);

    /// Combines two leaves in their parent, which becomes the label of their rows.
    fn pruned(&mut self, labels: &mut [NodeLabel], children: [NodeLabel; 2], parent: (NodeLabel, Self::Sum));
}

/// Normal leaves: sums of partial residuals (eq. 4.7), and by node the value that is still subtracted from
/// the residuals.
pub(crate) struct NormalLeaves<'a> {
    pub(crate) likelihoods: &'a LeafLikelihoods,
    pub(crate) residuals: &'a mut [f64],
    pub(crate) sums: &'a mut Vec<f64>,
    pub(crate) counted: &'a mut Vec<f64>,
}

impl LeafStatistics for NormalLeaves<'_> {
    type Sum = f64;

    fn sum(&self, id: NodeLabel) -> f64 {
        self.sums[id as usize]
    }

    fn join(a: f64, b: f64) -> f64 {
        a + b
    }

    fn log_likelihood(&self, n: u32, sum: f64) -> f64 {
        self.likelihoods.log(n, sum)
    }

    fn part(&self, tree: &TreeState, id: NodeLabel, ranks: &[u32], rank: u32) -> (u32, [f64; 2]) {
        let (n_left, left) = part(self.residuals, ranks, &tree.labels, id, rank);
        let left = left + f64::from(n_left) * self.counted[id as usize];
        (n_left, [left, self.sum(id) - left])
    }

    fn among(&self, labels: &[NodeLabel], id: NodeLabel, rows: &[u32]) -> (u32, [f64; 2]) {
        let (n, sum) = among(self.residuals, rows, labels, id);
        let sum = sum + f64::from(n) * self.counted[id as usize];
        (n, [sum, self.sum(id) - sum])
    }

    fn moved(
        &mut self,
        labels: &mut [NodeLabel],
        rows: &[u32],
        from: (NodeLabel, f64),
        to: (NodeLabel, f64),
    ) {
        let change = self.counted[from.0 as usize] - self.counted[to.0 as usize];
        for &row in rows {
            let at = &mut labels[row as usize];
            let inside = *at == from.0;
            *at = if inside { to.0 } else { *at };
            self.residuals[row as usize] += only_if(u64::from(inside), change);
        }
        (self.sums[from.0 as usize], self.sums[to.0 as usize]) = (from.1, to.1);
    }

    fn after(&self, transfers: &[Transfer]) -> Vec<f64> {
        let [mut left, mut came] = [0, 1].map(|_| vec![0.0; self.sums.len()]);
        for &Transfer { row, from, to } in transfers {
            let own = self.residuals[row as usize] + self.counted[from as usize];
            left[from as usize] += own;
            came[to as usize] += own;
        }
        self.sums.iter().zip(left.iter().zip(&came)).map(|(sum, (left, came))| sum - left + came).collect()
    }

    fn rerouted(&mut self, transfers: &[Transfer], sums: Vec<f64>) {
        for &Transfer { row, from, to } in transfers {
            self.residuals[row as usize] += self.counted[from as usize] - self.counted[to as usize];
        }
        *self.sums = sums;
    }

    fn grown(&mut self, n_nodes: usize, id: NodeLabel, children: [(NodeLabel, f64); 2]) {
        let value = self.counted[id as usize];
        self.sums.resize(n_nodes, 0.0);
        self.counted.resize(n_nodes, 0.0);
        for (child, sum) in children {
            (self.sums[child as usize], self.counted[child as usize]) = (sum, value);
        }
    }

    fn pruned(
        &mut self,
        labels: &mut [NodeLabel],
        children: [NodeLabel; 2],
        (parent, sum): (NodeLabel, f64),
    ) {
        let values = children.map(|id| (id, self.counted[id as usize]));
        join_labels(labels, self.residuals, values, parent);
        (self.sums[parent as usize], self.counted[parent as usize]) = (sum, 0.0);
    }
}
