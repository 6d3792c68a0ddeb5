//! Shapley values of a forest's predictions.

use crate::control::Run;
use crate::data::splits::SideRule;
use crate::data::{RowId, Rows, Scalar, Table};
use crate::error::Result;
use crate::explain::Contributions;
use crate::explain::covered_tree::{CoveredNode, CoveredTree};
use crate::explain::shapley::{Buffers, Explainer, OwnCell};
use crate::mondrian::explain::TreeContributions;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::process::domain::CoordinateBuffer;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeKind};
use crate::mondrian::tree::boxes::box_moves::widen;
use crate::mondrian::tree::statistics::Statistics;

/// A tree whose leaves hold what they add to the prediction of a row that stays in them, and each leaf's rows.
pub(crate) struct TreeOfRows {
    pub(crate) tree: CoveredTree,
    /// By node; none at splits.
    rows: Vec<Vec<RowId>>,
}

/// Shapley values of the predictions for rows.
///
/// # Errors
/// A number of features other than in `fit`; an interrupt.
pub(crate) fn shapley<P: Statistics, T: TreeContributions<P>>(
    forest: &Forest<P>,
    by_tree: &T,
    rows: Rows<'_>,
    run: &Run<'_>,
) -> Result<Contributions> {
    /// Rows whose predictions by all trees are in memory at once.
    const BLOCK: usize = 64;
    let mut filled = Vec::new();
    let rows = forest.complete(rows, &mut filled)?;
    Contributions::check_room(rows.n_rows(), rows.n_features(), by_tree.n_outputs())?;
    let trees = covered_trees(forest, by_tree, run)?;
    let n_coordinates = forest.domain.n_coordinates();
    let explainer = Explainer::new(trees.iter().map(|tree| &tree.tree)).with_cells(n_coordinates);
    let n = rows.n_rows();
    run.control.expect(n as u64);
    let blocks = run.map_ranges(n, BLOCK, |range| {
        let part = rows.slice(range.start, range.end);
        let found = Block { forest, by_tree, trees: &trees, explainer: &explainer }.explain(part, run);
        run.control.advance(part.n_rows() as u64);
        found
    })?;
    Ok(Contributions::concat(blocks))
}

/// The trees of a forest with what each leaf adds to predictions.
///
/// # Errors
/// An interrupt.
pub(crate) fn covered_trees<P: Statistics, T: TreeContributions<P>>(
    forest: &Forest<P>,
    by_tree: &T,
    run: &Run<'_>,
) -> Result<Vec<TreeOfRows>> {
    with_storage!(forest.flushed(run)?, storage => {
        run.map(storage.trees.len(), |i| Ok(covered(forest, by_tree, i, &storage.trees[i])))
    })
}

fn covered<P: Statistics, S: Scalar, T: TreeContributions<P>>(
    forest: &Forest<P>,
    by_tree: &T,
    tree_index: usize,
    tree: &Tree<S, P>,
) -> TreeOfRows {
    let n_outputs = by_tree.n_outputs();
    let weights = tree.weights(forest.row_targets());
    let mut buffers = T::Buffers::default();
    let (mut nodes, mut values, mut rows): (Vec<CoveredNode>, Vec<f64>, Vec<Vec<RowId>>) = Default::default();
    let mut stops: Vec<Stop> = Vec::new();
    let mut waiting: Vec<(NodeId, usize, Option<usize>)> =
        tree.arena.root().map(|root| (root, 0, None)).into_iter().collect();
    while let Some((id, depth, parent)) = waiting.pop() {
        let at = nodes.len();
        if let Some(parent) = parent {
            nodes[parent].right = at as u32;
        }
        stops.truncate(depth);
        let after = stops.last().map_or(0.0, |stop| stop.time);
        let time = if id.is_leaf() { forest.settings.lifetime } else { tree.arena.time(id) };
        stops.push(Stop { node: id, after, time, branch: Branch::Never });
        let mut own = vec![0.0; n_outputs];
        match tree.arena.kind(id) {
            NodeKind::Split(left, right) => {
                let cut = tree.arena.cut(id);
                let coordinate = cut.coordinate as usize;
                let feature = forest.domain.feature_of(coordinate) as u32;
                let threshold = forest.domain.threshold(coordinate, cut.threshold);
                nodes.push(CoveredNode {
                    rule: SideRule::new(feature, threshold),
                    ..CoveredNode::leaf(weights[id.index()].float())
                });
                rows.push(Vec::new());
                waiting.extend([(right, depth + 1, Some(at)), (left, depth + 1, None)]);
            }
            NodeKind::Leaf => {
                by_tree.of_tree(tree_index, tree, &stops, &mut buffers, &mut own);
                nodes.push(CoveredNode::leaf(weights[id.index()].float()));
                rows.push(tree.arena.leaf_rows(id).collect());
            }
        }
        values.extend(own);
    }
    if nodes.is_empty() {
        // Without rows a tree predicts as the prior does.
        values.resize(n_outputs, 0.0);
        by_tree.of_tree(tree_index, tree, &[], &mut buffers, &mut values);
        nodes.push(CoveredNode::leaf(0.0));
        rows.push(Vec::new());
    }
    TreeOfRows { tree: CoveredTree::new(nodes, values), rows }
}

