//! The Mondrian forest regressor (thesis chapter 6).

use std::sync::OnceLock;

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::forest::export::{ExportedTree, NodeValues};
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::forest::storage::{Storage, with_storage};
use crate::mondrian::forest::{Batch, Forest};
use crate::mondrian::prediction::path::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::regression::belief_propagation;
use crate::mondrian::regression::belief_propagation::{Component, Hyperparameters, Messages, UnitClocks};
use crate::mondrian::regression::hyperparameters::leave_one_out;
use crate::mondrian::regression::hyperparameters::leave_one_out::{Chosen, Together};
use crate::mondrian::regression::hyperparameters::marginal_likelihood;
use crate::mondrian::regression::joint;
use crate::mondrian::regression::joint::{JointWeights, Solution, Standard};
use crate::mondrian::regression::local_noise;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::noise_tails::NoiseTails;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// What stands for the posterior at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Posterior {
    /// Gaussian belief propagation (section 6.3.1).
    #[default]
    Exact,
    /// Empirical mean and variance of the node's rows (section 6.3.3).
    Fast,
    /// Belief propagation, and about a mean to which all trees together are fitted: their functions add up
    /// to the targets' (a Gaussian process with the forest's own kernel).
    Joint,
}

/// How hyperparameters that are not given are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HyperparameterRule {
    /// By maximum marginal likelihood.
    MarginalLikelihood,
    /// By the heuristic of section 6.3.2.
    Heuristic,
    /// By the leave-one-out predictive of the whole forest.
    #[default]
    LeaveOneOut,
}

/// What the noise is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// One number for the whole forest.
    #[default]
    Global,
    /// Each node's own, smoothed down the tree; with hyperparameters by the leave-one-out predictive, wider
    /// for some rows than for the others.
    Local,
}

/// Settings of the regression posterior.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RegressionSettings {
    /// The posterior at a node.
    pub posterior: Posterior,
    /// How hyperparameters are chosen.
    pub rule: HyperparameterRule,
    /// What the noise is.
    pub noise: Noise,
    /// All hyperparameters, if they are not to be chosen: then updates cost a path, not a tree.
    pub hyperparameters: Option<Hyperparameters>,
    /// The noise variance, if it is known; the others are chosen by the rule.
    pub noise_variance: Option<f64>,
}

impl RegressionSettings {
    /// # Errors
    /// A hyperparameter that is not positive and finite (`mu`: finite).
    pub fn check(&self) -> Result<()> {
        let positive = |name, value: f64| {
            if value > 0.0 && value.is_finite() {
                return Ok(());
            }
            Err(Error::InvalidSetting { name, expected: "positive and finite", found: value.to_string() })
        };
        if let Some(variance) = self.noise_variance {
            positive("noise_variance", variance)?;
        }
        if let Some(hyper) = &self.hyperparameters {
            positive("gamma1", hyper.gamma1)?;
            positive("gamma2", hyper.gamma2)?;
            positive("noise_variance", hyper.noise_variance)?;
            if !hyper.mu.is_finite() {
                let found = hyper.mu.to_string();
                return Err(Error::InvalidSetting { name: "mu", expected: "finite", found });
            }
        }
        Ok(())
    }
}

/// A Mondrian forest that predicts a whole distribution of a number.
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
///     Batch { rows, ids: None },
///     &y,
///     &Run::default(),
/// )?;
/// let (mean, variance) = forest.predict(Rows::from_f64(&[0.5], 1)?, &Run::default())?;
/// assert!((mean[0] - 1.5).abs() < 0.2 && variance[0] > 0.0);
/// # Ok::<(), boscage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MondrianRegressor {
    pub(crate) forest: Forest<NodeMoments>,
    pub(crate) settings: RegressionSettings,
    /// Made when first asked for after a change.
    state: OnceLock<State>,
}

/// What is computed from the trees and all targets together.
#[derive(Debug, Clone)]
struct State {
    hyper: Hyperparameters,
    /// Upward messages by tree; none for the fast posterior.
    messages: Vec<Messages>,
    /// Factors on the variances by tree and node; none if they are all one.
    scales: Option<Vec<Vec<f64>>>,
    /// Factors beside them, that differ from row to row.
    tails: Option<NoiseTails>,
    /// For the joint posterior.
    joint: Option<JointState>,
}

/// What the joint posterior adds to the mixture of trees.
#[derive(Debug, Clone)]
struct JointState {
    together: Together,
    solution: Solution,
}

