//! Settings of the classification posterior.

use crate::error::{Error, Result};
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::joint::kernel::{JointKernel, KernelRule, MAX_CLASSIFICATION_LIMIT_ROWS};

/// How predicted probabilities are calibrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Calibration {
    /// Not: the average over trees (eq. 5.6), as in the thesis.
    None,
    /// A power and a share of noise, under which some rows that are left out are most likely. This is the calibration of
    /// forests in older files.
    PowerAlone,
    /// The same; a power below 1 draws probabilities to the shares of the classes.
    #[default]
    LeaveOneOut,
}

/// What the trees say of a row's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClassPosterior {
    /// Every tree predicts alone, by interpolated Kneser-Ney, and their predictions are averaged (section 5.4).
    #[default]
    KneserNey,
    /// Beside that average, the function that all trees explain together (a Gaussian process with the forest's own kernel).
    Joint,
}

/// Settings of the classification posterior.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassificationSettings {
    /// The discount parameter `gamma` in units of the sum of the feature weights (the thesis: `gamma = 10 D`).
    pub discount: f64,
    /// How probabilities are calibrated.
    pub calibration: Calibration,
    /// What the trees say of a row's class.
    pub posterior: ClassPosterior,
    /// The covariance of the joint posterior.
    pub joint_kernel: JointKernel,
    /// Whether calibrated probabilities are multiplied by a linear function of the features, as far as left-out rows ask for it.
    pub trend: bool,
}

impl Default for ClassificationSettings {
    /// The thesis' discount and posterior, and calibration by leave-one-out, with a trend.
    fn default() -> Self {
        Self {
            discount: 10.0,
            calibration: Calibration::default(),
            posterior: ClassPosterior::default(),
            joint_kernel: JointKernel::default(),
            trend: true,
        }
    }
}

impl ClassificationSettings {
    /// # Errors
    /// A discount that is not positive and finite, or a joint posterior that is not calibrated.
    pub fn check(&self) -> Result<()> {
        check_discount(self.discount)?;
        if self.posterior == ClassPosterior::Joint && self.calibration == Calibration::None {
            let (name, expected) = ("calibration", "by leave-one-out where the posterior is joint");
            return Err(Error::InvalidSetting { name, expected, found: "none".into() });
        }
        Ok(())
    }

    /// Whether a forest with these settings and so many rows has a joint posterior with the covariance of infinitely many trees.
    #[must_use]
    pub fn is_limit(&self, forest: &MondrianSettings, n_rows: usize) -> bool {
        self.posterior == ClassPosterior::Joint && self.kernel_rule(forest, n_rows) == KernelRule::Limit
    }

    /// What decides the covariance of the joint posterior.
    pub(crate) fn kernel_rule(&self, forest: &MondrianSettings, n_rows: usize) -> KernelRule {
        self.joint_kernel.rule(forest, n_rows, MAX_CLASSIFICATION_LIMIT_ROWS)
    }

    /// Without settings that have no effect, so that equal forests have equal settings.
    #[must_use]
    pub(crate) fn effective(mut self) -> Self {
        if self.posterior != ClassPosterior::Joint {
            self.joint_kernel = JointKernel::Trees;
        }
        self.trend &= self.calibration != Calibration::None;
        self
    }
}

pub(crate) fn check_discount(discount: f64) -> Result<()> {
    if discount > 0.0 && discount.is_finite() {
        return Ok(());
    }
    Err(Error::InvalidSetting {
        name: "discount",
        expected: "positive and finite",
        found: discount.to_string(),
    })
}
