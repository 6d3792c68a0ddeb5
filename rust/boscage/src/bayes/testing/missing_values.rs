//! Small tables with missing values, on which samplers are compared with the exact posterior.

use crate::control::{Control, Threads};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;

const NAN: f64 = f64::NAN;

fn table(x: &[f64]) -> SortedColumns {
    let rows = Rows::from_f64_with_missing(x, 2).unwrap();
    SortedColumns::new(rows, &Threads::new(1), &Control::new()).unwrap()
}

/// Tables of five rows and two features. In the first, values of both features are missing, and two rows are equal. In
/// the second, one feature is complete.
pub(crate) fn tables() -> [SortedColumns; 2] {
    let both = [0.0, 1.0, NAN, 2.0, 1.0, 0.5, NAN, 2.0, 3.0, NAN];
    let one = [0.0, NAN, 1.0, 2.0, 1.0, 0.5, 3.5, NAN, 3.0, 2.0];
    [table(&both), table(&one)]
}

/// Seven rows of four features: with missing values and ties, complete, with a single value that is not missing in all
/// rows, and with none. Two rows are equal.
pub(crate) fn wide_table() -> SortedColumns {
    let x = [
        [0.0, 1.0, 7.0, NAN],
        [NAN, 1.0, NAN, NAN],
        [1.0, 2.0, 7.0, NAN],
        [3.0, 0.5, NAN, NAN],
        [NAN, 2.5, 7.0, NAN],
        [NAN, 2.5, 7.0, NAN],
        [0.0, 4.0, 7.0, NAN],
    ];
    let rows = Rows::from_f64_with_missing(x.as_flattened(), 4).unwrap();
    SortedColumns::new(rows, &Threads::new(1), &Control::new()).unwrap()
}
