//! Rules that choose the hyperparameters `mu_H`, `gamma_1`, `gamma_2` and `sigma_y^2` of the regression
//! posterior.
//!
//! - `heuristic` is the rule of thesis section 6.3.2.
//! - `marginal_likelihood` maximises the marginal likelihood, which the same section calls ideal and which
//!   belief propagation computes. It judges each tree alone.
//! - `leave_one_out`, the default, goes beyond the thesis: it judges the predictions of the whole forest.
//!
//! `choice` takes a rule to the forest of all rows or, if these are many, of some of them.
//!
//! Whatever the rule, `far_prior` then sets the variance of the prior far away from all data to that of the
//! targets.

pub(crate) mod choice;
mod coarse_rate;
pub(crate) mod far_prior;
pub(crate) mod heuristic;
mod joint_trial;
pub(crate) mod leave_one_out;
mod left_out_rows;
pub(crate) mod marginal_likelihood;
mod search;
pub(crate) mod trial;
mod without_parts;
