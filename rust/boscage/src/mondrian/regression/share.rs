//! Predictions by a forest whose trees are shared out: mixtures that go on from one share to the next.
//!
//! The trees of a share ([`MondrianSettings::share`](crate::MondrianSettings)) add their components to the mixtures of the trees
//! before them, in the order of the trees, so that the result is that of the whole forest to the last bit. Hyperparameters are
//! chosen by the first share, which then has the trees that the rule looks at, and told to the others. The joint posterior is
//! not shared out: its solution needs sums over all trees for every step of conjugate gradients.

use std::ops::Range;

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hyperparameters::choice::{self, TargetMoments};
use crate::mondrian::regression::hyperparameters::leave_one_out::Chosen;
use crate::mondrian::regression::hyperparameters::{marginal_likelihood, trial};
use crate::mondrian::regression::left_out_fit::{LeftOutFit, TailFit};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::predictive::{ForestPosterior, Paths, Running, TwoMoments};
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::regression::settings::{HyperparameterRule, Posterior, RegressionSettings};
use crate::mondrian::regression::state::ForestState;
use crate::mondrian::tree::Tree;

/// Rows that are taken through all trees of a share at a time.
const CHUNK: usize = 1024;
/// The numbers of a mixture.
const WIDTH: usize = 4;

impl RegressionSettings {
    /// Of so many trees, the number of those, the first ones, that must be together to choose what all trees are to know.
    #[must_use]
    pub fn n_trees_to_choose(&self, n_estimators: usize) -> usize {
        match (self.posterior, self.rule) {
            (Posterior::Joint, _) => n_estimators,
            (Posterior::Fast, _) => 1,
            _ if self.hyperparameters.is_some() => 1,
            (Posterior::Exact, HyperparameterRule::Heuristic) => 1,
            (Posterior::Exact, HyperparameterRule::LeaveOneOut) => n_estimators.min(trial::TREES),
            (Posterior::Exact, HyperparameterRule::MarginalLikelihood) => {
                n_estimators.min(marginal_likelihood::TREES)
            }
        }
    }
}

impl MondrianRegressor {
    /// What all trees are to know, as numbers: `mu`, `gamma_1`, `gamma_2`, the noise variance, the delay, the coarse variance and
    /// rate, and the [`LeftOutFit`](crate::LeftOutFit)'s.
    ///
    /// # Errors
    /// A share that lacks trees which choose; an interrupt.
    pub fn choose(&self, run: &Run<'_>) -> Result<Vec<f64>> {
        self.check_chooses()?;
        let settings = &self.posterior.settings;
        let chosen = with_storage!(self.forest.flushed(run)?, storage => {
            choice::choose(settings, &self.forest, storage, run)
        })?;
        Ok(chosen.numbers())
    }

    /// What [`choose`](Self::choose) says of a larger forest with these settings, given the moments of all its targets. This one
    /// has the first [`RULE_ROWS`](crate::RULE_ROWS) of its rows, or all, as [`first_by_contents`](crate::first_by_contents) orders
    /// them by the forest's seed.
    ///
    /// # Errors
    /// As `choose`.
    pub fn choose_for(&self, all: TargetMoments, run: &Run<'_>) -> Result<Vec<f64>> {
        self.check_chooses()?;
        let settings = &self.posterior.settings;
        let chosen = with_storage!(self.forest.flushed(run)?, storage => {
            choice::choose_from(all, settings, &self.forest, storage, run)
        })?;
        Ok(chosen.numbers())
    }

    /// # Errors
    /// A share that lacks trees which choose.
    fn check_chooses(&self) -> Result<()> {
        let trees = self.settings().trees();
        let n_needed = self.posterior.settings.n_trees_to_choose(self.settings().n_estimators);
        if trees.start == 0 && trees.end >= n_needed {
            return Ok(());
        }
        let (expected, found) = ("one with the trees that choose hyperparameters", format!("{trees:?}"));
        Err(Error::InvalidSetting { name: "share", expected, found })
    }

    /// Tells these trees what the first share has chosen, and passes their messages.
    ///
    /// # Errors
    /// The joint posterior; numbers that [`choose`](Self::choose) did not return; an interrupt.
    pub fn complete(&self, chosen: &[f64], run: &Run<'_>) -> Result<()> {
        if self.posterior.settings.posterior == Posterior::Joint {
            self.forest.settings.check_whole()?;
        }
        let chosen = Chosen::of_numbers(chosen)?;
        if self.posterior.state.get().is_some() {
            return Ok(());
        }
        let settings = &self.posterior.settings;
        let state = with_storage!(self.forest.flushed(run)?, storage => {
            ForestState::of(chosen, settings, &self.forest, storage, run)
        })?;
        // A thread that came first has computed the same.
        self.posterior.state.get_or_init(|| state);
        Ok(())
    }

