//! Tests that whole chains sample the right distributions, compared with exact answers and with the prior.

mod class_weights;
pub(crate) mod joint_law;
pub(crate) mod leaves;
pub(crate) mod limits;
mod posterior;
mod ranks;
mod runs;
pub(crate) mod setting;
mod split_probabilities;
mod sums;
mod weights;
