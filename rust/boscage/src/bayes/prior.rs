//! Priors of trees (section 3.2.3).

use crate::error::{Error, Result};
use crate::validate::check;

/// A prior of trees: the probability that a node is split, by depth, and the weights of features. The
/// threshold is uniform in the extent of the node's rows (thesis section 3.2.3). Missing values go to either side
/// with equal probability; where there are some in the node, they are separated from the present values with
/// probability 1/3, or surely if these are all equal.
///
/// All samplers take any such prior, for instance one of shallow trees:
///
/// ```
/// use boscage::{BayesianTreeClassifier, Label, Rows, Run, Sampler, SmcSettings, TreePrior};
///
/// #[derive(Debug)]
/// struct Shallow {
///     max_depth: u32,
/// }
///
/// impl TreePrior for Shallow {
///     fn split_probability(&self, depth: u32) -> f64 {
///         if depth < self.max_depth { 0.8 } else { 0.0 }
///     }
/// }
///
/// let x: Vec<f64> = (0..60).map(f64::from).collect();
/// let codes: Vec<u32> = (0..60).map(|i| i / 10 % 2).collect();
/// let trees = BayesianTreeClassifier::fit(
///     &Shallow { max_depth: 2 },
///     1.0,
///     &Sampler::Smc(SmcSettings::default()),
///     Rows::from_f64(&x, 1)?,
///     (&codes, &[Label::Int(0), Label::Int(1)]),
///     &Run::default(),
/// )?;
/// assert!(trees.trees().iter().all(|tree| tree.feature.len() <= 7));
/// # Ok::<(), boscage::Error>(())
/// ```
pub trait TreePrior: std::fmt::Debug + Sync {
    /// The probability to split a node at this depth whose rows can be split, at least zero and below one.
    /// The root has depth 0.
    fn split_probability(&self, depth: u32) -> f64;

    /// Logarithms of this probability and of its complement.
    fn log_split_stop(&self, depth: u32) -> (f64, f64) {
        let p = self.split_probability(depth);
        (libm::log(p), libm::log1p(-p))
    }

    /// Finite logarithms of the weights of all features, up to a constant; None for equal weights. A node
    /// that is split draws its feature by weight from those that vary among its rows.
    fn log_weights(&self) -> Option<&[f64]> {
        None
    }
}

/// Checks a user's prior at all depths that a tree over `n_rows` rows can have.
///
/// # Errors
/// [`Error::InvalidSetting`] for invalid probabilities or weights; [`Error::Length`] if the number of weights
/// is not the number of features.
pub(crate) fn check_prior(prior: &dyn TreePrior, n_rows: usize, n_features: usize) -> Result<()> {
    let probabilities = (0..n_rows as u32).map(|depth| prior.split_probability(depth));
    for p in probabilities {
        check("the probability to split", (0.0..1.0).contains(&p), "from 0 to below 1", &p)?;
    }
    let Some(logs) = prior.log_weights() else {
        return Ok(());
    };
    if logs.len() != n_features {
        let (what, why) = ("the prior's logarithms of weights", "one for each feature");
        return Err(Error::Length { what, found: logs.len(), expected: n_features, why });
    }
    match logs.iter().find(|log| !log.is_finite()) {
        Some(log) => check("a logarithm of a feature's weight", false, "finite", log),
        None => Ok(()),
    }
}

/// The prior of Chipman et al. (1998), eq. 3.3 (eq. 4.3 in sums of trees):
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

    /// The probability to split the root.
    #[must_use]
    pub fn alpha_s(&self) -> f64 {
        self.alpha_s
    }

    /// How fast the probability falls with depth.
    #[must_use]
    pub fn beta_s(&self) -> f64 {
        self.beta_s
    }
}

impl Default for ChipmanPrior {
    /// The values of the thesis: `alpha_s = 0.95`, `beta_s = 0.5`.
    fn default() -> Self {
        Self { alpha_s: 0.95, beta_s: 0.5 }
    }
}

impl TreePrior for ChipmanPrior {
    /// `alpha_s (1 + depth)^-beta_s` (eq. 3.3).
    fn split_probability(&self, depth: u32) -> f64 {
        self.alpha_s * libm::pow(1.0 + f64::from(depth), -self.beta_s)
    }

    fn log_split_stop(&self, depth: u32) -> (f64, f64) {
        // The probability itself may underflow.
        let log_split = libm::log(self.alpha_s) - self.beta_s * libm::log(1.0 + f64::from(depth));
        (log_split, libm::log1p(-self.split_probability(depth)))
    }
}
