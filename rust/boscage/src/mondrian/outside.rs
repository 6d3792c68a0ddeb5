//! How far a point lies outside the boxes on its path.
//!
//! A node's box holds those of its children. So the dimensions in which a point lies outside a box are among
//! those in which it lies outside the child's, and once it lies inside, all boxes further up hold it: from the
//! leaf up, few boxes are looked at, and few dimensions of each.

use super::extents::widen;
use super::route::Stop;
use super::statistics::Statistics;
use super::tree::Tree;
use crate::data::{Scalar, Table};
use crate::tree::{Kind, NodeId, RowId};

/// Features that are compared at a time: a few, so that some groups are soon done with, and enough for the
/// processor to do them all at once.
const LANES: usize = 8;

/// A point against a box that grows.
#[derive(Debug)]
pub(crate) struct Outside<S> {
    /// Rates of the features.
    rates: Vec<f64>,
    /// The box of a node that keeps none: up to date in the groups of features that are open.
    low: Vec<S>,
    high: Vec<S>,
    /// Groups of [`LANES`] features in which the point may lie outside. Features after the last whole group are
    /// always looked at.
    open: Vec<u32>,
    /// Room for rows that a box is made of.
    rows: Vec<RowId>,
}

impl<S: Scalar> Outside<S> {
    pub(crate) fn new(rates: &[f64]) -> Self {
        let box_of_none = vec![S::ZERO; rates.len()];
        Self {
            rates: rates.to_vec(),
            low: box_of_none.clone(),
            high: box_of_none,
            open: Vec::new(),
            rows: Vec::new(),
        }
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
            self.open_all();
            return eta(&mut self.open, &self.rates, x, low, high);
        }
        self.of_rows(table, tree.arena.leaf_rows(leaf), x)
    }

    /// The same for a leaf of some rows; 0 if there are none.
    pub(crate) fn of_rows<X: Scalar>(
        &mut self,
        table: Table<'_, S>,
        mut rows: impl Iterator<Item = RowId>,
        x: &[X],
    ) -> f64 {
        let Some(first) = rows.next() else { return 0.0 };
        self.open_all();
        self.low.copy_from_slice(table.row(first));
        self.high.copy_from_slice(table.row(first));
        rows.for_each(|row| self.include(table.row(row)));
        eta(&mut self.open, &self.rates, x, &self.low, &self.high)
    }

    fn open_all(&mut self) {
        self.open.clear();
        self.open.extend(0..(self.rates.len() / LANES) as u32);
    }

    /// Sets the rates of branching off along a path whose last stop is a leaf and where there are none yet.
    pub(crate) fn of_path<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        table: Table<'_, S>,
        x: &[X],
        stops: &mut [Stop],
    ) {
        let Some((leaf, splits)) = stops.split_last_mut() else { return };
        let mut rate = self.of_leaf(tree, table, leaf.node, x);
        leaf.set_rate(rate);
        let mut below = leaf.node;
        for stop in splits.iter_mut().rev() {
            if rate == 0.0 {
                break;
            }
            rate = self.of_parent(tree, table, x, stop.node, below);
            stop.set_rate(rate);
            below = stop.node;
        }
    }

    /// Goes on from a node's box to its parent's.
    fn of_parent<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        table: Table<'_, S>,
        x: &[X],
        parent: NodeId,
        child: NodeId,
    ) -> f64 {
        if let Some((low, high)) = tree.extents.find(parent) {
            return eta(&mut self.open, &self.rates, x, low, high);
        }
        if let Kind::Split(left, right) = tree.arena.kind(parent) {
            let sibling = if left == child { right } else { left };
            let mut rows = std::mem::take(&mut self.rows);
            tree.arena.collect_rows(sibling, &mut rows);
            rows.drain(..).for_each(|row| self.include(table.row(row)));
            self.rows = rows;
        }
        eta(&mut self.open, &self.rates, x, &self.low, &self.high)
    }

    /// Makes the box hold a row.
    fn include(&mut self, row: &[S]) {
        let (rows, row_rest) = row.as_chunks::<LANES>();
        let (lows, low_rest) = self.low.as_chunks_mut::<LANES>();
        let (highs, high_rest) = self.high.as_chunks_mut::<LANES>();
        for &group in &self.open {
            let group = group as usize;
            widen(&mut lows[group], &mut highs[group], &rows[group], &rows[group]);
        }
        widen(low_rest, high_rest, row_rest, row_rest);
    }
}

/// The rate at which a point branches off above a box; closes the groups in which it lies inside.
fn eta<S: Scalar, X: Scalar>(open: &mut Vec<u32>, rates: &[f64], x: &[X], low: &[S], high: &[S]) -> f64 {
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (lows, low_rest) = low.as_chunks::<LANES>();
    let (highs, high_rest) = high.as_chunks::<LANES>();
    let (rates, rates_rest) = rates.as_chunks::<LANES>();
    let (mut n, mut sums) = (0, [0.0; LANES]);
    for i in 0..open.len() {
        let group = open[i] as usize;
        let apart = apart(&rates[group], &xs[group], &lows[group], &highs[group]);
        let mut bits = 0;
        for (sum, apart) in sums.iter_mut().zip(apart) {
            *sum += apart;
            bits |= apart.to_bits();
        }
        // Written always and counted if so, so that nothing depends on a branch.
        open[n] = group as u32;
        n += usize::from(bits != 0);
    }
    open.truncate(n);
    let mut sum: f64 = sums.iter().sum();
    for (((&rate, &x), &low), &high) in rates_rest.iter().zip(x_rest).zip(low_rest).zip(high_rest) {
        sum += apart(&[rate], &[x], &[low], &[high])[0];
    }
    sum
}

/// Weighted distances from a box, by feature: finite, not negative. Written in steps of one operation each, for
/// all lanes at once.
fn apart<const N: usize, S: Scalar, X: Scalar>(
    rates: &[f64; N],
    x: &[X; N],
    low: &[S; N],
    high: &[S; N],
) -> [f64; N] {
    let x: [f64; N] = x.map(Into::into);
    let low: [f64; N] = low.map(Into::into);
    let high: [f64; N] = high.map(Into::into);
    let mut apart = [0.0; N];
    for i in 0..N {
        let (below, above) = (low[i] - x[i], x[i] - high[i]);
        let farther = if below > above { below } else { above };
        apart[i] = if farther > 0.0 { farther } else { 0.0 };
    }
    for i in 0..N {
        // So that no feature without a rate counts, however far away the point is.
        apart[i] = rates[i] * if apart[i] < f64::MAX { apart[i] } else { f64::MAX };
    }
    apart
}
