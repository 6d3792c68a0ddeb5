//! The law of the time at which a test row branches off above a stop, and what clocks gain until then.
//!
//! Let `h` be the rate of branches, `g` that of a clock and `l` the time between two stops. Where `h l` and `g l` are at most
//! [`LONGEST`], means are sums over the nodes of a Gauss rule, whose weights `e^(-h t)` clocks share, and exponentials are
//! polynomials. Elsewhere clocks are integrated one by one (`branch_clock`).

use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::branch_clock::{GAUSS_8, Gains};
use crate::mondrian::regression::hierarchy::branch_time::{
    BranchTime, TruncatedExponential, branch_probability,
};
use crate::mondrian::regression::hierarchy::clock_part::ClockPart;

/// The law of the time of a branch above a stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BranchLaw {
    /// The probability that the row branches off there.
    pub(crate) probability: f64,
    pub(super) time: BranchTime,
    short: Option<ShortTime>,
}

impl BranchLaw {
    /// None if the row does not branch off above the stop.
    pub(crate) fn new(stop: &Stop) -> Option<Self> {
        let probability = branch_probability(stop);
        (probability > 0.0).then(|| Self::of(BranchTime::new(stop, probability, 0, 1), probability))
    }

    /// The same law, whose clocks are integrated one by one.
    #[cfg(test)]
    pub(super) fn without_rule(self) -> Self {
        Self { short: None, ..self }
    }

    /// The law given that the time is in one of several pieces of equal probability.
    pub(super) fn piece(&self, stop: &Stop, (piece, pieces): (u32, u32)) -> Self {
        let time = BranchTime::new(stop, self.probability, piece, pieces);
        Self::of(time, self.probability / f64::from(pieces))
    }

    fn of(time: BranchTime, probability: f64) -> Self {
        let short = match &time {
            BranchTime::Random(time) => ShortTime::new(time),
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
        match &self.short {
            Some(short) if parts.iter().all(|part| short.holds(part)) => short.gains(&parts),
            _ => Gains::until(time, parts),
        }
    }

    /// The mean of what a part of a clock gains until a random time, without its weight.
    pub(super) fn mean_gain(&self, time: &TruncatedExponential, part: ClockPart) -> f64 {
        match &self.short {
            Some(short) if short.holds(&part) => short.mean_gain(&part),
            _ if part.is_past_delay() && time.probability > 0.0 => part.mean_gain(time),
            _ => Gains::until(time, [part]).means[0],
        }
    }
}

/// The longest time for the rule, in units in which the faster one of a clock and branches has the rate 1: its error is below
/// 3e-10 of what is gained then, and below 1e-11 of all that a clock can gain.
const LONGEST: f64 = 2.0;

/// The rule of eight nodes on `[0, 1]`: four of them, which are given by their distances from the middle, and those that mirror
/// them.
const NODES: usize = GAUSS_8.len();
const FROM_MIDDLE: [f64; NODES] = {
    let [(a, _), (b, _), (c, _), (d, _)] = GAUSS_8;
    [0.5 - a, 0.5 - b, 0.5 - c, 0.5 - d]
};
const WEIGHTS: [f64; NODES] = {
    let [(_, a), (_, b), (_, c), (_, d)] = GAUSS_8;
    [a, b, c, d]
};

/// `1 / (2k)!`, from `k = 1` on, and `1 / (2k + 1)!`, from `k = 0` on. The next terms are below 1e-15 of the first.
const TERMS: usize = 8;
const EVEN: [f64; TERMS] = inverse_factorials(2);
const ODD: [f64; TERMS] = inverse_factorials(1);

const fn inverse_factorials(first: usize) -> [f64; TERMS] {
    let (mut all, mut inverse, mut k) = ([0.0; TERMS], 1.0, 1);
    while k < first + 2 * TERMS - 1 {
        inverse /= k as f64;
        if k >= first && (k - first).is_multiple_of(2) {
            all[(k - first) / 2] = inverse;
        }
        k += 1;
    }
    all
}

/// Numbers at the nodes: early ones, and those that mirror them.
type AtNodes = [[f64; NODES]; 2];

/// `1 - e^(-x z)` at every node `z`, by the hyperbolic functions of its distance from the middle.
fn falls(x: f64) -> AtNodes {
    let start = 0.5 * x;
    let whole = start * start;
    let (mut whole_even, mut whole_odd) = (0.0, 0.0);
    let at = FROM_MIDDLE.map(|u| x * u);
    let square = at.map(|at| at * at);
    let (mut even, mut odd) = ([0.0; NODES], [0.0; NODES]);
    for i in (0..TERMS).rev() {
        for k in 0..NODES {
            even[k] = even[k] * square[k] + EVEN[i];
            odd[k] = odd[k] * square[k] + ODD[i];
        }
        whole_even = whole_even * whole + EVEN[i];
        whole_odd = whole_odd * whole + ODD[i];
    }
    // At the middle.
    let fall = start * whole_odd - whole * whole_even;
    let stays = 1.0 - fall;
    let mut falls = [[0.0; NODES]; 2];
    for k in 0..NODES {
        let (even, odd) = (square[k] * even[k], at[k] * odd[k]);
        falls[0][k] = fall - stays * (even + odd);
        falls[1][k] = fall - stays * (even - odd);
    }
    falls
}

/// A time that is short for branches.
#[derive(Debug, Clone, Copy)]
struct ShortTime {
    span: f64,
    /// Of the nodes.
    weights: AtNodes,
}

impl ShortTime {
    fn new(time: &TruncatedExponential) -> Option<Self> {
        let x = time.rate * time.span;
        (x <= LONGEST).then(|| {
            let mut weights = falls(x);
            let mut all = 0.0;
            for side in &mut weights {
                for k in 0..NODES {
                    side[k] = WEIGHTS[k] * (1.0 - side[k]);
                    all += side[k];
                }
            }
            let share = 1.0 / all;
            Self { span: time.span, weights: weights.map(|side| side.map(|weight| share * weight)) }
        })
    }

