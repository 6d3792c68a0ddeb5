//! How much each feature adds to a prediction.
//!
//! A *contribution* belongs to a row, a feature and an output. Contributions and a base add up to the
//! prediction.
//!
//! *Shapley values.* Suppose that only the features in a set `S` of a row are known. Where a tree splits on
//! another feature, it goes both ways, in proportion to the training rows on the two sides (the
//! path-dependent game of Lundberg et al. 2020). For a leaf, let `o_i = 1` if the row meets all conditions on
//! feature `i` on the way to the leaf, else 0, and let `z_i` be the product of the shares of rows that meet
//! each of these conditions. The tree then predicts
//!
//! `v(S) = sum over leaves of value * prod_{i in S} o_i * prod_{i not in S} z_i`.
//!
//! A Shapley value is a mean over the number of features that are known before. So it is an integral over the
//! probability `t` that each of the others is known (Owen 1972). A leaf contributes
//!
//! `phi_i = value * (o_i - z_i) * integral_0^1 prod_{j != i} (t o_j + (1 - t) z_j) dt`.
//!
//! The product is a polynomial in `t`, which Gauss-Legendre quadrature integrates exactly (`quadrature`). Its
//! values at the nodes of the quadrature are passed down a tree, and sums over leaves are passed up
//! (`shapley`), as in Linear Tree SHAP (Yu et al. 2022). The time is proportional to the number of tree nodes
//! times half the number of different features on a path; Tree SHAP takes the square of the depth for each
//! leaf. All terms are products of numbers between 0 and 1, so there is no division by a number that may be
//! 0.
//!
//! *A row's own cell.* For a row outside the box of its leaf's training rows, a Mondrian tree predicts as if
//! the row had a cell of its own. That cell has no training rows. It is reached only if all features are
//! known in which the row lies outside the box. What it adds to the leaf's prediction is shared out among
//! these features and those of the path by the same game.

pub(crate) mod covered_tree;
mod quadrature;
pub(crate) mod shapley;

use crate::error::{Result, check_room};

/// Contributions of features to the predictions of some rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Contributions {
    /// What is added to the contributions: one number for each output, or for each row and output.
    pub base: Vec<f64>,
    /// Row by row, feature by feature, output by output.
    pub values: Vec<f64>,
}

/// A tree whose leaves hold what they add to a prediction, as parallel arrays over its nodes in preorder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LeafTree {
    /// Index of the left child; -1 at a leaf.
    pub children_left: Vec<i32>,
    /// Index of the right child; -1 at a leaf.
    pub children_right: Vec<i32>,
    /// Index of the parent; -1 at the root.
    pub parent: Vec<i32>,
    /// Feature of the cut; -1 at a leaf.
    pub feature: Vec<i32>,
    /// Rows with `x[feature] <= threshold` go left; NaN at a leaf.
    pub threshold: Vec<f64>,
    /// Whether missing values go left at each node; false at leaves.
    pub missing_go_to_left: Vec<bool>,
    /// Number of training rows.
    pub cover: Vec<f64>,
    /// `n_nodes x` [`LeafTree::n_values`]; 0 at splits.
    pub values: Vec<f64>,
    /// How many numbers a leaf adds to.
    pub n_values: usize,
}

impl Contributions {
    /// Checks that there is room for some numbers, and for a copy of them.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn check_room(n_rows: usize, n_features: usize, n_outputs: usize) -> Result<()> {
        let n_values = n_rows.saturating_mul(n_features).saturating_mul(n_outputs);
        check_room("contributions", n_values.saturating_mul(2 * size_of::<f64>()))
    }

    pub(crate) fn zeros(n_bases: usize, n_values: usize) -> Self {
        Self { base: vec![0.0; n_bases], values: vec![0.0; n_values] }
    }

    /// Those of blocks of rows that have the same base, in order.
    pub(crate) fn concat(blocks: Vec<Self>) -> Self {
        let base = blocks.first().map(|block| block.base.clone()).unwrap_or_default();
        Self { base, values: blocks.into_iter().flat_map(|block| block.values).collect() }
    }
}
