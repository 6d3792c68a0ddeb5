//! Noise that is not one number: a factor by node, and heavier tails than a Gaussian's. Both go beyond the thesis, whose
//! noise variance `sigma_y^2` (eq. 6.1) is the same everywhere.

pub(crate) mod local_noise;
pub(crate) mod noise_tails;