impl State {
    /// What a tree adds to the joint mean of a point.
    fn joint_mean(&self, tree_index: usize, stops: &[Stop]) -> f64 {
        let of = |joint: &JointState| {
            let sums = &joint.solution.sums[tree_index];
            joint::mean(|node| sums[node.index()], &joint.together.model.hyper, stops)
        };
        self.joint.as_ref().map_or(0.0, of)
    }
}

/// The largest target by magnitude whose square is still a number with room to spare.
const LARGEST_TARGET: f64 = 1e140;

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
        regression.check()?;
        let targets = check_targets(batch.rows.n_rows(), targets)?;
        let forest = Forest::fit(settings, domain, batch, &targets, run)?;
        let this = Self { forest, settings: regression, state: OnceLock::new() };
        this.state(run)?;
        Ok(this)
    }

    /// Adds rows. Any batching and order gives the same forest, bit for bit; so trees take rows in together, when
    /// somebody asks for a prediction, or [`flush`](Self::flush) does.
    ///
    /// # Errors
    /// As for `fit`, but for interrupts: then nothing has changed.
    pub fn partial_fit(&mut self, batch: Batch<'_>, targets: &[f64]) -> Result<()> {
        let targets = check_targets(batch.rows.n_rows(), targets)?;
        self.forest.insert(batch, || targets)?;
        self.state = OnceLock::new();
        Ok(())
    }

    /// Lets the trees take in the rows that wait, and chooses hyperparameters again. The first prediction would do it,
    /// but then it takes longer.
    ///
    /// # Errors
    /// An interrupt: some rows may go on waiting.
    pub fn flush(&self, run: &Run<'_>) -> Result<()> {
        self.forest.flushed(run)?;
        self.state(run).map(drop)
    }

    /// Whether trees have all rows and the boxes that predictions need, and hyperparameters and beliefs are there: if not,
    /// the first prediction sees to it, which takes longer than it does itself.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.state.get().is_some() && self.forest.is_flushed()
    }

    /// Removes rows by id: the forest becomes, bit for bit, the one that never saw them. Trees let them go when they
    /// take rows in.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; then nothing has changed.
    pub fn forget(&mut self, ids: &[u64]) -> Result<()> {
        if !self.forest.forget(ids)?.is_empty() {
            self.state = OnceLock::new();
        }
        Ok(())
    }

    /// Removes all rows but the `n` that arrived last, as [`forget`](Self::forget) does.
    pub fn keep_newest(&mut self, n: usize) {
        if !self.forest.keep_newest(n).is_empty() {
            self.state = OnceLock::new();
        }
    }

    /// Adds the rows of another shard: the forest of the union, bit for bit.
    ///
    /// # Errors
    /// [`Error::NotMergeable`] or [`Error::DuplicateId`]: nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.settings != other.settings {
            return Err(Error::NotMergeable { what: "posterior settings" });
        }
        self.forest.check_mergeable(&other.forest)?;
        self.forest.merge(&other.forest, |y| y)?;
        self.state = OnceLock::new();
        Ok(())
    }

    /// Mean and variance of the predictive distribution (eq. 6.4, 6.5) of every row.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let gather = TwoMoments { model: self, state: self.state(run)? };
        let chunks = self.forest.predict(rows, run, &gather)?;
        let together = gather.state.joint.as_ref().map(|joint| joint.together);
        Ok(chunks.into_iter().flatten().map(|row: Running| row.moments(together)).unzip())
    }

    /// The whole predictive mixture of every row: where each row's components begin (and all end), and the
    /// components.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict_dist(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<(Vec<usize>, Vec<Component>)> {
        let state = self.state(run)?;
        let gather = Mixture { model: self, state };
        let together = state.joint.as_ref().map(|joint| joint.together);
        Ok(ragged(self.forest.predict(rows, run, &gather)?, together))
    }

    /// The same for rows of the forest, each predicted by the forest without it, with hyperparameters as
    /// they are with it and the global, Gaussian noise. The forest is as before. Each costs about a
    /// prediction, or for the joint posterior a solution for all other rows.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; an interrupt.
    pub fn loo_dist(&self, ids: &[u64], run: &Run<'_>) -> Result<(Vec<usize>, Vec<Component>)> {
        let rows = self.forest.row_index.find(ids)?;
        let state = self.state(run)?;
        let Some(JointState { together, .. }) = state.joint else {
            let gather = LeftOut { model: self, state, without: None };
            let chunks = self.forest.predict_left_out(&rows, run, &gather)?;
            return Ok(ragged(chunks.into_iter().map(|chunk| chunk.rows).collect(), None));
        };
        let weights = with_storage!(self.forest.flushed(run)?, storage => JointWeights::new(&self.forest, storage, run))?;
        let mut found = Vec::new();
        for &row in &rows {
            let without = weights.solve(&together.model, Some(row), run)?;
            let gather = LeftOut { model: self, state, without: Some(&without) };
            let chunks = self.forest.predict_left_out(&[row], run, &gather)?;
            found.extend(chunks.into_iter().map(|chunk| chunk.rows));
        }
        Ok(ragged(found, Some(together)))
    }

    /// The hyperparameters in use.
    ///
    /// # Errors
    /// An interrupt, while they are chosen.
    pub fn hyperparameters(&self, run: &Run<'_>) -> Result<Hyperparameters> {
        Ok(self.state(run)?.hyper)
    }

    /// Log marginal likelihood of the targets, its mean over trees.
    ///
    /// # Errors
    /// An interrupt.
    pub fn log_marginal_likelihood(&self, run: &Run<'_>) -> Result<f64> {
        let hyper = self.state(run)?.hyper;
        let lifetime = self.forest.settings.lifetime;
        with_storage!(self.forest.flushed(run)?, storage => {
            marginal_likelihood::log_marginal_likelihood(&storage.trees, lifetime, &hyper, run)
        })
    }

    /// Sets how test points are placed. Trees follow when they are next asked for.
    pub fn set_predictive(&mut self, predictive: Predictive) {
        self.forest.set_predictive(predictive);
    }

    /// Checks every invariant of the trees.
    ///
    /// # Errors
    /// The first one that does not hold, in words: a bug in this crate.
    pub fn check(&self) -> std::result::Result<(), String> {
        self.forest.check()
    }

    /// Bytes that trees and rows hold.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.forest.bytes()
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.forest.n_rows()
    }

    /// Ids of the rows in order of arrival.
    #[must_use]
    pub fn ids(&self) -> Vec<u64> {
        self.forest.ids()
    }

    /// Reference ranges and weights.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.forest.domain
    }

    /// Settings of the trees.
    #[must_use]
    pub fn settings(&self) -> &MondrianSettings {
        &self.forest.settings
    }

    /// Settings of the posterior.
    #[must_use]
    pub fn regression_settings(&self) -> &RegressionSettings {
        &self.settings
    }

    /// Text kept with the model and in its file, such as names of features; empty unless set. Neither
    /// predictions nor the digest depend on it.
    #[must_use]
    pub fn annotation(&self) -> &str {
        &self.forest.annotation
    }

    /// Sets the text of [`annotation`](Self::annotation).
    pub fn set_annotation(&mut self, text: impl Into<String>) {
        self.forest.annotation = text.into();
    }

    /// A hash of settings, rows' contents and trees: equal exactly when two forests predict alike
    /// everywhere and will go on to.
    #[must_use]
    pub fn digest(&self) -> String {
        let settings = &self.settings;
        let mut model = b"regressor".to_vec();
        model.extend([settings.posterior as u8, settings.rule as u8, settings.noise as u8]);
        let fixed = settings.hyperparameters.map(|h| [h.mu, h.gamma1, h.gamma2, h.noise_variance]);
        for value in fixed.into_iter().flatten().chain(settings.noise_variance) {
            model.extend(value.to_le_bytes());
        }
        model.extend([u8::from(fixed.is_some()), u8::from(settings.noise_variance.is_some())]);
        self.forest.digest(&model, |y| y.to_le_bytes().to_vec())
    }

    /// Every tree as arrays; its values are the posterior mean and variance of each node's mean.
    ///
    /// # Errors
    /// An interrupt, while hyperparameters are chosen.
    pub fn trees(&self, run: &Run<'_>) -> Result<Vec<ExportedTree>> {
        Ok(self.forest.export(&Posteriors { model: self, state: self.state(run)? }))
    }

    fn state(&self, run: &Run<'_>) -> Result<&State> {
        if let Some(state) = self.state.get() {
            return Ok(state);
        }
        let state = with_storage!(self.forest.flushed(run)?, storage => self.new_state(storage, run))?;
        // Whoever came first has made the same.
        Ok(self.state.get_or_init(|| state))
    }

    fn new_state<S: Scalar>(&self, storage: &Storage<S, NodeMoments>, run: &Run<'_>) -> Result<State> {
        let lifetime = self.forest.settings.lifetime;
        let Chosen { hyper, clocks, together, tails, prior } = self.choose_hyperparameters(storage, run)?;
        if self.settings.posterior == Posterior::Fast {
            return Ok(State { hyper, messages: Vec::new(), scales: None, tails, joint: None });
        }
        let messages = run.map(storage.trees.len(), |i| {
            let tree = &storage.trees[i];
            let upward = |clocks: &_| Messages::upward(tree, &tree.arena.preorder(), &hyper, clocks);
            Ok(match clocks.get(i) {
                Some(known) => upward(known),
                None => upward(&UnitClocks::new(tree, lifetime, hyper.gamma2)),
            })
        })?;
        let scales = match self.settings.noise {
            Noise::Global => None,
            Noise::Local => {
                Some(local_noise::estimate(&self.forest, storage, &messages, &hyper, prior, run)?)
            }
        };
        let joint = match self.settings.posterior {
            Posterior::Joint => {
                let alone = || Together { model: Standard::new(&hyper), share: 1.0, spread: 1.0 };
                let together = together.unwrap_or_else(alone);
                let weights = JointWeights::new(&self.forest, storage, run)?;
                Some(JointState { together, solution: weights.solve(&together.model, None, run)? })
            }
            Posterior::Exact | Posterior::Fast => None,
        };
        Ok(State { hyper, messages, scales, tails, joint })
    }

    fn choose_hyperparameters<S: Scalar>(
        &self,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Chosen> {
        if let Some(hyper) = self.settings.hyperparameters {
            return Ok(Chosen::alone(hyper));
        }
        let n = self.forest.n_rows();
        // Every tree's root holds the moments of all targets, each in its own rounding; the first counts.
        let tree = &storage.trees[0];
        let moments = tree.arena.root().map(|root| tree.statistics.moments(root)).unwrap_or_default();
        let variance = moments.squares / n.max(1) as f64;
        let mut start =
            marginal_likelihood::heuristic(moments.mean, variance, n, self.forest.domain.total_weight());
        start.noise_variance = self.settings.noise_variance.unwrap_or(start.noise_variance);
        // Targets without spread have no best hyperparameters.
        let flat = moments.squares <= f64::EPSILON * n as f64 * moments.mean * moments.mean || n < 2;
        if self.settings.posterior == Posterior::Fast || flat {
            return Ok(Chosen::alone(start));
        }
        let fixed = self.settings.noise_variance.is_some();
        match self.settings.rule {
            HyperparameterRule::Heuristic => Ok(Chosen::alone(start)),
            HyperparameterRule::LeaveOneOut => {
                leave_one_out::maximise(&self.forest, storage, start, &self.settings, run)
            }
            HyperparameterRule::MarginalLikelihood => {
                if !fixed {
                    // Half signal and half noise, rather than nearly all signal.
                    start.noise_variance = 0.5 * variance;
                }
                let lifetime = self.forest.settings.lifetime;
                marginal_likelihood::maximise(&storage.trees, lifetime, start, fixed, run).map(Chosen::alone)
            }
        }
    }

    /// One tree's predictive components.
    fn components<S: Scalar>(
        &self,
        state: &State,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        stops: &[Stop],
        emit: impl FnMut(Component),
    ) {
        let hyper = &state.hyper;
        if self.settings.posterior == Posterior::Fast {
            let prior = Self::fast_prior(tree, hyper);
            return belief_propagation::predict_fast(tree, prior, hyper.noise_variance, stops, emit);
        }
        let scale = |node: NodeId| match &state.scales {
            Some(scales) => scales[tree_index][node.index()],
            None => 1.0,
        };
        let lifetime = self.forest.settings.lifetime;
        belief_propagation::predict_exact(
            tree,
            &state.messages[tree_index],
            hyper,
            lifetime,
            stops,
            scale,
            emit,
        );
    }

    /// A component as the forest's mixture takes it in, unless no sum would notice it.
    fn share(&self, component: Component) -> Option<Component> {
        let n_trees = self.forest.settings.n_estimators as f64;
        (component.weight > 1e-14).then(|| Component { weight: component.weight / n_trees, ..component })
    }

    /// What the fast posterior takes for the parent of the root: the root itself.
    fn fast_prior<S: Scalar>(tree: &Tree<S, NodeMoments>, hyper: &Hyperparameters) -> Component {
        let (mean, variance) = match tree.arena.root() {
            None => (hyper.mu, 0.5 * hyper.gamma1),
            Some(root) => {
                let moments = tree.statistics.moments(root);
                (moments.mean, moments.squares / tree.arena.n_rows(root) as f64)
            }
        };
        Component { weight: 1.0, mean, variance: variance + hyper.noise_variance }
    }
}

