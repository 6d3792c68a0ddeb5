//! The predictive distribution of the forest: the mixture of all trees' components (eq. 6.3 to 6.5).
//!
//! A tree predicts a mixture over the places where the row may branch off its path, `sum_j w_j N(m_j, v_j)`
//! (eq. 6.3), which [`hierarchy`](crate::mondrian::regression::hierarchy) computes. The forest's distribution is the
//! average of its trees' (eq. 6.5). Its mean and variance (eq. 6.4) are sums over components, taken while trees are
//! read one after the other, as a sum of squares about the mean, so that nothing cancels; quantiles and
//! intervals need all components, and `gaussian_mixture` has these.
//!
//! With the joint posterior the components keep their spread and are moved together, so that their mean is that of
//! all trees as one Gaussian process; a trend is added to all of them. `left_out` has the same for training rows, each
//! predicted by the forest without it; `completed`, for rows that lack values.

pub(super) mod completed;
pub(crate) mod gaussian_mixture;
pub(super) mod left_out;

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::export::NodeValues;
use crate::mondrian::joint::limit::{LimitFunction, LogisticCovariance};
use crate::mondrian::prediction::shared_path::SharedPath;
use crate::mondrian::prediction::stop::{Stop, n_inside};
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::process::domain::{CoordinateBuffer, Domain};
use crate::mondrian::regression::hierarchy::belief_propagation::{self, Hyperparameters};
use crate::mondrian::regression::hierarchy::branch_law::BranchLaw;
use crate::mondrian::regression::hierarchy::tree_predictive::{
    self, AboveStop, Component, Detail, LOST, PredictingTree, PredictivePrior, StopsAndLaws,
};
use crate::mondrian::regression::hyperparameters::leave_one_out::Together;
use crate::mondrian::regression::joint::tree_mean::JointPath;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::noise::noise_tails::NoiseTails;
use crate::mondrian::regression::settings::{Posterior, RegressionSettings};
use crate::mondrian::regression::state::{ForestState, JointState, in_messages};
use crate::mondrian::regression::trend::posterior::Linear;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// Everything that determines a forest's predictions.
#[derive(Clone, Copy)]
pub(super) struct ForestPosterior<'a> {
    pub(super) forest: &'a Forest<NodeMoments>,
    pub(super) settings: &'a RegressionSettings,
    pub(super) state: &'a ForestState,
    prior: PredictivePrior,
}

/// What successive test rows share on their paths.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    above: SharedPath<AboveStop>,
    joint: JointPath,
    /// Number of the last row's first stops above which it surely does not branch off.
    n_inside: usize,
    /// The law of its branch above each of the others.
    laws: Vec<Option<BranchLaw>>,
}

impl Paths {
    fn set_laws(&mut self, stops: &[Stop]) {
        self.n_inside = n_inside(stops);
        self.laws.clear();
        self.laws.extend(stops[self.n_inside..].iter().map(BranchLaw::new));
    }
}

impl<'a> ForestPosterior<'a> {
    pub(super) fn new(
        forest: &'a Forest<NodeMoments>,
        settings: &'a RegressionSettings,
        state: &'a ForestState,
    ) -> Self {
        let hyper = in_messages(&state.hyper, settings.posterior);
        let apart = state.joint.as_ref().map_or(1.0, |joint| joint.together.spread * joint.together.spread);
        let prior = PredictivePrior::new(hyper, state.hyper.coarse, forest.settings.lifetime, apart);
        Self { forest, settings, state, prior }
    }

