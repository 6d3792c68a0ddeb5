//! Finds the features that do not vary among the rows of a node.
//!
//! A feature that is constant in a node is constant in its descendants. For other features, rows are scanned
//! until two differ. This scan is long if nearly all rows share a value, as in one-hot columns; of such
//! features the few other ("uncommon") rows are known. If a node has more rows than the feature has uncommon
//! ones, one of its rows has the commonest value, so the feature varies in the node exactly if the node
//! contains an uncommon row.

use std::cell::OnceCell;

use crate::bart::state::tree::{NodeKind, NodeLabel, TreeState};
use crate::data::sorted::columns::SortedColumns;

/// An inner node.
pub(crate) struct InnerNode {
    pub(crate) id: NodeLabel,
    pub(crate) feature: u32,
    /// Features that do not vary among its rows. `varying` lists the other features with ties; only these can
    /// become constant in descendants.
    pub(crate) constant: Vec<u32>,
    varying: Vec<u32>,
}

/// The inner nodes of a tree, in the order of their numbers.
pub(crate) fn inner_nodes(tree: &TreeState, table: &SortedColumns) -> Vec<InnerNode> {
    let rows = TreeRows::new(tree);
    // Parents before their children.
    let mut found: Vec<InnerNode> = Vec::new();
    let mut stack = vec![(TreeState::ROOT, None)];
    while let Some((id, parent)) = stack.pop() {
        let NodeKind::Inner(rule, children) = tree.get(id).kind else { continue };
        let [constant, varying] = match parent {
            None => [table.ties().constant.clone(), table.ties().varying.clone()],
            Some(parent) => rows.constant_and_varying(id, &found[parent], table),
        };
        stack.extend(children.map(|child| (child, Some(found.len()))));
        found.push(InnerNode { id, feature: rule.cut.feature, constant, varying });
    }
    found.sort_unstable_by_key(|node| node.id);
    found
}

/// Whether a node's cut has present values on both sides, if the feature has any that are missing.
pub(crate) fn parts_present(tree: &TreeState, id: NodeLabel, table: &SortedColumns) -> bool {
    let (rule, _) = tree.cut(id);
    let column = table.column(rule.cut.feature);
    if !column.has_missing() {
        return true;
    }
    let rows = TreeRows::new(tree);
    column.can_cut(column.span(rows.of(id).iter().map(|&row| column.rank(row))), rule.cut.rank)
}

/// The rows of a tree, ordered so that the rows of each node are contiguous.
pub(crate) struct TreeRows<'t> {
    tree: &'t TreeState,
    /// By node: the index of its first row.
    starts: Vec<u32>,
    /// All rows in this order; computed on first use.
    order: OnceCell<Vec<u32>>,
}

impl<'t> TreeRows<'t> {
    pub(crate) fn new(tree: &'t TreeState) -> Self {
        let mut starts = vec![0; tree.nodes.len()];
        let mut stack = vec![TreeState::ROOT];
        while let Some(id) = stack.pop() {
            if let NodeKind::Inner(_, [left, right]) = tree.get(id).kind {
                starts[left as usize] = starts[id as usize];
                starts[right as usize] = starts[id as usize] + tree.get(left).n_rows;
                stack.extend([left, right]);
            }
        }
        Self { tree, starts, order: OnceCell::new() }
    }

    /// A function that returns whether a row is in a node.
    pub(crate) fn is_in(&self, id: NodeLabel) -> impl Fn(u32) -> bool + '_ {
        let (start, n_rows) = (self.starts[id as usize], self.tree.get(id).n_rows);
        move |row| self.starts[self.tree.labels[row as usize] as usize].wrapping_sub(start) < n_rows
    }

    /// The rows of a node.
    pub(crate) fn of(&self, id: NodeLabel) -> &[u32] {
        let order = self.order.get_or_init(|| {
            let (mut order, mut next) = (vec![0; self.tree.labels.len()], self.starts.clone());
            for (row, &leaf) in self.tree.labels.iter().enumerate() {
                order[next[leaf as usize] as usize] = row as u32;
                next[leaf as usize] += 1;
            }
            order
        });
        &order[self.starts[id as usize] as usize..][..self.tree.get(id).n_rows as usize]
    }

    /// The features that are constant in a child of a node, and the other features with ties.
    fn constant_and_varying(
        &self,
        id: NodeLabel,
        parent: &InnerNode,
        table: &SortedColumns,
    ) -> [Vec<u32>; 2] {
        /// Among this many rows of the table there usually are two of the node that differ.
        const FEW: u32 = 256;
        /// Reading this many rows of a list costs as much as one random access to a column.
        const CHEAPER: usize = 8;
        let n_rows = self.tree.get(id).n_rows as usize;
        let is_in = self.is_in(id);
        let few: Vec<u32> = (0..FEW.min(table.n_rows() as u32)).filter(|&row| is_in(row)).collect();
        let is_constant = |d: u32| {
            let column = table.column(d);
            let n_uncommon = column.n_uncommon();
            if let Some(uncommon) = column.few_uncommon().filter(|_| n_uncommon < CHEAPER * n_rows) {
                let has_some = uncommon.into_iter().flatten().any(|&row| is_in(row));
                if !has_some || n_uncommon < n_rows {
                    return !has_some;
                }
            }
            let alike = |rows: &[u32]| rows.iter().all(|&row| column.rank(row) == column.rank(rows[0]));
            alike(&few) && alike(self.of(id))
        };
        let (mut constant, mut varying) = (parent.constant.clone(), Vec::new());
        for &d in &parent.varying {
            let is_settled = d == parent.feature && is_one_value(self.tree, table, id, d);
            if is_settled || is_constant(d) { &mut constant } else { &mut varying }.push(d);
        }
        [constant, varying]
    }
}

