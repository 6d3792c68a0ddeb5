//! Backfitting: a sweep over all trees of a sum (Algorithm 4.1, lines 5 to 8).
//!
//! For each tree, a sweep removes the tree from the sum (line 6), has a kernel change it (line 7), and draws
//! its leaf values (line 8). `general` does this for leaves of any kind. `normal` is the faster form for
//! normal leaves: it keeps the residuals (eq. 4.7), and applies the change of the previous tree in the same
//! pass over the rows that sums them by leaf of the current one. A step of grow and prune therefore costs
//! little more than one pass over the rows.

pub(crate) mod general;
pub(crate) mod normal;
