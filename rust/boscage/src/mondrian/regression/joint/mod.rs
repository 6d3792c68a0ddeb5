//! All trees of a forest as one model: a target is the sum of the trees' functions, not drawn from one of them.
//!
//! In a mixture of trees, each tree alone explains the targets. Its function has to be as smooth as a single tree's
//! must be, and the mean of all functions is smoother still. In the joint model, a target is the sum of one function
//! for each of the `T` trees, and noise. The function of a tree is a Brownian motion, as in the hierarchy, with a
//! `T`-th of its variance. The sum is then a Gaussian process with covariance
//!
//! `K(x, x') = 1/T sum_t v(the time at which tree t separates x from x')`.
//!
//! This is a Mondrian kernel (Balog et al. 2016), summed over lifetimes instead of taken at one. The posterior mean is
//! `mu_H + K(x, .) a`, where `(K + s^2 I) a = y - mu_H`.
//!
//! A product with `K` takes one pass up and one pass down every tree. Conjugate gradients (Hestenes and Stiefel 1952)
//! solve the system with some dozens of such products. Rows are numbered in an order of their own (`row_order`), so
//! that sums do not depend on the order of arrival.

pub(crate) mod row_order;

use crate::control::Run;
use crate::data::RowId;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::prediction::shared_path::SharedPath;
use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hierarchy::branch_clock::branch_clock;
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::joint::row_order::in_order;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// Trees whose products one thread adds up; results depend on it, and not on the number of threads.
const BLOCK: usize = 8;
const ITERATIONS: usize = 1000;
/// The share of the targets' norm that may remain unexplained when weights are found that predict.
const TOLERANCE: f64 = 1e-10;
/// The smallest noise as a share of `gamma_1`: with less, rows that coincide get weights that cancel to the
/// last bit.
const LEAST_NOISE: f64 = 1e-9;

/// A joint model in standard units, which are the same for shifted and scaled targets. The coarse part of the prior is not
/// in its kernel: its mean, all that is used of it, goes to `mu_H` far away with or without that part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standard {
    /// With `mu_H = 0` and `gamma_1 = 1`.
    pub(crate) hyper: Hyperparameters,
    mu: f64,
    unit: f64,
}

impl Standard {
    pub(crate) fn new(hyper: &Hyperparameters) -> Self {
        let noise_variance = coarse(hyper.noise_variance / hyper.gamma1);
        Self {
            hyper: Hyperparameters {
                mu: 0.0,
                gamma1: 1.0,
                noise_variance,
                delay: 0.0,
                coarse: CoarsePrior::NONE,
                ..*hyper
            },
            mu: hyper.mu,
            unit: hyper.gamma1.sqrt(),
        }
    }

    /// The same units with other hyperparameters, given in them.
    pub(crate) fn with(self, hyper: Hyperparameters) -> Self {
        Self { hyper, ..self }
    }

    pub(crate) fn target(&self, y: f64) -> f64 {
        (y - self.mu) / self.unit
    }

    /// A difference of targets, given in the model's units.
    pub(crate) fn difference(&self, standard: f64) -> f64 {
        self.unit * standard
    }

    /// A target, given in the model's units.
    pub(crate) fn mean(&self, standard: f64) -> f64 {
        self.mu + self.difference(standard)
    }
}

/// A number with the last half of its digits rounded off, in which the rounding of targets would show.
fn coarse(value: f64) -> f64 {
    const LAST: u64 = 1 << 28;
    f64::from_bits((value.to_bits() + LAST / 2) & !(LAST - 1))
}

/// The parts of the trees that sums over them need.
pub(crate) struct Trees {
    passes: Vec<Passes>,
    n_rows: usize,
}

/// One tree; nodes by their index in its arena.
struct Passes {
    n_indices: usize,
    root: usize,
    /// Every other node and its parent, parents first.
    links: Vec<(u32, u32)>,
    /// Split times by node; a leaf's is the lifetime.
    times: Vec<f64>,
    /// Every leaf, and where its rows end.
    leaves: Vec<(u32, u32)>,
    /// Places of rows in the common order, leaf after leaf.
    rows: Vec<u32>,
}

