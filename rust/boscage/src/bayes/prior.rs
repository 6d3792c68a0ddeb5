//! Priors over the shape of trees.

use crate::error::{Error, Result};

/// How readily the nodes of a tree split, and along which dimensions. Where along one is uniform over what the
/// node's rows allow (thesis section 3.2.3).
///
/// ```
/// use boscage::{ChipmanPrior, TreePrior};
///
/// let prior = ChipmanPrior::new(0.95, 0.5)?;
/// assert_eq!(prior.split_probability(0), 0.95);
/// # Ok::<(), boscage::Error>(())
/// ```
pub trait TreePrior: std::fmt::Debug + Sync {
    /// The probability that a node with this many cuts above it, and whose rows can be split, is.
    fn split_probability(&self, depth: u32) -> f64;

    /// Logarithms of the weights of all dimensions, up to a constant: a node that splits does so along one of those
    /// that vary among its rows, in proportion to these; all alike if None is given.
    fn log_weights(&self) -> Option<&[f64]> {
        None
    }
}

/// The prior of Chipman et al. (1998): eq. 3.3,
/// `P(split) = alpha_s / (1 + depth)^beta_s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChipmanPrior {
    alpha_s: f64,
    beta_s: f64,
}

impl ChipmanPrior {
    /// A prior with `alpha_s` in (0, 1) and `beta_s >= 0`.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] outside these ranges.
    pub fn new(alpha_s: f64, beta_s: f64) -> Result<Self> {
        let invalid = |name, expected, found: f64| {
            Err(Error::InvalidSetting { name, expected, found: found.to_string() })
        };
        if !(alpha_s > 0.0 && alpha_s < 1.0) {
            return invalid("alpha_s", "between 0 and 1, both excluded", alpha_s);
        }
        if !(beta_s >= 0.0 && beta_s.is_finite()) {
            return invalid("beta_s", "finite and not negative", beta_s);
        }
        Ok(Self { alpha_s, beta_s })
    }

    /// The root's probability to split.
    #[must_use]
    pub fn alpha_s(&self) -> f64 {
        self.alpha_s
    }

    /// How fast that probability falls with depth.
    #[must_use]
    pub fn beta_s(&self) -> f64 {
        self.beta_s
    }
}

impl Default for ChipmanPrior {
    /// The thesis' values: `alpha_s = 0.95`, `beta_s = 0.5`.
    fn default() -> Self {
        Self { alpha_s: 0.95, beta_s: 0.5 }
    }
}

impl TreePrior for ChipmanPrior {
    fn split_probability(&self, depth: u32) -> f64 {
        self.alpha_s * libm::pow(1.0 + f64::from(depth), -self.beta_s)
    }
}
