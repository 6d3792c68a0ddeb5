//! The distribution of the time at which a test row branches off, and its mean on the clock of the prior by one rule of
//! eight points: exact to some 1e-5 of the clock's range, which is enough to choose hyperparameters. Predictions take
//! `branch_law`.

use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, unit_clock};

/// Nodes and weights of the eight-point Gauss-Legendre rule on `[0, 1]`.
const GAUSS: [(f64, f64); 8] = [
    (0.019_855_071_751_231_912, 0.050_614_268_145_188_53),
    (0.101_666_761_293_186_64, 0.111_190_517_226_687_21),
    (0.237_233_795_041_835_5, 0.156_853_322_938_943_44),
    (0.408_282_678_752_175_1, 0.181_341_891_689_180_83),
    (0.591_717_321_247_824_8, 0.181_341_891_689_180_83),
    (0.762_766_204_958_164_5, 0.156_853_322_938_943_44),
    (0.898_333_238_706_813_4, 0.111_190_517_226_687_21),
    (0.980_144_928_248_768_1, 0.050_614_268_145_188_53),
];

/// Before its delay a clock is integrated in so many parts at most.
const PARTS: f64 = 8.0;
/// The logarithm of the factor by which its slope grows in each of them, at most.
const GROWTH: f64 = 2.25;
/// The length of the end of a part, in which `S` or the slope grows or falls by no more than this factor's exponential.
const END: f64 = 1.5;

/// The expected clock where a test row branches off above a stop, in units of `gamma_1` and without the coarse part, if
/// that is more likely than not.
pub(crate) fn likely_branch(stop: &Stop, gamma2: f64, delay: f64) -> Option<f64> {
    let probability = branch_probability(stop);
    (probability > 0.5).then(|| expected_clock(stop, gamma2, delay, probability))
}

/// The expected clock where a test row branches off above a stop, in units of `gamma_1` and without the coarse part.
pub(crate) fn expected_clock(stop: &Stop, gamma2: f64, delay: f64, probability: f64) -> f64 {
    let clock = UnitClock { rate: gamma2, delay };
    match BranchTime::new(stop, probability, 0, 1) {
        BranchTime::Known(time) => clock.at(time),
        BranchTime::Random(time) => clock.at(time.after) + time.gain(clock),
    }
}

/// The expected clock between the stop before and the place where a test row branches off; or else the stop itself, a
/// `span` away. `gain` is what is expected until a branch, which has this probability.
pub(crate) fn expected_span(probability: f64, span: f64, gain: f64) -> f64 {
    probability * gain.max(0.0) + (1.0 - probability) * span
}

/// The probability `p_j^s(x)` of branching off above a stop (section 5.5.3; Algorithm 6.5, line 6).
pub(crate) fn branch_probability(stop: &Stop) -> f64 {
    match stop.branch {
        Branch::Never => 0.0,
        Branch::At(_) => 1.0,
        Branch::Rate(rate) => -(-rate * (stop.time - stop.after)).exp_m1(),
    }
}

/// A part of the prior's clock in its units: `sigma(rate (t - delay)) - sigma(-rate delay)` at time `t`.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnitClock {
    pub(super) rate: f64,
    pub(super) delay: f64,
}

impl UnitClock {
    pub(super) fn of_coarse(coarse: CoarsePrior) -> Self {
        Self { rate: coarse.rate, delay: 0.0 }
    }

    pub(super) fn at(self, time: f64) -> f64 {
        unit_clock(self.rate, self.delay, time)
    }

    /// What it gains between two times.
    pub(super) fn gain(self, after: f64, time: f64) -> f64 {
        if time <= after {
            return 0.0;
        }
        let (decay, end) = (self.decay(after), self.decay(time));
        let fall = -(-self.rate * (time - after)).exp_m1();
        decay / (1.0 + decay) * (fall / (1.0 + end))
    }

    /// `e^(-rate (t - delay))`.
    pub(super) fn decay(self, time: f64) -> f64 {
        (-self.rate * (time - self.delay)).exp()
    }

    /// What is left of it at a time.
    pub(super) fn rest(self, time: f64) -> f64 {
        1.0 / (1.0 + (self.rate * (time - self.delay)).exp())
    }
}

/// The time at which a test row branches off above a stop.
#[derive(Debug, Clone, Copy)]
pub(super) enum BranchTime {
    Known(f64),
    Random(TruncatedExponential),
}

impl BranchTime {
    /// The law of the time, given that it is in one of several pieces of equal probability.
    pub(super) fn new(stop: &Stop, probability: f64, piece: u32, pieces: u32) -> Self {
        let rate = match stop.branch {
            Branch::Rate(rate) => rate,
            Branch::At(time) => return Self::Known(time),
            Branch::Never => return Self::Known(stop.time),
        };
        // Finite also where the rate is next to nothing.
        let quantile = |piece: u32| {
            (-(-probability * f64::from(piece) / f64::from(pieces)).ln_1p() / rate).min(0.25 * f64::MAX)
        };
        let after = stop.after + if piece == 0 { 0.0 } else { quantile(piece) };
        let until = if piece + 1 == pieces { stop.time } else { stop.after + quantile(piece + 1) };
        Self::Random(match pieces {
            1 => TruncatedExponential { rate, after, span: until - after, probability },
            _ => TruncatedExponential::new(rate, after, until - after),
        })
    }
}

