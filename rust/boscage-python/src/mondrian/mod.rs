//! Classes of Mondrian forests, and what else a forest is made of: rates of features, substitutes, categories.

pub(crate) mod categories;
pub(crate) mod cell_plan;
pub(crate) mod cells;
pub(crate) mod classifier;
pub(crate) mod extra_trees;
pub(crate) mod feature_rates;
pub(crate) mod frozen;
pub(crate) mod hyperparameters;
pub(crate) mod missing;
pub(crate) mod regressor;
