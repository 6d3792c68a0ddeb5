//! How far a point lies outside the boxes on its path.
//!
//! A node's box holds those of its children. So the dimensions in which a point lies outside a box are among
//! those in which it lies outside the child's, and once it lies inside, all boxes further up hold it: from the
//! leaf up, few boxes are looked at, and few dimensions of each.

use super::route::{Branch, Stop};
use super::statistics::Statistics;
use super::tree::Tree;
use crate::data::{Scalar, Table};
use crate::tree::{Kind, NodeId};

/// A dimension in which a point may lie outside a box.
#[derive(Debug, Clone, Copy)]
struct Side<S> {
    dimension: u32,
    low: S,
    high: S,
    /// The point's.
    value: f64,
    rate: f64,
}

/// A point against a box that grows.
#[derive(Debug)]
pub(crate) struct Outside<S> {
    /// Rates of the features.
    rates: Vec<f64>,
    /// The first `n` are in use.
    sides: Vec<Side<S>>,
    n: usize,
}

impl<S: Scalar> Outside<S> {
    pub(crate) fn new(rates: &[f64]) -> Self {
        let none = Side { dimension: 0, low: S::ZERO, high: S::ZERO, value: 0.0, rate: 0.0 };
        Self { rates: rates.to_vec(), sides: vec![none; rates.len() + 1], n: 0 }
    }

    /// The rate at which a point branches off above a leaf, `eta_j(x) = sum_d w_d (max(x_d - u_jd, 0) +
    /// max(l_jd - x_d, 0))` (thesis section 5.5.3).
    pub(crate) fn of_leaf<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        table: Table<'_, S>,
        leaf: NodeId,
        x: &[X],
    ) -> f64 {
        if let Some((low, high)) = tree.extents.find(leaf) {
            self.start(x, low, high);
            return self.settle();
        }
        let mut rows = tree.arena.leaf_rows(leaf).map(|row| table.row(row));
        let first = rows.next().expect("a leaf holds rows");
        self.start(x, first, first);
        rows.for_each(|row| self.include(row));
        self.settle()
    }

    /// Sets the rates of branching off along a path, whose last stop is a leaf.
    pub(crate) fn of_path<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        table: Table<'_, S>,
        x: &[X],
        stops: &mut [Stop],
    ) {
        for stop in &mut *stops {
            stop.branch = Branch::Never;
        }
        let Some((leaf, splits)) = stops.split_last_mut() else { return };
        let mut rate = self.of_leaf(tree, table, leaf.node, x);
        leaf.set_rate(rate);
        let mut below = leaf.node;
        for stop in splits.iter_mut().rev() {
            if rate == 0.0 {
                break;
            }
            rate = self.of_parent(tree, table, stop.node, below);
            stop.set_rate(rate);
            below = stop.node;
        }
    }

    /// Goes on from a node's box to its parent's.
    fn of_parent<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        table: Table<'_, S>,
        parent: NodeId,
        child: NodeId,
    ) -> f64 {
        if let Some((low, high)) = tree.extents.find(parent) {
            return self.retain(|side| (low[side.dimension as usize], high[side.dimension as usize]));
        }
        if let Kind::Split(left, right) = tree.arena.kind(parent) {
            let sibling = if left == child { right } else { left };
            tree.arena.for_each_row(sibling, |row| self.include(table.row(row)));
        }
        self.settle()
    }

    /// Notes the dimensions in which a point lies outside a box.
    fn start<X: Scalar>(&mut self, x: &[X], low: &[S], high: &[S]) {
        const LANES: usize = 8;
        self.n = 0;
        let (x_chunks, x_rest) = x.as_chunks::<LANES>();
        let (low_chunks, low_rest) = low.as_chunks::<LANES>();
        let (high_chunks, high_rest) = high.as_chunks::<LANES>();
        let chunks = x_chunks.iter().zip(low_chunks).zip(high_chunks);
        for (i, ((x, low), high)) in chunks.enumerate() {
            // A byte a dimension, so that all are compared at once; few differ.
            let mut outside = [0; LANES];
            for lane in 0..LANES {
                outside[lane] = u8::from((x[lane] < X::of(low[lane])) | (x[lane] > X::of(high[lane])));
            }
            let mut bits = u64::from_le_bytes(outside);
            while bits != 0 {
                let lane = bits.trailing_zeros() as usize / 8;
                bits &= bits - 1;
                self.note(i * LANES + lane, x[lane], low[lane], high[lane]);
            }
        }
        let first = x_chunks.len() * LANES;
        for (i, ((&x, &low), &high)) in x_rest.iter().zip(low_rest).zip(high_rest).enumerate() {
            if x < X::of(low) || x > X::of(high) {
                self.note(first + i, x, low, high);
            }
        }
    }

    fn note<X: Scalar>(&mut self, dimension: usize, value: X, low: S, high: S) {
        let rate = self.rates[dimension];
        self.sides[self.n] = Side { dimension: dimension as u32, low, high, value: value.into(), rate };
        self.n += usize::from(rate > 0.0);
    }

    /// Makes the box hold a row.
    fn include(&mut self, row: &[S]) {
        for side in &mut self.sides[..self.n] {
            let value = row[side.dimension as usize];
            side.low = if value < side.low { value } else { side.low };
            side.high = if value > side.high { value } else { side.high };
        }
    }

    /// The rate at which a point branches off above the box; drops the dimensions in which it lies inside.
    fn settle(&mut self) -> f64 {
        self.retain(|side| (side.low, side.high))
    }

    /// The same after the box grew to other bounds.
    fn retain(&mut self, bounds: impl Fn(&Side<S>) -> (S, S)) -> f64 {
        let sides = &mut self.sides[..self.n];
        let (mut n, mut sum) = (0, 0.0);
        for i in 0..sides.len() {
            let side = sides[i];
            let (low, high) = bounds(&side);
            let (below, above) = (low.into() - side.value, side.value - high.into());
            let excess = if below > above { below } else { above };
            let outside = excess > 0.0;
            sum += side.rate * if outside { excess } else { 0.0 };
            // Written always and counted if so, so that nothing depends on a branch.
            sides[n] = Side { low, high, ..side };
            n += usize::from(outside);
        }
        self.n = n;
        sum
    }
}
