//! One feature of the training rows, sorted once for all trees.
//!
//! Missing values have a rank of their own, below or above all others (`side`). A cut by ranks then also says to
//! which side missing values go ("missing incorporated in attributes", Twala, Jones & Hand 2008; in BART, Kapelner &
//! Bleich 2015). A feature of which values are missing has two columns, one for each side, and a cut between the
//! missing and the present values is one more cut of either.
//!
//! The prior of a cut of some rows along a column: if none of them misses its value, the threshold is uniform in the
//! range of their values. Else the cut parts the missing from the present values with probability [`APART`], or surely
//! if the present values are all equal, and its threshold is infinite; otherwise the threshold is uniform in the range
//! of the present values.

use std::borrow::Cow;
use std::ops::Range;

use crate::control::Control;
use crate::data::sorted::distinct_values::DistinctValues;
use crate::data::sorted::ranked_rows::RankedRows;
use crate::error::Result;
use crate::math::order::{from_ordered, to_ordered};

/// The probability that a cut parts the missing from the present values, if some are missing and the present ones
/// vary. Together with the sides, each equally probable, it makes the three kinds of rules of Twala et al. equally
/// probable: the missing values go left, go right, or are apart.
pub(crate) const APART: f64 = 1.0 / 3.0;

/// The lowest and highest rank of the present values of some rows, and whether values of other rows are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) low: u32,
    pub(crate) high: u32,
    pub(crate) has_missing: bool,
}

impl Span {
    /// Whether a cut can divide the rows.
    pub(crate) fn varies(self) -> bool {
        self.low < self.high || self.has_missing && self.low == self.high
    }

    /// The probability that a cut parts the missing from the present values.
    fn apart(self) -> f64 {
        match (self.has_missing, self.low < self.high) {
            (false, _) => 0.0,
            (true, true) => APART,
            (true, false) => 1.0,
        }
    }
}

/// The rank of missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingRank {
    /// No value is missing.
    None,
    /// Below all others: missing values are on the left of every cut.
    Lowest,
    /// Above all others: missing values are on the right of every cut.
    Highest,
}

/// One feature; of a feature with missing values, one side of these.
#[derive(Debug)]
pub(crate) struct SortedColumn {
    /// The present values.
    values: DistinctValues,
    missing: MissingRank,
    rows: RankedRows,
}

impl SortedColumn {
    /// The column in which missing values, if there are any, are the lowest.
    pub(crate) fn new(column: impl Iterator<Item = f64>, control: &Control) -> Result<Self> {
        let sorted = sort_values((0..).zip(column), control)?;
        let groups = sorted.chunk_by(has_same_value);
        let rows = RankedRows::dense(groups.clone(), sorted.len());
        Ok(Self::of_groups(groups, rows))
    }

    /// The same column, of values that are 0 except for those given, each with its row, ascending. If these are few,
    /// only their rows are stored.
    pub(crate) fn sparse(nonzero: &[(u32, f64)], n_rows: usize, control: &Control) -> Result<Self> {
        if !RankedRows::are_few(nonzero.len(), n_rows) {
            let mut column = vec![0.0; n_rows];
            for &(row, value) in nonzero {
                column[row as usize] = value;
            }
            return Self::new(column.into_iter(), control);
        }
        let sorted = sort_values(nonzero.iter().copied(), control)?;
        let zero = [(to_ordered(0.0), 0)];
        let (below, above) = sorted.split_at(sorted.partition_point(|value| value.0 < zero[0].0));
        let groups = [below, above].map(|rows| rows.chunk_by(has_same_value));
        let rows = RankedRows::sparse(groups.clone(), n_rows);
        let [below, above] = groups;
        Ok(Self::of_groups(below.chain([&zero[..]]).chain(above), rows))
    }

