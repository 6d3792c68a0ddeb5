//! A monotone, piecewise-linear map of a feature: where along it a Mondrian process cuts more often.

use crate::error::{Error, Result};
use crate::math::order::{from_ordered, to_ordered};

/// Knots of one feature at the most.
pub const MAX_KNOTS: usize = 64;

/// The share of a feature's rate that lies below each value of it.
///
/// It is 0 at the first knot, 1 at the last and linear in between; outside it goes on with the mean slope.
/// Without knots it only brings the reference range to `[0, 1]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FeatureMap {
    knots: Vec<f64>,
    shares: Vec<f64>,
}

impl FeatureMap {
    /// A map through the points `(knots[k], shares[k])`.
    ///
    /// # Errors
    /// Lengths that differ, one knot or more than [`MAX_KNOTS`]; knots or shares that do not increase, or
    /// shares that do not go from 0 to 1.
    ///
    /// ```
    /// # use boscage::FeatureMap;
    /// assert!(FeatureMap::new(vec![0.0, 1.0, 100.0], vec![0.0, 0.5, 1.0]).is_ok());
    /// assert!(FeatureMap::new(vec![0.0, 1.0, 100.0], vec![0.0, 0.0, 1.0]).is_err());
    /// ```
    pub fn new(knots: Vec<f64>, shares: Vec<f64>) -> Result<Self> {
        let wrong = |expected, found| Err(Error::InvalidSetting { name: "feature_maps", expected, found });
        if knots.len() != shares.len() || knots.len() == 1 || knots.len() > MAX_KNOTS {
            let found = format!("{} knots and {} shares", knots.len(), shares.len());
            return wrong("no knots or 2 to 64, each with its share", found);
        }
        // NaN is not less than anything.
        let increases = |pair: &[f64]| pair[0] < pair[1];
        for (values, what) in [(&knots, "knot"), (&shares, "share")] {
            if let Some(i) = values.windows(2).position(|pair| !increases(pair)) {
                let found =
                    format!("{what} {i} is {:?} and {what} {} is {:?}", values[i], i + 1, values[i + 1]);
                return wrong("knots and shares that increase", found);
            }
        }
        if let (Some(first), Some(last)) = (shares.first(), shares.last())
            && (*first, *last) != (0.0, 1.0)
        {
            return wrong("shares from 0 to 1", format!("{first} to {last}"));
        }
        Ok(Self { knots, shares })
    }

    /// Values of the feature; none if the map is linear.
    #[must_use]
    pub fn knots(&self) -> &[f64] {
        &self.knots
    }

    /// The share of the rate below each knot.
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The coordinate of `x`, for a reference range that begins at `low` and is `unit` wide.
    ///
    /// It never decreases in `x`, rounding included: differences, quotients, products and sums round
    /// monotonely, and every piece is kept between its ends. (Rows that only the rounding to `f32` makes
    /// coincide are `6e-8` of the reference range apart or less.)
    pub(crate) fn coordinate(&self, low: f64, unit: f64, x: f64) -> f32 {
        let at = match self.knots.partition_point(|&knot| knot <= x) {
            0 => (x - low) / unit,
            k if k == self.knots.len() => 1.0 + (x - self.knots[k - 1]) / unit,
            k => {
                let (from, to) = (self.shares[k - 1], self.shares[k]);
                let (start, end) = (self.knots[k - 1], self.knots[k]);
                (from + (to - from) * ((x - start) / (end - start))).clamp(from, to)
            }
        };
        at.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
    }
}

/// The largest number for which a condition holds that holds up to some number and not beyond: at least
/// for the least finite number, for no number greater than `f64::MAX`.
pub(crate) fn largest(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut yes, mut no) = (to_ordered(f64::MIN), to_ordered(f64::MAX) + 1);
    // Halves are added, for the distance does not fit the type.
    while yes + 1 < no {
        let middle = (yes >> 1) + (no >> 1) + (yes & no & 1);
        if holds(from_ordered(middle)) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    from_ordered(yes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map() -> impl Strategy<Value = FeatureMap> {
        let steps = prop::collection::vec((1e-12..1.0f64, 1e-6..1.0f64), 1..MAX_KNOTS);
        (-1e6..1e6f64, 1e-3..1e6f64, steps).prop_map(|(low, scale, steps)| {
            let mut knots = vec![low];
            let mut shares = vec![0.0];
            let total: f64 = steps.iter().map(|step| step.1).sum();
            for (width, share) in steps {
                let knot = knots.last().unwrap() + width * scale;
                if knot > *knots.last().unwrap() {
                    knots.push(knot);
                    shares.push(shares.last().unwrap() + share / total);
                }
            }
            *shares.last_mut().unwrap() = 1.0;
            if knots.len() < 2 { FeatureMap::default() } else { FeatureMap::new(knots, shares).unwrap() }
        })
    }

    #[test]
    fn the_first_pair_that_does_not_increase_is_named() {
        for (knots, shares, found) in [
            (vec![0.0, 2.0, 1.0], vec![0.0, 0.5, 1.0], "knot 1 is 2.0 and knot 2 is 1.0"),
            (vec![0.0, f64::NAN, 1.0], vec![0.0, 0.5, 1.0], "knot 0 is 0.0 and knot 1 is NaN"),
            (vec![0.0, 1.0, 2.0], vec![0.0, 1e-300, 0.0], "share 1 is 1e-300 and share 2 is 0.0"),
        ] {
            let error = FeatureMap::new(knots, shares).unwrap_err().to_string();
            assert_eq!(error, format!("feature_maps must be knots and shares that increase, found {found}"));
        }
    }

    proptest! {
        #[test]
        fn coordinates_never_decrease(
            map in map(), near in 0usize..MAX_KNOTS, steps in 0u64..1000, far in -1e12..1e12f64,
        ) {
            let (low, unit) = match map.knots() {
                [low, .., high] => (*low, high - low),
                _ => (0.0, 1.0),
            };
            let of = |x: f64| map.coordinate(low, unit, x);
            let knot = map.knots().get(near % map.knots().len().max(1)).copied().unwrap_or(low);
            let beside = f64::from_bits((knot + f64::MIN_POSITIVE).to_bits() + steps);
            let mut values = vec![far, beside, beside.next_up(), knot, knot.next_down(), f64::MIN, f64::MAX];
            values.extend(map.knots());
            values.sort_by(f64::total_cmp);
            prop_assert!(values.windows(2).all(|pair| of(pair[0]) <= of(pair[1])));
        }

        #[test]
        fn the_largest_value_left_of_a_cut(map in map(), cut in -3.0..4.0f64) {
            let (low, unit) = match map.knots() {
                [low, .., high] => (*low, high - low),
                _ => (0.0, 1.0),
            };
            let left = |x: f64| f64::from(map.coordinate(low, unit, x)) <= cut;
            let threshold = largest(left);
            prop_assert!(left(threshold) && !left(threshold.next_up()));
        }
    }

    #[test]
    fn the_largest_number_of_all() {
        assert_eq!(largest(|_| true), f64::MAX);
        assert_eq!(largest(|x| x <= -0.5), -0.5);
        assert_eq!(largest(|x| x < 0.0), -f64::from_bits(1));
        assert_eq!(largest(|x| x <= 0.0), 0.0);
    }
}
