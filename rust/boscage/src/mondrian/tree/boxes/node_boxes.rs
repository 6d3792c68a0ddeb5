//! The data boxes of nodes.
//!
//! Predictions that average over all places where a test row may branch off need the boxes of all nodes. Predictions
//! that follow the tree's own cuts need those of leaves only.
//!
//! A box is `D` lower and `D` upper bounds. It is stored for nodes of more than a few rows (see [`BoxRule`]); that of a smaller
//! node is read off its rows when it is needed.

use crate::data::{RowId, Scalar, Table, fetch};
use crate::mondrian::tree::arena::{Arena, NodeId, NodeKind};
use crate::mondrian::tree::boxes::box_moves::{BoundMove, Moved, hold_by_each, hold_by_rows, retain, widen};
use crate::mondrian::tree::boxes::box_rule::BoxRule;

/// In `slots`: the node has no box.
const NONE: u32 = u32::MAX;

/// Boxes of one tree.
#[derive(Debug, Clone)]
pub(crate) struct NodeBoxes<S> {
    n_coordinates: usize,
    rule: BoxRule,
    /// Where the box of a split and that of a leaf is, by [`NodeId::rank`]. Few leaves have one.
    slots: [Vec<u32>; 2],
    /// Lower bounds, then upper bounds, of one box after the other.
    bounds: Vec<S>,
    free: Vec<u32>,
    /// The bounds that moved since [`NodeBoxes::start`].
    moves: Vec<BoundMove<S>>,
    /// Buffer for bounds that may move.
    loose: Vec<BoundMove<S>>,
    /// Buffer for what a box is made of.
    sources: Sources,
}

/// The boxes and rows of which a box is made.
#[derive(Debug, Clone, Default)]
struct Sources {
    slots: Vec<usize>,
    rows: Vec<RowId>,
    /// Buffer for nodes to visit.
    nodes: Vec<NodeId>,
}

impl Sources {
    fn clear(&mut self) {
        self.slots.clear();
        self.rows.clear();
    }

    /// Adds the rows of a node that has no box.
    fn add_rows(&mut self, arena: &Arena, node: NodeId) {
        self.nodes.push(node);
        while let Some(node) = self.nodes.pop() {
            match arena.kind(node) {
                NodeKind::Split(left, right) => self.nodes.extend([left, right]),
                NodeKind::Leaf => self.rows.extend(arena.leaf_rows(node)),
            }
        }
    }
}

impl<S: Scalar> NodeBoxes<S> {
    pub(crate) fn new(n_coordinates: usize, rule: BoxRule) -> Self {
        Self {
            n_coordinates,
            rule,
            slots: Default::default(),
            bounds: Vec::new(),
            free: Vec::new(),
            moves: Vec::new(),
            loose: Vec::new(),
            sources: Sources::default(),
        }
    }

    /// Forgets all boxes. Memory is kept for others.
    pub(crate) fn reset(&mut self) {
        self.slots.iter_mut().for_each(Vec::clear);
        self.bounds.clear();
        self.free.clear();
        self.moves.clear();
    }

    /// Whether splits have boxes, as averaged predictions need them.
    pub(crate) fn has_splits(&self) -> bool {
        self.rule.splits
    }

    /// Allocates memory for the boxes of some nodes, and no more.
    pub(crate) fn reserve(&mut self, arena: &Arena, nodes: impl Iterator<Item = NodeId>) {
        let n = nodes.filter(|&node| self.keeps(arena, node)).count();
        self.bounds.reserve_exact(n * 2 * self.n_coordinates);
    }

    /// Recomputes a node's box; `table` is the forest's rows.
    pub(crate) fn set(&mut self, arena: &Arena, node: NodeId, table: Table<'_, S>) {
        if !self.keeps(arena, node) {
            return self.clear(node);
        }
        let slot = self.claim(arena, node);
        self.read_off(slot, arena, node, table, false);
    }

    /// Gives a node a box, whatever its rows are.
    pub(crate) fn give(&mut self, arena: &Arena, node: NodeId, low: &[S], high: &[S]) {
        let start = 2 * self.claim(arena, node) * self.n_coordinates;
        self.bounds[start..start + self.n_coordinates].copy_from_slice(low);
        self.bounds[start + self.n_coordinates..start + 2 * self.n_coordinates].copy_from_slice(high);
    }

