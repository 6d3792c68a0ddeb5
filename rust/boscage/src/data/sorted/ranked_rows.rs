//! The ranks of all rows along a column, and the rows in order of rank.

use std::borrow::Cow;
use std::ops::Range;

use crate::data::goes_right;

/// Each row's rank, and the rows by rank; rows of equal rank are ascending.
#[derive(Debug)]
pub(crate) enum RankedRows {
    /// All rows are stored.
    Dense {
        ranks: Vec<u32>,
        order: Vec<u32>,
        /// Positions in the order of the rows with the commonest value.
        commonest: Range<usize>,
    },
    /// The rows with the commonest value are not stored. The others, the uncommon rows, are few.
    Sparse {
        n_rows: usize,
        /// The rank of the commonest value.
        commonest: u32,
        /// The other rows, ascending, each with its rank.
        uncommon: Box<[(u32, u32)]>,
        /// The same rows by rank, and how many are below the commonest value.
        order: Box<[u32]>,
        n_below: usize,
    },
}

impl RankedRows {
    /// Whether rows are few enough to be stored in place of all.
    pub(crate) fn are_few(n_uncommon: usize, n_rows: usize) -> bool {
        const RARE: usize = 8;
        n_uncommon <= n_rows / RARE
    }

    /// All rows, given in order of rank and in groups of equal rank.
    pub(crate) fn dense<'r>(groups: impl Iterator<Item = &'r [(i64, u32)]>, n_rows: usize) -> Self {
        let (mut ranks, mut order, mut commonest) = (vec![0; n_rows], Vec::with_capacity(n_rows), 0..0);
        for (rank, group) in (0..).zip(groups) {
            if group.len() > commonest.len() {
                commonest = order.len()..order.len() + group.len();
            }
            for &(_, row) in group {
                ranks[row as usize] = rank;
                order.push(row);
            }
        }
        Self::Dense { ranks, order, commonest }
    }

    /// Of `n_rows` rows, those below and those above the commonest value, in groups as for [`Self::dense`].
    pub(crate) fn sparse<'r, G>([below, above]: [G; 2], n_rows: usize) -> Self
    where
        G: Iterator<Item = &'r [(i64, u32)]>,
    {
        let (mut uncommon, mut order) = (Vec::new(), Vec::new());
        let mut add = |first: u32, groups: G| {
            let mut next = first;
            for group in groups {
                order.extend(group.iter().map(|(_, row)| *row));
                uncommon.extend(group.iter().map(|(_, row)| (*row, next)));
                next += 1;
            }
            (next, order.len())
        };
        let (commonest, n_below) = add(0, below);
        add(commonest + 1, above);
        uncommon.sort_unstable();
        Self::Sparse { n_rows, commonest, uncommon: uncommon.into(), order: order.into(), n_below }
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            Self::Dense { ranks, .. } => ranks.len(),
            Self::Sparse { n_rows, .. } => *n_rows,
        }
    }

    /// Number of rows whose rank is stored.
    pub(crate) fn n_stored(&self) -> usize {
        match self {
            Self::Dense { ranks, .. } => ranks.len(),
            Self::Sparse { uncommon, .. } => uncommon.len(),
        }
    }

    /// A row's rank.
    #[inline]
    pub(crate) fn rank(&self, row: u32) -> u32 {
        match self {
            Self::Dense { ranks, .. } => ranks[row as usize],
            Self::Sparse { uncommon, commonest, .. } => {
                uncommon.binary_search_by_key(&row, |(row, _)| *row).map_or(*commonest, |i| uncommon[i].1)
            }
        }
    }

    /// The rank of every row.
    pub(crate) fn ranks(&self) -> Cow<'_, [u32]> {
        match self {
            Self::Dense { ranks, .. } => Cow::Borrowed(ranks),
            Self::Sparse { n_rows, commonest, uncommon, .. } => {
                let mut ranks = vec![*commonest; *n_rows];
                for &(row, rank) in uncommon {
                    ranks[row as usize] = rank;
                }
                Cow::Owned(ranks)
            }
        }
    }

    /// The positions of the rows with the commonest value in the order of ranks.
    fn commonest(&self) -> Range<usize> {
        match self {
            Self::Dense { commonest, .. } => commonest.clone(),
            Self::Sparse { n_rows, order, n_below, .. } => *n_below..n_below + n_rows - order.len(),
        }
    }

    /// The rank of the commonest value.
    pub(crate) fn commonest_rank(&self) -> u32 {
        match self {
            Self::Dense { ranks, order, commonest } => ranks[order[commonest.start] as usize],
            Self::Sparse { commonest, .. } => *commonest,
        }
    }

    /// The rows that do not have the commonest value: those below it, and those above it.
    pub(crate) fn uncommon(&self) -> [&[u32]; 2] {
        match self {
            Self::Dense { order, commonest, .. } => [&order[..commonest.start], &order[commonest.end..]],
            Self::Sparse { order, n_below, .. } => order.split_at(*n_below).into(),
        }
    }

    /// The same rows in any order, each with its rank.
    pub(crate) fn uncommon_with_ranks(&self) -> impl Iterator<Item = (u32, u32)> {
        let (pairs, rows) = match self {
            Self::Dense { .. } => (&[][..], self.uncommon()),
            Self::Sparse { uncommon, .. } => (&**uncommon, [&[][..]; 2]),
        };
        pairs.iter().copied().chain(rows.into_iter().flatten().map(|&row| (row, self.rank(row))))
    }

    /// Number of these rows.
    pub(crate) fn n_uncommon(&self) -> usize {
        self.n_rows() - self.commonest().len()
    }

    /// Number of rows whose rank is not above a rank.
    pub(crate) fn end(&self, rank: u32) -> usize {
        let up_to = |rows: &[u32]| rows.partition_point(|&row| !goes_right(self.rank(row), rank));
        match self {
            Self::Dense { order, .. } => up_to(order),
            Self::Sparse { commonest, .. } => {
                let [below, above] = self.uncommon();
                if rank < *commonest { up_to(below) } else { self.commonest().end + up_to(above) }
            }
        }
    }

    /// Some of the rows in order of rank, given by their positions.
    pub(crate) fn at(&self, places: Range<usize>) -> Cow<'_, [u32]> {
        let (uncommon, n_rows) = match self {
            Self::Dense { order, .. } => return Cow::Borrowed(&order[places]),
            Self::Sparse { uncommon, n_rows, .. } => (uncommon, *n_rows),
        };
        let ([below, above], common) = (self.uncommon(), self.commonest());
        if places.end <= common.start {
            return Cow::Borrowed(&below[places]);
        }
        if common.end <= places.start {
            return Cow::Borrowed(&above[places.start - common.end..places.end - common.end]);
        }
        let mut rows = Vec::with_capacity(places.len());
        rows.extend(below.get(places.start..).unwrap_or_default());
        let mut others = uncommon.iter().map(|(row, _)| *row).peekable();
        let is_common = |row: &u32| others.next_if_eq(row).is_none();
        let skipped = places.start.saturating_sub(common.start);
        let n_common = places.end.min(common.end) - common.start - skipped;
        rows.extend((0..n_rows as u32).filter(is_common).skip(skipped).take(n_common));
        rows.extend(&above[..places.end.saturating_sub(common.end)]);
        Cow::Owned(rows)
    }

    /// The same rows, where those of rank 0 have rank `to` in place of it, above all others.
    pub(crate) fn with_first_last(&self, to: u32) -> Self {
        let later = |rank: u32| rank.checked_sub(1).unwrap_or(to);
        let n_first = self.end(0);
        match self {
            Self::Dense { ranks, order, commonest } => {
                let mut order = order.clone();
                order.rotate_left(n_first);
                let commonest = match commonest.start.checked_sub(n_first) {
                    Some(start) => start..commonest.end - n_first,
                    None => order.len() - n_first..order.len(),
                };
                Self::Dense { ranks: ranks.iter().map(|&rank| later(rank)).collect(), order, commonest }
            }
            Self::Sparse { n_rows, commonest, uncommon, order, n_below } => {
                let mut order = order.clone();
                order.rotate_left(n_first);
                Self::Sparse {
                    n_rows: *n_rows,
                    commonest: commonest - 1,
                    uncommon: uncommon.iter().map(|&(row, rank)| (row, later(rank))).collect(),
                    order,
                    n_below: n_below - n_first,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use crate::control::Control;
    use crate::data::sorted::column::SortedColumn;
    use crate::random::keyed::Stream;

    /// Values of which at most an eighth are not 0: none, some below and above, of equal value or missing.
    fn nonzero(n_rows: usize, stream: &mut Stream) -> Vec<(u32, f64)> {
        let (share, lowest) = (stream.unit() / 8.0, [-2.0, 0.0, 1.0][stream.below(3)]);
        let mut found: Vec<(u32, f64)> = Vec::new();
        for row in 0..n_rows as u32 {
            let value = lowest + stream.below(4) as f64;
            if stream.unit() < share && value != 0.0 && found.len() < n_rows / 8 {
                found.push((row, if stream.unit() < 0.1 { f64::NAN } else { value }));
            }
        }
        found
    }

    fn ranges(n: usize) -> impl Iterator<Item = Range<usize>> {
        (0..=n).flat_map(move |end| (0..=end).map(move |start| start..end))
    }

    fn assert_same(dense: &SortedColumn, sparse: &SortedColumn, n_rows: usize, stream: &mut Stream) {
        assert!(sparse.n_stored() < dense.n_stored(), "only few rows are stored");
        assert_eq!(dense.ranks(), sparse.ranks());
        assert!((0..n_rows as u32).all(|row| dense.rank(row) == sparse.rank(row)));
        assert_eq!((dense.n_values(), dense.ends()), (sparse.n_values(), sparse.ends()));
        assert_eq!(dense.whole(), sparse.whole());
        assert_eq!(dense.few_uncommon(), sparse.few_uncommon());
        for places in ranges(n_rows).filter(|places| places.len() % 7 < 2) {
            assert_eq!(dense.rows_at(places.clone()), sparse.rows_at(places));
        }
        for ranks in ranges(dense.n_values() as usize - 1) {
            let (low, high) = (ranks.start as u32, ranks.end as u32);
            assert_eq!(dense.places(low, high), sparse.places(low, high));
            assert_eq!(dense.between(low, high), sparse.between(low, high));
        }
        for share in [0.05, 0.3, 0.9] {
            let rows: Vec<u32> = (0..n_rows as u32).filter(|_| stream.unit() < share).collect();
            if rows.is_empty() {
                continue;
            }
            let span = dense.span(rows.iter().map(|&row| dense.rank(row)));
            let varies = rows.iter().any(|&row| dense.rank(row) != dense.rank(rows[0]));
            for column in [dense, sparse] {
                assert_eq!(column.span_of_rows(&rows), span);
                assert_eq!(column.varies_among(&rows), varies);
            }
        }
    }

    #[test]
    fn columns_that_store_few_rows_are_those_of_all() {
        let (mut stream, control) = (Stream::new(3, 0), Control::new());
        for _ in 0..60 {
            let n_rows = 1 + stream.below(120);
            let nonzero = nonzero(n_rows, &mut stream);
            let mut all = vec![0.0; n_rows];
            for &(row, value) in &nonzero {
                all[row as usize] = value;
            }
            let dense = SortedColumn::new(all.into_iter(), &control).unwrap();
            let sparse = SortedColumn::sparse(&nonzero, n_rows, &control).unwrap();
            assert_same(&dense, &sparse, n_rows, &mut stream);
            let highest = [dense.with_missing_highest(), sparse.with_missing_highest()];
            if let [Some(dense), Some(sparse)] = highest {
                assert_same(&dense, &sparse, n_rows, &mut stream);
            } else {
                assert!(highest.iter().all(Option::is_none));
            }
        }
    }
}
