//! The data boxes of nodes, for predictions that average over where a point branches off.
//!
//! A box of `D` lower and `D` upper bounds is kept for a leaf or split of more than [`SMALL`] rows. The box
//! of a smaller node is read off its rows: a leaf's from its list, a split's from the row numbers kept here.

use crate::data::Scalar;
use crate::tree::{Arena, Kind, NodeId, RowId};

/// Up to so many rows a node's box is its rows.
pub(crate) const SMALL: usize = 4;

/// In `slots`: the node has no entry here.
const NONE: u32 = u32::MAX;
/// In `slots`: the entry is a few row numbers, not a box.
const FEW: u32 = 1 << 31;

/// Boxes of one tree.
#[derive(Debug, Clone)]
pub(crate) struct Extents<S> {
    n_features: usize,
    /// Where a node's entry is.
    slots: Vec<u32>,
    /// Lower bounds, then upper bounds, of one box after the other.
    bounds: Vec<S>,
    free: Vec<u32>,
    few: Vec<[RowId; SMALL]>,
    free_few: Vec<u32>,
}

impl<S: Scalar> Extents<S> {
    pub(crate) fn new(n_features: usize) -> Self {
        Self {
            n_features,
            slots: Vec::new(),
            bounds: Vec::new(),
            free: Vec::new(),
            few: Vec::new(),
            free_few: Vec::new(),
        }
    }

    /// Makes room for `n` boxes more, no more than that.
    pub(crate) fn reserve(&mut self, n: usize) {
        self.bounds.reserve_exact(n * 2 * self.n_features);
    }

    /// Whether a node of so many rows has a box of its own here.
    pub(crate) fn keeps(n_rows: usize) -> bool {
        n_rows > SMALL
    }

    /// Sets a node's entry anew; `table` is the forest's rows.
    pub(crate) fn refresh(&mut self, arena: &Arena, node: NodeId, table: &[S]) {
        let n_rows = arena.n_rows(node);
        match arena.kind(node) {
            Kind::Skip { .. } => self.clear(node),
            Kind::Leaf if !Self::keeps(n_rows) => self.clear(node),
            Kind::Leaf => {
                let slot = self.claim(node);
                self.empty(slot);
                for row in arena.leaf_rows(node) {
                    self.include_row(slot, row, table);
                }
            }
            Kind::Split(left, right) if Self::keeps(n_rows) => {
                let slot = self.claim(node);
                self.empty(slot);
                self.include_node(slot, arena, left, table);
                self.include_node(slot, arena, right, table);
            }
            Kind::Split(..) => self.set_few(arena, node),
        }
    }

    /// Brings a leaf up to date after rows came to it.
    pub(crate) fn grow_leaf(&mut self, arena: &Arena, leaf: NodeId, added: &[RowId], table: &[S]) {
        match self.entry(leaf) {
            Entry::Box(slot) => {
                for &row in added {
                    self.include_row(slot, row, table);
                }
            }
            _ => self.refresh(arena, leaf, table),
        }
    }

    /// Brings a leaf up to date after rows left it.
    pub(crate) fn shrink_leaf(&mut self, arena: &Arena, leaf: NodeId, removed: &[RowId], table: &[S]) {
        if let Entry::Box(slot) = self.entry(leaf)
            && Self::keeps(arena.n_rows(leaf))
        {
            let (low, high) = self.bounds_of(slot);
            let touches = |&row: &RowId| {
                let x = row_of(table, row, self.n_features);
                x.iter().zip(low.iter().zip(high)).any(|(x, (l, h))| x == l || x == h)
            };
            if !removed.iter().any(touches) {
                return;
            }
        }
        self.refresh(arena, leaf, table);
    }

    /// Gives up a node's entry.
    pub(crate) fn clear(&mut self, node: NodeId) {
        match self.entry(node) {
            Entry::None => return,
            Entry::Box(slot) => self.free.push(slot as u32),
            Entry::Few(slot) => self.free_few.push(slot as u32),
        }
        self.slots[node.index()] = NONE;
    }

