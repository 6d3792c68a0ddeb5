//! One Mondrian tree: the restriction of the tree's keyed process to a set of rows.

pub(crate) mod arena;
pub(crate) mod insert;
pub(crate) mod node_boxes;
pub(crate) mod statistics;

use crate::control::Control;
use crate::data::RowId;
use crate::data::{Scalar, Table, goes_right};
use crate::error::Result;
use crate::mondrian::process::cut::Cut;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::tree::arena::{Arena, Link, NodeId};
use crate::mondrian::tree::insert::{Insertion, Scratch};
use crate::mondrian::tree::node_boxes::{Moved, NodeBoxes};
use crate::mondrian::tree::statistics::Statistics;
use crate::random::keyed::Key;

/// Everything that determines a tree besides its set of rows, and where those rows are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process<'a, S, T> {
    pub(crate) domain: &'a Domain,
    pub(crate) key: Key,
    pub(crate) lifetime: f64,
    pub(crate) min_samples_split: usize,
    pub(crate) table: Table<'a, S>,
    pub(crate) targets: &'a [T],
}

/// A tree's structure, its statistics and its boxes.
#[derive(Debug, Clone)]
pub(crate) struct Tree<S, P> {
    pub(crate) arena: Arena,
    pub(crate) statistics: P,
    pub(crate) boxes: NodeBoxes<S>,
}

/// A node that rows came to or left: a range of the rows at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    pub(crate) link: Link,
    pub(crate) node: NodeId,
    /// Its parent's place in the list.
    pub(crate) parent: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Made anew, so that nothing of it is known yet.
    fresh: bool,
    /// What has changed below.
    below: Changed,
}

/// What of a node is another than before, so that its parent must look.
#[derive(Debug, Clone, Copy, Default)]
struct Changed {
    statistics: bool,
    extent: Moved,
}

impl Changed {
    const ALL: Self = Self { statistics: true, extent: Moved::Anything };

    fn include(&mut self, other: Self) {
        self.statistics |= other.statistics;
        self.extent = self.extent.or(other.extent);
    }
}

impl Touched {
    pub(crate) const NO_PARENT: u32 = u32::MAX;

    /// A node made anew.
    pub(crate) fn fresh(link: Link, node: NodeId, parent: u32) -> Self {
        Self { link, node, parent, start: 0, end: 0, fresh: true, below: Changed::default() }
    }

    /// A node that is there already.
    pub(crate) fn met(node: NodeId, task: &Task) -> Self {
        let &Task { link, start, end, parent, .. } = task;
        Self { link, node, parent, start, end, fresh: false, below: Changed::default() }
    }

    fn rows<'a>(&self, rows: &'a [RowId]) -> &'a [RowId] {
        &rows[self.start as usize..self.end as usize]
    }
}

/// A range of the rows at hand, on its way down to a node, or to a link where there is none yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) link: Link,
    pub(crate) node: Option<NodeId>,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Place of the split above in the list of touched nodes.
    pub(crate) parent: u32,
}