/// Weight, mean and sums of squares of a mixture so far: of variances that are positive and squares that
/// are not negative, so that nothing cancels.
#[derive(Debug, Clone, Copy, Default)]
struct Running {
    weight: f64,
    mean: f64,
    /// Of variances within components.
    within: f64,
    /// Of the components' distances from the mean.
    between: f64,
    /// What all trees together have for a mean, as far as there is one.
    joint: f64,
}

impl Running {
    fn add(&mut self, Component { weight, mean, variance }: Component) {
        if weight <= 0.0 {
            return;
        }
        let apart = mean - self.mean;
        let total = self.weight + weight;
        let share = weight / total;
        self.within += weight * variance;
        self.between += self.weight * share * apart * apart;
        self.mean += share * apart;
        self.weight = total;
    }

    fn moments(self, together: Option<Together>) -> (f64, f64) {
        let centre = Centre { own: self.mean, joint: self.joint };
        let spread = together.map_or(1.0, |together| together.spread);
        let variance = (self.within + spread * spread * self.between) / self.weight;
        (together.map_or(self.mean, |together| centre.of(&together)), variance)
    }
}

/// Where a mixture is: the mean of its components, and that of all trees together, in units of their own.
#[derive(Debug, Clone, Copy)]
struct Centre {
    own: f64,
    joint: f64,
}

