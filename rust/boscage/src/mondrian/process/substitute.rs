//! What stands for a missing value.
//!
//! A tree is a function of its rows, so a missing value must lie where its row alone says: at a number, or at a linear
//! function of the features that the row has. With a number for each feature rows that lack it lie together. With a
//! linear function they lie near rows that are like them otherwise.

use crate::error::{Error, Result};
use crate::validate::MAX_VALUE;

/// What stands for a missing value of one feature: `centre` plus a linear function of other features. With terms it
/// stays within the reference range.
#[derive(Debug, Clone, PartialEq)]
pub struct Substitute {
    /// The value of a row without the features of all terms.
    pub centre: f64,
    /// One for each feature that the value depends on.
    pub terms: Vec<SubstituteTerm>,
}

/// `slope * (x - from)`, where `x` is the row's value of a feature; 0 if that is missing, too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SubstituteTerm {
    /// The other feature.
    pub feature: u32,
    /// The change of the value for a change of the other feature.
    pub slope: f64,
    /// Where the other feature changes nothing.
    pub from: f64,
}

impl Substitute {
    /// The value for a row: a constant as it is, a linear function limited to a range.
    pub(super) fn value(&self, row: &[f64], low: f64, high: f64) -> f64 {
        rounded(self.exact_value(row, low, high), low, high)
    }

    fn exact_value(&self, row: &[f64], low: f64, high: f64) -> f64 {
        if self.terms.is_empty() {
            return self.centre;
        }
        let term = |term: &SubstituteTerm| {
            let x = row[term.feature as usize];
            if x.is_nan() { 0.0 } else { term.slope * (x - term.from) }
        };
        let value = self.centre + self.terms.iter().map(term).sum::<f64>();
        // Sums of huge terms may be no number.
        if value.is_nan() { self.centre } else { value.clamp(low, high) }
    }

    /// Refuses what cannot stand for missing values of `feature`, one of `n_features`.
    pub(super) fn check(&self, feature: usize, n_features: usize) -> Result<()> {
        let is_possible = |x: f64| x.abs() <= MAX_VALUE;
        let is_other = |other: u32| (other as usize) < n_features && other as usize != feature;
        let is_right = |term: &SubstituteTerm| {
            is_other(term.feature) && is_possible(term.slope) && is_possible(term.from)
        };
        if is_possible(self.centre) && self.terms.iter().all(is_right) {
            return Ok(());
        }
        Err(Error::InvalidSetting {
            name: "substitutes",
            expected: "numbers within +-4e307 and terms of other features",
            found: format!("{self:?} for feature {feature} of {n_features}"),
        })
    }
}

/// A number in single precision, so that tables of `f32` stay so, where that hardly changes its place in a range.
pub(super) fn rounded(value: f64, low: f64, high: f64) -> f64 {
    const CLOSE: f64 = 1e-6;
    let narrow = f64::from(value as f32);
    let range = low..=high;
    let is_close = (narrow - value).abs() <= CLOSE * (high - low);
    let stays = range.contains(&narrow) || !range.contains(&value);
    if narrow.is_normal() && is_close && stays { narrow } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_unless_that_moves_them_in_their_range() {
        let single = f64::from(0.1f32);
        for (value, low, high, expected) in [
            (0.1, 0.0, 1.0, single),
            (0.1, 0.0, 1e-3, 0.1),
            (0.1, 0.1, 1.0, single),
            (0.1, 0.0, 0.1, 0.1),
            (1.7e9 + 50.0, 1.7e9, 1.7e9 + 100.0, 1.7e9 + 50.0),
            (1e300, 0.0, 1e301, 1e300),
            (1e-300, 0.0, 1.0, 1e-300),
            (0.0, 0.0, 1.0, 0.0),
        ] {
            assert_eq!(rounded(value, low, high), expected, "{value} in {low} to {high}");
        }
    }
}
