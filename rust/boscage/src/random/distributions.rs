//! Draws from the distributions that the models use, the same on every platform.

use crate::random::keyed::Stream;

/// A standard normal draw (Marsaglia's polar method).
pub(crate) fn normal(stream: &mut Stream) -> f64 {
    loop {
        let (u, v) = (2.0 * stream.unit() - 1.0, 2.0 * stream.unit() - 1.0);
        let s = u * u + v * v;
        if s > 0.0 && s < 1.0 {
            return u * (-2.0 * libm::log(s) / s).sqrt();
        }
    }
}

/// A draw from the gamma distribution of scale 1 and a shape of at least one half (Marsaglia and Tsang 2000).
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    if shape < 1.0 {
        let u = 1.0 - stream.unit();
        return gamma(shape + 1.0, stream) * libm::pow(u, 1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(stream);
        let v = 1.0 + c * x;
        if v > 0.0 {
            let v = v * v * v;
            let u = 1.0 - stream.unit();
            if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }
}

impl Stream {
    /// A standard normal draw.
    pub fn normal(&mut self) -> f64 {
        normal(self)
    }

    /// The logarithm of a draw from the gamma distribution of this shape and scale 1. The draw itself may be
    /// too small for a floating-point number.
    pub fn log_gamma(&mut self, shape: f64) -> f64 {
        if shape >= 1.0 {
            return libm::log(gamma(shape, self));
        }
        let log_u = libm::log(1.0 - self.unit());
        libm::log(gamma(shape + 1.0, self)) + log_u / shape
    }
}

/// The logarithm of an exponential draw whose rate is given by its logarithm.
pub(crate) fn log_exponential(log_rate: f64, stream: &mut Stream) -> f64 {
    log_exponential_of(log_rate, stream.unit())
}

/// [`log_exponential`] computed from a given uniform draw.
pub(crate) fn log_exponential_of(log_rate: f64, u: f64) -> f64 {
    libm::log(-libm::log(1.0 - u)) - log_rate
}

/// A draw from the chi-square distribution.
pub(crate) fn chi_square(df: f64, stream: &mut Stream) -> f64 {
    2.0 * gamma(0.5 * df, stream)
}

/// A standard normal draw, given that it is above `low` (Robert 1995).
pub(crate) fn normal_above(low: f64, stream: &mut Stream) -> f64 {
    if low <= 0.0 {
        loop {
            let x = normal(stream);
            if x > low {
                return x;
            }
        }
    }
    let rate = 0.5 * (low + (low * low + 4.0).sqrt());
    loop {
        let x = low - libm::log(1.0 - stream.unit()) / rate;
        if stream.unit() < libm::exp(-0.5 * (x - rate) * (x - rate)) {
            return x;
        }
    }
}

/// A seed for another generator.
pub(crate) fn seed(stream: &mut Stream) -> u64 {
    (stream.unit() * (1u64 << 53) as f64) as u64
}

/// True with the probability whose logarithm is given; always true if that is at least zero.
pub(crate) fn accept(log_ratio: f64, stream: &mut Stream) -> bool {
    libm::log(1.0 - stream.unit()) < log_ratio
}

/// An index drawn by weight; weights and their sum are given by their logarithms.
pub(crate) fn draw_by_weight(logs: &[f64], log_total: f64, stream: &mut Stream) -> usize {
    let mut rest = stream.unit();
    let drawn = logs.iter().position(|log| {
        rest -= libm::exp(log - log_total);
        rest < 0.0
    });
    drawn.unwrap_or(logs.len() - 1)
}

/// `n` independent draws of an index by weight, in ascending order.
pub(crate) fn multinomial(weights: &[f64], n: usize, stream: &mut Stream) -> Vec<u32> {
    let mut points: Vec<f64> = (0..n).map(|_| stream.unit()).collect();
    points.sort_unstable_by(f64::total_cmp);
    inverse(weights, points.into_iter())
}

/// The index at which each of some ascending points in `[0, 1)` falls, by the cumulative sum of weights that
/// sum to one.
pub(crate) fn inverse(weights: &[f64], points: impl Iterator<Item = f64>) -> Vec<u32> {
    // Rounding may leave the sum of weights below the last point.
    let last = weights.iter().rposition(|&w| w > 0.0).expect("some weight is positive");
    let (mut i, mut sum) = (0, weights[0]);
    points
        .map(|point| {
            while point >= sum && i < last {
                i += 1;
                sum += weights[i];
            }
            i as u32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::special_functions::{normal_cdf, regularised_gamma};

    /// Kolmogorov's statistic of draws. It exceeds 2.1 with probability 3 in 10,000 in the limit.
    fn check(mut draws: Vec<f64>, cdf: impl Fn(f64) -> f64) {
        draws.sort_unstable_by(f64::total_cmp);
        let n = draws.len() as f64;
        let off = draws.iter().enumerate().map(|(i, &x)| (cdf(x) - (i as f64 + 0.5) / n).abs());
        let worst = off.fold(0.0, f64::max) * n.sqrt();
        assert!(worst < 2.1, "{worst}");
    }

    #[test]
    fn draws_follow_their_laws() {
        let mut stream = Stream::new(4, 0);
        check((0..100_000).map(|_| normal(&mut stream)).collect(), normal_cdf);
        for df in [1.0, 3.0, 50.0] {
            let draws = (0..100_000).map(|_| chi_square(df, &mut stream)).collect();
            check(draws, |x| regularised_gamma(0.5 * df, 0.5 * x));
        }
        for shape in [0.02, 0.7, 5.0] {
            let draws = (0..100_000).map(|_| stream.log_gamma(shape)).collect();
            check(draws, |x| regularised_gamma(shape, libm::exp(x)));
        }
        for low in [-1.5, 0.0, 0.7, 4.0] {
            let draws = (0..100_000).map(|_| normal_above(low, &mut stream)).collect();
            check(draws, |x| 1.0 - normal_cdf(-x) / normal_cdf(-low));
        }
    }
}
