//! Many right-hand sides of one system: conjugate gradients in a block.
//!
//! Alone, every right-hand side meets the large eigenvalues of `A = K + s^2 I` anew. In a block (O'Leary 1980), every step
//! finds the best sums of the directions of all of them, so that 25 right-hand sides take about a quarter of the steps. This
//! is the form of Dubrulle (2001, "Retooling the method of block conjugate gradients"). Residuals are `Q C`, where `Q`
//! has orthonormal columns and `C` is a small matrix. A step with the directions `P` is
//!
//! `S = (P' A P)^-1`, `X += P S C`, `Q Z = Q - A P S` (which defines the new `Q`, and `Z`, an upper triangle),
//! `C = Z C`, `P = Q + P Z'`.
//!
//! `Z` is the Cholesky factor of the products of columns. A column that depends on those before it is 0 from then on.
//!
//! Products with `K` are computed in single precision, with twice as many numbers side by side, unless some row weighs more
//! than [`HEAVY`]. Their errors are some millionths of the largest terms, far below the tolerances in use; all else is in
//! double precision.

use std::ops::Range;

use crate::control::try_for_each_mut;
use crate::error::Result;
use crate::mondrian::joint::System;
use crate::mondrian::joint::passes::Number;
use crate::mondrian::joint::tiles::Tiles;
use crate::random::keyed::Stream;

/// Columns (at most) that are solved for together: the work for their products with each other grows with the square.
const WIDEST: usize = 32;
/// Columns whose products with `K` are computed at the same time.
const LANES: usize = 16;
/// Rows whose vectors one thread works on; results depend on it, and not on the number of threads.
const ROWS: usize = 512;
const STEPS: usize = 1000;
/// A weight of a row above which products are computed in double precision: the error of single precision grows with the
/// weights over the noise.
const HEAVY: f64 = 10.0;

/// The block's vectors at some rows, which follow each other: `width` numbers for each row.
struct Vectors {
    width: usize,
    solution: Vec<f64>,
    residual: Vec<f64>,
    direction: Vec<f64>,
    image: Vec<f64>,
    /// Products of columns of these vectors, for the part's rows.
    products: Tiles,
}

