//! The cuts of a node: the features that vary among its rows, and the weight of each gap between neighbouring
//! values of a feature, computed in one pass over the sorted rows (section 3.3.1).

use crate::bayes::leaf::model::{ConjugateLeaf, MovingCut};
use crate::data::sorted::column::Span;
use crate::data::sorted::columns::SortedColumns;
use crate::data::splits::SideRule;

/// Gaps whose log weight is this far below the largest are left out: they would not change the sum in double
/// precision, and are never drawn.
const NEGLIGIBLE: f64 = 45.0;

/// A share of an extent, and its logarithm. A gap with a smaller share does not decide which other gaps are
/// negligible.
const TINY_SHARE: (f64, f64) = (1e-8, -18.5);

/// Rows whose rank along the feature is not above `rank` go left. Here and in all samplers, the feature is a column of
/// [`SortedColumns`], which also says to which side missing values go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RankCut {
    pub(crate) feature: u32,
    pub(crate) rank: u32,
}

/// The rule of an inner node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rule {
    pub(crate) cut: RankCut,
    pub(crate) threshold: f64,
}

impl Rule {
    /// The rule of a split along a column.
    pub(crate) fn of_split(SideRule { feature, threshold, .. }: SideRule, table: &SortedColumns) -> Self {
        let rank = table.column(feature).last_rank_below(threshold);
        Self { cut: RankCut { feature, rank }, threshold }
    }
}

/// A feature that varies among a node's rows, with the span of their values: an element of `V_j` of
/// eq. 3.4 and its extent `e_j`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) feature: u32,
    pub(crate) span: Span,
}

/// The extents of those of the given features that vary among the rows, which ascend.
pub(crate) fn extents(
    table: &SortedColumns,
    rows: &[u32],
    features: impl Iterator<Item = u32>,
) -> Vec<Extent> {
    let extent = |feature| {
        let span = table.column(feature).span_of_rows(rows);
        span.varies().then_some(Extent { feature, span })
    };
    features.filter_map(extent).collect()
}

/// A gap between neighbouring ranks of a node. All thresholds in it split the rows alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gap {
    pub(crate) left: u32,
    pub(crate) right: u32,
    /// Sum of the weights of this gap and all gaps before it.
    cumulative: f64,
}

/// The weighted gaps of a node along one feature.
#[derive(Debug, Clone)]
pub(crate) struct Gaps {
    /// None once the gaps have been dropped to save memory.
    gaps: Option<Vec<Gap>>,
    /// Logarithm of the sum of their weights.
    log_total: f64,
}

impl Gaps {
    /// Logarithm of the sum of all weights.
    pub(crate) fn log_total(&self) -> f64 {
        self.log_total
    }

    /// Number of gaps with positive probability.
    pub(crate) fn len(&self) -> usize {
        self.known().len()
    }

    /// The gap at which `u` in `[0, 1)` falls in the cumulative weights.
    pub(crate) fn at(&self, u: f64) -> Gap {
        let gaps = self.known();
        let total = gaps.last().expect("a feature that varies has a gap").cumulative;
        let i = gaps.partition_point(|gap| gap.cumulative <= u * total);
        gaps[i.min(gaps.len() - 1)]
    }

    /// The gap that contains a cut after rank `rank`.
    pub(crate) fn around(&self, rank: u32) -> Gap {
        let gaps = self.known();
        gaps[gaps.partition_point(|gap| gap.left <= rank) - 1]
    }

    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.gaps.as_ref().map_or(0, |gaps| gaps.capacity() * size_of::<Gap>())
    }

    /// Drops the gaps and keeps the logarithm of the sum.
    pub(crate) fn forget(&mut self) {
        self.gaps = None;
    }

    /// Whether the gaps have been dropped.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.gaps.is_none()
    }

    fn known(&self) -> &[Gap] {
        self.gaps.as_deref().expect("gaps that a proposal needs were weighed before")
    }

    /// Weights gaps; on entry `cumulative` holds the logarithm of each gap's likelihood.
    fn from_likelihoods(mut gaps: Vec<Gap>, share: impl Fn(u32, u32) -> f64) -> Self {
        let best = gaps.iter().map(|gap| gap.cumulative).fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for gap in &mut gaps {
            sum += share(gap.left, gap.right) * libm::exp(gap.cumulative - best);
            gap.cumulative = sum;
        }
        Self {
            gaps: Some(gaps),
            log_total: if sum > 0.0 { best + libm::log(sum) } else { f64::NEG_INFINITY },
        }
    }
}

