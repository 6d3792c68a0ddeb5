//! Checks of settings, targets and array sizes, and the intervals that they allow.

use std::ops::Range;

use crate::data::Rows;
use crate::error::{Error, Result};

/// Largest number of particles of an island: their streams are numbered by 32 bits.
pub(crate) const MAX_PARTICLES: (usize, &str) = (1_000_000, "from 1 to 1000000");
/// Largest number of islands or chains.
pub(crate) const MAX_CHAINS: (usize, &str) = (100_000, "from 1 to 100000");
/// Largest number of draws or trees kept.
pub(crate) const MAX_DRAWS: (usize, &str) = (10_000_000, "from 1 to 10000000");
/// Largest number of trees of a forest.
pub(crate) const MAX_TREES: (usize, &str) = (100_000, "between 1 and 100000");
/// Largest number of steps; more would only take longer.
pub(crate) const MAX_STEPS: (usize, &str) = (1_000_000_000, "from 1 to 1000000000");

/// Largest magnitude of a bound of features, so that differences are finite.
pub(crate) const MAX_VALUE: f64 = f64::MAX / 4.0;
/// Largest magnitude of a target, or of a mean of targets, so that sums of squares are finite.
const MAX_TARGET: f64 = 1e140;
/// The targets' largest magnitude must be zero or at least this, so that squares do not underflow.
const MIN_LARGEST_TARGET: f64 = 1e-140;

