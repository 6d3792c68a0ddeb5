//! The branch rates `eta_j(x)` of a test row along its path (section 5.5.3).
//!
//! A node's box contains the boxes of its children. So a test row can lie outside a node's box only in features in
//! which it lies outside the child's box, and once it lies inside one box, it lies inside all boxes above. Rates are
//! therefore computed from the leaf up, which reads few boxes, and few features of each.

use std::ops::Range;

use crate::data::RowId;
use crate::data::{Scalar, Table};
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeKind};
use crate::mondrian::tree::boxes::box_moves::widen;
use crate::mondrian::tree::statistics::Statistics;

/// Features that are compared at a time: few enough that some groups are soon closed, and as many as fit a
/// vector register.
const LANES: usize = 8;

/// A test row and a box that grows from the leaf up.
#[derive(Debug)]
pub(crate) struct BranchRate<'a, S> {
    table: Table<'a, S>,
    /// Rates of the features.
    rates: Vec<f64>,
    /// The box of a node that stores none: up to date in the groups of features that are open.
    low: Vec<S>,
    high: Vec<S>,
    /// Groups of [`LANES`] features in which the test row may lie outside. Features after the last whole
    /// group are always compared.
    open: Vec<u32>,
    /// Rows of which boxes are made: those of a node that stores none, from left to right.
    rows: Vec<&'a [S]>,
    /// Buffer for nodes to visit.
    nodes: Vec<NodeId>,
}

impl<'a, S: Scalar> BranchRate<'a, S> {
    pub(crate) fn new(rates: &[f64], table: Table<'a, S>) -> Self {
        let box_of_none = vec![S::ZERO; rates.len()];
        Self {
            table,
            rates: rates.to_vec(),
            low: box_of_none.clone(),
            high: box_of_none,
            open: Vec::new(),
            rows: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Collects the rows of a node that stores no box, for all test rows that reach it.
    pub(crate) fn gather<P: Statistics>(&mut self, tree: &Tree<S, P>, node: NodeId) {
        let Self { table, rows, nodes, .. } = self;
        rows.clear();
        nodes.push(node);
        while let Some(node) = nodes.pop() {
            match tree.arena.kind(node) {
                NodeKind::Split(left, right) => nodes.extend([right, left]),
                NodeKind::Leaf => rows.extend(tree.arena.leaf_rows(node).map(|row| table.row(row))),
            }
        }
    }

    /// The rate at which a test row branches off above a leaf, `eta_j(x) = sum_d w_d (max(x_d - u_jd, 0) +
    /// max(l_jd - x_d, 0))` (thesis section 5.5.3). Without a box its rows are among those that were gathered, from
    /// one on.
    pub(crate) fn of_leaf<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        (leaf, first): (NodeId, usize),
        x: &[X],
    ) -> f64 {
        self.open_all();
        match tree.boxes.find(leaf) {
            Some((low, high)) => eta(&mut self.open, &self.rates, x, StoredBox { low, high }),
            None => self.include(x, first..first + tree.arena.n_rows(leaf), true),
        }
    }

    /// The same for a leaf of some rows; 0 if there are none.
    pub(crate) fn of_rows<X: Scalar>(&mut self, rows: impl Iterator<Item = RowId>, x: &[X]) -> f64 {
        let Self { table, .. } = *self;
        self.rows.clear();
        self.rows.extend(rows.map(|row| table.row(row)));
        if self.rows.is_empty() {
            return 0.0;
        }
        self.open_all();
        self.include(x, 0..self.rows.len(), true)
    }

    /// Starts with the box of a leaf without one of its rows, which is not its only one; returns the rate of the row itself,
    /// `x`.
    pub(crate) fn start_without<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        leaf: NodeId,
        (row, x): (RowId, &[S]),
    ) -> f64 {
        if tree.boxes.find(leaf).is_none() {
            return self.of_rows(tree.arena.leaf_rows(leaf).filter(|&other| other != row), x);
        }
        if !tree.boxes.leaf_without(&tree.arena, leaf, row, self.table, (&mut self.low, &mut self.high)) {
            // It lies inside.
            return 0.0;
        }
        self.open_all();
        self.of_box(x)
    }

    /// Makes the box on which [`of_path`](Self::of_path) ended, that of the node `top` with rate above 0, one that
    /// [`extend`](Self::extend) can extend.
    pub(crate) fn hold<P: Statistics>(&mut self, tree: &Tree<S, P>, top: NodeId) {
        // A box that is not stored is held already.
        if let Some((low, high)) = tree.boxes.find(top) {
            self.low.copy_from_slice(low);
            self.high.copy_from_slice(high);
        }
    }

    /// Extends the box to that of a sibling, and returns the rate of a row.
    pub(crate) fn extend<P: Statistics>(&mut self, tree: &Tree<S, P>, sibling: NodeId, x: &[S]) -> f64 {
        if let Some((low, high)) = tree.boxes.find(sibling) {
            let Self { rates, open, .. } = self;
            let corners = [low, high];
            let both = GrowingBox { rows: &corners, alone: false, low: &mut self.low, high: &mut self.high };
            return eta(open, rates, x, both);
        }
        self.gather(tree, sibling);
        self.include(x, 0..self.rows.len(), false)
    }

    /// The rate of the box that is held.
    fn of_box(&mut self, x: &[S]) -> f64 {
        eta(&mut self.open, &self.rates, x, StoredBox { low: &self.low, high: &self.high })
    }

    fn open_all(&mut self) {
        self.open.clear();
        self.open.extend(0..(self.rates.len() / LANES) as u32);
    }

