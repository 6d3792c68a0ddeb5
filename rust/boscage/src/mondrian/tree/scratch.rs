//! Memory that insertions and removals need besides the tree, and their way down it.

use crate::data::{RowId, Scalar, Table};
use crate::mondrian::process::cell::Cell;
use crate::mondrian::process::cut::Cut;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::tree::arena::{Arena, NodeId, NodeLink};
use crate::mondrian::tree::boxes::box_moves::Moved;
use crate::mondrian::tree::process::partition;
use crate::random::keyed::Key;

/// Memory that insertions and removals need besides the tree, reused from one tree to the next.
#[derive(Debug)]
pub(crate) struct Scratch<'a> {
    /// The cell in which cuts are drawn.
    pub(super) cell: Cell<'a>,
    /// Cuts and sides from that cell up to the root.
    pub(super) path: Vec<(Cut, bool)>,
    /// Nodes that rows came to or left, parents first.
    pub(crate) touched: Vec<Touched>,
    /// Nodes of one depth, and of the next.
    wave: Vec<Task>,
    next: Vec<Task>,
    pub(super) sites: Vec<Site>,
    /// The sites' rows.
    pub(super) rows: Vec<RowId>,
    pub(super) blocks: Vec<Block>,
    pub(super) buffer: Vec<RowId>,
}

/// Rows that a new subtree at `link` is to hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    pub(super) link: NodeLink,
    pub(super) parent: u32,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Rows of a site that a new subtree at `link` is to hold; its cell is reached from the one below `depth` cuts
/// by going to `side` of that cell's cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) link: NodeLink,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) depth: usize,
    pub(super) side: Option<bool>,
    pub(super) parent: u32,
}

impl<'a> Scratch<'a> {
    /// For trees in the box of a level.
    pub(crate) fn new(domain: &'a Domain, level: u32) -> Self {
        Self {
            // Any key: the cell is placed anew for every site.
            cell: Cell::root(domain, level, Key::of_tree(0, 0)),
            path: Vec::new(),
            touched: Vec::new(),
            wave: Vec::new(),
            next: Vec::new(),
            sites: Vec::new(),
            rows: Vec::new(),
            blocks: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// The nodes that the last insertion created or brought rows to, parents first.
    pub(crate) fn touched(&self) -> impl Iterator<Item = NodeId> + Clone + '_ {
        self.touched.iter().map(|touched| touched.node)
    }

    /// Clears the list of touched nodes and begins with one task.
    pub(crate) fn start(&mut self, task: Task) {
        self.begin(task.range().len());
        self.next.clear();
        if !task.is_empty() {
            self.next.push(task);
        }
    }

    /// Clears the list of touched nodes, and makes room for so many rows.
    pub(super) fn begin(&mut self, n_rows: usize) {
        self.touched.clear();
        self.blocks.clear();
        self.make_room(n_rows);
    }

    /// The tasks of the next depth, if there are any.
    pub(crate) fn next_wave(&mut self, arena: &Arena) -> Option<Vec<Task>> {
        if self.next.is_empty() {
            return None;
        }
        let spare = std::mem::take(&mut self.wave);
        let wave = std::mem::replace(&mut self.next, spare);
        arena.fetch(wave.iter().filter_map(|task| task.node));
        Some(wave)
    }

    /// Takes back the memory of a wave that is done.
    pub(crate) fn reuse(&mut self, mut wave: Vec<Task>) {
        wave.clear();
        self.wave = wave;
    }

    /// Notes that rows came to a node or left it; returns its place in the list.
    pub(crate) fn touch(&mut self, touched: Touched) -> u32 {
        self.touched.push(touched);
        self.touched.len() as u32 - 1
    }

    /// Sends rows to the two sides of a split.
    pub(crate) fn part<S: Scalar>(
        &mut self,
        arena: &Arena,
        split: NodeId,
        task: &Task,
        parent: u32,
        rows: &mut [RowId],
        table: &Table<'_, S>,
    ) {
        let cut = arena.cut(split);
        let n_left = match &mut rows[task.range()] {
            // Most nodes are reached by one row.
            &mut [row] => usize::from(!cut.goes_right(table.column(cut.coordinate, 1).at(row))),
            here => partition(here, &mut self.buffer, table, cut),
        };
        let middle = task.start + n_left as u32;
        for (right, start, end) in [(false, task.start, middle), (true, middle, task.end)] {
            if start < end {
                let (link, node) = (NodeLink::Child { of: split, right }, arena.child(split, right));
                self.next.push(Task { link, node: Some(node), start, end, parent });
            }
        }
    }

    pub(super) fn make_room(&mut self, n: usize) {
        if self.buffer.len() < n {
            self.buffer.resize(n, 0);
        }
    }
}

/// A node that rows came to or left: a range of the rows at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    pub(crate) link: NodeLink,
    pub(crate) node: NodeId,
    /// Its parent's place in the list.
    pub(crate) parent: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Whether it is new, so that statistics and box are still to be computed.
    pub(super) fresh: bool,
    /// What changed in its children.
    pub(super) below: Changed,
}

/// What changed in a node, which its parent must look at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Changed {
    pub(super) statistics: bool,
    pub(super) boxes: Moved,
}

impl Changed {
    pub(super) const ALL: Self = Self { statistics: true, boxes: Moved::Anything };

    pub(super) fn include(&mut self, other: Self) {
        self.statistics |= other.statistics;
        self.boxes = self.boxes.or(other.boxes);
    }
}

impl Touched {
    pub(crate) const NO_PARENT: u32 = u32::MAX;

    /// A new node.
    pub(crate) fn fresh(link: NodeLink, node: NodeId, parent: u32) -> Self {
        Self { link, node, parent, start: 0, end: 0, fresh: true, below: Changed::default() }
    }

    /// A node that existed before.
    pub(crate) fn met(node: NodeId, task: &Task) -> Self {
        let &Task { link, start, end, parent, .. } = task;
        Self { link, node, parent, start, end, fresh: false, below: Changed::default() }
    }

    pub(super) fn rows<'a>(&self, rows: &'a [RowId]) -> &'a [RowId] {
        &rows[self.start as usize..self.end as usize]
    }
}

/// A range of the rows at hand, on its way down to a node, or to a link where there is none yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) link: NodeLink,
    pub(crate) node: Option<NodeId>,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Place of the split above in the list of touched nodes.
    pub(crate) parent: u32,
}

impl Task {
    /// All rows, on their way to the root.
    pub(crate) fn all(root: Option<NodeId>, n: usize) -> Self {
        Self { link: NodeLink::Root, node: root, start: 0, end: n as u32, parent: Touched::NO_PARENT }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}
