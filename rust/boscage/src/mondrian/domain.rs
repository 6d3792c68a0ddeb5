//! The boxes `K_0 < K_1 < ...` on which the keyed process lives, and the rate of every feature.

use crate::data::Rows;
use crate::error::{Error, Result};

/// The highest level: `K_64` is about `2^64` reference ranges wide.
pub const MAX_LEVEL: u32 = 64;

/// Bounds beyond this would overflow when one is subtracted from another.
const LARGEST: f64 = f64::MAX / 4.0;

/// Reference ranges (the box `K_0`) and rates of the Mondrian process.
///
/// The rate of a box is `sum_d w_d (u_d - l_d)`, `w_d` being `weights[d]` in units of one over the
/// reference range of feature `d` (one where that range is a single value). With all weights 1 that is
/// the papers' scaling of the features to `[0, 1]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Domain {
    low: Vec<f64>,
    high: Vec<f64>,
    weights: Vec<f64>,
    /// `w_d` per unit of the feature.
    rates: Vec<f64>,
    /// The reference range, or 1 where it is a single value.
    units: Vec<f64>,
}

impl Domain {
    /// A domain from the reference ranges `[low, high]` and weights (`None`: all 1).
    ///
    /// # Errors
    /// Lengths that differ, bounds that are not finite or not ordered, weights that are negative or not
    /// finite or all zero.
    pub fn new(low: Vec<f64>, high: Vec<f64>, weights: Option<Vec<f64>>) -> Result<Self> {
        let n = low.len();
        let weights = weights.unwrap_or_else(|| vec![1.0; n]);
        for (what, found) in [("the upper feature_range", high.len()), ("feature_weights", weights.len())] {
            if found != n {
                return Err(Error::Length { what, found, expected: n, why: "one value a feature" });
            }
        }
        for d in 0..n {
            let (l, h) = (low[d], high[d]);
            // NaN fails every comparison.
            if !(l <= h && l >= -LARGEST && h <= LARGEST) {
                return Err(Error::InvalidSetting {
                    name: "feature_range",
                    expected: "low <= high, both within +-4e307, for every feature",
                    found: format!("[{l}, {h}] for feature {d}"),
                });
            }
            if !(weights[d] >= 0.0 && weights[d] <= 1e100) {
                return Err(Error::InvalidSetting {
                    name: "feature_weights",
                    expected: "non-negative, finite and at most 1e100",
                    found: format!("{} for feature {d}", weights[d]),
                });
            }
        }
        if !weights.iter().any(|&w| w > 0.0) {
            return Err(Error::InvalidSetting {
                name: "feature_weights",
                expected: "positive for at least one feature",
                found: "zero for all".into(),
            });
        }
        let units: Vec<f64> = low.iter().zip(&high).map(|(l, h)| if h > l { h - l } else { 1.0 }).collect();
        let rates = weights.iter().zip(&units).map(|(w, u)| w / u).collect();
        Ok(Self { low, high, weights, rates, units })
    }

    /// The domain whose reference ranges are those of some rows.
    ///
    /// # Errors
    /// No rows; as [`Domain::new`].
    pub fn of_rows(rows: Rows<'_>, weights: Option<Vec<f64>>) -> Result<Self> {
        let (n_rows, n_features) = (rows.n_rows(), rows.n_features());
        if n_rows == 0 {
            return Err(Error::Empty { n_rows, n_features });
        }
        let mut low: Vec<f64> = rows.row(0).collect();
        let mut high = low.clone();
        for i in 1..n_rows {
            for ((l, h), value) in low.iter_mut().zip(&mut high).zip(rows.row(i)) {
                *l = l.min(value);
                *h = h.max(value);
            }
        }
        Self::new(low, high, weights)
    }

    /// Number of features.
    #[must_use]
    pub fn n_features(&self) -> usize {
        self.low.len()
    }

    /// Lower ends of the reference ranges.
    #[must_use]
    pub fn low(&self) -> &[f64] {
        &self.low
    }

    /// Upper ends of the reference ranges.
    #[must_use]
    pub fn high(&self) -> &[f64] {
        &self.high
    }

    /// Weights in units of one over the reference range.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Rates `w_d` per unit of the feature.
    #[must_use]
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// Sum of the weights: the rate of `K_0` when no feature is constant.
    #[must_use]
    pub fn total_weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Bounds of `K_level` in one dimension.
    pub(crate) fn bounds(&self, level: usize, d: usize) -> (f64, f64) {
        let (low, high) = (self.low[d], self.high[d]);
        if level == 0 {
            return (low, high);
        }
        let centre = low + 0.5 * (high - low);
        let half = self.units[d] * 2f64.powi(level as i32 - 1);
        // Rounding must not make a box smaller than the one within.
        ((centre - half).min(low).max(-LARGEST), (centre + half).max(high).min(LARGEST))
    }

    /// The smallest level whose box holds the row.
    ///
    /// # Errors
    /// [`Error::TooFar`], naming `row`, where none does.
    pub(crate) fn level_of(&self, row: usize, x: impl Iterator<Item = f64>) -> Result<u32> {
        let mut level = 0;
        for (feature, value) in x.enumerate() {
            // A feature that is switched off cuts nothing, wherever its values lie.
            if self.rates[feature] == 0.0 {
                continue;
            }
            while {
                let (low, high) = self.bounds(level as usize, feature);
                value < low || value > high
            } {
                level += 1;
                if level > MAX_LEVEL {
                    let (low, high) = (self.low[feature], self.high[feature]);
                    return Err(Error::TooFar { row, feature, value, low, high, max_level: MAX_LEVEL });
                }
            }
        }
        Ok(level)
    }
}
