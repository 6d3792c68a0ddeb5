//! The features of models of trees, and their splits: of Bayesian trees and of BART.

use crate::data::categories::RightSide;
use crate::data::rows::check_categories;
use crate::data::splits::{FeatureKinds, SideRule};
use crate::error::Result;
use crate::model_file::format::{
    ITEM, MISSING_SIDES, Reader, TREE_CATEGORIES, TREE_SIDES, TREE_WEIGHTS, Writer,
};

/// The oldest version that can hold a model of trees without weights; `without_sides` is that of models from older files,
/// which do not say to which side missing values go.
pub(crate) fn version_of_trees(kinds: &FeatureKinds, without_sides: u32) -> u32 {
    if kinds.has_categories() {
        TREE_CATEGORIES
    } else if kinds.has_missing {
        MISSING_SIDES
    } else if kinds.has_sides {
        TREE_SIDES
    } else {
        without_sides
    }
}

impl Writer {
    /// What the features of a model of trees hold, from version 10 on.
    pub(crate) fn feature_kinds(&mut self, kinds: &FeatureKinds) {
        if self.version >= TREE_CATEGORIES {
            self.list(&kinds.n_categories, |writer, n| writer.u32(*n));
            self.u8(u8::from(kinds.has_missing));
        }
    }
}

impl Reader<'_> {
    /// Checks a split that separates missing from present values: the missing ones lie beyond its infinite threshold.
    ///
    /// # Errors
    /// An infinite threshold whose sign is not that of the side of missing values.
    fn check_sides(&self, threshold: f64, missing_right: bool) -> Result<()> {
        if threshold.is_finite() || missing_right == (threshold > 0.0) {
            return Ok(());
        }
        let expected = u8::from(threshold > 0.0);
        Err(self.expected(format!("{expected} with the threshold {threshold}"), u8::from(missing_right)))
    }

    /// What the features of a model of trees hold.
    pub(crate) fn feature_kinds(&mut self, n_features: usize) -> Result<FeatureKinds> {
        if self.version < TREE_CATEGORIES {
            let has_missing = self.version >= MISSING_SIDES;
            return Ok(FeatureKinds { has_missing, has_sides: has_missing, ..FeatureKinds::default() });
        }
        let n_categories = self.list("n_categories", 4, |reader| reader.u32(ITEM))?;
        let is_without = self.version >= TREE_WEIGHTS && n_categories.is_empty();
        let has_some = n_categories.len() == n_features && n_categories.iter().any(|&n| n > 0);
        if !is_without && !has_some {
            let expected = format!("{n_features} numbers, one for each feature, not all 0");
            return Err(self.expected(expected, format!("{n_categories:?}")));
        }
        let checked = check_categories(&n_categories, n_features);
        self.checked(checked)?;
        let has_missing = self.flag("has_missing")?;
        let has_sides = has_missing || !n_categories.is_empty() || self.version >= TREE_SIDES;
        Ok(FeatureKinds { n_categories, has_missing, has_sides })
    }

    /// The rest of a split of a feature of trees: a threshold, or the categories that go right.
    pub(crate) fn tree_split(
        &mut self,
        feature: u32,
        kinds: &FeatureKinds,
        threshold: impl FnOnce(&mut Self) -> Result<f64>,
    ) -> Result<SideRule> {
        let n = kinds.n_categories.get(feature as usize).copied().unwrap_or(0);
        let is_categorical = n > 0;
        let threshold = if is_categorical { self.right_side(n)? } else { threshold(self)? };
        let missing_right = kinds.has_sides && self.flag("missing_right")?;
        if !is_categorical {
            self.check_sides(threshold, missing_right)?;
        }
        Ok(SideRule { feature, threshold, missing_right, is_categorical })
    }

    /// The number of a rule of `n` categories; missing ones may be one more.
    fn right_side(&mut self, n: u32) -> Result<f64> {
        let number = self.f64("right_categories")?;
        let right = RightSide::from_number(number);
        if right.is_rule_of(n) || right.is_rule_of(n + 1) {
            return Ok(number);
        }
        Err(self.expected(format!("a rule that parts {n} categories"), number))
    }
}
