//! An order of the rows that does not depend on the order of their arrival.

use std::cmp::Ordering;

use crate::data::{RowId, Scalar, Table, fetch};
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;

/// The places of rows in an order, by row.
pub(crate) fn places_in(order: &[RowId]) -> Vec<u32> {
    let mut places = vec![0; order.iter().max().map_or(0, |&row| row as usize + 1)];
    for (place, &row) in order.iter().enumerate() {
        places[row as usize] = place as u32;
    }
    places
}

/// The rows in an order that does not depend on that of their arrival: leaf by leaf of the first tree. Copies are adjacent,
/// in the order of their targets, and then of their weights.
pub(crate) fn in_order<S: Scalar, P: Statistics>(
    forest: &Forest<P>,
    storage: &Storage<S, P>,
    by_target: impl Fn(P::Target, P::Target) -> Ordering,
) -> Vec<RowId> {
    /// Leaves whose rows are fetched from memory together.
    const SOME: usize = 16;
    let arena = &storage.trees[0].arena;
    let table = Table::new(&storage.values, forest.domain.n_coordinates());
    let by_values = |a: RowId, b: RowId| {
        let mut each = table.row(a).iter().zip(table.row(b)).map(|(&a, &b)| {
            let (a, b): (f64, f64) = (a.into(), b.into());
            a.total_cmp(&b)
        });
        each.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    let targets = forest.row_targets();
    let by_target = |a: RowId, b: RowId| {
        by_target(targets.of(a), targets.of(b)).then(targets.weight(a).total_cmp(&targets.weight(b)))
    };
    let leaves: Vec<NodeId> = arena.preorder().into_iter().filter(|node| node.is_leaf()).collect();
    let mut order = Vec::with_capacity(forest.n_rows());
    for some in leaves.chunks(SOME) {
        let mut start = order.len();
        for &leaf in some {
            order.extend(arena.leaf_rows(leaf));
        }
        order[start..].iter().for_each(|&row| fetch(table.row(row)));
        for &leaf in some {
            let end = start + arena.n_rows(leaf);
            order[start..end].sort_by(|&a, &b| by_values(a, b).then_with(|| by_target(a, b)));
            start = end;
        }
    }
    order
}
