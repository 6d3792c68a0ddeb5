//! Predictions of left-out rows for many noise variances, by one run of conjugate gradients.
//!
//! `K + s^2 I` has the same Krylov spaces for every `s^2`. So one run, for the smallest noise, gives the solutions for all
//! others (Jegerlehner 1996, arXiv hep-lat/9612014). Let `a_n` be the length of its step `n`, and let `b_n` be the factor with
//! which the old direction enters the new one (its *turn*). For a noise that is larger by `e`, the residual is `z_n` times that
//! of the smallest noise, where
//!
//! `z_(n+1) = z_n z_(n-1) a_(n-1) / (a_n b_n (z_(n-1) - z_n) + z_(n-1) a_(n-1) (1 + e a_n))`.
//!
//! Its step has the length `a_n z_(n+1) / z_n`, and its turn is `b_n (z_n / z_(n-1))^2`.
//!
//! Of all noises but the smallest only the predictions are needed: the products of `K` with their solutions, at the rows that
//! are left out. These follow from the products with the directions of the smallest noise, so a further noise costs a few
//! numbers for each left-out row. Larger noises are solved earlier. The run ends as soon as no smaller noise is asked for.

use crate::error::Result;
use crate::mondrian::joint::conjugate_gradients::{
    LeftOutOf, Product, RowNoise, STEPS, dot, ratio, turn_towards, unless_left_out,
};

/// A row that is left out, and the problem in which it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeftOutPlace {
    pub(crate) row: usize,
    pub(crate) problem: usize,
}

/// What is known of a noise.
struct Shifted {
    /// By how much it is larger than the smallest one.
    more: f64,
    /// Its `z_(n-1)` and `z_n`, by problem.
    before: Vec<f64>,
    now: Vec<f64>,
    /// Of each left-out row: the product of `K` with the direction, and the prediction.
    products: Vec<f64>,
    means: Vec<f64>,
}

impl RowNoise {
    /// Predictions of left-out rows in `L` problems, for noise variances from the largest to the smallest, which is that of
    /// `self`. `next` takes each one's number and predictions, until it returns false; `is_left_out` tells which rows are not in
    /// a problem.
    ///
    /// # Errors
    /// Those of `product`.
    pub(super) fn left_out_by_noise<const L: usize>(
        &self,
        product: Product<'_, L>,
        (targets, is_left_out): (&[[f64; L]], LeftOutOf<'_>),
        places: &[LeftOutPlace],
        (noises, tolerance): (&[f64], f64),
        next: &mut dyn FnMut(usize, &[f64]) -> bool,
    ) -> Result<()> {
        let weighs = unless_left_out(targets.len(), is_left_out);
        let masked = |(own, weighs): (&[f64; L], &[f64; L])| std::array::from_fn(|i| own[i] * weighs[i]);
        let mut rest: Vec<[f64; L]> = targets.iter().zip(&weighs).map(masked).collect();
        self.scale(&mut rest);
        let mut direction = rest.clone();
        let mut square = dot(&rest, &rest);
        let enough = square.map(|square| tolerance * tolerance * square);
        let (mut step_before, mut turn) = ([1.0; L], [0.0; L]);
        let mut image_before = vec![0.0; places.len()];
        let mut shifted: Vec<Shifted> =
            noises.iter().map(|noise| Shifted::new(noise - self.variance, L, places.len())).collect();
        let mut first = 0;
        for _ in 0..STEPS {
            let mut image = self.scaled(product, &direction)?;
            let of_place = |place: &LeftOutPlace| image[place.row][place.problem] / self.root(place.row);
            let here: Vec<f64> = places.iter().map(of_place).collect();
            self.add_noise(&mut image, &direction, &weighs);
            // A solved problem takes no further steps.
            let is_solved: [bool; L] = std::array::from_fn(|lane| square[lane] <= enough[lane]);
            let step = ratio(square, dot(&direction, &image));
            let step = std::array::from_fn(|lane| if is_solved[lane] { 0.0 } else { step[lane] });
            for shifted in &mut shifted[first..] {
                shifted.advance(places, (&here, &image_before), (&step, &step_before, &turn), &is_solved);
            }
            for (rest, image) in rest.iter_mut().zip(&image) {
                for lane in 0..L {
                    rest[lane] -= step[lane] * image[lane];
                }
            }
            let after = dot(&rest, &rest);
            turn = ratio(after, square);
            turn_towards(&mut direction, &rest, turn);
            (step_before, square, image_before) = (step, after, here);
            while first < shifted.len() && shifted[first].is_solved(&square, &enough) {
                if !next(first, &shifted[first].means) {
                    return Ok(());
                }
                first += 1;
            }
            if first == shifted.len() {
                break;
            }
        }
        Ok(())
    }
}

impl Shifted {
    fn new(more: f64, n_problems: usize, n_places: usize) -> Self {
        Self {
            more,
            before: vec![1.0; n_problems],
            now: vec![1.0; n_problems],
            products: vec![0.0; n_places],
            means: vec![0.0; n_places],
        }
    }

    fn is_solved(&self, square: &[f64], enough: &[f64]) -> bool {
        let each = self.now.iter().zip(square).zip(enough);
        each.into_iter().all(|((now, square), enough)| now * now * square <= *enough)
    }

    /// A step, given the smallest noise's step and turn, and products at the left-out rows.
    fn advance<const L: usize>(
        &mut self,
        places: &[LeftOutPlace],
        (here, before): (&[f64], &[f64]),
        (step, step_before, turn): (&[f64; L], &[f64; L], &[f64; L]),
        is_solved: &[bool; L],
    ) {
        let next: [f64; L] = std::array::from_fn(|lane| {
            let (before, now) = (self.before[lane], self.now[lane]);
            let (a, a_before) = (step[lane], step_before[lane]);
            let below = a * turn[lane] * (before - now) + before * a_before * (1.0 + self.more * a);
            if is_solved[lane] { now } else { now * before * a_before / below }
        });
        // In a solved problem nothing moves.
        let of_lane = |lane: usize| {
            if is_solved[lane] {
                return [0.0, 1.0, 0.0];
            }
            let (before, now) = (self.before[lane], self.now[lane]);
            [now, turn[lane] * (now / before).powi(2), step[lane] * next[lane] / now]
        };
        let factors: [[f64; 3]; L] = std::array::from_fn(of_lane);
        let numbers = self.products.iter_mut().zip(&mut self.means).zip(here.iter().zip(before));
        for (place, ((product, mean), (here, before))) in places.iter().zip(numbers) {
            let [now, turned, own_step] = factors[place.problem];
            // The product with what is left of the targets.
            let rest = here - turn[place.problem] * before;
            *product = now * rest + turned * *product;
            *mean += own_step * *product;
        }
        for lane in (0..L).filter(|&lane| !is_solved[lane]) {
            (self.before[lane], self.now[lane]) = (self.now[lane], next[lane]);
        }
    }
}
