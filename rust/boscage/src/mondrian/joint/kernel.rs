//! Whose covariance a joint model has.

use crate::mondrian::forest::settings::{MondrianSettings, Predictive};

/// The covariance of a joint model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JointKernel {
    /// That of the forest's trees.
    Trees,
    /// That of infinitely many trees, of which the forest's are a sample: more accurate. Memory and time grow with powers of
    /// the number of rows, and the time of a prediction with that number. Realised predictions need trees to follow, and have
    /// the covariance of these.
    Limit,
    /// That of infinitely many trees with at most [`MAX_REGRESSION_LIMIT_ROWS`] or [`MAX_CLASSIFICATION_LIMIT_ROWS`] rows. With more,
    /// left-out rows decide between that of the forest's trees and that of infinitely many trees as [`LANDMARKS`] of the rows know
    /// it. Realised predictions have that of the forest's trees.
    #[default]
    Auto,
}

/// The number of rows up to which [`JointKernel::Auto`] is that of infinitely many trees in regression. A joint model is the default
/// there, so that it must not take long.
pub const MAX_REGRESSION_LIMIT_ROWS: usize = 5000;

/// The same in classification.
pub const MAX_CLASSIFICATION_LIMIT_ROWS: usize = 10_000;

/// Rows (at most) by way of which [`JointKernel::Auto`] has the covariance of infinitely many trees with more rows: a
/// multiple of the rows in a block of a factor. On ten data sets of 10,000 rows, half as many made errors up to 2 % greater.
pub const LANDMARKS: usize = 1536;

/// What decides the covariance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelRule {
    /// It is that of the forest's trees.
    Trees,
    /// It is that of infinitely many trees.
    Limit,
    /// Left-out rows: it is one of both, the latter by way of landmarks.
    LeftOut,
}

impl JointKernel {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 3] = [Self::Trees, Self::Limit, Self::Auto];

    /// The rule for a forest with these settings and so many rows. `most` is the number up to which [`JointKernel::Auto`] has the
    /// covariance of infinitely many trees of all rows.
    pub(crate) fn rule(self, settings: &MondrianSettings, n_rows: usize, most: usize) -> KernelRule {
        let is_averaged = settings.predictive == Predictive::Averaged;
        match self {
            Self::Limit if is_averaged => KernelRule::Limit,
            Self::Auto if is_averaged && n_rows <= most => KernelRule::Limit,
            Self::Auto if is_averaged => KernelRule::LeftOut,
            Self::Trees | Self::Limit | Self::Auto => KernelRule::Trees,
        }
    }
}