impl Trees {
    /// `order` holds the rows in an order that does not depend on that of their coming.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn new<S: Scalar>(
        trees: &[Tree<S, NodeMoments>],
        order: &[RowId],
        lifetime: f64,
        run: &Run<'_>,
    ) -> Result<Self> {
        let mut places = vec![0; order.iter().max().map_or(0, |&row| row as usize + 1)];
        for (place, &row) in order.iter().enumerate() {
            places[row as usize] = place as u32;
        }
        let passes = run.map(trees.len(), |i| Ok(Passes::new(&trees[i], &places, lifetime)))?;
        Ok(Self { passes, n_rows: order.len() })
    }
}

impl Passes {
    fn new<S: Scalar>(tree: &Tree<S, NodeMoments>, places: &[u32], lifetime: f64) -> Self {
        let arena = &tree.arena;
        let n_indices = arena.n_indices();
        let mut this = Self {
            n_indices,
            root: arena.root().map_or(0, NodeId::index),
            links: Vec::new(),
            times: vec![lifetime; n_indices],
            leaves: Vec::new(),
            rows: Vec::new(),
        };
        for node in arena.preorder() {
            if node.is_leaf() {
                let start = this.rows.len();
                this.rows.extend(arena.leaf_rows(node).map(|row| places[row as usize]));
                this.rows[start..].sort_unstable();
                this.leaves.push((node.index() as u32, this.rows.len() as u32));
                continue;
            }
            this.times[node.index()] = arena.time(node);
            for right in [false, true] {
                this.links.push((arena.child(node, right).index() as u32, node.index() as u32));
            }
        }
        this
    }

    /// Prior variance that is spent between a node's parent and the node.
    fn spans(&self, hyper: &Hyperparameters) -> Vec<f64> {
        let mut spans: Vec<f64> = self.times.iter().map(|&time| hyper.clock(time)).collect();
        for &(node, parent) in self.links.iter().rev() {
            spans[node as usize] -= spans[parent as usize];
        }
        spans
    }

    /// Sums of the rows' weights by node.
    fn sums<const L: usize>(&self, weights: &[[f64; L]]) -> Vec<[f64; L]> {
        let mut sums = vec![[0.0; L]; self.n_indices];
        let mut start = 0;
        for &(leaf, end) in &self.leaves {
            for &row in &self.rows[start..end as usize] {
                add(&mut sums[leaf as usize], &weights[row as usize], 1.0);
            }
            start = end as usize;
        }
        for &(node, parent) in self.links.iter().rev() {
            let own = sums[node as usize];
            add(&mut sums[parent as usize], &own, 1.0);
        }
        sums
    }

    /// Adds the tree's product with weights to `product`.
    fn add_product<const L: usize>(&self, spans: &[f64], weights: &[[f64; L]], product: &mut [[f64; L]]) {
        let mut means = self.sums(weights);
        means[self.root] = means[self.root].map(|sum| sum * spans[self.root]);
        for &(node, parent) in &self.links {
            let mut mean = means[parent as usize];
            add(&mut mean, &means[node as usize], spans[node as usize]);
            means[node as usize] = mean;
        }
        let mut start = 0;
        for &(leaf, end) in &self.leaves {
            for &row in &self.rows[start..end as usize] {
                add(&mut product[row as usize], &means[leaf as usize], 1.0);
            }
            start = end as usize;
        }
    }
}

fn add<const L: usize>(sum: &mut [f64; L], other: &[f64; L], factor: f64) {
    for lane in 0..L {
        sum[lane] += factor * other[lane];
    }
}

/// The model with its hyperparameters, of targets whose mean is 0.
pub(crate) struct Joint<'a> {
    trees: &'a Trees,
    hyper: Hyperparameters,
    spans: Vec<Vec<f64>>,
    run: &'a Run<'a>,
}

impl<'a> Joint<'a> {
    pub(crate) fn new(trees: &'a Trees, hyper: Hyperparameters, run: &'a Run<'a>) -> Result<Self> {
        let spans = run.map(trees.passes.len(), |i| Ok(trees.passes[i].spans(&hyper)))?;
        let noise_variance = hyper.noise_variance.max(LEAST_NOISE * hyper.gamma1);
        Ok(Self { trees, hyper: Hyperparameters { noise_variance, ..hyper }, spans, run })
    }

