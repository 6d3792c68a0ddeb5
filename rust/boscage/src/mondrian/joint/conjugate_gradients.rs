//! Conjugate gradients (Hestenes and Stiefel 1952) for `(K + s^2 W^-1) a = y`, for several `y` at once.
//!
//! The covariance `K` is known by its products. With weights `W` of the rows, the noise of a row of weight `w` has the variance
//! `s^2 / w`, as the mean of `w` rows has. The system is then solved for `b = W^-1/2 a`:
//! `(W^1/2 K W^1/2 + s^2 I) b = W^1/2 y` is as well conditioned as that of rows without weights.
//!
//! A matrix that comes near to the inverse (a preconditioner) saves steps: directions are then made of its products with what is
//! left of the values. Rows that are left out are 0 in both; the rows and columns of the others in a positive definite
//! matrix are positive definite, too.
//!
//! A step may leave more of the values than the one before. Where there are too many steps to take, their smoothed sequence
//! ([`Solved::smooth`]) leaves less than any of them, and never more than the values themselves.

use crate::error::Result;
use crate::mondrian::joint::passes::{Number, add};

pub(super) const STEPS: usize = 1000;
/// The step from which on steps are smoothed: most systems are solved before, and have not paid for it.
const LATE: usize = 500;

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

/// Weights of rows, and what they leave of the values, for `L` problems.
#[derive(Clone)]
pub(crate) struct Solved<const L: usize> {
    /// In the common order.
    pub(crate) weights: Vec<[f64; L]>,
    pub(super) rest: Vec<[f64; L]>,
    /// The norm of what is left as a share of that of the values: the largest of all problems, or 0 if all are solved.
    pub(crate) unexplained: f64,
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
    ) -> Result<Solved<L>> {
        let weighs = unless_left_out(targets.len(), left_out);
        // Squares of the largest targets would overflow.
        let largest = targets.iter().flatten().fold(0.0, |most: f64, y| most.max(y.abs()));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let rest = targets
            .iter()
            .zip(&weighs)
            .map(|(y, weighs)| std::array::from_fn(|lane| weighs[lane] * (y[lane] / unit)));
        let mut solved = self.solve(products, rest.collect(), &weighs, tolerance)?;
        let share = unit / n_shares as f64;
        for weight in solved.weights.as_flattened_mut() {
            *weight *= share;
        }
        Ok(solved)
    }

    /// The solution of `(K + s^2 W^-1) weights = values` for the rows that weigh something.
    ///
    /// # Errors
    /// Those of `products`.
    pub(super) fn solve<const L: usize>(
        &self,
        products: Products<'_, L>,
        mut values: Vec<[f64; L]>,
        weighs: &[[f64; L]],
        tolerance: f64,
    ) -> Result<Solved<L>> {
        self.scale(&mut values);
        let whole = dot(&values, &values);
        let enough = whole.map(|square| tolerance * tolerance * square);
        let mut solved = Solved { weights: vec![[0.0; L]; values.len()], rest: values, unexplained: 0.0 };
        let mut smoothed = solved.clone();
        let mut direction = vec![[0.0; L]; solved.rest.len()];
        let mut product = [0.0; L];
        for step in 0.. {
            let square = dot(&solved.rest, &solved.rest);
            if square.iter().zip(&enough).all(|(square, enough)| square <= enough) {
                break;
            }
            if step >= LATE {
                smoothed.smooth(&solved);
            }
            if step == STEPS {
                solved = smoothed;
                solved.unexplained = solved.share_of(whole, enough);
                break;
            }
            let mut towards = products.near_inverse.map(|of| of(&solved.rest)).transpose()?;
            if let Some(towards) = &mut towards {
                multiply(towards, weighs);
            }
            let towards = towards.as_ref().unwrap_or(&solved.rest);
            let next = dot(&solved.rest, towards);
            turn_towards(&mut direction, towards, ratio(next, product));
            product = next;
            let mut image = self.scaled(products.covariance, &direction)?;
            self.add_noise(&mut image, &direction, weighs);
            solved.step(ratio(product, dot(&direction, &image)), &direction, &image);
        }
        self.scale(&mut solved.weights);
        for (rest, root) in solved.rest.iter_mut().zip(self.roots.as_deref().unwrap_or_default()) {
            let inverse = 1.0 / root;
            for number in rest {
                *number *= inverse;
            }
        }
        Ok(solved)
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

impl<const L: usize> Solved<L> {
    /// Goes so many times a direction, of which the system makes the image.
    fn step(&mut self, steps: [f64; L], direction: &[[f64; L]], image: &[[f64; L]]) {
        for row in 0..self.rest.len() {
            for lane in 0..L {
                self.weights[row][lane] += steps[lane] * direction[row][lane];
                self.rest[row][lane] -= steps[lane] * image[row][lane];
            }
        }
    }

    /// Goes towards what a later step has found, as far as leaves the least (Weiss 1996: residual smoothing).
    fn smooth(&mut self, later: &Self) {
        let mut length = [0.0; L];
        let mut along = [0.0; L];
        for (own, later) in self.rest.iter().zip(&later.rest) {
            for lane in 0..L {
                let difference = own[lane] - later[lane];
                length[lane] += difference * difference;
                along[lane] += difference * own[lane];
            }
        }
        let share = ratio(along, length);
        for (own, later) in [(&mut self.weights, &later.weights), (&mut self.rest, &later.rest)] {
            for (own, later) in own.iter_mut().zip(later) {
                *own = std::array::from_fn(|lane| own[lane] + share[lane] * (later[lane] - own[lane]));
            }
        }
    }

    /// The largest norm of what is left as a share of the whole, of problems in which it is not small enough.
    fn share_of(&self, whole: [f64; L], enough: [f64; L]) -> f64 {
        let square = dot(&self.rest, &self.rest);
        let of_lane =
            |lane: usize| if square[lane] <= enough[lane] { 0.0 } else { square[lane] / whole[lane] };
        (0..L).map(of_lane).fold(0.0, f64::max).sqrt()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of ones in a system whose eigenvalues are spread over so many decades.
    fn solve(decades: f64) -> (Vec<f64>, Solved<2>) {
        const N: usize = 3000;
        let eigenvalues: Vec<f64> =
            (0..N).map(|i| 10f64.powf(-decades * i as f64 / (N - 1) as f64)).collect();
        let covariance = |numbers: &[[f64; 2]]| {
            let products = numbers.iter().zip(&eigenvalues);
            Ok(products.map(|(numbers, eigenvalue)| numbers.map(|number| eigenvalue * number)).collect())
        };
        let products = Products { covariance: &covariance, near_inverse: None };
        let noise = RowNoise::new(0.0, None);
        // The second problem has no targets.
        let solved = noise.weights(products, &vec![[1.0, 0.0]; N], &|_, _| false, (1, 1e-8)).unwrap();
        (eigenvalues, solved)
    }

    #[test]
    fn too_many_steps_leave_less_than_the_values() {
        let (eigenvalues, solved) = solve(12.0);
        let left = |(weights, eigenvalue): (&[f64; 2], &f64)| (1.0 - eigenvalue * weights[0]).powi(2);
        let left: f64 = solved.weights.iter().zip(&eigenvalues).map(left).sum();
        let left = (left / eigenvalues.len() as f64).sqrt();
        assert!(left < 0.9, "{left} are left");
        assert!((solved.unexplained - left).abs() < 1e-6 * left, "{} were told", solved.unexplained);
        assert!(solved.weights.iter().all(|weights| weights[1] == 0.0));
    }

    #[test]
    fn what_is_solved_leaves_nothing_to_tell() {
        let (eigenvalues, solved) = solve(3.0);
        assert_eq!(solved.unexplained, 0.0);
        for (weights, eigenvalue) in solved.weights.iter().zip(&eigenvalues) {
            assert!((eigenvalue * weights[0] - 1.0).abs() < 1e-5);
        }
    }
}
