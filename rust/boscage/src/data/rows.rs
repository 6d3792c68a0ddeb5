//! Checked views of the caller's arrays, and the scalar types that rows may have.

use std::fmt::Debug;

use crate::data::sparse_row::SparseRow;
use crate::error::{Error, Result};

/// A feature's type: `f32` or `f64`.
pub trait Scalar: Copy + Debug + PartialOrd + Send + Sync + Into<f64> + 'static {
    /// The value in this type, if it is represented exactly.
    fn exact(value: f64) -> Option<Self>;
    /// The value rounded to this type.
    fn of<S: Scalar>(value: S) -> Self;
    /// The largest value of this type that is not above the given one.
    fn not_above(value: f64) -> Self;
    /// Zero.
    const ZERO: Self;
    /// The least finite value.
    const MIN: Self;
    /// The greatest finite value.
    const MAX: Self;
}

impl Scalar for f32 {
    const ZERO: Self = 0.0;
    const MIN: Self = Self::MIN;
    const MAX: Self = Self::MAX;
    fn exact(value: f64) -> Option<Self> {
        let narrow = value as Self;
        (f64::from(narrow) == value || value.is_nan()).then_some(narrow)
    }
    fn of<S: Scalar>(value: S) -> Self {
        let wide: f64 = value.into();
        wide as Self
    }
    fn not_above(value: f64) -> Self {
        let nearest = value as Self;
        if f64::from(nearest) > value { nearest.next_down() } else { nearest }
    }
}

impl Scalar for f64 {
    const ZERO: Self = 0.0;
    const MIN: Self = Self::MIN;
    const MAX: Self = Self::MAX;
    fn exact(value: f64) -> Option<Self> {
        Some(value)
    }
    fn of<S: Scalar>(value: S) -> Self {
        value.into()
    }
    fn not_above(value: f64) -> Self {
        value
    }
}

/// The most categories of a feature, each of which is a column of all training rows.
pub(crate) const MAX_CATEGORIES: u32 = 1024;

/// Rows of features, borrowed: `n_rows x n_features` values, row after row. They are finite, or NaN where a value is
/// missing if the rows were made so.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    values: BorrowedValues<'a>,
    n_features: usize,
    /// Whether values may be missing.
    has_missing: bool,
    /// By feature, how many categories it has; 0 if its values are numbers. Empty if all are.
    n_categories: &'a [u32],
}

#[derive(Debug, Clone, Copy)]
enum BorrowedValues<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    Sparse(&'a [SparseRow]),
}

impl<'a> Rows<'a> {
    /// Rows of `f32`.
    ///
    /// # Errors
    /// No feature, a length that is no multiple of `n_features`, or a value that is not finite.
    ///
    /// ```
    /// let rows = boscage::Rows::from_f32(&[0.0, 1.0, 2.0, 3.0], 2)?;
    /// assert_eq!(rows.n_rows(), 2);
    /// # Ok::<(), boscage::Error>(())
    /// ```
    pub fn from_f32(values: &'a [f32], n_features: usize) -> Result<Self> {
        Self::from_f32_with_missing(values, n_features)?.complete()
    }

    /// Rows of `f32` in which NaN stands for a missing value.
    ///
    /// # Errors
    /// No feature, a length that is no multiple of `n_features`, or an infinite value.
    ///
    /// ```
    /// let rows = boscage::Rows::from_f32_with_missing(&[0.0, f32::NAN], 2)?;
    /// assert!(rows.has_missing());
    /// # Ok::<(), boscage::Error>(())
    /// ```
    pub fn from_f32_with_missing(values: &'a [f32], n_features: usize) -> Result<Self> {
        let has_missing = check(values, n_features)?;
        Ok(Self { values: BorrowedValues::F32(values), n_features, has_missing, n_categories: &[] })
    }