impl Centre {
    fn of(self, together: &Together) -> f64 {
        self.own + together.share * (together.model.mean(self.joint) - self.own)
    }
}

/// All components of a row, and what all trees together have for a mean, as far as there is one.
#[derive(Debug, Clone, Default)]
struct Row {
    components: Vec<Component>,
    joint: f64,
}

impl Row {
    /// The components about the forest's mean.
    fn finish(mut self, together: Option<Together>) -> Vec<Component> {
        let Some(together) = together else { return self.components };
        let mut mixture = Running::default();
        self.components.iter().for_each(|&component| mixture.add(component));
        let centre = Centre { own: mixture.mean, joint: self.joint };
        let mean = centre.of(&together);
        for component in &mut self.components {
            component.mean = mean + together.spread * (component.mean - centre.own);
        }
        self.components
    }
}

/// Mean and variance of every row's mixture.
struct TwoMoments<'a> {
    model: &'a MondrianRegressor,
    state: &'a State,
}

impl Visitor<NodeMoments> for TwoMoments<'_> {
    type Chunk = Vec<Running>;

    fn start(&self, n_rows: usize) -> Self::Chunk {
        vec![Running::default(); n_rows]
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Self::Chunk,
    ) {
        self.model.components(self.state, tree_index, tree, stops, |component| chunk[row].add(component));
        chunk[row].joint += self.state.joint_mean(tree_index, stops);
    }
}

