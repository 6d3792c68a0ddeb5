//! The law of the time at which a test row branches off above a stop, and what clocks gain until then.
//!
//! Let `h` be the rate of branches, `g` that of a clock and `l` the time between two stops. Most branches are short: `h l` and
//! `g l` are small. There all means are sums over the nodes of one Gauss rule, whose weights `e^(-h t)` clocks share, and
//! exponentials are polynomials. The others are integrated clock by clock (`branch_clock`).

use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::branch_clock::{ClockPart, GAUSS_4, GAUSS_8, Gains};
use crate::mondrian::regression::hierarchy::branch_time::{
    BranchTime, TruncatedExponential, branch_probability,
};

/// The law of the time of a branch above a stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BranchLaw {
    /// The probability that the row branches off there.
    pub(crate) probability: f64,
    pub(super) time: BranchTime,
    short: Option<ShortTime>,
}

impl BranchLaw {
    /// None if the row does not branch off above the stop. Clocks up to the rate `fastest` may share a rule.
    pub(crate) fn new(stop: &Stop, fastest: f64) -> Option<Self> {
        let probability = branch_probability(stop);
        (probability > 0.0).then(|| Self::of(BranchTime::new(stop, probability, 0, 1), probability, fastest))
    }

    /// The law given that the time is in one of several pieces of equal probability.
    pub(super) fn piece(&self, stop: &Stop, (piece, pieces): (u32, u32), fastest: f64) -> Self {
        let time = BranchTime::new(stop, self.probability, piece, pieces);
        Self::of(time, self.probability / f64::from(pieces), fastest)
    }

    fn of(time: BranchTime, probability: f64, fastest: f64) -> Self {
        let short = match &time {
            BranchTime::Random(time) => ShortTime::new(time, fastest),
            BranchTime::Known(_) => None,
        };
        Self { probability, time, short }
    }

    /// What the parts of a clock gain until a random time.
    pub(super) fn gains<const N: usize>(
        &self,
        time: &TruncatedExponential,
        parts: [ClockPart; N],
    ) -> Gains<N> {
        match self.short.filter(|short| parts.iter().all(|part| short.holds(part))) {
            Some(short) => short.gains(&parts),
            None => Gains::until(time, parts),
        }
    }
}

/// A Gauss-Legendre rule on `[0, 1]`.
struct GaussRule<const K: usize> {
    nodes: [f64; K],
    weights: [f64; K],
    /// The longest time for it, in units in which the fastest of clocks and branches has the rate 1: its error is below 3e-10 of
    /// what is gained then, and below 1e-11 of all that a clock can gain.
    longest: f64,
}

const FOUR: GaussRule<4> = {
    let [(a, u), (b, v)] = GAUSS_4;
    GaussRule { nodes: [a, b, 1.0 - b, 1.0 - a], weights: [u, v, v, u], longest: 0.4 }
};
const EIGHT: GaussRule<8> = {
    let [(a, t), (b, u), (c, v), (d, w)] = GAUSS_8;
    let nodes = [a, b, c, d, 1.0 - d, 1.0 - c, 1.0 - b, 1.0 - a];
    GaussRule { nodes, weights: [t, u, v, w, w, v, u, t], longest: 2.0 }
};

/// `1 / k!`, from `k = 1` on.
const COEFFICIENTS: [f64; 24] = {
    let (mut all, mut one, mut k) = ([0.0; 24], 1.0, 0);
    while k < all.len() {
        one /= (k + 1) as f64;
        all[k] = one;
        k += 1;
    }
    all
};

impl<const K: usize> GaussRule<K> {
    /// `1 - e^(-x z)` at every node `z`, by `TERMS` terms of the series: without cancellation, also for the smallest `x`.
    ///
    /// Of the terms every fourth makes a sum, so that the processor need not wait for one product after the other.
    fn falls<const TERMS: usize>(&self, x: f64) -> [f64; K] {
        let at = self.nodes.map(|z| -x * z);
        let fourth = at.map(|at| (at * at) * (at * at));
        let mut sums = [[0.0; K]; 4];
        for (i, coefficient) in COEFFICIENTS[..TERMS].iter().enumerate().rev() {
            let sum = &mut sums[i % 4];
            for k in 0..K {
                sum[k] = sum[k] * fourth[k] + coefficient;
            }
        }
        let [a, b, c, d] = sums;
        std::array::from_fn(|k| -at[k] * ((a[k] + at[k] * b[k]) + at[k] * at[k] * (c[k] + at[k] * d[k])))
    }

    /// The weights of the nodes for an exponential time, `x` being its rate times the span.
    fn weights<const TERMS: usize>(&self, x: f64) -> [f64; K] {
        let falls = self.falls::<TERMS>(x);
        let weights: [f64; K] = std::array::from_fn(|k| self.weights[k] * (1.0 - falls[k]));
        let all: f64 = weights.iter().sum();
        weights.map(|weight| weight / all)
    }

