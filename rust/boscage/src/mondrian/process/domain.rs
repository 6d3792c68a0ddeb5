//! The boxes `K_0 < K_1 < ...` on which the keyed process lives, and the rate of every feature.

use crate::data::{Rows, goes_right};
use crate::error::{Error, Result, check_room};
use crate::mondrian::process::categories::Categories;
use crate::mondrian::process::feature_map::{FeatureMap, largest};
use crate::mondrian::process::substitute::Substitute;
use crate::validate::MAX_VALUE;

/// The highest level: `K_64` is about `2^64` reference ranges wide.
pub const MAX_LEVEL: u32 = 64;

/// Rates beyond this would overflow when they are summed.
const HIGHEST_RATE: f64 = 1e290;

/// Reference ranges (the box `K_0`) and rates of the Mondrian process.
///
/// The rate of a box is `sum_d w_d (u_d - l_d)`, `w_d` being `weights[d]` in units of one over the
/// reference range of feature `d` (one where that range is a single value). With all weights 1 that is
/// the papers' scaling of the features to `[0, 1]`.
///
/// With [maps](Domain::with_maps) a feature's rate is not the same all along it: the process, its cuts and
/// boxes live in the *coordinates* that the maps give rows, whose reference ranges are `[0, 1]`. A feature of weight 0 has no
/// coordinate.
///
/// With [substitutes](Domain::with_substitutes) values may be missing; some features may be
/// [categories](Domain::with_categories).
#[derive(Debug, Clone, PartialEq)]
pub struct Domain {
    low: Vec<f64>,
    high: Vec<f64>,
    weights: Vec<f64>,
    maps: Option<Vec<FeatureMap>>,
    substitutes: Option<Vec<Substitute>>,
    categories: Vec<(u32, Categories)>,
    /// The reference range, or 1 where it is a single value.
    units: Vec<f64>,
    /// The feature of each coordinate; none if every feature has one.
    cut_features: Option<Vec<u32>>,
    /// `K_0`, ranges and rates in coordinates.
    inner: Coordinates,
}

/// The domain as the process uses it. Coordinates are the features of positive weight, as their maps give them if there are
/// maps: a feature of weight 0 is never cut, so that the process, its boxes and its table of rows need no place for it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Coordinates {
    low: Vec<f64>,
    high: Vec<f64>,
    units: Vec<f64>,
    /// `w_d` per unit of the coordinate.
    rates: Vec<f64>,
}

/// Room for the coordinates of rows.
#[derive(Debug, Default)]
pub(crate) struct CoordinateBuffer {
    /// Those that maps give.
    single: Vec<f32>,
    double: Vec<f64>,
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
            if !(l <= h && l >= -MAX_VALUE && h <= MAX_VALUE) {
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
        let unit = |d: usize| {
            let range = high[d] - low[d];
            // Such a narrow range counts as a single value: cuts in it would all come at time zero.
            if range > 0.0 && weights[d] / range < HIGHEST_RATE { range } else { 1.0 }
        };
        let units: Vec<f64> = (0..n).map(unit).collect();
        let cut: Vec<u32> = (0..n as u32).filter(|&d| weights[d as usize] > 0.0).collect();
        let cut_features = (cut.len() < n).then_some(cut);
        let (maps, substitutes, categories, inner) = (None, None, Vec::new(), Coordinates::default());
        let this = Self { low, high, weights, maps, substitutes, categories, units, cut_features, inner };
        Ok(this.with_coordinates())
    }

    /// The same domain, in which features of weight 0 have coordinates too. The cuts of its trees may have other last bits,
    /// since the rates of coordinates are summed in pairs: those of files before version 17.
    pub(crate) fn with_every_coordinate(self) -> Self {
        Self { cut_features: None, ..self }.with_coordinates()
    }

