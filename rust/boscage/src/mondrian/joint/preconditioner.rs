//! A preconditioner: a mean over a few trees of the inverses of their own systems.
//!
//! Trees have nearly the same large eigenvalues, which belong to coarse splits, and the system of one tree alone is solved by
//! two passes. Let each row have a value with noise. By belief propagation, the passes find the posterior means `mu` of the
//! tree's function at the rows. What the inverse makes of the values is the difference of each value and its `mu` over
//! the variance of the noise. Let `v` be the span of a node, `q` the precision of all that is known below the node,
//! and `m` the precision times the mean. For the node's parent, both count `w = 1 / (1 + v q)` times as much. Down the tree, a
//! node's mean is `w (mu_parent + v m)`.
//!
//! Trees differ, and to a tree what the others say of a row is noise. So the noise of a row of weight `w` is `s^2 / w` and
//! [`DIFFERENCE`] of the prior variance. Without the latter, tiny noise takes more steps than without a preconditioner.
//!
//! Systems are scaled as in `conjugate_gradients`: numbers are values times the roots of the weights.

use crate::error::Result;
use crate::mondrian::joint::System;
use crate::mondrian::joint::passes::add;

/// The most inverses that are averaged. More of them save few further steps.
const TREES: usize = 5;
/// Every so many trees, one inverse: of few trees each product with an inverse is a large part of a step.
const ONE_OF: usize = 5;
/// The share of the prior variance of a row's value in which trees are taken to differ.
const DIFFERENCE: f64 = 0.01;

/// The inverses of a few trees of a system.
pub(super) struct Preconditioner<'a> {
    system: &'a System<'a>,
    /// By row, 1 over the variance of the noise of a scaled number.
    precisions: Vec<f64>,
    /// By tree, the share of a node's precision that counts for its parent, by number.
    shares: Vec<Vec<f64>>,
}

impl<'a> Preconditioner<'a> {
    /// # Errors
    /// An interrupt.
    pub(super) fn new(system: &'a System<'a>) -> Result<Self> {
        let System { trees, noise, spans, variance, run } = system;
        let weight = |row: usize| noise.root(row).powi(2);
        let precision = |row| 1.0 / (noise.variance + DIFFERENCE * variance * weight(row));
        let precisions: Vec<f64> = (0..trees.n_rows).map(precision).collect();
        let of_rows: Vec<[f64; 1]> =
            precisions.iter().enumerate().map(|(row, precision)| [precision * weight(row)]).collect();
        let n_trees = spans.len().div_ceil(ONE_OF).min(TREES);
        let shares = run.map(n_trees, |i| Ok(trees.passes[i].shares(&spans[i], &of_rows)))?;
        Ok(Self { system, precisions, shares })
    }

    /// Its product with scaled numbers, times the number of its trees.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn product<const L: usize>(&self, numbers: &[[f64; L]]) -> Result<Vec<[f64; L]>> {
        let Self { system: System { trees, noise, spans, run, .. }, precisions, shares } = self;
        let mut values = numbers.to_vec();
        for (row, values) in values.iter_mut().enumerate() {
            *values = values.map(|value| noise.root(row) * precisions[row] * value);
        }
        let means =
            run.map(shares.len(), |i| Ok(trees.passes[i].posterior_means((&spans[i], &shares[i]), &values)))?;
        let n_trees = shares.len() as f64;
        let mut product: Vec<[f64; L]> =
            numbers.iter().map(|own| own.map(|number| n_trees * number)).collect();
        for means in means {
            for (row, (product, means)) in product.iter_mut().zip(&means).enumerate() {
                add(product, means, -noise.root(row));
            }
        }
        for (product, precision) in product.iter_mut().zip(precisions) {
            *product = product.map(|number| precision * number);
        }
        Ok(product)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::control::Run;
    use crate::data::{RowId, Rows};
    use crate::mondrian::forest::Batch;
    use crate::mondrian::forest::settings::MondrianSettings;
    use crate::mondrian::forest::storage::with_storage;
    use crate::mondrian::joint::Trees;
    use crate::mondrian::joint::conjugate_gradients::Products;
    use crate::mondrian::process::domain::Domain;
    use crate::mondrian::regression::regressor::MondrianRegressor;
    use crate::mondrian::regression::settings::RegressionSettings;
    use crate::random::keyed::Stream;

    const N: usize = 200;