    fn gains<const TERMS: usize, const N: usize>(
        &self,
        (span, weights): (f64, &[f64; K]),
        parts: &[ClockPart; N],
    ) -> Gains<N> {
        let (mut means, mut gained) = ([0.0; N], [0.0; K]);
        for (mean, part) in means.iter_mut().zip(parts) {
            let gains = self.falls::<TERMS>(part.rate * span).map(|fall| part.gain_of(fall));
            for k in 0..K {
                *mean += weights[k] * gains[k];
                gained[k] += part.weight * gains[k];
            }
        }
        let mean: f64 = means.iter().zip(parts).map(|(mean, part)| part.weight * mean).sum();
        let squares = weights.iter().zip(gained).map(|(weight, gain)| weight * (gain - mean) * (gain - mean));
        Gains { means, spread: squares.sum() }
    }
}

/// Terms of the series of exponentials for each of the rules: the next one is below 1e-13 of the first.
const TERMS_FOUR: usize = 11;
const TERMS_EIGHT: usize = 22;

/// A time that is short for branches and for clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShortTime {
    span: f64,
    weights: Weights,
}

#[derive(Debug, Clone, Copy)]
enum Weights {
    Four([f64; 4]),
    Eight([f64; 8]),
}

impl ShortTime {
    pub(super) fn new(time: &TruncatedExponential, fastest: f64) -> Option<Self> {
        let (span, x) = (time.span, time.rate * time.span);
        let longest = x.max(fastest * span);
        let weights = if longest <= FOUR.longest {
            Weights::Four(FOUR.weights::<TERMS_FOUR>(x))
        } else if longest <= EIGHT.longest {
            Weights::Eight(EIGHT.weights::<TERMS_EIGHT>(x))
        } else {
            return None;
        };
        Some(Self { span, weights })
    }

    /// Whether it is short for a part of a clock.
    fn holds(&self, part: &ClockPart) -> bool {
        let longest = match self.weights {
            Weights::Four(_) => FOUR.longest,
            Weights::Eight(_) => EIGHT.longest,
        };
        part.rate * self.span <= longest
    }

    fn gains<const N: usize>(&self, parts: &[ClockPart; N]) -> Gains<N> {
        match &self.weights {
            Weights::Four(weights) => FOUR.gains::<TERMS_FOUR, N>((self.span, weights), parts),
            Weights::Eight(weights) => EIGHT.gains::<TERMS_EIGHT, N>((self.span, weights), parts),
        }
    }

    /// The mean of what a part gains until the time.
    pub(super) fn gain(&self, part: &ClockPart) -> f64 {
        let Gains { means: [gain], .. } = self.gains(&[*part]);
        gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mondrian::regression::hierarchy::branch_time::UnitClock;

    /// The short rules give what the integrals by parts give, up to where they are used, for one clock and for two. (The
    /// integrals lose digits where nearly nothing is gained.)
    #[test]
    fn short_rules_are_the_integrals() {
        for longest in [1e-9, 1e-3, 0.1, FOUR.longest, 0.7, EIGHT.longest] {
            for (rate, rates) in [(1.0, [1.0, 0.3]), (0.2, [1.0, 1.0]), (1.0, [1e-6, 0.9])] {
                for after in [0.0, 0.4, 3.0] {
                    let time = TruncatedExponential { rate, after, span: longest };
                    let short = ShortTime::new(&time, 1.0).expect("it is short");
                    let part = |rate, weight| ClockPart::new(UnitClock { rate, delay: 0.2 }, weight, after);
                    let [one, other] = [part(rates[0], 1.0), part(rates[1], 0.6)];
                    let (found, expected) = (short.gains(&[one]), Gains::until(&time, [one]));
                    let most = expected.means[0];
                    let share = 3e-10 + 1e-15 / longest;
                    let bound = (share * most).min(1e-11);
                    assert!((found.means[0] - most).abs() < bound, "{found:?} {expected:?}");
                    assert!((found.spread - expected.spread).abs() < bound, "{found:?} {expected:?}");
                    let (found, expected) = (short.gains(&[one, other]), Gains::until(&time, [one, other]));
                    for (found, expected) in found.means.into_iter().zip(expected.means) {
                        assert!((found - expected).abs() < share * expected, "{found} {expected}");
                    }
                    let apart = (found.spread - expected.spread).abs();
                    assert!(apart < share * expected.means.iter().sum::<f64>(), "{found:?} {expected:?}");
                }
            }
        }
    }

    #[test]
    fn a_time_without_an_end_is_not_short() {
        let time = TruncatedExponential { rate: 1e-3, after: 0.0, span: f64::INFINITY };
        assert!(ShortTime::new(&time, 0.0).is_none());
        let time = TruncatedExponential { span: 1.0, ..time };
        assert!(ShortTime::new(&time, 2.1).is_none());
    }
}
