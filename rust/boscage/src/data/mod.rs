//! Data: checked views of the caller's arrays, tables as trees read them, labels.

pub(crate) mod labels;
pub(crate) mod rows;
pub(crate) mod sorted_column;
pub(crate) mod sorted_columns;
pub(crate) mod table;
pub(crate) mod ties;

pub use labels::Label;
pub use rows::{Rows, Scalar};
pub(crate) use table::{Table, fetch, transpose};

/// The one rule that sends a value to a side of a cut: `x <= threshold` goes left, all else right. Growing, routing,
/// predicting and exported trees follow it, on values as on ranks.
#[inline]
pub(crate) fn goes_right<T: Copy + PartialOrd>(value: T, threshold: T) -> bool {
    value > threshold
}

/// The number of a row in the forest's table.
pub(crate) type RowId = u32;
