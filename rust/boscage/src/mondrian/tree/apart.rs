//! Subtrees of cells that are drawn apart, here or elsewhere, and the nodes above that join them.
//!
//! What lies below a cell depends on the cell and on its own rows (see `docs/keyed-mondrian.md`), so that subtrees can be
//! drawn by whoever holds these rows. A *stub* stands for a subtree that is elsewhere: a leaf with the number of rows, the
//! box and the statistics of the subtree's root, and no rows. A tree all of whose leaves are stubs has no rows at all.

use crate::data::{RowId, Scalar, Table};
use crate::mondrian::process::cut::{Cut, SkippedCut};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeLink};
use crate::mondrian::tree::boxes::box_moves::widen;
use crate::mondrian::tree::skipped_cuts::SkippedRun;
use crate::mondrian::tree::statistics::Statistics;

impl<S: Scalar, P: Statistics> Tree<S, P> {
    /// A stub, whose statistics are still to be set.
    pub(crate) fn add_stub(&mut self, n_rows: usize, is_paused: bool, low: &[S], high: &[S]) -> NodeId {
        let stub = self.arena.add_stub((!is_paused).then(SkippedRun::default), n_rows);
        self.boxes.give(&self.arena, stub, low, high);
        stub
    }

    /// A split below skipped cuts, whose children are still to be set.
    pub(crate) fn add_split_apart(&mut self, link: NodeLink, cut: Cut, skips: &[SkippedCut]) -> NodeId {
        let run = self.arena.skips.append(skips);
        let split = self.arena.add_split(cut, run, 0);
        self.arena.set(link, Some(split));
        split
    }

    /// A leaf below skipped cuts whose rows are not kept. Its statistics are still to be set.
    pub(crate) fn add_leaf_apart(&mut self, link: NodeLink, n_rows: usize, skips: &[SkippedCut]) -> NodeId {
        let run = self.arena.skips.append(skips);
        let leaf = self.arena.add_stub(Some(run), n_rows);
        self.arena.set(link, Some(leaf));
        leaf
    }

    /// The same of a paused leaf, with the box of its rows.
    pub(crate) fn add_paused_apart(
        &mut self,
        link: NodeLink,
        n_rows: usize,
        low: &[S],
        high: &[S],
    ) -> NodeId {
        let leaf = self.add_stub(n_rows, true, low, high);
        self.arena.set(link, Some(leaf));
        leaf
    }

    /// Counts the rows of a split, and joins the statistics of its children.
    pub(crate) fn complete_split(&mut self, split: NodeId) {
        self.arena.count_rows(split);
        self.join(split);
    }

    /// The split of two subtrees.
    pub(crate) fn split_apart(
        &mut self,
        cut: Cut,
        [left, right]: [NodeId; 2],
        table: Table<'_, S>,
    ) -> NodeId {
        let split = self.arena.add_split(cut, SkippedRun::default(), 0);
        self.arena.set(NodeLink::Child { of: split, right: false }, Some(left));
        self.arena.set(NodeLink::Child { of: split, right: true }, Some(right));
        self.complete_split(split);
        self.boxes.set(&self.arena, split, table);
        split
    }

    /// Puts a skipped cut above those of a subtree's root; a paused leaf has none.
    pub(crate) fn skip_apart(&mut self, skip: SkippedCut, root: NodeId) {
        if !self.arena.is_paused(root) {
            let above = self.arena.skips.start_run();
            let run = self.arena.skips.join(above, skip, self.arena.run(root));
            self.arena.set_run(root, run);
        }
    }

    /// The box of the rows below a node.
    pub(crate) fn box_below(&self, node: NodeId, table: Table<'_, S>) -> (Vec<S>, Vec<S>) {
        if let Some((low, high)) = self.boxes.find(node) {
            return (low.to_vec(), high.to_vec());
        }
        let mut rows: Vec<RowId> = Vec::new();
        self.arena.collect_rows(node, &mut rows);
        let (mut low, mut high) = (table.row(rows[0]).to_vec(), table.row(rows[0]).to_vec());
        for &row in &rows[1..] {
            widen(&mut low, &mut high, table.row(row), table.row(row));
        }
        (low, high)
    }
}
