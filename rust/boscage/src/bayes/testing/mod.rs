//! Exact posteriors on small data, for the tests of the samplers.
//!
//! `enumerate` computes the marginal likelihood, the posterior of the root's cut and the posterior of every
//! tree, by a recursion over the sets of rows that cuts can make. `visit_frequencies` compares these
//! probabilities with how often a chain visits each tree, with errors that allow for the dependence of draws.

pub(crate) mod categories;
pub(crate) mod enumerate;
pub(crate) mod missing_values;
pub(crate) mod visit_frequencies;
