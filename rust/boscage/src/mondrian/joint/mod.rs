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
//! (`conjugate_gradients`) solve the system with some dozens of such products (`solve`), or with fewer by means
//! of a `preconditioner`. They solve `L` systems at once, whose numbers lie side by side in memory. Many
//! right-hand sides of one system are solved in a block (`block`), with fewer products for all of them. Rows are
//! numbered in a canonical order (`row_order`), so that sums do not depend on the order of arrival.
//!
//! `left_out_by_noise` predicts left-out rows for many noise variances at once.
//!
//! With infinitely many trees, `K` is known in closed form (`limit`).

mod block;
pub(crate) mod conjugate_gradients;
pub(crate) mod kernel;
mod left_out_by_noise;
pub(crate) mod limit;
mod means;
mod passes;
mod preconditioner;
pub(crate) mod row_order;
mod solve;
mod tiles;

use crate::control::Run;
use crate::data::RowId;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;
use conjugate_gradients::RowNoise;
use passes::{Number, add};
use row_order::places_in;

pub(crate) use left_out_by_noise::LeftOutPlace;
pub(crate) use means::ColumnMeans;
pub(crate) use passes::{MergedNode, Passes, PathShare};
pub(crate) use solve::LeftOut;

/// Trees whose products one thread adds up; results depend on it, and not on the number of threads.
const BLOCK: usize = 8;

/// The parts of the trees that sums over them need.
pub(crate) struct Trees {
    passes: Vec<Passes>,
    n_rows: usize,
    lifetime: f64,
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
        Ok(Self { passes, n_rows: order.len(), lifetime })
    }

    /// The same with other trees in the places of some.
    pub(crate) fn with(&self, others: Vec<(usize, Passes)>) -> Self {
        let mut passes = self.passes.clone();
        for (tree, other) in others {
            passes[tree] = other;
        }
        Self { passes, ..*self }
    }

    /// By tree, the number of nodes, and by place in the common order whether a row has a leaf alone.
    pub(crate) fn sizes(&self) -> Vec<(usize, Vec<bool>)> {
        self.passes.iter().map(|passes| (passes.n_nodes(), passes.are_alone())).collect()
    }

    /// Something of each tree.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn map<T: Send>(&self, of: impl Fn(&Passes) -> T + Sync, run: &Run<'_>) -> Result<Vec<T>> {
        run.map(self.passes.len(), |i| Ok(of(&self.passes[i])))
    }
}

/// The system of some trees, a clock and a noise.
pub(crate) struct System<'a> {
    trees: &'a Trees,
    noise: RowNoise,
    /// What the clock spends between a node's parent and the node, by tree and the node's number in its passes.
    spans: Vec<Vec<f64>>,
    /// The prior variance of a row's value.
    variance: f64,
    run: &'a Run<'a>,
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
        let variance = clock(trees.lifetime);
        Ok(Self { trees, noise: RowNoise::new(noise_variance, weights), spans, variance, run })
    }

    pub(crate) fn trees(&self) -> &'a Trees {
        self.trees
    }

    pub(crate) fn n_trees(&self) -> usize {
        self.spans.len()
    }

    /// What the clock spends between a node's parent and the node, in one tree.
    pub(crate) fn span(&self, tree: usize, node: NodeId) -> f64 {
        self.spans[tree][self.trees.passes[tree].number(node.index())]
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
        let blocks = self.run.map_ranges(n_trees, BLOCK, |block| {
            let mut sum = vec![[T::default(); L]; self.trees.n_rows];
            let mut buffer = Vec::new();
            for i in block {
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
