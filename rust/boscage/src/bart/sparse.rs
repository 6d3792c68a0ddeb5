//! Split probabilities of dimensions that are learnt (Linero 2018): `s ~ Dirichlet(alpha / p, ..., alpha / p)`, and a
//! prior of `alpha`.
//!
//! A node is split along one of the dimensions `V` that vary among its rows, dimension `d` with probability
//! `s_d / sum_V s`. What `s` multiplies does not matter to this: `s = g / sum g` with `g_d ~ Gamma(alpha / p, 1)`. For
//! each inner node draw `t ~ Exponential(rate sum_V g)`; then `1 / sum_V g` is the integral of `exp(-t sum_V g)`, and
//! given all `t` the `g` are independent again: `g_d ~ Gamma(alpha / p + cuts along d, 1 + sum of t of nodes with d
//! in V)`. (Where all of `V` is always everything, this is the Dirichlet update of Linero.)

use super::random::log_exponential;
use super::settings::Sparsity;
use super::tree_state::{Kind, Label, TreeState};
use crate::bayes::{Table, draw_by_weight, log_sum_exp};
use crate::mondrian::Stream;

/// The state of the prior of split probabilities.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SplitWeights {
    /// What the concentration may be; nothing if it is given.
    grid: Vec<(f64, f64)>,
    pub(super) alpha: f64,
    /// `log s`.
    pub(super) log_s: Vec<f64>,
}

impl SplitWeights {
    /// All alike, to begin with.
    pub(super) fn new(sparsity: Sparsity, n_features: usize) -> Self {
        let alpha = sparsity.alpha.unwrap_or(1.0);
        let grid = if sparsity.alpha.is_none() { concentrations(n_features as f64) } else { Vec::new() };
        Self { grid, alpha, log_s: vec![-libm::log(n_features as f64); n_features] }
    }

    /// Draws split probabilities given trees, and then their concentration.
    pub(super) fn draw<'t>(
        &mut self,
        trees: impl Iterator<Item = &'t TreeState>,
        table: &Table,
        stream: &mut Stream,
    ) {
        let p = self.log_s.len();
        // The scale of g is independent of s a priori, and trees say nothing of it: it can be drawn anew.
        let log_scale = stream.log_gamma(self.alpha);
        let tied: Vec<u32> = (0..p as u32).filter(|&d| table.column(d).has_ties()).collect();
        let mut cuts = vec![0.0; p];
        // Logarithms of 1 + sum of t: of nodes all of whose dimensions vary, and of others. Where what varies has hardly
        // any probability, t itself need not be a number.
        let (mut common, mut rates) = (0.0, vec![f64::NEG_INFINITY; p]);
        let mut varies = vec![true; p];
        for tree in trees {
            for node in inner_nodes(tree, table, &tied) {
                cuts[node.dimension as usize] += 1.0;
                if node.constant.is_empty() {
                    common = log_sum_exp(&[common, log_exponential(log_scale, stream)]);
                    continue;
                }
                node.constant.iter().for_each(|&d| varies[d as usize] = false);
                let own = || (0..p).filter(|&d| varies[d]);
                let logs: Vec<f64> = own().map(|d| self.log_s[d]).collect();
                let t = log_exponential(log_scale + log_sum_exp(&logs), stream);
                own().for_each(|d| rates[d] = log_sum_exp(&[rates[d], t]));
                node.constant.iter().for_each(|&d| varies[d as usize] = true);
            }
        }
        let share = self.alpha / p as f64;
        for (d, log_s) in self.log_s.iter_mut().enumerate() {
            *log_s = stream.log_gamma(share + cuts[d]) - log_sum_exp(&[common, rates[d]]);
        }
        let total = log_sum_exp(&self.log_s);
        for log_s in &mut self.log_s {
            *log_s -= total;
        }
        if !self.grid.is_empty() {
            self.alpha = draw_alpha(&self.grid, &self.log_s, stream);
        }
    }
}

