//! The posterior as sampled trees with weights: their export, predictions and explanations; the public models.
//!
//! Predictions are means over the trees by their weights (eq. 2.1 of section 2.3), of each tree those of the
//! leaf that contains the row.
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
