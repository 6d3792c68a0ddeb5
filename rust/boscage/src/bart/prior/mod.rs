//! Priors beside those of trees: the noise variance, and split probabilities that are learned.

pub(crate) mod noise;
pub(crate) mod sparse;
