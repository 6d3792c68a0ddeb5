//! Shift: small changes of thresholds (similar to the perturbations of Pratola 2016). A cut that fits the
//! targets well is rarely pruned, and therefore rarely grown again at a better place; a shift moves it there.
//!
//! For a node above two leaves the likelihood ratio depends only on the rows between the old and the new
//! threshold.

use crate::bart::kernels::context::Context;
use crate::bart::kernels::grow_prune::{Work, cell, pick};
use crate::bart::kernels::shift_inner;
use crate::bart::leaves::statistics::LeafStatistics;
use crate::bart::state::tree::{Node, NodeKind, NodeLabel, TreeState, vary};
use crate::bayes::cuts::{RankCut, Rule};
use crate::bayes::prior::TreePrior;
use crate::random::distributions::accept;
use crate::random::keyed::Stream;

/// Logarithm of the ratio of the widest step to the narrowest. The best width depends on how many rows lie
/// between the thresholds.
const LOG_STEPS: f64 = 4.6;

/// Tries to shift the threshold of a random node; None if there is no inner node. The number of nodes to
/// choose from and the extent of the node do not change, and the step is symmetric. So the Hastings ratio
/// consists of the likelihoods and of the prior of the nodes below.
pub(crate) fn shift<E: LeafStatistics>(
    work: &mut Work<'_, E>,
    context: &Context<'_>,
    stream: &mut Stream,
) -> Option<bool> {
    let tree = &*work.tree;
    let above_others = shift_inner::is_cheap(context.table);
    let can_shift = |node: &Node| if above_others { node.is_inner() } else { tree.is_prunable(node) };
    let n = tree.select(can_shift).count();
    if n == 0 {
        return None;
    }
    let id = pick(tree.select(can_shift), n, stream);
    let Some(new) = step(tree, id, context, stream) else { return Some(false) };
    Some(if tree.is_prunable(tree.get(id)) {
        shift_between_leaves(work, (id, new), context, stream)
    } else {
        shift_inner::shift_above(work, (id, new), context, stream)
    })
}

/// Tries another rule at a node whose children are leaves.
fn shift_between_leaves<E: LeafStatistics>(
    work: &mut Work<'_, E>,
    (id, new): (NodeLabel, Rule),
    context: &Context<'_>,
    stream: &mut Stream,
) -> bool {
    let tree = &mut *work.tree;
    let (old, children) = tree.cut(id);
    let column = context.table.column(new.cut.feature);
    let (low, high) = (old.cut.rank.min(new.cut.rank), old.cut.rank.max(new.cut.rank));
    let rows = column.between(low, high);
    // All rows between the thresholds move from one child to the other.
    let [left, right] = children;
    let (from, to) = if new.cut.rank > old.cut.rank { (right, left) } else { (left, right) };
    let (n_moved, [moved, rest]) = work.statistics.among(&tree.labels, from, &rows);
    let [giver, taker] = [from, to].map(|id| *tree.get(id));
    if n_moved == giver.n_rows {
        return false;
    }
    let stays =
        |row: u32| tree.labels[row as usize] == from && !(low < column.rank(row) && column.rank(row) <= high);
    if column.has_missing()
        && !(0..).zip(&*column.ranks()).any(|(row, &rank)| stays(row) && !column.is_missing(rank))
    {
        return false;
    }
    let is_in_taker =
        |row: u32| tree.labels[row as usize] == to || tree.labels[row as usize] == from && !stays(row);
    let after = [
        Node {
            n_rows: giver.n_rows - n_moved,
            splittable: giver.splittable && vary(context.table, giver.n_rows - n_moved, stays),
            ..giver
        },
        Node {
            n_rows: taker.n_rows + n_moved,
            splittable: taker.splittable
                || n_moved > 0 && vary(context.table, taker.n_rows + n_moved, is_in_taker),
            ..taker
        },
    ];
    let joined = E::join(work.statistics.sum(to), moved);
    let weight = |node: &Node, sum| {
        let stop = if node.splittable { context.odds.log_split_stop(node.depth).1 } else { 0.0 };
        stop + work.statistics.log_likelihood(node.n_rows, sum)
    };
    let ratio = weight(&after[0], rest) + weight(&after[1], joined)
        - weight(&giver, work.statistics.sum(from))
        - weight(&taker, work.statistics.sum(to));
    if !accept(ratio, stream) {
        return false;
    }
    tree.nodes[id as usize].kind = NodeKind::Inner(new, children);
    [tree.nodes[from as usize], tree.nodes[to as usize]] = after;
    work.statistics.moved(&mut tree.labels, &rows, (from, rest), (to, joined));
    true
}

/// The rule with a shifted threshold; None if this leaves the node's cell, or if the cut has no place, since it parts
/// the missing from the present values.
fn step(tree: &TreeState, id: NodeLabel, context: &Context<'_>, stream: &mut Stream) -> Option<Rule> {
    let (Rule { cut, threshold }, _) = tree.cut(id);
    let column = context.table.column(cut.feature);
    if column.is_apart(cut.rank) {
        return None;
    }
    let (low, high) = cell(tree, id, cut.feature, column.ends());
    let u = stream.unit() - 0.5;
    let share = u * libm::exp(-LOG_STEPS * stream.unit());
    // Halved first, since the difference of two large numbers may overflow.
    let threshold = threshold + 2.0 * share * (0.5 * high - 0.5 * low);
    let inside = low <= threshold && threshold < high;
    inside.then(|| Rule { cut: RankCut { rank: column.last_rank_below(threshold), ..cut }, threshold })
}
