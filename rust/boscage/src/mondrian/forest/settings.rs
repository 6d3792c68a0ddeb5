//! The settings that determine a forest of Mondrian trees, beside its rows and domain.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::validate::{MAX_TREES, check_count};

/// How a prediction treats a test row that lies outside the data boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Predictive {
    /// It averages over all places where the row may branch off (Algorithms 5.8, 6.5). Needs boxes of all
    /// nodes.
    #[default]
    Averaged,
    /// It follows the tree's own keyed process. Needs boxes of leaves alone.
    Realised,
}

/// The settings that determine a forest of Mondrian trees, beside its rows and domain.
#[derive(Debug, Clone, PartialEq)]
pub struct MondrianSettings {
    /// Number of trees.
    pub n_estimators: usize,
    /// No cut comes at this time or later; `lambda` in the thesis.
    pub lifetime: f64,
    /// A node of fewer rows is not split; at least 2.
    pub min_samples_split: usize,
    /// How predictions treat test rows outside the data boxes.
    pub predictive: Predictive,
    /// Seed of the keyed generator.
    pub seed: u64,
    /// The numbers of the trees that are drawn here, if others draw the rest; `None` for all trees. Files do not have it: a
    /// share's file is that of the whole forest.
    pub share: Option<Range<usize>>,
}

impl Default for MondrianSettings {
    /// 100 trees, infinite lifetime, leaves of one label.
    fn default() -> Self {
        Self {
            n_estimators: 100,
            lifetime: f64::INFINITY,
            min_samples_split: 2,
            predictive: Predictive::Averaged,
            seed: 0,
            share: None,
        }
    }
}

impl MondrianSettings {
    /// # Errors
    /// A setting outside its bounds.
    pub fn check(&self) -> Result<()> {
        let wrong = |name, expected, found: String| Err(Error::InvalidSetting { name, expected, found });
        check_count("n_estimators", self.n_estimators, MAX_TREES)?;
        if self.lifetime.is_nan() || self.lifetime < 0.0 {
            return wrong("lifetime", "non-negative", self.lifetime.to_string());
        }
        if self.min_samples_split < 2 {
            return wrong("min_samples_split", "at least 2", self.min_samples_split.to_string());
        }
        match &self.share {
            Some(share) if share.is_empty() || share.end > self.n_estimators => {
                wrong("share", "a range of the forest's trees", format!("{share:?}"))
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// A share of a forest, where all of its trees are needed.
    pub(crate) fn check_whole(&self) -> Result<()> {
        match &self.share {
            Some(share) if *share != (0..self.n_estimators) => {
                let (expected, found) = ("all trees of the forest", format!("{share:?}"));
                Err(Error::InvalidSetting { name: "share", expected, found })
            }
            _ => Ok(()),
        }
    }

    /// The numbers of the trees that are drawn.
    pub(crate) fn trees(&self) -> Range<usize> {
        self.share.clone().unwrap_or(0..self.n_estimators)
    }
}
