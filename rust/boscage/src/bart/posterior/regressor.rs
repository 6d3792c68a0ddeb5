//! BART with normal noise.

use crate::bart::backfitting::normal::NormalBackfitter;
use crate::bart::chain::{BartTrace, Chains, SumsOfTrees, Watch, fingerprint};
use crate::bart::chain_state::normal::NormalChainState;
use crate::bart::chain_state::weighted_normal::{WeightedChainState, WeightedProblem};
use crate::bart::kernels::context::Odds;
use crate::bart::posterior::export::{DrawnTree, SharedTree};
use crate::bart::prior::noise::{VariancePrior, over_estimate};
use crate::bart::response::{NormalResponse, Response, ScaledProblem};
use crate::bart::settings::BartSettings;
use crate::control::{Run, Threads};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::error::Result;
use crate::explain::Contributions;
use crate::random::keyed::Stream;
use crate::validate::{check, check_squares, check_weights};

/// Weights must be above this times their mean: logarithms of smaller ones might be infinite.
const MIN_WEIGHT: f64 = 1e-100;

/// A posterior over sums of trees with normal noise (eq. 4.2).
///
/// ```
/// use boscage::{BartRegressor, BartSettings, Rows, Run};
///
/// let x: Vec<f64> = (0..40).map(f64::from).collect();
/// let y: Vec<f64> = x.iter().map(|x| f64::from(u8::from(*x >= 20.0)) + 0.01 * (x % 3.0)).collect();
/// let settings = BartSettings { n_chains: 2, ..BartSettings::for_trees(20) };
/// let bart = BartRegressor::fit(&settings, Rows::from_f64(&x, 1)?, &y, &Run::default())?;
/// let mean = bart.predict(Rows::from_f64(&[3.0], 1)?, &Run::default())?;
/// assert!(mean[0].abs() < 0.1);
/// # Ok::<(), boscage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BartRegressor {
    pub(crate) posterior: SumsOfTrees,
    pub(crate) annotation: String,
}

impl BartRegressor {
    /// Samples the posterior.
    ///
    /// # Errors
    /// Invalid settings, lengths or values; an interrupt.
    pub fn fit(settings: &BartSettings, rows: Rows<'_>, targets: &[f64], run: &Run<'_>) -> Result<Self> {
        Self::fit_from(None, None, (settings, rows, targets, None), run)
    }

    /// Samples the posterior given rows with weights: the noise of a row of weight `w` has variance `sigma^2 / w`.
    /// Weights are divided by their mean, so only their ratios matter, and `sigma` is the noise of a row of mean weight.
    ///
    /// # Errors
    /// As [`BartRegressor::fit`]; weights that are not positive and finite, or below 1e-100 times
    /// their mean.
    pub fn fit_weighted(
        settings: &BartSettings,
        rows: Rows<'_>,
        targets: &[f64],
        weights: &[f64],
        run: &Run<'_>,
    ) -> Result<Self> {
        Self::fit_from(None, None, (settings, rows, targets, Some(weights)), run)
    }

    /// Continues the chains of a fit of the same data and settings until there are `n_draws` draws. The
    /// result is equal, bit for bit, to that of a single fit. `watch` is called after every sweep.
    ///
    /// # Errors
    /// As [`BartRegressor::fit_weighted`]; settings (except `n_draws`) or data that differ from those of `from`; fewer draws than
    /// `from` has; an error of `watch`.
    pub fn fit_from(
        from: Option<&Self>,
        watch: Option<&Watch<'_>>,
        (settings, rows, targets, weights): (&BartSettings, Rows<'_>, &[f64], Option<&[f64]>),
        run: &Run<'_>,
    ) -> Result<Self> {
        settings.check_fit(rows, targets.len())?;
        check_squares(targets)?;
        let weights = weights.map(|weights| normalised(weights, targets.len())).transpose()?;
        let observed = targets.iter().chain(weights.iter().flatten());
        let fingerprint = fingerprint(settings, rows, observed.map(|x| x.to_bits()));
        let problem = problem(settings, rows, targets, weights.as_deref())?;
        let chains = Chains {
            settings,
            centres: vec![problem.centre],
            fingerprint,
            starts_alike: is_without_noise(settings, targets),
            from: from.map(|from| &from.posterior),
            watch,
        };
        let posterior = match &weights {
            None => sample(&problem, &chains, rows, run)?,
            Some(weights) => sample_weighted(&weighted(problem, weights), &chains, rows, run)?,
        };
        Ok(Self { posterior, annotation: String::new() })
    }

    /// The posterior of all chains, given fits of [single chains](BartSettings::chain) in their order: equal, bit for
    /// bit, to that of one fit.
    ///
    /// # Errors
    /// No chain; chains of other data or settings; a chain given twice.
    pub fn join(chains: Vec<Self>) -> Result<Self> {
        let posterior = SumsOfTrees::join(chains.into_iter().map(|chain| chain.posterior).collect())?;
        Ok(Self { posterior, annotation: String::new() })
    }

    /// The posterior mean of the sum of trees at every row.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub fn predict(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        self.posterior.mean(rows, run, |_, _| {})
    }

