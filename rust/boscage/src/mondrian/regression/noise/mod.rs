//! Noise that is not one number: it differs from node to node (`local_noise`), and has heavier tails than a Gaussian
//! (`noise_tails`). Both go beyond the thesis, whose noise variance `sigma_y^2` (eq. 6.1) is the same everywhere.

pub(crate) mod local_noise;
pub(crate) mod noise_tails;
