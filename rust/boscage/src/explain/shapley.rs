//! Shapley values of a sum of trees.

use crate::explain::covered_tree::{CoveredTree, LEAF, NONE};
use crate::explain::quadrature::{QuadratureRule, QuadratureRules};

/// Computes Shapley values of trees; the rule of integration is that of the tree with the longest path.
#[derive(Debug, Clone)]
pub(crate) struct Explainer {
    rule: QuadratureRule,
    /// For cells of rows' own, by the number of features that their conditions are on.
    rules_of_cells: QuadratureRules,
}

/// Memory for the passes over a tree.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// Whether the row meets the conditions on the feature of the edge above each node.
    meets: Vec<bool>,
    /// The product at the nodes of the rule, by tree node.
    products: Vec<f64>,
    /// Sums over the leaves below subtrees that wait for their parents, by output and node of the rule.
    sums: Vec<f64>,
    /// What the edge above changes, by node of the rule.
    change: Vec<f64>,
}

/// What a cell of the row's own adds to the prediction of its leaf.
pub(crate) struct OwnCell<'a> {
    pub(crate) leaf: usize,
    /// The features in which the row lies outside the box of the leaf's rows, in order.
    pub(crate) outside: &'a [u32],
    pub(crate) added: &'a [f64],
}

impl Explainer {
    pub(crate) fn new<'a>(trees: impl Iterator<Item = &'a CoveredTree>) -> Self {
        let most = trees.map(|tree| tree.n_on_path).max().unwrap_or(0);
        let rule = QuadratureRule::exact_to(most.saturating_sub(1));
        Self { rule, rules_of_cells: QuadratureRules::up_to(0) }
    }

    /// For rows that may have cells of their own, with conditions on at most so many features.
    pub(crate) fn with_cells(self, n_features: usize) -> Self {
        Self { rules_of_cells: QuadratureRules::up_to(n_features.saturating_sub(1)), ..self }
    }

    /// Adds the Shapley values of a tree's prediction for a row to `phi`, feature by feature and output by output.
    pub(crate) fn add(
        &self,
        tree: &CoveredTree,
        x: impl Fn(usize) -> f64,
        buffers: &mut Buffers,
        phi: &mut [f64],
    ) {
        self.pass_down(tree, x, buffers);
        self.pass_up(tree, buffers, phi);
    }

    /// The product of `t o_j + (1 - t) z_j` over the features above each tree node.
    fn pass_down(&self, tree: &CoveredTree, x: impl Fn(usize) -> f64, buffers: &mut Buffers) {
        let q = self.rule.len();
        let Buffers { meets, products, .. } = buffers;
        meets.clear();
        meets.resize(tree.nodes.len(), true);
        products.clear();
        products.resize(tree.nodes.len() * q, 1.0);
        for (i, node) in tree.nodes.iter().enumerate().filter(|(_, node)| node.rule.feature != LEAF) {
            let side = node.rule.sends_right(x(node.rule.feature as usize));
            // Both children have the same edge above them.
            let before = tree.edges[i + 1].before;
            let (met, kept) = match before {
                NONE => (true, 1.0),
                before => (meets[before as usize], tree.edges[before as usize].kept),
            };
            for (child, is_side) in [(i + 1, !side), (node.right as usize, side)] {
                let (z, meets_all) = (tree.edges[child].kept, met && is_side);
                meets[child] = meets_all;
                let (above, below) = products.split_at_mut(child * q);
                let pairs = below[..q].iter_mut().zip(&above[i * q..(i + 1) * q]);
                if !met {
                    // Without a row, the product above is 0.
                    let ratio = if kept > 0.0 { z / kept } else { 0.0 };
                    pairs.for_each(|(to, from)| *to = from * ratio);
                    continue;
                }
                let own = f64::from(u8::from(meets_all));
                let rule = self.rule.nodes.iter().zip(&self.rule.complements);
                for ((to, from), (t, s)) in pairs.zip(rule) {
                    *to = from * (t * own + s * z) / (t + s * kept);
                }
            }
        }
    }

    /// Sums over the leaves below each edge, from the last to the first, and what the edge's feature gains by them.
    fn pass_up(&self, tree: &CoveredTree, buffers: &mut Buffers, phi: &mut [f64]) {
        let (q, n_outputs) = (self.rule.len(), tree.n_outputs());
        let width = q * n_outputs;
        let Buffers { meets, products, sums, change } = buffers;
        sums.clear();
        change.resize(q, 0.0);
        for (i, node) in tree.nodes.iter().enumerate().rev() {
            if node.is_leaf() {
                let product = &products[i * q..(i + 1) * q];
                let each = tree.values_of(i).iter();
                sums.extend(each.flat_map(|value| product.iter().map(move |product| value * product)));
            } else {
                // The left subtree came last.
                let top = sums.len() - width;
                let (rest, left) = sums.split_at_mut(top);
                let right = &mut rest[top - width..];
                right.iter_mut().zip(left).for_each(|(sum, left)| *sum += *left);
                sums.truncate(top);
            }
            let edge = tree.edges[i];
            let met = edge.before == NONE || meets[edge.before as usize];
            // Once a condition on the feature is not met, further ones change nothing.
            if edge.parent == NONE || !met {
                continue;
            }
            let before = if edge.before == NONE { 1.0 } else { tree.edges[edge.before as usize].kept };
            self.change_of(meets[i], edge.kept, before, change);
            let feature = tree.nodes[edge.parent as usize].rule.feature as usize;
            let here = &sums[sums.len() - width..];
            let phi = &mut phi[feature * n_outputs..(feature + 1) * n_outputs];
            for (phi, sums) in phi.iter_mut().zip(here.chunks_exact(q)) {
                *phi += sums.iter().zip(&*change).map(|(sum, change)| sum * change).sum::<f64>();
            }
        }
    }

    /// The weight of the rule times `(o - z) / (t o + (1 - t) z)`, less the same at the edge before, whose conditions the
    /// row meets.
    fn change_of(&self, meets: bool, kept: f64, before: f64, change: &mut [f64]) {
        let QuadratureRule { nodes, complements, weights } = &self.rule;
        for (k, change) in change.iter_mut().enumerate() {
            let (t, s) = (nodes[k], complements[k]);
            let at = |z: f64| (1.0 - z) / (t + s * z);
            let own = if meets { at(kept) } else { -1.0 / s };
            *change = weights[k] * (own - at(before));
        }
    }

    /// Adds the Shapley values of what a cell of the row's own adds to its leaf's prediction.
    pub(crate) fn add_cell(&self, tree: &CoveredTree, cell: &OwnCell<'_>, phi: &mut [f64]) {
        let n_outputs = tree.n_outputs();
        let mut path = tree.on_path(cell.leaf);
        path.retain(|(feature, _)| cell.outside.binary_search(feature).is_err());
        let rule = self.rules_of_cells.exact_to(path.len() + cell.outside.len() - 1);
        let mut share_outside = 0.0;
        let mut shares = vec![0.0; path.len()];
        for ((t, s), weight) in rule.nodes.iter().zip(&rule.complements).zip(&rule.weights) {
            let of_path: f64 = path.iter().map(|(_, z)| t + s * z).product();
            // All but one of the features in which the row lies outside.
            let others = weight * of_path * t.powi(cell.outside.len() as i32 - 1);
            share_outside += others;
            for (share, (_, z)) in shares.iter_mut().zip(&path) {
                *share += others * t * (1.0 - z) / (t + s * z);
            }
        }
        let outside = cell.outside.iter().map(|&feature| (feature, share_outside));
        for (feature, share) in
            outside.chain(path.iter().zip(shares).map(|(&(feature, _), share)| (feature, share)))
        {
            let phi = &mut phi[feature as usize * n_outputs..][..n_outputs];
            phi.iter_mut().zip(cell.added).for_each(|(phi, added)| *phi += share * added);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::splits::SideRule;
    use crate::explain::covered_tree::CoveredNode;
    use crate::random::keyed::Stream;

    const N_FEATURES: usize = 4;

    /// A tree with this many splits, whose nodes may have no rows.
    fn random_tree(n_splits: usize, cover: usize, at: usize, stream: &mut Stream) -> Vec<CoveredNode> {
        let leaf = CoveredNode::leaf(cover as f64);
        if n_splits == 0 {
            return vec![leaf];
        }
        let (on_left, of_left) = (stream.below(n_splits), stream.below(cover + 1));
        let left = random_tree(on_left, of_left, at + 1, stream);
        let right_at = at + 1 + left.len();
        let right = random_tree(n_splits - 1 - on_left, cover - of_left, right_at, stream);
        let feature = stream.below(N_FEATURES) as u32;
        let root =
            CoveredNode { rule: SideRule::new(feature, stream.unit()), right: right_at as u32, ..leaf };
        std::iter::once(root).chain(left).chain(right).collect()
    }

    /// The prediction if only the features in a set are known.
    fn game(tree: &CoveredTree, known: usize, x: &[f64], cell: Option<&OwnCell<'_>>, at: usize) -> f64 {
        let node = tree.nodes[at];
        if node.is_leaf() {
            let own = cell.filter(|cell| {
                cell.leaf == at && cell.outside.iter().all(|&feature| known & (1 << feature) != 0)
            });
            return tree.values_of(at)[0] + own.map_or(0.0, |cell| cell.added[0]);
        }
        let right = node.right as usize;
        let share = if node.cover > 0.0 { tree.nodes[right].cover / node.cover } else { 0.5 };
        let goes = node.rule.sends_right(x[node.rule.feature as usize]);
        if known & (1 << node.rule.feature) != 0 {
            return game(tree, known, x, cell, if goes { right } else { at + 1 });
        }
        share * game(tree, known, x, cell, right) + (1.0 - share) * game(tree, known, x, cell, at + 1)
    }

    /// The definition: the mean over all orders in which features become known.
    fn by_subsets(value: impl Fn(usize) -> f64) -> Vec<f64> {
        let factorial = |n: usize| (1..=n).product::<usize>() as f64;
        let weight = |set: usize| {
            let n = set.count_ones() as usize;
            factorial(n) * factorial(N_FEATURES - 1 - n) / factorial(N_FEATURES)
        };
        let of_feature = |feature: usize| {
            let without = (0..1 << N_FEATURES).filter(move |set| set & (1 << feature) == 0);
            without.map(|set| weight(set) * (value(set | 1 << feature) - value(set))).sum()
        };
        (0..N_FEATURES).map(of_feature).collect()
    }

    #[test]
    fn they_are_those_of_the_definition() {
        let mut stream = Stream::new(1, 0);
        let mut buffers = Buffers::default();
        for n_splits in (0..20).chain([40; 5]) {
            let nodes = random_tree(n_splits, 12, 0, &mut stream);
            let values = nodes.iter().map(|_| stream.unit()).collect();
            let tree = CoveredTree::new(nodes, values);
            let x: Vec<f64> = (0..N_FEATURES).map(|_| stream.unit()).collect();
            let leaf = tree.leaf(|d| x[d]);
            // Some features, not none of them.
            let some = 1 + stream.below((1 << N_FEATURES) - 1);
            let outside: Vec<u32> = (0..N_FEATURES as u32).filter(|d| some >> d & 1 == 1).collect();
            let cell = OwnCell { leaf, outside: &outside, added: &[0.7] };
            let explainer = Explainer::new(std::iter::once(&tree)).with_cells(N_FEATURES);
            for cell in [None, Some(&cell)] {
                let mut phi = vec![0.0; N_FEATURES];
                explainer.add(&tree, |d| x[d], &mut buffers, &mut phi);
                if let Some(cell) = cell {
                    explainer.add_cell(&tree, cell, &mut phi);
                }
                let value = |set| game(&tree, set, &x, cell, 0);
                for (found, expected) in phi.iter().zip(by_subsets(value)) {
                    assert!((found - expected).abs() < 1e-13, "{n_splits} splits: {found} and {expected}");
                }
                let mut base = [0.0];
                tree.add_mean(&mut base);
                assert!((base[0] - value(0)).abs() < 1e-13);
            }
        }
    }
}
