//! Small tables with categories, on which samplers are compared with the exact posterior.

use crate::control::{Control, Threads};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;

const NAN: f64 = f64::NAN;

fn table(x: &[f64], n_categories: &[u32]) -> SortedColumns {
    let rows = Rows::from_f64_with_missing(x, n_categories.len()).unwrap();
    let rows = rows.with_categories(n_categories).unwrap();
    SortedColumns::new(rows, &Threads::new(1), &Control::new()).unwrap()
}

/// Tables of five rows and two features, of which the first has three categories. In the second table one of them is that
/// of missing values, numbers are missing too, and two rows are equal.
pub(crate) fn tables() -> [SortedColumns; 2] {
    let complete = [0.0, 1.0, 1.0, 2.0, 2.0, 1.0, 0.0, 3.0, 1.0, 1.0];
    let missing = [0.0, 1.0, NAN, 2.0, 1.0, NAN, NAN, 2.0, 1.0, 3.0];
    [table(&complete, &[3, 0]), table(&missing, &[2, 0])]
}

/// Seven rows of four features: seven categories, so that rules are of one against the others; four of six categories,
/// of which a node does not have all; numbers; and a single category.
pub(crate) fn wide_table() -> SortedColumns {
    let x = [
        [0.0, 0.0, 0.3, 0.0],
        [1.0, 0.0, 0.9, 0.0],
        [2.0, 2.0, -4.0, 0.0],
        [3.0, NAN, 0.7, 0.0],
        [5.0, 3.0, 0.2, 0.0],
        [5.0, 3.0, 0.2, 0.0],
        [6.0, 2.0, 1.5, 0.0],
    ];
    table(x.as_flattened(), &[7, 4, 0, 1])
}
