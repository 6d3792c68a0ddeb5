//! The prior far away from all data: its variance and the noise are those of the targets.
//!
//! A rule chooses what fits inside the data, which says little about how far targets range elsewhere. What the prior lacks is
//! added, and what it has too much is left out, near the root, where many rows determine the means.

use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};

/// Rounding errors of sums and of the heuristic are no difference.
const ROUNDING: f64 = 1e-9;
/// The share of the variance that the prior keeps beside a noise that is too great.
const LEAST: f64 = 0.01;

/// What the prior and the noise add up to, far away from all data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FarPrior {
    pub(crate) variance: f64,
    /// The rate of the coarse part that [`complete`](Self::complete) may add.
    pub(crate) coarse_rate: f64,
    pub(crate) lifetime: f64,
}

impl FarPrior {
    /// A delayed prior, where the prior and the noise have more variance.
    ///
    /// The thesis' clock leaves `gamma_1 / (1 + e^(gamma_2 t))` after `t`. With `A = e^(gamma_2 t_0)` and `gamma_1 / A` for
    /// `gamma_1`, the delayed clock leaves `gamma_1 / (A + e^(gamma_2 t))`: nearly as much, after a late time `t`. Until the
    /// lifetime `L` it spends `gamma_1 (E - 1) / ((1 + A) (A + E))`, where `E = e^(gamma_2 L)`.
    pub(crate) fn delayed(&self, hyper: &Hyperparameters) -> Option<Hyperparameters> {
        let spent = hyper.clock(self.lifetime);
        if spent + hyper.noise_variance <= (1.0 + ROUNDING) * self.variance {
            return None;
        }
        let most = (self.variance - hyper.noise_variance).max(LEAST * self.variance);
        let excess = hyper.gamma1 / most;
        let end = (hyper.gamma2 * self.lifetime).exp();
        // A double has no more than so many digits.
        let a = if end < 1e15 {
            let product = excess * (end - 1.0);
            // The positive root of `A^2 + (1 + E) A + E = product`.
            2.0 * (product - end) / (1.0 + end + ((end - 1.0) * (end - 1.0) + 4.0 * product).sqrt())
        } else {
            excess - 1.0
        };
        let delay = a.ln() / hyper.gamma2;
        (a > 1.0 && delay.is_finite()).then(|| Hyperparameters { gamma1: hyper.gamma1 / a, delay, ..*hyper })
    }

    /// With neither more nor less variance: with a delay (another one, if it was too long), or with a coarse part that
    /// brings what is missing. Never with both.
    ///
    /// The coarse part is spent in proportion to the rate of cuts in the whole box of the reference ranges, so that little of
    /// it is left inside the data.
    pub(crate) fn complete(&self, hyper: &Hyperparameters) -> Hyperparameters {
        let missing =
            |hyper: &Hyperparameters| self.variance - hyper.clock(self.lifetime) - hyper.noise_variance;
        if missing(hyper).abs() <= ROUNDING * self.variance {
            return *hyper;
        }
        let prompt = Hyperparameters {
            gamma1: hyper.gamma1 * (hyper.gamma2 * hyper.delay).exp(),
            delay: 0.0,
            ..*hyper
        };
        if let Some(delayed) = self.delayed(&prompt) {
            return delayed;
        }
        let missing = missing(&prompt);
        // All that it spends until the lifetime.
        let coarse = CoarsePrior { variance: 1.0, rate: self.coarse_rate };
        let variance = missing / coarse.clock(self.lifetime);
        if missing > ROUNDING * self.variance && variance.is_normal() {
            return Hyperparameters { coarse: CoarsePrior { variance, ..coarse }, ..prompt };
        }
        prompt
    }
}
