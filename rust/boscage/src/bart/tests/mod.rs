//! Tests that whole chains sample the right distributions, compared with exact answers and with the prior.

pub(crate) mod joint_law;
pub(crate) mod leaves;
pub(crate) mod limits;
pub(crate) mod posterior;
mod runs;
mod split_probabilities;
mod sums;
mod weights;
