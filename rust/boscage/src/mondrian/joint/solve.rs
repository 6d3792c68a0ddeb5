//! The solutions of systems: a few right-hand sides side by side, out of which rows may be left.

use crate::error::Result;
use crate::mondrian::joint::System;
use crate::mondrian::joint::conjugate_gradients::{Products, Solved, multiply};
use crate::mondrian::joint::passes::{MergedNode, PathShare};
use crate::mondrian::joint::preconditioner::Preconditioner;

/// Problems in which rows are left out: each is about the other rows, in trees that do not hold the row.
#[derive(Debug, Clone)]
pub(crate) struct LeftOut<const L: usize> {
    /// For every problem, the place of the row that it lacks.
    pub(crate) places: [Option<usize>; L],
    /// By tree, the splits that are leaves without the row of a problem.
    pub(crate) merged: Vec<Vec<MergedNode>>,
}

impl System<'_> {
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
    ) -> Result<Solved<L>> {
        let product = |weights: &[[f64; L]]| self.product(weights, &[]);
        let preconditioner = Preconditioner::new(self)?;
        let near_inverse = |rest: &[[f64; L]]| preconditioner.product(rest);
        let products = Products { covariance: &product, near_inverse: Some(&near_inverse) };
        self.noise.weights(products, targets, &left_out, (self.n_trees(), tolerance))
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
        multiply(&mut covariances, &weighs);
        let product = |weights: &[[f64; L]]| self.product(weights, &left_out.merged);
        // Without a preconditioner, so that classifiers in older files keep their probabilities.
        let products = Products { covariance: &product, near_inverse: None };
        let solved = self.noise.solve(products, covariances, &weighs, tolerance)?;
        Ok([solved.weights, solved.rest])
    }
}
