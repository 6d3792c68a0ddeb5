//! Passes over one tree: sums of rows' weights up to the root, and means from the root down to the rows.

use std::ops::{AddAssign, Mul};

use crate::data::Scalar;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::statistics::Statistics;

/// One tree. Its nodes are numbered depth by depth, from the last to the root, so that the children of the k-th split are the
/// numbers 2k and 2k + 1: both are read together, and a pass seldom waits for a number that it has just written.
#[derive(Debug, Clone)]
pub(crate) struct Passes {
    /// By index in the arena.
    numbers: Vec<u32>,
    /// The numbers of the splits.
    splits: Vec<u32>,
    /// Split times by number; a leaf's is the lifetime.
    times: Vec<f64>,
    /// Every leaf's number, and where its rows end.
    leaves: Vec<(u32, u32)>,
    /// Places of rows in the common order, leaf after leaf.
    rows: Vec<u32>,
}

impl Passes {
    pub(crate) fn new<S: Scalar, P: Statistics>(tree: &Tree<S, P>, places: &[u32], lifetime: f64) -> Self {
        let arena = &tree.arena;
        let order = arena.breadth_first();
        let mut this = Self {
            numbers: vec![0; arena.n_indices()],
            splits: Vec::with_capacity(order.len() / 2),
            times: vec![lifetime; order.len()],
            leaves: Vec::with_capacity(order.len() / 2 + 1),
            rows: Vec::new(),
        };
        for (number, &node) in (0..).zip(order.iter().rev()) {
            this.numbers[node.index()] = number;
            if node.is_leaf() {
                let start = this.rows.len();
                this.rows.extend(arena.leaf_rows(node).map(|row| places[row as usize]));
                this.rows[start..].sort_unstable();
                this.leaves.push((number, this.rows.len() as u32));
            } else {
                this.times[number as usize] = arena.time(node);
                this.splits.push(number);
            }
        }
        this
    }

    pub(super) fn n_nodes(&self) -> usize {
        self.times.len()
    }

    /// Whether a row, given by its place, has a leaf alone, by place.
    pub(super) fn are_alone(&self) -> Vec<bool> {
        let mut alone = vec![false; self.rows.len()];
        let mut start = 0;
        for &(_, end) in &self.leaves {
            if end - start == 1 {
                alone[self.rows[start as usize] as usize] = true;
            }
            start = end;
        }
        alone
    }

    /// The leaves of several rows by rank, in ascending order. (Free places may be among them.)
    pub(crate) fn leaves_of_several(&self) -> Vec<u32> {
        let mut several = vec![false; self.times.len()];
        let mut start = 0;
        for &(leaf, end) in &self.leaves {
            several[leaf as usize] = end - start > 1;
            start = end;
        }
        let of_leaves = (0..).zip(self.numbers.iter().skip(1).step_by(2));
        of_leaves
            .filter(|&(_, &number)| several.get(number as usize) == Some(&true))
            .map(|(rank, _)| rank)
            .collect()
    }

    /// The number of a node, given by its index in the arena.
    pub(super) fn number(&self, node: usize) -> usize {
        self.numbers[node] as usize
    }

    /// Prior variance that is spent between a node's parent and the node, by number.
    pub(super) fn spans(&self, clock: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut spans: Vec<f64> = self.times.iter().map(|&time| clock(time)).collect();
        for (k, &split) in self.splits.iter().enumerate() {
            let above = spans[split as usize];
            spans[2 * k] -= above;
            spans[2 * k + 1] -= above;
        }
        spans
    }

    /// Sums of the rows' weights by node, as the arena numbers nodes.
    pub(crate) fn sums<const L: usize>(&self, weights: &[[f64; L]]) -> Vec<[f64; L]> {
        let mut sums = Vec::new();
        self.add_up(weights, &mut sums);
        self.by_index(&sums)
    }

    /// The means at every node, as the arena numbers nodes, given the rows' weights: the sum over the nodes above it, and
    /// itself, of their spans and sums.
    pub(super) fn means<const L: usize>(&self, spans: &[f64], weights: &[[f64; L]]) -> Vec<[f64; L]> {
        let mut means = Vec::new();
        self.add_up(weights, &mut means);
        self.go_down(spans, &mut means);
        self.by_index(&means)
    }

    /// Adds the tree's product with weights to `product`.
    pub(super) fn add_product<T: Number, const L: usize>(
        &self,
        spans: &[T],
        weights: &[[T; L]],
        product: &mut [[T; L]],
        buffer: &mut Vec<[T; L]>,
    ) {
        self.add_up(weights, buffer);
        self.go_down(spans, buffer);
        self.add_leaves(buffer, product);
    }

    /// Adds the product to `product` in which `merged` splits are leaves.
    pub(super) fn add_product_of_merged<const L: usize>(
        &self,
        spans: &[f64],
        weights: &[[f64; L]],
        merged: &[MergedNode],
        product: &mut [[f64; L]],
        buffer: &mut Vec<[f64; L]>,
    ) {
        self.add_up(weights, buffer);
        let sums: Vec<f64> = merged.iter().map(|own| buffer[self.number(own.node)][own.lane]).collect();
        self.go_down(spans, buffer);
        for (MergedNode { lane, node, parent, span, below }, sum) in merged.iter().zip(sums) {
            let mean = parent.map_or(0.0, |parent| buffer[self.number(parent)][*lane]) + span * sum;
            buffer[self.number(*node)][*lane] = mean;
            for &node in below {
                buffer[self.number(node as usize)][*lane] = mean;
            }
        }
        self.add_leaves(buffer, product);
    }

