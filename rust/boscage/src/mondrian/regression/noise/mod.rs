//! Noise that is not one number. This goes beyond the thesis, whose noise variance `sigma_y^2` (eq. 6.1) is the same
//! everywhere.
//!
//! With that variance, intervals are too wide where targets are exact and too narrow where they are not, and one
//! outlier can cost hundreds of nats. Both are mended after the posterior of the means is known, from the distances
//! of rows to their leave-one-out predictions in predicted standard deviations, so that means do not change:
//!
//! - `local_noise`: node `j` has a factor `s_j`, smoothed down the tree, by which standard deviations are multiplied;
//! - `noise_tails`: each row comes from one of two Gaussians, `sum_k p_k N(b_k, f_k)` in these units, of which the
//!   wider one is rarer.

pub(crate) mod local_noise;
pub(crate) mod noise_tails;
