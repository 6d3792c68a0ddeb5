//! Feature rates and feature maps learned from targets, before the first cut.
//!
//! A Mondrian process cuts features that say nothing about the targets as often as those that matter, the failure mode of
//! thesis section 6.5.4. Here rates `w_d`, and where along a feature they lie, are learned first; the process itself looks at
//! no target. Extremely randomised trees (`extra_trees`) or trees with best splits (`best_split_trees`) make choices;
//! `cut_likelihood` finds the measure under which a Mondrian process would most likely have chosen alike, on bins of each
//! feature (`binned_axis`); `metric_learning` moves that measure until near rows have near targets; `learn` does all of it.

pub(crate) mod best_split_trees;
pub(crate) mod binned_axis;
pub(crate) mod cut_likelihood;
pub(crate) mod extra_trees;
pub(crate) mod learn;
pub(crate) mod metric_learning;