/// What the blocks of rows have in common.
struct Block<'a, P: Statistics, T> {
    forest: &'a Forest<P>,
    by_tree: &'a T,
    trees: &'a [TreeOfRows],
    explainer: &'a Explainer,
}

impl<P: Statistics, T: TreeContributions<P>> Block<'_, P, T> {
    fn explain(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Contributions> {
        let (n_features, n_outputs) = (rows.n_features(), self.by_tree.n_outputs());
        // One chunk, whose rows are those of the block.
        let alone = Run { n_threads: 1, ..*run };
        let each = Each { by_tree: self.by_tree, n_trees: self.trees.len() };
        let predicted = walk::predict(self.forest, rows, &alone, &each)?.pop().map(|(each, _)| each);
        let predicted = predicted.unwrap_or_default();
        let mut buffer = CoordinateBuffer::default();
        let coordinates = self.forest.domain.coordinates(rows, &mut buffer)?;
        let storage = self.forest.flushed(&alone)?;
        let mut found = Contributions::zeros(n_outputs, rows.n_rows() * n_features * n_outputs);
        let mut buffers = Buffers::default();
        for (i, TreeOfRows { tree, rows: of_leaves }) in self.trees.iter().enumerate() {
            run.control.check()?;
            tree.add_mean(&mut found.base);
            for row in 0..rows.n_rows() {
                let x = |feature: usize| rows.at(row, feature);
                let width = n_features * n_outputs;
                let phi = &mut found.values[row * width..(row + 1) * width];
                self.explainer.add(tree, x, &mut buffers, phi);
                let leaf = tree.leaf(x);
                let own = &predicted[(row * self.trees.len() + i) * n_outputs..][..n_outputs];
                let added: Vec<f64> =
                    own.iter().zip(tree.values_of(leaf)).map(|(own, leaf)| own - leaf).collect();
                if added.iter().any(|&added| added != 0.0) {
                    let at = coordinates.row(row);
                    let outside = with_storage!(storage, storage => {
                        self.outside(&of_leaves[leaf], &storage.values, at)
                    });
                    if !outside.is_empty() {
                        let cell = OwnCell { leaf, outside: &outside, added: &added };
                        self.explainer.add_cell(tree, &cell, phi);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The features of positive weight along whose coordinates a row lies outside the box of some rows of the table.
    fn outside<S: Scalar>(&self, of_leaf: &[RowId], table: &[S], x: impl Iterator<Item = f64>) -> Vec<u32> {
        let domain = &self.forest.domain;
        let n = domain.n_coordinates();
        let (table, mut low, mut high) = (Table::new(table, n), vec![S::MAX; n], vec![S::MIN; n]);
        for &row in of_leaf {
            widen(&mut low, &mut high, table.row(row), table.row(row));
        }
        let sides = low.into_iter().zip(high).zip(x);
        let is_outside = sides.map(|((low, high), x)| x < low.into() || x > high.into());
        let outside = is_outside.zip(domain.rates()).enumerate();
        outside
            .filter(|&(_, (is_outside, &rate))| is_outside && rate > 0.0)
            .map(|(coordinate, _)| domain.feature_of(coordinate) as u32)
            .collect()
    }
}

/// What every tree adds to every row's prediction.
struct Each<'a, T> {
    by_tree: &'a T,
    n_trees: usize,
}

impl<P: Statistics, T: TreeContributions<P>> Visitor<P> for Each<'_, T> {
    type Chunk = (Vec<f64>, T::Buffers);

    fn start(&self, n_rows: usize) -> Self::Chunk {
        (vec![0.0; n_rows * self.n_trees * self.by_tree.n_outputs()], T::Buffers::default())
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, P>,
        row: usize,
        stops: &[Stop],
        (each, buffers): &mut Self::Chunk,
    ) {
        let n = self.by_tree.n_outputs();
        let out = &mut each[(row * self.n_trees + tree_index) * n..][..n];
        self.by_tree.of_tree(tree_index, tree, stops, buffers, out);
    }
}
