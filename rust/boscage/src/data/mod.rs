//! Data: checked views of the caller's arrays, and the tables that trees read.
//!
//! - `rows` checks values once: they are finite. NaN stands for a missing value only in rows of the
//!   constructors that allow it. Mondrian forests complete such rows before trees read them.
//! - `sparse_row` is a row of which most values are 0.
//! - `sorted` holds the rank of each value among the distinct values of its feature. Bayesian trees and BART compare
//!   ranks, and need a threshold's value only for the user. Missing values have ranks, too.
//! - `categories` are the rules by which trees divide the categories of a feature; each is a column of zeros and ones.
//! - `splits` are what finished trees of these models hold in place of ranks.
//! - `table` is the layout in which Mondrian trees read values, by row or by feature.
//! - `labels` are the names of classes.
//! - `copies` tells rows that were repeated from those that equal others by chance.
//! - `weights` adds the weights of rows.

pub(crate) mod categories;
pub(crate) mod copies;
pub(crate) mod labels;
pub(crate) mod rows;
pub(crate) mod sorted;
pub(crate) mod sparse_row;
pub(crate) mod splits;
pub(crate) mod table;
pub(crate) mod weights;

pub use labels::Label;
pub use rows::{Rows, Scalar};
pub use sparse_row::SparseRow;
pub(crate) use table::{Table, fetch, transpose};
pub(crate) use weights::{RowTargets, Weight};

/// Whether a value is on the right of a cut: `x <= threshold` is on the left, all else on the right.
/// Inserting, fitting, predicting and exported trees share this rule, for values and for ranks.
#[inline]
pub(crate) fn goes_right<T: Copy + PartialOrd>(value: T, threshold: T) -> bool {
    value > threshold
}

/// [`goes_right`] of a value that may be missing (NaN), which goes to a side of its own.
#[inline]
#[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN is not above a threshold, and not below it either")]
pub(crate) fn value_goes_right(value: f64, threshold: f64, missing_right: bool) -> bool {
    if missing_right { !(value <= threshold) } else { goes_right(value, threshold) }
}

/// The number of a row in the forest's table.
pub(crate) type RowId = u32;
