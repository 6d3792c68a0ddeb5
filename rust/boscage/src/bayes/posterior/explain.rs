//! The mean over the trees of a posterior: its Shapley values, and its trees with what each leaf adds.

use crate::bayes::posterior::bayesian_trees::{BayesianTrees, FittedLeaf};
use crate::bayes::tree::{PreorderNode, PreorderSplit, PreorderTree};
use crate::control::Run;
use crate::data::Rows;
use crate::error::Result;
use crate::explain::covered_tree::{CoveredNode, CoveredTree};
use crate::explain::shapley::{Buffers, Explainer};
use crate::explain::{Contributions, LeafTree};

impl<L: FittedLeaf> BayesianTrees<L> {
    /// Shapley values of the mean over trees of what leaves predict: a number, or the probability of each class.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub fn shapley(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Contributions> {
        /// Rows that are explained together.
        const BLOCK: usize = 64;
        self.ensemble.check_rows(rows)?;
        let trees: Vec<CoveredTree> = self.covered_trees().collect();
        let n_outputs = trees[0].n_outputs();
        let explainer = Explainer::new(trees.iter());
        let (n, n_features) = (rows.n_rows(), self.n_features());
        Contributions::check_room(n, n_features, n_outputs)?;
        let blocks = run.map_ranges(n, BLOCK, |range| {
            let part = rows.slice(range.start, range.end);
            let mut found = Contributions::zeros(n_outputs, part.n_rows() * n_features * n_outputs);
            let mut buffers = Buffers::default();
            for tree in &trees {
                run.control.check()?;
                tree.add_mean(&mut found.base);
                for (row, phi) in found.values.chunks_exact_mut(n_features * n_outputs).enumerate() {
                    explainer.add(tree, |feature| part.at(row, feature), &mut buffers, phi);
                }
            }
            Ok(found)
        })?;
        Ok(Contributions::concat(blocks))
    }

    /// The trees, whose leaves hold what they add to the mean of predictions.
    #[must_use]
    pub fn leaf_trees(&self) -> Vec<LeafTree> {
        self.covered_trees().map(|tree| tree.export()).collect()
    }

    fn covered_trees(&self) -> impl Iterator<Item = CoveredTree> {
        let of_trees = self.ensemble.trees.iter().zip(&self.ensemble.weights);
        of_trees.map(|(tree, &weight)| self.covered(tree, weight))
    }

    /// A tree whose leaves hold their predictions, times the tree's weight.
    fn covered(&self, tree: &PreorderTree<L::Stats>, weight: f64) -> CoveredTree {
        let of_node = |node: &PreorderNode<L::Stats>| {
            let cover = L::weight(&node.stats);
            match node.split {
                Some(PreorderSplit { rule, right }) => CoveredNode { rule, right, cover },
                None => CoveredNode::leaf(cover),
            }
        };
        let nodes = tree.nodes.iter().map(of_node).collect();
        let mut values = Vec::new();
        for node in &tree.nodes {
            self.leaf.prediction(&node.stats, &mut values);
        }
        for value in &mut values {
            *value *= weight;
        }
        CoveredTree::new(nodes, values)
    }
}