    /// Whether it is short for a part of a clock.
    fn holds(&self, part: &ClockPart) -> bool {
        part.rate * self.span <= LONGEST
    }

    fn gains<const N: usize>(&self, parts: &[ClockPart; N]) -> Gains<N> {
        let (mut means, mut gained) = ([0.0; N], [[0.0; NODES]; 2]);
        for (mean, part) in means.iter_mut().zip(parts) {
            let gains = self.gains_of(part);
            *mean = self.mean(&gains);
            for (gained, gains) in gained.iter_mut().zip(&gains) {
                for k in 0..NODES {
                    gained[k] += part.weight * gains[k];
                }
            }
        }
        let mean: f64 = means.iter().zip(parts).map(|(mean, part)| part.weight * mean).sum();
        let squares = gained.map(|side| side.map(|gain| (gain - mean) * (gain - mean)));
        Gains { means, spread: self.mean(&squares) }
    }

    fn mean_gain(&self, part: &ClockPart) -> f64 {
        self.mean(&self.gains_of(part))
    }

    /// What a part has gained at the nodes.
    fn gains_of(&self, part: &ClockPart) -> AtNodes {
        falls(part.rate * self.span).map(|side| side.map(|fall| part.gain_of(fall)))
    }

    fn mean(&self, at_nodes: &AtNodes) -> f64 {
        let mut sums = [0.0; NODES];
        for (weights, values) in self.weights.iter().zip(at_nodes) {
            for k in 0..NODES {
                sums[k] += weights[k] * values[k];
            }
        }
        (sums[0] + sums[2]) + (sums[1] + sums[3])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mondrian::regression::hierarchy::branch_time::UnitClock;

    /// The short rules give what the integrals by parts give, up to where they are used, for one clock and for two. (The
    /// integrals are differences that are divided by the branch's probability, and lose digits where it is small.)
    #[test]
    fn short_rules_are_the_integrals() {
        for longest in [1e-3, 0.1, 0.7, LONGEST] {
            for (rate, rates) in [(1.0, [1.0, 0.3]), (0.2, [1.0, 1.0]), (1.0, [1e-6, 0.9])] {
                for after in [0.0, 0.4, 3.0] {
                    let time = TruncatedExponential::new(rate, after, longest);
                    let short = ShortTime::new(&time).expect("it is short");
                    let [one, other] = [part(rates[0], 1.0, after), part(rates[1], 0.6, after)];
                    let lost = 1e-15 / time.probability;
                    let (found, expected) = (short.gains(&[one]), Gains::until(&time, [one]));
                    let most = expected.means[0];
                    let bound = (3e-10 * most).min(1e-11) + lost;
                    assert!((found.means[0] - most).abs() < bound, "{found:?} {expected:?}");
                    assert!((found.spread - expected.spread).abs() < bound, "{found:?} {expected:?}");
                    let (found, expected) = (short.gains(&[one, other]), Gains::until(&time, [one, other]));
                    for (found, expected) in found.means.into_iter().zip(expected.means) {
                        assert!((found - expected).abs() < 3e-10 * expected + lost, "{found} {expected}");
                    }
                    let apart = (found.spread - expected.spread).abs();
                    let bound = 3e-10 * expected.means.iter().sum::<f64>() + lost;
                    assert!(apart < bound, "{found:?} {expected:?}");
                }
            }
        }
    }

    /// Within a moment, a clock gains its slope times a time that is uniform.
    #[test]
    fn a_moment_is_uniform() {
        let span = 1e-9;
        for (rate, after) in [(0.7, 0.0), (0.7, 0.4), (0.7, 3.0), (1e-6, 0.0), (1e-6, 3.0)] {
            let short = ShortTime::new(&TruncatedExponential::new(1.0, after, span)).expect("it is short");
            let part = part(rate, 1.0, after);
            let most = part.gain(1.0).1 * span;
            let gains = short.gains(&[part]);
            assert!((gains.means[0] / (0.5 * most) - 1.0).abs() < 1e-8, "{gains:?}");
            assert!((gains.spread / (most * most / 12.0) - 1.0).abs() < 1e-8, "{gains:?}");
        }
    }

    fn part(rate: f64, weight: f64, after: f64) -> ClockPart {
        ClockPart::new(UnitClock { rate, delay: 0.2 }, weight, after)
    }

    #[test]
    fn a_time_without_an_end_is_not_short() {
        let time = TruncatedExponential::new(1e-3, 0.0, f64::INFINITY);
        assert!(ShortTime::new(&time).is_none());
        let short = ShortTime::new(&TruncatedExponential::new(1e-3, 0.0, 1.0)).expect("it has an end");
        assert!(short.holds(&part(1.9, 1.0, 0.0)) && !short.holds(&part(2.1, 1.0, 0.0)));
    }
}
