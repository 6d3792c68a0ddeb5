//! Features in which rows share values.

use crate::data::sorted::column::SortedColumn;

/// The features with ties.
#[derive(Debug)]
pub(crate) struct Ties {
    /// Features with a single value.
    pub(crate) constant: Vec<u32>,
    /// Other features in which rows share values.
    pub(crate) varying: Vec<u32>,
}

impl Ties {
    pub(crate) fn new(columns: &[SortedColumn]) -> Self {
        let tied = (0..).zip(columns).filter(|(_, column)| column.has_ties());
        let (constant, varying): (Vec<_>, Vec<_>) = tied.partition(|(_, column)| column.n_values() == 1);
        let numbers = |columns: Vec<(u32, _)>| columns.into_iter().map(|(d, _)| d).collect();
        Self { constant: numbers(constant), varying: numbers(varying) }
    }
}

#[cfg(test)]
mod tests {
    use crate::control::{Control, Threads};
    use crate::data::Rows;
    use crate::data::sorted::columns::SortedColumns;

    #[test]
    fn features_with_ties_are_listed_and_their_uncommon_rows() {
        // One value, no ties, a rare value above and another below, and two equally frequent values.
        let rare = |i: u32| match i {
            5 => -1.0,
            2 => 3.0,
            _ => 0.0,
        };
        let row = |i: u32| [7.0, f64::from(i), rare(i), f64::from(i % 2)];
        let x: Vec<f64> = (0..16).flat_map(row).collect();
        let table =
            SortedColumns::new(Rows::from_f64(&x, 4).unwrap(), &Threads::new(1), &Control::new()).unwrap();
        let ties = table.ties();
        assert_eq!((&ties.constant[..], &ties.varying[..]), (&[0][..], &[2, 3][..]));
        let uncommon = [0, 1, 2, 3].map(|d| table.column(d).few_uncommon());
        let none: &[u32] = &[];
        assert_eq!(uncommon, [Some([none; 2]), None, Some([&[5], &[2]]), None]);
    }
}
