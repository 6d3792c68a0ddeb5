//! A tree as arrays, to be checked or drawn.

use crate::data::Scalar;
use crate::error::{Result, check_room};
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::process::cut::Cut;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeKind};
use crate::mondrian::tree::statistics::Statistics;

/// One tree as parallel arrays over its nodes in preorder, without the cuts that separated no rows.
/// Thresholds and boxes are in the features' own units, whatever the domain's maps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExportedTree {
    /// Index of the left child; -1 at a leaf.
    pub children_left: Vec<i32>,
    /// Index of the right child; -1 at a leaf.
    pub children_right: Vec<i32>,
    /// Index of the parent; -1 at the root.
    pub parent: Vec<i32>,
    /// Feature that is cut; -1 at a leaf.
    pub feature: Vec<i32>,
    /// Rows with `x[feature] <= threshold` go left; NaN at a leaf.
    pub threshold: Vec<f64>,
    /// Split time; a leaf's is the lifetime.
    pub time: Vec<f64>,
    /// Lower corner of the node's data box, `n_nodes x n_features`; empty in a structure alone.
    pub lower: Vec<f64>,
    /// Upper corner of the node's data box, likewise.
    pub upper: Vec<f64>,
    /// Number of rows.
    pub n_rows: Vec<u64>,
    /// Numbers of the posterior, `n_nodes x` [`ExportedTree::n_values`]: customers `c_jk` by class, or
    /// posterior mean and variance; empty in a structure alone.
    pub values: Vec<f64>,
    /// How many numbers a node has in `values`.
    pub n_values: usize,
}

/// Every tree as arrays; `values` gives a tree's numbers by position in the preorder.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory), if boxes and numbers have no room.
pub(crate) fn export<P: Statistics, V: NodeValues<P>>(
    forest: &Forest<P>,
    values: &V,
) -> Result<Vec<ExportedTree>> {
    with_storage!(forest.flushed_alone(), storage => {
        let orders: Vec<Vec<NodeId>> = storage.trees.iter().map(|tree| tree.arena.preorder()).collect();
        let n_bytes = size_of::<f64>() * orders.iter().map(Vec::len).sum::<usize>();
        let n_numbers = 2 * forest.domain.n_features() + values.n_values();
        check_room("the boxes and the numbers of all nodes", n_bytes.saturating_mul(n_numbers))?;
        let trees = storage.trees.iter().zip(orders).enumerate();
        Ok(trees
            .map(|(i, (tree, order))| {
                let exported = structure(forest, tree, &order);
                let (lower, upper) = boxes(forest, tree, &order, &exported.parent);
                let (values, n_values) = (values.of(i, tree, &order), values.n_values());
                ExportedTree { lower, upper, values, n_values, ..exported }
            })
            .collect())
    })
}

/// Every tree as arrays, without boxes and numbers of the posterior.
pub(crate) fn structures<P: Statistics>(forest: &Forest<P>) -> Vec<ExportedTree> {
    with_storage!(forest.flushed_alone(), storage => {
        storage.trees.iter().map(|tree| structure(forest, tree, &tree.arena.preorder())).collect()
    })
}

fn structure<S: Scalar, P: Statistics>(
    forest: &Forest<P>,
    tree: &Tree<S, P>,
    order: &[NodeId],
) -> ExportedTree {
    let arena = &tree.arena;
    let mut index = vec![-1; arena.n_indices()];
    for (i, node) in order.iter().enumerate() {
        index[node.index()] = i as i32;
    }
    let mut out = ExportedTree { parent: vec![-1; order.len()], ..ExportedTree::default() };
    for (i, &node) in order.iter().enumerate() {
        out.n_rows.push(arena.n_rows(node) as u64);
        let sides = match arena.kind(node) {
            NodeKind::Split(left, right) => [left, right].map(|child| index[child.index()]),
            NodeKind::Leaf => [-1; 2],
        };
        for side in sides.into_iter().filter(|&side| side >= 0) {
            out.parent[side as usize] = i as i32;
        }
        out.children_left.push(sides[0]);
        out.children_right.push(sides[1]);
        let (feature, threshold, time) = if node.is_leaf() {
            (-1, f64::NAN, forest.settings.lifetime)
        } else {
            let Cut { coordinate, threshold, time } = arena.cut(node);
            let coordinate = coordinate as usize;
            let threshold = forest.domain.threshold(coordinate, threshold);
            (forest.domain.feature_of(coordinate) as i32, threshold, time)
        };
        out.feature.push(feature);
        out.threshold.push(threshold);
        out.time.push(time);
    }
    out
}

/// The lower and the upper corners of all boxes.
fn boxes<S: Scalar, P: Statistics>(
    forest: &Forest<P>,
    tree: &Tree<S, P>,
    order: &[NodeId],
    parents: &[i32],
) -> (Vec<f64>, Vec<f64>) {
    let (n, d) = (order.len(), forest.domain.n_features());
    let (mut lower, mut upper) = (vec![f64::INFINITY; n * d], vec![f64::NEG_INFINITY; n * d]);
    // Children come after their parents: boxes from the leaves up.
    for (i, &node) in order.iter().enumerate().rev() {
        if node.is_leaf() {
            for row in tree.arena.leaf_rows(node) {
                for (k, value) in forest.filled_values(row).into_iter().enumerate() {
                    let at = i * d + k;
                    lower[at] = lower[at].min(value);
                    upper[at] = upper[at].max(value);
                }
            }
        }
        if let Ok(parent) = usize::try_from(parents[i]) {
            for k in 0..d {
                let (from, to) = (i * d + k, parent * d + k);
                lower[to] = lower[to].min(lower[from]);
                upper[to] = upper[to].max(upper[from]);
            }
        }
    }
    (lower, upper)
}

/// The numbers of a posterior at a tree's nodes.
pub(crate) trait NodeValues<P: Statistics> {
    /// How many numbers a node has.
    fn n_values(&self) -> usize;

    /// All of them, in preorder.
    fn of<S: Scalar>(&self, tree_index: usize, tree: &Tree<S, P>, order: &[NodeId]) -> Vec<f64>;
}
