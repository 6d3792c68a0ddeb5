//! Columns in which most rows share a value, as in tables of zeros and ones: only the other rows are looked at.

/// The value that most rows share, and the other rows.
#[derive(Debug)]
pub(crate) struct Uncommon<T> {
    pub(crate) common: T,
    /// The rows with other values, in order of these.
    pub(crate) rows: Vec<u32>,
}

impl<T: Copy + PartialOrd> Uncommon<T> {
    /// Those of a column; none if too many rows have other values.
    pub(crate) fn of(values: &[T]) -> Option<Self> {
        /// So many rows share a value for each that has another.
        const SHARED: usize = 7;
        let common = majority(values)?;
        let mut rows: Vec<u32> =
            (0..).zip(values).filter(|&(_, value)| *value != common).map(|(row, _)| row).collect();
        if rows.len() * (SHARED + 1) > values.len() {
            return None;
        }
        let value = |row: &u32| values[*row as usize];
        rows.sort_by(|a, b| value(a).partial_cmp(&value(b)).expect("values are numbers"));
        Some(Self { common, rows })
    }
}

/// The only value that more than half of all may be (Boyer and Moore 1991).
fn majority<T: Copy + PartialEq>(values: &[T]) -> Option<T> {
    let (mut found, mut lead) = (None, 0_usize);
    for &value in values {
        if lead == 0 {
            found = Some(value);
        }
        lead = if found == Some(value) { lead + 1 } else { lead - 1 };
    }
    found
}

/// Where each row is in an array of rows.
#[derive(Debug)]
pub(crate) struct Places(Vec<u32>);

impl Places {
    /// Those of rows, of so many in all.
    pub(crate) fn of(rows: &[u32], n_rows: usize) -> Self {
        let mut places = vec![u32::MAX; n_rows];
        for (place, &row) in (0..).zip(rows) {
            places[row as usize] = place;
        }
        Self(places)
    }

    /// Those of the given rows that are among `start..end`.
    pub(crate) fn within<'a>(
        &'a self,
        rows: &'a [u32],
        start: usize,
        end: usize,
    ) -> impl Iterator<Item = u32> + 'a {
        rows.iter().copied().filter(move |&row| (start..end).contains(&(self.0[row as usize] as usize)))
    }

    /// Puts those of the rows `start..end` that go right behind the others. Returns where they begin.
    pub(crate) fn part(
        &mut self,
        rows: &mut [u32],
        (start, end): (usize, usize),
        goes_right: impl Fn(u32) -> bool,
    ) -> usize {
        let mut middle = start;
        for i in start..end {
            if !goes_right(rows[i]) {
                self.swap(rows, i, middle);
                middle += 1;
            }
        }
        middle
    }

    /// Swaps two rows of the array.
    fn swap(&mut self, rows: &mut [u32], a: usize, b: usize) {
        rows.swap(a, b);
        self.0[rows[a] as usize] = a as u32;
        self.0[rows[b] as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_other_values() {
        let mut values = vec![0.0; 40];
        (values[3], values[7], values[39]) = (2.0, -1.0, 2.0);
        let found = Uncommon::of(&values).unwrap();
        assert_eq!((found.common, found.rows), (0.0, vec![7, 3, 39]));
        values[..6].fill(1.0);
        assert!(Uncommon::of(&values).is_none());
        assert!(Uncommon::<f64>::of(&[]).is_none());
    }

    #[test]
    fn places_follow_swaps() {
        let mut rows = vec![4, 1, 3];
        let mut places = Places::of(&rows, 6);
        places.swap(&mut rows, 0, 2);
        assert_eq!(rows, [3, 1, 4]);
        assert_eq!(places.within(&[0, 1, 3, 4, 5], 0, 2).collect::<Vec<u32>>(), [1, 3]);
    }
}
