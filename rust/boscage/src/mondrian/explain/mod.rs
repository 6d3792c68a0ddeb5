//! Contributions of features to the predictions of Mondrian forests: Shapley values, and terms of splits.
//!
//! The path of a test row through a tree has *stops*, at which the row may branch off. A posterior says what
//! a tree adds to the forest's prediction, given these stops or the first few of them
//! ([`TreeContributions`]). Both kinds of contributions follow from that.
//!
//! - `path`: the prediction with one more stop, less that without it, belongs to the feature of the split
//!   between the two. The base is the prediction at the root.
//! - `shapley`: of the trees' leaves, and of what a row's own cell adds (see `crate::explain`).

mod path;
mod shapley;

pub(crate) use path::of_paths;
pub(crate) use shapley::{covered_trees, shapley};

use crate::data::Scalar;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::statistics::Statistics;

/// What each tree adds to a forest's prediction.
pub(crate) trait TreeContributions<P: Statistics>: Sync {
    /// Memory, and what successive test rows have in common.
    type Buffers: Default + Send;

    /// How many numbers a prediction has.
    fn n_outputs(&self) -> usize;

    /// Writes what a tree adds to each output for a test row with these stops, of which there is one or more.
    fn of_tree<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, P>,
        stops: &[Stop],
        buffers: &mut Self::Buffers,
        out: &mut [f64],
    );
}
