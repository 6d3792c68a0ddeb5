//! The covariance with the exponential clock of classification.
//!
//! With `v(t) = 1 - exp(-g t)` it is `k(d) = g / (g + d) (1 - exp(-(g + d) lifetime))`.

use crate::mondrian::joint::limit::Covariance;

/// For a rate `g` of the clock and a lifetime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExponentialCovariance {
    rate: f64,
    lifetime: f64,
}

impl ExponentialCovariance {
    pub(crate) fn new(rate: f64, lifetime: f64) -> Self {
        // Without any rate there is no distance either, and their quotient would be no number.
        Self { rate: rate.max(f64::MIN_POSITIVE), lifetime }
    }

    fn of(&self, distance: f64) -> f64 {
        let both = self.rate + distance;
        let unending = self.rate / both;
        if self.lifetime == f64::INFINITY { unending } else { -unending * libm::expm1(-both * self.lifetime) }
    }
}

impl Covariance for ExponentialCovariance {
    fn of_itself(&self) -> f64 {
        self.of(0.0)
    }

    fn replace(&self, distances: &mut [f64]) {
        for distance in distances {
            *distance = self.of(*distance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integral of `v'(t) exp(-t d)`, by a fine rule of midpoints.
    #[test]
    fn covariance_is_the_integral() {
        for lifetime in [f64::INFINITY, 2.5, 0.01] {
            for (rate, distance) in [(0.5, 0.0), (0.5, 3.0), (4.0, 0.2), (0.05, 100.0)] {
                let end = lifetime.min(50.0 / (rate + distance));
                let n = 100_000;
                let at = |i: i32| (-(rate + distance) * end * (f64::from(i) + 0.5) / f64::from(n)).exp();
                let expected = rate * end / f64::from(n) * (0..n).map(at).sum::<f64>();
                let covariance = ExponentialCovariance::new(rate, lifetime);
                let mut found = [distance, f64::INFINITY];
                covariance.replace(&mut found);
                assert!((found[0] / expected - 1.0).abs() < 1e-6, "{} and {expected}", found[0]);
                assert_eq!(found[1], 0.0);
                assert!(distance > 0.0 || found[0] == covariance.of_itself());
            }
        }
        assert_eq!(ExponentialCovariance::new(0.0, f64::INFINITY).of_itself(), 1.0);
    }
}
