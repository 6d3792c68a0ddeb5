//! The predictive distribution of the forest: the mixture of all trees' components (eq. 6.3 to 6.5).

use crate::data::Scalar;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::export::NodeValues;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::regression::hierarchy::belief_propagation::{self, Hyperparameters, Messages};
use crate::mondrian::regression::hierarchy::tree_predictive::{self, Component, PredictivePrior};
use crate::mondrian::regression::hyperparameters::leave_one_out::Together;
use crate::mondrian::regression::joint::{self, Solution};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::settings::{Posterior, RegressionSettings};
use crate::mondrian::regression::state::{ForestState, in_messages};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// Everything that determines a forest's predictions.
#[derive(Clone, Copy)]
pub(super) struct ForestPosterior<'a> {
    pub(super) forest: &'a Forest<NodeMoments>,
    pub(super) settings: &'a RegressionSettings,
    pub(super) state: &'a ForestState,
}

impl ForestPosterior<'_> {
    /// One tree's predictive components.
    fn components<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        stops: &[Stop],
        emit: impl FnMut(Component),
    ) {
        let hyper = &self.state.hyper;
        if self.settings.posterior == Posterior::Fast {
            let prior = fast_prior(tree, hyper);
            return tree_predictive::predict_fast(tree, prior, hyper.noise_variance, stops, emit);
        }
        let scale = |node: NodeId| match &self.state.scales {
            Some(scales) => scales[tree_index][node.index()],
            None => 1.0,
        };
        tree_predictive::predict_exact(
            tree,
            &self.state.messages[tree_index],
            &self.prior(),
            stops,
            scale,
            emit,
        );
    }

    /// The prior of the exact and the joint predictive.
    fn prior(&self) -> PredictivePrior {
        let hyper = &self.state.hyper;
        let lifetime = self.forest.settings.lifetime;
        PredictivePrior { hyper: in_messages(hyper, self.settings.posterior), coarse: hyper.coarse, lifetime }
    }

    /// A component with its weight in the forest's mixture (eq. 6.5); none if the weight is lost in rounding.
    fn share(&self, component: Component) -> Option<Component> {
        let n_trees = self.forest.settings.n_estimators as f64;
        (component.weight > 1e-14).then(|| Component { weight: component.weight / n_trees, ..component })
    }
}

/// The parent of the root for the fast posterior: the root itself.
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

/// Weight, mean and sums of squares of a mixture so far: variances are positive and squares are not
/// negative, so that nothing cancels.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Running {
    weight: f64,
    mean: f64,
    /// Of variances within components.
    within: f64,
    /// Of the components' distances from the mean.
    between: f64,
    /// The joint model's mean, if there is one.
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

    /// Mean and variance of the mixture (eq. 6.4).
    pub(super) fn moments(self, together: Option<Together>) -> (f64, f64) {
        let centre = Centre { own: self.mean, joint: self.joint };
        let spread = together.map_or(1.0, |together| together.spread);
        let variance = (self.within + spread * spread * self.between) / self.weight;
        (together.map_or(self.mean, |together| centre.of(&together)), variance)
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
        self.own + together.share * (together.model.mean(self.joint) - self.own)
    }
}

/// All components of a row, and the joint model's mean, if there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct MixtureRow {
    components: Vec<Component>,
    joint: f64,
}

impl MixtureRow {
    /// The components, moved to the forest's mean.
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
pub(super) struct TwoMoments<'a> {
    pub(super) posterior: ForestPosterior<'a>,
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
        self.posterior.components(tree_index, tree, stops, |component| chunk[row].add(component));
        chunk[row].joint += self.posterior.state.joint_mean(tree_index, stops);
    }
}

/// All components of every row.
pub(super) struct Mixture<'a> {
    pub(super) posterior: ForestPosterior<'a>,
}

impl Visitor<NodeMoments> for Mixture<'_> {
    type Chunk = Vec<MixtureRow>;

    fn start(&self, n_rows: usize) -> Self::Chunk {
        vec![MixtureRow::default(); n_rows]
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Self::Chunk,
    ) {
        self.posterior.components(tree_index, tree, stops, |component| {
            let parts = match &self.posterior.state.tails {
                Some(tails) => &tails.part(component)[..],
                None => &[component],
            };
            chunk[row].components.extend(parts.iter().filter_map(|&part| self.posterior.share(part)));
        });
        chunk[row].joint += self.posterior.state.joint_mean(tree_index, stops);
    }
}