    /// Adds the components of these trees for rows to the mixtures of the trees before, if there are any: four numbers a row.
    ///
    /// # Errors
    /// A share that was not [completed](Self::complete), or of the joint posterior; mixtures of other rows; a number of
    /// features other than in `fit`; an interrupt.
    pub fn add_components(&self, rows: Rows<'_>, before: Option<&[f64]>, run: &Run<'_>) -> Result<Vec<f64>> {
        let n = rows.n_rows();
        if let Some(numbers) = before {
            check_numbers(numbers, n)?;
        }
        let posterior = self.forest_posterior(run)?;
        if posterior.state.joint.is_some() {
            let (expected, found) = ("exact or fast where trees are shared out", "joint".into());
            return Err(Error::InvalidSetting { name: "posterior", expected, found });
        }
        self.forest.flushed(run)?;
        let alone = Run { n_threads: 1, control: run.control };
        let parts = run.map_ranges(n, CHUNK, |range| {
            let continued = Continued::new(posterior, before, range.clone());
            let chunks = walk::predict(&self.forest, rows.slice(range.start, range.end), &alone, &continued)?;
            let numbers = chunks.iter().flat_map(|(rows, _)| rows.iter().flat_map(Running::numbers));
            Ok(numbers.collect::<Vec<f64>>())
        })?;
        Ok(parts.concat())
    }

    /// Means and variances, given the mixtures of all trees.
    ///
    /// # Errors
    /// As [`add_components`](Self::add_components).
    pub fn moments_of_components(&self, components: &[f64], run: &Run<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        check_numbers(components, components.len() / WIDTH)?;
        let state = self.forest_posterior(run)?.state;
        let rows = components.as_chunks().0.iter();
        Ok(rows.map(|&numbers| Running::of(numbers).moments(state, |_| 0.0)).unzip())
    }
}

impl Chosen {
    /// What [`MondrianRegressor::choose`] returns.
    pub(super) fn numbers(self) -> Vec<f64> {
        let Hyperparameters { mu, gamma1, gamma2, noise_variance, delay, coarse } = self.hyper;
        let mut numbers = vec![mu, gamma1, gamma2, noise_variance, delay, coarse.variance, coarse.rate];
        let fit = LeftOutFit { joint: None, ..self.left_out_fit() };
        numbers.extend(fit.numbers().into_iter().map(|(_, value)| value));
        numbers
    }

    /// # Errors
    /// Other numbers.
    pub(super) fn of_numbers(numbers: &[f64]) -> Result<Self> {
        let why = "as `choose` returns";
        let refused = || Error::Length { what: "chosen", found: numbers.len(), expected: 7, why };
        let (&[mu, gamma1, gamma2, noise_variance, delay, variance, rate], fitted) =
            numbers.split_first_chunk().ok_or_else(refused)?;
        if !matches!(fitted.len(), 0 | 1 | 5) {
            return Err(refused());
        }
        let names = || std::iter::once("noise_rows").chain(TailFit::NAMES);
        let number = |name: &str| names().zip(fitted).find(|(own, _)| *own == name).map(|(_, value)| *value);
        let coarse = CoarsePrior { variance, rate };
        let hyper = Hyperparameters { mu, gamma1, gamma2, noise_variance, delay, coarse };
        Ok(Self::of(hyper, &LeftOutFit::of_numbers(number)?))
    }
}

fn check_numbers(numbers: &[f64], n_rows: usize) -> Result<()> {
    if numbers.len() == n_rows * WIDTH {
        return Ok(());
    }
    let (found, expected) = (numbers.len(), n_rows * WIDTH);
    Err(Error::Length { what: "components", found, expected, why: "four numbers for each row" })
}

/// Gathers mixtures, beginning with those of the trees before.
struct Continued<'a> {
    gather: TwoMoments<'a>,
    before: Option<&'a [f64]>,
}

impl<'a> Continued<'a> {
    /// For a range of the rows that `before` is about.
    fn new(posterior: ForestPosterior<'a>, before: Option<&'a [f64]>, rows: Range<usize>) -> Self {
        let before = before.map(|numbers| &numbers[rows.start * WIDTH..rows.end * WIDTH]);
        Self { gather: TwoMoments::new(posterior), before }
    }
}

impl Visitor<NodeMoments> for Continued<'_> {
    type Chunk = (Vec<Running>, Paths);

    fn start(&self, n_rows: usize) -> Self::Chunk {
        match self.before {
            None => self.gather.start(n_rows),
            Some(numbers) => {
                (numbers.as_chunks().0.iter().map(|&row| Running::of(row)).collect(), Paths::default())
            }
        }
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Self::Chunk,
    ) {
        self.gather.visit(tree_index, tree, row, stops, chunk);
    }
}
