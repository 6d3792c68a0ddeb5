//! Passes over one tree: sums of rows' weights up to the root, and means from the root down to the rows.

use crate::data::Scalar;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;

/// One tree; nodes by their index in its arena.
pub(super) struct Passes {
    n_indices: usize,
    root: usize,
    /// Every other node and its parent, parents first.
    links: Vec<(u32, u32)>,
    /// Split times by node; a leaf's is the lifetime.
    times: Vec<f64>,
    /// Every leaf, and where its rows end.
    leaves: Vec<(u32, u32)>,
    /// Places of rows in the common order, leaf after leaf.
    rows: Vec<u32>,
}

impl Passes {
    pub(super) fn new<S: Scalar, P: Statistics>(tree: &Tree<S, P>, places: &[u32], lifetime: f64) -> Self {
        let arena = &tree.arena;
        let n_indices = arena.n_indices();
        let mut this = Self {
            n_indices,
            root: arena.root().map_or(0, NodeId::index),
            links: Vec::new(),
            times: vec![lifetime; n_indices],
            leaves: Vec::new(),
            rows: Vec::new(),
        };
        for node in arena.preorder() {
            if node.is_leaf() {
                let start = this.rows.len();
                this.rows.extend(arena.leaf_rows(node).map(|row| places[row as usize]));
                this.rows[start..].sort_unstable();
                this.leaves.push((node.index() as u32, this.rows.len() as u32));
                continue;
            }
            this.times[node.index()] = arena.time(node);
            for right in [false, true] {
                this.links.push((arena.child(node, right).index() as u32, node.index() as u32));
            }
        }
        this
    }

    /// Prior variance that is spent between a node's parent and the node.
    pub(super) fn spans(&self, clock: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut spans: Vec<f64> = self.times.iter().map(|&time| clock(time)).collect();
        for &(node, parent) in self.links.iter().rev() {
            spans[node as usize] -= spans[parent as usize];
        }
        spans
    }

    /// Sums of the rows' weights by node.
    pub(super) fn sums<const L: usize>(&self, weights: &[[f64; L]]) -> Vec<[f64; L]> {
        let mut sums = vec![[0.0; L]; self.n_indices];
        let mut start = 0;
        for &(leaf, end) in &self.leaves {
            for &row in &self.rows[start..end as usize] {
                add(&mut sums[leaf as usize], &weights[row as usize], 1.0);
            }
            start = end as usize;
        }
        for &(node, parent) in self.links.iter().rev() {
            let own = sums[node as usize];
            add(&mut sums[parent as usize], &own, 1.0);
        }
        sums
    }

    /// The means at every node, given the rows' weights: the sum over the nodes above it, and itself, of their spans and
    /// sums. `merged` splits are leaves.
    pub(super) fn means<const L: usize>(
        &self,
        spans: &[f64],
        weights: &[[f64; L]],
        merged: &[MergedNode],
    ) -> Vec<[f64; L]> {
        let mut means = self.sums(weights);
        let of_merged: Vec<f64> = merged.iter().map(|merged| means[merged.node][merged.lane]).collect();
        means[self.root] = means[self.root].map(|sum| sum * spans[self.root]);
        for &(node, parent) in &self.links {
            let mut mean = means[parent as usize];
            add(&mut mean, &means[node as usize], spans[node as usize]);
            means[node as usize] = mean;
        }
        for (MergedNode { lane, node, parent, span, below }, sum) in merged.iter().zip(of_merged) {
            let mean = parent.map_or(0.0, |parent| means[parent][*lane]) + span * sum;
            means[*node][*lane] = mean;
            for &node in below {
                means[node as usize][*lane] = mean;
            }
        }
        means
    }

    /// Adds the tree's product with weights to `product`.
    pub(super) fn add_product<const L: usize>(
        &self,
        spans: &[f64],
        weights: &[[f64; L]],
        merged: &[MergedNode],
        product: &mut [[f64; L]],
    ) {
        self.add_leaves(&self.means(spans, weights, merged), product);
    }

    /// Adds to `product` what each row shares with paths.
    pub(super) fn add_paths<const L: usize>(&self, shares: &[PathShare], product: &mut [[f64; L]]) {
        let mut sums = vec![[0.0; L]; self.n_indices];
        for &PathShare { lane, node, share } in shares {
            sums[node][lane] += share;
        }
        for &(node, parent) in &self.links {
            let above = sums[parent as usize];
            add(&mut sums[node as usize], &above, 1.0);
        }
        self.add_leaves(&sums, product);
    }

    /// Adds to each row's values those of its leaf.
    fn add_leaves<const L: usize>(&self, of_nodes: &[[f64; L]], product: &mut [[f64; L]]) {
        let mut start = 0;
        for &(leaf, end) in &self.leaves {
            for &row in &self.rows[start..end as usize] {
                add(&mut product[row as usize], &of_nodes[leaf as usize], 1.0);
            }
            start = end as usize;
        }
    }
}

/// A split that is a leaf in one of several problems, because it lacks the row that is left out.
#[derive(Debug, Clone)]
pub(crate) struct MergedNode {
    pub(crate) lane: usize,
    pub(crate) node: usize,
    pub(crate) parent: Option<usize>,
    /// What the clock spends between the parent and the end.
    pub(crate) span: f64,
    /// The nodes below it.
    pub(crate) below: Vec<u32>,
}

/// What a row of one of several problems shares with the rows of a node, below the node's parent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathShare {
    pub(crate) lane: usize,
    pub(crate) node: usize,
    pub(crate) share: f64,
}

pub(super) fn add<const L: usize>(sum: &mut [f64; L], other: &[f64; L], factor: f64) {
    for lane in 0..L {
        sum[lane] += factor * other[lane];
    }
}