    /// Rows of `f64`.
    ///
    /// # Errors
    /// As [`Rows::from_f32`].
    pub fn from_f64(values: &'a [f64], n_features: usize) -> Result<Self> {
        Self::from_f64_with_missing(values, n_features)?.complete()
    }

    /// Rows of `f64` in which NaN stands for a missing value.
    ///
    /// # Errors
    /// As [`Rows::from_f32_with_missing`].
    pub fn from_f64_with_missing(values: &'a [f64], n_features: usize) -> Result<Self> {
        let has_missing = check(values, n_features)?;
        Ok(Self { values: BorrowedValues::F64(values), n_features, has_missing, n_categories: &[] })
    }

    /// Rows of which most values are 0; NaN stands for a missing value.
    ///
    /// # Errors
    /// No feature; a value of a feature that does not exist, or an infinite one.
    ///
    /// ```
    /// use boscage::{Rows, SparseRow};
    /// let rows = [SparseRow::new(vec![(2, 0.5)])?, SparseRow::default()];
    /// assert_eq!(Rows::from_sparse(&rows, 50_000)?.n_rows(), 2);
    /// assert!(Rows::from_sparse(&rows, 2).is_err());
    /// # Ok::<(), boscage::Error>(())
    /// ```
    pub fn from_sparse(rows: &'a [SparseRow], n_features: usize) -> Result<Self> {
        check::<f64>(&[], n_features)?;
        if n_features > u32::MAX as usize {
            let (name, expected) = ("n_features of sparse rows", "at most 4294967295");
            return Err(Error::InvalidSetting { name, expected, found: n_features.to_string() });
        }
        for (row, values) in rows.iter().enumerate() {
            for &(feature, value) in values.values() {
                if feature as usize >= n_features {
                    return Err(Error::InvalidSetting {
                        name: "the features of a sparse row",
                        expected: "below the number of features",
                        found: format!("{feature} of {n_features} in row {row}"),
                    });
                }
                if value.is_infinite() {
                    return Err(Error::NonFinite { row, feature: feature as usize, value });
                }
            }
        }
        let has_missing = rows.iter().any(SparseRow::has_missing);
        Ok(Self { values: BorrowedValues::Sparse(rows), n_features, has_missing, n_categories: &[] })
    }

    /// Whether zeros are not stored.
    pub(crate) fn is_sparse(&self) -> bool {
        matches!(self.values, BorrowedValues::Sparse(_))
    }

    /// The rows, of which some features hold categories: codes below `n_categories` of the feature, or NaN where a
    /// category is missing or unknown. 0 stands for a feature of numbers. Bayesian trees and BART divide categories in
    /// two instead of comparing codes. Mondrian forests do not look at this: their
    /// [`Domain`](crate::Domain::with_categories) knows of categories.
    ///
    /// # Errors
    /// No number for each feature; too many categories; a value that is no code.
    ///
    /// ```
    /// let rows = boscage::Rows::from_f64(&[0.0, 1.5, 2.0, 0.3], 2)?;
    /// assert!(rows.with_categories(&[3, 0]).is_ok());
    /// assert!(rows.with_categories(&[2, 0]).is_err());
    /// # Ok::<(), boscage::Error>(())
    /// ```
    pub fn with_categories(self, n_categories: &'a [u32]) -> Result<Self> {
        check_categories(n_categories, self.n_features)?;
        for (feature, &n) in n_categories.iter().enumerate().filter(|(_, n)| **n > 0) {
            let is_code =
                |value: f64| value.is_nan() || value.fract() == 0.0 && (0.0..f64::from(n)).contains(&value);
            if let Some(row) = (0..self.n_rows()).find(|&row| !is_code(self.at(row, feature))) {
                return Err(Error::InvalidSetting {
                    name: "a category",
                    expected: "a code below the number of the feature's categories",
                    found: format!("{} of {n} in row {row} and feature {feature}", self.at(row, feature)),
                });
            }
        }
        Ok(Self { n_categories, ..self })
    }

