//! Leaves of a sum of trees: the marginal likelihood of the rows of a leaf, with its value integrated out
//! (eq. 4.9), and draws of the value from its posterior.
//!
//! `model` is the trait for leaves of any kind. `normal` has the closed forms for partial residuals
//! `R_n ~ N(mu, sigma^2)` and the prior `mu ~ N(0, sigma_mu^2)` (eq. 4.5 with `m_mu = 0`), and
//! `weighted_normal` is the same for rows with weights. `poisson` is for
//! counts and `multinomial` for several classes; both have log-linear sums of trees (Murray 2021), among the
//! extensions that section 4.5 mentions.
//!
//! Kernels see leaves only through `statistics`: sums over the rows of a leaf, which can be added and
//! subtracted, so that a step reads only the rows that it moves.

pub(crate) mod model;
pub(crate) mod multinomial;
pub(crate) mod normal;
pub(crate) mod poisson;
pub(crate) mod statistics;
pub(crate) mod weighted_normal;
