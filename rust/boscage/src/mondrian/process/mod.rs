//! The Mondrian process of one tree (thesis section 5.3.1), keyed: every cut is a function of the cell's key.
//!
//! A Mondrian process cuts a box after an exponential time of rate `sum_d w_d (u_d - l_d)`, in feature `d`
//! with probability proportional to `w_d (u_d - l_d)`, uniformly along it, and goes on in both halves
//! (Algorithm 5.2, lines 3 to 10). The thesis draws the process on the data's boxes, so that its cuts depend
//! on the rows. Here one process is fixed for each tree, on nested boxes that cover the whole feature space
//! (`domain`). A cell's next cut is a hash of the tree's key and the cell's path (`cell`). A tree is the
//! restriction of that process to its rows. Its law is `MT(lambda, D)` of Algorithms 5.1 and 5.2, by Poisson
//! thinning and projectivity, and it depends on the set of rows alone.
//!
//! - `feature_map` lets a feature's rate vary along the feature.
//! - `cut` has the cuts; with `data::goes_right` it decides on which side of a cut a value lies.
//! - `substitute` says what stands for a missing value, and `missing_values` completes rows with it.
//! - `categories` says where categories lie.

pub(crate) mod categories;
pub(crate) mod cell;
pub(crate) mod cut;
pub(crate) mod domain;
pub(crate) mod feature_map;
mod missing_values;
pub(crate) mod substitute;
mod sum_tree;
