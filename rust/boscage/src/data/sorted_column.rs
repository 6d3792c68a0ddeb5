//! One feature of the training rows, sorted once for all trees.

use std::ops::Range;

use crate::control::Control;
use crate::data::{Scalar, goes_right};
use crate::error::Result;
use crate::math::order::{from_ordered, to_ordered};

/// One feature.
#[derive(Debug)]
pub(crate) struct SortedColumn {
    values: DistinctValues,
    /// Each row's rank.
    ranks: Vec<u32>,
    /// Rows by rank.
    order: Vec<u32>,
    /// Positions in `order` of the rows with the most frequent value.
    commonest: Range<usize>,
}

/// The distinct values of a column, ascending; in single precision if that is exact.
#[derive(Debug)]
enum DistinctValues {
    Single(Box<[f32]>),
    Double(Box<[f64]>),
}

impl SortedColumn {
    pub(crate) fn new(column: impl Iterator<Item = f64>, control: &Control) -> Result<Self> {
        /// Rows sorted between two checks of the stop flag.
        const PIECE: usize = 1 << 20;
        // Negative zero becomes zero, so that equal values have equal ranks.
        let mut sorted: Vec<(i64, u32)> =
            column.enumerate().map(|(row, value)| (to_ordered(value + 0.0), row as u32)).collect();
        for piece in sorted.chunks_mut(PIECE) {
            control.check()?;
            piece.sort_unstable();
        }
        if sorted.len() > PIECE {
            // The stable sort recognises the sorted pieces and merges them.
            sorted.sort_by(Ord::cmp);
        }
        let mut ranks = vec![0; sorted.len()];
        let mut rank = 0;
        for (i, &(value, row)) in sorted.iter().enumerate() {
            rank += u32::from(i > 0 && sorted[i - 1].0 != value);
            ranks[row as usize] = rank;
        }
        let same = sorted.chunk_by(|a, b| a.0 == b.0);
        let values = DistinctValues::new(same.clone().map(|same| from_ordered(same[0].0)));
        let (mut commonest, mut end) = (0..0, 0);
        for same in same {
            end += same.len();
            if same.len() > commonest.len() {
                commonest = end - same.len()..end;
            }
        }
        let order = sorted.iter().map(|&(_, row)| row).collect();
        Ok(Self { values, ranks, order, commonest })
    }

    /// The value of a rank.
    fn value(&self, rank: u32) -> f64 {
        self.values.at(rank as usize)
    }

    /// A row's rank.
    pub(crate) fn rank(&self, row: u32) -> u32 {
        self.ranks[row as usize]
    }

    /// The rank of every row.
    pub(crate) fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// Number of distinct values.
    pub(crate) fn n_values(&self) -> u32 {
        self.values.len() as u32
    }

    /// Whether two rows share a value.
    pub(crate) fn has_ties(&self) -> bool {
        self.values.len() < self.ranks.len()
    }

