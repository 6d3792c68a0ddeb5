//! Feature rates and feature maps, learned from the targets before the first cut is drawn.
//!
//! A Mondrian process with rates `w_d` and feature maps `g_d` cuts a node along feature `d` with probability
//! proportional to `w_d` times the length of the node's box in the units of `g_d`. With equal rates it cuts
//! irrelevant features as often as relevant ones, the weakness that section 6.5.4 of the thesis names. This
//! module chooses rates and maps that depend on the targets. Given these, the process does not use targets,
//! so all its properties (extension, removal, exact prediction) are kept.
//!
//! - `screening` finds the features of a wide table that are worth learning.
//! - `binned_axis` divides each feature into bins. A measure has a mass for each bin, and so stands for a
//!   rate and a map.
//! - `extra_trees` (extremely randomised trees) and `best_split_trees` fit trees to the targets and record
//!   their cuts.
//! - `constant_features` are those that need not be looked at again below a node, and `uncommon` the rows that need to
//!   be, where most share a value.
//! - `cut_likelihood` computes the measure under which a Mondrian process makes the recorded cuts with the
//!   greatest likelihood.
//! - `metric_learning` changes this measure so that a kernel with the metric of the process predicts the
//!   targets well.
//! - `learn` runs all of these, and returns the candidates from which a trial chooses.

pub(crate) mod best_split_trees;
pub(crate) mod binned_axis;
pub(crate) mod constant_features;
pub(crate) mod cut_likelihood;
pub(crate) mod extra_trees;
pub(crate) mod learn;
pub(crate) mod metric_learning;
pub(crate) mod screening;
pub(crate) mod uncommon;