    /// By feature, how many categories it has; 0 if its values are numbers. Empty if all are.
    pub(crate) fn n_categories(&self) -> &'a [u32] {
        self.n_categories
    }

    /// Whether a value may be missing.
    #[must_use]
    pub fn has_missing(&self) -> bool {
        self.has_missing
    }

    /// The rows, if no value is missing.
    ///
    /// # Errors
    /// The first missing value.
    pub(crate) fn complete(self) -> Result<Self> {
        match self.first_missing() {
            None => Ok(self),
            Some((row, feature)) => Err(Error::NonFinite { row, feature, value: f64::NAN }),
        }
    }

    /// Checks that no number is missing, unless numbers may be missing. Categories always may.
    ///
    /// # Errors
    /// The first missing value.
    pub(crate) fn check_missing(self, may_be: bool) -> Result<()> {
        match self.first_missing() {
            Some((row, feature)) if !may_be => Err(Error::Missing { row, feature }),
            _ => Ok(()),
        }
    }

    /// Row and feature of the first missing value that is no category.
    pub(crate) fn first_missing(&self) -> Option<(usize, usize)> {
        if !self.has_missing {
            return None;
        }
        let is_number = |feature: usize| self.n_categories.get(feature).is_none_or(|&n| n == 0);
        (0..self.n_rows()).find_map(|row| {
            let (feature, _) = self.nonzero(row).find(|&(d, value)| value.is_nan() && is_number(d))?;
            Some((row, feature))
        })
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        match self.values {
            BorrowedValues::F32(values) => values.len() / self.n_features,
            BorrowedValues::F64(values) => values.len() / self.n_features,
            BorrowedValues::Sparse(rows) => rows.len(),
        }
    }

    /// Number of features.
    #[must_use]
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The rows `start..end`.
    pub(crate) fn slice(&self, start: usize, end: usize) -> Self {
        let (a, b) = (start * self.n_features, end * self.n_features);
        let values = match self.values {
            BorrowedValues::F32(values) => BorrowedValues::F32(&values[a..b]),
            BorrowedValues::F64(values) => BorrowedValues::F64(&values[a..b]),
            BorrowedValues::Sparse(rows) => BorrowedValues::Sparse(&rows[start..end]),
        };
        Self { values, ..*self }
    }

    /// The values of one row.
    pub(crate) fn row(&self, i: usize) -> impl Iterator<Item = f64> + '_ {
        let (mut stored, n_dense) = self.stored(i);
        let of_sparse = move |feature| match stored.split_first() {
            Some((&(first, value), rest)) if first as usize == feature => {
                stored = rest;
                plain(value)
            }
            _ => 0.0,
        };
        let of_dense = move |feature| self.at(i, feature);
        (0..n_dense).map(of_dense).chain((n_dense..self.n_features).map(of_sparse))
    }

    /// The values of a sparse row that are not 0, and the number of values of a dense row. One of the two is empty.
    fn stored(&self, i: usize) -> (&'a [(u32, f64)], usize) {
        match self.values {
            BorrowedValues::Sparse(rows) => (rows[i].values(), 0),
            _ => (&[], self.n_features),
        }
    }

    /// The values of one row that are not 0, by feature.
    pub(crate) fn nonzero(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let (stored, n_dense) = self.stored(i);
        let stored = stored.iter().map(|&(feature, value)| (feature as usize, plain(value)));
        stored
            .chain((0..n_dense).map(move |feature| (feature, self.at(i, feature))))
            .filter(|(_, value)| *value != 0.0)
    }

    /// One value.
    #[inline]
    pub(crate) fn at(&self, row: usize, feature: usize) -> f64 {
        plain(match self.values {
            BorrowedValues::F32(values) => f64::from(values[row * self.n_features + feature]),
            BorrowedValues::F64(values) => values[row * self.n_features + feature],
            BorrowedValues::Sparse(rows) => rows[row].at(feature as u32),
        })
    }

    /// All values in one type, if each is exact in it. Negative zero becomes zero.
    pub(crate) fn to_exact<S: Scalar>(self) -> Option<Vec<S>> {
        // A sum's NaN may have other bits.
        let exact = |value: f64| S::exact(if value.is_nan() { f64::NAN } else { value + 0.0 });
        match self.values {
            BorrowedValues::F32(values) => values.iter().map(|&value| exact(f64::from(value))).collect(),
            BorrowedValues::F64(values) => values.iter().copied().map(exact).collect(),
            BorrowedValues::Sparse(rows) => {
                let n_values = rows.len() * self.n_features;
                let mut all = vec![S::ZERO; n_values];
                for (row, values) in all.chunks_exact_mut(self.n_features).zip(rows) {
                    for &(feature, value) in values.values() {
                        row[feature as usize] = exact(value)?;
                    }
                }
                Some(all)
            }
        }
    }

    /// A copy of one row, without its zeros.
    pub(crate) fn sparse_row(&self, i: usize) -> SparseRow {
        match self.values {
            BorrowedValues::Sparse(rows) => rows[i].clone(),
            _ => SparseRow::of(self.row(i)),
        }
    }
}

