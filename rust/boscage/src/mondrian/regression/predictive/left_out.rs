//! Rows that are left out one by one: each is predicted by the forest without it.

use crate::data::{RowId, Scalar};
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::regression::hierarchy::belief_propagation::Messages;
use crate::mondrian::regression::hierarchy::tree_predictive::{self, Detail, PredictingTree, StopsAndLaws};
use crate::mondrian::regression::joint::tree_mean;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::predictive::{ForestPosterior, MixtureRow, Paths};
use crate::mondrian::regression::settings::Posterior;
use crate::mondrian::regression::state::{Without, in_messages};
use crate::mondrian::regression::trend::posterior::Linear;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;

/// All components of rows that are left out one by one.
pub(in crate::mondrian::regression) struct LeftOut<'a> {
    pub(in crate::mondrian::regression) posterior: ForestPosterior<'a>,
    /// For the joint posterior: what the other rows determine.
    pub(in crate::mondrian::regression) without: Option<&'a Without>,
}

/// Components so far, and the messages of the tree out of which rows are left.
pub(in crate::mondrian::regression) struct LeftOutChunk {
    pub(in crate::mondrian::regression) rows: Vec<MixtureRow>,
    tree_index: Option<usize>,
    messages: Messages,
    /// With a trend: the moments of what it leaves of the targets, at the leaves that changed.
    moments: NodeMoments,
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
        let residuals = self.without.and_then(|without| without.residuals.as_ref());
        if chunk.tree_index != Some(tree_index) {
            chunk.tree_index = Some(tree_index);
            let messages = residuals.map_or(&self.posterior.state.messages, |(_, messages)| messages);
            chunk.messages = messages[tree_index].clone();
        }
        let lifetime = self.posterior.forest.settings.lifetime;
        let hyper = in_messages(&self.posterior.state.hyper, self.posterior.settings.posterior);
        let Some((residuals, _)) = residuals else {
            return chunk.messages.update(tree, &tree.statistics, nodes, lifetime, &hyper);
        };
        let nodes: Vec<NodeId> = nodes.collect();
        for &leaf in nodes.iter().filter(|node| node.is_leaf()) {
            let rows: Vec<RowId> = tree.arena.leaf_rows(leaf).collect();
            chunk.moments.set_leaf(leaf, &rows, residuals.observed().targets);
        }
        chunk.messages.update(tree, &chunk.moments, nodes.into_iter(), lifetime, &hyper);
    }
}

impl Visitor<NodeMoments> for LeftOut<'_> {
    type Chunk = LeftOutChunk;

    fn start(&self, n_rows: usize) -> LeftOutChunk {
        LeftOutChunk {
            rows: vec![MixtureRow::default(); n_rows],
            tree_index: None,
            messages: Messages::default(),
            moments: NodeMoments::default(),
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
        // A row that left changed the tree.
        let mut paths = Paths::default();
        let emit = |component, _| chunk.rows[row].components.extend(self.posterior.share(component));
        if self.posterior.settings.posterior == Posterior::Fast {
            self.posterior.components((tree_index, tree), stops, Detail::Shape, &mut paths, emit);
            return;
        }
        paths.set_laws(stops);
        // A row that left changed the messages on its own path, and no others.
        self.update(tree_index, tree, stops.iter().rev().map(|stop| stop.node), chunk);
        let LeftOutChunk { rows, messages, .. } = chunk;
        let path = StopsAndLaws { stops, n_inside: paths.n_inside, laws: &paths.laws };
        tree_predictive::predict_exact(
            PredictingTree { number: tree_index, tree, messages },
            &self.posterior.prior,
            path,
            |_| 1.0,
            Detail::Shape,
            &mut paths.above,
            |component, _| rows[row].components.extend(self.posterior.share(component)),
        );
        let solution = self.without.map(|without| &without.solution);
        let by_trees = solution.and_then(|solution| Some((solution, solution.by_trees()?)));
        if let (Some(joint), Some((solution, sums))) = (&self.posterior.state.joint, by_trees) {
            let of = (tree_index, &tree.arena);
            let sum = |node: NodeId| sums.sum_without(of, node);
            let hyper = &joint.together.model.hyper;
            rows[row].joint.mean += tree_mean::mean((tree_index, sum), hyper, path, &mut paths.joint);
            if let Some(Linear { columns, .. }) = &solution.linear {
                let sum = |node: NodeId, column: usize| sums.column_sum_without(of, node, column);
                let smoothed = &mut rows[row].joint.smoothed;
                tree_mean::smooth(&mut paths.joint, stops, columns.len(), sum, smoothed);
            }
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