    /// The sum of trees at every row in every draw, one draw after the other; draws of the first chain come
    /// first.
    ///
    /// # Errors
    /// As [`BartRegressor::predict`].
    pub fn predict_draws(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        self.posterior.at(rows, run, |_, _| {})
    }

    /// Shapley values of the sum of trees in every draw, before any link to probabilities. The rows of `background` are those
    /// whose shares stand for features that are not known.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub fn shapley_draws(
        &self,
        rows: Rows<'_>,
        background: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Vec<Contributions>> {
        self.posterior.shapley_draws(rows, background, run)
    }

    /// The trace of each chain.
    #[must_use]
    pub fn traces(&self) -> &[BartTrace] {
        &self.posterior.traces
    }

    /// Number of cuts along each feature in each draw, one draw after the other.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), if there are too many features for the memory.
    pub fn cuts(&self) -> Result<Vec<u32>> {
        self.posterior.cuts()
    }

    /// The trees of a draw as arrays. The sum of the leaf values is added to the
    /// [centre](BartRegressor::centres).
    ///
    /// # Errors
    /// A draw that there is not.
    pub fn trees(&self, draw: usize) -> Result<Vec<DrawnTree>> {
        self.posterior.trees(draw)
    }

    /// The trees of all draws, those with the same splits together. Sums are numbered draw by draw, and within a draw
    /// class by class where each class has a sum.
    #[must_use]
    pub fn shared_trees(&self) -> Vec<SharedTree> {
        self.posterior.shared_trees()
    }

    /// The constant that is added to the sum of trees, as a slice with one element.
    #[must_use]
    pub fn centres(&self) -> &[f64] {
        &self.posterior.centres
    }
}

facts_of_draws!(BartRegressor);

/// Runs chains with normal leaves.
pub(crate) fn sample<R: Response + Clone + Sync>(
    problem: &ScaledProblem<R>,
    chains: &Chains<'_>,
    rows: Rows<'_>,
    run: &Run<'_>,
) -> Result<SumsOfTrees> {
    let table = SortedColumns::new(rows, &Threads::new(run.n_threads), run.control)?;
    let odds = Odds::new(chains.settings.prior);
    let start = (problem.sigma, problem.sigma_mu);
    let sampler = |number: usize, stream: &mut Stream| {
        let setting = (&table, chains.settings, &odds);
        let backfitter = match number {
            0 => NormalBackfitter::from_stumps(setting, &problem.targets, start),
            _ => NormalBackfitter::from_prior(setting, &problem.targets, start, stream, run.control)?,
        };
        Ok(NormalChainState::new(backfitter, problem))
    };
    chains.run(&table, sampler, run)
}

/// A problem with its weights, which are divided by their mean.
fn weighted(problem: ScaledProblem<NormalResponse>, weights: &[f64]) -> WeightedProblem {
    let ScaledProblem { targets, scale, sigma, sigma_mu, response: NormalResponse { prior }, .. } = problem;
    WeightedProblem { targets, weights: weights.to_vec(), scale, sigma, prior, sigma_mu, classes: None }
}

