//! The sizes of leave-one-out errors in a tree out of which parts of the chosen rows are left, repeated for many hyperparameters.
//!
//! A tree is read once, into the order in which messages go up (as in `subtree_beliefs`): its nodes are numbered from the last one
//! up to the root, and the children of the k-th split are the numbers 2k and 2k + 1.

use crate::data::{RowId, RowTargets, Scalar};
use crate::mondrian::regression::hierarchy::belief_propagation::{
    Above, Hyperparameters, Message, Told, UnitClocks, join,
};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::noise::local_noise::{ratio, size, smoothed};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// The weight of an empty leaf: negligible, but positive, since precisions are divided by.
const NOTHING: f64 = 1e-12;

/// A tree, and what is left of it without each part.
#[derive(Debug)]
pub(super) struct WithoutParts {
    /// The number of every split, and its place among clocks.
    splits: Vec<(u32, u32)>,
    /// The numbers of the leaves.
    leaves: Vec<u32>,
    parts: Vec<LeavesWithout>,
    /// For every chosen row, the nodes that are on its path in the tree without its part: number, and weight of rows.
    paths: Vec<Vec<(u32, f64)>>,
}

/// The leaves without a part.
#[derive(Debug)]
struct LeavesWithout {
    leaves: Vec<PartLeaf>,
    /// Targets of leaves of several rows, in order.
    targets: Vec<f64>,
    /// Their weights, unless all rows have the weight 1.
    weights: Vec<f64>,
    /// Of all rows.
    weight: f64,
}

#[derive(Debug, Clone, Copy)]
struct PartLeaf {
    n_rows: u32,
    weight: f64,
    /// Of its targets; nothing if there are none.
    mean: f64,
    /// Where its targets end, if it has several.
    end: u32,
}

/// For every chosen row, the sizes of errors at the nodes of its path, in units of their mean; nothing for a row out of whose
/// part no errors differ.
#[derive(Debug)]
pub(super) struct PathSizes {
    by_row: Vec<Option<Vec<f64>>>,
}

