//! Forests without rows: they predict by their trees' own cuts, and learn no more.
//!
//! A forest keeps its rows because updates need them. Predictions that follow the trees' own cuts need less of a leaf: its
//! statistics, its number of rows, and, if it is paused, the box of its rows (`prediction::path`). Without rows a forest takes
//! less memory where leaves are large, and can be grown from more rows than memory holds:
//!
//! 1. A plan of cells (`cells::plan`) is made from counts of rows, block by block of a file.
//! 2. The cells are grown group by group, in the plan's order. One pass over the file finds the rows of a group
//!    ([`CellPlan::rows_of`](crate::CellPlan::rows_of)), from which a share of cells (`cells::share`) grows its subtrees. These are
//!    written down ([`TreeRecord`](record::TreeRecord)), and the rows are dropped.
//! 3. A tree is made from its record once its last cell has come ([`Freezer`](freezer::Freezer)).
//!
//! A record has no cuts: these follow from the tree's key and from which cuts separate rows (`docs/keyed-mondrian.md`). Model files
//! hold the same records. Predictions are those of the forest with rows, bit for bit, whatever the blocks and groups are.

pub(crate) mod forest;
pub(crate) mod freezer;
pub(crate) mod posterior;
pub(crate) mod record;

#[cfg(test)]
mod tests;
