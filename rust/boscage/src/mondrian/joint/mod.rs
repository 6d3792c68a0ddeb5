//! The covariance of a sum of trees, and systems of linear equations in it.
//!
//! Let a row's value be the sum of one function for each of `T` trees. The function of a tree is a Brownian
//! motion that branches with the tree: two rows share it until the tree separates them. Its variance grows
//! with time as a *clock* `v` says, divided by `T`. The sum is then a Gaussian process with covariance
//!
//! `K(x, x') = 1/T sum_t v(the time at which tree t separates x from x')`.
//!
//! This is a Mondrian kernel (Balog et al. 2016), averaged over lifetimes with density `v'` instead of taken
//! at one. The posterior mean, given values `y` with noise of variance `s^2`, is `K(x, .) a`, where `(K + s^2
//! I) a = y`.
//!
//! A product with `K` takes one pass up and one pass down every tree (`passes`). Conjugate gradients
//! (`conjugate_gradients`) solve the system with some dozens of such products. They solve `L` systems at
//! once, whose numbers lie side by side in memory. Many right-hand sides of one system are solved in a block
//! (`block`), with fewer products for all of them. Rows are numbered in a canonical order (`row_order`), so that
//! sums do not depend on the order of arrival.
//!
//! `left_out_by_noise` predicts left-out rows for many noise variances at once.
//!
//! With infinitely many trees, `K` is known in closed form (`limit`).

mod block;
mod conjugate_gradients;
pub(crate) mod kernel;
mod left_out_by_noise;
pub(crate) mod limit;
mod means;
mod passes;
pub(crate) mod row_order;
mod tiles;

use crate::control::Run;
use crate::data::RowId;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;
use conjugate_gradients::RowNoise;
use passes::{Number, Passes, add};
use row_order::places_in;

pub(crate) use left_out_by_noise::LeftOutPlace;
pub(crate) use means::ColumnMeans;
pub(crate) use passes::{MergedNode, PathShare};

/// Trees whose products one thread adds up; results depend on it, and not on the number of threads.
const BLOCK: usize = 8;

/// The parts of the trees that sums over them need.
pub(crate) struct Trees {
    passes: Vec<Passes>,
    n_rows: usize,
}

impl Trees {
    /// `order` holds the rows in an order that does not depend on that of their coming.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn new<S: Scalar, P: Statistics>(
        trees: &[Tree<S, P>],
        order: &[RowId],
        lifetime: f64,
        run: &Run<'_>,
    ) -> Result<Self> {
        let places = places_in(order);
        let passes = run.map(trees.len(), |i| Ok(Passes::new(&trees[i], &places, lifetime)))?;
        Ok(Self { passes, n_rows: order.len() })
    }

    /// The sums of weights by tree and node.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn sums<const L: usize>(
        &self,
        weights: &[[f64; L]],
        run: &Run<'_>,
    ) -> Result<Vec<Vec<[f64; L]>>> {
        run.map(self.passes.len(), |i| Ok(self.passes[i].sums(weights)))
    }
}

/// The system of some trees, a clock and a noise.
pub(crate) struct System<'a> {
    trees: &'a Trees,
    noise: RowNoise,
    /// What the clock spends between a node's parent and the node, by tree and the node's number in its passes.
    spans: Vec<Vec<f64>>,
    run: &'a Run<'a>,
}

/// Problems in which rows are left out: each is about the other rows, in trees that do not hold the row.
#[derive(Debug, Clone)]
pub(crate) struct LeftOut<const L: usize> {
    /// For every problem, the place of the row that it lacks.
    pub(crate) places: [Option<usize>; L],
    /// By tree, the splits that are leaves without the row of a problem.
    pub(crate) merged: Vec<Vec<MergedNode>>,
}

impl<'a> System<'a> {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(
        trees: &'a Trees,
        clock: impl Fn(f64) -> f64 + Sync,
        (noise_variance, weights): (f64, Option<&[f64]>),
        run: &'a Run<'a>,
    ) -> Result<Self> {
        let spans = run.map(trees.passes.len(), |i| Ok(trees.passes[i].spans(&clock)))?;
        Ok(Self { trees, noise: RowNoise::new(noise_variance, weights), spans, run })
    }

