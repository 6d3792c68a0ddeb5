//! A sweep over all trees of a sum (Algorithm 4.1, lines 5 to 8).

pub(crate) mod general;
pub(crate) mod normal;
