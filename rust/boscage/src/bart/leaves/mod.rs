//! Leaves of a sum of trees: how likely the rows of a leaf are, its value integrated out (eq. 4.9), and draws of the value.
//!
//! `model` is the trait for leaves of any kind. `normal` has the closed forms for `R_n ~ N(mu, sigma^2)` and
//! `mu ~ N(0, sigma_mu^2)` (eq. 4.5 with `m_mu = 0`). `poisson` has counts and `multinomial` several classes, both on the
//! scale of logarithms (Murray 2021); section 4.5 mentions such extensions. `statistics` is what the kernels ask for:
//! sums over the rows of leaves, which add up, so that no step looks at more rows than it moves.

pub(crate) mod model;
pub(crate) mod multinomial;
pub(crate) mod normal;
pub(crate) mod poisson;
pub(crate) mod statistics;
