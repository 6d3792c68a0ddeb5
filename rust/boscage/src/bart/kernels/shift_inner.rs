//! Shifts of the thresholds of nodes that have cuts below them. Rows between the old and the new threshold
//! move to the other side. The prior of the cuts below changes as well, since the extents of their rows and
//! the features that vary there change (eq. 4.4).

use crate::bart::kernels::context::Context;
use crate::bart::kernels::grow_prune::Work;
use crate::bart::leaves::statistics::LeafStatistics;
use crate::bart::state::tree::{Node, NodeKind, NodeLabel, Transfer, TreeState, vary};
use crate::bart::state::varying::{TreeRows, inner_nodes, parts_present, rank_cell};
use crate::bayes::cuts::Rule;
use crate::bayes::prior::TreePrior;
use crate::data::sorted::column::Span;
use crate::data::sorted::columns::SortedColumns;
use crate::math::logs::log_sum_exp;
use crate::random::distributions::accept;
use crate::random::keyed::Stream;

/// Whether finding the features that vary in a node is cheap. A feature without ties varies in any two rows.
pub(crate) fn is_cheap(table: &SortedColumns) -> bool {
    /// Checking this many features with ties takes less time than a pass over the rows.
    const MAX_TIED: usize = 64;
    table.ties().varying.len() <= MAX_TIED
}

/// Tries another threshold at a node; the proposal must be symmetric.
pub(crate) fn shift_above<E: LeafStatistics>(
    work: &mut Work<'_, E>,
    (id, new): (NodeLabel, Rule),
    context: &Context<'_>,
    stream: &mut Stream,
) -> bool {
    let Work { tree, statistics } = work;
    let transfers = rows_between(tree, id, new, context.table);
    let below = nodes_below(tree, id);
    let sums = statistics.after(&transfers);
    let old_nodes = tree.nodes.clone();
    let before =
        Terms::new(tree, &below, |leaf, n| statistics.log_likelihood(n, statistics.sum(leaf)), context);
    redirect(tree, (id, new), &transfers);
    let all_have_rows = below.iter().all(|&node| tree.get(node).n_rows > 0);
    let made = all_have_rows && parts_present(tree, id, context.table) && {
        find_splittable(tree, &old_nodes, &below, context.table);
        let log_likelihood = |leaf, n| statistics.log_likelihood(n, sums[leaf as usize]);
        let after = Terms::new(tree, &below, log_likelihood, context);
        accept(after.log_ratio(&before, context), stream)
    };
    if made {
        statistics.rerouted(&transfers, sums);
    } else {
        tree.nodes = old_nodes;
        for Transfer { row, from, .. } in transfers {
            tree.labels[row as usize] = from;
        }
    }
    made
}

/// The rows between the old and the new threshold, each with its old and its new leaf.
fn rows_between(tree: &TreeState, id: NodeLabel, new: Rule, table: &SortedColumns) -> Vec<Transfer> {
    let (old, [left, right]) = tree.cut(id);
    let (low, high) = (old.cut.rank.min(new.cut.rank), old.cut.rank.max(new.cut.rank));
    let (giver, taker) = if new.cut.rank > old.cut.rank { (right, left) } else { (left, right) };
    let rows = TreeRows::new(tree);
    let is_in_giver = rows.is_in(giver);
    let between = table.column(new.cut.feature).between(low, high);
    let mut transfers = Vec::with_capacity(between.len());
    for &row in between.iter().filter(|&&row| is_in_giver(row)) {
        let (from, to) = (tree.labels[row as usize], tree.leaf_below(taker, row, table));
        transfers.push(Transfer { row, from, to });
    }
    transfers
}

/// All nodes below a node, parents before their children.
fn nodes_below(tree: &TreeState, id: NodeLabel) -> Vec<NodeLabel> {
    let mut found = Vec::new();
    let mut stack = vec![id];
    while let Some(id) = stack.pop() {
        if let NodeKind::Inner(_, children) = tree.get(id).kind {
            found.extend(children);
            stack.extend(children);
        }
    }
    found
}

