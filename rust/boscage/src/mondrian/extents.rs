//! The data boxes of nodes, for predictions that average over where a point branches off; and those of
//! leaves alone, for predictions that follow the tree's own cuts as far as there are any.
//!
//! A box of `D` lower and `D` upper bounds is kept for a leaf or split of more than [`SMALL`] rows; that of a
//! smaller node is read off its rows.

use crate::data::{Scalar, Table};
use crate::tree::{Arena, Kind, NodeId, RowId};

/// Up to so many rows a node's box is its rows.
pub(crate) const SMALL: usize = 16;

/// Up to so many rows that come or leave are looked at one by one; and the dimensions that they touch, unless
/// these are more than one in so many.
const A_FEW: usize = 4;

/// In `slots`: the node has no box.
const NONE: u32 = u32::MAX;

/// Boxes of one tree.
#[derive(Debug, Clone)]
pub(crate) struct Extents<S> {
    n_features: usize,
    /// Whether splits have boxes too; leaves always have.
    splits: bool,
    /// Where a node's box is.
    slots: Vec<u32>,
    /// Lower bounds, then upper bounds, of one box after the other.
    bounds: Vec<S>,
    free: Vec<u32>,
    /// Room for bounds that may move.
    scratch: Vec<(usize, S, S)>,
    /// Room for what a box is made of.
    sources: Sources,
}

/// What a box holds.
#[derive(Debug, Clone, Default)]
struct Sources {
    slots: Vec<usize>,
    rows: Vec<RowId>,
}

impl Sources {
    fn clear(&mut self) {
        self.slots.clear();
        self.rows.clear();
    }
}

impl<S: Scalar> Extents<S> {
    pub(crate) fn new(n_features: usize, splits: bool) -> Self {
        Self {
            n_features,
            splits,
            slots: Vec::new(),
            bounds: Vec::new(),
            free: Vec::new(),
            scratch: Vec::new(),
            sources: Sources::default(),
        }
    }

    /// Whether splits have boxes, as averaged predictions need them.
    pub(crate) fn has_splits(&self) -> bool {
        self.splits
    }

    /// Makes room for the boxes of some nodes, no more than that.
    pub(crate) fn reserve(&mut self, arena: &Arena, nodes: impl Iterator<Item = NodeId>) {
        let n = nodes.filter(|&node| self.keeps(arena, node)).count();
        self.bounds.reserve_exact(n * 2 * self.n_features);
        self.slots.resize(self.slots.len().max(arena.n_indices()), NONE);
    }

    /// Sets a node's box anew; `table` is the forest's rows.
    pub(crate) fn set(&mut self, arena: &Arena, node: NodeId, table: Table<'_, S>) {
        if !self.keeps(arena, node) {
            return self.clear(node);
        }
        let slot = self.claim(arena, node);
        let mut sources = std::mem::take(&mut self.sources);
        sources.clear();
        match arena.kind(node) {
            Kind::Leaf => sources.rows.extend(arena.leaf_rows(node)),
            Kind::Split(left, right) => {
                for child in [left, right] {
                    match self.slot(child) {
                        Some(own) => sources.slots.push(own),
                        None => arena.for_each_row(child, |row| sources.rows.push(row)),
                    }
                }
            }
        }
        self.unite(slot, &sources, table);
        self.sources = sources;
    }

    /// Makes a box that of some boxes and rows: some features of all of them at a time, so that every value is
    /// read once and every bound written once.
    fn unite(&mut self, slot: usize, sources: &Sources, table: Table<'_, S>) {
        const LANES: usize = 16;
        let whole = self.n_features / LANES * LANES;
        for first in (0..whole).step_by(LANES) {
            self.unite_some::<LANES>(slot, first, sources, table);
        }
        for feature in whole..self.n_features {
            self.unite_some::<1>(slot, feature, sources, table);
        }
    }

