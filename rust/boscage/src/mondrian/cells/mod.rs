//! A forest whose rows are shared out by cell: nobody needs to hold all rows, and the forest is the same, bit for bit.
//!
//! The cuts of a cell follow from the tree's key and the sides taken on the way to the cell, and the subtree below it from
//! these and the cell's own rows (`docs/keyed-mondrian.md`). So the first cuts of each tree are known before any row is seen,
//! and whoever holds the rows of a cell can draw all that lies below it.
//!
//! 1. A [`CellPlan`](plan::CellPlan) has a *top* for each tree (`top`): its splits and skipped cuts down to some cells, and
//!    the owner of each cell. It is made from counts of rows (`counts`), which are summed over the holders of rows: a cut
//!    with rows on both sides is a split, and any other is skipped. A node that the stopping rule pauses is not cut, so that
//!    its rows stay together. Small nodes are not cut either.
//! 2. The plan sends each row to the owners of its cells. Each owner grows the subtrees of its cells
//!    ([`CellShare`](share::CellShare)).
//! 3. Owners exchange summaries of their subtrees' roots (`summary`): numbers of rows, boxes and statistics. From these each
//!    owner makes the tops of all trees, with stubs in place of other owners' subtrees. So the owner of a test row's cell has
//!    the row's whole path.
//! 4. What else a posterior knows of the roots is exchanged in the same way (`regression::cells`, for one).
//!
//! The forest does not depend on which cells are chosen, as long as no node above them is paused.

pub(crate) mod counts;
pub(crate) mod plan;
pub(crate) mod share;
pub(crate) mod statistics;
pub(crate) mod summary;
pub(crate) mod top;

#[cfg(test)]
pub(crate) mod test_data;
#[cfg(test)]
mod tests;
