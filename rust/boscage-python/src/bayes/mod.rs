//! Classes of Bayesian trees.

pub(crate) mod classifier;
pub(crate) mod regressor;
pub(crate) mod settings;