fn pack(rank: u32, row: u32) -> u64 {
    u64::from(rank) << 32 | u64::from(row)
}

fn unpack(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

fn is_marked(marks: &[u64], row: u32) -> bool {
    marks[row as usize / 64] >> (row % 64) & 1 == 1
}

/// The marked rows of a part of a column's order that begins at `start`, each with its position.
fn pick(picked: &mut [u64], marks: &[u64], order: &[u32], start: usize) {
    let mut n = 0;
    for (place, &row) in (start..).zip(order) {
        // Every row is written, and the marked ones are kept: this avoids an unpredictable branch.
        let Some(to) = picked.get_mut(n) else { break };
        *to = (place as u64) << 32 | u64::from(row);
        n += usize::from(is_marked(marks, row));
    }
}

/// Sorts a node's rows along one feature after the other.
///
/// Of a feature for which few rows of the table do not have its commonest value, only these are sorted. One pair, whose
/// row does not matter, stands for all others.
#[derive(Debug)]
pub(crate) struct Sorter<'a> {
    table: &'a SortedColumns,
    rows: &'a [u32],
    /// One bit for each row of the table: whether the row is in the node. None for small nodes.
    members: Option<Vec<u64>>,
    /// Rank and row, packed.
    sorted: Vec<u64>,
    /// The place of the pair that stands for the rows with the commonest value, if there are any.
    common: Option<usize>,
    /// By position in sorted order, the log likelihood of a cut before that row.
    likelihoods: Vec<f64>,
}

impl<'a> Sorter<'a> {
    /// The node's rows are picked from some rows in their order if they are at least as many, divided by this number;
    /// for fewer rows sorting is faster.
    const PICKED: usize = 8;

    pub(crate) fn new(table: &'a SortedColumns, rows: &'a [u32]) -> Self {
        // With at least one row for each word of bits, clearing the bits costs no more than reading the rows.
        let members = (rows.len() * 64 >= table.n_rows()).then(|| {
            let mut bits = vec![0u64; table.n_rows().div_ceil(64)];
            for &row in rows {
                bits[row as usize / 64] |= 1 << (row % 64);
            }
            bits
        });
        Self { table, rows, members, sorted: Vec::new(), common: None, likelihoods: Vec::new() }
    }

    /// Sorts pairs of rank and row, ascending.
    fn sort(&mut self, extent: Extent) {
        match self.table.column(extent.feature).few_uncommon() {
            None => self.sort_all(extent),
            Some(uncommon) => self.sort_uncommon(extent.feature, uncommon),
        }
    }

    /// Sorts the rows that do not have a feature's commonest value.
    fn sort_uncommon(&mut self, feature: u32, uncommon: [&[u32]; 2]) {
        let column = self.table.column(feature);
        self.sorted.clear();
        if uncommon.iter().map(|part| part.len()).sum::<usize>() > self.rows.len() * Self::PICKED {
            let ranked = self.rows.iter().map(|&row| pack(column.rank(row), row));
            self.sorted.extend(ranked.filter(|&pair| unpack(pair).0 != column.commonest_rank()));
            self.sorted.sort_unstable();
        } else {
            let is_own = |row: u32| match &self.members {
                Some(bits) => is_marked(bits, row),
                None => self.rows.binary_search(&row).is_ok(),
            };
            let own = uncommon.into_iter().flatten().filter(|row| is_own(**row));
            self.sorted.extend(own.map(|&row| pack(column.rank(row), row)));
        }
        let common = pack(column.commonest_rank(), 0);
        let place = self.sorted.partition_point(|&pair| pair < common);
        self.common = (self.sorted.len() < self.rows.len()).then_some(place);
        if self.common.is_some() {
            self.sorted.insert(place, common);
        }
    }

