//! Several classes: a log-linear sum of trees for each class (Murray 2021).
//!
//! `P(y = c | x) = exp(f_c(x)) / S(x)`, `S = sum_c exp(f_c)`. Each row has a latent variable
//! `phi ~ Exponential(rate S)`. The likelihood times the density of `phi` is
//! `prod_c exp(f_c [y = c]) exp(-phi exp(f_c))`. Given `phi`, the sums of the classes are therefore
//! independent, and each has the likelihood of counts `[y = c]` with means `phi exp(f_c)`.

use crate::bart::leaves::model::LeafModel;
use crate::bart::leaves::poisson::{Events, LogGamma, finite_exp};
use crate::random::keyed::Stream;

/// The targets of the sum of trees of one class.
#[derive(Debug, Clone)]
pub(crate) struct OneClass {
    pub(crate) prior: LogGamma,
    /// Whether each row is of the class.
    pub(crate) is_in: Vec<bool>,
    pub(crate) log_phi: Vec<f64>,
}

impl LeafModel for OneClass {
    type Stats = Events;

    fn n_rows(&self) -> usize {
        self.is_in.len()
    }

    fn stats(&self, row: usize, others: f64) -> Events {
        let expected = finite_exp(self.log_phi[row] + others);
        Events { count: f64::from(u8::from(self.is_in[row])), expected }
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
