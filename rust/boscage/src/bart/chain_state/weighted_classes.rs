//! Two classes of rows with weights: a row of weight `w`, a whole number, counts as `w` equal rows.
//!
//! So it has `w` latent numbers (Albert and Chib 1993). All that trees see is their mean, with `w` times the precision of one.
//!
//! Weights that are not whole are refused. Their likelihood `F^w` is a series whose terms are latent numbers of both classes,
//! but a row that fits badly then has about `1 / F` of them, which hold the sum of trees where it is: chains do not mix.

use crate::bart::leaves::weighted_normal::WeightedNormal;
use crate::bart::response::{latent_residual, log_probability};
use crate::control::Control;
use crate::error::Result;
use crate::random::keyed::Stream;
use crate::validate::check;

/// The classes and the weights of rows, and the constant that is added to the sum of trees.
#[derive(Debug, Clone)]
pub(crate) struct WeightedClasses {
    positive: Vec<bool>,
    weights: Vec<u32>,
    offset: f64,
}

impl WeightedClasses {
    /// # Errors
    /// A weight that is not a whole number from 1 to 65,536.
    pub(crate) fn new(positive: Vec<bool>, weights: &[f64], offset: f64) -> Result<Self> {
        const MOST: f64 = 65_536.0;
        let expected = "a whole number from 1 to 65536 if there are two classes (multiply and round)";
        for weight in weights {
            let is_right = weight.fract() == 0.0 && (1.0..=MOST).contains(weight);
            check("sample_weight", is_right, expected, weight)?;
        }
        Ok(Self { positive, weights: weights.iter().map(|&weight| weight as u32).collect(), offset })
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.positive.len()
    }

    /// Draws the latent numbers of all rows given the sums of trees. Targets become their means, and weights their numbers.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn draw(
        &self,
        model: &mut WeightedNormal,
        sums: &[f64],
        stream: &mut Stream,
        control: &Control,
    ) -> Result<()> {
        for (row, &sum) in sums.iter().enumerate() {
            control.check()?;
            let (positive, weight) = (self.positive[row], self.weights[row]);
            let residuals = (0..weight).map(|_| latent_residual(positive, self.offset + sum, stream));
            model.targets[row] = sum + residuals.sum::<f64>() / f64::from(weight);
            model.weights[row] = f64::from(weight);
        }
        Ok(())
    }

    /// Logarithm of the likelihood of the classes.
    pub(crate) fn log_likelihood(&self, sums: &[f64]) -> f64 {
        let rows = sums.iter().zip(&self.weights).zip(&self.positive);
        rows.map(|((sum, &weight), &positive)| {
            f64::from(weight) * log_probability(positive, self.offset + sum)
        })
        .sum()
    }
}