    /// The column of groups of equal values, ascending.
    fn of_groups<'v>(groups: impl Iterator<Item = &'v [(i64, u32)]> + Clone, rows: RankedRows) -> Self {
        let mut values = groups.map(|group| group[0].0).peekable();
        let missing =
            if values.next_if_eq(&MISSING).is_some() { MissingRank::Lowest } else { MissingRank::None };
        Self { values: DistinctValues::new(values.map(from_ordered)), missing, rows }
    }

    /// The column of the same feature in which missing values are the highest; None if no value is missing.
    pub(crate) fn with_missing_highest(&self) -> Option<Self> {
        if self.missing != MissingRank::Lowest {
            return None;
        }
        let rows = self.rows.with_first_last(self.values.len() as u32);
        Some(Self { values: self.values.clone(), missing: MissingRank::Highest, rows })
    }

    /// Whether values are missing.
    pub(crate) fn has_missing(&self) -> bool {
        self.missing != MissingRank::None
    }

    /// Whether missing values go to the right of a cut, given the numbers of training rows on its sides. If no value is
    /// missing in training, the column leaves this open; then they go with more of the rows, or left.
    pub(crate) fn missing_right(&self, n_left: u32, n_right: u32) -> bool {
        match self.missing {
            MissingRank::None => n_right > n_left,
            MissingRank::Lowest => false,
            MissingRank::Highest => true,
        }
    }

    /// Whether a row's value is missing, by its rank.
    pub(crate) fn is_missing(&self, rank: u32) -> bool {
        match self.missing {
            MissingRank::None => false,
            MissingRank::Lowest => rank == 0,
            MissingRank::Highest => rank as usize == self.values.len(),
        }
    }

    /// The rank of the lowest present value.
    fn first(&self) -> u32 {
        u32::from(self.missing == MissingRank::Lowest)
    }

    /// The value of a rank.
    fn value(&self, rank: u32) -> f64 {
        self.values.at((rank - self.first()) as usize)
    }

    /// A row's rank.
    pub(crate) fn rank(&self, row: u32) -> u32 {
        self.rows.rank(row)
    }

    /// Number of rows whose rank is stored.
    pub(crate) fn n_stored(&self) -> usize {
        self.rows.n_stored()
    }

    /// The rank of every row.
    pub(crate) fn ranks(&self) -> Cow<'_, [u32]> {
        self.rows.ranks()
    }

    /// Number of rows that do not have the commonest value.
    pub(crate) fn n_uncommon(&self) -> usize {
        self.rows.n_uncommon()
    }

    /// Number of distinct values; missing counts as one.
    pub(crate) fn n_values(&self) -> u32 {
        self.values.len() as u32 + u32::from(self.has_missing())
    }

    /// Whether two rows share a value.
    pub(crate) fn has_ties(&self) -> bool {
        (self.n_values() as usize) < self.rows.n_rows()
    }

    /// The lowest and the highest value that is present; zeros if all are missing.
    pub(crate) fn ends(&self) -> (f64, f64) {
        match self.values.len() {
            0 => (0.0, 0.0),
            n => (self.values.at(0), self.values.at(n - 1)),
        }
    }

    /// The span of all rows.
    pub(crate) fn whole(&self) -> Span {
        let (low, n) = (self.first(), self.values.len() as u32);
        // Without present values nothing varies.
        let low = if n == 0 { u32::MAX } else { low };
        Span { low, high: (self.first() + n).saturating_sub(1), has_missing: self.has_missing() }
    }

    /// The span of some rows, given by their ranks.
    pub(crate) fn span(&self, ranks: impl Iterator<Item = u32>) -> Span {
        let wider = |(low, high): (u32, u32), rank: u32| (low.min(rank), high.max(rank));
        let none = (u32::MAX, 0);
        if !self.has_missing() {
            let (low, high) = ranks.fold(none, wider);
            return Span { low, high, has_missing: false };
        }
        let mut has_missing = false;
        let (low, high) = ranks.fold(none, |ends, rank| {
            let is_missing = self.is_missing(rank);
            has_missing |= is_missing;
            if is_missing { ends } else { wider(ends, rank) }
        });
        Span { low, high, has_missing }
    }

    /// The span of some rows, which ascend.
    pub(crate) fn span_of_rows(&self, rows: &[u32]) -> Span {
        match self.uncommon_ranks(rows) {
            Some(uncommon) => self.span(uncommon.chain([self.commonest_rank()])),
            None => self.span(rows.iter().map(|&row| self.rank(row))),
        }
    }

    /// Whether the ranks of some rows differ; the rows ascend, and there is at least one.
    pub(crate) fn varies_among(&self, rows: &[u32]) -> bool {
        // Where all ranks are stored, two that differ are usually soon found.
        let uncommon = if self.stores_all() { None } else { self.uncommon_ranks(rows) };
        let first = self.rank(rows[0]);
        match uncommon {
            Some(mut uncommon) => uncommon.next().is_some(),
            None => rows.iter().any(|&row| self.rank(row) != first),
        }
    }

    /// Whether the rank of every row is stored.
    fn stores_all(&self) -> bool {
        self.n_stored() == self.rows.n_rows()
    }

    /// The ranks of those of some rows, which ascend, that do not have the commonest value. None if they may be all, or
    /// if reading every row is faster; otherwise one of the given rows has the commonest value.
    fn uncommon_ranks(&self, rows: &[u32]) -> Option<impl Iterator<Item = u32>> {
        /// Finding a row takes as long as reading so many ranks.
        const READS: usize = 8;
        let reads = if self.stores_all() { READS } else { 1 };
        (self.n_uncommon() * reads < rows.len()).then(|| {
            let own = self.rows.uncommon_with_ranks().filter(|(row, _)| rows.binary_search(row).is_ok());
            own.map(|(_, rank)| rank)
        })
    }

    /// The lowest and the highest rank of the rows of a span, of which some have a present value.
    pub(crate) fn ranks_of(&self, span: Span) -> (u32, u32) {
        match self.missing {
            MissingRank::Lowest if span.has_missing => (0, span.high),
            MissingRank::Highest if span.has_missing => (span.low, self.values.len() as u32),
            _ => (span.low, span.high),
        }
    }

    /// The cut that parts the missing from the present values.
    pub(crate) fn cut_apart(&self) -> (u32, f64) {
        match self.missing {
            MissingRank::Highest => (self.values.len() as u32 - 1, f64::INFINITY),
            MissingRank::Lowest | MissingRank::None => (0, f64::NEG_INFINITY),
        }
    }

    /// Whether a cut after a rank parts the missing from the present values.
    pub(crate) fn is_apart(&self, rank: u32) -> bool {
        self.has_missing() && rank == self.cut_apart().0
    }

    /// Whether a cut after a rank is one of the cuts of a span.
    pub(crate) fn can_cut(&self, span: Span, rank: u32) -> bool {
        if self.is_apart(rank) {
            span.has_missing && span.low <= span.high
        } else {
            span.low <= rank && rank < span.high
        }
    }

    /// The rows whose rank is above `low` and not above `high`.
    pub(crate) fn between(&self, low: u32, high: u32) -> Cow<'_, [u32]> {
        self.rows.at(self.end(low)..self.end(high))
    }

    /// Positions in the order of ranks of those from `low` to `high`; without ties a position is a rank.
    pub(crate) fn places(&self, low: u32, high: u32) -> Range<usize> {
        low.checked_sub(1).map_or(0, |below| self.end(below))..self.end(high)
    }

    /// Number of rows whose rank is not above a rank.
    fn end(&self, rank: u32) -> usize {
        if self.has_ties() { self.rows.end(rank) } else { rank as usize + 1 }
    }

    /// The rows at some positions in the order of ranks.
    pub(crate) fn rows_at(&self, places: Range<usize>) -> Cow<'_, [u32]> {
        self.rows.at(places)
    }

    /// The rank of the commonest value.
    pub(crate) fn commonest_rank(&self) -> u32 {
        self.rows.commonest_rank()
    }

    /// The rows that do not have the commonest value, if they are few: those below it, and those above it.
    pub(crate) fn few_uncommon(&self) -> Option<[&[u32]; 2]> {
        RankedRows::are_few(self.n_uncommon(), self.rows.n_rows()).then(|| self.rows.uncommon())
    }

    /// The highest rank that is on the left of a threshold, if there is one.
    pub(crate) fn rank_at(&self, threshold: f64) -> Option<u32> {
        let n_left = self.values.n_up_to(threshold, 0..self.values.len()) as u32;
        (self.first() + n_left).checked_sub(1)
    }

    /// As [`Self::rank_at`], for a threshold that has ranks on its left.
    pub(crate) fn last_rank_below(&self, threshold: f64) -> u32 {
        self.rank_at(threshold).expect("a threshold in the column's range")
    }

    /// The prior probability of the gap between two neighbouring ranks of a span: the distance between their values,
    /// as a share of that from the lowest to the highest value, unless the gap is that to the missing values.
    pub(crate) fn share(&self, (left, right): (u32, u32), span: Span) -> f64 {
        self.shares(span)(left, right)
    }

    /// The same probability, for many gaps.
    pub(crate) fn shares(&self, span: Span) -> impl Fn(u32, u32) -> f64 + '_ {
        let (apart, share) = (span.apart(), self.shares_of_extent(span));
        move |left, right| {
            if self.is_beside_missing(left, right) { apart } else { (1.0 - apart) * share(left, right) }
        }
    }

    /// The distances between the values of ranks, as shares of that from the lowest to the highest value of a span:
    /// [`Self::shares`] of a span without missing values.
    pub(crate) fn shares_of_extent(&self, span: Span) -> impl Fn(u32, u32) -> f64 + '_ {
        let way = |a: u32, b: u32, scale: f64| scale * self.value(b) - scale * self.value(a);
        // Halved only if the difference overflows: halving the smallest number gives zero.
        let scale = if way(span.low, span.high, 1.0).is_finite() { 1.0 } else { 0.5 };
        let whole = way(span.low, span.high, scale);
        move |left, right| way(left, right, scale) / whole
    }

    /// Logarithm of [`Self::share`].
    pub(crate) fn log_share(&self, (left, right): (u32, u32), span: Span) -> f64 {
        if self.is_beside_missing(left, right) {
            return libm::log(span.apart());
        }
        self.log_extent(left, right) - self.log_extent(span.low, span.high) + libm::log1p(-span.apart())
    }

    /// Logarithm of the prior density of the threshold of a cut after a rank, and of its probability if it parts the
    /// missing values from the others.
    pub(crate) fn log_density(&self, rank: u32, span: Span) -> f64 {
        if !self.can_cut(span, rank) {
            f64::NEG_INFINITY
        } else if self.is_apart(rank) {
            libm::log(span.apart())
        } else {
            -self.log_extent(span.low, span.high) + libm::log1p(-span.apart())
        }
    }

    /// Logarithm of the measure of a gap, in which the thresholds of cuts with [`Self::log_density`] lie.
    pub(crate) fn log_width(&self, (left, right): (u32, u32)) -> f64 {
        if self.is_beside_missing(left, right) { 0.0 } else { self.log_extent(left, right) }
    }

    /// Whether one of two neighbouring ranks is that of missing values.
    fn is_beside_missing(&self, left: u32, right: u32) -> bool {
        match self.missing {
            MissingRank::None => false,
            MissingRank::Lowest => left == 0,
            MissingRank::Highest => self.is_missing(right),
        }
    }

    /// Logarithm of the distance between the values of ranks `low` and `high`.
    fn log_extent(&self, low: u32, high: u32) -> f64 {
        let (low, high) = (self.value(low), self.value(high));
        match high - low {
            way if way.is_finite() => libm::log(way),
            _ => libm::log(0.5 * high - 0.5 * low) + std::f64::consts::LN_2,
        }
    }

    /// A threshold at the fraction `u` in `[0, 1)` of the distance from rank `left` to rank `right`: values
    /// of rank `left` are not above it, values of rank `right` are.
    fn threshold(&self, (left, right): (u32, u32), u: f64) -> f64 {
        let (low, high) = (self.value(left), self.value(right));
        let at = (1.0 - u) * low + u * high;
        if at >= high || at < low { low } else { at }
    }

    /// The cut of the prior at the fraction `u` in `[0, 1)` of its cumulative distribution: the highest rank on the
    /// left, and the threshold.
    pub(crate) fn cut(&self, span: Span, u: f64) -> (u32, f64) {
        let apart = span.apart();
        if u < apart {
            return self.cut_apart();
        }
        let u = if span.has_missing { (u - apart) / (1.0 - apart) } else { u };
        self.cut_between((span.low, span.high), u)
    }

    /// As [`Self::cut_between`], where rows with ranks between the two do not matter: the cut is after rank `left`.
    pub(crate) fn cut_in(&self, (left, right): (u32, u32), u: f64) -> (u32, f64) {
        if self.is_beside_missing(left, right) {
            return self.cut_apart();
        }
        (left, self.threshold((left, right), u))
    }

    /// A cut at the fraction `u` in `[0, 1)` of the distance from rank `left` to rank `right`; if one of them is that
    /// of missing values, the cut that parts these from the others.
    pub(crate) fn cut_between(&self, (left, right): (u32, u32), u: f64) -> (u32, f64) {
        if self.is_beside_missing(left, right) {
            return self.cut_apart();
        }
        let threshold = self.threshold((left, right), u);
        let first = self.first() as usize;
        let above = self.values.n_up_to(threshold, left as usize + 1 - first..right as usize - first);
        (left + above as u32, threshold)
    }
}

