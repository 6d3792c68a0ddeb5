//! The state of a chain with normal leaves, for rows with weights.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::chain_state::ChainState;
use crate::bart::chain_state::weighted_classes::WeightedClasses;
use crate::bart::kernel_table::StepCounts;
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::model::LeafModel;
use crate::bart::leaves::normal::LeafPosterior;
use crate::bart::leaves::weighted_normal::WeightedNormal;
use crate::bart::prior::noise::VariancePrior;
use crate::bart::prior::spread::LeafSpread;
use crate::bart::settings::BartSettings;
use crate::bart::state::tree::TreeState;
use crate::control::Control;
use crate::data::sorted::columns::SortedColumns;
use crate::error::Result;
use crate::random::keyed::Stream;

/// Targets and weights of rows in the units of the chain, and the scales of the priors.
#[derive(Debug, Clone)]
pub(crate) struct WeightedProblem {
    pub(crate) targets: Vec<f64>,
    pub(crate) weights: Vec<f64>,
    pub(crate) scale: f64,
    /// The noise, or its starting value if it has a prior.
    pub(crate) sigma: f64,
    pub(crate) prior: Option<VariancePrior>,
    pub(crate) sigma_mu: f64,
    /// Classes of rows, if the targets are classes: then targets and weights are drawn in each sweep.
    pub(crate) classes: Option<WeightedClasses>,
}

/// A sum of trees for rows with weights, in the units of the chain.
#[derive(Debug)]
pub(crate) struct WeightedChainState<'a> {
    pub(crate) backfitter: GeneralBackfitter<'a, WeightedNormal>,
    pub(crate) model: WeightedNormal,
    pub(crate) sigma: f64,
    prior: Option<VariancePrior>,
    classes: Option<WeightedClasses>,
    spread: LeafSpread,
    settings: &'a BartSettings,
    scale: f64,
}

impl<'a> WeightedChainState<'a> {
    /// The start of a chain: trees without cuts for the first one, draws of the prior for the others.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn start(
        number: usize,
        (table, settings, odds): (&'a SortedColumns, &'a BartSettings, &Odds),
        problem: &WeightedProblem,
        stream: &mut Stream,
        control: &Control,
    ) -> Result<Self> {
        let WeightedProblem { scale, sigma, prior, sigma_mu, .. } = *problem;
        let mut spread = LeafSpread::new(sigma_mu, settings.learn_k);
        if number > 0 {
            spread.draw(&[], stream);
        }
        let leaf = LeafPosterior::new(sigma, spread.sigma_mu);
        let model = WeightedNormal::new(problem.targets.clone(), problem.weights.clone(), leaf);
        let setting = (table, settings, odds);
        let backfitter = GeneralBackfitter::start(number, setting, &model, 0.0, stream, control)?;
        let classes = problem.classes.clone();
        Ok(Self { backfitter, model, sigma, prior, classes, spread, settings, scale })
    }
}

impl ChainState for WeightedChainState<'_> {
    fn sweep(&mut self, stream: &mut Stream, control: &Control) -> Result<()> {
        let sums = &self.backfitter.sums;
        if let Some(classes) = &self.classes {
            classes.draw(&mut self.model, sums, stream, control)?;
        }
        if let Some(prior) = self.prior {
            self.sigma = prior.draw(sums.len(), self.model.squares(sums), stream);
        }
        self.spread.draw(&self.backfitter.trees, stream);
        self.model.leaf = LeafPosterior::new(self.sigma, self.spread.sigma_mu);
        self.backfitter.sweep(&self.model, stream, control)
    }

    fn trees(&self) -> Vec<&TreeState> {
        self.backfitter.trees.iter().collect()
    }

    fn set_log_weights(&mut self, log_weights: &[f64]) {
        Odds::set_log_weights(&mut self.backfitter.odds, log_weights);
    }

    fn scale(&self) -> f64 {
        self.scale
    }

    fn sigma(&self) -> f64 {
        self.scale * self.sigma
    }

    fn k(&self) -> Option<f64> {
        self.spread.learned_k(self.settings.k)
    }

    fn log_likelihood(&self) -> f64 {
        let sums = &self.backfitter.sums;
        match &self.classes {
            Some(classes) => classes.log_likelihood(sums),
            None => self.model.log_likelihood(sums) - sums.len() as f64 * libm::log(self.scale),
        }
    }

    fn acceptance(&self) -> StepCounts {
        self.backfitter.acceptance
    }

    fn numbers(&self) -> Vec<f64> {
        let mut numbers = vec![self.sigma, self.spread.sigma_mu];
        numbers.extend(&self.backfitter.sums);
        numbers
    }

    fn restore(&mut self, trees: Vec<TreeState>, numbers: &[f64], acceptance: StepCounts) -> bool {
        let backfitter = &mut self.backfitter;
        let [sigma, sigma_mu, sums @ ..] = numbers else { return false };
        let fits = trees.len() == backfitter.trees.len() && sums.len() == backfitter.sums.len();
        if !fits || *sigma <= 0.0 || *sigma_mu <= 0.0 {
            return false;
        }
        (backfitter.trees, backfitter.acceptance) = (trees, acceptance);
        backfitter.sums.copy_from_slice(sums);
        (self.sigma, self.spread.sigma_mu) = (*sigma, *sigma_mu);
        self.model.leaf = LeafPosterior::new(self.sigma, self.spread.sigma_mu);
        true
    }
}
