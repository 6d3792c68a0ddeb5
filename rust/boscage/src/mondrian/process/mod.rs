//! The Mondrian process of one tree (thesis section 5.2), keyed: every cut is a function of the cell's key.

pub(crate) mod cell;
pub(crate) mod cut;
pub(crate) mod domain;
pub(crate) mod feature_map;
mod sum_tree;