impl WithoutParts {
    /// Of a tree whose nodes are in the order of [`Arena::breadth_first`], with the targets of all rows. `part_of` says to
    /// which part a row belongs; the i-th path is that of a row of part `i % n_parts`.
    ///
    /// [`Arena::breadth_first`]: crate::mondrian::tree::arena::Arena::breadth_first
    pub(super) fn new<'p, S: Scalar>(
        (tree, order): (&Tree<S, NodeMoments>, &[NodeId]),
        targets: RowTargets<'_, f64>,
        (n_parts, part_of): (usize, impl Fn(RowId) -> Option<usize>),
        paths: impl Iterator<Item = &'p [NodeId]>,
    ) -> Self {
        let mut numbers = vec![0; tree.arena.n_indices()];
        let (mut splits, mut leaves, mut at) = (Vec::new(), Vec::new(), Vec::new());
        for (number, &node) in (0..).zip(order.iter().rev()) {
            numbers[node.index()] = number;
            if node.is_leaf() {
                leaves.push(number);
                at.push(node);
            } else {
                splits.push((number, node.rank() as u32));
            }
        }
        let part = |part: usize| {
            let leaves = at.iter().map(|&leaf| rows_of(tree, leaf, targets, part, &part_of));
            LeavesWithout::new(leaves, targets.weights.is_some())
        };
        let mut this = Self { splits, leaves, parts: (0..n_parts).map(part).collect(), paths: Vec::new() };
        let counts: Vec<Vec<(u32, f64)>> = this.parts.iter().map(|part| this.counts(part)).collect();
        let path = |(row, path): (usize, &[NodeId])| {
            let count = |node: &NodeId| {
                let number = numbers[node.index()];
                (number, counts[row % n_parts][number as usize])
            };
            // Without the left-out rows, a node with its parent's rows, or none, would not exist.
            let mut above = u32::MAX;
            let exists = |&(_, (n, _)): &(u32, (u32, f64))| {
                let exists = n > 0 && n < above;
                above = if exists { n } else { above };
                exists
            };
            path.iter().map(count).filter(exists).map(|(number, (_, weight))| (number, weight)).collect()
        };
        this.paths = paths.enumerate().map(path).collect();
        this
    }

    /// Number and weight of the rows by node.
    fn counts(&self, part: &LeavesWithout) -> Vec<(u32, f64)> {
        let mut counts = vec![(0, 0.0); self.n_nodes()];
        for (&leaf, own) in self.leaves.iter().zip(&part.leaves) {
            counts[leaf as usize] = (own.n_rows, own.weight);
        }
        for (k, &(split, _)) in self.splits.iter().enumerate() {
            let [right, left] = [counts[2 * k], counts[2 * k + 1]];
            counts[split as usize] = (left.0 + right.0, left.1 + right.1);
        }
        counts
    }

    fn n_nodes(&self) -> usize {
        self.leaves.len() + self.splits.len()
    }

    /// The sizes along the paths of the chosen rows.
    pub(super) fn sizes(&self, hyper: &Hyperparameters, clocks: &UnitClocks) -> PathSizes {
        let mut by_row: Vec<Option<Vec<f64>>> = vec![None; self.paths.len()];
        for (number, part) in self.parts.iter().enumerate() {
            let sums = self.sums(part, &self.beliefs(part, hyper, clocks), hyper.noise_variance);
            let typical = sums.last().map_or(0.0, |all| all / part.weight);
            if typical > 0.0 {
                for (row, path) in self.paths.iter().enumerate().skip(number).step_by(self.parts.len()) {
                    let sizes = path.iter().map(|&(node, _)| sums[node as usize] / typical);
                    by_row[row] = Some(sizes.collect());
                }
            }
        }
        PathSizes { by_row }
    }

    /// The factor on the variances for every chosen row, where a parent's counts for `prior` rows.
    pub(super) fn scales(&self, sizes: &PathSizes, prior: f64) -> Vec<f64> {
        let scale = |(sizes, path): (&Option<Vec<f64>>, &Vec<(u32, f64)>)| {
            let nodes = sizes.iter().flatten().zip(path);
            let scale = nodes.fold(1.0, |above, (&size, &(_, n))| smoothed(above, (size, n), prior));
            scale * scale
        };
        sizes.by_row.iter().zip(&self.paths).map(scale).collect()
    }

    /// The belief about every node from the rows that are not below it, by number; the clock has no coarse part.
    fn beliefs(&self, part: &LeavesWithout, hyper: &Hyperparameters, clocks: &UnitClocks) -> Vec<Above> {
        let none = Message { precision: 0.0, mean: 0.0 };
        let mut told = vec![Told { message: none, clock: hyper.gamma1 * clocks.end() }; self.n_nodes()];
        for (&leaf, own) in self.leaves.iter().zip(&part.leaves) {
            let n = own.weight.max(NOTHING);
            let mean = if own.n_rows > 0 { own.mean } else { hyper.mu };
            told[leaf as usize].message = Message { precision: n / hyper.noise_variance, mean };
        }
        // The messages as they come to the parent.
        let mut at_parent = vec![none; self.n_nodes()];
        for (k, &(split, rank)) in self.splits.iter().enumerate() {
            let clock = hyper.gamma1 * clocks.of_split(rank as usize);
            let [right, left] = [2 * k, 2 * k + 1].map(|child| told[child].at_parent(clock));
            (at_parent[2 * k], at_parent[2 * k + 1]) = (right, left);
            told[split as usize] = Told { message: join(left, right), clock };
        }
        let root = told.last().map_or(0.0, |root| root.clock);
        let mut above = vec![Above { mean: hyper.mu, variance: root }; self.n_nodes()];
        for (k, &(split, _)) in self.splits.iter().enumerate().rev() {
            let (here, clock) = (above[split as usize], told[split as usize].clock);
            for (child, sibling) in [(2 * k, 2 * k + 1), (2 * k + 1, 2 * k)] {
                above[child] = here.below(at_parent[sibling], told[child].clock - clock);
            }
        }
        above
    }

    /// The sizes of errors, summed over the rows of every node.
    fn sums(&self, part: &LeavesWithout, above: &[Above], noise_variance: f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_nodes()];
        let (mut own, mut start) = (Vec::new(), 0);
        for (&leaf, &PartLeaf { n_rows, weight, mean, end }) in self.leaves.iter().zip(&part.leaves) {
            let above = above[leaf as usize];
            let of = |y, own| own * size(ratio((y, own), (mean, weight), above, noise_variance));
            sums[leaf as usize] = match n_rows {
                0 => 0.0,
                1 => of(mean, weight),
                _ => {
                    own.clear();
                    own.extend((start..end as usize).map(|i| of(part.targets[i], part.weight(i))));
                    // Sorted, so that the order of arrival does not matter.
                    own.sort_unstable_by(f64::total_cmp);
                    own.iter().sum()
                }
            };
            start = end as usize;
        }
        for (k, &(split, _)) in self.splits.iter().enumerate() {
            sums[split as usize] = sums[2 * k + 1] + sums[2 * k];
        }
        sums
    }
}

impl LeavesWithout {
    /// Given the targets and weights of each leaf, in order.
    fn new(leaves: impl Iterator<Item = Vec<(f64, f64)>>, has_weights: bool) -> Self {
        let mut this = Self { leaves: Vec::new(), targets: Vec::new(), weights: Vec::new(), weight: 0.0 };
        for own in leaves {
            let n: f64 = own.iter().map(|(_, weight)| weight).sum();
            let mean = |&(first, _): &(f64, f64)| {
                first + own.iter().map(|(y, weight)| weight * (y - first) / n).sum::<f64>()
            };
            let mean = own.first().map_or(0.0, mean);
            if own.len() > 1 {
                this.targets.extend(own.iter().map(|(y, _)| y));
                if has_weights {
                    this.weights.extend(own.iter().map(|(_, weight)| weight));
                }
            }
            this.weight += n;
            let (n_rows, end) = (own.len() as u32, this.targets.len() as u32);
            this.leaves.push(PartLeaf { n_rows, weight: n, mean, end });
        }
        this
    }

    /// Of the i-th of the targets.
    fn weight(&self, i: usize) -> f64 {
        self.weights.get(i).copied().unwrap_or(1.0)
    }
}

/// The targets of a leaf's rows without those of a part, and their weights, in order.
fn rows_of<S: Scalar>(
    tree: &Tree<S, NodeMoments>,
    leaf: NodeId,
    targets: RowTargets<'_, f64>,
    part: usize,
    part_of: impl Fn(RowId) -> Option<usize>,
) -> Vec<(f64, f64)> {
    let others = tree.arena.leaf_rows(leaf).filter(|&row| part_of(row) != Some(part));
    let mut own: Vec<(f64, f64)> = others.map(|row| (targets.of(row), targets.weight(row))).collect();
    own.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    own
}
