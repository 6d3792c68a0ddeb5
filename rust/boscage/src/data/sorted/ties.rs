//! Features in which rows share values.

use crate::data::sorted::column::SortedColumn;

/// The features with ties.
#[derive(Debug)]
pub(crate) struct Ties {
    /// Features with a single value.
    pub(crate) constant: Vec<u32>,
    /// Other features in which rows share values.
    pub(crate) varying: Vec<u32>,
    /// Where the rows of each feature begin, and where the last ones end.
    starts: Vec<usize>,
    rows: Vec<u32>,
}

impl Ties {
    pub(crate) fn new(columns: &[SortedColumn]) -> Self {
        let mut ties = Self { constant: Vec::new(), varying: Vec::new(), starts: vec![0], rows: Vec::new() };
        for (d, column) in (0..).zip(columns) {
            if column.has_ties() {
                // The lists are short compared with the table.
                ties.rows.extend(column.few_uncommon().into_iter().flatten().flatten());
                if column.n_values() == 1 { &mut ties.constant } else { &mut ties.varying }.push(d);
            }
            ties.starts.push(ties.rows.len());
        }
        ties
    }

    /// The rows whose value is not the most frequent one of a feature, if the feature varies and they are
    /// few.
    pub(crate) fn uncommon(&self, feature: u32) -> Option<&[u32]> {
        let d = feature as usize;
        let rows = &self.rows[self.starts[d]..self.starts[d + 1]];
        (!rows.is_empty()).then_some(rows)
    }
}

#[cfg(test)]
mod tests {
    use crate::control::{Control, Threads};
    use crate::data::Rows;
    use crate::data::sorted::columns::SortedColumns;

    #[test]
    fn rows_of_rare_values_are_listed() {
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
        let uncommon = [0, 1, 2, 3].map(|d| ties.uncommon(d));
        assert_eq!(uncommon, [None, None, Some(&[5, 2][..]), None]);
    }
}