    /// Recomputes a box; with `note`, records which bounds moved.
    fn read_off(&mut self, slot: usize, arena: &Arena, node: NodeId, table: Table<'_, S>, note: bool) {
        let mut sources = std::mem::take(&mut self.sources);
        sources.clear();
        match arena.kind(node) {
            NodeKind::Leaf => sources.rows.extend(arena.leaf_rows(node)),
            NodeKind::Split(left, right) => {
                for child in [left, right] {
                    match self.slot(child) {
                        Some(own) => sources.slots.push(own),
                        None => sources.add_rows(arena, child),
                    }
                }
            }
        }
        self.unite(slot, &sources, table, note);
        self.sources = sources;
    }

    /// Makes a box that of some boxes and rows: a few coordinates of all of them at a time, so that every
    /// value is read once and every bound written once.
    fn unite(&mut self, slot: usize, sources: &Sources, table: Table<'_, S>, note: bool) {
        const MANY: usize = 16;
        const SOME: usize = 8;
        const FEW: usize = 4;
        let mut first = 0;
        while first < self.n_coordinates {
            let left = self.n_coordinates - first;
            first += if left >= MANY {
                self.unite_some::<MANY>(slot, first, sources, table, note)
            } else if left >= SOME {
                self.unite_some::<SOME>(slot, first, sources, table, note)
            } else if left >= FEW {
                self.unite_some::<FEW>(slot, first, sources, table, note)
            } else {
                self.unite_some::<1>(slot, first, sources, table, note)
            };
        }
    }

    fn unite_some<const N: usize>(
        &mut self,
        slot: usize,
        first: usize,
        sources: &Sources,
        table: Table<'_, S>,
        note: bool,
    ) -> usize {
        let some = |values: &[S]| *values[first..].first_chunk::<N>().expect("so many coordinates follow");
        let (mut low, mut high) = ([S::MAX; N], [S::MIN; N]);
        for &row in &sources.rows {
            let x = some(table.row(row));
            widen(&mut low, &mut high, &x, &x);
        }
        for &other in &sources.slots {
            let (lows, highs) = self.bounds(other);
            widen(&mut low, &mut high, &some(lows), &some(highs));
        }
        for (is_high, now) in [(false, low), (true, high)] {
            let start = self.place(slot, first as u32, is_high);
            let bounds = &mut self.bounds[start..start + N];
            if note && *bounds != now {
                let moved = (0..N).filter(|&i| bounds[i] != now[i]);
                self.moves.extend(moved.map(|i| {
                    let coordinate = (first + i) as u32;
                    BoundMove { coordinate, high: is_high, before: bounds[i], now: now[i] }
                }));
            }
            bounds.copy_from_slice(&now);
        }
        N
    }

    /// Begins an update: forgets earlier moves.
    pub(crate) fn start(&mut self) {
        self.moves.clear();
    }

    /// Brings a node up to date after rows came to it and some of its children's boxes moved.
    pub(crate) fn grow(
        &mut self,
        arena: &Arena,
        node: NodeId,
        below: Moved,
        added: &[RowId],
        table: Table<'_, S>,
    ) -> Moved {
        let n_rows = arena.n_rows(node);
        if below == Moved::Nothing && !self.rule.is_due(n_rows - added.len(), n_rows) {
            return Moved::Nothing;
        }
        if !self.keeps(arena, node) {
            return Moved::Anything;
        }
        let Some(slot) = self.slot(node) else {
            self.set(arena, node, table);
            return Moved::Anything;
        };
        let first = self.moves.len();
        if let Moved::Bounds { start, end } = below {
            for i in start as usize..end as usize {
                let BoundMove { coordinate, high, now, .. } = self.moves[i];
                self.reach(slot, coordinate, high, now);
            }
            return self.moved_since(first);
        }
        if added.len() > 1
            && let NodeKind::Split(left, right) = arena.kind(node)
            && self.n_boxes(arena, left) + self.n_boxes(arena, right) < added.len()
        {
            self.read_off(slot, arena, node, table, true);
            return self.moved_since(first);
        }
        for &row in added {
            if !self.contains(slot, row, table) {
                for (d, &value) in table.row(row).iter().enumerate() {
                    self.reach(slot, d as u32, false, value);
                    self.reach(slot, d as u32, true, value);
                }
            }
        }
        self.moved_since(first)
    }