/// An exponential time `T` of rate `h` after `a`, truncated at `b`.
///
/// By parts, `E[v(T)] = v(a) + int v'(t) S(t) dt` with `S(t) = (e^(-h(t-a)) - e^(-h(b-a))) / (1 - e^(-h(b-a)))`. In `q = e^(-(h + gamma_2)(t - a))` the integrand is smooth at both ends; `q = z^3` makes it smoother
/// at 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct TruncatedExponential {
    pub(super) rate: f64,
    pub(super) after: f64,
    pub(super) span: f64,
    /// That the time ends before it is truncated.
    pub(super) probability: f64,
}

impl TruncatedExponential {
    pub(super) fn new(rate: f64, after: f64, span: f64) -> Self {
        Self { rate, after, span, probability: -(-rate * span).exp_m1() }
    }

    /// The mean of what a clock gains until the time.
    fn gain(&self, clock: UnitClock) -> f64 {
        if clock.delay > self.after {
            return self.delayed_gain(clock);
        }
        let mut gain = 0.0;
        let first = clock.decay(self.after);
        let both = self.rate + clock.rate;
        for Abscissa { decay, weight, survives, .. } in self.abscissae(clock, both, (0.0, self.span)) {
            let slope = clock.rate * first / ((1.0 + decay) * (1.0 + decay) * both);
            gain += weight * slope * survives;
        }
        gain
    }

    /// The same for a clock whose slope first grows.
    fn delayed_gain(&self, clock: UnitClock) -> f64 {
        /// Nodes are all but equally spaced, where `S` falls less than the slope grows.
        const EQUAL: f64 = 1e-3;
        let mut gain = 0.0;
        for (from, to) in self.parts(clock) {
            let is_rising = self.after + 0.5 * (from + to) < clock.delay;
            let falling = (self.rate - clock.rate).max(EQUAL / (to - from));
            let both = if is_rising { falling } else { self.rate + clock.rate };
            for Abscissa { elapsed, decay, weight, survives } in self.abscissae(clock, both, (from, to)) {
                let time = weight * (both * (elapsed - from)).exp() / both;
                let slope = clock.rate * decay / ((1.0 + decay) * (1.0 + decay));
                gain += time * slope * survives * (-self.rate * elapsed).exp();
            }
        }
        gain
    }

    /// Parts of the time, in each of which a delayed clock's slope grows little, and those after its delay. At the end of a
    /// part `S` may fall to nothing at once: there it is another.
    fn parts(&self, clock: UnitClock) -> impl Iterator<Item = (f64, f64)> {
        let span = self.span;
        let rising = (clock.delay - self.after).min(span);
        // What is farther before the delay is one part: there the clock hardly moves.
        let n = (rising * clock.rate / GROWTH).ceil().clamp(1.0, PARTS);
        let early = (rising - n * GROWTH / clock.rate).max(0.0);
        let width = (rising - early) / n;
        let last = n as u32 + 2;
        let edge = move |i: u32| match i {
            0 => 0.0,
            _ if i == last => span,
            i => early + width * f64::from(i - 1),
        };
        let short = END / self.rate.max(clock.rate);
        let ends = move |(from, to): (f64, f64)| {
            let middle = if to < f64::INFINITY { from.max(to - short) } else { from };
            [(from, middle), (middle, to)]
        };
        (0..last).flat_map(move |i| ends((edge(i), edge(i + 1)))).filter(|(from, to)| to > from)
    }

    /// The rule's places for integrands that fall at the rate `both`, in a part of the time.
    fn abscissae(
        self,
        clock: UnitClock,
        both: f64,
        (from, to): (f64, f64),
    ) -> impl Iterator<Item = Abscissa> {
        let Self { rate, after, span, probability: own } = self;
        let last = (-both * (to - from)).exp();
        GAUSS.into_iter().map(move |(z, weight)| {
            let q = last + (1.0 - last) * z * z * z;
            let elapsed = from - q.ln() / both;
            let decay = clock.decay(after + elapsed);
            let survives = if own > 0.0 { -(-rate * (span - elapsed)).exp_m1() / own } else { 1.0 };
            Abscissa { elapsed, decay, weight: weight * 3.0 * z * z * (1.0 - last), survives }
        })
    }
}

/// A place where the rule of integration takes the integrand.
struct Abscissa {
    /// The time since the start.
    elapsed: f64,
    /// `e^(-gamma_2 (t - t_0))`.
    decay: f64,
    /// The weight in `q`.
    weight: f64,
    /// `S(t)` over `e^(-h(t-a))`.
    survives: f64,
}