/// Interval of a real setting within which likelihoods are accurate to many digits.
pub(crate) type Interval = (f64, f64, &'static str);
/// Prior pseudo-counts of rows: larger ones would not change results.
pub(crate) const PSEUDO_COUNTS: Interval = (1e-100, 1e100, "from 1e-100 to 1e100");
/// Shapes of gamma distributions, and shares of variances: larger ones would hide the targets behind the
/// rounding of gamma functions.
pub(crate) const GAMMA_SHAPES: Interval = (1e-9, 1e9, "from 1e-9 to 1e9");
/// Sums of squares.
pub(crate) const SUMS_OF_SQUARES: Interval = (1e-290, 1e290, "from 1e-290 to 1e290");

/// # Errors
/// [`Error::InvalidSetting`] for a number outside of its bounds.
pub(crate) fn check_within(name: &'static str, value: f64, (least, most, expected): Interval) -> Result<()> {
    check(name, (least..=most).contains(&value), expected, &format!("{value:?}"))
}

/// # Errors
/// [`Error::InvalidSetting`] for a number that is zero, negative or not finite.
pub(crate) fn check_positive(name: &'static str, value: f64) -> Result<()> {
    check(name, value > 0.0 && value.is_finite(), "positive and finite", &value.to_string())
}

/// # Errors
/// [`Error::InvalidSetting`] for a count of zero or above the largest.
pub(crate) fn check_count(
    name: &'static str,
    value: usize,
    (most, expected): (usize, &'static str),
) -> Result<()> {
    check(name, (1..=most).contains(&value), expected, &value)
}

/// The numbers of the chains or islands to run: one of `n`, or all.
///
/// # Errors
/// [`Error::InvalidSetting`] for a number that is not below `n`.
pub(crate) fn check_numbers(name: &'static str, only: Option<usize>, n: usize) -> Result<Range<usize>> {
    let Some(number) = only else { return Ok(0..n) };
    check(name, number < n, "below the number of them", &number)?;
    Ok(number..number + 1)
}

/// # Errors
/// [`Error::InvalidSetting`] for counts whose product is above the largest.
pub(crate) fn check_product(
    name: &'static str,
    counts: &[usize],
    (most, expected): (usize, &'static str),
) -> Result<()> {
    let product = counts.iter().fold(1u128, |product, &count| product.saturating_mul(count as u128));
    check(name, product <= most as u128, expected, &product)
}

/// Checks a condition on a setting.
///
/// # Errors
/// [`Error::InvalidSetting`] with `expected` as its text, if the condition does not hold.
pub(crate) fn check(
    name: &'static str,
    is_valid: bool,
    expected: &'static str,
    found: &dyn ToString,
) -> Result<()> {
    if is_valid { Ok(()) } else { Err(Error::InvalidSetting { name, expected, found: found.to_string() }) }
}

/// Checks that targets are finite, and their squares too.
///
/// # Errors
/// [`Error::NonFiniteTarget`]; [`Error::InvalidSetting`] for a target that is too large.
pub(crate) fn check_targets(targets: &[f64]) -> Result<()> {
    if let Some(row) = targets.iter().position(|y| !y.is_finite()) {
        return Err(Error::NonFiniteTarget { row, value: targets[row] });
    }
    let expected = "at most 1e140 by magnitude, so that squares are finite";
    match targets.iter().find(|y| !is_small(**y)) {
        Some(y) => check("y", false, expected, &format!("{y:e}")),
        None => Ok(()),
    }
}

/// Checks that sums of squares of targets neither overflow nor underflow.
///
/// # Errors
/// As [`check_targets`] and [`check_largest`].
pub(crate) fn check_squares(targets: &[f64]) -> Result<()> {
    check_targets(targets)?;
    check_largest(targets.iter().copied())
}

/// Checks that sums of squares of targets do not underflow.
///
/// # Errors
/// [`Error::InvalidSetting`] for targets that are all too small but not all zero.
pub(crate) fn check_largest(targets: impl Iterator<Item = f64>) -> Result<()> {
    let largest = targets.map(f64::abs).fold(0.0, f64::max);
    let expected = "zero everywhere or at least 1e-140 by magnitude somewhere, so that squares do not vanish";
    let found = format!("a largest magnitude of {largest:e}");
    check("y", largest == 0.0 || largest >= MIN_LARGEST_TARGET, expected, &found)
}

/// Checks that there is one weight for each row, and that all are positive and finite.
///
/// # Errors
/// [`Error::Length`]; [`Error::InvalidSetting`] for the first weight that is wrong.
pub(crate) fn check_weights(weights: &[f64], n_rows: usize) -> Result<()> {
    check_each_weight(weights, n_rows, "positive and finite", |w| w > 0.0 && w.is_finite())
}

/// Checks weights that say how often rows count, as [`check_weights`] does.
///
/// # Errors
/// As [`check_weights`], and for a weight that is not from 1e-100 to 1e15.
pub(crate) fn check_repeats(weights: &[f64], n_rows: usize) -> Result<()> {
    check_each_weight(weights, n_rows, "from 1e-100 to 1e15", |w| (1e-100..=1e15).contains(&w))
}

/// What a weight of rows that come and go must be.
pub(crate) const ROW_WEIGHT: &str = "from 1e-12 to 1e9";

/// Checks weights of rows that come and go, as [`check_weights`] does.
///
/// # Errors
/// As [`check_weights`], and for a weight that is not from 1e-12 to 1e9.
pub(crate) fn check_row_weights(weights: &[f64], n_rows: usize) -> Result<()> {
    check_each_weight(weights, n_rows, ROW_WEIGHT, |w| (1e-12..=1e9).contains(&w))
}

fn check_each_weight(
    weights: &[f64],
    n_rows: usize,
    expected: &'static str,
    is_right: impl Fn(f64) -> bool,
) -> Result<()> {
    let what = "sample_weight";
    if weights.len() != n_rows {
        return Err(Error::Length { what, found: weights.len(), expected: n_rows, why: "one weight a row" });
    }
    let Some(row) = weights.iter().position(|&w| !is_right(w)) else { return Ok(()) };
    check(what, false, expected, &format!("{:?} for row {row}", weights[row]))
}

/// Whether a number is allowed as a target or a mean of targets.
pub(crate) fn is_small(y: f64) -> bool {
    y.abs() <= MAX_TARGET
}

/// Checks the arrays of a fit: at least one row, not more rows than row numbers, one target for each row, and no
/// value missing.
///
/// # Errors
/// [`Error::Empty`]; [`Error::TooManyRows`]; as [`check_n_targets`].
pub(crate) fn check_lengths(rows: Rows<'_>, n_targets: usize) -> Result<()> {
    if rows.n_rows() == 0 {
        return Err(Error::Empty { n_rows: 0, n_features: rows.n_features() });
    }
    check_n_targets(rows.n_rows(), n_targets)?;
    let max = u32::MAX as usize;
    if rows.n_rows() > max {
        return Err(Error::TooManyRows { max, found: rows.n_rows() });
    }
    Ok(())
}

/// Checks that there is one target for each row.
///
/// # Errors
/// [`Error::Length`].
pub(crate) fn check_n_targets(n_rows: usize, n_targets: usize) -> Result<()> {
    if n_targets == n_rows {
        return Ok(());
    }
    Err(Error::Length { what: "y", found: n_targets, expected: n_rows, why: "one a row of X" })
}

/// Checks that rows have as many features as those that the model was fitted with.
///
/// # Errors
/// [`Error::Length`].
pub(crate) fn check_n_features(rows: Rows<'_>, expected: usize) -> Result<()> {
    let (what, found) = ("a row of X", rows.n_features());
    if found == expected {
        return Ok(());
    }
    Err(Error::Length { what, found, expected, why: "the features that the model was fitted with" })
}

/// Checks that there is one reference range for each feature.
///
/// # Errors
/// [`Error::Length`].
pub(crate) fn check_n_ranges(n_ranges: usize, rows: Rows<'_>) -> Result<()> {
    let (what, expected) = ("feature_range", rows.n_features());
    if n_ranges == expected {
        return Ok(());
    }
    Err(Error::Length { what, found: n_ranges, expected, why: "one value a feature of X" })
}

/// Checks that class codes are indices into the labels.
///
/// # Errors
/// [`Error::InvalidSetting`].
pub(crate) fn check_codes(codes: &[u32], n_labels: usize) -> Result<()> {
    let name = "class codes";
    match codes.iter().find(|&&code| code as usize >= n_labels) {
        Some(code) => {
            check(name, false, "an index into the labels", &format!("{code} for {n_labels} labels"))
        }
        None => Ok(()),
    }
}