    fn unite_some<const N: usize>(
        &mut self,
        slot: usize,
        first: usize,
        sources: &Sources,
        table: Table<'_, S>,
    ) {
        let some = |values: &[S]| *values[first..].first_chunk::<N>().expect("so many features follow");
        let (mut low, mut high) = ([S::MAX; N], [S::MIN; N]);
        for &row in &sources.rows {
            let x = some(table.row(row));
            widen(&mut low, &mut high, &x, &x);
        }
        for &other in &sources.slots {
            let (lows, highs) = self.bounds(other);
            widen(&mut low, &mut high, &some(lows), &some(highs));
        }
        let (lows, highs) = self.bounds_mut(slot);
        lows[first..first + N].copy_from_slice(&low);
        highs[first..first + N].copy_from_slice(&high);
    }

    /// Brings a node up to date after rows came to it; whether its box may be another one now.
    pub(crate) fn grow(&mut self, arena: &Arena, node: NodeId, added: &[RowId], table: Table<'_, S>) -> bool {
        match self.slot(node) {
            Some(slot) if added.len() <= A_FEW || node.is_leaf() => {
                added.iter().fold(false, |changed, &row| {
                    let grows = !self.contains(slot, row, table);
                    if grows {
                        self.include_row(slot, row, table);
                    }
                    changed || grows
                })
            }
            _ => {
                self.set(arena, node, table);
                true
            }
        }
    }

    /// Brings a node up to date after rows left it; whether its box may be another one now.
    pub(crate) fn shrink(
        &mut self,
        arena: &Arena,
        node: NodeId,
        removed: &[RowId],
        table: Table<'_, S>,
    ) -> bool {
        let kept = self.slot(node).filter(|_| self.keeps(arena, node));
        // Of many rows, some lies on nearly every bound.
        let Some(slot) = kept.filter(|_| removed.len() <= A_FEW) else {
            self.set(arena, node, table);
            return true;
        };
        let mut bounds = std::mem::take(&mut self.scratch);
        // Only bounds that a removed row lay on can move.
        let (low, high) = self.bounds(slot);
        let on_bound = |d: &usize| {
            removed.iter().any(|&row| {
                let value = table.row(row)[*d];
                value == low[*d] || value == high[*d]
            })
        };
        bounds.clear();
        bounds.extend((0..self.n_features).filter(on_bound).map(|d| (d, low[d], high[d])));
        if bounds.len() * A_FEW > self.n_features {
            self.set(arena, node, table);
        } else if !bounds.is_empty() {
            self.set_some(arena, node, slot, &bounds, table);
        }
        let (low, high) = self.bounds(slot);
        let changed = bounds.iter().any(|&(d, l, h)| low[d] != l || high[d] != h);
        self.scratch = bounds;
        changed
    }

    /// Whether a node has a box and should not, or the other way round.
    pub(crate) fn is_due(&self, arena: &Arena, node: NodeId) -> bool {
        self.keeps(arena, node) != self.slot(node).is_some()
    }

    /// Gives up a node's box.
    pub(crate) fn clear(&mut self, node: NodeId) {
        if let Some(slot) = self.slot(node) {
            self.free.push(slot as u32);
            self.slots[node.index()] = NONE;
        }
    }

    /// A node's lower and upper bounds, if they are kept.
    pub(crate) fn find(&self, node: NodeId) -> Option<(&[S], &[S])> {
        self.slot(node).map(|slot| self.bounds(slot))
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.slots.shrink_to_fit();
        self.bounds.shrink_to_fit();
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bounds.capacity() * size_of::<S>()
            + (self.slots.capacity() + self.free.capacity()) * size_of::<u32>()
    }

    /// Whether a node is to have a box.
    fn keeps(&self, arena: &Arena, node: NodeId) -> bool {
        (self.splits || node.is_leaf()) && arena.n_rows(node) > SMALL
    }

    fn slot(&self, node: NodeId) -> Option<usize> {
        let slot = *self.slots.get(node.index())?;
        (slot != NONE).then_some(slot as usize)
    }

