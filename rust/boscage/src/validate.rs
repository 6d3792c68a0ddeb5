//! Bounds within which settings and targets are taken.

use crate::data::Rows;
use crate::error::{Error, Result};

/// Particles of an island: streams are numbered by 32 bits.
pub(crate) const MOST_PARTICLES: (usize, &str) = (1_000_000, "from 1 to 1000000");
/// Islands or chains.
pub(crate) const MOST_RUNS: (usize, &str) = (100_000, "from 1 to 100000");
/// What is kept, such as trees.
pub(crate) const MOST_KEPT: (usize, &str) = (10_000_000, "from 1 to 10000000");
/// Steps that only take time.
pub(crate) const MOST_STEPS: (usize, &str) = (1_000_000_000, "from 1 to 1000000000");

/// The greatest target, or mean of targets, by magnitude: sums of squares stay finite.
const LARGEST_TARGET: f64 = 1e140;
/// What the greatest by magnitude must reach, unless it is zero: sums of squares are not lost.
const SMALLEST_TARGET: f64 = 1e-140;

/// Bounds of a setting that is a number, within which likelihoods are computed to many digits.
pub(crate) type Bounds = (f64, f64, &'static str);
/// Priors that are worth so many rows: less or more is as good as these.
pub(crate) const WORTH: Bounds = (1e-100, 1e100, "from 1e-100 to 1e100");
/// Shapes of gamma distributions and shares of variances: beyond, gamma functions lose what targets say.
pub(crate) const SHAPES: Bounds = (1e-9, 1e9, "from 1e-9 to 1e9");
/// Sums of squares.
pub(crate) const SQUARES: Bounds = (1e-290, 1e290, "from 1e-290 to 1e290");

/// # Errors
/// [`Error::InvalidSetting`] for a number outside of its bounds.
pub(crate) fn check_within(name: &'static str, value: f64, (least, most, expected): Bounds) -> Result<()> {
    check(name, (least..=most).contains(&value), expected, &format!("{value:?}"))
}

/// # Errors
/// [`Error::InvalidSetting`] for a count of zero or above the greatest.
pub(crate) fn check_count(
    name: &'static str,
    value: usize,
    (most, expected): (usize, &'static str),
) -> Result<()> {
    check(name, (1..=most).contains(&value), expected, &value)
}

/// # Errors
/// [`Error::InvalidSetting`] for counts whose product is above the greatest.
pub(crate) fn check_product(
    name: &'static str,
    counts: &[usize],
    (most, expected): (usize, &'static str),
) -> Result<()> {
    let product = counts.iter().fold(1u128, |product, &count| product.saturating_mul(count as u128));
    check(name, product <= most as u128, expected, &product)
}

/// # Errors
/// [`Error::InvalidSetting`] with these words where a setting is not as it should be.
pub(crate) fn check(
    name: &'static str,
    is_valid: bool,
    expected: &'static str,
    found: &dyn ToString,
) -> Result<()> {
    if is_valid { Ok(()) } else { Err(Error::InvalidSetting { name, expected, found: found.to_string() }) }
}

/// # Errors
/// [`Error::NonFiniteTarget`]; [`Error::InvalidSetting`] for a target that is too large.
pub(crate) fn check_targets(targets: &[f64]) -> Result<()> {
    if let Some(row) = targets.iter().position(|y| !y.is_finite()) {
        return Err(Error::NonFiniteTarget { row, value: targets[row] });
    }
    let expected = "at most 1e140 by magnitude, so that squares are finite";
    match targets.iter().find(|y| !is_small(**y)) {
        Some(y) => check("y", false, expected, y),
        None => Ok(()),
    }
}

/// # Errors
/// As [`check_targets`]; [`Error::InvalidSetting`] for targets that are all too small, but not all zero.
pub(crate) fn check_squares(targets: &[f64]) -> Result<()> {
    check_targets(targets)?;
    let largest = targets.iter().map(|y| y.abs()).fold(0.0, f64::max);
    let expected = "at least 1e-140 by magnitude somewhere, so that squares are not lost, or zero everywhere";
    check("y", largest == 0.0 || largest >= SMALLEST_TARGET, expected, &format!("{largest:e} at the most"))
}

/// Whether a number is at most the largest target by magnitude.
pub(crate) fn is_small(y: f64) -> bool {
    y.abs() <= LARGEST_TARGET
}

/// Checks that there is a row, and a target for each.
pub(crate) fn check_lengths(rows: Rows<'_>, n_targets: usize) -> Result<()> {
    if rows.n_rows() == 0 {
        return Err(Error::Empty { n_rows: 0, n_features: rows.n_features() });
    }
    if rows.n_rows() != n_targets {
        let why = "one a row of X";
        return Err(Error::Length { what: "y", found: n_targets, expected: rows.n_rows(), why });
    }
    let max = u32::MAX as usize;
    if rows.n_rows() > max {
        return Err(Error::TooManyRows { max, found: rows.n_rows() });
    }
    Ok(())
}
