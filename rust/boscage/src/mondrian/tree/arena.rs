//! The arena: a binary tree of cuts in flat arrays, with the rows of every leaf. It knows no posterior.
//!
//! A *split* separates rows. A cut that leaves all rows of its cell on one side (a *skipped cut*) is not a node but an entry
//! of the *run* above the next split or leaf: it is where a new row may branch off.

use crate::data::{RowId, fetch, goes_right};
use crate::mondrian::process::cut::{Cut, SkippedCut};
use crate::mondrian::tree::row_lists::{RowList, RowLists};
use crate::mondrian::tree::skipped_cuts::{SkippedCuts, SkippedRun};

/// A split or leaf of a tree: even numbers are splits, odd ones leaves. Numbers are dense, so that data of
/// nodes can lie in arrays by [`NodeId::index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

const NONE: u32 = u32::MAX;

impl NodeId {
    const NONE: Self = Self(NONE);

    pub(crate) fn split(at: usize) -> Self {
        Self((at as u32) << 1)
    }

    fn leaf(at: usize) -> Self {
        Self((at as u32) << 1 | 1)
    }

    /// The position in arrays over all nodes.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// The position in arrays over splits alone, or over leaves alone.
    pub(crate) fn rank(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(crate) fn is_leaf(self) -> bool {
        self.0 & 1 == 1
    }

    pub(super) fn some(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// The place of a subtree: the root, or one side of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeLink {
    Root,
    Child { of: NodeId, right: bool },
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// Separates its rows.
    Split(NodeId, NodeId),
    Leaf,
}

/// A split, 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SplitNode {
    threshold: f64,
    time: f64,
    coordinate: u32,
    children: [NodeId; 2],
    n_rows: u32,
    /// The skipped cuts right above.
    run: SkippedRun,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct LeafNode {
    rows: RowList,
    n_rows: u32,
    /// None for a paused leaf: its cell's cuts are not drawn.
    run: Option<SkippedRun>,
}

/// A tree's structure.
#[derive(Debug, Clone)]
pub(crate) struct Arena {
    root: NodeId,
    splits: Vec<SplitNode>,
    leaves: Vec<LeafNode>,
    free_splits: Vec<NodeId>,
    free_leaves: Vec<NodeId>,
    pub(super) skips: SkippedCuts,
    /// Rows of leaves.
    pub(super) lists: RowLists,
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self {
            root: NodeId::NONE,
            splits: Vec::new(),
            leaves: Vec::new(),
            free_splits: Vec::new(),
            free_leaves: Vec::new(),
            skips: SkippedCuts::default(),
            lists: RowLists::default(),
        }
    }

    /// Forgets all nodes and rows. Memory is kept for others.
    pub(crate) fn reset(&mut self) {
        self.root = NodeId::NONE;
        self.splits.clear();
        self.leaves.clear();
        self.free_splits.clear();
        self.free_leaves.clear();
        self.skips.reset();
        self.lists.reset();
    }

    /// One past the largest [`NodeId::index`].
    pub(crate) fn n_indices(&self) -> usize {
        2 * self.splits.len().max(self.leaves.len())
    }

    /// Number of splits and leaves.
    pub(crate) fn n_nodes(&self) -> usize {
        self.splits.len() + self.leaves.len() - self.free_splits.len() - self.free_leaves.len()
    }

    pub(crate) fn root(&self) -> Option<NodeId> {
        self.root.some()
    }

    pub(crate) fn get(&self, link: NodeLink) -> Option<NodeId> {
        match link {
            NodeLink::Root => self.root.some(),
            NodeLink::Child { of, right } => self.child(of, right).some(),
        }
    }

    pub(crate) fn set(&mut self, link: NodeLink, to: Option<NodeId>) {
        let to = to.unwrap_or(NodeId::NONE);
        match link {
            NodeLink::Root => self.root = to,
            NodeLink::Child { of, right } => self.splits[of.rank()].children[usize::from(right)] = to,
        }
    }

    /// A split's child on one side.
    pub(crate) fn child(&self, split: NodeId, right: bool) -> NodeId {
        self.splits[split.rank()].children[usize::from(right)]
    }

    pub(crate) fn kind(&self, node: NodeId) -> NodeKind {
        if node.is_leaf() {
            return NodeKind::Leaf;
        }
        let [left, right] = self.splits[node.rank()].children;
        NodeKind::Split(left, right)
    }

    /// Whether a node is a leaf that the stopping rule pauses.
    pub(crate) fn is_paused(&self, node: NodeId) -> bool {
        node.is_leaf() && self.leaves[node.rank()].run.is_none()
    }

    /// Pauses a leaf.
    pub(crate) fn pause(&mut self, leaf: NodeId) {
        if let Some(run) = self.leaves[leaf.rank()].run.take() {
            self.skips.free(run);
        }
    }

    /// Number of rows under a node.
    pub(crate) fn n_rows(&self, node: NodeId) -> usize {
        let n =
            if node.is_leaf() { self.leaves[node.rank()].n_rows } else { self.splits[node.rank()].n_rows };
        n as usize
    }

    /// Sets a split's number of rows from its children's.
    pub(crate) fn count_rows(&mut self, split: NodeId) {
        let [left, right] = self.splits[split.rank()].children;
        self.splits[split.rank()].n_rows = (self.n_rows(left) + self.n_rows(right)) as u32;
    }

    /// Counts rows that came to a split.
    pub(crate) fn count_in(&mut self, split: NodeId, n: usize) {
        self.splits[split.rank()].n_rows += n as u32;
    }

    /// Counts rows that left a split.
    pub(crate) fn count_out(&mut self, split: NodeId, n: usize) {
        self.splits[split.rank()].n_rows -= n as u32;
    }

    /// A split's time; infinity for a leaf, whose time is the lifetime, which the arena does not know.
    pub(crate) fn time(&self, node: NodeId) -> f64 {
        if node.is_leaf() { f64::INFINITY } else { self.splits[node.rank()].time }
    }

    /// The times of splits by [`NodeId::rank`]; free places hold arbitrary times.
    pub(crate) fn times(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.splits.iter().map(|split| split.time)
    }

    /// A split's cut.
    pub(crate) fn cut(&self, split: NodeId) -> Cut {
        let SplitNode { time, coordinate, threshold, .. } = self.splits[split.rank()];
        Cut { time, coordinate, threshold }
    }

    /// The side that a test row goes to, and the child there.
    pub(crate) fn follow(&self, split: NodeId, x: impl Fn(u32) -> f64) -> (bool, NodeId) {
        let SplitNode { coordinate, threshold, children, .. } = &self.splits[split.rank()];
        let right = goes_right(x(*coordinate), *threshold);
        (right, children[usize::from(right)])
    }

    /// The skipped cuts right above a node, from the top. A paused leaf has none.
    pub(crate) fn skips(&self, node: NodeId) -> &[SkippedCut] {
        self.skips.of(self.run(node))
    }

    pub(super) fn run(&self, node: NodeId) -> SkippedRun {
        if node.is_leaf() {
            self.leaves[node.rank()].run.unwrap_or_default()
        } else {
            self.splits[node.rank()].run
        }
    }

    pub(super) fn set_run(&mut self, node: NodeId, run: SkippedRun) {
        if node.is_leaf() {
            self.leaves[node.rank()].run = Some(run);
        } else {
            self.splits[node.rank()].run = run;
        }
    }

    /// Reads the first fields that insertions and removals need of some nodes, so that the processor
    /// fetches them from memory at the same time instead of one after the other.
    pub(crate) fn fetch(&self, nodes: impl Iterator<Item = NodeId> + Clone) {
        let records = nodes.clone().fold(0, |seen, node| {
            // Both ends: a record may lie on two cache lines.
            let first = if node.is_leaf() {
                self.leaves[node.rank()].rows.first()
            } else {
                self.splits[node.rank()].coordinate ^ self.splits[node.rank()].threshold.to_bits() as u32
            };
            seen ^ self.run(node).start ^ first
        });
        let skips = nodes.fold(0, |seen, node| match self.skips(node) {
            [] => seen,
            [skip] => seen ^ skip.coordinate,
            [first, .., last] => seen ^ first.coordinate ^ last.coordinate,
        });
        std::hint::black_box(records ^ skips);
    }

    /// Reads all of the tree into the cache.
    pub(crate) fn fetch_all(&self) {
        fetch(&self.splits);
        fetch(&self.leaves);
        self.skips.fetch_all();
        self.lists.fetch_all();
    }

    /// Makes the `k`-th skipped cut above a node a split. The node becomes its child on the cut's side; the
    /// other child is still to be set.
    pub(crate) fn split_run(&mut self, link: NodeLink, node: NodeId, k: usize) -> NodeId {
        let (above, skip, below) = self.skips.part(self.run(node), k);
        let split = self.add_split(skip.cut(), above, 0);
        self.set_run(node, below);
        self.set(NodeLink::Child { of: split, right: skip.right }, Some(node));
        self.set(link, Some(split));
        split
    }

    /// Takes out a split that has one child left: its cut is skipped from now on.
    pub(crate) fn skip_split(&mut self, link: NodeLink, split: NodeId) {
        let [left, right] = self.splits[split.rank()].children;
        let (child, side) = if left == NodeId::NONE { (right, true) } else { (left, false) };
        if !self.is_paused(child) {
            let skip = SkippedCut::of(self.cut(split), side);
            let run = self.skips.join(self.run(split), skip, self.run(child));
            self.set_run(child, run);
            self.splits[split.rank()].run = SkippedRun::default();
        }
        self.set(link, Some(child));
        self.remove(split);
    }

    /// Compacts the pool of skipped cuts once most of it is unused.
    pub(crate) fn compact(&mut self) {
        if !self.skips.is_sparse() {
            return;
        }
        let mut pool = SkippedCuts::with_room_of(&self.skips);
        for node in self.preorder() {
            if self.is_paused(node) {
                continue;
            }
            let run = pool.append(self.skips(node));
            self.set_run(node, run);
        }
        self.skips = pool;
    }

    pub(super) fn add_split(
        &mut self,
        Cut { time, coordinate, threshold }: Cut,
        run: SkippedRun,
        n_rows: usize,
    ) -> NodeId {
        let split = SplitNode {
            threshold,
            time,
            coordinate,
            children: [NodeId::NONE; 2],
            n_rows: n_rows as u32,
            run,
        };
        if let Some(at) = self.free_splits.pop() {
            self.splits[at.rank()] = split;
            return at;
        }
        self.splits.push(split);
        NodeId::split(self.splits.len() - 1)
    }

    /// A leaf of some rows; it is paused if it has no run.
    pub(super) fn add_leaf(
        &mut self,
        run: Option<SkippedRun>,
        rows: impl ExactSizeIterator<Item = RowId>,
    ) -> NodeId {
        let leaf = LeafNode { rows: RowList::EMPTY, n_rows: 0, run };
        let id = if let Some(at) = self.free_leaves.pop() {
            self.leaves[at.rank()] = leaf;
            at
        } else {
            self.leaves.push(leaf);
            NodeId::leaf(self.leaves.len() - 1)
        };
        self.extend_leaf(id, rows);
        id
    }

    /// A leaf that stands for a subtree whose rows are elsewhere.
    pub(super) fn add_stub(&mut self, run: Option<SkippedRun>, n_rows: usize) -> NodeId {
        let stub = self.add_leaf(run, std::iter::empty());
        self.leaves[stub.rank()].n_rows = n_rows as u32;
        stub
    }

    /// Puts rows into a leaf.
    pub(crate) fn extend_leaf(&mut self, leaf: NodeId, rows: impl ExactSizeIterator<Item = RowId>) {
        let leaf = &mut self.leaves[leaf.rank()];
        leaf.n_rows += rows.len() as u32;
        rows.for_each(|row| self.lists.add(&mut leaf.rows, row));
    }

    /// Takes one row out of the leaf that holds it; the leaf may be left empty.
    pub(crate) fn take_row(&mut self, leaf: NodeId, row: RowId) {
        let leaf = &mut self.leaves[leaf.rank()];
        leaf.n_rows -= 1;
        self.lists.take(&mut leaf.rows, row);
    }

    /// One row of a leaf.
    pub(crate) fn any_row(&self, leaf: NodeId) -> RowId {
        self.leaves[leaf.rank()].rows.first()
    }

    /// Rows of a leaf, in arbitrary order.
    pub(crate) fn leaf_rows(&self, leaf: NodeId) -> impl Iterator<Item = RowId> + '_ {
        self.lists.rows(self.leaves[leaf.rank()].rows)
    }

