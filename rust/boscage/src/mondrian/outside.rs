//! How far a point lies outside the boxes on its path.
//!
//! A node's box holds those of its children. So the dimensions in which a point lies outside a box are among
//! those in which it lies outside the child's, and once it lies inside, all boxes further up hold it: from the
//! leaf up, few boxes are looked at, and few dimensions of each.

use super::extents::row_of;
use super::route::Stop;
use super::statistics::Statistics;
use super::tree::Tree;
use crate::data::Scalar;
use crate::tree::{Kind, NodeId};

/// A point against a box that grows.
#[derive(Debug)]
pub(crate) struct Outside<S> {
    /// Rates of the features.
    rates: Vec<f64>,
    /// The first so many of the dimensions below are those in which the point may lie outside.
    n: usize,
    dimensions: Vec<u32>,
    low: Vec<S>,
    high: Vec<S>,
}

impl<S: Scalar> Outside<S> {
    pub(crate) fn new(rates: &[f64]) -> Self {
        let n = rates.len();
        Self {
            rates: rates.to_vec(),
            n: 0,
            dimensions: vec![0; n],
            low: vec![S::ZERO; n],
            high: vec![S::ZERO; n],
        }
    }

    /// The rate at which a point branches off above a leaf, `eta_j(x) = sum_d w_d (max(x_d - u_jd, 0) +
    /// max(l_jd - x_d, 0))` (thesis section 5.5.3).
    pub(crate) fn of_leaf<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        table: &[S],
        leaf: NodeId,
        x: &[X],
    ) -> f64 {
        if let Some((low, high)) = tree.extents.find(leaf) {
            self.start(x, low, high);
            return self.settle(x);
        }
        let mut rows = tree.arena.leaf_rows(leaf).map(|row| row_of(table, row, x.len()));
        let first = rows.next().expect("a leaf holds rows");
        self.start(x, first, first);
        rows.for_each(|row| self.include(row));
        self.settle(x)
    }

    /// Sets the rates of branching off along a path, whose last stop is a leaf.
    pub(crate) fn of_path<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        table: &[S],
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
            rate = self.of_parent(tree, table, stop.node, below, x);
            stop.set_rate(rate);
            below = stop.node;
        }
    }

    /// Goes on from a node's box to its parent's.
    fn of_parent<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        table: &[S],
        parent: NodeId,
        child: NodeId,
        x: &[X],
    ) -> f64 {
        if let Some((low, high)) = tree.extents.find(parent) {
            for i in 0..self.n {
                let d = self.dimensions[i] as usize;
                (self.low[i], self.high[i]) = (low[d], high[d]);
            }
        } else if let Kind::Split(left, right) = tree.arena.kind(parent) {
            let sibling = if left == child { right } else { left };
            tree.arena.for_each_row(sibling, |row| self.include(row_of(table, row, x.len())));
        }
        self.settle(x)
    }

    /// Notes the dimensions in which a point lies outside a box.
    fn start<X: Scalar>(&mut self, x: &[X], low: &[S], high: &[S]) {
        self.n = 0;
        for (d, ((&x, &rate), (&low, &high))) in
            x.iter().zip(&self.rates).zip(low.iter().zip(high)).enumerate()
        {
            // Written always and counted if so, so that nothing depends on a branch.
            (self.dimensions[self.n], self.low[self.n], self.high[self.n]) = (d as u32, low, high);
            self.n += usize::from(((x < X::of(low)) | (x > X::of(high))) & (rate > 0.0));
        }
    }

    /// Makes the box hold a row.
    fn include(&mut self, row: &[S]) {
        for i in 0..self.n {
            let value = row[self.dimensions[i] as usize];
            self.low[i] = if value < self.low[i] { value } else { self.low[i] };
            self.high[i] = if value > self.high[i] { value } else { self.high[i] };
        }
    }

    /// The rate at which a point branches off above the box; drops the dimensions in which it lies inside.
    fn settle<X: Scalar>(&mut self, x: &[X]) -> f64 {
        let (mut n, mut sum) = (0, 0.0);
        for i in 0..self.n {
            let (d, low, high) = (self.dimensions[i], self.low[i], self.high[i]);
            let value: f64 = x[d as usize].into();
            let (below, above) = (low.into() - value, value - high.into());
            let excess = if below > above { below } else { above };
            let outside = excess > 0.0;
            sum += self.rates[d as usize] * if outside { excess } else { 0.0 };
            (self.dimensions[n], self.low[n], self.high[n]) = (d, low, high);
            n += usize::from(outside);
        }
        self.n = n;
        sum
    }
}
