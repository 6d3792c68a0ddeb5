//! Which rows are left out, and where each of them stands in a tree that does not hold it.

use crate::data::{RowId, RowTargets, Scalar, Table};
use crate::mondrian::prediction::branch_rate::BranchRate;
use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::regression::moments::{NodeMoments, weighted};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::random::keyed::Stream;

/// Rows that are left out (about).
const ROWS: usize = 1000;

/// A row's place in a tree without it.
pub(super) struct LeftOutRow {
    /// From the root to the leaf.
    pub(super) path: Vec<NodeId>,
    /// The branch that parts it from the other rows of its leaf, if they do not coincide with it.
    pub(super) branch: Option<Stop>,
    /// Weight and mean of these, if there are any.
    pub(super) others: Option<(f64, f64)>,
}

/// About [`ROWS`] of the rows.
pub(super) fn choose(order: &[RowId]) -> Vec<RowId> {
    thin_out(order, ROWS).collect()
}

/// At most `most` of some places or rows: of as many in a row, one at random. If it were each time the first, targets that
/// alternate from row to row would look constant.
pub(super) fn thin_out<T: Copy>(all: &[T], most: usize) -> impl Iterator<Item = T> {
    let mut stream = Stream::new(0, 0);
    all.chunks(all.len().div_ceil(most).max(1)).map(move |some| some[stream.below(some.len())])
}

/// The paths of some of a tree's rows. All rows go down together, so that the memory of their nodes is
/// fetched at the same time.
pub(super) fn paths<S: Scalar>(
    tree: &Tree<S, NodeMoments>,
    table: Table<'_, S>,
    rows: &[RowId],
) -> Vec<Vec<NodeId>> {
    let root = tree.arena.root().expect("a forest of rows has roots");
    let mut paths = vec![vec![root]; rows.len()];
    let mut on_way: Vec<usize> = (0..rows.len()).collect();
    while !on_way.is_empty() {
        on_way.retain(|&i| {
            let node = paths[i][paths[i].len() - 1];
            if node.is_leaf() {
                return false;
            }
            let x = table.row(rows[i]);
            paths[i].push(tree.arena.follow(node, |d| x[d as usize].into()).1);
            true
        });
    }
    paths
}

/// The place of a row, given its path and target.
pub(super) fn place<S: Scalar>(
    (tree, moments): (&Tree<S, NodeMoments>, &NodeMoments),
    branch_rate: &mut BranchRate<'_, S>,
    path: Vec<NodeId>,
    (row, x, targets): (RowId, &[S], RowTargets<'_, f64>),
    lifetime: f64,
) -> LeftOutRow {
    let leaf = path[path.len() - 1];
    let after = path.len().checked_sub(2).map_or(0.0, |above| tree.arena.time(path[above]));
    let rate = branch_rate.of_rows(tree.arena.leaf_rows(leaf).filter(|&other| other != row), x);
    let mut stop = Stop { node: leaf, after, time: lifetime, branch: Branch::Never };
    stop.set_rate(rate);
    let n_others = tree.arena.n_rows(leaf) as f64 - 1.0;
    let others = (n_others > 0.0).then(|| {
        if moments.is_weighted(leaf) {
            return weighted(tree.arena.leaf_rows(leaf).filter(|&other| other != row), targets);
        }
        let mean = moments.moments(leaf).mean;
        (n_others, mean + (mean - targets.of(row)) / n_others)
    });
    LeftOutRow { path, branch: (stop.branch != Branch::Never).then_some(stop), others }
}
