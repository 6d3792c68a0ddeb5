//! Ascending numbers of rows in little memory.

/// Rows, ascending, each as its distance from the one before in groups of seven bits: about a byte a row in the
/// large nodes, of which there may be one for each particle.
#[derive(Debug)]
pub(crate) struct RowSet {
    bytes: Vec<u8>,
}

impl RowSet {
    /// Marks a byte after which the number goes on.
    const MORE: u8 = 0x80;

    /// `n` rows, ascending.
    pub(crate) fn new(n: usize, rows: impl Iterator<Item = u32>) -> Self {
        let mut bytes = Vec::with_capacity(n + n / 8);
        let mut last = 0;
        for row in rows {
            let mut distance = row - last;
            while distance >= u32::from(Self::MORE) {
                bytes.push(distance as u8 | Self::MORE);
                distance >>= 7;
            }
            bytes.push(distance as u8);
            last = row;
        }
        bytes.shrink_to_fit();
        Self { bytes }
    }

    /// The rows, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut bytes = self.bytes.iter();
        let mut last = 0;
        std::iter::from_fn(move || {
            let mut byte = *bytes.next()?;
            let mut shift = 0;
            while byte & Self::MORE != 0 {
                last += u32::from(byte & !Self::MORE) << shift;
                shift += 7;
                byte = *bytes.next().expect("a number ends");
            }
            last += u32::from(byte) << shift;
            Some(last)
        })
    }

    /// Bytes held.
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
            let set = RowSet::new(rows.len(), rows.iter().copied());
            assert!(set.iter().eq(rows.iter().copied()));
        }
    }

    #[test]
    fn rows_that_are_close_take_a_byte_each() {
        assert_eq!(RowSet::new(5000, (0..5000).map(|i| 100 * i)).bytes(), 5000);
    }
}
