//! Features divided into bins. A learned measure has a constant rate on each bin.

use crate::data::Rows;
use crate::error::Result;
use crate::mondrian::process::feature_map::FeatureMap;

/// Number of quantiles, and of equally spaced values, that divide a feature.
const PARTS: usize = 16;
/// The least distance of two knots, as a share of the reference range, so that shares increase strictly in
/// floating point.
const LEAST_WIDTH: f64 = 1e-9;
/// The share of the base measure in every learned measure, so that no distinct values get the same
/// coordinate.
const BASE_SHARE: f64 = 0.02;

/// One feature: its values, its bins, and their base measure. The base measure is one in total, half by rank
/// and half by length.
#[derive(Debug)]
pub(crate) struct Axis {
    pub(crate) values: Vec<f64>,
    /// Ends of the bins; empty if the reference range is a single value.
    pub(crate) knots: Vec<f64>,
    pub(crate) base: Vec<f64>,
}

impl Axis {
    /// The axis of a feature with reference range `[low, high]`.
    pub(crate) fn new(values: Vec<f64>, low: f64, high: f64) -> Self {
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let knots = knots(&sorted, low, high);
        let base = base(&sorted, &knots);
        Self { values, knots, base }
    }

    /// The axes of all features, for the rows with the given numbers.
    pub(crate) fn of_rows(rows: Rows<'_>, low: &[f64], high: &[f64]) -> Vec<Self> {
        (0..rows.n_features())
            .map(|d| {
                let values = (0..rows.n_rows()).map(|i| rows.at(i, d)).collect();
                Self::new(values, low[d], high[d])
            })
            .collect()
    }

    pub(crate) fn n_bins(&self) -> usize {
        self.base.len()
    }

    /// The bin of a value, and the share of the bin below it. Values outside the range are moved to its ends.
    pub(crate) fn bin(&self, value: f64) -> (usize, f64) {
        let above = self.knots.partition_point(|&knot| knot <= value);
        let k = above.clamp(1, self.n_bins()) - 1;
        let (start, end) = (self.knots[k], self.knots[k + 1]);
        (k, ((value - start) / (end - start)).clamp(0.0, 1.0))
    }

    /// The feature map of a measure with these masses of bins, which need not sum to one.
    pub(crate) fn map(&self, masses: &[f64]) -> Result<FeatureMap> {
        let total: f64 = masses.iter().sum();
        let mixed = masses.iter().zip(&self.base).map(|(mass, base)| {
            let share = if total > 0.0 { mass / total } else { *base };
            (1.0 - BASE_SHARE) * share + BASE_SHARE * base
        });
        let mut shares = vec![0.0];
        shares.extend(mixed.scan(0.0, |sum, mass| {
            *sum += mass;
            Some(*sum)
        }));
        let all = shares[shares.len() - 1];
        for share in &mut shares {
            *share /= all;
        }
        if self.knots.is_empty() {
            shares.clear();
        }
        FeatureMap::new(self.knots.clone(), shares)
    }
}

/// The knots: all distinct values if they are few, else quantiles and equally spaced values; and the ends of
/// the range.
fn knots(sorted: &[f64], low: f64, high: f64) -> Vec<f64> {
    if low >= high {
        return Vec::new();
    }
    let mut knots = sorted.to_vec();
    knots.dedup();
    if knots.len() > 2 * PARTS + 1 {
        let last = (sorted.len() - 1) as f64;
        let at = |part: usize| part as f64 / PARTS as f64;
        knots = (0..=PARTS).map(|part| sorted[(last * at(part)).round() as usize]).collect();
        knots.extend((1..PARTS).map(|part| low + (high - low) * at(part)));
        knots.sort_unstable_by(f64::total_cmp);
    }
    let apart = (high - low) * LEAST_WIDTH;
    let mut spaced = vec![low];
    for knot in knots {
        if knot - spaced[spaced.len() - 1] > apart && high - knot > apart {
            spaced.push(knot);
        }
    }
    spaced.push(high);
    spaced
}

/// The base measure of each bin: half the bin's share of the rows, and half its share of the length. A row on
/// a knot counts half in either bin.
fn base(sorted: &[f64], knots: &[f64]) -> Vec<f64> {
    let ranks: Vec<f64> = knots
        .iter()
        .map(|knot| {
            let below = sorted.partition_point(|value| value < knot);
            let upto = sorted.partition_point(|value| value <= knot);
            (below + upto) as f64
        })
        .collect();
    let [first, .., last] = ranks[..] else { return Vec::new() };
    let length = knots[knots.len() - 1] - knots[0];
    let shares = ranks.windows(2).zip(knots.windows(2)).map(|(rank, knot)| {
        let width = (knot[1] - knot[0]) / length;
        let share = if last > first { (rank[1] - rank[0]) / (last - first) } else { width };
        0.5 * share + 0.5 * width
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_of_few_and_of_many_values() {
        let few = Axis::new(vec![3.0, 1.0, 1.0, 2.0], 0.0, 4.0);
        assert_eq!(few.knots, [0.0, 1.0, 2.0, 3.0, 4.0]);
        // The mid-ranks are 0, 1, 2.5, 3.5 and 4 of 4.
        assert_eq!(few.base, [0.25, 0.3125, 0.25, 0.1875]);
        assert_eq!(few.bin(2.25), (2, 0.25));
        assert_eq!(few.bin(-1.0), (0, 0.0));
        assert_eq!(few.bin(9.0), (3, 1.0));

        let skew: Vec<f64> = (0..1000).map(|i| (f64::from(i) / 100.0).exp()).collect();
        let (low, high) = (skew[0], skew[999]);
        let many = Axis::new(skew, low, high);
        assert!(many.n_bins() <= 2 * PARTS && (many.base.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!((many.knots[0], many.knots[many.n_bins()]), (low, high));
        assert!(many.map(&vec![0.0; many.n_bins()]).is_ok());
    }

    #[test]
    fn nothing_to_cut_or_nothing_within() {
        assert_eq!(Axis::new(vec![2.0; 5], 2.0, 2.0).map(&[]).unwrap(), FeatureMap::default());
        // If all rows are outside the range, the measure is that of length.
        let outside = Axis::new(vec![7.0, 8.0], 0.0, 1.0);
        assert_eq!(
            (outside.knots.as_slice(), outside.base.as_slice()),
            ([0.0, 1.0].as_slice(), [1.0].as_slice())
        );
    }
}
