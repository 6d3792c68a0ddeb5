//! Settings of the classification posterior.

use crate::error::{Error, Result};

/// How predicted probabilities are calibrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Calibration {
    /// Not: the average over trees (eq. 5.6), as in the thesis.
    None,
    /// A power and a share of noise, under which some rows that are left out are most likely.
    #[default]
    LeaveOneOut,
}

/// Settings of the classification posterior.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassificationSettings {
    /// The discount parameter `gamma` in units of the sum of the feature weights (the thesis: `gamma = 10 D`).
    pub discount: f64,
    /// How probabilities are calibrated.
    pub calibration: Calibration,
}

impl Default for ClassificationSettings {
    /// The thesis' discount, and calibration by leave-one-out.
    fn default() -> Self {
        Self { discount: 10.0, calibration: Calibration::default() }
    }
}

impl ClassificationSettings {
    /// # Errors
    /// A discount that is not positive and finite.
    pub fn check(&self) -> Result<()> {
        check_discount(self.discount)
    }
}

pub(super) fn check_discount(discount: f64) -> Result<()> {
    if discount > 0.0 && discount.is_finite() {
        return Ok(());
    }
    Err(Error::InvalidSetting {
        name: "discount",
        expected: "positive and finite",
        found: discount.to_string(),
    })
}