    /// The lowest and the highest value.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.value(0), self.value(self.n_values() - 1))
    }

    /// The rows whose rank is above `low` and not above `high`.
    pub(crate) fn between(&self, low: u32, high: u32) -> &[u32] {
        &self.order[self.end(low)..self.end(high)]
    }

    /// Positions in [`Self::order`] of the ranks from `low` to `high`; without ties a position is a rank.
    pub(crate) fn places(&self, low: u32, high: u32) -> Range<usize> {
        low.checked_sub(1).map_or(0, |below| self.end(below))..self.end(high)
    }

    /// Number of rows whose rank is not above a rank.
    fn end(&self, rank: u32) -> usize {
        if self.has_ties() {
            self.order.partition_point(|&row| !goes_right(self.rank(row), rank))
        } else {
            rank as usize + 1
        }
    }

    /// All rows in order of rank.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The rows whose value is not the most frequent one: those below it, and those above it.
    pub(crate) fn uncommon(&self) -> [&[u32]; 2] {
        [&self.order[..self.commonest.start], &self.order[self.commonest.end..]]
    }

    /// The highest rank whose value is not above a threshold, if there is one.
    pub(crate) fn rank_at(&self, threshold: f64) -> Option<u32> {
        (self.values.n_up_to(threshold, 0..self.values.len()) as u32).checked_sub(1)
    }

    /// As [`Self::rank_at`], for a threshold that is not below the lowest value.
    pub(crate) fn last_rank_below(&self, threshold: f64) -> u32 {
        self.rank_at(threshold).expect("a threshold in the column's range")
    }

    /// The distance between the values of two ranks, as a share of the distance from rank `low` to rank
    /// `high`.
    pub(crate) fn share(&self, (left, right): (u32, u32), (low, high): (u32, u32)) -> f64 {
        self.shares(low, high)(left, right)
    }

    /// The same share, for many pairs of ranks.
    pub(crate) fn shares(&self, low: u32, high: u32) -> impl Fn(u32, u32) -> f64 + '_ {
        let way = |a: u32, b: u32, scale: f64| scale * self.value(b) - scale * self.value(a);
        // Halved only if the difference overflows: halving the smallest number gives zero.
        let scale = if way(low, high, 1.0).is_finite() { 1.0 } else { 0.5 };
        let whole = way(low, high, scale);
        move |left, right| way(left, right, scale) / whole
    }

    /// Logarithm of the distance between the values of ranks `low` and `high`.
    pub(crate) fn log_extent(&self, low: u32, high: u32) -> f64 {
        let (low, high) = (self.value(low), self.value(high));
        match high - low {
            way if way.is_finite() => libm::log(way),
            _ => libm::log(0.5 * high - 0.5 * low) + std::f64::consts::LN_2,
        }
    }

    /// A threshold at the fraction `u` in `[0, 1)` of the distance from rank `left` to rank `right`: values
    /// of rank `left` are not above it, values of rank `right` are.
    pub(crate) fn threshold(&self, (left, right): (u32, u32), u: f64) -> f64 {
        let (low, high) = (self.value(left), self.value(right));
        let at = (1.0 - u) * low + u * high;
        if at >= high || at < low { low } else { at }
    }

    /// The same threshold, with the highest rank that is not above it.
    pub(crate) fn cut(&self, (left, right): (u32, u32), u: f64) -> (u32, f64) {
        let threshold = self.threshold((left, right), u);
        let above = self.values.n_up_to(threshold, left as usize + 1..right as usize);
        (left + above as u32, threshold)
    }
}

impl DistinctValues {
    fn new(values: impl Iterator<Item = f64> + Clone) -> Self {
        let narrow: Option<Box<[f32]>> = values.clone().map(f32::exact).collect();
        narrow.map_or_else(|| Self::Double(values.collect()), Self::Single)
    }

    fn len(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
        }
    }

    fn at(&self, i: usize) -> f64 {
        match self {
            Self::Single(values) => values[i].into(),
            Self::Double(values) => values[i],
        }
    }

    /// Number of values of a range that are not above a threshold.
    fn n_up_to(&self, threshold: f64, among: Range<usize>) -> usize {
        match self {
            Self::Single(values) => {
                values[among].partition_point(|&value| !goes_right(f64::from(value), threshold))
            }
            Self::Double(values) => values[among].partition_point(|&value| !goes_right(value, threshold)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_and_the_greatest_differences_have_shares() {
        let column = |values: &[f64]| SortedColumn::new(values.iter().copied(), &Control::new()).unwrap();
        let least = column(&[0.0, 5e-324]);
        assert_eq!(least.share((0, 1), (0, 1)), 1.0);
        assert_eq!(least.log_extent(0, 1), libm::log(5e-324));
        assert_eq!(least.threshold((0, 1), 0.7), 0.0);
        let greatest = column(&[-f64::MAX, 0.0, f64::MAX]);
        assert_eq!(greatest.share((0, 1), (0, 2)), 0.5);
        assert!(greatest.log_extent(0, 2).is_finite());
    }

    #[test]
    fn long_columns_are_sorted_in_pieces() {
        let n = (1 << 20) + 1000;
        let value = |row: u32| f64::from(row.wrapping_mul(2_654_435_761) >> 12);
        let column = SortedColumn::new((0..n).map(value), &Control::new()).unwrap();
        assert!(column.order.windows(2).all(|pair| (value(pair[0]), pair[0]) < (value(pair[1]), pair[1])));
        assert!((0..n).all(|row| column.value(column.rank(row)) == value(row)));
        let stopped = Control::new();
        stopped.stop();
        assert!(SortedColumn::new((0..n).map(value), &stopped).is_err());
    }
}