    /// Adds to `product` what each row shares with paths.
    pub(super) fn add_paths<const L: usize>(
        &self,
        shares: &[PathShare],
        product: &mut [[f64; L]],
        sums: &mut Vec<[f64; L]>,
    ) {
        sums.clear();
        sums.resize(self.times.len(), [0.0; L]);
        for &PathShare { lane, node, share } in shares {
            sums[self.number(node)][lane] += share;
        }
        for (k, &split) in self.splits.iter().enumerate().rev() {
            let above = sums[split as usize];
            for child in &mut sums[2 * k..2 * k + 2] {
                add_all(child, &above);
            }
        }
        self.add_leaves(sums, product);
    }

    /// By number, the share of a node's precision that counts for its parent; `precisions` are those of the rows.
    pub(super) fn shares(&self, spans: &[f64], precisions: &[[f64; 1]]) -> Vec<f64> {
        let mut shares = vec![0.0; self.times.len()];
        self.add_up_through(precisions, &mut Vec::new(), |node, [sum]| {
            shares[node] = 1.0 / (1.0 + spans[node] * sum);
            [shares[node] * sum]
        });
        shares
    }

    /// The posterior means of the tree's function at each row, given each row's precision times its value.
    pub(super) fn posterior_means<const L: usize>(
        &self,
        (spans, shares): (&[f64], &[f64]),
        values: &[[f64; L]],
    ) -> Vec<[f64; L]> {
        let mut means = Vec::new();
        self.add_up_through(values, &mut means, |node, sum| sum.map(|sum| shares[node] * sum));
        self.go_down_through(spans, &mut means, |node, above| above.map(|above| shares[node] * above));
        let mut of_rows = vec![[0.0; L]; values.len()];
        self.add_leaves(&means, &mut of_rows);
        of_rows
    }

    /// Sums of the rows' weights, by number.
    fn add_up<T: Number, const L: usize>(&self, weights: &[[T; L]], sums: &mut Vec<[T; L]>) {
        self.add_up_through(weights, sums, |_, sum| sum);
    }

    /// By number, what each node passes on to its parent: what `pass` makes of the sum of its rows' numbers, or of what its
    /// children pass on.
    fn add_up_through<T: Number, const L: usize>(
        &self,
        weights: &[[T; L]],
        sums: &mut Vec<[T; L]>,
        mut pass: impl FnMut(usize, [T; L]) -> [T; L],
    ) {
        // All are written below.
        sums.resize(self.times.len(), [T::default(); L]);
        let mut start = 0;
        for &(leaf, end) in &self.leaves {
            let mut sum = [T::default(); L];
            for &row in &self.rows[start..end as usize] {
                add_all(&mut sum, &weights[row as usize]);
            }
            sums[leaf as usize] = pass(leaf as usize, sum);
            start = end as usize;
        }
        for (k, &split) in self.splits.iter().enumerate() {
            let mut sum = sums[2 * k];
            add_all(&mut sum, &sums[2 * k + 1]);
            sums[split as usize] = pass(split as usize, sum);
        }
    }

    /// Turns sums into means, from the root down.
    fn go_down<T: Number, const L: usize>(&self, spans: &[T], means: &mut [[T; L]]) {
        self.go_down_through(spans, means, |_, above| above);
    }

    /// The same where a node takes over from its parent what `pass` makes of the parent's mean.
    fn go_down_through<T: Number, const L: usize>(
        &self,
        spans: &[T],
        means: &mut [[T; L]],
        pass: impl Fn(usize, [T; L]) -> [T; L],
    ) {
        if let (Some(root), Some(&span)) = (means.last_mut(), spans.last()) {
            *root = root.map(|sum| sum * span);
        }
        for (k, &split) in self.splits.iter().enumerate().rev() {
            let above = means[split as usize];
            for child in 2 * k..2 * k + 2 {
                let mut mean = pass(child, above);
                add(&mut mean, &means[child], spans[child]);
                means[child] = mean;
            }
        }
    }

    fn by_index<const L: usize>(&self, of_numbers: &[[f64; L]]) -> Vec<[f64; L]> {
        self.numbers
            .iter()
            .map(|&number| of_numbers.get(number as usize).copied().unwrap_or([0.0; L]))
            .collect()
    }

    /// Adds to each row's values those of its leaf.
    fn add_leaves<T: Number, const L: usize>(&self, of_nodes: &[[T; L]], product: &mut [[T; L]]) {
        let mut start = 0;
        for &(leaf, end) in &self.leaves {
            for &row in &self.rows[start..end as usize] {
                add_all(&mut product[row as usize], &of_nodes[leaf as usize]);
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

/// A number of single or double precision.
pub(super) trait Number:
    Copy + Default + Send + Sync + AddAssign + Mul<Output = Self> + Into<f64>
{
    /// The nearest number of this precision.
    fn nearest(number: f64) -> Self;
}

impl Number for f32 {
    fn nearest(number: f64) -> Self {
        number as f32
    }
}

impl Number for f64 {
    fn nearest(number: f64) -> Self {
        number
    }
}

/// Adds a multiple of some numbers.
pub(super) fn add<T: Number, const L: usize>(sum: &mut [T; L], other: &[T; L], factor: T) {
    for lane in 0..L {
        sum[lane] += factor * other[lane];
    }
}

fn add_all<T: Number, const L: usize>(sum: &mut [T; L], other: &[T; L]) {
    for lane in 0..L {
        sum[lane] += other[lane];
    }
}