/// A value with one NaN for all, since digests read its bits.
fn plain(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

/// Checks the numbers of categories of all features, none if all features are numbers.
///
/// # Errors
/// Not one number for each feature; more than [`MAX_CATEGORIES`].
pub(crate) fn check_categories(n_categories: &[u32], n_features: usize) -> Result<()> {
    if !n_categories.is_empty() && n_categories.len() != n_features {
        let (what, why) = ("n_categories", "one number for each feature");
        return Err(Error::Length { what, found: n_categories.len(), expected: n_features, why });
    }
    match n_categories.iter().position(|&n| n > MAX_CATEGORIES) {
        None => Ok(()),
        Some(feature) => Err(Error::InvalidSetting {
            name: "the number of categories of a feature",
            expected: "at most 1024 (group rare categories)",
            found: format!("{} in feature {feature}", n_categories[feature]),
        }),
    }
}

/// Whether a value is missing, if all others are finite.
fn check<S: Scalar>(values: &[S], n_features: usize) -> Result<bool> {
    if n_features == 0 {
        return Err(Error::Empty { n_rows: 0, n_features });
    }
    if !values.len().is_multiple_of(n_features) {
        return Err(Error::Length {
            what: "X",
            found: values.len(),
            expected: values.len() / n_features * n_features,
            why: "a whole number of rows",
        });
    }
    let Some(first) = values.iter().position(|&v| !v.into().is_finite()) else { return Ok(false) };
    match values[first..].iter().position(|&v| v.into().is_infinite()) {
        None => Ok(true),
        Some(after) => {
            let k = first + after;
            Err(Error::NonFinite { row: k / n_features, feature: k % n_features, value: values[k].into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a value in single precision is above a threshold in double precision.
    #[test]
    fn thresholds_round_to_the_side_that_decides_alike() {
        let near = [0.1f32, -0.1, 1.0, -1.0, f32::MIN_POSITIVE, f32::MAX, f32::MIN, 0.0, -0.0, 16_777_217.0];
        let values: Vec<f32> = near.into_iter().flat_map(|x| [x.next_down(), x, x.next_up()]).collect();
        let mut thresholds = vec![0.1, -0.1, 1e-300, -1e-300, f64::MAX, f64::MIN, 1e39, -1e39];
        thresholds.extend(values.iter().flat_map(|&x| {
            let x = f64::from(x);
            [x.next_down(), x, x.next_up()]
        }));
        for (&x, &threshold) in values.iter().flat_map(|x| thresholds.iter().map(move |t| (x, t))) {
            assert_eq!(x > f32::not_above(threshold), f64::from(x) > threshold, "{x:e} and {threshold:e}");
            assert_eq!(f64::not_above(threshold), threshold);
        }
    }
}
