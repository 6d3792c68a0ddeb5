//! The data boxes of nodes (`B^x_j` in the thesis): for each coordinate the least and the greatest value of a node's rows.
//!
//! - `box_rule` says which nodes store theirs.
//! - `node_boxes` stores them.
//! - `box_moves` is what changes as rows come and leave.

pub(crate) mod box_moves;
pub(crate) mod box_rule;
pub(crate) mod node_boxes;