/// Concentrations `alpha` of `p` dimensions where `alpha / (alpha + p)` is on a grid of equal steps, with all of the
/// logarithm of their density given `log s` that does not depend on it: `alpha / (alpha + p) ~ Beta(1/2, 1)`.
fn concentrations(p: f64) -> Vec<(f64, f64)> {
    const POINTS: u32 = 1000;
    let point = |i: u32| {
        let share = f64::from(i) / f64::from(POINTS);
        let alpha = p * share / (1.0 - share);
        (alpha, libm::lgamma(alpha) - p * libm::lgamma(alpha / p) - 0.5 * libm::log(share))
    };
    (1..POINTS).map(point).collect()
}

/// A draw of the concentration given `log s`.
fn draw_alpha(grid: &[(f64, f64)], log_s: &[f64], stream: &mut Stream) -> f64 {
    let mean = log_s.iter().sum::<f64>() / log_s.len() as f64;
    let logs: Vec<f64> = grid.iter().map(|(alpha, constant)| constant + alpha * mean).collect();
    grid[draw_by_weight(&logs, log_sum_exp(&logs), stream)].0
}

/// An inner node: the dimension that it cuts, and those that do not vary among its rows.
struct InnerNode {
    dimension: u32,
    constant: Vec<u32>,
}

/// The inner nodes of a tree; only dimensions with ties can be constant in one.
fn inner_nodes(tree: &TreeState, table: &Table, tied: &[u32]) -> Vec<InnerNode> {
    let mut found: Vec<Option<InnerNode>> = Vec::new();
    for node in &tree.nodes {
        found.push(match node.kind {
            Kind::Inner(rule, _) => {
                let dimension = rule.cut.dimension;
                let constant = tied.iter().copied().filter(|&d| d != dimension).collect();
                Some(InnerNode { dimension, constant })
            }
            Kind::Free | Kind::Leaf => None,
        });
    }
    let mut settled: Vec<Vec<u32>> = vec![Vec::new(); found.len()];
    for (id, node) in found.iter_mut().enumerate() {
        if let Some(node) = node {
            let (surely, open) =
                node.constant.iter().partition(|&&d| is_one_value(tree, table, id as Label, d));
            (settled[id], node.constant) = (surely, open);
        }
    }
    drop_those_that_vary(tree, table, &mut found);
    let nodes = found.into_iter().zip(settled).filter_map(|(node, surely)| {
        node.map(|mut node| {
            node.constant.extend(surely);
            node
        })
    });
    nodes.collect()
}

/// Whether the cuts above a node leave a single value of a dimension.
fn is_one_value(tree: &TreeState, table: &Table, id: Label, dimension: u32) -> bool {
    let column = table.column(dimension);
    let (mut low, mut high) = (0, column.n_values() - 1);
    let mut below = id;
    while let Some(parent) = tree.get(below).parent {
        if let Kind::Inner(rule, [left, _]) = tree.get(parent).kind
            && rule.cut.dimension == dimension
        {
            if below == left {
                high = high.min(rule.cut.rank);
            } else {
                low = low.max(rule.cut.rank + 1);
            }
        }
        below = parent;
    }
    low == high
}

/// Leaves of dimensions taken for constant those in which all rows of a node are alike.
fn drop_those_that_vary(tree: &TreeState, table: &Table, nodes: &mut [Option<InnerNode>]) {
    let is_open = |node: &Option<InnerNode>| node.as_ref().is_some_and(|node| !node.constant.is_empty());
    let mut n_open = nodes.iter().filter(|node| is_open(node)).count();
    let mut first: Vec<Option<u32>> = vec![None; nodes.len()];
    for (row, &leaf) in tree.labels.iter().enumerate() {
        if n_open == 0 {
            break;
        }
        let row = row as u32;
        let mut at = tree.get(leaf).parent;
        while let Some(id) = at {
            at = tree.get(id).parent;
            let (first, node) = (&mut first[id as usize], &mut nodes[id as usize]);
            if let (Some(first), true, Some(inner)) = (*first, is_open(node), node.as_mut()) {
                inner.constant.retain(|&d| table.column(d).rank(row) == table.column(d).rank(first));
                n_open -= usize::from(inner.constant.is_empty());
            }
            first.get_or_insert(row);
        }
    }
}
