//! The Mondrian forest regressor (thesis chapter 6).

use std::sync::OnceLock;

use crate::control::Run;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::mondrian::forest::export::{ExportedTree, export};
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::forest::{Batch, Forest};
use crate::mondrian::joint::kernel::{JointKernel, KernelRule};
use crate::mondrian::model::{MondrianForest, NodePosterior};
use crate::mondrian::prediction::{completions, walk};
use crate::mondrian::process::domain::Domain;
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hierarchy::tree_predictive::Component;
use crate::mondrian::regression::hyperparameters::marginal_likelihood;
use crate::mondrian::regression::joint::solution::JointWeights;
use crate::mondrian::regression::left_out_fit::LeftOutFit;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::predictive::completed::{mixed_moments, mixture};
use crate::mondrian::regression::predictive::gaussian_mixture::GaussianMixtures;
use crate::mondrian::regression::predictive::left_out::LeftOut;
use crate::mondrian::regression::predictive::{
    ForestPosterior, Mixture, MixtureRow, NodePosteriors, Running, TwoMoments,
};
use crate::mondrian::regression::settings::{OLD_PRIOR_RATE, RegressionSettings};
use crate::mondrian::regression::state::{ForestState, Without, in_messages};
use crate::mondrian::regression::trend::posterior::Linear;
use crate::mondrian::regression::trend::{Observed, Residuals, TrendPart};
use crate::validate;

/// A Mondrian forest that predicts a whole distribution of a number. [`MondrianForest`] lists all it does: `forget`, `merge`,
/// `digest` ...
///
/// ```
/// use boscage::{Batch, Domain, MondrianRegressor, MondrianSettings, RegressionSettings, Rows, Run};
///
/// let x: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| 3.0 * x).collect();
/// let rows = Rows::from_f64(&x, 1)?;
/// let forest = MondrianRegressor::fit(
///     MondrianSettings { n_estimators: 20, ..MondrianSettings::default() },
///     RegressionSettings::default(),
///     Domain::of_rows(rows, None)?,
///     Batch { rows, ids: None, weights: None },
///     &y,
///     &Run::default(),
/// )?;
/// let (mean, variance) = forest.predict(Rows::from_f64(&[0.5], 1)?, &Run::default())?;
/// assert!((mean[0] - 1.5).abs() < 0.2 && variance[0] > 0.0);
/// # Ok::<(), boscage::Error>(())
/// ```
pub type MondrianRegressor = MondrianForest<Regression>;

/// The posterior of Mondrian forest regressors: a hierarchy of Gaussians at the nodes of every tree.
#[derive(Debug, Clone)]
pub struct Regression {
    pub(crate) settings: RegressionSettings,
    /// Computed on the first read after rows came or left.
    pub(super) state: OnceLock<ForestState>,
    /// The same with the trees' own covariance, where the other is not.
    by_trees: OnceLock<ForestState>,
}

impl Regression {
    pub(super) fn new(settings: RegressionSettings) -> Self {
        Self { settings: settings.effective(), state: OnceLock::new(), by_trees: OnceLock::new() }
    }

    /// The state with other settings, or that which is known.
    fn state_in<'a>(
        known: &'a OnceLock<ForestState>,
        settings: &RegressionSettings,
        forest: &Forest<NodeMoments>,
        run: &Run<'_>,
    ) -> Result<&'a ForestState> {
        if let Some(state) = known.get() {
            return Ok(state);
        }
        forest.settings.check_whole()?;
        let state =
            with_storage!(forest.flushed(run)?, storage => ForestState::new(settings, forest, storage, run))?;
        // A thread that came first has computed the same.
        Ok(known.get_or_init(|| state))
    }

    pub(super) fn state(&self, forest: &Forest<NodeMoments>, run: &Run<'_>) -> Result<&ForestState> {
        Self::state_in(&self.state, &self.settings, forest, run)
    }

    /// The state of the same forest whose trees have shares of the joint mean ([`JointKernel::Trees`]).
    pub(super) fn state_by_trees(&self, forest: &Forest<NodeMoments>, run: &Run<'_>) -> Result<&ForestState> {
        let state = self.state(forest, run)?;
        if state.limit().is_none() {
            return Ok(state);
        }
        let settings = RegressionSettings { joint_kernel: JointKernel::Trees, ..self.settings.clone() };
        Self::state_in(&self.by_trees, &settings, forest, run)
    }

    /// Forgets what rows determine.
    fn reset(&mut self) {
        (self.state, self.by_trees) = (OnceLock::new(), OnceLock::new());
    }
}

