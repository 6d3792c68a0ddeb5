//! Several classes: a log-linear sum of trees for each class (Murray 2021).
//!
//! `P(y = c | x) = exp(f_c(x)) / S(x)`, `S = sum_c exp(f_c)`. A row of weight `w`, 1 without weights, counts as `w` rows. It
//! has a latent variable `phi ~ Gamma(shape w, rate S)`. The likelihood times the density of `phi` is
//! `prod_c exp(w f_c [y = c]) exp(-phi exp(f_c))`, up to a constant. Given `phi`, the sums of the classes are therefore
//! independent, and each has the likelihood of counts `w [y = c]` with means `phi exp(f_c)`.

use crate::bart::leaves::model::LeafModel;
use crate::bart::leaves::poisson::{Events, LogGamma, finite_exp};
use crate::random::keyed::Stream;

/// The targets of the sum of trees of one class.
#[derive(Debug, Clone)]
pub(crate) struct OneClass {
    pub(crate) prior: LogGamma,
    /// The weights of the rows of the class; 0 for other rows.
    pub(crate) counts: Vec<f64>,
    pub(crate) log_phi: Vec<f64>,
}

impl LeafModel for OneClass {
    type Stats = Events;

    fn n_rows(&self) -> usize {
        self.counts.len()
    }

    fn stats(&self, row: usize, others: f64) -> Events {
        let expected = finite_exp(self.log_phi[row] + others);
        Events { count: self.counts[row], expected }
    }

    fn log_marginal(&self, stats: Events) -> f64 {
        self.prior.log_marginal(stats)
    }

    fn draw(&self, stats: Events, stream: &mut Stream) -> f64 {
        self.prior.draw(stats, stream)
    }

    /// Not used: the likelihood is that of all classes together.
    fn log_likelihood(&self, _: &[f64]) -> f64 {
        0.0
    }
}
