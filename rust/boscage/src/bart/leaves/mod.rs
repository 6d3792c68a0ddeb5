//! Leaf models of sums of trees.

pub(crate) mod model;
pub(crate) mod multinomial;
pub(crate) mod normal;
pub(crate) mod poisson;
pub(crate) mod statistics;