    /// Brings a node up to date after rows left it and some of its children's boxes moved.
    pub(crate) fn shrink(
        &mut self,
        arena: &Arena,
        node: NodeId,
        below: Moved,
        removed: &[RowId],
        table: Table<'_, S>,
    ) -> Moved {
        let n_rows = arena.n_rows(node);
        if below == Moved::Nothing && !self.rule.is_due(n_rows + removed.len(), n_rows) {
            return Moved::Nothing;
        }
        let Some(slot) = self.slot(node).filter(|_| self.keeps(arena, node)) else {
            self.clear(node);
            return Moved::Anything;
        };
        let first = self.moves.len();
        let mut loose = std::mem::take(&mut self.loose);
        loose.clear();
        if let Moved::Bounds { start, end } = below {
            let (low, high) = self.bounds(slot);
            let bound = |of: &BoundMove<S>| if of.high { high } else { low }[of.coordinate as usize];
            let moves = &self.moves[start as usize..end as usize];
            loose.extend(moves.iter().filter(|of| of.before == bound(of)));
        } else {
            if let NodeKind::Split(left, right) = arena.kind(node)
                // Few boxes are read whole; to search for the bounds on which rows lay avoids reading many.
                && self.n_boxes(arena, left) + self.n_boxes(arena, right) <= self.rule.small() * removed.len()
            {
                self.loose = loose;
                self.read_off(slot, arena, node, table, true);
                return self.moved_since(first);
            }
            self.find_loose(slot, removed, table, &mut loose);
        }
        match arena.kind(node) {
            NodeKind::Leaf => hold_by_rows(arena, node, table, &mut loose),
            NodeKind::Split(left, right) => {
                // The child with a stored box first: it leaves few bounds to search for among rows.
                let sides = if self.slot(left).is_some() { [left, right] } else { [right, left] };
                for side in sides {
                    self.hold(arena, side, table, &mut loose);
                }
            }
        }
        for &BoundMove { coordinate, high, now, .. } in &loose {
            let at = self.place(slot, coordinate, high);
            self.bounds[at] = now;
        }
        self.moves.extend_from_slice(&loose);
        self.loose = loose;
        self.moved_since(first)
    }

    /// Extends a box to a value along one coordinate.
    fn reach(&mut self, slot: usize, coordinate: u32, high: bool, now: S) {
        let at = self.place(slot, coordinate, high);
        let before = self.bounds[at];
        if if high { now > before } else { now < before } {
            self.bounds[at] = now;
            self.moves.push(BoundMove { coordinate, high, before, now });
        }
    }

    /// The moves from one on.
    fn moved_since(&self, first: usize) -> Moved {
        let (start, end) = (first as u32, self.moves.len() as u32);
        if start == end { Moved::Nothing } else { Moved::Bounds { start, end } }
    }

    /// Reads the boxes of some nodes into the cache, all of them together; see [`Arena::fetch`].
    pub(crate) fn fetch(&self, arena: &Arena, nodes: impl Iterator<Item = NodeId> + Clone) {
        let slots = nodes.filter(|&node| self.keeps(arena, node)).filter_map(|node| self.slot(node));
        let size = 2 * self.n_coordinates;
        let seen = slots.fold(0.0, |seen, slot| {
            let [low, high] = [slot * size, slot * size + size - 1].map(|at| self.bounds[at].into());
            seen + low + high
        });
        std::hint::black_box(seen);
    }

    /// Gives up a node's box.
    pub(crate) fn clear(&mut self, node: NodeId) {
        if let Some(slot) = self.slot(node) {
            self.free.push(slot as u32);
            self.slots[usize::from(node.is_leaf())][node.rank()] = NONE;
        }
    }

    /// A node's lower and upper bounds, if they are kept.
    pub(crate) fn find(&self, node: NodeId) -> Option<(&[S], &[S])> {
        self.slot(node).map(|slot| self.bounds(slot))
    }

    /// Reads all boxes into the cache, unless they are so wide that each is a long sequential read anyway.
    pub(crate) fn fetch_all(&self) {
        const WIDE: usize = 64;
        self.slots.iter().for_each(|slots| fetch(slots));
        if self.n_coordinates < WIDE {
            fetch(&self.bounds);
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bounds.capacity() * size_of::<S>()
            + self.slots.iter().chain([&self.free]).map(Vec::capacity).sum::<usize>() * size_of::<u32>()
    }

    /// Whether a node is to have a box.
    pub(crate) fn keeps(&self, arena: &Arena, node: NodeId) -> bool {
        self.rule.keeps(arena, node)
    }

    fn slot(&self, node: NodeId) -> Option<usize> {
        let slot = *self.slots[usize::from(node.is_leaf())].get(node.rank())?;
        (slot != NONE).then_some(slot as usize)
    }

    /// The node's box, or a new one.
    fn claim(&mut self, arena: &Arena, node: NodeId) -> usize {
        if let Some(slot) = self.slot(node) {
            return slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            let len = self.bounds.len();
            let size = 2 * self.n_coordinates;
            if self.bounds.capacity() < len + size {
                // A quarter more at a time: boxes are much of a forest's memory.
                self.bounds.reserve_exact(len / 4 / size * size + size);
            }
            self.bounds.resize(len + size, S::ZERO);
            (len / size) as u32
        });
        let slots = &mut self.slots[usize::from(node.is_leaf())];
        if slots.len() <= node.rank() {
            slots.resize(arena.n_indices() / 2, NONE);
        }
        slots[node.rank()] = slot;
        slot as usize
    }