    /// Adds what is no sum over trees: the means of the limit, if there is one, and the variance beside all rows. `rows` are
    /// complete; they may be rows that are left out.
    ///
    /// # Errors
    /// An interrupt; [`Error::Memory`](crate::Error::Memory).
    pub(super) fn complete<'j>(
        &self,
        joints: impl Iterator<Item = &'j mut JointMean>,
        limit: Option<&LimitFunction<LogisticCovariance>>,
        (rows, are_left_out): (Rows<'_>, bool),
        run: &Run<'_>,
    ) -> Result<()> {
        let domain = &self.forest.domain;
        let means = limit.map(|limit| limit_means(limit, domain, rows, run)).transpose()?;
        let mut means = means.into_iter().flatten();
        let mut buffer = CoordinateBuffer::default();
        let beside = match self.state.beside() {
            Some(beside) => Some((beside, domain.coordinates(rows, &mut buffer)?)),
            None => None,
        };
        for (i, joint) in joints.enumerate() {
            if let Some(of_limit) = means.next() {
                *joint = of_limit;
            }
            if let Some((beside, coordinates)) = &beside {
                joint.beside = beside.variance(domain.rates(), |d| coordinates.at(i, d), are_left_out);
            }
        }
        Ok(())
    }

    /// Whether the mean is that of the joint model alone.
    fn is_joint_alone(&self) -> bool {
        self.state.joint.as_ref().is_some_and(|joint| joint.together.share == 1.0)
    }

    /// One tree's predictive components, each with the variance of its mean over the branch's time, and the tree's share of the
    /// joint model's mean; 0 if there is none.
    pub(super) fn components<S: Scalar>(
        &self,
        (number, tree): (usize, &Tree<S, NodeMoments>),
        stops: &[Stop],
        detail: Detail,
        paths: &mut Paths,
        emit: impl FnMut(Component, f64),
    ) -> f64 {
        let hyper = &self.state.hyper;
        if self.settings.posterior == Posterior::Fast {
            let prior = fast_prior(tree, hyper);
            tree_predictive::predict_fast(tree, prior, hyper.noise_variance, stops, emit);
            return 0.0;
        }
        paths.set_laws(stops);
        let path = StopsAndLaws { stops, n_inside: paths.n_inside, laws: &paths.laws };
        let scale = |node: NodeId| match &self.state.scales {
            Some(scales) => scales[number][node.index()],
            None => 1.0,
        };
        let predicting = PredictingTree { number, tree, messages: &self.state.messages[number] };
        if detail != Detail::Mean || !self.is_joint_alone() {
            tree_predictive::predict_exact(
                predicting,
                &self.prior,
                path,
                scale,
                detail,
                &mut paths.above,
                emit,
            );
        }
        self.state.joint_mean((number, &tree.arena), path, &mut paths.joint)
    }

    /// Whether the trees' components have no part in the mean.
    pub(super) fn has_mean_without_trees(&self) -> bool {
        self.state.limit().is_some() && self.is_joint_alone()
    }

    /// A component with its weight in the forest's mixture (eq. 6.5); none if the weight is lost in rounding.
    fn share(&self, component: Component) -> Option<Component> {
        let n_trees = self.forest.settings.n_estimators as f64;
        (component.weight > LOST).then(|| Component { weight: component.weight / n_trees, ..component })
    }
}

/// The joint model's mean at a row, and what belongs to the row alone.
#[derive(Debug, Clone, Default)]
pub(super) struct JointMean {
    mean: f64,
    /// The variance beside all rows.
    beside: f64,
    /// What the model makes of the row's `z`, if there is a trend.
    smoothed: Vec<f64>,
}

/// A function's values at rows without missing values.
///
/// # Errors
/// An interrupt.
fn limit_means(
    limit: &LimitFunction<LogisticCovariance>,
    domain: &Domain,
    rows: Rows<'_>,
    run: &Run<'_>,
) -> Result<Vec<JointMean>> {
    let sums = limit.at_rows(domain, rows, run)?;
    let of_row = |sums: &[f64]| JointMean { mean: sums[0], beside: 0.0, smoothed: sums[1..].to_vec() };
    Ok(sums.chunks_exact(limit.n_columns()).map(of_row).collect())
}

