//! Kernels: the ways in which a chain changes one tree.

pub(crate) mod context;
pub(crate) mod edit;
pub(crate) mod edit_proposal;
pub(crate) mod grow_prune;
pub(crate) mod particle_gibbs;
pub(crate) mod regrow;
pub(crate) mod shift;
pub(crate) mod shift_inner;
pub(crate) mod whole_tree;