    /// The node's box, or a new one.
    fn claim(&mut self, arena: &Arena, node: NodeId) -> usize {
        if let Some(slot) = self.slot(node) {
            return slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            let len = self.bounds.len();
            let size = 2 * self.n_features;
            if self.bounds.capacity() < len + size {
                // A quarter more at a time: boxes are much of a forest's memory.
                self.bounds.reserve_exact(len / 4 / size * size + size);
            }
            self.bounds.resize(len + size, S::ZERO);
            (len / size) as u32
        });
        if self.slots.len() <= node.index() {
            self.slots.resize(arena.n_indices(), NONE);
        }
        self.slots[node.index()] = slot;
        slot as usize
    }

    fn bounds(&self, slot: usize) -> (&[S], &[S]) {
        let d = self.n_features;
        self.bounds[slot * 2 * d..(slot + 1) * 2 * d].split_at(d)
    }

    fn bounds_mut(&mut self, slot: usize) -> (&mut [S], &mut [S]) {
        let d = self.n_features;
        self.bounds[slot * 2 * d..(slot + 1) * 2 * d].split_at_mut(d)
    }

    fn contains(&self, slot: usize, row: RowId, table: Table<'_, S>) -> bool {
        let (low, high) = self.bounds(slot);
        let x = table.row(row);
        x.iter().zip(low.iter().zip(high)).all(|(x, (l, h))| l <= x && x <= h)
    }

    fn include_row(&mut self, slot: usize, row: RowId, table: Table<'_, S>) {
        let x = table.row(row);
        let (low, high) = self.bounds_mut(slot);
        widen(low, high, x, x);
    }

    /// Sets a box anew in some dimensions.
    fn set_some(
        &mut self,
        arena: &Arena,
        node: NodeId,
        slot: usize,
        dimensions: &[(usize, S, S)],
        table: Table<'_, S>,
    ) {
        let (low, high) = self.bounds_mut(slot);
        for &(d, ..) in dimensions {
            (low[d], high[d]) = (S::MAX, S::MIN);
        }
        match arena.kind(node) {
            Kind::Leaf => self.include_some(slot, arena, node, dimensions, table),
            Kind::Split(left, right) => {
                self.include_some(slot, arena, left, dimensions, table);
                self.include_some(slot, arena, right, dimensions, table);
            }
        }
    }

    /// Makes a box hold a node's in some dimensions.
    fn include_some(
        &mut self,
        slot: usize,
        arena: &Arena,
        node: NodeId,
        dimensions: &[(usize, S, S)],
        table: Table<'_, S>,
    ) {
        let include = |this: &mut Self, d: usize, (l, h): (S, S)| {
            let (low, high) = this.bounds_mut(slot);
            (low[d], high[d]) = (if l < low[d] { l } else { low[d] }, if h > high[d] { h } else { high[d] });
        };
        match self.slot(node) {
            Some(other) if other != slot => {
                for &(d, ..) in dimensions {
                    let (low, high) = self.bounds(other);
                    let bounds = (low[d], high[d]);
                    include(self, d, bounds);
                }
            }
            _ => arena.for_each_row(node, |row| {
                let x = table.row(row);
                for &(d, ..) in dimensions {
                    include(self, d, (x[d], x[d]));
                }
            }),
        }
    }
}

impl Extents<f32> {
    /// The same boxes in `f64`.
    pub(crate) fn widen(&self) -> Extents<f64> {
        Extents {
            n_features: self.n_features,
            splits: self.splits,
            slots: self.slots.clone(),
            bounds: self.bounds.iter().map(|&bound| f64::from(bound)).collect(),
            free: self.free.clone(),
            scratch: Vec::new(),
            sources: Sources::default(),
        }
    }
}

/// Makes a box hold another one.
pub(crate) fn widen<S: Scalar>(low: &mut [S], high: &mut [S], other_low: &[S], other_high: &[S]) {
    for (l, &o) in low.iter_mut().zip(other_low) {
        *l = if o < *l { o } else { *l };
    }
    for (h, &o) in high.iter_mut().zip(other_high) {
        *h = if o > *h { o } else { *h };
    }
}
