//! Weights of rows that come and go: their sums are exact, so that they do not depend on the order of the rows.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use crate::data::RowId;
use crate::math::fixed_point::FixedPoint;

/// How many rows a row, or several, count as: a multiple of `2^-64`.
///
/// The unit is fixed, unlike that of models which know all rows beforehand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Weight(i128);

impl Weight {
    const BITS: u32 = 64;
    const UNIT: FixedPoint = FixedPoint::with_bits(Self::BITS);
    pub(crate) const NONE: Self = Self(0);
    /// That of one row.
    pub(crate) const ONE: Self = Self::of_rows(1);

    /// The weight nearest to a number that [`check_row_weights`](crate::validate::check_row_weights) admits.
    pub(crate) fn of(number: f64) -> Self {
        Self(Self::UNIT.fixed(number))
    }

    /// That of so many rows of weight 1.
    pub(crate) const fn of_rows(n: usize) -> Self {
        /// More than there can be.
        const MOST: usize = 1 << 62;
        Self((if n < MOST { n as i128 } else { MOST as i128 }) << Self::BITS)
    }

    /// A weight below [`ONE`](Self::ONE), from [`fraction`](Self::fraction).
    pub(crate) fn of_fraction(fraction: u64) -> Self {
        Self(i128::from(fraction))
    }

    /// The multiples of the unit, of a weight below [`ONE`](Self::ONE).
    pub(crate) fn fraction(self) -> u64 {
        debug_assert!((Self::NONE..Self::ONE).contains(&self));
        self.0 as u64
    }

    pub(crate) fn float(self) -> f64 {
        // Nearly all are whole.
        let is_whole = self.0 as u64 == 0;
        if is_whole { (self.0 >> Self::BITS) as i64 as f64 } else { Self::UNIT.float(self.0) }
    }
}

impl Add for Weight {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Weight {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Weight {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        weights.fold(Self::NONE, Self::add)
    }
}

/// The targets of rows, and their weights unless all are 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowTargets<'a, T> {
    pub(crate) targets: &'a [T],
    pub(crate) weights: Option<&'a [f64]>,
}

impl<T: Copy> RowTargets<'_, T> {
    pub(crate) fn of(&self, row: RowId) -> T {
        self.targets[row as usize]
    }

    pub(crate) fn weight(&self, row: RowId) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row as usize])
    }

    /// The weights of some rows, in their order, unless all rows' are 1.
    pub(crate) fn weights_of(&self, rows: &[RowId]) -> Option<Vec<f64>> {
        self.weights.map(|weights| rows.iter().map(|&row| weights[row as usize]).collect())
    }

    /// Whether each of some rows has the weight 1.
    pub(crate) fn weigh_one(&self, rows: &[RowId]) -> bool {
        self.weights.is_none_or(|weights| rows.iter().all(|&row| weights[row as usize] == 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_the_order_and_whole_weights_are_numbers_of_rows() {
        let numbers = [0.1, 1e9, 1e-12, 3.0, 1.0 / 3.0];
        let all: Weight = numbers.iter().map(|&number| Weight::of(number)).sum();
        let back: Weight = numbers.iter().rev().map(|&number| Weight::of(number)).sum();
        assert_eq!(all, back);
        let rest = numbers[1..].iter().fold(all, |rest, &number| rest - Weight::of(number));
        assert_eq!(rest, Weight::of(0.1));
        assert_eq!(rest.float(), 0.1);
        assert_eq!(Weight::of(7.0), Weight::of_rows(7));
        assert_eq!(Weight::of_rows(7).float(), 7.0);
        assert!(Weight::of(1e-12) > Weight::NONE);
        assert_eq!(Weight::of_fraction(Weight::of(0.3).fraction()), Weight::of(0.3));
    }
}
