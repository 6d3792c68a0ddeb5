//! Feature rates and feature maps learned from targets, before the first cut.

pub(crate) mod best_split_trees;
pub(crate) mod binned_axis;
pub(crate) mod cut_likelihood;
pub(crate) mod extra_trees;
pub(crate) mod learn;
pub(crate) mod metric_learning;