impl NodePosterior for Regression {
    type Statistics = NodeMoments;
    // A mixture has the components of all.
    const COMPLETIONS: usize = 8;

    fn rows_came(&mut self, _: &[f64]) {
        self.reset();
    }

    fn rows_left(&mut self, targets: &[f64]) {
        if !targets.is_empty() {
            self.reset();
        }
    }

    fn predictive_changed(&mut self, forest: &Forest<NodeMoments>) {
        // Realised predictions have no limit of trees.
        let may_have_limit =
            self.settings.kernel_rule(&forest.settings, forest.n_rows()) != KernelRule::Trees;
        let differs =
            |state: &ForestState| state.joint.is_some() && state.limit().is_some() != may_have_limit;
        if self.state.get().is_some_and(differs) {
            self.reset();
        }
    }

    fn check_mergeable(&self, other: &Self) -> Result<()> {
        if self.settings == other.settings {
            Ok(())
        } else {
            Err(Error::NotMergeable { what: "posterior settings" })
        }
    }

    fn refresh(&self, forest: &Forest<NodeMoments>, run: &Run<'_>) -> Result<()> {
        self.state(forest, run).map(drop)
    }

    fn is_fresh(&self) -> bool {
        self.state.get().is_some()
    }

    fn digest_bytes(&self) -> Vec<u8> {
        let settings = &self.settings;
        let mut bytes = b"regressor".to_vec();
        bytes.extend([settings.posterior as u8, settings.rule as u8, settings.noise as u8]);
        let fixed = settings.hyperparameters.map(|h| [h.mu, h.gamma1, h.gamma2, h.noise_variance]);
        for value in fixed.into_iter().flatten().chain(settings.noise_variance) {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend([u8::from(fixed.is_some()), u8::from(settings.noise_variance.is_some())]);
        // Forests with the thesis' prior have the digests that they had when there was no other.
        if let Some(scale) = settings.prior_scale {
            bytes.extend(b"prior_scale");
            bytes.extend(scale.to_le_bytes());
        }
        if settings.prior_rate != Some(OLD_PRIOR_RATE) {
            bytes.extend(b"prior_rate");
            bytes.extend(settings.prior_rate.into_iter().flat_map(f64::to_le_bytes));
        }
        if let Some(values) = settings.beyond_thesis() {
            bytes.extend(b"beyond_thesis");
            bytes.extend(values.into_iter().flat_map(f64::to_le_bytes));
        }
        if let Some(trend) = &settings.trend {
            bytes.extend(b"trend");
            if let Some(features) = &trend.features {
                bytes.extend(b"features");
                bytes.extend(features.iter().flat_map(|&feature| (feature as u64).to_le_bytes()));
            }
            bytes.extend(trend.variance.into_iter().chain(trend.scale).flat_map(f64::to_le_bytes));
        }
        for (name, value) in settings.left_out_fit.numbers() {
            bytes.extend(name.as_bytes());
            bytes.extend(value.to_le_bytes());
        }
        if settings.joint_kernel != JointKernel::Trees {
            bytes.extend(b"joint_kernel");
            bytes.push(settings.joint_kernel as u8);
        }
        bytes
    }

    fn target_bytes(&self, y: f64) -> Vec<u8> {
        y.to_le_bytes().to_vec()
    }
}

impl MondrianRegressor {
    /// Trains on rows and their targets.
    ///
    /// # Errors
    /// Settings, lengths, ids or values that are not as they should be; an interrupt.
    pub fn fit(
        settings: MondrianSettings,
        regression: RegressionSettings,
        domain: Domain,
        batch: Batch<'_>,
        targets: &[f64],
        run: &Run<'_>,
    ) -> Result<Self> {
        check_settings(&regression, &domain)?;
        let targets = check_targets(batch.rows.n_rows(), targets)?;
        validate::check_largest(targets.iter().copied())?;
        let posterior = Regression::new(regression);
        Self::draw(settings, posterior, domain, batch, &targets, run)
    }

