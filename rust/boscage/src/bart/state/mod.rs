//! A tree of the sum as a chain holds it, and the passes over its rows.
//!
//! A `tree` knows the leaf of every row, as a number of 16 bits, and no rows by node: what a sweep needs are sums over
//! leaves, which `row_passes` gathers in the order of rows (`row_passes_simd` several rows at once where leaves are few).
//! `varying` finds the features that do not vary in a node, `feature_order` draws features by weight until one varies, and
//! `subtree` hands trees and their subtrees to the samplers of chapter 3.

pub(crate) mod feature_order;
pub(crate) mod row_passes;
pub(crate) mod row_passes_simd;
pub(crate) mod subtree;
pub(crate) mod tree;
pub(crate) mod varying;
