//! Rules that choose the hyperparameters `mu_H`, `gamma_1`, `gamma_2` and `sigma_y^2` of the regression posterior.
//!
//! `heuristic` is that of thesis section 6.3.2. The same section names the marginal likelihood, a by-product of belief
//! propagation, as the better criterion: `marginal_likelihood` maximises it. It judges each tree alone. `leave_one_out`, the
//! default, goes beyond the thesis and judges the forest as it predicts. `far_prior` gives the prior, whatever the rule, the
//! targets' own variance far away from all data.

pub(crate) mod far_prior;
pub(crate) mod heuristic;
pub(crate) mod leave_one_out;
mod left_out_rows;
pub(crate) mod marginal_likelihood;
mod search;
