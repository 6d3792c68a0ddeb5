//! Conjugate gradients (Hestenes and Stiefel 1952) for `(K + s^2 W^-1) a = y`, for several `y` at once.
//!
//! The covariance `K` is known by its products. With weights `W` of the rows, the noise of a row of weight `w` has the variance
//! `s^2 / w`, as the mean of `w` rows has. The system is then solved for `b = W^-1/2 a`:
//! `(W^1/2 K W^1/2 + s^2 I) b = W^1/2 y` is as well conditioned as that of rows without weights.
//!
//! A matrix that comes near to the inverse (a preconditioner) saves steps: directions are then made of its products with what is
//! left of the values. Rows that are left out are 0 in both; the rows and columns of the others in a positive definite
//! matrix are positive definite, too.

use crate::error::Result;
use crate::mondrian::joint::passes::{Number, add};

pub(super) const ITERATIONS: usize = 1000;

/// The products of a matrix with the numbers of `L` problems. A pointer, so that what calls it is compiled once for each `L`
/// instead of once for each covariance; a product takes much longer than the call.
pub(super) type Product<'a, const L: usize> = &'a dyn Fn(&[[f64; L]]) -> Result<Vec<[f64; L]>>;

/// The products that solve a system.
#[derive(Clone, Copy)]
pub(super) struct Products<'a, const L: usize> {
    /// Those with `K`.
    pub(super) covariance: Product<'a, L>,
    /// Those with a matrix near to a multiple of the inverse of `W^1/2 K W^1/2 + s^2 I`, if there is one.
    pub(super) near_inverse: Option<Product<'a, L>>,
}

/// Whether a row, given first, is left out of a problem.
pub(super) type LeftOutOf<'a> = &'a dyn Fn(usize, usize) -> bool;

/// The variance of the noise of the rows' values.
pub(super) struct RowNoise {
    /// That of a row of weight 1.
    pub(super) variance: f64,
    /// The square roots of the rows' weights in the common order, unless all are 1.
    pub(super) roots: Option<Vec<f64>>,
}

impl RowNoise {
    pub(super) fn new(variance: f64, weights: Option<&[f64]>) -> Self {
        let roots = weights.map(|weights| weights.iter().map(|weight| weight.sqrt()).collect());
        Self { variance, roots }
    }

    /// Each of so many equal shares of the rows' weights in the common order, as `targets` are, for `L` problems: rows that are
    /// left out of one weigh nothing in it. Until what is left of the targets is less than `tolerance` of them.
    ///
    /// # Errors
    /// Those of `products`.
    pub(super) fn weights<const L: usize>(
        &self,
        products: Products<'_, L>,
        targets: &[[f64; L]],
        left_out: LeftOutOf<'_>,
        (n_shares, tolerance): (usize, f64),
    ) -> Result<Vec<[f64; L]>> {
        let weighs = unless_left_out(targets.len(), left_out);
        // Squares of the largest targets would overflow.
        let largest = targets.iter().flatten().fold(0.0, |most: f64, y| most.max(y.abs()));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let rest = targets
            .iter()
            .zip(&weighs)
            .map(|(y, weighs)| std::array::from_fn(|lane| weighs[lane] * (y[lane] / unit)));
        let weights = self.solve(products, &mut rest.collect::<Vec<_>>(), &weighs, tolerance)?;
        let share = unit / n_shares as f64;
        Ok(weights.into_iter().map(|weights| weights.map(|weight| share * weight)).collect())
    }

