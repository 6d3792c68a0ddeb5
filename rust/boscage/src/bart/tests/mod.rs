//! Tests that whole chains sample the right distributions, compared with exact answers and with the prior.

pub(crate) mod features;
pub(crate) mod joint_law;
pub(crate) mod limits;
pub(crate) mod posterior;
mod weights;