    /// The sums of weights by tree and node.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn sums<const L: usize>(&self, weights: &[[f64; L]]) -> Result<Vec<Vec<[f64; L]>>> {
        self.run.map(self.trees.passes.len(), |i| Ok(self.trees.passes[i].sums(weights)))
    }

    /// Each tree's share `a / T` of the rows' weights, in the common order as `targets` are, for `L` problems
    /// at once: rows that are left out of one weigh nothing in it. By conjugate gradients, until what is left
    /// of the targets is less than a share of them.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights<const L: usize>(
        &self,
        targets: &[f64],
        left_out: impl Fn(usize, usize) -> bool,
        tolerance: f64,
    ) -> Result<Vec<[f64; L]>> {
        let n = targets.len();
        let in_lanes = |of: &dyn Fn(usize, usize) -> f64| -> Vec<[f64; L]> {
            (0..n).map(|row| std::array::from_fn(|lane| of(row, lane))).collect()
        };
        let weighs = in_lanes(&|row, lane| if left_out(row, lane) { 0.0 } else { 1.0 });
        // Squares of the largest targets would overflow.
        let largest = targets.iter().fold(0.0, |most: f64, y| most.max(y.abs()));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let mut rest = in_lanes(&|row, lane| weighs[row][lane] * (targets[row] / unit));
        let mut weights = vec![[0.0; L]; n];
        let mut direction = rest.clone();
        let mut square = dot(&rest, &rest);
        let enough = square.map(|square| tolerance * tolerance * square);
        // A solved problem takes no further steps.
        let ratio = |a: [f64; L], b: [f64; L]| -> [f64; L] {
            std::array::from_fn(|lane| if b[lane] > 0.0 { a[lane] / b[lane] } else { 0.0 })
        };
        for _ in 0..ITERATIONS {
            if square.iter().zip(&enough).all(|(square, enough)| square <= enough) {
                break;
            }
            let mut image = self.product(&direction)?;
            for ((image, direction), weighs) in image.iter_mut().zip(&direction).zip(&weighs) {
                add(image, direction, self.hyper.noise_variance);
                *image = std::array::from_fn(|lane| image[lane] * weighs[lane]);
            }
            let step = ratio(square, dot(&direction, &image));
            for row in 0..n {
                for lane in 0..L {
                    weights[row][lane] += step[lane] * direction[row][lane];
                    rest[row][lane] -= step[lane] * image[row][lane];
                }
            }
            let next = dot(&rest, &rest);
            let turn = ratio(next, square);
            for (direction, rest) in direction.iter_mut().zip(&rest) {
                *direction = std::array::from_fn(|lane| rest[lane] + turn[lane] * direction[lane]);
            }
            square = next;
        }
        let share = unit / self.trees.passes.len() as f64;
        Ok(weights.into_iter().map(|weights| weights.map(|weight| share * weight)).collect())
    }

    /// `K` times weights.
    fn product<const L: usize>(&self, weights: &[[f64; L]]) -> Result<Vec<[f64; L]>> {
        let passes = &self.trees.passes;
        let share = 1.0 / passes.len() as f64;
        let blocks = self.run.map(passes.len().div_ceil(BLOCK), |block| {
            let mut product = vec![[0.0; L]; self.trees.n_rows];
            for (passes, spans) in passes.iter().zip(&self.spans).skip(block * BLOCK).take(BLOCK) {
                passes.add_product(spans, weights, &mut product);
            }
            Ok(product)
        })?;
        let mut product = vec![[0.0; L]; self.trees.n_rows];
        for block in blocks {
            product.iter_mut().zip(&block).for_each(|(sum, own)| add(sum, own, share));
        }
        Ok(product)
    }

    /// A tree's share of the mean of a row that it holds with weight 0, `path` leading to its leaf;
    /// `branch` is where the row branches off from the leaf's other rows.
    pub(crate) fn left_out(
        &self,
        tree: usize,
        sum: impl Fn(NodeId) -> f64,
        path: &[NodeId],
        branch: Option<&Stop>,
    ) -> f64 {
        let spans = &self.spans[tree];
        let whole: f64 = path.iter().map(|&node| spans[node.index()] * sum(node)).sum();
        match (branch, path.last()) {
            (Some(stop), Some(&leaf)) => {
                let span = spans[leaf.index()];
                let Hyperparameters { gamma1, gamma2, delay, .. } = self.hyper;
                let gain = |probability| {
                    gamma1 * branch_time::expected_clock(stop, gamma2, delay, probability)
                        - self.hyper.clock(stop.after)
                };
                whole - (span - branch_time::expected_span(stop, span, gain)) * sum(leaf)
            }
            _ => whole,
        }
    }
}

