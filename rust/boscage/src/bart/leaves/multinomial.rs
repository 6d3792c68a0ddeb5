//! Several classes: a log-linear sum of trees for each class (Murray 2021).
//!
//! `P(y = c | x) = exp(f_c(x)) / S(x)`, `S = sum_c exp(f_c)`. Each row has a latent variable
//! `phi ~ Exponential(rate S)`. The likelihood times the density of `phi` is
//! `prod_c exp(f_c [y = c]) exp(-phi exp(f_c))`. Given `phi`, the sums of the classes are therefore
//! independent, and each has the likelihood of counts `[y = c]` with means `phi exp(f_c)`.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::kernels::context::Odds;
use crate::bart::kernels::table::StepCounts;
use crate::bart::leaves::model::LeafModel;
use crate::bart::leaves::poisson::{Events, LogGamma, finite_exp};
use crate::bart::sampler::ChainState;
use crate::bart::state::tree::TreeState;
use crate::control::Control;
use crate::error::Result;
use crate::math::logs::log_sum_exp;
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

/// The sums of trees of all classes.
#[derive(Debug)]
pub(crate) struct Multinomial<'a> {
    /// The sums and their leaf models, by class.
    pub(crate) backfitters: Vec<GeneralBackfitter<'a, OneClass>>,
    pub(crate) classes: Vec<OneClass>,
}

impl Multinomial<'_> {
    fn row(&self, row: usize) -> Vec<f64> {
        self.backfitters.iter().map(|backfitter| backfitter.sums[row]).collect()
    }

    fn n_rows(&self) -> usize {
        self.classes[0].n_rows()
    }
}

impl ChainState for Multinomial<'_> {
    fn sweep(&mut self, stream: &mut Stream, control: &Control) -> Result<()> {
        for row in 0..self.n_rows() {
            let log_phi = stream.log_gamma(1.0) - log_sum_exp(&self.row(row));
            for class in &mut self.classes {
                class.log_phi[row] = log_phi;
            }
        }
        self.backfitters
            .iter_mut()
            .zip(&self.classes)
            .try_for_each(|(backfitter, class)| backfitter.sweep(class, stream, control))
    }

    fn trees(&self) -> Vec<&TreeState> {
        self.backfitters.iter().flat_map(|backfitter| &backfitter.trees).collect()
    }

    fn set_log_weights(&mut self, log_weights: &[f64]) {
        for backfitter in &mut self.backfitters {
            Odds::set_log_weights(&mut backfitter.odds, log_weights);
        }
    }

    fn log_likelihood(&self) -> f64 {
        let of_row = |row: usize| {
            let sums = self.row(row);
            let own = self.classes.iter().position(|class| class.is_in[row]);
            sums[own.expect("a row has a class")] - log_sum_exp(&sums)
        };
        (0..self.n_rows()).map(of_row).sum()
    }

    fn acceptance(&self) -> StepCounts {
        let mut all = StepCounts::default();
        self.backfitters.iter().for_each(|backfitter| all.add(&backfitter.acceptance));
        all
    }

    fn numbers(&self) -> Vec<f64> {
        self.backfitters.iter().flat_map(|backfitter| &backfitter.sums).copied().collect()
    }

    fn restore(&mut self, trees: Vec<TreeState>, numbers: &[f64], acceptance: StepCounts) -> bool {
        let n_trees: usize = self.backfitters.iter().map(|backfitter| backfitter.trees.len()).sum();
        if trees.len() != n_trees || numbers.len() != self.backfitters.len() * self.n_rows() {
            return false;
        }
        let mut trees = trees.into_iter();
        for (backfitter, numbers) in
            self.backfitters.iter_mut().zip(numbers.chunks_exact(self.classes[0].n_rows()))
        {
            backfitter.trees.iter_mut().zip(&mut trees).for_each(|(old, new)| *old = new);
            backfitter.sums.copy_from_slice(numbers);
            // The first sum holds the step counts of all sums.
            backfitter.acceptance = StepCounts::default();
        }
        self.backfitters[0].acceptance = acceptance;
        true
    }
}