    /// The solution of `(K + s^2 W^-1) weights = rest` for the rows that weigh something. `rest` becomes what the weights
    /// leave of it.
    ///
    /// # Errors
    /// Those of `products`.
    pub(super) fn solve<const L: usize>(
        &self,
        products: Products<'_, L>,
        rest: &mut [[f64; L]],
        weighs: &[[f64; L]],
        tolerance: f64,
    ) -> Result<Vec<[f64; L]>> {
        let n = rest.len();
        let mut weights = vec![[0.0; L]; n];
        self.scale(rest);
        let mut direction = vec![[0.0; L]; n];
        let mut product = [0.0; L];
        let enough = dot(rest, rest).map(|square| tolerance * tolerance * square);
        for _ in 0..ITERATIONS {
            let square = dot(rest, rest);
            if square.iter().zip(&enough).all(|(square, enough)| square <= enough) {
                break;
            }
            let next = match products.near_inverse {
                None => {
                    turn_towards(&mut direction, rest, ratio(square, product));
                    square
                }
                Some(near_inverse) => {
                    let mut towards = near_inverse(rest)?;
                    multiply(&mut towards, weighs);
                    let next = dot(rest, &towards);
                    turn_towards(&mut direction, &towards, ratio(next, product));
                    next
                }
            };
            product = next;
            let mut image = self.scaled(products.covariance, &direction)?;
            self.add_noise(&mut image, &direction, weighs);
            let step = ratio(product, dot(&direction, &image));
            for row in 0..n {
                for lane in 0..L {
                    weights[row][lane] += step[lane] * direction[row][lane];
                    rest[row][lane] -= step[lane] * image[row][lane];
                }
            }
        }
        self.scale(&mut weights);
        for (rest, root) in rest.iter_mut().zip(self.roots.as_deref().unwrap_or_default()) {
            let inverse = 1.0 / root;
            for number in rest {
                *number *= inverse;
            }
        }
        Ok(weights)
    }

    /// `W^1/2 K W^1/2` times numbers.
    pub(super) fn scaled<const L: usize>(
        &self,
        product: Product<'_, L>,
        numbers: &[[f64; L]],
    ) -> Result<Vec<[f64; L]>> {
        if self.roots.is_none() {
            return product(numbers);
        }
        let mut numbers = numbers.to_vec();
        self.scale(&mut numbers);
        let mut product = product(&numbers)?;
        self.scale(&mut product);
        Ok(product)
    }

    /// Makes a product with `K`, which is scaled, that of the system, of the rows that weigh something.
    pub(super) fn add_noise<const L: usize>(
        &self,
        image: &mut [[f64; L]],
        direction: &[[f64; L]],
        weighs: &[[f64; L]],
    ) {
        for (image, direction) in image.iter_mut().zip(direction) {
            add(image, direction, self.variance);
        }
        multiply(image, weighs);
    }

    /// The square root of a row's weight.
    pub(super) fn root(&self, row: usize) -> f64 {
        self.roots.as_ref().map_or(1.0, |roots| roots[row])
    }

    /// Multiplies the numbers of every row by the root of its weight.
    pub(super) fn scale<T: Number, const L: usize>(&self, numbers: &mut [[T; L]]) {
        for (own, &root) in numbers.iter_mut().zip(self.roots.as_deref().unwrap_or_default()) {
            let root = T::nearest(root);
            for number in own {
                *number = root * *number;
            }
        }
    }
}

/// 0 for each row that is left out of a problem, 1 for the others.
pub(super) fn unless_left_out<const L: usize>(n_rows: usize, left_out: LeftOutOf<'_>) -> Vec<[f64; L]> {
    let of_row = |row| std::array::from_fn(|lane| if left_out(row, lane) { 0.0 } else { 1.0 });
    (0..n_rows).map(of_row).collect()
}

/// Multiplies numbers by others, one by one.
pub(super) fn multiply<const L: usize>(numbers: &mut [[f64; L]], others: &[[f64; L]]) {
    for (numbers, others) in numbers.iter_mut().zip(others) {
        *numbers = std::array::from_fn(|lane| numbers[lane] * others[lane]);
    }
}

/// The next direction of every problem: towards the solution, and a multiple of the direction before.
pub(super) fn turn_towards<const L: usize>(direction: &mut [[f64; L]], towards: &[[f64; L]], turn: [f64; L]) {
    for (direction, towards) in direction.iter_mut().zip(towards) {
        *direction = std::array::from_fn(|lane| towards[lane] + turn[lane] * direction[lane]);
    }
}

/// Ratios of problems; none, where a problem is solved and takes no further steps.
pub(super) fn ratio<const L: usize>(a: [f64; L], b: [f64; L]) -> [f64; L] {
    std::array::from_fn(|lane| if b[lane] > 0.0 { a[lane] / b[lane] } else { 0.0 })
}

pub(super) fn dot<const L: usize>(a: &[[f64; L]], b: &[[f64; L]]) -> [f64; L] {
    let mut sums = [0.0; L];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..L {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums
}