fn dot<const L: usize>(a: &[[f64; L]], b: &[[f64; L]]) -> [f64; L] {
    let mut sums = [0.0; L];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..L {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums
}

/// The joint model of a forest, which weights are solved for.
pub(crate) struct JointWeights {
    trees: Trees,
    order: Vec<RowId>,
    targets: Vec<f64>,
}

impl JointWeights {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new<S: Scalar>(
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let order = in_order(forest, storage);
        let trees = Trees::new(&storage.trees, &order, forest.settings.lifetime, run)?;
        let targets = order.iter().map(|&row| forest.targets[row as usize]).collect();
        Ok(Self { trees, order, targets })
    }

    /// The weights and sums that determine means, without one row if it is given.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn solve(&self, model: &Standard, left_out: Option<RowId>, run: &Run<'_>) -> Result<Solution> {
        let without = |place: usize, _| Some(self.order[place]) == left_out;
        let joint = Joint::new(&self.trees, model.hyper, run)?;
        let targets: Vec<f64> = self.targets.iter().map(|&y| model.target(y)).collect();
        let weights = joint.weights::<1>(&targets, without, TOLERANCE)?;
        let sums = joint.sums(&weights)?.into_iter().map(|tree| tree.concat()).collect();
        let weights = weights.concat();
        let mut by_row = vec![0.0; self.order.iter().max().map_or(0, |&row| row as usize + 1)];
        for (&row, &weight) in self.order.iter().zip(&weights) {
            by_row[row as usize] = weight;
        }
        Ok(Solution { weights: by_row, sums })
    }
}

/// Weights of the rows, each tree's share of them, and their sums by tree and node.
#[derive(Debug, Clone)]
pub(crate) struct Solution {
    pub(crate) weights: Vec<f64>,
    pub(crate) sums: Vec<Vec<f64>>,
}

/// The joint model at a stop of a test row's path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedStop {
    clock: f64,
    /// The tree's share of the mean down to there, of a row that does not branch off before.
    mean: f64,
}

/// A tree's share of the mean of a row: sums by node, each times the expected clock that the row and the
/// node's rows share below the node's parent. The tree is given by its number.
pub(crate) fn mean(
    (tree, sum): (usize, impl Fn(NodeId) -> f64),
    hyper: &Hyperparameters,
    stops: &[Stop],
    path: &mut SharedPath<PassedStop>,
) -> f64 {
    let mut together = 1.0;
    let mut mean = 0.0;
    let mut above = 0.0;
    for (i, stop) in stops.iter().enumerate() {
        let PassedStop { clock, mean: shared } = path.at(i, (tree, stop.node), |before| {
            let before = before.unwrap_or(PassedStop { clock: 0.0, mean: 0.0 });
            let clock = hyper.clock(stop.time);
            let span = (clock - before.clock).max(0.0);
            PassedStop { clock, mean: before.mean + span * sum(stop.node) }
        });
        if stop.branch == Branch::Never && together == 1.0 {
            mean = shared;
        } else {
            let span = (clock - above).max(0.0);
            let gain = |probability| branch_clock(stop, hyper, probability, 0, 1).mean - above;
            mean += together * branch_time::expected_span(stop, span, gain) * sum(stop.node);
            together *= 1.0 - branch_time::branch_probability(stop);
        }
        above = clock;
    }
    mean
}

#[cfg(test)]
mod tests;