/// All components of every row.
struct Mixture<'a> {
    model: &'a MondrianRegressor,
    state: &'a State,
}

impl Visitor<NodeMoments> for Mixture<'_> {
    type Chunk = Vec<Row>;

    fn start(&self, n_rows: usize) -> Self::Chunk {
        vec![Row::default(); n_rows]
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Self::Chunk,
    ) {
        self.model.components(self.state, tree_index, tree, stops, |component| {
            let parts = match &self.state.tails {
                Some(tails) => &tails.part(component)[..],
                None => &[component],
            };
            chunk[row].components.extend(parts.iter().filter_map(|&part| self.model.share(part)));
        });
        chunk[row].joint += self.state.joint_mean(tree_index, stops);
    }
}

/// All components of rows that are left out one by one.
struct LeftOut<'a> {
    model: &'a MondrianRegressor,
    state: &'a State,
    /// For the joint posterior: what follows from the other rows.
    without: Option<&'a Solution>,
}

/// Components so far, and the messages of the tree that rows are being left out of.
struct LeftOutChunk {
    rows: Vec<Row>,
    tree_index: Option<usize>,
    messages: Messages,
}

impl LeftOut<'_> {
    /// Brings the messages of nodes, given children first, up to date.
    fn update<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        nodes: impl Iterator<Item = NodeId>,
        chunk: &mut LeftOutChunk,
    ) {
        if chunk.tree_index != Some(tree_index) {
            chunk.tree_index = Some(tree_index);
            chunk.messages = self.state.messages[tree_index].clone();
        }
        let lifetime = self.model.forest.settings.lifetime;
        chunk.messages.update(tree, nodes, lifetime, &self.state.hyper);
    }
}