    /// Makes room for rows numbered below `n`.
    pub(crate) fn reserve_rows(&mut self, n: usize) {
        self.lists.reserve(n);
    }

    /// Frees one node.
    pub(crate) fn remove(&mut self, node: NodeId) {
        self.skips.free(self.run(node));
        if node.is_leaf() {
            self.leaves[node.rank()].run = None;
            self.free_leaves.push(node);
        } else {
            self.splits[node.rank()].run = SkippedRun::default();
            self.free_splits.push(node);
        }
    }

    /// Appends the rows under a node to a list. Nodes are visited depth by depth, so that their memory is
    /// fetched at the same time.
    pub(crate) fn collect_rows(&self, node: NodeId, rows: &mut Vec<RowId>) {
        // Most callers pass leaves.
        if node.is_leaf() {
            rows.extend(self.leaf_rows(node));
            return;
        }
        let mut nodes = Vec::with_capacity(2 * self.n_rows(node));
        nodes.push(node);
        let mut i = 0;
        while i < nodes.len() {
            match self.kind(nodes[i]) {
                NodeKind::Split(left, right) => nodes.extend([left, right]),
                NodeKind::Leaf => rows.extend(self.leaf_rows(nodes[i])),
            }
            i += 1;
        }
    }

    /// Frees every node under and including a node; the rows' links are left as they are, so that the rows must come to other
    /// leaves.
    pub(crate) fn remove_subtree(&mut self, node: NodeId, mut removed: impl FnMut(NodeId)) {
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            if let NodeKind::Split(left, right) = self.kind(node) {
                stack.extend([left, right]);
            }
            removed(node);
            self.remove(node);
        }
    }

    /// Splits and leaves from the root down, parents first, left before right: the tree as users know it.
    pub(crate) fn preorder(&self) -> Vec<NodeId> {
        self.preorder_of(self.root())
    }

    /// The same of a subtree.
    pub(crate) fn preorder_of(&self, top: Option<NodeId>) -> Vec<NodeId> {
        let mut order = Vec::with_capacity(if top == self.root() { self.n_nodes() } else { 0 });
        let mut stack: Vec<NodeId> = top.into_iter().collect();
        while let Some(node) = stack.pop() {
            order.push(node);
            if let NodeKind::Split(left, right) = self.kind(node) {
                stack.extend([right, left]);
            }
        }
        order
    }

    /// The same nodes depth by depth, the two children of a split next to each other.
    pub(crate) fn breadth_first(&self) -> Vec<NodeId> {
        let mut order = Vec::with_capacity(self.n_nodes());
        order.extend(self.root());
        let mut i = 0;
        while i < order.len() {
            if let NodeKind::Split(left, right) = self.kind(order[i]) {
                order.extend([left, right]);
            }
            i += 1;
        }
        order
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.splits.capacity() * size_of::<SplitNode>()
            + self.leaves.capacity() * size_of::<LeafNode>()
            + self.skips.bytes()
            + self.lists.bytes()
            + (self.free_splits.capacity() + self.free_leaves.capacity()) * size_of::<NodeId>()
    }
}
