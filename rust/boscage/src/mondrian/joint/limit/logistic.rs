//! The covariance with the logistic clock of regression.
//!
//! With the clock `v(t) = gamma_1 (s(gamma_2 t) - s(0))`, of which a share `s'` is spent at time `t`, and `q = d / gamma_2`, it is
//!
//! `k(q) = gamma_1 integral of exp(-q u) exp(-u) / (1 + exp(-u))^2 du` for `u` from 0 to `gamma_2` times the lifetime.
//!
//! As a mean of exponentials it is a covariance for every distance that is a sum over features. Values are needed for every
//! pair of rows, and read from a table: polynomials of degree five on pieces
//! whose width is a 32nd of a power of two, with the value, slope and curvature of `k` at their ends. They differ from `k` by
//! less than a part in 10^10.

use std::sync::{Arc, LazyLock};

use crate::mondrian::joint::limit::Covariance;

/// The table's first and last distance, as powers of two.
const FIRST: i32 = -14;
const LAST: i32 = 18;
/// Bits of a number's fraction that tell its piece.
const BITS: u32 = 5;
/// Bits of a number's fraction.
const FRACTION: u32 = 52;
/// The width of a piece, for a number between 1 and 2.
const WIDTH: f64 = 1.0 / (1 << BITS) as f64;

/// Where the integrand is next to nothing, and how far a rule of 16 points reaches, in units of `1 / (1 + q)`.
const END: f64 = 44.0;
const STEP: f64 = 4.0;

/// Places and weights of Gauss-Legendre's rule for the interval from -1 to 1, of which one half is given.
const RULE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_64),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_64),
    (0.458_016_777_657_227_37, 0.169_156_519_395_002_65),
    (0.617_876_244_402_643_8, 0.149_595_988_816_576_7),
    (0.755_404_408_355_003, 0.124_628_971_255_534_07),
    (0.865_631_202_387_831_8, 0.095_158_511_682_492_6),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_456),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_176),
];

/// Shorter lifetimes have covariances that are as good as 0; squares of this are finite.
const SHORTEST: f64 = 1e-100;

type Piece = [f64; 6];

/// For some hyperparameters and a lifetime.
#[derive(Debug, Clone)]
pub(crate) struct LogisticCovariance {
    gamma1: f64,
    /// From distances to those of the table.
    scale: f64,
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    /// Distances are `unit` times `q`.
    unit: f64,
    at_zero: [f64; 3],
    pieces: Vec<Piece>,
}

impl LogisticCovariance {
    pub(crate) fn new(gamma1: f64, gamma2: f64, lifetime: f64) -> Self {
        static FOR_EVER: LazyLock<Arc<Table>> = LazyLock::new(|| Arc::new(Table::new(f64::INFINITY)));
        let table = match lifetime {
            f64::INFINITY => FOR_EVER.clone(),
            _ => Arc::new(Table::new(gamma2 * lifetime)),
        };
        Self { gamma1, scale: table.unit / gamma2, table }
    }
}

impl Covariance for LogisticCovariance {
    fn of_itself(&self) -> f64 {
        self.gamma1 * self.table.at_zero[0]
    }

    fn replace(&self, distances: &mut [f64]) {
        for distance in distances {
            *distance = self.gamma1 * self.table.at(self.scale * *distance);
        }
    }
}

impl Table {
    /// The lifetime is in units of `1 / gamma_2`.
    fn new(lifetime: f64) -> Self {
        let unit = lifetime.clamp(SHORTEST, 1.0);
        let at = |power: i32, piece: u32| {
            let (two, place) = (f64::from(power).exp2(), 1.0 + f64::from(piece) * WIDTH);
            let [value, slope, curvature] = derivatives(two * place / unit, lifetime);
            // By the place within the power of two.
            let by_place = two / unit;
            [value, slope * by_place, curvature * by_place * by_place]
        };
        let pieces = (FIRST..LAST).flat_map(|power| {
            let ends: Vec<[f64; 3]> = (0..=1 << BITS).map(|piece| at(power, piece)).collect();
            ends.windows(2).map(|ends| piece(ends[0], ends[1])).collect::<Vec<_>>()
        });
        Self { unit, at_zero: derivatives(0.0, lifetime), pieces: pieces.collect() }
    }