/// Sets a node's new rule and the rows' new leaves.
fn redirect(tree: &mut TreeState, (id, new): (NodeLabel, Rule), transfers: &[Transfer]) {
    let (_, children) = tree.cut(id);
    tree.nodes[id as usize].kind = NodeKind::Inner(new, children);
    for &Transfer { row, from, to } in transfers {
        tree.labels[row as usize] = to;
        for (leaf, change) in [(from, -1), (to, 1)] {
            let mut at = leaf;
            while at != id {
                let Node { n_rows, parent, .. } = &mut tree.nodes[at as usize];
                *n_rows = n_rows.wrapping_add_signed(change);
                at = parent.expect("a node below another");
            }
        }
    }
}

/// Recomputes which leaves can be split, where they gained or lost rows.
fn find_splittable(tree: &mut TreeState, old: &[Node], below: &[NodeLabel], table: &SortedColumns) {
    for &id in below {
        let (node, old) = (*tree.get(id), old[id as usize]);
        if node.is_leaf() && node.n_rows != old.n_rows && old.splittable == (node.n_rows < old.n_rows) {
            let labels = &tree.labels;
            let splittable = vary(table, node.n_rows, |row| labels[row as usize] == id);
            tree.nodes[id as usize].splittable = splittable;
        }
    }
}

/// The terms of the log posterior that depend on the rows of the nodes below a node.
struct Terms {
    /// Sum of log likelihoods, log probabilities to stop, and log densities of thresholds in their extents.
    log_sum: f64,
    /// Features that do not vary, by inner node; empty if no feature has ties.
    constant: Vec<Vec<u32>>,
}

impl Terms {
    fn new(
        tree: &TreeState,
        below: &[NodeLabel],
        log_likelihood: impl Fn(NodeLabel, u32) -> f64,
        context: &Context<'_>,
    ) -> Self {
        let table = context.table;
        let rows = TreeRows::new(tree);
        let of_node = |&id: &NodeLabel| match *tree.get(id) {
            Node { kind: NodeKind::Inner(rule, _), .. } => {
                let span = span(tree, id, rule.cut.feature, &rows, table);
                table.column(rule.cut.feature).log_density(rule.cut.rank, span)
            }
            Node { n_rows, splittable, depth, .. } => {
                let log_stop = if splittable { context.odds.log_split_stop(depth).1 } else { 0.0 };
                log_stop + log_likelihood(id, n_rows)
            }
        };
        let log_sum = below.iter().map(of_node).sum();
        let mut constant = Vec::new();
        if !table.ties().varying.is_empty() {
            let nodes = inner_nodes(tree, table).into_iter().filter(|node| below.contains(&node.id));
            constant.extend(nodes.map(|node| node.constant));
        }
        Self { log_sum, constant }
    }

    /// Logarithm of the posterior ratio of this state to the state before.
    fn log_ratio(&self, before: &Self, context: &Context<'_>) -> f64 {
        let weights = before.constant.iter().zip(&self.constant).filter(|(before, after)| before != after);
        let of_weights =
            weights.map(|(before, after)| log_weight(before, context) - log_weight(after, context));
        self.log_sum - before.log_sum + of_weights.sum::<f64>()
    }
}

/// The span of a node's rows. If no value is missing, it is searched from the ends of the node's cell.
fn span(tree: &TreeState, id: NodeLabel, feature: u32, rows: &TreeRows<'_>, table: &SortedColumns) -> Span {
    let column = table.column(feature);
    if column.has_missing() {
        return column.span(rows.of(id).iter().map(|&row| column.rank(row)));
    }
    let (low, high) = rank_cell(tree, table, id, feature);
    let (within, is_in) = (column.rows_at(column.places(low, high)), rows.is_in(id));
    let first = within.iter().find(|&&row| is_in(row));
    let last = within.iter().rfind(|&&row| is_in(row));
    let rank = |row: Option<&u32>| column.rank(*row.expect("a node has rows"));
    Span { low: rank(first), high: rank(last), has_missing: false }
}

