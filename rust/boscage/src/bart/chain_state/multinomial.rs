//! The state of a chain for several classes: a sum of trees for each class, and the latent `phi` of each row.
//!
//! [`leaves::multinomial`](crate::bart::leaves::multinomial) has the model.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::chain_state::ChainState;
use crate::bart::kernel_table::StepCounts;
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::model::LeafModel;
use crate::bart::leaves::multinomial::OneClass;
use crate::bart::state::tree::TreeState;
use crate::control::Control;
use crate::error::Result;
use crate::math::logs::log_sum_exp;
use crate::random::keyed::Stream;

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

    fn weight(&self, row: usize) -> f64 {
        self.classes.iter().map(|class| class.counts[row]).sum()
    }
}

impl ChainState for Multinomial<'_> {
    fn sweep(&mut self, stream: &mut Stream, control: &Control) -> Result<()> {
        for row in 0..self.n_rows() {
            let log_phi = stream.log_gamma(self.weight(row)) - log_sum_exp(&self.row(row));
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
            let own = self.classes.iter().position(|class| class.counts[row] > 0.0);
            self.weight(row) * (sums[own.expect("a row has a class")] - log_sum_exp(&sums))
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
