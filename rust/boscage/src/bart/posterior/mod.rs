//! The posterior as drawn sums of trees: predictions, exports and explanations; the public models.
//!
//! A prediction is the sum over the trees of a draw (eqs. 4.1 and 4.2), for each draw that was kept.
//!
//! - `export` returns drawn trees as arrays; `explain` divides their predictions among features.
//! - `regressor`, `classifier` and `sum_of_trees` are the public models: each runs chains with its response and
//!   leaves, and predicts from their draws.

pub(crate) mod classifier;
mod explain;
pub(crate) mod export;
pub(crate) mod regressor;
pub(crate) mod sum_of_trees;
