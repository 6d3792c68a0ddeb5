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
//! (Hestenes and Stiefel 1952) solve the system with some dozens of such products. They solve `L` systems at
//! once, whose numbers lie side by side in memory. Many right-hand sides of one system are solved in a block
//! (`block`), with fewer products for all of them. Rows are numbered in a canonical order (`row_order`), so that
//! sums do not depend on the order of arrival.
//!
//! With weights `W` of the rows, the noise of a row of weight `w` has the variance `s^2 / w`, as the mean of `w` rows has. The
//! system is then solved for `b = W^-1/2 a`: `(W^1/2 K W^1/2 + s^2 I) b = W^1/2 y` is as well conditioned as that of rows
//! without weights.

mod block;
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
use passes::{Number, Passes, add};
use row_order::places_in;

pub(crate) use means::ColumnMeans;
pub(crate) use passes::{MergedNode, PathShare};

/// Trees whose products one thread adds up; results depend on it, and not on the number of threads.
const BLOCK: usize = 8;
const ITERATIONS: usize = 1000;

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
}

/// The system of some trees, a clock and a noise.
pub(crate) struct System<'a> {
    trees: &'a Trees,
    noise_variance: f64,
    /// The square roots of the rows' weights in the common order, unless all are 1.
    roots: Option<Vec<f64>>,
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
        let roots = weights.map(|weights| weights.iter().map(|weight| weight.sqrt()).collect());
        Ok(Self { trees, noise_variance, roots, spans, run })
    }

    pub(crate) fn n_trees(&self) -> usize {
        self.spans.len()
    }

    /// What the clock spends between a node's parent and the node, in one tree.
    pub(crate) fn span(&self, tree: usize, node: NodeId) -> f64 {
        self.spans[tree][self.trees.passes[tree].number(node.index())]
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
        targets: &[[f64; L]],
        left_out: impl Fn(usize, usize) -> bool,
        tolerance: f64,
    ) -> Result<Vec<[f64; L]>> {
        let weighs: Vec<[f64; L]> = (0..targets.len())
            .map(|row| std::array::from_fn(|lane| if left_out(row, lane) { 0.0 } else { 1.0 }))
            .collect();
        // Squares of the largest targets would overflow.
        let largest = targets.iter().flatten().fold(0.0, |most: f64, y| most.max(y.abs()));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let rest = targets
            .iter()
            .zip(&weighs)
            .map(|(y, weighs)| std::array::from_fn(|lane| weighs[lane] * (y[lane] / unit)));
        let weights = self.solve(&mut rest.collect::<Vec<_>>(), &weighs, &[], tolerance)?;
        let share = unit / self.trees.passes.len() as f64;
        Ok(weights.into_iter().map(|weights| weights.map(|weight| share * weight)).collect())
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
        let weights = self.solve(&mut covariances, &weighs, &left_out.merged, tolerance)?;
        Ok([weights, covariances])
    }

    /// The solution of `(K + s^2 I) weights = rest` for the rows that weigh something, in trees some of whose splits are
    /// leaves (or none of them). `rest` becomes what the weights leave of it.
    fn solve<const L: usize>(
        &self,
        rest: &mut [[f64; L]],
        weighs: &[[f64; L]],
        merged: &[Vec<MergedNode>],
        tolerance: f64,
    ) -> Result<Vec<[f64; L]>> {
        let n = rest.len();
        let mut weights = vec![[0.0; L]; n];
        self.scale(rest, |root| root);
        let mut direction = rest.to_vec();
        let mut square = dot(rest, rest);
        let enough = square.map(|square| tolerance * tolerance * square);
        // A solved problem takes no further steps.
        let ratio = |a: [f64; L], b: [f64; L]| -> [f64; L] {
            std::array::from_fn(|lane| if b[lane] > 0.0 { a[lane] / b[lane] } else { 0.0 })
        };
        for _ in 0..ITERATIONS {
            if square.iter().zip(&enough).all(|(square, enough)| square <= enough) {
                break;
            }
            let mut image = self.scaled_product(&direction, merged)?;
            for ((image, direction), weighs) in image.iter_mut().zip(&direction).zip(weighs) {
                add(image, direction, self.noise_variance);
                *image = std::array::from_fn(|lane| image[lane] * weighs[lane]);
            }
            let step = ratio(square, dot(&direction, &image));
            for row in 0..n {
                for lane in 0..L {
                    weights[row][lane] += step[lane] * direction[row][lane];
                    rest[row][lane] -= step[lane] * image[row][lane];
                }
            }
            let next = dot(rest, rest);
            let turn = ratio(next, square);
            for (direction, rest) in direction.iter_mut().zip(&*rest) {
                *direction = std::array::from_fn(|lane| rest[lane] + turn[lane] * direction[lane]);
            }
            square = next;
        }
        self.scale(&mut weights, |root| root);
        self.scale(rest, |root| 1.0 / root);
        Ok(weights)
    }

    /// `W^1/2 K W^1/2` times numbers.
    fn scaled_product<const L: usize>(
        &self,
        numbers: &[[f64; L]],
        merged: &[Vec<MergedNode>],
    ) -> Result<Vec<[f64; L]>> {
        if self.roots.is_none() {
            return self.product(numbers, merged);
        }
        let mut numbers = numbers.to_vec();
        self.scale(&mut numbers, |root| root);
        let mut product = self.product(&numbers, merged)?;
        self.scale(&mut product, |root| root);
        Ok(product)
    }

    /// Multiplies the numbers of every row by a function of the root of its weight, which takes 1 to 1.
    fn scale<T: Number, const L: usize>(&self, numbers: &mut [[T; L]], factor: impl Fn(f64) -> f64) {
        for (own, &root) in numbers.iter_mut().zip(self.roots.as_deref().unwrap_or_default()) {
            let factor = T::nearest(factor(root));
            *own = own.map(|number| factor * number);
        }
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

fn dot<const L: usize>(a: &[[f64; L]], b: &[[f64; L]]) -> [f64; L] {
    let mut sums = [0.0; L];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..L {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums
}
