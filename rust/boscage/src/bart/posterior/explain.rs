//! Shapley values of sums of trees, draw by draw.

use crate::bart::chain::SumsOfTrees;
use crate::bart::draws::DrawnNode;
use crate::control::Run;
use crate::data::Rows;
use crate::error::Result;
use crate::explain::Contributions;
use crate::explain::covered_tree::{CoveredNode, CoveredTree};
use crate::explain::shapley::{Buffers, Explainer};

impl SumsOfTrees {
    /// Shapley values of every draw's sums at some rows, before the link; the rows of `background` are those whose shares
    /// stand for features that are not known. One result for each draw.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub(crate) fn shapley_draws(
        &self,
        rows: Rows<'_>,
        background: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Vec<Contributions>> {
        self.check_rows(rows)?;
        self.check_rows(background)?;
        Contributions::check_room(rows.n_rows(), self.n_features, self.n_sums() * self.n_draws())?;
        run.control.expect(self.n_draws() as u64);
        run.map(self.n_draws(), |draw| {
            let found = self.shapley_of_draw(draw, rows, background, run);
            run.control.advance(1);
            found
        })
    }

    fn shapley_of_draw(
        &self,
        draw: usize,
        rows: Rows<'_>,
        background: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Contributions> {
        let (n_sums, n_features) = (self.n_sums(), self.n_features);
        let mut found = Contributions::zeros(n_sums, rows.n_rows() * n_features * n_sums);
        found.base.copy_from_slice(&self.centres);
        let mut buffers = Buffers::default();
        let mut phi = vec![0.0; n_features];
        for sum in 0..n_sums {
            let first = (draw * n_sums + sum) * self.n_trees;
            let trees: Vec<CoveredTree> =
                (first..first + self.n_trees).map(|i| covered(self.draws.tree(i), background)).collect();
            for tree in &trees {
                tree.add_mean(&mut found.base[sum..=sum]);
            }
            let explainer = Explainer::new(trees.iter());
            for row in 0..rows.n_rows() {
                run.control.check()?;
                phi.fill(0.0);
                for tree in &trees {
                    explainer.add(tree, |feature| rows.at(row, feature), &mut buffers, &mut phi);
                }
                for (feature, phi) in phi.iter().enumerate() {
                    found.values[(row * n_features + feature) * n_sums + sum] = *phi;
                }
            }
        }
        Ok(found)
    }
}

/// A drawn tree with the numbers of rows in its nodes.
fn covered(nodes: &[DrawnNode], rows: Rows<'_>) -> CoveredTree {
    let of_node = |(i, node): (usize, &DrawnNode)| {
        if node.is_leaf() {
            return CoveredNode::leaf(0.0);
        }
        CoveredNode { rule: node.rule(), right: (i + node.right as usize) as u32, cover: 0.0 }
    };
    let mut found: Vec<CoveredNode> = nodes.iter().enumerate().map(of_node).collect();
    for row in 0..rows.n_rows() {
        let mut at = 0;
        loop {
            let node = &mut found[at];
            node.cover += 1.0;
            if node.is_leaf() {
                break;
            }
            let right = node.rule.sends_right(rows.at(row, node.rule.feature as usize));
            at = if right { node.right as usize } else { at + 1 };
        }
    }
    let values = nodes.iter().map(|node| if node.is_leaf() { node.value } else { 0.0 }).collect();
    CoveredTree::new(found, values)
}