/// The parent of the root for the fast posterior: the root itself.
fn fast_prior<S: Scalar>(tree: &Tree<S, NodeMoments>, hyper: &Hyperparameters) -> Component {
    let (mean, variance) = match tree.arena.root() {
        None => (hyper.mu, 0.5 * hyper.gamma1),
        Some(root) => {
            let moments = tree.statistics.moments(root);
            (moments.mean, moments.squares / tree.statistics.weight(root, tree.arena.n_rows(root)))
        }
    };
    Component { weight: 1.0, mean, variance: variance + hyper.noise_variance }
}

/// Weight, mean and sums of squares of a mixture so far: variances are positive and squares are not
/// negative, so that nothing cancels.
#[derive(Debug, Clone, Default)]
pub(super) struct Running {
    weight: f64,
    mean: f64,
    /// Of variances within components.
    within: f64,
    /// Of the components' distances from the mean.
    between: f64,
    /// The joint model's, if there is one.
    pub(super) joint: JointMean,
}

impl Running {
    /// The numbers of a mixture without a joint model.
    pub(super) fn numbers(&self) -> [f64; 4] {
        [self.weight, self.mean, self.within, self.between]
    }

    /// A mixture without a joint model, given its numbers.
    pub(super) fn of([weight, mean, within, between]: [f64; 4]) -> Self {
        Self { weight, mean, within, between, ..Self::default() }
    }

    /// Adds a component whose mean has the variance `between` over the branch's time.
    pub(super) fn add(&mut self, Component { weight, mean, variance }: Component, between: f64) {
        if weight <= 0.0 {
            return;
        }
        let apart = mean - self.mean;
        let total = self.weight + weight;
        let share = weight / total;
        self.within += weight * variance;
        self.between += self.weight * share * apart * apart + weight * between;
        self.mean += share * apart;
        self.weight = total;
    }

    /// Mean and variance of the mixture (eq. 6.4), with the trend at the row.
    pub(super) fn moments(self, state: &ForestState, x: impl Fn(usize) -> f64) -> (f64, f64) {
        let together = state.joint.as_ref().map(|joint| joint.together);
        let centre = Centre { own: self.mean, joint: self.joint.mean };
        let spread = together.map_or(1.0, |together| together.spread);
        let variance = (self.within + spread * spread * self.between) / self.weight + self.joint.beside;
        let mean = together.map_or(self.mean, |together| centre.of(&together));
        let Some(linear) = state.trend() else { return (mean, variance) };
        let (trend, uncertainty) = linear.at(x, &self.joint.smoothed);
        (mean + trend, variance + uncertainty)
    }
}

/// The centre of a mixture: the mean of its components, and that of the joint model in the latter's units.
#[derive(Debug, Clone, Copy)]
struct Centre {
    own: f64,
    joint: f64,
}

impl Centre {
    fn of(self, together: &Together) -> f64 {
        if together.share == 1.0 {
            return together.model.mean(self.joint);
        }
        self.own + together.share * (together.model.mean(self.joint) - self.own)
    }
}

/// All components of a row, and the joint model's mean, if there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct MixtureRow {
    components: Vec<Component>,
    pub(super) joint: JointMean,
}

impl MixtureRow {
    /// The components, moved to the forest's mean, with the noise's tails and a trend at the row.
    pub(super) fn finish(
        mut self,
        state: &ForestState,
        tails: Option<&NoiseTails>,
        linear: Option<&Linear>,
        x: impl Fn(usize) -> f64,
    ) -> Vec<Component> {
        if let Some(JointState { together, .. }) = &state.joint {
            self.recentre(together);
        }
        if let Some(tails) = tails {
            let parts = self.components.iter().flat_map(|&component| tails.part(component));
            self.components = parts.filter(|part| part.weight > 0.0).collect();
        }
        let (trend, uncertainty) = linear.map_or((0.0, 0.0), |linear| linear.at(x, &self.joint.smoothed));
        if linear.is_some() || self.joint.beside > 0.0 {
            for component in &mut self.components {
                component.mean += trend;
                // What is left of a variance without a row may be less than nothing, by rounding.
                let variance = component.variance.max(0.0) + uncertainty + self.joint.beside;
                component.variance = variance.max(f64::MIN_POSITIVE);
            }
        }
        self.components
    }