    /// Of a distance in the table's units.
    fn at(&self, distance: f64) -> f64 {
        const ONE: u64 = 1.0f64.to_bits();
        let bits = distance.to_bits();
        let within = (1 << (FRACTION - BITS)) - 1;
        let first = ((1023 + FIRST) as u64) << BITS;
        let piece = (bits >> (FRACTION - BITS)).wrapping_sub(first);
        match self.pieces.get(piece as usize) {
            Some([a, b, c, d, e, f]) => {
                let x = f64::from_bits((bits & within) | ONE) - 1.0;
                a + x * (b + x * (c + x * (d + x * (e + x * f))))
            }
            None => self.outside(distance / self.unit),
        }
    }

    #[cold]
    fn outside(&self, q: f64) -> f64 {
        if q * self.unit < 1.0 {
            let [value, slope, curvature] = self.at_zero;
            return value + q * (slope + 0.5 * q * curvature);
        }
        // Only the first moments count, where the other factor is flat.
        (0.25 / q).min(self.at_zero[0])
    }
}

/// The polynomial with the given values, slopes and curvatures at both ends of a piece.
fn piece([a, b, c]: [f64; 3], [value, slope, curvature]: [f64; 3]) -> Piece {
    let h = WIDTH;
    let value = (value - a - h * (b + 0.5 * h * c)) / (h * h * h);
    let slope = (slope - b - h * c) / (h * h);
    let curvature = (curvature - c) / h;
    [
        a,
        b,
        0.5 * c,
        10.0 * value - 4.0 * slope + 0.5 * curvature,
        (7.0 * slope - 15.0 * value - curvature) / h,
        (6.0 * value - 3.0 * slope + 0.5 * curvature) / (h * h),
    ]
}

/// `k(q) / gamma_1` with its first and second derivative.
fn derivatives(q: f64, lifetime: f64) -> [f64; 3] {
    let end = lifetime.min(END / (1.0 + q));
    let steps = (end * (1.0 + q) / STEP).ceil().max(1.0);
    let half = 0.5 * end / steps;
    let mut sums = [0.0; 3];
    for step in 0..steps as usize {
        let middle = half * (2.0 * step as f64 + 1.0);
        for (place, weight) in RULE {
            for place in [-place, place] {
                let u = middle + half * place;
                let spent = (-u).exp() / (1.0 + (-u).exp()).powi(2);
                let term = half * weight * (-q * u).exp() * spent;
                sums[0] += term;
                sums[1] -= term * u;
                sums[2] += term * u * u;
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-10 * expected.abs(), "{found} and {expected}");
    }

    /// `integral of w^q / (1 + w)^2` has closed forms for whole `q`: 1/2, ln 2 - 1/2, 3/2 - 2 ln 2.
    #[test]
    fn closed_forms() {
        let covariance = LogisticCovariance::new(3.0, 0.7, f64::INFINITY);
        let mut found = [0.0, 1.0, 2.0].map(|q| 0.7 * q);
        covariance.replace(&mut found);
        let ln2 = std::f64::consts::LN_2;
        for (found, expected) in found.into_iter().zip([0.5, ln2 - 0.5, 1.5 - 2.0 * ln2]) {
            near(found, 3.0 * expected);
        }
        near(covariance.of_itself(), 1.5);
    }

    /// With a lifetime, of the clock's course up to it: by a fine rule of midpoints.
    #[test]
    fn table_is_the_integral() {
        for lifetime in [f64::INFINITY, 2.5, 0.8, 1e-7] {
            let covariance = LogisticCovariance::new(1.0, 1.0, lifetime);
            for i in -64..88 {
                let q = (0.25 * f64::from(i) + 0.1).exp2() / lifetime.min(1.0);
                let end = lifetime.min(50.0 / (1.0 + q));
                let n = 200_000;
                let expected: f64 = (0..n)
                    .map(|i| {
                        let u = end * (f64::from(i) + 0.5) / f64::from(n);
                        (-q * u).exp() * (-u).exp() / (1.0 + (-u).exp()).powi(2) * end / f64::from(n)
                    })
                    .sum();
                let mut found = [q];
                covariance.replace(&mut found);
                assert!((found[0] / expected - 1.0).abs() < 1e-7, "{q}: {} and {expected}", found[0]);
                let exact = derivatives(q, lifetime)[0];
                assert!((found[0] / exact - 1.0).abs() < 1e-10, "{q}: {} and {exact}", found[0]);
            }
        }
    }

    /// Distances that overflow, and none at all.
    #[test]
    fn ends() {
        let covariance = LogisticCovariance::new(1.0, 1.0, f64::INFINITY);
        let mut found = [0.0, f64::MIN_POSITIVE, 1e300, f64::INFINITY];
        covariance.replace(&mut found);
        assert_eq!((found[0], found[1], found[3]), (covariance.of_itself(), covariance.of_itself(), 0.0));
        near(found[2], 0.25e-300);
    }
}
