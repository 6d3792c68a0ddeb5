//! The data boxes of nodes, for predictions that average over where a point branches off; and those of
//! leaves alone, for predictions that follow the tree's own cuts as far as there are any.
//!
//! A box of `D` lower and `D` upper bounds is kept for a leaf or split of more than [`SMALL`] rows. The box
//! of a smaller node is read off its rows: a leaf's from its list, a split's from the row numbers kept here.

use crate::data::Scalar;
use crate::tree::{Arena, Kind, NodeId, RowId, SiteId};

/// Up to so many rows a node's box is its rows.
pub(crate) const SMALL: usize = 8;

/// In `slots`: the node has no entry here.
const NONE: u32 = u32::MAX;
/// In `slots`: the entry is a few row numbers, not a box.
const FEW: u32 = 1 << 31;

/// Boxes of one tree.
#[derive(Debug, Clone)]
pub(crate) struct Extents<S> {
    n_features: usize,
    /// Whether splits have boxes too; leaves always have.
    splits: bool,
    /// Where a node's entry is.
    slots: Vec<u32>,
    /// Lower bounds, then upper bounds, of one box after the other.
    bounds: Vec<S>,
    free: Vec<u32>,
    few: Vec<[RowId; SMALL]>,
    free_few: Vec<u32>,
}

impl<S: Scalar> Extents<S> {
    pub(crate) fn new(n_features: usize, splits: bool) -> Self {
        Self {
            n_features,
            splits,
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
            Kind::Skip { .. } => {}
            Kind::Split(..) if !self.splits => {}
            Kind::Leaf if !Self::keeps(n_rows) => self.clear(arena.site(node)),
            Kind::Leaf => {
                let slot = self.claim(arena.site(node));
                self.empty(slot);
                for row in arena.leaf_rows(node) {
                    self.include_row(slot, row, table);
                }
            }
            Kind::Split(left, right) if Self::keeps(n_rows) => {
                let slot = self.claim(arena.site(node));
                self.empty(slot);
                self.include_node(slot, arena, left, table);
                self.include_node(slot, arena, right, table);
            }
            Kind::Split(..) => self.set_few(arena, node),
        }
    }

    /// Brings a node up to date after rows came to it.
    pub(crate) fn grow(&mut self, arena: &Arena, node: NodeId, added: &[RowId], table: &[S]) {
        /// Up to so many rows it is cheaper to take them in than to join the children's boxes.
        const A_FEW: usize = 4;
        match self.entry_of(arena, node) {
            Entry::Box(slot) if added.len() <= A_FEW || arena.is_leaf(node) => {
                for &row in added {
                    self.include_row(slot, row, table);
                }
            }
            _ => self.refresh(arena, node, table),
        }
    }

    /// Brings a node up to date after rows left it.
    pub(crate) fn shrink(&mut self, arena: &Arena, node: NodeId, removed: &[RowId], table: &[S]) {
        if let Entry::Box(slot) = self.entry_of(arena, node)
            && Self::keeps(arena.n_rows(node))
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
        self.refresh(arena, node, table);
    }

    /// A node's entry; a skipped cut has none.
    fn entry_of(&self, arena: &Arena, node: NodeId) -> Entry {
        arena.find_site(node).map_or(Entry::None, |site| self.entry(site))
    }

    /// Whether splits have boxes, as averaged predictions need them.
    pub(crate) fn has_splits(&self) -> bool {
        self.splits
    }

    /// Gives up a node's entry.
    pub(crate) fn clear(&mut self, site: SiteId) {
        match self.entry(site) {
            Entry::None => return,
            Entry::Box(slot) => self.free.push(slot as u32),
            Entry::Few(slot) => self.free_few.push(slot as u32),
        }
        self.slots[site.index()] = NONE;
    }

