//! Priors beside those of trees: the variance of the noise (section 4.2.4), and split probabilities of features that are
//! learnt (Linero 2018), for the variable selection that section 4.5 proposes.

pub(crate) mod noise;
pub(crate) mod sparse;