/// Logarithm of the sum of the weights of the features that vary, up to a constant.
fn log_weight(constant: &[u32], context: &Context<'_>) -> f64 {
    let Some(weights) = &context.weights else {
        return libm::log((context.table.n_features() - constant.len()) as f64);
    };
    let mut logs = weights.logs.to_vec();
    for &d in constant {
        logs[d as usize] = f64::NEG_INFINITY;
    }
    log_sum_exp(&logs)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::bart::backfitting::normal::NormalBackfitter;
    use crate::bart::kernels::context::Odds;
    use crate::bart::kernels::shift::shift;
    use crate::bart::leaves::normal::{LeafLikelihoods, LeafPosterior, ResidualLeaf};
    use crate::bart::leaves::statistics::NormalLeaves;
    use crate::bart::tests::setting::{LOCAL, SIGMA, SIGMA_MU, posterior, settings, tree_name};
    use crate::bayes::target::TargetPosterior;
    use crate::bayes::testing::visit_frequencies::Visits;
    use crate::control::{Control, Threads};
    use crate::data::Rows;

    const TARGETS: [f64; 8] = [0.3, -0.2, 0.1, 0.4, -0.1, 0.2, -0.3, 0.0];

    /// Eight rows of two features with ties, two of them equal. Not all nodes that the second feature can
    /// split vary along the first. Any further features repeat the second.
    fn table(n_more: usize) -> SortedColumns {
        const X: [[f64; 2]; 8] =
            [[0.0, 0.0], [0.0, 1.0], [0.5, 3.0], [1.5, 0.0], [2.5, 3.0], [2.5, 3.0], [4.0, 1.0], [4.0, 7.0]];
        let x: Vec<f64> = X.iter().flat_map(|[a, b]| [*a].into_iter().chain(vec![*b; 1 + n_more])).collect();
        SortedColumns::new(Rows::from_f64(&x, 2 + n_more).unwrap(), &Threads::new(1), &Control::new())
            .unwrap()
    }

    /// Other values of the first feature, all distinct.
    fn table_without_ties() -> SortedColumns {
        const X: [f64; 16] = [0.0, 0.0, 0.3, 1.0, 0.5, 3.0, 1.5, 0.0, 2.5, 3.0, 2.6, 2.0, 4.0, 1.0, 4.5, 7.0];
        SortedColumns::new(Rows::from_f64(&X, 2).unwrap(), &Threads::new(1), &Control::new()).unwrap()
    }

    /// Missing values of both features, in rows that are else as they were.
    fn table_with_missing() -> SortedColumns {
        const NAN: f64 = f64::NAN;
        const X: [f64; 16] = [0.0, 0.0, NAN, 1.0, 0.5, NAN, 1.5, 0.0, 2.5, 3.0, NAN, 3.0, 4.0, 1.0, 5.0, 7.0];
        let rows = Rows::from_f64_with_missing(&X, 2).unwrap();
        SortedColumns::new(rows, &Threads::new(1), &Control::new()).unwrap()
    }

    /// The name of a tree without the places of its cuts, but for those that separate missing values, which no shift moves.
    fn shape(name: &str, table: &SortedColumns) -> String {
        let mut parts = name.split('<');
        let mut shape = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let is_apart = table.kinds().has_missing && part.len() == rest.len() + 1 && part.starts_with('0');
            shape += if is_apart { "<0" } else { "<" };
            shape += rest;
        }
        shape
    }

    /// Frequencies of the trees that shifts reach from a tree of this shape.
    fn visits(wanted: &str, table: &SortedColumns, odds: &Odds, n: u32) -> Visits {
        let (settings, control) = (settings(LOCAL, 1), Control::new());
        let leaf = LeafPosterior::new(SIGMA, SIGMA_MU);
        let context = Context::new((table, odds), leaf, &control);
        let mut likelihoods = LeafLikelihoods::default();
        likelihoods.reset(leaf, table.n_rows());
        let mut stream = Stream::new(5, 0);
        let mut draw = || {
            let setting = (table, &settings, odds);
            let backfitter =
                NormalBackfitter::from_prior(setting, &TARGETS, (SIGMA, SIGMA_MU), &mut stream, &control);
            backfitter.unwrap().trees.remove(0)
        };
        let mut tree = draw();
        while shape(&tree_name(&tree, table), table) != wanted {
            tree = draw();
        }
        let mut residuals = TARGETS;
        let mut counted = vec![0.0; tree.nodes.len()];
        let mut sums = counted.clone();
        tree.labels.iter().zip(TARGETS).for_each(|(&at, target)| sums[at as usize] += target);
        let mut visits = Visits::new(n);
        for _ in 0..n {
            let statistics = NormalLeaves {
                likelihoods: &likelihoods,
                residuals: &mut residuals,
                sums: &mut sums,
                counted: &mut counted,
            };
            shift(&mut Work { tree: &mut tree, statistics }, &context, &mut stream);
            visits.note(tree_name(&tree, table));
        }
        tree.check(table);
        visits
    }

    /// Given the shape, trees are visited with the frequencies that the recursion over sets of rows gives:
    /// for cuts below with the same feature or another, and for any features that vary there.
    #[test]
    #[ignore = "slow"]
    fn shifts_have_the_posterior_given_all_but_thresholds() {
        let weighted = Some(vec![0.2f64.ln(), 0.8f64.ln()]);
        for (table, log_weights) in [
            (table(0), None),
            (table(0), weighted),
            (table_without_ties(), None),
            (table_with_missing(), None),
        ] {
            assert!(is_cheap(&table));
            let mut odds = Odds::new(settings(LOCAL, 1).prior);
            odds.log_weights = log_weights;
            let leaf = ResidualLeaf { posterior: LeafPosterior::new(SIGMA, SIGMA_MU), residuals: &TARGETS };
            let all = posterior(&TargetPosterior { table: &table, prior: &odds, leaf: &leaf });
            let shapes = [
                "(0< (1< * *) *)",
                "(0< (1< * *) (1< * *))",
                "(1< * (0< (0< * *) *))",
                "(0< (1< (1< * *) *) *)",
                "(0< (1<0 * *) *)",
            ];
            for wanted in
                shapes.into_iter().filter(|wanted| table.kinds().has_missing || !wanted.contains("<0"))
            {
                let of_shape = all.iter().filter(|(name, _)| shape(name, &table) == wanted);
                let total: f64 = of_shape.clone().map(|(_, p)| p).sum();
                let expected: HashMap<String, f64> =
                    of_shape.map(|(name, p)| (name.clone(), p / total)).collect();
                visits(wanted, &table, &odds, 400_000).check(wanted, &expected);
            }
        }
    }

    /// If many features have ties, only cuts above leaves are shifted, and the varying features are not
    /// computed.
    #[test]
    fn cuts_above_others_stay_where_many_columns_have_ties() {
        let table = table(70);
        assert!(!is_cheap(&table));
        let mut odds = Odds::new(settings(LOCAL, 1).prior);
        odds.log_weights = Some([vec![0.0; 2], vec![-9.0; 70]].concat());
        let visits = visits("(1< * (0< * *))", &table, &odds, 2000);
        let names: Vec<&String> = visits.names().collect();
        let roots: Vec<&str> = names.iter().map(|name| &name[..name.find(' ').unwrap()]).collect();
        assert!(names.len() > 1 && roots.iter().all(|root| root == &roots[0]), "{names:?}");
    }
}
