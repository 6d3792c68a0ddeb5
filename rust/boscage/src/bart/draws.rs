//! Draws of sums of trees, stored compactly, and predictions from them.

use crate::bart::state::tree::{NodeKind, TreeState};
use crate::control::{Run, map};
use crate::data::sorted::columns::SortedColumns;
use crate::data::splits::SideRule;
use crate::data::{Rows, value_goes_right};
use crate::error::Result;

/// The feature of a leaf.
pub(crate) const LEAF: u32 = u32::MAX;

/// The bit of [`DrawnNode::split`] that is set where missing values go right.
const MISSING_RIGHT: u32 = 1 << 31;

/// The bit of [`DrawnNode::split`] that is set where the feature has categories.
const CATEGORICAL: u32 = 1 << 30;

/// Features of splits are below this.
pub(crate) const MAX_FEATURE: u32 = 1 << 30;

/// A node. Nodes are in preorder, so a left child follows its parent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DrawnNode {
    /// The feature of the cut, whether it has categories, and the side of missing values; or [`LEAF`].
    split: u32,
    /// Offset of the right child from this node.
    pub(crate) right: u32,
    /// The threshold of a cut, the number of the right side of categories, or the value of a leaf.
    pub(crate) value: f64,
}

impl DrawnNode {
    pub(crate) fn leaf(value: f64) -> Self {
        Self { split: LEAF, right: 0, value }
    }

    /// A cut, whose right child is not known yet. Features are below [`MAX_FEATURE`].
    pub(crate) fn inner(rule: SideRule) -> Self {
        let missing = if rule.missing_right { MISSING_RIGHT } else { 0 };
        let categorical = if rule.is_categorical { CATEGORICAL } else { 0 };
        Self { split: rule.feature | missing | categorical, right: 0, value: rule.threshold }
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.split == LEAF
    }

    /// All of a node but the value of a leaf.
    pub(crate) fn split(&self) -> (u32, u64) {
        (self.split, if self.is_leaf() { 0 } else { self.value.to_bits() })
    }

    /// The feature of a cut.
    pub(crate) fn feature(&self) -> u32 {
        self.split & !(MISSING_RIGHT | CATEGORICAL)
    }

    /// Whether the feature of a cut has categories.
    fn is_categorical(&self) -> bool {
        self.split & CATEGORICAL != 0
    }

    /// The cut.
    pub(crate) fn rule(&self) -> SideRule {
        SideRule {
            feature: self.feature(),
            threshold: self.value,
            missing_right: self.missing_right(),
            is_categorical: self.is_categorical(),
        }
    }

    /// Whether missing values go to the right of a cut.
    pub(crate) fn missing_right(&self) -> bool {
        self.split & MISSING_RIGHT != 0
    }
}

/// The trees of several draws, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Draws {
    pub(crate) nodes: Vec<DrawnNode>,
    /// Index of the root of each tree; the trees of the first draw come first.
    pub(crate) starts: Vec<usize>,
}

impl Draws {
    /// Appends a tree; its values are multiplied by `scale`.
    pub(crate) fn push(&mut self, tree: &TreeState, scale: f64, table: &SortedColumns) {
        self.starts.push(self.nodes.len());
        let mut stack = vec![(TreeState::ROOT, None)];
        while let Some((id, parent)) = stack.pop() {
            let at = self.nodes.len();
            if let Some(parent) = parent {
                let parent: usize = parent;
                self.nodes[parent].right = (at - parent) as u32;
            }
            let node = tree.get(id);
            match node.kind {
                NodeKind::Inner(rule, [left, right]) => {
                    stack.extend([(right, Some(at)), (left, None)]);
                    let n_rows = [left, right].map(|child| tree.get(child).n_rows);
                    let rule = table.side_rule(rule.cut.feature, rule.threshold, n_rows);
                    self.nodes.push(DrawnNode::inner(rule));
                }
                NodeKind::Free | NodeKind::Leaf => {
                    self.nodes.push(DrawnNode::leaf(scale * node.mu));
                }
            }
        }
    }

    /// Appends the draws of another chain.
    pub(crate) fn append(&mut self, other: &Self) {
        let shift = self.nodes.len();
        self.nodes.extend(&other.nodes);
        self.starts.extend(other.starts.iter().map(|start| start + shift));
    }

    /// The draws of one of `n_chains` chains, which all have the same number of draws.
    pub(crate) fn of_chain(&self, chain: usize, n_chains: usize) -> Self {
        let n_trees = self.starts.len() / n_chains;
        let starts = &self.starts[chain * n_trees..(chain + 1) * n_trees];
        let end = self.starts.get((chain + 1) * n_trees).copied().unwrap_or(self.nodes.len());
        let nodes = self.nodes[starts[0]..end].to_vec();
        Self { nodes, starts: starts.iter().map(|start| start - starts[0]).collect() }
    }

