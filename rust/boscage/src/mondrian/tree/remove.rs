//! Removing rows from a tree: it becomes, bit for bit, the tree that never held them.

use crate::data::{RowId, Scalar};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeLink};
use crate::mondrian::tree::boxes::box_moves::Moved;
use crate::mondrian::tree::process::Process;
use crate::mondrian::tree::scratch::{Changed, Scratch, Task, Touched};
use crate::mondrian::tree::statistics::Statistics;

impl<S: Scalar, P: Statistics> Tree<S, P> {
    /// Removes rows that the tree holds: the tree becomes, bit for bit, that of the others (the restriction of
    /// eq. 5.1, read backwards).
    pub(crate) fn remove(
        &mut self,
        rows: &mut [RowId],
        process: &Process<'_, S, P::Target>,
        scratch: &mut Scratch<'_>,
    ) {
        self.take_rows(rows, process, scratch);
        self.boxes.start();
        self.boxes.fetch(&self.arena, scratch.touched());
        let touched = &mut scratch.touched;
        for i in (0..touched.len()).rev() {
            let this = touched[i];
            let changed = if this.node.is_leaf() {
                self.refresh_shrunk_leaf(&this, rows, process)
            } else {
                self.refresh_shrunk_split(&this, rows, process)
            };
            if let Some(parent) = touched.get_mut(this.parent as usize) {
                parent.below.include(changed);
            }
        }
        self.arena.compact();
    }

    /// Takes rows out of their leaves and out of the counts of the splits above; these nodes are touched.
    fn take_rows(
        &mut self,
        rows: &mut [RowId],
        process: &Process<'_, S, P::Target>,
        scratch: &mut Scratch<'_>,
    ) {
        scratch.start(Task::all(self.arena.root(), rows.len()));
        while let Some(wave) = scratch.next_wave(&self.arena) {
            for task in &wave {
                let node = task.node.expect("the tree holds the rows");
                let parent = scratch.touch(Touched::met(node, task));
                if node.is_leaf() {
                    for &row in &rows[task.range()] {
                        self.arena.take_row(node, row);
                    }
                } else {
                    self.arena.count_out(node, task.range().len());
                    scratch.part(&self.arena, node, task, parent, rows, &process.table);
                }
            }
            scratch.reuse(wave);
        }
    }

    /// Updates a split that lost rows, after its children.
    fn refresh_shrunk_split(
        &mut self,
        this: &Touched,
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) -> Changed {
        let &Touched { link, node, below, .. } = this;
        let child = |right| self.arena.get(NodeLink::Child { of: node, right });
        match (child(false), child(true)) {
            (None, None) => {
                self.drop_node(link, node);
                return Changed::ALL;
            }
            // The child holds the same rows as the split: what pauses one pauses the other.
            (None, Some(_)) | (Some(_), None) => {
                self.boxes.clear(node);
                self.arena.skip_split(link, node);
                return Changed::ALL;
            }
            (Some(_), Some(_)) => {}
        }
        let statistics = below.statistics && self.join(node);
        let held = || {
            let mut rows = Vec::new();
            self.arena.collect_rows(node, &mut rows);
            rows.into_iter()
        };
        if process.are_few(self.arena.n_rows(node), held) || statistics && self.statistics.is_uniform(node) {
            self.collapse(link, node, process);
            return Changed::ALL;
        }
        let removed = this.rows(rows);
        let boxes = self.boxes.shrink(&self.arena, node, below.boxes, removed, process.table);
        Changed { statistics, boxes }
    }

    fn refresh_shrunk_leaf(
        &mut self,
        this: &Touched,
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) -> Changed {
        let (leaf, removed) = (this.node, this.rows(rows));
        let n_rows = self.arena.n_rows(leaf);
        if n_rows == 0 {
            self.drop_node(this.link, leaf);
            return Changed::ALL;
        }
        let statistics = self.statistics.shrink_leaf(leaf, n_rows, removed, process.targets);
        if statistics.is_none() {
            self.set_leaf(leaf, process.targets);
        }
        if !self.arena.is_paused(leaf) {
            let rows: Vec<RowId> = self.arena.leaf_rows(leaf).collect();
            if process.pauses(&rows) || process.coincide(&rows) {
                self.arena.pause(leaf);
            }
        }
        let boxes = self.boxes.shrink(&self.arena, leaf, Moved::Anything, removed, process.table);
        Changed { statistics: statistics.unwrap_or(true), boxes }
    }

    /// Makes a subtree one paused leaf.
    fn collapse(&mut self, link: NodeLink, node: NodeId, process: &Process<'_, S, P::Target>) {
        let mut rows = Vec::with_capacity(self.arena.n_rows(node));
        self.arena.collect_rows(node, &mut rows);
        let Self { arena, statistics, boxes } = self;
        arena.remove_subtree(node, |freed| {
            statistics.clear(freed);
            boxes.clear(freed);
        });
        let leaf = self.arena.add_leaf(None, rows.iter().copied());
        self.arena.set(link, Some(leaf));
        self.statistics.set_leaf(leaf, &rows, process.targets);
        self.boxes.set(&self.arena, leaf, process.table);
    }
}