    /// How far a point lies outside a node's box, each dimension at its rate:
    /// `eta_j(x) = sum_d w_d (max(x_d - u_jd, 0) + max(l_jd - x_d, 0))` (thesis section 5.5.3). Reckoned
    /// in the point's own type, which holds every bound exactly.
    pub(crate) fn excess<X: Scalar>(
        &self,
        arena: &Arena,
        node: NodeId,
        x: &[X],
        rates: &[X],
        table: &[S],
        scratch: &mut Bounds<S>,
    ) -> f64 {
        let row = |row: RowId| row_of(table, row, self.n_features);
        let site = arena.site(node);
        match self.entry(site) {
            Entry::Box(slot) => {
                let (low, high) = self.bounds_of(slot);
                excess_of(x, rates, low, high)
            }
            Entry::Few(slot) => {
                let rows = &self.few[slot][..arena.n_rows_at(site)];
                let (low, high) = scratch.around(rows.iter().map(|&r| row(r)));
                excess_of(x, rates, low, high)
            }
            Entry::None => {
                let mut rows = arena.leaf_rows(node).map(row);
                if arena.n_rows_at(site) == 1 {
                    let only = rows.next().expect("a leaf holds rows");
                    return excess_of(x, rates, only, only);
                }
                let (low, high) = scratch.around(rows);
                excess_of(x, rates, low, high)
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

    fn entry(&self, site: SiteId) -> Entry {
        match self.slots.get(site.index()).copied() {
            None | Some(NONE) => Entry::None,
            Some(slot) if slot & FEW != 0 => Entry::Few((slot & !FEW) as usize),
            Some(slot) => Entry::Box(slot as usize),
        }
    }

    fn assign(&mut self, site: SiteId, slot: u32) {
        if self.slots.len() <= site.index() {
            self.slots.resize(site.index() + 1, NONE);
        }
        self.slots[site.index()] = slot;
    }

    /// The node's box, or a new one.
    fn claim(&mut self, site: SiteId) -> usize {
        if let Entry::Box(slot) = self.entry(site) {
            return slot;
        }
        self.clear(site);
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
        self.assign(site, slot);
        slot as usize
    }

    fn set_few(&mut self, arena: &Arena, node: NodeId) {
        let site = arena.site(node);
        let slot = if let Entry::Few(slot) = self.entry(site) {
            slot
        } else {
            self.clear(site);
            let slot = self.free_few.pop().unwrap_or_else(|| {
                self.few.push([0; SMALL]);
                self.few.len() as u32 - 1
            });
            self.assign(site, slot | FEW);
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
        match self.entry(arena.site(node)) {
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
            splits: self.splits,
            slots: self.slots.clone(),
            bounds: self.bounds.iter().map(|&bound| f64::from(bound)).collect(),
            free: self.free.clone(),
            few: self.few.clone(),
            free_few: self.free_few.clone(),
        }
    }
}

/// The box of a few rows, in the making.
#[derive(Debug)]
pub(crate) struct Bounds<S> {
    low: Vec<S>,
    high: Vec<S>,
}

impl<S: Scalar> Bounds<S> {
    pub(crate) fn new() -> Self {
        Self { low: Vec::new(), high: Vec::new() }
    }

    fn around<'a>(&mut self, mut rows: impl Iterator<Item = &'a [S]>) -> (&[S], &[S]) {
        let first = rows.next().expect("a node holds rows");
        self.low.clear();
        self.high.clear();
        self.low.extend_from_slice(first);
        self.high.extend_from_slice(first);
        for row in rows {
            widen(&mut self.low, &mut self.high, row, row);
        }
        (&self.low, &self.high)
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

/// The sum in lanes of its own, so that it is the same on every machine and vector instructions fit it.
fn excess_of<S: Scalar, X: Scalar>(x: &[X], rates: &[X], low: &[S], high: &[S]) -> f64 {
    const LANES: usize = 8;
    let term = |x: X, rate: X, low: S, high: S| {
        let (below, above) = (X::of(low) - x, x - X::of(high));
        let outside = if below > above { below } else { above };
        rate * if outside > X::ZERO { outside } else { X::ZERO }
    };
    let mut sums = [X::ZERO; LANES];
    let (x, x_rest) = x.as_chunks::<LANES>();
    let (rates, rates_rest) = rates.as_chunks::<LANES>();
    let (low, low_rest) = low.as_chunks::<LANES>();
    let (high, high_rest) = high.as_chunks::<LANES>();
    for (((x, rates), low), high) in x.iter().zip(rates).zip(low).zip(high) {
        for lane in 0..LANES {
            sums[lane] = sums[lane] + term(x[lane], rates[lane], low[lane], high[lane]);
        }
    }
    for (lane, (((&x, &rate), &low), &high)) in
        x_rest.iter().zip(rates_rest).zip(low_rest).zip(high_rest).enumerate()
    {
        sums[lane] = sums[lane] + term(x, rate, low, high);
    }
    let [a, b, c, d, e, f, g, h] = sums;
    (((a + e) + (c + g)) + ((b + f) + (d + h))).into()
}
