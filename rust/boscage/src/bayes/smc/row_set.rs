//! Compressed sets of row numbers.

/// Ascending row numbers, each stored as its difference from the previous one in groups of seven bits. In
/// large nodes, of which there may be one for each particle, this takes about one byte for each row.
#[derive(Debug)]
pub(crate) struct RowSet {
    bytes: Vec<u8>,
    last: u32,
}

impl RowSet {
    /// The bit that marks all but the last byte of a number.
    const MORE: u8 = 0x80;

    /// The set of some ascending rows.
    pub(crate) fn new(rows: impl ExactSizeIterator<Item = u32>) -> Self {
        let mut set = Self::with_capacity(rows.len());
        rows.for_each(|row| set.push(row));
        set.shrink();
        set
    }

    /// An empty set with room for about `n` rows.
    pub(crate) fn with_capacity(n: usize) -> Self {
        Self { bytes: Vec::with_capacity(n + n / 8), last: 0 }
    }

    /// Appends a row, which must be above all rows in the set.
    pub(crate) fn push(&mut self, row: u32) {
        let mut distance = row - self.last;
        while distance >= u32::from(Self::MORE) {
            self.bytes.push(distance as u8 | Self::MORE);
            distance >>= 7;
        }
        self.bytes.push(distance as u8);
        self.last = row;
    }

    /// Releases unused memory.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Iterates over the rows, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut bytes = self.bytes.iter();
        let mut last = 0;
        std::iter::from_fn(move || {
            let mut byte = *bytes.next()?;
            let mut shift = 0;
            while byte & Self::MORE != 0 {
                last += u32::from(byte & !Self::MORE) << shift;
                shift += 7;
                byte = *bytes.next().expect("a byte marked MORE is not the last");
            }
            last += u32::from(byte) << shift;
            Some(last)
        })
    }

    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in() {
        let edges = [0, 1, 127, 128, 255, 256, 16_383, 16_384, 1 << 21, u32::MAX - 1, u32::MAX];
        let spread: Vec<u32> = (0..1000).map(|i| i * i * 97).collect();
        for rows in [&edges[..], &edges[5..], &[], &[u32::MAX], &spread] {
            let set = RowSet::new(rows.iter().copied());
            assert!(set.iter().eq(rows.iter().copied()));
        }
    }

    #[test]
    fn rows_that_are_close_take_a_byte_each() {
        assert_eq!(RowSet::new((0..5000).map(|i| 100 * i)).bytes(), 5000);
    }
}
