//! Rules that choose the hyperparameters of the regression posterior.

pub(crate) mod heuristic;
pub(crate) mod leave_one_out;
mod left_out_rows;
pub(crate) mod marginal_likelihood;
mod search;
