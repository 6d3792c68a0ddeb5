//! One Mondrian tree: the restriction of the tree's keyed process to a set of rows.
//!
//! The thesis draws cuts in the data boxes of nodes (Algorithms 5.1, 5.2, 5.9, 6.1 and 6.2). Here they are drawn in the
//! cells of the process. A cut that separates the rows of its cell becomes a split. One that does not is a *skipped
//! cut*: it is stored, but is no node. Every cut is a function of the tree's key and of its cell, so the tree is a
//! function of the key and the *set* of rows.
//!
//! This also replaces Algorithms 5.5, 5.6, 5.10, 6.3 and 6.4. A new row goes down the tree until a skipped cut
//! separates it from the rows of a node, and turns that cut into a split. Removing rows turns every split with an empty
//! side back into a skipped cut.
//!
//! - `arena` holds the structure: splits, their times, skipped cuts, and the rows of leaves.
//! - `statistics` is what a posterior keeps at every node.
//! - `row_lists` are the rows of leaves, and `boxes` the data boxes that predictions need.
//! - `insert` and `remove` change the tree; `check` tests its invariants.
//! - `apart` draws subtrees of cells apart from each other, and joins them.

mod apart;
pub(crate) mod arena;
pub(crate) mod boxes;
mod check;
pub(crate) mod insert;
pub(crate) mod process;
mod remove;
mod row_lists;
pub(crate) mod scratch;
mod skipped_cuts;
pub(crate) mod statistics;

use crate::data::{RowId, RowTargets, Scalar, Table, Weight};
use crate::mondrian::tree::arena::{Arena, NodeId, NodeKind, NodeLink};
use crate::mondrian::tree::boxes::box_rule::BoxRule;
use crate::mondrian::tree::boxes::node_boxes::NodeBoxes;
use crate::mondrian::tree::statistics::Statistics;

/// A tree's structure, its statistics and its boxes, as Algorithm 5.2 and Algorithm 6.2 draw them.
#[derive(Debug, Clone)]
pub(crate) struct Tree<S, P> {
    pub(crate) arena: Arena,
    pub(crate) statistics: P,
    pub(crate) boxes: NodeBoxes<S>,
}

impl<S: Scalar, P: Statistics> Tree<S, P> {
    /// The tree of no rows.
    pub(crate) fn new(n_features: usize, rule: BoxRule) -> Self {
        let boxes = NodeBoxes::new(n_features, rule);
        Self { arena: Arena::new(), statistics: P::default(), boxes }
    }

    /// Builds all boxes by another rule.
    pub(crate) fn build_boxes(&mut self, n_features: usize, rule: BoxRule, table: Table<'_, S>) {
        let mut boxes = NodeBoxes::new(n_features, rule);
        let order = self.arena.preorder();
        boxes.reserve(&self.arena, order.iter().copied());
        for &node in order.iter().rev() {
            boxes.set(&self.arena, node, table);
        }
        self.boxes = boxes;
    }

    /// Makes it the tree of no rows. Memory is kept for the next rows.
    pub(crate) fn reset(&mut self) {
        self.arena.reset();
        self.statistics.reset();
        self.boxes.reset();
    }

    /// Reads all of the tree into the cache, before test rows go down it.
    pub(crate) fn fetch_all(&self) {
        self.arena.fetch_all();
        self.statistics.fetch_all();
        self.boxes.fetch_all();
    }

    /// Rows held.
    pub(crate) fn n_rows(&self) -> usize {
        self.arena.root().map_or(0, |root| self.arena.n_rows(root))
    }

    /// The weights of the rows under all nodes, by [`NodeId::index`].
    pub(crate) fn weights(&self, targets: RowTargets<'_, P::Target>) -> Vec<Weight> {
        let mut weights = vec![Weight::NONE; self.arena.n_indices()];
        for &node in self.arena.preorder().iter().rev() {
            weights[node.index()] = match self.arena.kind(node) {
                NodeKind::Split(left, right) => weights[left.index()] + weights[right.index()],
                NodeKind::Leaf => self.arena.leaf_rows(node).map(|row| Weight::of(targets.weight(row))).sum(),
            };
        }
        weights
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.bytes() + self.statistics.bytes() + self.boxes.bytes()
    }

    fn set_leaf(&mut self, leaf: NodeId, targets: RowTargets<'_, P::Target>) {
        let rows: Vec<RowId> = self.arena.leaf_rows(leaf).collect();
        self.statistics.set_leaf(leaf, &rows, targets);
    }

    /// Sets a split's statistics from its children's; returns whether they changed.
    fn join(&mut self, split: NodeId) -> bool {
        let side = |right| {
            let child = self.arena.child(split, right);
            (child, self.arena.n_rows(child))
        };
        self.statistics.join(split, side(false), side(true))
    }

    /// Frees one node and clears its link.
    pub(crate) fn drop_node(&mut self, link: NodeLink, node: NodeId) {
        self.arena.set(link, None);
        self.statistics.clear(node);
        self.boxes.clear(node);
        self.arena.remove(node);
    }
}

impl<P: Statistics> Tree<f32, P> {
    /// The same tree for rows of `f64`.
    pub(crate) fn widen(&self) -> Tree<f64, P> {
        let (arena, statistics) = (self.arena.clone(), self.statistics.clone());
        let boxes = self.boxes.widen();
        Tree { arena, statistics, boxes }
    }
}