    /// Gives the posterior other settings, which trees do not depend on: the forest is then the one that was fitted with them.
    ///
    /// # Errors
    /// As for those of `fit`. After an error nothing has changed.
    pub fn set_regression(&mut self, regression: RegressionSettings) -> Result<()> {
        check_settings(&regression, &self.forest.domain)?;
        let regression = regression.effective();
        if regression != self.posterior.settings {
            self.posterior = Regression::new(regression);
        }
        Ok(())
    }

    /// Adds rows. Any batching and order gives the same forest, bit for bit. Updates are lazy: trees insert the rows when
    /// they are next read, or by [`flush`](Self::flush).
    ///
    /// # Errors
    /// As for `fit`, but it is not interrupted. After an error nothing has changed.
    pub fn partial_fit(&mut self, batch: Batch<'_>, targets: &[f64]) -> Result<()> {
        let targets = check_targets(batch.rows.n_rows(), targets)?;
        if validate::check_largest(targets.iter().copied()).is_err() {
            validate::check_largest(self.targets().into_iter().chain(targets.iter().copied()))?;
        }
        self.insert(batch, |_| targets)
    }

    /// Mean and variance of the predictive distribution (eq. 6.4, 6.5) of every row.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        Ok(self.moments(rows, &TwoMoments::new(self.forest_posterior(run)?), run)?.into_iter().unzip())
    }