    /// How far a point lies outside a node's box, each dimension at its rate:
    /// `eta_j(x) = sum_d w_d (max(x_d - u_jd, 0) + max(l_jd - x_d, 0))` (thesis section 5.5.3).
    pub(crate) fn excess<X: Scalar>(
        &self,
        arena: &Arena,
        node: NodeId,
        x: &[X],
        rates: &[f64],
        table: &[S],
    ) -> f64 {
        let row = |row| row_of(table, row, self.n_features);
        match self.entry(node) {
            Entry::Box(slot) => {
                let (low, high) = self.bounds_of(slot);
                excess_of(x, rates, |d| (low[d].into(), high[d].into()))
            }
            Entry::Few(slot) => {
                let rows = self.few[slot];
                match arena.n_rows(node) {
                    2 => excess_of_rows(x, rates, [row(rows[0]), row(rows[1])]),
                    3 => excess_of_rows(x, rates, [row(rows[0]), row(rows[1]), row(rows[2])]),
                    _ => excess_of_rows(x, rates, rows.map(row)),
                }
            }
            Entry::None => {
                // A leaf of up to SMALL rows; one more of a row changes no box.
                let mut rows = arena.leaf_rows(node);
                let first = row(rows.next().expect("a leaf holds rows"));
                let Some(second) = rows.next() else {
                    return excess_of_rows(x, rates, [first]);
                };
                let mut few = [first, row(second), first, first];
                for (place, other) in few[2..].iter_mut().zip(rows) {
                    *place = row(other);
                }
                excess_of_rows(x, rates, few)
            }
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.slots.shrink_to_fit();
        self.bounds.shrink_to_fit();
        self.few.shrink_to_fit();
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bounds.capacity() * size_of::<S>()
            + self.few.capacity() * size_of::<[RowId; SMALL]>()
            + (self.slots.capacity() + self.free.capacity() + self.free_few.capacity()) * size_of::<u32>()
    }

    fn entry(&self, node: NodeId) -> Entry {
        match self.slots.get(node.index()).copied() {
            None | Some(NONE) => Entry::None,
            Some(slot) if slot & FEW != 0 => Entry::Few((slot & !FEW) as usize),
            Some(slot) => Entry::Box(slot as usize),
        }
    }

    fn assign(&mut self, node: NodeId, slot: u32) {
        if self.slots.len() <= node.index() {
            self.slots.resize(node.index() + 1, NONE);
        }
        self.slots[node.index()] = slot;
    }

    /// The node's box, or a new one.
    fn claim(&mut self, node: NodeId) -> usize {
        if let Entry::Box(slot) = self.entry(node) {
            return slot;
        }
        self.clear(node);
        let slot = self.free.pop().unwrap_or_else(|| {
            let len = self.bounds.len();
            let size = 2 * self.n_features;
            if self.bounds.capacity() < len + size {
                // A quarter more at a time: boxes are most of a forest's memory.
                self.bounds.reserve_exact(len / 4 / size * size + size);
            }
            self.bounds.resize(len + size, S::ZERO);
            (len / size) as u32
        });
        self.assign(node, slot);
        slot as usize
    }

    fn set_few(&mut self, arena: &Arena, node: NodeId) {
        let slot = if let Entry::Few(slot) = self.entry(node) {
            slot
        } else {
            self.clear(node);
            let slot = self.free_few.pop().unwrap_or_else(|| {
                self.few.push([0; SMALL]);
                self.few.len() as u32 - 1
            });
            self.assign(node, slot | FEW);
            slot as usize
        };
        let mut i = 0;
        arena.for_each_leaf(node, |leaf| {
            for row in arena.leaf_rows(leaf) {
                self.few[slot][i] = row;
                i += 1;
            }
        });
    }

    fn bounds_of(&self, slot: usize) -> (&[S], &[S]) {
        let d = self.n_features;
        self.bounds[slot * 2 * d..(slot + 1) * 2 * d].split_at(d)
    }

    fn bounds_mut(&mut self, slot: usize) -> (&mut [S], &mut [S]) {
        let d = self.n_features;
        self.bounds[slot * 2 * d..(slot + 1) * 2 * d].split_at_mut(d)
    }

    fn empty(&mut self, slot: usize) {
        let (low, high) = self.bounds_mut(slot);
        low.fill(S::MAX);
        high.fill(S::MIN);
    }

    fn include_row(&mut self, slot: usize, row: RowId, table: &[S]) {
        let x = row_of(table, row, self.n_features);
        let (low, high) = self.bounds_mut(slot);
        widen(low, high, x, x);
    }

    fn include_node(&mut self, slot: usize, arena: &Arena, node: NodeId, table: &[S]) {
        let node = arena.below_skips(node);
        match self.entry(node) {
            Entry::Box(other) => {
                // Two boxes of one vector: the later one is lent apart.
                let size = 2 * self.n_features;
                let (a, b) = (slot * size, other * size);
                let (first, second) = self.bounds.split_at_mut(a.max(b));
                let (to, from) = if a < b {
                    (&mut first[a..a + size], &second[..size])
                } else {
                    (&mut second[..size], &first[b..b + size])
                };
                let (low, high) = to.split_at_mut(self.n_features);
                let (other_low, other_high) = from.split_at(self.n_features);
                widen(low, high, other_low, other_high);
            }
            Entry::Few(few) => {
                let rows = self.few[few];
                for &row in &rows[..arena.n_rows(node)] {
                    self.include_row(slot, row, table);
                }
            }
            Entry::None => {
                for row in arena.leaf_rows(node) {
                    self.include_row(slot, row, table);
                }
            }
        }
    }
}

impl Extents<f32> {
    /// The same boxes in `f64`.
    pub(crate) fn widen(&self) -> Extents<f64> {
        Extents {
            n_features: self.n_features,
            slots: self.slots.clone(),
            bounds: self.bounds.iter().map(|&bound| f64::from(bound)).collect(),
            free: self.free.clone(),
            few: self.few.clone(),
            free_few: self.free_few.clone(),
        }
    }
}

/// Where a node's box is found.
enum Entry {
    None,
    Box(usize),
    Few(usize),
}

fn widen<S: Scalar>(low: &mut [S], high: &mut [S], other_low: &[S], other_high: &[S]) {
    for (l, &o) in low.iter_mut().zip(other_low) {
        *l = if o < *l { o } else { *l };
    }
    for (h, &o) in high.iter_mut().zip(other_high) {
        *h = if o > *h { o } else { *h };
    }
}

fn row_of<S>(table: &[S], row: RowId, n_features: usize) -> &[S] {
    let start = row as usize * n_features;
    &table[start..start + n_features]
}

/// The excess over the box of a few rows.
fn excess_of_rows<S: Scalar, X: Scalar, const N: usize>(x: &[X], rates: &[f64], rows: [&[S]; N]) -> f64 {
    let rows = rows.map(|row| &row[..x.len()]);
    excess_of(x, rates, |d| {
        let (mut low, mut high): (f64, f64) = (rows[0][d].into(), rows[0][d].into());
        for row in &rows[1..] {
            let value: f64 = row[d].into();
            low = if value < low { value } else { low };
            high = if value > high { value } else { high };
        }
        (low, high)
    })
}

/// The sum in lanes of its own, so that it is the same on every machine and vector instructions fit it.
fn excess_of<X: Scalar>(x: &[X], rates: &[f64], bounds: impl Fn(usize) -> (f64, f64)) -> f64 {
    const LANES: usize = 8;
    let rates = &rates[..x.len()];
    let term = |d: usize| {
        let (low, high) = bounds(d);
        let value: f64 = x[d].into();
        let (below, above) = (low - value, value - high);
        let outside = if below > above { below } else { above };
        rates[d] * if outside > 0.0 { outside } else { 0.0 }
    };
    let mut sums = [0.0; LANES];
    let whole = x.len() / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum += term(start + lane);
        }
    }
    for (d, sum) in (whole..x.len()).zip(&mut sums) {
        *sum += term(d);
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}
