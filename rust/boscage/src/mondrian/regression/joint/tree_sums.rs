//! What the joint mean by the trees is made of: the sums of the rows' weights at every node.
//!
//! A leaf of one row has the weights of the row. So each tree has the sums of its splits and of its leaves of several rows.

use crate::control::Run;
use crate::data::RowId;
use crate::error::Result;
use crate::mondrian::joint::{Passes, Trees};
use crate::mondrian::tree::arena::{Arena, NodeId};

/// Columns of a trend whose sums are found side by side.
const LANES: usize = 8;

/// Each tree's share of the rows' weights, and their sums by tree and node; the same for the columns of a trend.
#[derive(Debug, Clone)]
pub(crate) struct TreeSums {
    of_rows: Sums,
    of_trees: Vec<NodeSums>,
    n_columns: usize,
}

/// Numbers for the targets, and in single precision for the columns: place after place.
#[derive(Debug, Clone, Default)]
struct Sums {
    weights: Vec<f64>,
    columns: Vec<f32>,
}

/// The sums of one tree: of splits by rank, and then of leaves of several rows.
#[derive(Debug, Clone)]
struct NodeSums {
    sums: Sums,
    n_splits: usize,
    /// The leaves by rank, in ascending order.
    leaves: Vec<u32>,
}

impl TreeSums {
    /// Given the rows' weights in their common order, and those of each column.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn new(
        trees: &Trees,
        order: &[RowId],
        (weights, columns): (&[f64], &[Vec<f64>]),
        run: &Run<'_>,
    ) -> Result<Self> {
        let n_columns = columns.len();
        let lanes: Vec<_> =
            columns.chunks(LANES).map(|some| in_lanes::<LANES>(some, weights.len())).collect();
        let of_targets = weights.as_chunks().0;
        let of_trees = trees.map(|passes| NodeSums::new(passes, (of_targets, &lanes), n_columns), run)?;
        let mut of_rows = Sums::default();
        let n = order.iter().max().map_or(0, |&row| row as usize + 1);
        of_rows.weights.resize(n, 0.0);
        of_rows.columns.resize(n * n_columns, 0.0);
        for (place, &row) in order.iter().enumerate() {
            let row = row as usize;
            of_rows.weights[row] = weights[place];
            for (to, column) in of_rows.columns[row * n_columns..][..n_columns].iter_mut().zip(columns) {
                *to = column[place] as f32;
            }
        }
        Ok(Self { of_rows, of_trees, n_columns })
    }

    /// The sum of the weights of a node's rows.
    pub(crate) fn sum(&self, (tree, arena): (usize, &Arena), node: NodeId) -> f64 {
        let (sums, place) = self.place((tree, arena), node);
        sums.weights[place]
    }

    /// The same for a column.
    pub(crate) fn column_sum(&self, (tree, arena): (usize, &Arena), node: NodeId, column: usize) -> f64 {
        let (sums, place) = self.place((tree, arena), node);
        f64::from(sums.columns[place * self.n_columns + column])
    }

    /// The sum at a node of a tree out of which a row is left, and in which rows that only this row separated are in one leaf.
    pub(crate) fn sum_without(&self, (tree, arena): (usize, &Arena), node: NodeId) -> f64 {
        if !node.is_leaf() {
            return self.sum((tree, arena), node);
        }
        in_any_order(arena.leaf_rows(node).map(|row| self.of_rows.weights[row as usize]))
    }

    /// The same for a column.
    pub(crate) fn column_sum_without(
        &self,
        (tree, arena): (usize, &Arena),
        node: NodeId,
        column: usize,
    ) -> f64 {
        if !node.is_leaf() {
            return self.column_sum((tree, arena), node, column);
        }
        let of_row = |row: RowId| f64::from(self.of_rows.columns[row as usize * self.n_columns + column]);
        in_any_order(arena.leaf_rows(node).map(of_row))
    }

    /// Where the sums of a node are.
    fn place(&self, (tree, arena): (usize, &Arena), node: NodeId) -> (&Sums, usize) {
        if node.is_leaf()
            && arena.n_rows(node) == 1
            && let Some(row) = arena.leaf_rows(node).next()
        {
            return (&self.of_rows, row as usize);
        }
        let own = &self.of_trees[tree];
        (&own.sums, own.place(node))
    }
}

impl NodeSums {
    fn new(passes: &Passes, (weights, lanes): (&[[f64; 1]], &[Vec<[f64; LANES]>]), n_columns: usize) -> Self {
        let leaves = passes.leaves_of_several();
        let of_weights = passes.sums(weights);
        let splits = of_weights.len() / 2;
        let kept = || {
            let leaves = leaves.iter().map(|&rank| 2 * rank as usize + 1);
            (0..splits).map(|rank| 2 * rank).chain(leaves)
        };
        let weights = kept().map(|index| of_weights[index][0]).collect();
        let mut columns = vec![0f32; n_columns * kept().count()];
        for (first, lanes) in lanes.iter().enumerate() {
            let first = first * LANES;
            let found = passes.sums(lanes);
            for (place, index) in kept().enumerate() {
                let to = &mut columns[place * n_columns..][..n_columns][first..];
                for (to, &sum) in to.iter_mut().zip(&found[index]) {
                    *to = sum as f32;
                }
            }
        }
        Self { sums: Sums { weights, columns }, n_splits: splits, leaves }
    }

    /// The place of a split, or of a leaf of several rows.
    fn place(&self, node: NodeId) -> usize {
        if !node.is_leaf() {
            return node.rank();
        }
        let among = self.leaves.binary_search(&(node.rank() as u32));
        self.n_splits + among.expect("a leaf of several rows has a place")
    }
}

/// At most `L` vectors side by side, with zeros for those that are lacking.
pub(super) fn in_lanes<const L: usize>(vectors: &[Vec<f64>], n: usize) -> Vec<[f64; L]> {
    (0..n)
        .map(|place| std::array::from_fn(|lane| vectors.get(lane).map_or(0.0, |vector| vector[place])))
        .collect()
}

/// A sum that does not depend on the order of its terms.
fn in_any_order(terms: impl Iterator<Item = f64>) -> f64 {
    let mut terms: Vec<f64> = terms.collect();
    terms.sort_unstable_by(f64::total_cmp);
    terms.iter().sum()
}