    pub(crate) fn n_trees(&self) -> usize {
        self.spans.len()
    }

    /// What the clock spends between a node's parent and the node, in one tree.
    pub(crate) fn span(&self, tree: usize, node: NodeId) -> f64 {
        self.spans[tree][self.trees.passes[tree].number(node.index())]
    }

    /// Each tree's share `a / T` of the rows' weights, in the common order as `targets` are, for `L` problems
    /// at once: rows that are left out of one weigh nothing in it. By conjugate gradients, until what is left
    /// of the targets is less than a share of them.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights<const L: usize>(
        &self,
        targets: &[[f64; L]],
        left_out: impl Fn(usize, usize) -> bool,
        tolerance: f64,
    ) -> Result<Vec<[f64; L]>> {
        let product = |weights: &[[f64; L]]| self.product(weights, &[]);
        self.noise.weights(&product, targets, &left_out, (self.n_trees(), tolerance))
    }

    /// The weights of the other rows' values in the mean of a row that is left out, for `L` such rows: `(K + s^2 I)^-1 k`,
    /// where `k` are the row's covariances, of which `shares` has each tree's. With them, what they leave of `k`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights_of_values<const L: usize>(
        &self,
        left_out: &LeftOut<L>,
        shares: &[Vec<PathShare>],
        tolerance: f64,
    ) -> Result<[Vec<[f64; L]>; 2]> {
        let mut weighs = vec![[1.0; L]; self.trees.n_rows];
        for (lane, &place) in left_out.places.iter().enumerate() {
            match place {
                Some(place) => weighs[place][lane] = 0.0,
                None => weighs.iter_mut().for_each(|weighs| weighs[lane] = 0.0),
            }
        }
        let mut covariances = self.over_trees(|i, product, buffer| {
            self.trees.passes[i].add_paths(&shares[i], product, buffer);
        })?;
        for (covariance, weighs) in covariances.iter_mut().zip(&weighs) {
            *covariance = std::array::from_fn(|lane| covariance[lane] * weighs[lane]);
        }
        let product = |weights: &[[f64; L]]| self.product(weights, &left_out.merged);
        let weights = self.noise.solve(&product, &mut covariances, &weighs, tolerance)?;
        Ok([weights, covariances])
    }

    /// `K` times weights.
    fn product<const L: usize>(
        &self,
        weights: &[[f64; L]],
        merged: &[Vec<MergedNode>],
    ) -> Result<Vec<[f64; L]>> {
        self.over_trees(|i, product, buffer| {
            let (passes, spans) = (&self.trees.passes[i], &self.spans[i]);
            match merged.get(i) {
                None => passes.add_product(spans, weights, product, buffer),
                Some(merged) => passes.add_product_of_merged(spans, weights, merged, product, buffer),
            }
        })
    }

    /// The mean over trees of what `add_tree` adds for each of them; it also takes a buffer.
    fn over_trees<T: Number, const L: usize>(
        &self,
        add_tree: impl Fn(usize, &mut [[T; L]], &mut Vec<[T; L]>) + Sync,
    ) -> Result<Vec<[f64; L]>> {
        let n_trees = self.trees.passes.len();
        let share = 1.0 / n_trees as f64;
        let blocks = self.run.map(n_trees.div_ceil(BLOCK), |block| {
            let mut sum = vec![[T::default(); L]; self.trees.n_rows];
            let mut buffer = Vec::new();
            for i in block * BLOCK..n_trees.min((block + 1) * BLOCK) {
                add_tree(i, &mut sum, &mut buffer);
            }
            Ok(sum)
        })?;
        let mut mean = vec![[0.0; L]; self.trees.n_rows];
        for block in blocks {
            for (mean, own) in mean.iter_mut().zip(&block) {
                add(mean, &own.map(Into::into), share);
            }
        }
        Ok(mean)
    }
}