impl System<'_> {
    /// The rows' weights `(K + s^2 W^-1)^-1 y` for several columns of values `y`, until the residual of each column is less than
    /// a share of the column. `W` are the weights that rows came with, or 1. Values and weights are `n_rows x n_columns`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights_of_columns(
        &self,
        mut values: Vec<f64>,
        n_columns: usize,
        tolerance: f64,
    ) -> Result<Vec<f64>> {
        let heaviest = self.noise.roots.iter().flatten().fold(1.0, |most: f64, root| most.max(root * root));
        let solve = if heaviest > HEAVY { Self::solve_block::<f64> } else { Self::solve_block::<f32> };
        self.scale_rows(values.chunks_exact_mut(n_columns));
        let mut weights = vec![0.0; values.len()];
        let n_blocks = n_columns.div_ceil(WIDEST);
        for block in 0..n_blocks {
            let columns = block * n_columns / n_blocks..(block + 1) * n_columns / n_blocks;
            let parts = solve(self, &values, n_columns, &columns, tolerance)?;
            let rows = parts.iter().flat_map(|part| part.solution.chunks_exact(part.width));
            for (weights, row) in weights.chunks_exact_mut(n_columns).zip(rows) {
                weights[columns.clone()].copy_from_slice(&row[..columns.len()]);
            }
        }
        self.scale_rows(weights.chunks_exact_mut(n_columns));
        Ok(weights)
    }

    /// Multiplies the numbers of every row by the root of its weight.
    fn scale_rows<'a>(&self, rows: impl Iterator<Item = &'a mut [f64]>) {
        for (row, root) in rows.zip(self.noise.roots.as_deref().unwrap_or_default()) {
            for number in row {
                *number *= root;
            }
        }
    }

    /// The parts that hold the solution of some columns.
    fn solve_block<T: Number>(
        &self,
        values: &[f64],
        n_columns: usize,
        columns: &Range<usize>,
        tolerance: f64,
    ) -> Result<Vec<Vectors>> {
        let width = columns.len().next_multiple_of(LANES);
        let spans = self.spans.iter().map(|spans| spans.iter().map(|&span| T::nearest(span)).collect());
        let spans: Vec<Vec<T>> = spans.collect();
        let further = self.further_columns(&spans[0]);
        let rows = values.chunks(ROWS * n_columns).zip(further.chunks(ROWS));
        let mut parts: Vec<Vectors> =
            rows.map(|(rows, further)| Vectors::new(rows, n_columns, columns, further)).collect();
        self.on_parts(&mut parts, Vectors::multiply_residuals)?;
        let [mut rest, inverse] = total(&parts, width).factor();
        self.on_parts(&mut parts, |part| part.turn(&inverse, &Tiles::zero(width)))?;
        let enough: Vec<f64> = (0..columns.len()).map(|j| tolerance * rest.length(j)).collect();
        for _ in 0..STEPS {
            if enough.iter().enumerate().all(|(j, &enough)| rest.length(j) <= enough) {
                break;
            }
            for first in (0..width).step_by(LANES) {
                self.find_images(&spans, &mut parts, first)?;
            }
            self.on_parts(&mut parts, Vectors::multiply_images)?;
            let [_, root] = total(&parts, width).factor();
            let step = root.times(&root.transposed());
            let (forward, back) = (step.times(&rest), step.negative());
            self.on_parts(&mut parts, |part| part.step(&forward, &back))?;
            let [upper, inverse] = total(&parts, width).factor();
            let turn = upper.transposed();
            self.on_parts(&mut parts, |part| part.turn(&inverse, &turn))?;
            rest = upper.times(&rest);
        }
        Ok(parts)
    }

    /// Columns that have no values to explain, and take part because there is room: draws from a tree's prior, mostly, which
    /// lie where the large eigenvalues are. They are functions of the leaves, so that copies of a row do not differ in them.
    fn further_columns<T: Number>(&self, spans: &[T]) -> Vec<[T; LANES]> {
        let mut stream = Stream::new(0, 0);
        let mut noise = || std::array::from_fn(|_| T::nearest(f64::from(stream.unit() as f32 - 0.5)));
        let noise: Vec<[T; LANES]> = (0..self.trees.n_rows).map(|_| noise()).collect();
        let mut columns = vec![[T::default(); LANES]; self.trees.n_rows];
        self.trees.passes[0].add_product(spans, &noise, &mut columns, &mut Vec::new());
        self.noise.scale(&mut columns);
        columns
    }

    fn on_parts(&self, parts: &mut [Vectors], work: impl Fn(&mut Vectors) + Sync + Send) -> Result<()> {
        let context = || ();
        try_for_each_mut(self.run.n_threads, parts, context, |(), _, part| {
            work(part);
            Ok(())
        })
    }

    /// The images `(K + s^2 I) P` of the directions, of [`LANES`] columns; with weights of the rows, `W^1/2 K W^1/2` for `K`.
    fn find_images<T: Number>(&self, spans: &[Vec<T>], parts: &mut [Vectors], first: usize) -> Result<()> {
        let rows = parts.iter().flat_map(|part| part.direction.chunks_exact(part.width));
        let lanes = |row: &[f64]| std::array::from_fn(|lane| T::nearest(row[first + lane]));
        let mut directions: Vec<[T; LANES]> = rows.map(lanes).collect();
        self.noise.scale(&mut directions);
        let mut product = self.over_trees(|i, product, buffer| {
            self.trees.passes[i].add_product(&spans[i], &directions, product, buffer);
        })?;
        self.noise.scale(&mut product);
        let rows = parts.iter_mut().flat_map(|part| {
            part.image.chunks_exact_mut(part.width).zip(part.direction.chunks_exact(part.width))
        });
        for ((image, direction), product) in rows.zip(&product) {
            for (lane, product) in product.iter().enumerate() {
                image[first + lane] = product + self.noise.variance * direction[first + lane];
            }
        }
        Ok(())
    }
}

impl Vectors {
    /// A part whose solution is 0 so far. Each of its rows has `n_columns` values.
    fn new<T: Number>(
        rows: &[f64],
        n_columns: usize,
        columns: &Range<usize>,
        further: &[[T; LANES]],
    ) -> Self {
        let width = columns.len().next_multiple_of(LANES);
        let size = further.len() * width;
        let mut residual = Vec::with_capacity(size);
        for (row, further) in rows.chunks_exact(n_columns).zip(further) {
            residual.extend(&row[columns.clone()]);
            residual.extend(further[..width - columns.len()].iter().map(|&x| x.into()));
        }
        let zeros = vec![0.0; size];
        let (solution, direction, image) = (zeros.clone(), zeros.clone(), zeros);
        Self { width, solution, residual, direction, image, products: Tiles::zero(width) }
    }

    /// The products of directions with their images.
    fn multiply_images(&mut self) {
        self.products.set_products(&self.direction, &self.image);
    }

    /// The products of residuals with each other.
    fn multiply_residuals(&mut self) {
        self.products.set_products(&self.residual, &self.residual);
    }

    /// The solution moves by `P forward`, and residuals by `A P back`; then come their products.
    fn step(&mut self, forward: &Tiles, back: &Tiles) {
        forward.add_rows(&self.direction, &mut self.solution);
        back.add_rows(&self.image, &mut self.residual);
        self.multiply_residuals();
    }

    /// Residuals become orthonormal, `Q inverse`, and the directions `Q + P turn`.
    fn turn(&mut self, inverse: &Tiles, turn: &Tiles) {
        let Self { residual, direction, image, .. } = self;
        // The image is not needed any more.
        image.fill(0.0);
        inverse.add_rows(residual, image);
        residual.copy_from_slice(image);
        turn.add_rows(direction, image);
        std::mem::swap(direction, image);
    }
}

/// The sum of the parts' products.
fn total(parts: &[Vectors], width: usize) -> Tiles {
    let mut total = Tiles::zero(width);
    for part in parts {
        total.add(&part.products);
    }
    total
}
