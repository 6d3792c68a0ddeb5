//! Training rows sorted along each column, once for all trees.
//!
//! - `columns` is the table: the rank of each value among the distinct values of its column.
//! - `column` is one column, with the cuts that the prior of trees makes of it.
//! - `ranked_rows` holds the ranks of its rows; of sparse rows, where few are not 0, those of the rows that are
//!   not. `distinct_values` are what ranks stand for.
//! - `ties` lists the features in which rows share values, since only these can cease to vary in a node of several rows.

pub(crate) mod column;
pub(crate) mod columns;
mod distinct_values;
mod ranked_rows;
mod ties;