/// Stands for a missing value among ordered values, below all numbers.
const MISSING: i64 = i64::MIN;

/// Values in order, each with its row; rows with equal values are ascending.
fn sort_values(values: impl Iterator<Item = (u32, f64)>, control: &Control) -> Result<Vec<(i64, u32)>> {
    /// Rows sorted between two checks of the stop flag.
    const PIECE: usize = 1 << 20;
    // Negative zero becomes zero, so that equal values have equal ranks.
    let key = |value: f64| if value.is_nan() { MISSING } else { to_ordered(value + 0.0) };
    let mut sorted: Vec<(i64, u32)> = values.map(|(row, value)| (key(value), row)).collect();
    for piece in sorted.chunks_mut(PIECE) {
        control.check()?;
        piece.sort_unstable();
    }
    if sorted.len() > PIECE {
        // The stable sort recognises the sorted pieces and merges them.
        sorted.sort_by(Ord::cmp);
    }
    Ok(sorted)
}

fn has_same_value(a: &(i64, u32), b: &(i64, u32)) -> bool {
    a.0 == b.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_and_the_greatest_differences_have_shares() {
        let column = |values: &[f64]| SortedColumn::new(values.iter().copied(), &Control::new()).unwrap();
        let least = column(&[0.0, 5e-324]);
        assert_eq!(least.share((0, 1), least.whole()), 1.0);
        assert_eq!(least.log_extent(0, 1), libm::log(5e-324));
        assert_eq!(least.threshold((0, 1), 0.7), 0.0);
        let greatest = column(&[-f64::MAX, 0.0, f64::MAX]);
        assert_eq!(greatest.share((0, 1), greatest.whole()), 0.5);
        assert!(greatest.log_extent(0, 2).is_finite());
    }

    #[test]
    fn long_columns_are_sorted_in_pieces() {
        let n = (1 << 20) + 1000;
        let value = |row: u32| f64::from(row.wrapping_mul(2_654_435_761) >> 12);
        let column = SortedColumn::new((0..n).map(value), &Control::new()).unwrap();
        assert!(
            column
                .rows_at(0..n as usize)
                .windows(2)
                .all(|pair| (value(pair[0]), pair[0]) < (value(pair[1]), pair[1]))
        );
        assert!((0..n).all(|row| column.value(column.rank(row)) == value(row)));
        let stopped = Control::new();
        stopped.stop();
        assert!(SortedColumn::new((0..n).map(value), &stopped).is_err());
    }
}
