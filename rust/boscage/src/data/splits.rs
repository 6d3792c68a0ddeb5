//! Splits of finished Bayesian trees and sums of trees, and what the features of such models hold.

use crate::data::categories::{RightSide, category_goes_right};
use crate::data::{Rows, value_goes_right};
use crate::error::Result;

/// A split of a feature, by a threshold or between categories.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SideRule {
    pub(crate) feature: u32,
    /// Of categories, the number of their [`RightSide`].
    pub(crate) threshold: f64,
    /// Whether missing values go right.
    pub(crate) missing_right: bool,
    /// Whether the feature has categories.
    pub(crate) is_categorical: bool,
}

impl SideRule {
    /// A threshold of a feature that is not missing.
    pub(crate) fn new(feature: u32, threshold: f64) -> Self {
        Self { feature, threshold, missing_right: false, is_categorical: false }
    }

    /// Whether a value, which may be missing, goes right.
    #[inline]
    pub(crate) fn sends_right(&self, value: f64) -> bool {
        if self.is_categorical {
            category_goes_right(value, RightSide::from_number(self.threshold), self.missing_right)
        } else {
            value_goes_right(value, self.threshold, self.missing_right)
        }
    }

    /// The threshold for users: NaN at a split of categories.
    pub(crate) fn shown_threshold(&self) -> f64 {
        if self.is_categorical { f64::NAN } else { self.threshold }
    }
}

/// What the features of a model held in training.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FeatureKinds {
    /// By feature, how many categories it has, or 0; empty if no feature has any.
    pub(crate) n_categories: Vec<u32>,
    /// Whether numbers were missing.
    pub(crate) has_missing: bool,
    /// Whether splits say to which side missing values go. Else, in models from older files, no number may be missing in
    /// predictions.
    pub(crate) has_sides: bool,
}

impl FeatureKinds {
    pub(crate) fn has_categories(&self) -> bool {
        !self.n_categories.is_empty()
    }

    /// Whether two models have features that held the same.
    pub(crate) fn are_alike(&self, other: &Self) -> bool {
        self.n_categories == other.n_categories && self.has_missing == other.has_missing
    }

    /// Checks the codes of categories in some rows, and whether their numbers may be missing.
    ///
    /// # Errors
    /// The first value that is no code, or that is missing and may not be.
    pub(crate) fn check(&self, rows: Rows<'_>) -> Result<()> {
        rows.with_categories(&self.n_categories)?.check_missing(self.has_sides)
    }

    /// The codes of the categories that a split sends right, ascending; none if it is not one of categories.
    pub(crate) fn right_categories(&self, split: &SideRule) -> Vec<u32> {
        if !split.is_categorical {
            return Vec::new();
        }
        RightSide::from_number(split.threshold).codes(self.n_categories[split.feature as usize])
    }
}
