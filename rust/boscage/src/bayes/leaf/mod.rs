//! Leaf models: conjugate priors for classes and for numbers.

pub(crate) mod dirichlet;
pub(crate) mod model;
pub(crate) mod normal;
