//! Priors beside those of trees: the variance of the noise (section 4.2.4), and split probabilities of features that are
//! learnt (Linero 2018), which the thesis suggests for variable selection (section 4.5).

pub(crate) mod noise;
pub(crate) mod sparse;
