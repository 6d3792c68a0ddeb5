//! A sweep over all trees of a sum (Algorithm 4.1, lines 5 to 8): `normal` for normal leaves, `general` for leaves of any
//! kind.
//!
//! Both take a tree out of the sum (line 6), have a kernel change it (line 7), and draw its leaf values (line 8). `normal`
//! keeps residuals (eq. 4.7) and sums them by leaf in the pass that brings them up to date with the tree before, so that a
//! step of grow and prune costs little more than one pass over the rows.

pub(crate) mod general;
pub(crate) mod normal;