    /// The nodes of tree `i`.
    pub(crate) fn tree(&self, i: usize) -> &[DrawnNode] {
        let end = self.starts.get(i + 1).copied().unwrap_or(self.nodes.len());
        &self.nodes[self.starts[i]..end]
    }

    /// Adds the values of the `n_trees` trees of a draw to `sums`, which has one sum for each row of a block.
    fn add(&self, draw: usize, n_trees: usize, block: &ColumnBlock, sums: &mut [f64], columns: &mut Columns) {
        for i in draw * n_trees..(draw + 1) * n_trees {
            let nodes = self.tree(i);
            if nodes.len() <= Columns::MAX_NODES {
                columns.add(nodes, block, sums);
            } else {
                for (row, sum) in sums.iter_mut().enumerate() {
                    *sum += value(nodes, |feature| block.column(feature)[row]);
                }
            }
        }
    }

    /// The features along which trees split.
    fn used_features(&self, n_features: usize) -> UsedFeatures {
        let mut places = vec![None; n_features];
        for node in self.nodes.iter().filter(|node| !node.is_leaf()) {
            places[node.feature() as usize] = Some(0);
        }
        let mut n_used = 0;
        for place in places.iter_mut().flatten() {
            *place = n_used;
            n_used += 1;
        }
        UsedFeatures { places, n_used }
    }

    /// The results of `f` for all blocks of rows, in order. The arguments of `f` are a function that adds the
    /// trees of a draw to the sums of the block's rows, and the number of these rows.
    pub(crate) fn over_rows<R: Send>(
        &self,
        n_trees: usize,
        rows: Rows<'_>,
        run: &Run<'_>,
        f: impl Fn(&mut dyn FnMut(usize, &mut [f64]), usize) -> R + Sync,
    ) -> Result<Vec<R>> {
        run.control.expect(rows.n_rows() as u64);
        let features = self.used_features(rows.n_features());
        let blocks = map(run.n_threads, rows.n_rows().div_ceil(ColumnBlock::ROWS), |i| {
            run.control.check()?;
            let block = ColumnBlock::new(rows, i * ColumnBlock::ROWS, &features);
            let mut columns = Columns::default();
            let out = f(&mut |draw, sums| self.add(draw, n_trees, &block, sums, &mut columns), block.n_rows);
            run.control.advance(block.n_rows as u64);
            Ok(out)
        });
        blocks.into_iter().collect()
    }
}

/// The value of the leaf that contains a row (eq. 4.1).
fn value(nodes: &[DrawnNode], x: impl Fn(u32) -> f64) -> f64 {
    let mut at = 0;
    loop {
        let node = &nodes[at];
        if node.is_leaf() {
            return node.value;
        }
        let right = node.rule().sends_right(x(node.feature()));
        at += if right { node.right as usize } else { 1 };
    }
}

/// Computes the values of a small tree at all rows of a block at once, from the leaves up and without
/// branches.
#[derive(Debug, Default)]
struct Columns {
    /// Stack of subtrees whose parents are still to come; subtrees further left are nearer to the top.
    waiting: Vec<Subtree>,
    spare: Vec<Vec<f64>>,
}

#[derive(Debug)]
enum Subtree {
    Leaf(f64),
    Inner(Vec<f64>),
}

impl Columns {
    /// Larger trees are predicted faster by descending row by row.
    const MAX_NODES: usize = 31;

    fn add(&mut self, nodes: &[DrawnNode], block: &ColumnBlock, sums: &mut [f64]) {
        let (root, others) = nodes.split_first().expect("a tree has a root");
        // In reverse preorder both subtrees come before their parent, the left one last.
        for node in others.iter().rev() {
            if node.is_leaf() {
                self.waiting.push(Subtree::Leaf(node.value));
                continue;
            }
            let mut values = self.spare.pop().unwrap_or_default();
            values.resize(sums.len(), 0.0);
            self.join(node, block, &mut values, |to, value| *to = value);
            self.waiting.push(Subtree::Inner(values));
        }
        if root.is_leaf() {
            for sum in sums {
                *sum += root.value;
            }
        } else {
            self.join(root, block, sums, |to, value| *to += value);
        }
    }

    /// Calls `put` for each row with the value of the subtree on the row's side of the cut.
    fn join(&mut self, node: &DrawnNode, block: &ColumnBlock, out: &mut [f64], put: impl Fn(&mut f64, f64)) {
        let (rule, threshold) = (node.rule(), node.value);
        let column = block.column(rule.feature);
        // Chosen here, so that the loops over rows do not decide it for each row.
        if rule.is_categorical {
            self.join_sides(column, |x| !rule.sends_right(x), out, put);
        } else if rule.missing_right {
            self.join_sides(column, move |x| !value_goes_right(x, threshold, true), out, put);
        } else {
            self.join_sides(column, move |x| !value_goes_right(x, threshold, false), out, put);
        }
    }

