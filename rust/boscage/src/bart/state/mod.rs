//! A tree of the sum as a chain holds it, and the passes over its rows.

pub(crate) mod feature_order;
pub(crate) mod row_passes;
pub(crate) mod row_passes_simd;
pub(crate) mod subtree;
pub(crate) mod tree;
pub(crate) mod varying;