    fn with_coordinates(self) -> Self {
        let of = |value: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (0..self.n_coordinates()).map(|c| value(self.feature_of(c))).collect()
        };
        let inner = if self.maps.is_some() {
            let n = self.n_coordinates();
            let high = of(&|d| f64::from(u8::from(self.low[d] < self.high[d])));
            Coordinates { low: vec![0.0; n], high, units: vec![1.0; n], rates: of(&|d| self.weights[d]) }
        } else {
            Coordinates {
                low: of(&|d| self.low[d]),
                high: of(&|d| self.high[d]),
                units: of(&|d| self.units[d]),
                rates: of(&|d| self.weights[d] / self.units[d]),
            }
        };
        Self { inner, ..self }
    }

    /// The same domain with a map for every feature; those without knots are linear.
    ///
    /// # Errors
    /// A number of maps other than that of the features, or knots that do not end where the reference range
    /// does.
    pub fn with_maps(self, maps: Vec<FeatureMap>) -> Result<Self> {
        let n = self.n_features();
        if maps.len() != n {
            let (what, found) = ("feature_maps", maps.len());
            return Err(Error::Length { what, found, expected: n, why: "one map a feature" });
        }
        for (d, map) in maps.iter().enumerate() {
            if let [first, .., last] = map.knots()
                && (*first, *last) != (self.low[d], self.high[d])
            {
                return Err(Error::InvalidSetting {
                    name: "feature_maps",
                    expected: "knots that begin and end where the reference range does",
                    found: format!("{first} to {last} for feature {d}"),
                });
            }
        }
        Ok(Self { maps: Some(maps), ..self }.with_coordinates())
    }

    /// The same domain with these substitutes, which were checked.
    pub(super) fn and_substitutes(self, substitutes: Option<Vec<Substitute>>) -> Self {
        Self { substitutes, ..self }
    }

    /// The same domain in which some features, given by number, are categories.
    ///
    /// # Errors
    /// Features that are not sorted, come twice or do not exist.
    pub fn with_categories(self, categories: Vec<(u32, Categories)>) -> Result<Self> {
        let n = self.n_features();
        let sorted = categories.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !sorted || categories.last().is_some_and(|(feature, _)| *feature as usize >= n) {
            let features: Vec<u32> = categories.iter().map(|(feature, _)| *feature).collect();
            return Err(Error::InvalidSetting {
                name: "categories",
                expected: "features in order, none of them twice",
                found: format!("the features {features:?} of {n}"),
            });
        }
        Ok(Self { categories, ..self })
    }

    /// The domain whose reference ranges are those of some rows; of a feature that is missing in all of them, 0.
    ///
    /// # Errors
    /// No rows; as [`Domain::new`].
    pub fn of_rows(rows: Rows<'_>, weights: Option<Vec<f64>>) -> Result<Self> {
        let (n_rows, n_features) = (rows.n_rows(), rows.n_features());
        if n_rows == 0 {
            return Err(Error::Empty { n_rows, n_features });
        }
        check_room("ranges of features", n_features.saturating_mul(2 * size_of::<f64>()))?;
        let mut low: Vec<f64> = rows.row(0).collect();
        let mut high = low.clone();
        for i in 1..n_rows {
            for ((l, h), value) in low.iter_mut().zip(&mut high).zip(rows.row(i)) {
                // The minimum of NaN and a number is the number.
                *l = l.min(value);
                *h = h.max(value);
            }
        }
        for bound in low.iter_mut().chain(&mut high) {
            if bound.is_nan() {
                *bound = 0.0;
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

    /// Maps of the features, if there are any.
    #[must_use]
    pub fn maps(&self) -> Option<&[FeatureMap]> {
        self.maps.as_deref()
    }

    /// What stands for missing values of each feature, if values may be missing.
    #[must_use]
    pub fn substitutes(&self) -> Option<&[Substitute]> {
        self.substitutes.as_deref()
    }

    /// The features that are categories, by number.
    #[must_use]
    pub fn categories(&self) -> &[(u32, Categories)] {
        &self.categories
    }

    /// Number of coordinates.
    pub(crate) fn n_coordinates(&self) -> usize {
        self.cut_features.as_ref().map_or(self.low.len(), Vec::len)
    }

    /// The feature that a coordinate is of.
    pub(crate) fn feature_of(&self, coordinate: usize) -> usize {
        self.cut_features.as_ref().map_or(coordinate, |features| features[coordinate] as usize)
    }

    /// What a row is to the process: its values of the features that have coordinates, or of all features if one of these
    /// values is missing, since its substitute may depend on any.
    pub(crate) fn contents<'a>(
        &'a self,
        value: impl Fn(usize) -> f64 + 'a,
    ) -> impl Iterator<Item = f64> + 'a {
        let n = self.n_coordinates();
        let is_complete = !(0..n).any(|c| value(self.feature_of(c)).is_nan());
        let n = if is_complete { n } else { self.n_features() };
        (0..n).map(move |k| value(if is_complete { self.feature_of(k) } else { k }))
    }

    /// Whether every feature has a coordinate.
    pub(crate) fn has_every_coordinate(&self) -> bool {
        self.cut_features.is_none()
    }

    /// Whether rows' coordinates differ from their features.
    pub(crate) fn coordinates_differ(&self) -> bool {
        self.maps.is_some() || !self.has_every_coordinate()
    }

    /// Rates `w_d` per unit of each coordinate.
    pub(crate) fn rates(&self) -> &[f64] {
        &self.inner.rates
    }

    /// Sum of the weights: the rate of `K_0` when no feature is constant.
    #[must_use]
    pub fn total_weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Complete rows' coordinates, which `buffer` is to hold if they differ from the features.
    ///
    /// # Errors
    /// [`Error::Memory`], if those of sparse rows have no room.
    pub(crate) fn coordinates<'a>(
        &self,
        rows: Rows<'a>,
        buffer: &'a mut CoordinateBuffer,
    ) -> Result<Rows<'a>> {
        if !self.coordinates_differ() {
            return Ok(rows);
        }
        let n = self.n_coordinates();
        if rows.is_sparse() {
            check_room("the table of coordinates", rows.n_rows().saturating_mul(n * size_of::<f64>()))?;
        }
        let features: Vec<usize> = (0..n).map(|c| self.feature_of(c)).collect();
        let all = (0..rows.n_rows()).flat_map(|i| features.iter().map(move |&d| (d, rows.at(i, d))));
        let Some(maps) = &self.maps else {
            buffer.double.clear();
            buffer.double.extend(all.map(|(_, x)| x));
            return Rows::from_f64(&buffer.double, n);
        };
        buffer.single.clear();
        buffer.single.extend(all.map(|(d, x)| maps[d].coordinate(self.low[d], self.units[d], x)));
        Rows::from_f32(&buffer.single, n)
    }

    /// The largest value of a feature that goes left at a cut of its coordinate.
    pub(crate) fn threshold(&self, coordinate: usize, cut: f64) -> f64 {
        let Some(maps) = &self.maps else { return cut };
        let d = self.feature_of(coordinate);
        largest(|x| !goes_right(f64::from(maps[d].coordinate(self.low[d], self.units[d], x)), cut))
    }

    /// Bounds of `K_level` in one coordinate.
    pub(crate) fn bounds(&self, level: usize, d: usize) -> (f64, f64) {
        let (low, high) = (self.inner.low[d], self.inner.high[d]);
        if level == 0 {
            return (low, high);
        }
        let centre = low + 0.5 * (high - low);
        let half = self.inner.units[d] * power_of_two(level as i32 - 1);
        // Rounding must not make a box smaller than the one within.
        ((centre - half).min(low).max(-MAX_VALUE), (centre + half).max(high).min(MAX_VALUE))
    }

    /// The smallest level whose box holds the coordinates of a row, or the feature along which none does.
    pub(crate) fn level_of(&self, x: impl Iterator<Item = f64>) -> std::result::Result<u32, usize> {
        let mut level = 0;
        for (c, value) in x.enumerate() {
            // A feature with rate 0 is never cut, wherever its values lie.
            if self.inner.rates[c] == 0.0 {
                continue;
            }
            while {
                let (low, high) = self.bounds(level as usize, c);
                value < low || value > high
            } {
                level += 1;
                if level > MAX_LEVEL {
                    return Err(self.feature_of(c));
                }
            }
        }
        Ok(level)
    }

    /// The error for a row that is too far out in one feature.
    pub(crate) fn too_far(&self, row: usize, feature: usize, value: f64) -> Error {
        let (low, high) = (self.low[feature], self.high[feature]);
        Error::TooFar { row, feature, value, low, high, max_level: MAX_LEVEL }
    }
}

/// `2^n` where that is a normal number: its bits are the exponent's.
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::labels::Label;

    #[test]
    fn features_are_in_order_and_exist() {
        let domain = Domain::new(vec![0.0; 3], vec![1.0; 3], None).unwrap();
        let one = Categories::new(vec![Label::Text("a".into())], vec![0.0], 1.0).unwrap();
        let of = |features: &[u32]| {
            domain.clone().with_categories(features.iter().map(|&d| (d, one.clone())).collect())
        };
        assert_eq!(of(&[0, 2]).unwrap().categories().len(), 2);
        for wrong in [&[2, 0][..], &[1, 1], &[3]] {
            assert!(of(wrong).is_err());
        }
    }
}