/// Whether only one value of a feature remains after the cuts above a node.
fn is_one_value(tree: &TreeState, table: &SortedColumns, id: NodeLabel, feature: u32) -> bool {
    let (low, high) = rank_cell(tree, table, id, feature);
    low == high
}

/// The lowest and highest rank of a feature that remain after the cuts above a node.
pub(crate) fn rank_cell(tree: &TreeState, table: &SortedColumns, id: NodeLabel, feature: u32) -> (u32, u32) {
    let (mut low, mut high) = (0, table.column(feature).n_values() - 1);
    for (rule, is_left) in tree.rules_above(id, feature) {
        if is_left {
            high = high.min(rule.cut.rank);
        } else {
            low = low.max(rule.cut.rank + 1);
        }
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bart::backfitting::normal::NormalBackfitter;
    use crate::bart::kernels::context::Odds;
    use crate::bart::settings::BartSettings;
    use crate::bayes::prior::ChipmanPrior;
    use crate::control::{Control, Threads};
    use crate::data::Rows;
    use crate::random::keyed::Stream;

    /// A random value of column `d`. Columns differ in which rows share values: none, all, some, nearly all, or
    /// neighbouring rows.
    fn value(d: usize, row: usize, n: usize, stream: &mut Stream) -> f64 {
        let (of, one_of) = (stream.below(5) as f64, row % 23 == d % 23);
        let is_rare = stream.unit() < [0.02, 0.1, 0.3][d % 3];
        match d % 8 {
            0 => stream.unit(),
            1 => 0.5,
            2 => of,
            3 => f64::from(u8::from(of < 2.5)),
            4 => f64::from(u8::from(is_rare)),
            5 => 2.0 - if is_rare { of } else { 0.0 },
            6 => f64::from(u8::from(one_of)),
            _ => ((row * 6 / n) as f64 - of * f64::from(u8::from(d > 10))).max(0.0),
        }
    }

    /// The features that are constant among the rows below a node.
    fn constant_by_definition(tree: &TreeState, table: &SortedColumns, id: NodeLabel) -> Vec<u32> {
        let is_below = |leaf: NodeLabel| {
            let mut above = Some(leaf);
            while above.is_some_and(|at| at != id) {
                above = above.and_then(|at| tree.get(at).parent);
            }
            above.is_some()
        };
        let rows: Vec<usize> = (0..table.n_rows()).filter(|&row| is_below(tree.labels[row])).collect();
        let is_constant = |&d: &u32| {
            let ranks = table.column(d).ranks();
            rows.iter().all(|&row| ranks[row] == ranks[rows[0]])
        };
        (0..table.n_columns() as u32).filter(is_constant).collect()
    }

    /// On random trees with many splits, for any number of rows with ties of any kind.
    #[test]
    fn constant_features_are_those_along_which_all_rows_are_alike() {
        const P: usize = 32;
        let prior = ChipmanPrior::new(0.95, 0.3).unwrap();
        let settings = BartSettings { n_trees: 8, prior, ..BartSettings::default() };
        let mut stream = Stream::new(8, 0);
        let [mut n_constant, mut n_varying] = [0, 0];
        for trial in 0..60 {
            let n = if trial < 50 { 2 + stream.below(60) } else { 200 + stream.below(300) };
            let mut x: Vec<f64> = (0..n * P).map(|i| value(i % P, i / P, n, &mut stream)).collect();
            if trial % 3 == 0 {
                x.iter_mut().filter(|_| stream.unit() < 0.1).for_each(|x| *x = f64::NAN);
            }
            let rows = Rows::from_f64_with_missing(&x, P).unwrap();
            let table = SortedColumns::new(rows, &Threads::new(1), &Control::new()).unwrap();
            let setting = (&table, &settings, &Odds::new(prior));
            let backfitter = NormalBackfitter::from_prior(
                setting,
                &vec![0.0; n],
                (1.0, 1.0),
                &mut stream,
                &Control::new(),
            )
            .unwrap();
            for tree in &backfitter.trees {
                let nodes = inner_nodes(tree, &table);
                let ids = tree.select(|node| matches!(node.kind, NodeKind::Inner(..)));
                assert!(ids.eq(nodes.iter().map(|node| node.id)), "in the order of their numbers");
                for mut node in nodes {
                    let NodeKind::Inner(rule, _) = tree.get(node.id).kind else { unreachable!() };
                    assert_eq!(node.feature, rule.cut.feature);
                    node.constant.sort_unstable();
                    assert_eq!(node.constant, constant_by_definition(tree, &table, node.id), "{n} rows");
                    n_constant += node.constant.len();
                    n_varying += table.n_columns() - node.constant.len();
                }
            }
        }
        assert!(n_constant > 10_000 && n_varying > 10_000, "{n_constant} and {n_varying}");
    }
}