    /// The mean of the predictive distribution of every row, the same as by [`predict`](Self::predict), which takes longer.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_mean(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        let moments = self.moments(rows, &TwoMoments::of_mean(self.forest_posterior(run)?), run)?;
        Ok(moments.into_iter().map(|(mean, _)| mean).collect())
    }

    fn moments(&self, rows: Rows<'_>, gather: &TwoMoments<'_>, run: &Run<'_>) -> Result<Vec<(f64, f64)>> {
        let of_complete = |rows: Rows<'_>| self.complete_moments(rows, gather, run);
        completions::predict(
            &self.forest,
            (rows, Regression::COMPLETIONS),
            run,
            of_complete,
            |completions, found| completions.by_row(&found, mixed_moments),
        )
    }

    fn complete_moments(
        &self,
        rows: Rows<'_>,
        gather: &TwoMoments<'_>,
        run: &Run<'_>,
    ) -> Result<Vec<(f64, f64)>> {
        let mut found: Vec<Running> = if gather.needs_trees() {
            walk::predict(&self.forest, rows, run, gather)?.into_iter().flat_map(|(rows, _)| rows).collect()
        } else {
            vec![Running::default(); rows.n_rows()]
        };
        let (posterior, state) = (&gather.posterior, gather.posterior.state);
        posterior.complete(found.iter_mut().map(|row| &mut row.joint), state.limit(), (rows, false), run)?;
        Ok(found.into_iter().enumerate().map(|(i, row)| row.moments(state, |d| rows.at(i, d))).collect())
    }

    /// The whole predictive distribution of every row (eq. 6.5), with quantiles and intervals.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict_dist(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<GaussianMixtures> {
        let posterior = self.forest_posterior(run)?;
        let of_complete = |rows: Rows<'_>| self.complete_mixtures(rows, posterior, run);
        let found = completions::predict(
            &self.forest,
            (rows, Regression::COMPLETIONS),
            run,
            of_complete,
            |completions, found| completions.by_row(&found, mixture),
        )?;
        Ok(GaussianMixtures::of_rows(found.into_iter()))
    }

    fn complete_mixtures(
        &self,
        rows: Rows<'_>,
        posterior: ForestPosterior<'_>,
        run: &Run<'_>,
    ) -> Result<Vec<Vec<Component>>> {
        let chunks = walk::predict(&self.forest, rows, run, &Mixture { posterior })?;
        let mut found: Vec<MixtureRow> = chunks.into_iter().flat_map(|(rows, _)| rows).collect();
        let (state, tails) = (posterior.state, posterior.state.tails.as_ref());
        posterior.complete(found.iter_mut().map(|row| &mut row.joint), state.limit(), (rows, false), run)?;
        let found = found.into_iter().enumerate();
        Ok(found.map(|(i, row)| row.finish(state, tails, state.trend(), |d| rows.at(i, d))).collect())
    }

    /// The same for rows of the forest, each predicted by the forest without it, with hyperparameters as
    /// they are with it and the global, Gaussian noise. The forest is as before. Each costs about a
    /// prediction, or for the joint posterior a solution for all other rows.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; an interrupt.
    pub fn loo_dist(&self, ids: &[u64], run: &Run<'_>) -> Result<GaussianMixtures> {
        let rows = self.forest.row_index.find(ids)?;
        let posterior = self.forest_posterior(run)?;
        let state = posterior.state;
        let Some(joint) = &state.joint else {
            let gather = LeftOut { posterior, without: None };
            let chunks = walk::predict_left_out(&self.forest, &rows, run, &gather)?;
            let found = chunks.into_iter().flat_map(|chunk| chunk.rows);
            return Ok(GaussianMixtures::of_rows(found.map(|row| row.finish(state, None, None, |_| 0.0))));
        };
        let (forest, settings) = (&self.forest, &self.posterior.settings);
        let lifetime = forest.settings.lifetime;
        let weights = with_storage!(forest.flushed(run)?, storage => {
            JointWeights::new(settings, (joint.together.is_limit, None), forest, storage, run)
        })?;
        let model = &joint.together.model;
        let equations = weights.equations(None, model, run)?;
        let without_rows = weights.without_rows(forest);
        let mut found = Vec::new();
        for &row in &rows {
            let covariance = without_rows.covariance(row, run)?;
            let own = covariance.as_ref().map(|own| weights.equations(Some(own), model, run)).transpose()?;
            let equations = own.as_ref().unwrap_or(&equations);
            let without = with_storage!(forest.flushed(run)?, storage => {
                Without::new(settings, (state, joint), (&weights, equations), (storage, lifetime), row, run)
            })?;
            let gather = LeftOut { posterior, without: Some(&without) };
            let chunks = walk::predict_left_out(forest, &[row], run, &gather)?;
            let x = forest.filled_values(row);
            let solution = &without.solution;
            for mut own in chunks.into_iter().flat_map(|chunk| chunk.rows) {
                let itself = (Rows::from_f64(&x, x.len())?, true);
                posterior.complete(std::iter::once(&mut own.joint), solution.limit(), itself, run)?;
                found.push(own.finish(state, None, solution.linear.as_ref(), |d| x[d]));
            }
        }
        Ok(GaussianMixtures::of_rows(found.into_iter()))
    }

    /// The hyperparameters in use.
    ///
    /// # Errors
    /// An interrupt, while they are chosen.
    pub fn hyperparameters(&self, run: &Run<'_>) -> Result<Hyperparameters> {
        Ok(self.posterior.state(&self.forest, run)?.hyper)
    }

    /// The prior variance of the trend's coefficients, if there is a trend.
    ///
    /// # Errors
    /// An interrupt, while it is chosen.
    pub fn trend_variance(&self, run: &Run<'_>) -> Result<Option<f64>> {
        Ok(self.posterior.state(&self.forest, run)?.trend().map(Linear::variance))
    }

    /// The factor on the variances of the joint model where it decides how uncertain the trend's coefficients are, if there is a
    /// trend.
    ///
    /// # Errors
    /// An interrupt, while it is chosen.
    pub fn trend_scale(&self, run: &Run<'_>) -> Result<Option<f64>> {
        Ok(self.posterior.state(&self.forest, run)?.trend().map(Linear::scale))
    }

    /// What was fitted beside the hyperparameters: given with them, and with the trend's variance and scale, it gives the
    /// predictions of this forest again.
    ///
    /// # Errors
    /// An interrupt, while it is fitted.
    pub fn left_out_fit(&self, run: &Run<'_>) -> Result<LeftOutFit> {
        Ok(self.posterior.state(&self.forest, run)?.left_out_fit)
    }

    /// The value of the trend at the middle of all reference ranges, less the prior mean, and its slopes in units of the target
    /// per unit of each feature; none if there is no trend.
    ///
    /// # Errors
    /// An interrupt, while they are found.
    pub fn trend_coefficients(&self, run: &Run<'_>) -> Result<Option<(f64, Vec<f64>)>> {
        let linear = self.posterior.state(&self.forest, run)?.trend();
        Ok(linear.map(|linear| linear.by_feature(self.forest.domain.n_features())))
    }

    /// The trend as a constant and a function of each of its features, beside [`leaf_trees`](Self::leaf_trees); none if
    /// there is no trend.
    ///
    /// # Errors
    /// An interrupt, while it is found.
    pub fn trend_parts(&self, run: &Run<'_>) -> Result<Option<(f64, Vec<TrendPart>)>> {
        Ok(self.posterior.state_by_trees(&self.forest, run)?.trend().map(Linear::by_part))
    }

    /// Log marginal likelihood of the targets, its mean over trees; of what a trend leaves of them, if there is one.
    ///
    /// # Errors
    /// An interrupt.
    pub fn log_marginal_likelihood(&self, run: &Run<'_>) -> Result<f64> {
        let hyper = in_messages(&self.hyperparameters(run)?, self.posterior.settings.posterior);
        let lifetime = self.forest.settings.lifetime;
        let state = self.posterior.state(&self.forest, run)?;
        with_storage!(self.forest.flushed(run)?, storage => {
            let residuals = state.residuals(&self.posterior.settings, &self.forest, storage);
            let observed =
                residuals.as_ref().map_or_else(|| Observed::targets_of(&self.forest), Residuals::observed);
            marginal_likelihood::log_marginal_likelihood(&storage.trees, observed, lifetime, &hyper, run)
        })
    }

    /// Settings of the posterior.
    #[must_use]
    pub fn regression_settings(&self) -> &RegressionSettings {
        &self.posterior.settings
    }

    /// Every tree as arrays; its values are the posterior mean and variance of each node's mean.
    ///
    /// # Errors
    /// An interrupt, while hyperparameters are chosen; [`Error::Memory`](crate::Error::Memory).
    pub fn trees(&self, run: &Run<'_>) -> Result<Vec<ExportedTree>> {
        export(&self.forest, &NodePosteriors { posterior: self.forest_posterior(run)? })
    }

    /// The rows' targets in order of arrival.
    #[must_use]
    pub fn targets(&self) -> Vec<f64> {
        self.forest.targets_by_arrival()
    }

    pub(super) fn forest_posterior(&self, run: &Run<'_>) -> Result<ForestPosterior<'_>> {
        let state = self.posterior.state(&self.forest, run)?;
        Ok(ForestPosterior::new(&self.forest, &self.posterior.settings, state))
    }

    /// That of the same forest with [`JointKernel::Trees`], in which every prediction is a sum over trees.
    pub(super) fn posterior_by_trees(&self, run: &Run<'_>) -> Result<ForestPosterior<'_>> {
        let state = self.posterior.state_by_trees(&self.forest, run)?;
        Ok(ForestPosterior::new(&self.forest, &self.posterior.settings, state))
    }
}

fn check_settings(regression: &RegressionSettings, domain: &Domain) -> Result<()> {
    regression.check()?;
    let of_trend = regression.trend.as_ref().and_then(|trend| trend.features.as_ref()?.last());
    if let Some(last) = of_trend.filter(|last| **last >= domain.n_features()) {
        let (expected, found) = ("one of features that there are", format!("feature {last}"));
        return Err(Error::InvalidSetting { name: "trend", expected, found });
    }
    Ok(())
}

pub(super) fn check_targets(n_rows: usize, targets: &[f64]) -> Result<Vec<f64>> {
    validate::check_n_targets(n_rows, targets.len())?;
    validate::check_targets(targets)?;
    // Negative zero is zero.
    Ok(targets.iter().map(|y| y + 0.0).collect())
}