    fn join_sides(
        &mut self,
        column: &[f64],
        is_left: impl Fn(f64) -> bool,
        out: &mut [f64],
        put: impl Fn(&mut f64, f64),
    ) {
        let (left, right) = (self.pop(), self.pop());
        let rows = out.iter_mut().zip(column.iter().map(|&x| is_left(x)));
        match (&left, &right) {
            (Subtree::Leaf(a), Subtree::Leaf(b)) => {
                rows.for_each(|(to, left)| put(to, either(left, *a, *b)));
            }
            (Subtree::Inner(a), Subtree::Leaf(b)) => {
                rows.zip(a).for_each(|((to, left), &a)| put(to, either(left, a, *b)));
            }
            (Subtree::Leaf(a), Subtree::Inner(b)) => {
                rows.zip(b).for_each(|((to, left), &b)| put(to, either(left, *a, b)));
            }
            (Subtree::Inner(a), Subtree::Inner(b)) => {
                rows.zip(a.iter().zip(b)).for_each(|((to, left), (&a, &b))| put(to, either(left, a, b)));
            }
        }
        self.free(left);
        self.free(right);
    }

    fn pop(&mut self) -> Subtree {
        self.waiting.pop().expect("a parent comes after its subtrees")
    }

    fn free(&mut self, subtree: Subtree) {
        if let Subtree::Inner(values) = subtree {
            self.spare.push(values);
        }
    }
}

/// Selects one of two numbers without a branch, so that the compiler can vectorise the loop over rows.
#[inline]
fn either(first: bool, a: f64, b: f64) -> f64 {
    let mask = u64::from(first).wrapping_neg();
    f64::from_bits(a.to_bits() & mask | b.to_bits() & !mask)
}

/// The features along which some trees split.
struct UsedFeatures {
    /// By feature, its place among them.
    places: Vec<Option<usize>>,
    n_used: usize,
}

/// A block of rows, stored by column, without the features that no tree needs.
struct ColumnBlock<'f> {
    n_rows: usize,
    features: &'f UsedFeatures,
    values: Vec<f64>,
}

impl<'f> ColumnBlock<'f> {
    /// Rows in a block; few enough that all its columns stay in the cache.
    const ROWS: usize = 256;

    fn new(rows: Rows<'_>, start: usize, features: &'f UsedFeatures) -> Self {
        let n_rows = Self::ROWS.min(rows.n_rows() - start);
        let mut values = vec![0.0; features.n_used * n_rows];
        for row in 0..n_rows {
            for (feature, value) in rows.nonzero(start + row) {
                if let Some(place) = features.places[feature] {
                    values[place * n_rows + row] = value;
                }
            }
        }
        Self { n_rows, features, values }
    }

    fn column(&self, feature: u32) -> &[f64] {
        let place = self.features.places[feature as usize].expect("a tree splits along the feature");
        &self.values[place * self.n_rows..(place + 1) * self.n_rows]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::categories::RightSide;
    use crate::random::keyed::Stream;

    /// A tree with this many cuts, in preorder.
    fn random_tree(n_cuts: usize, stream: &mut Stream) -> Vec<DrawnNode> {
        if n_cuts == 0 {
            return vec![DrawnNode::leaf(stream.unit())];
        }
        let on_left = stream.below(n_cuts);
        let left = random_tree(on_left, stream);
        let right = random_tree(n_cuts - 1 - on_left, stream);
        let [threshold, missing_right] = [stream.unit(), stream.unit()];
        let mut rule = SideRule {
            feature: stream.below(4) as u32,
            threshold,
            missing_right: missing_right < 0.5,
            is_categorical: false,
        };
        if rule.feature == 3 {
            let right = RightSide::of_rule(stream.below(7) as u32, 4);
            rule = SideRule { threshold: right.number(), is_categorical: true, ..rule };
        }
        let root = DrawnNode::inner(rule);
        let root = DrawnNode { right: left.len() as u32 + 1, ..root };
        std::iter::once(root).chain(left).chain(right).collect()
    }

    #[test]
    fn predicting_all_rows_equals_predicting_each() {
        let mut stream = Stream::new(1, 0);
        let mut value_at = |k: usize| match (stream.unit() < 0.2, k % 4) {
            (true, _) => f64::NAN,
            (false, 3) => stream.below(4) as f64,
            (false, _) => stream.unit(),
        };
        let x: Vec<f64> = (0..4 * 100).map(&mut value_at).collect();
        let rows = Rows::from_f64_with_missing(&x, 4).unwrap();
        let mut columns = Columns::default();
        for n_cuts in (0..16).chain([4; 20]) {
            let tree = random_tree(n_cuts, &mut stream);
            let features = Draws { nodes: tree.clone(), starts: vec![0] }.used_features(4);
            let block = ColumnBlock::new(rows, 0, &features);
            let mut sums = vec![1.0; 100];
            columns.add(&tree, &block, &mut sums);
            for (row, sum) in sums.iter().enumerate() {
                assert_eq!(*sum, 1.0 + value(&tree, |d| x[row * 4 + d as usize]));
            }
            assert!(columns.waiting.is_empty());
        }
    }
}
