//! The normal and chi-square distributions, and the incomplete gamma function.

use std::f64::consts::FRAC_1_SQRT_2;

/// The chi-square quantile: `P(x <= quantile) = p`, by bisection.
pub(crate) fn chi_square_quantile(p: f64, df: f64) -> f64 {
    let cdf = |x: f64| regularised_gamma(0.5 * df, 0.5 * x);
    libm::exp(bisect(|x| cdf(libm::exp(x)) < p, (-700.0, 700.0)))
}

/// The standard normal quantile.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    bisect(|x| normal_cdf(x) < p, (-40.0, 40.0))
}

/// The standard normal distribution function.
pub(crate) fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

fn bisect(below: impl Fn(f64) -> bool, (mut low, mut high): (f64, f64)) -> f64 {
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The regularised lower incomplete gamma function `P(a, x)`, by its series for small `x` and by the
/// continued fraction of its complement (Lentz) for large `x`.
pub(crate) fn regularised_gamma(a: f64, x: f64) -> f64 {
    const TERMS: u32 = 100_000;
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for i in 1..TERMS {
            term *= x / (a + f64::from(i));
            sum += term;
            if term < 1e-16 * sum {
                break;
            }
        }
        return (front * sum).min(1.0);
    }
    let mut b = x + 1.0 - a;
    let mut d = 1.0 / b;
    let (mut c, mut fraction) = (f64::MAX, d);
    for i in 1..TERMS {
        let i = f64::from(i);
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / (b + numerator * d);
        c = b + numerator / c;
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    (1.0 - front * fraction).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        let known =
            [(0.1, 3.0, 0.584_374), (0.25, 3.0, 1.212_533), (0.5, 10.0, 9.341_818), (0.01, 1.0, 1.571e-4)];
        for (p, df, x) in known {
            let found = chi_square_quantile(p, df);
            assert!((found - x).abs() < 1e-5 * x.max(1.0), "{found} for {x}");
        }
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
    }
}