impl Visitor<NodeMoments> for LeftOut<'_> {
    type Chunk = LeftOutChunk;

    fn start(&self, n_rows: usize) -> LeftOutChunk {
        LeftOutChunk { rows: vec![Row::default(); n_rows], tree_index: None, messages: Messages::default() }
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        chunk: &mut LeftOutChunk,
    ) {
        let hyper = &self.state.hyper;
        let emit = |component| chunk.rows[row].components.extend(self.model.share(component));
        if self.model.settings.posterior == Posterior::Fast {
            return self.model.components(self.state, tree_index, tree, stops, emit);
        }
        // A row that left changed the messages on its own way down, and no others.
        self.update(tree_index, tree, stops.iter().rev().map(|stop| stop.node), chunk);
        let lifetime = self.model.forest.settings.lifetime;
        let LeftOutChunk { rows, messages, .. } = chunk;
        belief_propagation::predict_exact(
            tree,
            messages,
            hyper,
            lifetime,
            stops,
            |_| 1.0,
            |component| rows[row].components.extend(self.model.share(component)),
        );
        if let (Some(joint), Some(without)) = (&self.state.joint, self.without) {
            // Rows that differ from none but the one that left are in one leaf now.
            let sum = |node: NodeId| {
                if !node.is_leaf() {
                    return without.sums[tree_index][node.index()];
                }
                let weights = tree.arena.leaf_rows(node).map(|row| without.weights[row as usize]);
                in_any_order(weights)
            };
            rows[row].joint += joint::mean(sum, &joint.together.model.hyper, stops);
        }
    }

    fn restored<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        changed: &[NodeId],
        chunk: &mut LeftOutChunk,
    ) {
        if self.model.settings.posterior != Posterior::Fast {
            self.update(tree_index, tree, changed.iter().rev().copied(), chunk);
        }
    }
}

/// A sum that does not depend on the order of its terms.
fn in_any_order(terms: impl Iterator<Item = f64>) -> f64 {
    let mut terms: Vec<f64> = terms.collect();
    terms.sort_unstable_by(f64::total_cmp);
    terms.iter().sum()
}

fn ragged(chunks: Vec<Vec<Row>>, together: Option<Together>) -> (Vec<usize>, Vec<Component>) {
    let rows: Vec<Vec<Component>> = chunks.into_iter().flatten().map(|row| row.finish(together)).collect();
    let mut offsets = vec![0];
    offsets.extend(rows.iter().scan(0, |end, row| {
        *end += row.len();
        Some(*end)
    }));
    (offsets, rows.into_iter().flatten().collect())
}

struct Posteriors<'a> {
    model: &'a MondrianRegressor,
    state: &'a State,
}

impl NodeValues<NodeMoments> for Posteriors<'_> {
    fn of<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        order: &[NodeId],
    ) -> (usize, Vec<f64>) {
        let values = if self.model.settings.posterior == Posterior::Fast {
            let of = |&node: &NodeId| {
                let moments = tree.statistics.moments(node);
                [moments.mean, moments.squares / tree.arena.n_rows(node) as f64]
            };
            order.iter().flat_map(of).collect()
        } else {
            let messages = &self.state.messages[tree_index];
            belief_propagation::posterior(tree, messages, &self.state.hyper, order)
                .into_iter()
                .flat_map(|(mean, variance)| [mean, variance])
                .collect()
        };
        (2, values)
    }
}

fn check_targets(n_rows: usize, targets: &[f64]) -> Result<Vec<f64>> {
    if targets.len() != n_rows {
        return Err(Error::Length {
            what: "y",
            found: targets.len(),
            expected: n_rows,
            why: "one a row of X",
        });
    }
    match targets.iter().position(|y| !y.is_finite()) {
        Some(row) => {
            return Err(Error::NonFiniteTarget { row, value: targets[row] });
        }
        None if targets.iter().any(|y| y.abs() > LARGEST_TARGET) => {
            return Err(Error::InvalidSetting {
                name: "y",
                expected: "at most 1e140 by magnitude, so that its square is finite",
                found: "a larger one".into(),
            });
        }
        None => {}
    }
    // Negative zero is zero.
    Ok(targets.iter().map(|y| y + 0.0).collect())
}