    /// Sorts all rows.
    fn sort_all(&mut self, extent: Extent) {
        let column = self.table.column(extent.feature);
        self.common = None;
        self.sorted.resize(self.rows.len(), 0);
        let (low, high) = column.ranks_of(extent.span);
        let marked = self.members.as_ref().map(|bits| (bits, column.places(low, high)));
        match marked {
            Some((bits, places)) if places.len() <= self.rows.len() * Self::PICKED => {
                let rows = column.rows_at(places.clone());
                pick(&mut self.sorted, bits, &rows, places.start);
                if column.has_ties() {
                    self.sorted.iter_mut().for_each(|at| *at = pack(column.rank(*at as u32), *at as u32));
                }
            }
            _ => {
                let packed = self.rows.iter().map(|&row| pack(column.rank(row), row));
                self.sorted.iter_mut().zip(packed).for_each(|(to, pair)| *to = pair);
                self.sorted.sort_unstable();
            }
        }
    }

    /// All gaps along a feature, with equal weights (the empirical proposal).
    pub(crate) fn equal_gaps(&mut self, extent: Extent) -> Gaps {
        let mut gaps: Vec<Gap> = Vec::new();
        let (mut left, _) = self.table.column(extent.feature).ranks_of(extent.span);
        self.sort(extent);
        for rank in self.sorted.iter().map(|&pair| unpack(pair).0) {
            if rank > left {
                gaps.push(Gap { left, right: rank, cumulative: gaps.len() as f64 + 1.0 });
                left = rank;
            }
        }
        let log_total = libm::log(gaps.len() as f64);
        Gaps { gaps: Some(gaps), log_total }
    }

    /// The gaps along a feature, with weights `gap / extent l(left) l(right)` (eq. 3.5). Gaps that are
    /// negligible beside the heaviest gap, or beside a weight whose logarithm is `floor`, are left out.
    pub(crate) fn likely_gaps<L: ConjugateLeaf>(
        &mut self,
        extent: Extent,
        leaf: &L,
        all: &L::Stats,
        floor: f64,
    ) -> Gaps {
        let column = self.table.column(extent.feature);
        if extent.span.has_missing {
            self.weigh_gaps(extent, (leaf, all), floor, column.shares(extent.span))
        } else {
            self.weigh_gaps(extent, (leaf, all), floor, column.shares_of_extent(extent.span))
        }
    }

    /// [`Self::likely_gaps`], where `share` gives a gap's prior probability.
    fn weigh_gaps<L: ConjugateLeaf>(
        &mut self,
        extent: Extent,
        (leaf, all): (&L, &L::Stats),
        floor: f64,
        share: impl Fn(u32, u32) -> f64,
    ) -> Gaps {
        let mut sweep = leaf.moving_cut(all);
        let mut likelihoods = std::mem::take(&mut self.likelihoods);
        likelihoods.clear();
        let (mut left, mut bound) =
            (self.table.column(extent.feature).ranks_of(extent.span).0, floor - NEGLIGIBLE);
        self.sort(extent);
        for (place, &pair) in self.sorted.iter().enumerate() {
            let (rank, row) = unpack(pair);
            let mut likelihood = f64::NEG_INFINITY;
            if rank > left {
                likelihood = sweep.log_likelihood();
                // The weight of a gap is at most its likelihood, and not much less unless the gap is tiny.
                let least = likelihood - NEGLIGIBLE + TINY_SHARE.1;
                if least > bound && share(left, rank) > TINY_SHARE.0 {
                    bound = least;
                }
                left = rank;
            }
            likelihoods.push(likelihood);
            if self.common == Some(place) {
                sweep.shift_all_but(self.sorted[place + 1..].iter().map(|&pair| unpack(pair).1));
            } else {
                sweep.shift(row);
            }
        }
        let gaps = self.gaps_above(bound, &likelihoods);
        self.likelihoods = likelihoods;
        Gaps::from_likelihoods(gaps, share)
    }

    /// The positions whose gap has a log likelihood above a bound.
    fn gaps_above(&self, bound: f64, likelihoods: &[f64]) -> Vec<Gap> {
        let mut gaps = Vec::with_capacity(likelihoods.iter().filter(|&&l| l > bound).count());
        let rank = |pair: u64| unpack(pair).0;
        for (ends, &cumulative) in self.sorted.windows(2).zip(&likelihoods[1..]) {
            if cumulative > bound {
                gaps.push(Gap { left: rank(ends[0]), right: rank(ends[1]), cumulative });
            }
        }
        gaps
    }
}