/// Runs chains for rows with weights.
pub(crate) fn sample_weighted(
    problem: &WeightedProblem,
    chains: &Chains<'_>,
    rows: Rows<'_>,
    run: &Run<'_>,
) -> Result<SumsOfTrees> {
    let table = SortedColumns::new(rows, &Threads::new(run.n_threads), run.control)?;
    let odds = Odds::new(chains.settings.prior);
    let setting = (&table, chains.settings, &odds);
    let sampler = |number: usize, stream: &mut Stream| {
        WeightedChainState::start(number, setting, problem, stream, run.control)
    };
    chains.run(&table, sampler, run)
}

/// Whether neither the targets nor the settings tell the size of the noise: all targets are equal.
///
/// Then the noise is tiny, and so the posterior has next to no cuts that part rows. Chains that start from draws of the prior
/// do not get there: once their leaf values cancel at the training rows, a tree alone can hardly change.
fn is_without_noise(settings: &BartSettings, targets: &[f64]) -> bool {
    targets.iter().all(|y| *y == targets[0]) && given_noise(settings).is_none()
}

/// Weights divided by their mean.
fn normalised(given: &[f64], n_rows: usize) -> Result<Vec<f64>> {
    check_weights(given, n_rows)?;
    // Divided by the largest first, so that the sum is finite.
    let largest = given.iter().copied().fold(0.0, f64::max);
    let mean = given.iter().map(|w| w / largest).sum::<f64>() / given.len() as f64;
    let weights: Vec<f64> = given.iter().map(|w| w / largest / mean).collect();
    let wrong = weights.iter().position(|&w| w <= MIN_WEIGHT);
    let what = wrong.map(|row| format!("{:?} for row {row}", given[row])).unwrap_or_default();
    check("sample_weight", wrong.is_none(), "above 1e-100 times their mean", &what)?;
    Ok(weights)
}

/// Targets scaled to `[-0.5, 0.5]`, with the priors derived from them: that of leaf values (eq. 4.5) and that
/// of the noise (section 4.2.4).
fn problem(
    settings: &BartSettings,
    rows: Rows<'_>,
    targets: &[f64],
    weights: Option<&[f64]>,
) -> Result<ScaledProblem<NormalResponse>> {
    let low = targets.iter().copied().fold(f64::INFINITY, f64::min);
    let high = targets.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Halved first, so that differences of large numbers do not overflow.
    let centre = 0.5 * low + 0.5 * high;
    let range = (high - low).min(f64::MAX);
    let scale = if range > 0.0 { range } else { unit_of_equal(centre, settings) };
    let targets: Vec<f64> = targets.iter().map(|y| (y - centre) / scale).collect();
    let sigma_mu = 0.5 / (settings.k * (settings.n_trees as f64).sqrt());
    let scaled = |name, sigma: f64| {
        let is_noise = (1e-9..=1e9).contains(&(sigma / scale));
        let expected = "from 1e-9 to 1e9 times the range of y";
        check(name, is_noise, expected, &format!("{sigma:?}")).map(|()| sigma / scale)
    };
    let estimate = match settings.sigma_estimate {
        Some(estimate) => scaled("sigma_estimate", estimate)?,
        // If a plane fits the targets exactly, the estimate is zero and has no scale.
        None => over_estimate(rows, &targets, weights).max(1e-6),
    };
    let (sigma, prior) = match settings.sigma {
        Some(sigma) => (scaled("sigma", sigma)?, None),
        None => (estimate, Some(VariancePrior::new(settings.nu, settings.q, estimate))),
    };
    Ok(ScaledProblem { targets, centre, scale, sigma, sigma_mu, response: NormalResponse { prior } })
}

/// The unit of targets that all equal `y`, so that predictions follow the user's unit: the noise where it is given, since it
/// may be small beside `y`, else the size of `y`, and 1 where that is 0.
fn unit_of_equal(y: f64, settings: &BartSettings) -> f64 {
    given_noise(settings).unwrap_or(if y == 0.0 { 1.0 } else { y.abs() })
}

/// The size of the noise, if it is given.
fn given_noise(settings: &BartSettings) -> Option<f64> {
    settings.sigma.or(settings.sigma_estimate)
}