    fn bounds(&self, slot: usize) -> (&[S], &[S]) {
        let d = self.n_coordinates;
        self.bounds[slot * 2 * d..(slot + 1) * 2 * d].split_at(d)
    }

    /// Where one bound is.
    fn place(&self, slot: usize, coordinate: u32, high: bool) -> usize {
        (2 * slot + usize::from(high)) * self.n_coordinates + coordinate as usize
    }

    /// The number of boxes or rows off which a node's box is read.
    fn n_boxes(&self, arena: &Arena, node: NodeId) -> usize {
        if self.slot(node).is_some() { 1 } else { arena.n_rows(node) }
    }

    /// Writes the box of a leaf without one of its rows, if the row lies outside of it. The leaf stores its box, and has other
    /// rows.
    pub(crate) fn leaf_without(
        &self,
        arena: &Arena,
        leaf: NodeId,
        row: RowId,
        table: Table<'_, S>,
        (to_low, to_high): (&mut [S], &mut [S]),
    ) -> bool {
        let slot = self.slot(leaf).expect("the leaf has a box");
        let mut loose = Vec::new();
        self.find_loose(slot, &[row], table, &mut loose);
        hold_by_each(arena.leaf_rows(leaf).filter(|&other| other != row), table, &mut loose);
        if loose.is_empty() {
            return false;
        }
        let (low, high) = self.bounds(slot);
        to_low.copy_from_slice(low);
        to_high.copy_from_slice(high);
        for &BoundMove { coordinate, high, now, .. } in &loose {
            let bounds = if high { &mut *to_high } else { &mut *to_low };
            bounds[coordinate as usize] = now;
        }
        true
    }

    fn contains(&self, slot: usize, row: RowId, table: Table<'_, S>) -> bool {
        /// So many coordinates are compared at a time.
        const LANES: usize = 8;
        let (low, high) = self.bounds(slot);
        let x = table.row(row);
        let outside = |x: &[S], low: &[S], high: &[S]| {
            let mut any = false;
            for (x, (l, h)) in x.iter().zip(low.iter().zip(high)) {
                any |= x < l;
                any |= x > h;
            }
            any
        };
        let groups = low.chunks(LANES).zip(high.chunks(LANES));
        !x.chunks(LANES).zip(groups).any(|(x, (low, high))| outside(x, low, high))
    }

    /// Finds the bounds of a box on which rows lie.
    fn find_loose(&self, slot: usize, rows: &[RowId], table: Table<'_, S>, loose: &mut Vec<BoundMove<S>>) {
        let (low, high) = self.bounds(slot);
        for &row in rows {
            for (d, ((&value, &low), &high)) in table.row(row).iter().zip(low).zip(high).enumerate() {
                let coordinate = d as u32;
                // Where all rows are equal, those that stay are equal as well.
                if low == high {
                    continue;
                }
                if value == low {
                    loose.push(BoundMove { coordinate, high: false, before: low, now: S::MAX });
                }
                if value == high {
                    loose.push(BoundMove { coordinate, high: true, before: high, now: S::MIN });
                }
            }
        }
    }

    /// Drops from `loose` the bounds on which a node's box lies as well.
    fn hold(&self, arena: &Arena, node: NodeId, table: Table<'_, S>, loose: &mut Vec<BoundMove<S>>) {
        match self.slot(node) {
            Some(slot) => {
                let (low, high) = self.bounds(slot);
                retain(loose, |d| low[d], |d| high[d]);
            }
            None => hold_by_rows(arena, node, table, loose),
        }
    }
}

impl NodeBoxes<f32> {
    /// The same boxes in `f64`.
    pub(crate) fn widen(&self) -> NodeBoxes<f64> {
        NodeBoxes {
            n_coordinates: self.n_coordinates,
            rule: self.rule,
            slots: self.slots.clone(),
            bounds: self.bounds.iter().map(|&bound| f64::from(bound)).collect(),
            free: self.free.clone(),
            moves: Vec::new(),
            loose: Vec::new(),
            sources: Sources::default(),
        }
    }
}