    /// Sets the branch rates along a path whose last stop is a leaf, and on which no rate is set yet;
    /// `first` as for a leaf.
    pub(crate) fn of_path<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        mut first: usize,
        x: &[X],
        stops: &mut [Stop],
    ) {
        let Some((leaf, splits)) = stops.split_last_mut() else { return };
        let mut below = leaf.node;
        let mut rate = self.of_leaf(tree, (below, first), x);
        leaf.set_rate(rate);
        for stop in splits.iter_mut().rev() {
            if rate == 0.0 {
                break;
            }
            rate = match tree.boxes.find(stop.node) {
                Some((low, high)) => eta(&mut self.open, &self.rates, x, StoredBox { low, high }),
                None => {
                    let siblings = siblings(tree, stop.node, below, first);
                    first = first.min(siblings.start);
                    self.include(x, siblings, false)
                }
            };
            stop.set_rate(rate);
            below = stop.node;
        }
    }

    /// Extends the box to some rows, or makes it theirs alone, and computes the rate of it.
    fn include<X: Scalar>(&mut self, x: &[X], rows: Range<usize>, alone: bool) -> f64 {
        let Self { rates, low, high, open, .. } = self;
        eta(open, rates, x, GrowingBox { rows: &self.rows[rows], alone, low, high })
    }
}

/// The range of a node's sibling's rows, if its own begin at `first`.
fn siblings<S: Scalar, P: Statistics>(
    tree: &Tree<S, P>,
    parent: NodeId,
    node: NodeId,
    first: usize,
) -> Range<usize> {
    let left = tree.arena.child(parent, false);
    let n_left = tree.arena.n_rows(left);
    if left == node { first + n_left..first + tree.arena.n_rows(parent) } else { first - n_left..first }
}

/// A box that is read a few features at a time.
trait BoxBounds<S> {
    fn read<const N: usize>(&mut self, first: usize) -> [[S; N]; 2];
}

/// A box that a node stores.
struct StoredBox<'a, S> {
    low: &'a [S],
    high: &'a [S],
}

impl<S: Scalar> BoxBounds<S> for StoredBox<'_, S> {
    fn read<const N: usize>(&mut self, first: usize) -> [[S; N]; 2] {
        [self.low, self.high].map(|bounds| some(bounds, first))
    }
}

/// A box that is extended to some rows as it is read.
struct GrowingBox<'a, S> {
    rows: &'a [&'a [S]],
    /// Whether it holds no others.
    alone: bool,
    low: &'a mut [S],
    high: &'a mut [S],
}

impl<S: Scalar> BoxBounds<S> for GrowingBox<'_, S> {
    #[expect(clippy::inline_always, reason = "its arrays are to stay in registers")]
    #[inline(always)]
    fn read<const N: usize>(&mut self, first: usize) -> [[S; N]; 2] {
        let (mut low, mut high) = ([S::MAX; N], [S::MIN; N]);
        if !self.alone {
            (low, high) = (some(self.low, first), some(self.high, first));
        }
        for row in self.rows {
            let x: [S; N] = some(row, first);
            widen(&mut low, &mut high, &x, &x);
        }
        self.low[first..first + N].copy_from_slice(&low);
        self.high[first..first + N].copy_from_slice(&high);
        [low, high]
    }
}

/// `N` values from `first` on.
fn some<S: Scalar, const N: usize>(values: &[S], first: usize) -> [S; N] {
    *values[first..].first_chunk().expect("so many features follow")
}

/// The rate at which a test row branches off above a box; closes the groups in which it lies inside.
fn eta<S: Scalar, X: Scalar>(
    open: &mut Vec<u32>,
    rates: &[f64],
    x: &[X],
    mut bounds: impl BoxBounds<S>,
) -> f64 {
    let (mut n, mut sums) = (0, [0.0; LANES]);
    for i in 0..open.len() {
        let group = open[i];
        let first = group as usize * LANES;
        let apart = apart::<LANES, S, X>(&some(x, first), bounds.read(first));
        let (rates, mut bits) = (some::<f64, LANES>(rates, first), 0);
        for i in 0..LANES {
            sums[i] += rates[i] * apart[i];
            bits |= apart[i].to_bits();
        }
        // Written always and counted conditionally, so that there is no branch.
        open[n] = group;
        n += usize::from(bits != 0);
    }
    open.truncate(n);
    let mut sum: f64 = sums.iter().sum();
    for d in rates.len() / LANES * LANES..rates.len() {
        sum += rates[d] * apart(&[x[d]], bounds.read(d))[0];
    }
    sum
}

/// Distances from a box, by feature: finite, not negative. Each step is one operation on all lanes.
fn apart<const N: usize, S: Scalar, X: Scalar>(x: &[X; N], [low, high]: [[S; N]; 2]) -> [f64; N] {
    // The nearest point of the box. The test row's type is the wider one, so that it is exact.
    let (low, high) = (low.map(X::of), high.map(X::of));
    let mut next = *x;
    for i in 0..N {
        next[i] = if next[i] < low[i] { low[i] } else { next[i] };
    }
    for i in 0..N {
        next[i] = if next[i] > high[i] { high[i] } else { next[i] };
    }
    let (x, next): ([f64; N], [f64; N]) = (x.map(Into::into), next.map(Into::into));
    let mut apart = [0.0; N];
    for i in 0..N {
        let far = (x[i] - next[i]).abs();
        // Finite, so that a feature with rate 0 counts nothing, however far away the test row is.
        apart[i] = if far < f64::MAX { far } else { f64::MAX };
    }
    apart
}