    fn recentre(&mut self, together: &Together) {
        let mut mixture = Running::default();
        self.components.iter().for_each(|&component| mixture.add(component, 0.0));
        let centre = Centre { own: mixture.mean, joint: self.joint.mean };
        let mean = centre.of(together);
        for component in &mut self.components {
            component.mean = mean + together.spread * (component.mean - centre.own);
        }
    }
}

/// Mean and variance of every row's mixture, or its mean alone.
pub(super) struct TwoMoments<'a> {
    pub(super) posterior: ForestPosterior<'a>,
    detail: Detail,
}

impl<'a> TwoMoments<'a> {
    pub(super) fn new(posterior: ForestPosterior<'a>) -> Self {
        Self { posterior, detail: Detail::Moments }
    }

    pub(super) fn of_mean(posterior: ForestPosterior<'a>) -> Self {
        Self { posterior, detail: Detail::Mean }
    }

    /// Whether the trees have a part in what is asked.
    pub(super) fn needs_trees(&self) -> bool {
        self.detail != Detail::Mean || !self.posterior.has_mean_without_trees()
    }
}

impl Visitor<NodeMoments> for TwoMoments<'_> {
    type Chunk = (Vec<Running>, Paths);

    fn start(&self, n_rows: usize) -> Self::Chunk {
        (vec![Running::default(); n_rows], Paths::default())
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        (rows, paths): &mut Self::Chunk,
    ) {
        let add = |component, between| rows[row].add(component, between);
        let mean = self.posterior.components((tree_index, tree), stops, self.detail, paths, add);
        let joint = &mut rows[row].joint;
        joint.mean += mean;
        self.posterior.state.smooth((tree_index, &tree.arena), stops, &mut paths.joint, &mut joint.smoothed);
    }
}

/// All components of every row (eq. 6.5).
pub(super) struct Mixture<'a> {
    pub(super) posterior: ForestPosterior<'a>,
}

impl Visitor<NodeMoments> for Mixture<'_> {
    type Chunk = (Vec<MixtureRow>, Paths);

    fn start(&self, n_rows: usize) -> Self::Chunk {
        (vec![MixtureRow::default(); n_rows], Paths::default())
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        (rows, paths): &mut Self::Chunk,
    ) {
        let MixtureRow { components, joint } = &mut rows[row];
        let add = |component, _| components.extend(self.posterior.share(component));
        joint.mean += self.posterior.components((tree_index, tree), stops, Detail::Shape, paths, add);
        self.posterior.state.smooth((tree_index, &tree.arena), stops, &mut paths.joint, &mut joint.smoothed);
    }
}

/// Shows the posterior mean and variance of every node's mean.
pub(super) struct NodePosteriors<'a> {
    pub(super) posterior: ForestPosterior<'a>,
}

impl NodeValues<NodeMoments> for NodePosteriors<'_> {
    fn n_values(&self) -> usize {
        2
    }

    fn of<S: Scalar>(&self, tree_index: usize, tree: &Tree<S, NodeMoments>, order: &[NodeId]) -> Vec<f64> {
        if self.posterior.settings.posterior == Posterior::Fast {
            let of = |&node: &NodeId| {
                let moments = tree.statistics.moments(node);
                [moments.mean, moments.squares / tree.statistics.weight(node, tree.arena.n_rows(node))]
            };
            order.iter().flat_map(of).collect()
        } else {
            let messages = &self.posterior.state.messages[tree_index];
            belief_propagation::posterior(tree, messages, &self.posterior.state.hyper, order)
                .into_iter()
                .flat_map(|(mean, variance)| [mean, variance])
                .collect()
        }
    }
}