/// All components of rows that are left out one by one.
pub(super) struct LeftOut<'a> {
    pub(super) posterior: ForestPosterior<'a>,
    /// For the joint posterior: the solution for the other rows.
    pub(super) without: Option<&'a Solution>,
}

/// Components so far, and the messages of the tree out of which rows are left.
pub(super) struct LeftOutChunk {
    pub(super) rows: Vec<MixtureRow>,
    tree_index: Option<usize>,
    messages: Messages,
}

impl LeftOut<'_> {
    /// Updates the messages of nodes, given children first.
    fn update<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        nodes: impl Iterator<Item = NodeId>,
        chunk: &mut LeftOutChunk,
    ) {
        if chunk.tree_index != Some(tree_index) {
            chunk.tree_index = Some(tree_index);
            chunk.messages = self.posterior.state.messages[tree_index].clone();
        }
        let lifetime = self.posterior.forest.settings.lifetime;
        let hyper = in_messages(&self.posterior.state.hyper, self.posterior.settings.posterior);
        chunk.messages.update(tree, nodes, lifetime, &hyper);
    }
}

impl Visitor<NodeMoments> for LeftOut<'_> {
    type Chunk = LeftOutChunk;

    fn start(&self, n_rows: usize) -> LeftOutChunk {
        LeftOutChunk {
            rows: vec![MixtureRow::default(); n_rows],
            tree_index: None,
            messages: Messages::default(),
        }
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        chunk: &mut LeftOutChunk,
    ) {
        let emit = |component| chunk.rows[row].components.extend(self.posterior.share(component));
        if self.posterior.settings.posterior == Posterior::Fast {
            return self.posterior.components(tree_index, tree, stops, emit);
        }
        // A row that left changed the messages on its own path, and no others.
        self.update(tree_index, tree, stops.iter().rev().map(|stop| stop.node), chunk);
        let LeftOutChunk { rows, messages, .. } = chunk;
        tree_predictive::predict_exact(
            tree,
            messages,
            &self.posterior.prior(),
            stops,
            |_| 1.0,
            |component| rows[row].components.extend(self.posterior.share(component)),
        );
        if let (Some(joint), Some(without)) = (&self.posterior.state.joint, self.without) {
            // Rows that only the left-out row separated are in one leaf now.
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
        if self.posterior.settings.posterior != Posterior::Fast {
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

/// Where each row's components begin, and where all end; and the components.
pub(super) fn ragged(
    chunks: Vec<Vec<MixtureRow>>,
    together: Option<Together>,
) -> (Vec<usize>, Vec<Component>) {
    let rows: Vec<Vec<Component>> = chunks.into_iter().flatten().map(|row| row.finish(together)).collect();
    let mut offsets = vec![0];
    offsets.extend(rows.iter().scan(0, |end, row| {
        *end += row.len();
        Some(*end)
    }));
    (offsets, rows.into_iter().flatten().collect())
}

/// Shows the posterior mean and variance of every node's mean.
pub(super) struct NodePosteriors<'a> {
    pub(super) posterior: ForestPosterior<'a>,
}

impl NodeValues<NodeMoments> for NodePosteriors<'_> {
    fn of<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        order: &[NodeId],
    ) -> (usize, Vec<f64>) {
        let values = if self.posterior.settings.posterior == Posterior::Fast {
            let of = |&node: &NodeId| {
                let moments = tree.statistics.moments(node);
                [moments.mean, moments.squares / tree.arena.n_rows(node) as f64]
            };
            order.iter().flat_map(of).collect()
        } else {
            let messages = &self.posterior.state.messages[tree_index];
            belief_propagation::posterior(tree, messages, &self.posterior.state.hyper, order)
                .into_iter()
                .flat_map(|(mean, variance)| [mean, variance])
                .collect()
        };
        (2, values)
    }
}
