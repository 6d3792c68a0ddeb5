//! Draws from the distributions that the sampler meets, the same on every platform.

use crate::mondrian::Stream;

/// A standard normal draw (Marsaglia's polar method).
pub(super) fn normal(stream: &mut Stream) -> f64 {
    loop {
        let (u, v) = (2.0 * stream.unit() - 1.0, 2.0 * stream.unit() - 1.0);
        let s = u * u + v * v;
        if s > 0.0 && s < 1.0 {
            return u * (-2.0 * libm::log(s) / s).sqrt();
        }
    }
}

/// A gamma draw of a shape of at least one half and scale 1 (Marsaglia and Tsang 2000).
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

    /// Logarithm of a draw from the gamma distribution of this shape and scale 1, which itself might be too small for
    /// a number.
    pub fn log_gamma(&mut self, shape: f64) -> f64 {
        if shape >= 1.0 {
            return libm::log(gamma(shape, self));
        }
        let log_u = libm::log(1.0 - self.unit());
        libm::log(gamma(shape + 1.0, self)) + log_u / shape
    }
}

/// The logarithm of a draw from the exponential distribution of a rate that is given by its logarithm.
pub(super) fn log_exponential(log_rate: f64, stream: &mut Stream) -> f64 {
    log_exponential_of(log_rate, stream.unit())
}

/// The same of a uniform draw.
pub(super) fn log_exponential_of(log_rate: f64, u: f64) -> f64 {
    libm::log(-libm::log(1.0 - u)) - log_rate
}

/// A draw from the chi-square distribution.
pub(super) fn chi_square(df: f64, stream: &mut Stream) -> f64 {
    2.0 * gamma(0.5 * df, stream)
}

/// A standard normal draw, given that it is above `low` (Robert 1995).
pub(super) fn normal_above(low: f64, stream: &mut Stream) -> f64 {
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

/// A seed for a generator of its own.
pub(super) fn seed(stream: &mut Stream) -> u64 {
    (stream.unit() * (1u64 << 53) as f64) as u64
}

/// Whether something of this log probability (or more) happens.
pub(super) fn accept(log_ratio: f64, stream: &mut Stream) -> bool {
    libm::log(1.0 - stream.unit()) < log_ratio
}

#[cfg(test)]
mod tests {
    use super::super::noise::{normal_cdf, regularised_gamma};
    use super::*;

    /// Kolmogorov's statistic of draws, whose limit is below 2.1 but for 3 in 10,000.
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
