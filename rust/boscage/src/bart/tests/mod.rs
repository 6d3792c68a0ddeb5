//! Tests of the law of whole chains.

pub(crate) mod features;
pub(crate) mod joint_law;
pub(crate) mod limits;
pub(crate) mod posterior;
