//! The posterior as sampled trees with weights: their export, predictions and explanations; the public models.
//!
//! A prediction is the weighted mean over the trees (eq. 2.1 of section 2.3) of the predictions of the leaves
//! that contain the row.
//!
//! - `weighted_trees` runs the samplers, gives the trees of islands (section 3.4.1.3) and chains their weights,
//!   and exports trees with their log posterior probabilities and diagnostics.
//! - `bayesian_trees` predicts from them for any kind of leaf; `explain` divides predictions among features.
//! - `classifier` and `regressor` are its public forms.

pub(crate) mod bayesian_trees;
pub(crate) mod classifier;
mod explain;
pub(crate) mod regressor;
pub(crate) mod weighted_trees;