impl Task {
    /// All rows, on their way to the root.
    pub(crate) fn all(root: Option<NodeId>, n: usize) -> Self {
        Self { link: Link::Root, node: root, start: 0, end: n as u32, parent: Touched::NO_PARENT }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl<S: Scalar, P: Statistics> Tree<S, P> {
    /// The tree of no rows.
    pub(crate) fn new(n_features: usize, splits_have_boxes: bool) -> Self {
        let boxes = NodeBoxes::new(n_features, splits_have_boxes);
        Self { arena: Arena::new(), statistics: P::default(), boxes }
    }

    /// Inserts rows (numbered in the table; their order is lost).
    ///
    /// # Errors
    /// Interrupted: the tree is then of no use.
    pub(crate) fn insert(
        &mut self,
        rows: &mut [RowId],
        process: &Process<'_, S, P::Target>,
        scratch: &mut Scratch<'_>,
        control: &Control,
    ) -> Result<()> {
        self.arena.reserve_rows(process.targets.len());
        Insertion { tree: self, process, scratch, control, names: None }.insert(rows)?;
        self.refresh_grown(&mut scratch.touched, rows, process);
        self.arena.compact();
        Ok(())
    }

    /// Removes rows that the tree holds: the tree becomes, bit for bit, that of the others.
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

    /// Builds the boxes anew, of splits too or of leaves alone.
    pub(crate) fn build_boxes(&mut self, n_features: usize, splits: bool, table: Table<'_, S>) {
        let mut boxes = NodeBoxes::new(n_features, splits);
        let order = self.arena.preorder();
        boxes.reserve(&self.arena, order.iter().copied());
        for &node in order.iter().rev() {
            boxes.set(&self.arena, node, table);
        }
        self.boxes = boxes;
    }

    /// Gives back room that growing left over.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.arena.shrink_to_fit();
        self.statistics.shrink_to_fit();
        self.boxes.shrink_to_fit();
    }

    /// Reads all of the tree, so that the points that go down find it in the cache.
    pub(crate) fn fetch_all(&self) {
        self.arena.fetch_all();
        self.statistics.fetch_all();
        self.boxes.fetch_all();
    }

    /// Rows held.
    pub(crate) fn n_rows(&self) -> usize {
        self.arena.root().map_or(0, |root| self.arena.n_rows(root))
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.bytes() + self.statistics.bytes() + self.boxes.bytes()
    }

    /// Brings statistics and boxes up to date, children before parents.
    fn refresh_grown(
        &mut self,
        touched: &mut [Touched],
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) {
        if touched.len() == self.arena.n_nodes() {
            // A tree made anew: room for all of its boxes at once.
            self.boxes.reserve(&self.arena, touched.iter().map(|touched| touched.node));
        }
        self.boxes.start();
        self.boxes.fetch(&self.arena, touched.iter().map(|touched| touched.node));
        for i in (0..touched.len()).rev() {
            let this = touched[i];
            let changed = match (this.node.is_leaf(), this.fresh) {
                (true, true) => {
                    self.boxes.set(&self.arena, this.node, process.table);
                    Changed::ALL
                }
                (true, false) => self.refresh_grown_leaf(&this, rows, process),
                (false, true) => {
                    self.arena.count_rows(this.node);
                    self.join(this.node);
                    self.boxes.set(&self.arena, this.node, process.table);
                    Changed::ALL
                }
                (false, false) => {
                    let (below, added) = (this.below, this.rows(rows));
                    let statistics = below.statistics && self.join(this.node);
                    let extent = self.boxes.grow(&self.arena, this.node, below.extent, added, process.table);
                    Changed { statistics, extent }
                }
            };
            if let Some(parent) = touched.get_mut(this.parent as usize) {
                parent.below.include(changed);
            }
        }
    }

    fn refresh_grown_leaf(
        &mut self,
        this: &Touched,
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) -> Changed {
        let (leaf, added) = (this.node, this.rows(rows));
        let n_rows = self.arena.n_rows(leaf);
        let statistics = self.statistics.grow_leaf(leaf, n_rows, added, process.targets);
        if statistics.is_none() {
            self.set_leaf(leaf, process.targets);
        }
        let extent = self.boxes.grow(&self.arena, leaf, Moved::Anything, added, process.table);
        Changed { statistics: statistics.unwrap_or(true), extent }
    }

    fn set_leaf(&mut self, leaf: NodeId, targets: &[P::Target]) {
        let rows: Vec<RowId> = self.arena.leaf_rows(leaf).collect();
        self.statistics.set_leaf(leaf, &rows, targets);
    }

    /// Sets a split's statistics from its children's; whether they are others than before.
    fn join(&mut self, split: NodeId) -> bool {
        let side = |right| {
            let child = self.arena.child(split, right);
            (child, self.arena.n_rows(child))
        };
        self.statistics.join(split, side(false), side(true))
    }

    /// Takes rows out of their leaves, and counts them out of the splits on the way; these nodes are touched.
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

    /// Brings a split whose rows became fewer up to date; its children are so already.
    fn refresh_shrunk_split(
        &mut self,
        this: &Touched,
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) -> Changed {
        let &Touched { link, node, below, .. } = this;
        let child = |right| self.arena.get(Link::Child { of: node, right });
        match (child(false), child(true)) {
            (None, None) => {
                self.drop_node(link, node);
                return Changed::ALL;
            }
            // Its child holds the same rows as it: what pauses one pauses the other.
            (None, Some(_)) | (Some(_), None) => {
                self.boxes.clear(node);
                self.arena.skip_split(link, node);
                return Changed::ALL;
            }
            (Some(_), Some(_)) => {}
        }
        let statistics = below.statistics && self.join(node);
        if self.arena.n_rows(node) < process.min_samples_split
            || statistics && self.statistics.is_uniform(node)
        {
            self.collapse(link, node, process);
            return Changed::ALL;
        }
        let removed = this.rows(rows);
        let extent = self.boxes.shrink(&self.arena, node, below.extent, removed, process.table);
        Changed { statistics, extent }
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
        let extent = self.boxes.shrink(&self.arena, leaf, Moved::Anything, removed, process.table);
        Changed { statistics: statistics.unwrap_or(true), extent }
    }

    /// Makes a subtree one paused leaf.
    fn collapse(&mut self, link: Link, node: NodeId, process: &Process<'_, S, P::Target>) {
        let mut rows = Vec::with_capacity(self.arena.n_rows(node));
        self.arena.collect_rows(node, &mut rows);
        let Self { arena, statistics, boxes, .. } = self;
        arena.remove_subtree(node, |freed| {
            statistics.clear(freed);
            boxes.clear(freed);
        });
        let leaf = self.arena.add_leaf(None, rows.iter().copied());
        self.arena.set(link, Some(leaf));
        self.statistics.set_leaf(leaf, &rows, process.targets);
        self.boxes.set(&self.arena, leaf, process.table);
    }

    /// Frees one node and clears its link.
    pub(crate) fn drop_node(&mut self, link: Link, node: NodeId) {
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

impl<S: Scalar, T: Copy + PartialEq> Process<'_, S, T> {
    /// Whether the stopping rule holds back a node of these rows, as far as labels and numbers say.
    pub(crate) fn pauses(&self, rows: &[RowId]) -> bool {
        let target = |row: RowId| self.targets[row as usize];
        rows.len() < self.min_samples_split || rows.iter().all(|&row| target(row) == target(rows[0]))
    }

    /// Whether all rows go to one side of a cut.
    pub(crate) fn all_go(&self, rows: &[RowId], cut: Cut, right: bool) -> bool {
        let column = self.table.column(cut.feature, rows.len());
        rows.iter().all(|&row| cut.goes_right(column.at(row)) == right)
    }

    /// Whether all rows are the same where a cut could see it.
    pub(crate) fn coincide(&self, rows: &[RowId]) -> bool {
        let first = self.table.row(rows[0]);
        rows[1..].iter().all(|&other| {
            first
                .iter()
                .zip(self.table.row(other))
                .zip(self.domain.rates())
                .all(|((a, b), &rate)| a == b || rate == 0.0)
        })
    }
}

/// Puts the rows that go left of a cut first, keeping their order; returns how many they are.
pub(crate) fn partition<S: Scalar>(
    rows: &mut [RowId],
    scratch: &mut [RowId],
    table: &Table<'_, S>,
    cut: Cut,
) -> usize {
    let column = table.column(cut.feature, rows.len());
    let threshold = S::not_above(cut.threshold);
    let goes_right = |row: RowId| goes_right(column.value(row), threshold);
    let Some(&first) = rows.first() else { return 0 };
    // Many cuts leave all rows on one side: then nothing moves.
    let right = goes_right(first);
    let Some(same) = rows[1..].iter().position(|&row| goes_right(row) != right) else {
        return if right { 0 } else { rows.len() };
    };
    let same = same + 1;
    let scratch = &mut scratch[..rows.len()];
    let (mut n_left, mut n_right) = if right { (0, same) } else { (same, 0) };
    scratch[..n_right].copy_from_slice(&rows[..n_right]);
    // Both places are written and one of them counted, so that nothing depends on a branch.
    for i in same..rows.len() {
        let row = rows[i];
        let right = goes_right(row);
        rows[n_left] = row;
        scratch[n_right] = row;
        n_left += usize::from(!right);
        n_right += usize::from(right);
    }
    rows[n_left..].copy_from_slice(&scratch[..n_right]);
    n_left
}
