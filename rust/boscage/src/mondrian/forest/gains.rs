//! How much the splits of each feature explain of the targets.
//!
//! A split of `n` rows leaves the sum of squares `W` within its sides and removes `B`. If the sides do not differ, which is so
//! for a feature that has nothing to do with the targets, the expectations of `B` and of `W / (n - 2)` are the same (analysis
//! of variance): a cut of a Mondrian process with given rates does not depend on targets, so which rows go left is a random
//! draw. So the sum of `B - W / (n - 2)` over the splits of such a feature has expectation 0, however many splits it has.
//! With weights, `B` and `W` are weighted, and a row of weight `w` counts as `max(1, w)` of the `n`, as in the stopping
//! rule. Where weights exceed 1, as where rows are repeated, the expectation is above 0.

use crate::control::Run;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeKind;
use crate::mondrian::tree::statistics::Statistics;

/// The sum of `B - W / (n - 2)` over all splits of each feature. `number` stands for a target, and `squares` is the weighted
/// sum of squares of such numbers, given with their weights in ascending order, about their mean.
///
/// # Errors
/// An interrupt.
pub(crate) fn split_gains<P: Statistics>(
    forest: &Forest<P>,
    number: impl Fn(P::Target) -> f64 + Sync,
    squares: impl Fn(&[(f64, f64)]) -> f64 + Sync,
    run: &Run<'_>,
) -> Result<Vec<f64>> {
    let of_trees = with_storage!(forest.flushed(run)?, storage => {
        run.map(storage.trees.len(), |i| {
            run.control.check()?;
            Ok(of_tree(forest, &storage.trees[i], &number, &squares))
        })
    })?;
    let mut gains = vec![0.0; forest.domain.n_features()];
    for of_tree in of_trees {
        gains.iter_mut().zip(of_tree).for_each(|(gain, own)| *gain += own);
    }
    Ok(gains)
}

fn of_tree<S: Scalar, P: Statistics>(
    forest: &Forest<P>,
    tree: &Tree<S, P>,
    number: impl Fn(P::Target) -> f64,
    squares: impl Fn(&[(f64, f64)]) -> f64,
) -> Vec<f64> {
    let arena = &tree.arena;
    let (order, targets) = (arena.preorder(), forest.row_targets());
    // In preorder the rows of a node lie side by side.
    let (mut numbers, mut starts) = (Vec::new(), Vec::with_capacity(order.len()));
    for &node in &order {
        let start = numbers.len();
        starts.push(start);
        if node.is_leaf() {
            numbers.extend(arena.leaf_rows(node).map(|row| (number(targets.of(row)), targets.weight(row))));
            // Whatever the order in which the rows came.
            numbers[start..].sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        }
    }
    let mut gains = vec![0.0; forest.domain.n_features()];
    for (&node, &start) in order.iter().zip(&starts) {
        let NodeKind::Split(left, _) = arena.kind(node) else { continue };
        let n = arena.n_rows(node);
        let all = &numbers[start..start + n];
        let counted: f64 = all.iter().map(|&(_, weight)| weight.max(1.0)).sum();
        if counted <= 2.0 {
            continue;
        }
        let (left, right) = all.split_at(arena.n_rows(left));
        let within = squares(left) + squares(right);
        let feature = forest.domain.feature_of(arena.cut(node).coordinate as usize);
        gains[feature] += squares(all) - within - within / (counted - 2.0);
    }
    gains
}