    /// Trees on rows of which most lie in a square of a side, some of them twice.
    fn trees(n_estimators: usize, lifetime: f64, side: f64) -> Trees {
        let mut stream = Stream::new(4, 0);
        let near = |i: usize, unit: f64| if i.is_multiple_of(4) { unit } else { 0.3 + side * unit };
        let mut x: Vec<f64> = (0..2 * N).map(|i| near(i / 2, stream.unit())).collect();
        x.copy_within(0..8, 20);
        let y: Vec<f64> = x.chunks(2).map(|x| (9.0 * x[0]).sin() + x[1]).collect();
        let settings = MondrianSettings { n_estimators, lifetime, ..MondrianSettings::default() };
        let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], None).unwrap();
        let batch = Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: None, weights: None };
        let run = Run::default();
        let forest =
            MondrianRegressor::fit(settings, RegressionSettings::default(), domain, batch, &y, &run).unwrap();
        let order: Vec<RowId> = (0..N as RowId).collect();
        with_storage!(forest.forest.flushed(&run).unwrap(), storage => {
            Trees::new(&storage.trees, &order, lifetime, &run).unwrap()
        })
    }

    fn weights() -> Vec<f64> {
        (0..N).map(|i| 0.5 + (i % 5) as f64).collect()
    }

    fn numbers() -> Vec<[f64; 2]> {
        (0..N).map(|i| [(i as f64).sin(), (i % 7) as f64]).collect()
    }

    /// Of one tree it is the inverse of the system with the noise that is added.
    #[test]
    fn one_tree_is_inverted() {
        let (run, weights) = (Run::default(), weights());
        for lifetime in [f64::INFINITY, 2.0] {
            let trees = trees(1, lifetime, 0.01);
            for weights in [None, Some(&weights[..])] {
                let noise = 0.02;
                let clock = |time: f64| 1.0 - (-0.7 * time).exp();
                let system = System::new(&trees, clock, (noise, weights), &run).unwrap();
                let preconditioner = Preconditioner::new(&system).unwrap();
                let numbers = numbers();
                let solution = preconditioner.product(&numbers).unwrap();
                let product = |numbers: &[[f64; 2]]| system.product(numbers, &[]);
                let back = system.noise.scaled(&product, &solution).unwrap();
                for (row, number) in numbers.iter().enumerate() {
                    let more = DIFFERENCE * clock(lifetime) * weights.map_or(1.0, |weights| weights[row]);
                    for lane in 0..2 {
                        let back = back[row][lane] + (noise + more) * solution[row][lane];
                        assert!((back - number[lane]).abs() < 1e-9, "row {row}: {back} and {}", number[lane]);
                    }
                }
            }
        }
    }

    /// The solution is that of the system, without rows that are left out and for any number of threads, in fewer steps.
    #[test]
    fn it_saves_steps() {
        let row_weights = weights();
        let left_out = |row: usize, lane: usize| row % 9 == 3 + lane;
        for (side, rate, noise, weights) in
            [(0.01, 0.02, 1e-3, None), (0.01, 0.02, 1e-3, Some(&row_weights[..])), (0.7, 0.5, 1e-7, None)]
        {
            let trees = trees(30, f64::INFINITY, side);
            let found = [1, 4].map(|n_threads| {
                let run = Run { n_threads, ..Run::default() };
                let clock = |time: f64| 1.0 - (-rate * time).exp();
                let system = System::new(&trees, clock, (noise, weights), &run).unwrap();
                let preconditioner = Preconditioner::new(&system).unwrap();
                let near_inverse = |rest: &[[f64; 2]]| preconditioner.product(rest);
                let n_products = Cell::new(0);
                let product = |numbers: &[[f64; 2]]| {
                    n_products.set(n_products.get() + 1);
                    system.product(numbers, &[])
                };
                let solve = |near_inverse: Option<_>| {
                    n_products.set(0);
                    let products = Products { covariance: &product, near_inverse };
                    let found = system.noise.weights(products, &numbers(), &left_out, (1, 1e-10));
                    (found.unwrap().weights, n_products.get())
                };
                let (plain, plain_steps) = solve(None);
                let (solution, steps) = solve(Some(&near_inverse));
                assert!(3 * steps < 2 * plain_steps, "{steps} steps, and {plain_steps} without it");
                for (row, (own, plain)) in solution.iter().zip(&plain).enumerate() {
                    for lane in 0..2 {
                        assert!((own[lane] - plain[lane]).abs() <= 1e-5 * plain[lane].abs().max(1.0));
                        assert!(!left_out(row, lane) || own[lane] == 0.0);
                    }
                }
                solution
            });
            assert_eq!(found[0], found[1]);
        }
    }
}
