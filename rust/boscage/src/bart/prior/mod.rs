//! Priors other than that of trees.
//!
//! `noise` is the conjugate prior of the noise variance, `sigma^2 ~ nu lambda / chi^2_nu`, with `lambda` such
//! that `sigma` is below an over-estimate with a given probability (section 4.2.4), and its update given the
//! residuals. `sparse` is a Dirichlet prior of the split probabilities of features (Linero 2018). It
//! concentrates cuts on few features, and so does the variable selection that section 4.5 proposes. `spread` is the
//! standard deviation of leaf values.

pub(crate) mod noise;
pub(crate) mod sparse;
pub(crate) mod spread;
