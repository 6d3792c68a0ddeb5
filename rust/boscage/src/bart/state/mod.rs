//! The state of one tree of the sum in a chain, and the passes over its rows.
//!
//! A `tree` stores the number of its leaf for every row, in 16 bits, instead of lists of rows by node. A
//! sweep needs sums over leaves, which one pass over the rows in order computes: `row_passes`, or
//! `row_passes_simd` for several rows at once in trees with few leaves. Reading rows in order is faster than
//! reading them by node, and changing a tree only relabels rows.
//!
//! `varying` finds the features that do not vary in a node. `feature_order` draws features by weight until
//! one varies. `subtree` converts trees and subtrees to the form of the samplers of chapter 3, and back.

pub(crate) mod feature_order;
pub(crate) mod row_passes;
pub(crate) mod row_passes_simd;
pub(crate) mod subtree;
pub(crate) mod tree;
pub(crate) mod varying;
