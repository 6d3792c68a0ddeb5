//! The distribution of the time at which a test row branches off, on the clock of the prior.

use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters, unit_clock};

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

/// The coarse part of the clock has no effect beyond a branch where less of it is left than this share of the noise
/// and of what is left of the other part.
const NEGLIGIBLE: f64 = 1e-7;

/// Two clocks are integrated at once, at the faster one's nodes, if a branch's time and both clocks vary by no more than
/// this factor's exponential.
const SHORT: f64 = 1.0;

/// Before its delay a clock is integrated in so many parts at most.
const PARTS: f64 = 8.0;
/// The logarithm of the factor by which its slope grows in each of them, at most.
const GROWTH: f64 = 2.25;
/// The length of the end of a part, in which `S` or the slope grows or falls by no more than this factor's exponential.
const END: f64 = 1.5;

/// The clock of the prior where a test row branches off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BranchClock {
    pub(crate) mean: f64,
    /// Its variance, in units of the square of [`unit`].
    pub(crate) spread: f64,
    /// The mean of its coarse part.
    pub(crate) coarse: f64,
}

/// The larger of the clock's two parts, without rounding what is `gamma_1` if there is but one.
pub(crate) fn unit(hyper: &Hyperparameters) -> f64 {
    hyper.gamma1.max(2.0 * hyper.coarse.variance)
}

/// The expected clock between the stop before and the place where a test row branches off; or else the stop
/// itself, a `span` away.
pub(crate) fn expected_span(stop: &Stop, hyper: &Hyperparameters, span: f64) -> f64 {
    let probability = branch_probability(stop);
    if probability == 0.0 {
        return span;
    }
    let clock = branch_clock(stop, hyper, probability, 0, 1).mean;
    probability * (clock - hyper.clock(stop.after)).max(0.0) + (1.0 - probability) * span
}

/// The expected clock where a test row branches off above a stop, in units of `gamma_1` and without the coarse part, if
/// that is more likely than not.
pub(crate) fn likely_branch(stop: &Stop, gamma2: f64, delay: f64) -> Option<f64> {
    let probability = branch_probability(stop);
    let clock = UnitClock { rate: gamma2, delay };
    (probability > 0.5).then(|| match BranchTime::new(stop, probability, 0, 1) {
        BranchTime::Known(time) => clock.at(time),
        BranchTime::Random(time) => clock.at(time.after) + time.gain(clock).0,
    })
}

/// The probability `p_j^s(x)` of branching off above a stop (section 5.5.3; Algorithm 6.5, line 6).
pub(crate) fn branch_probability(stop: &Stop) -> f64 {
    match stop.branch {
        Branch::Never => 0.0,
        Branch::At(_) => 1.0,
        Branch::Rate(rate) => -(-rate * (stop.time - stop.after)).exp_m1(),
    }
}

/// Mean and variance of the clock at the branch above a stop, given that its time is in one of several pieces of equal
/// probability.
pub(crate) fn branch_clock(
    stop: &Stop,
    hyper: &Hyperparameters,
    probability: f64,
    piece: u32,
    pieces: u32,
) -> BranchClock {
    let Hyperparameters { gamma1, noise_variance, coarse, .. } = *hyper;
    let fine_clock = UnitClock { rate: hyper.gamma2, delay: hyper.delay };
    let coarse_clock = UnitClock::of_coarse(coarse);
    let time = match BranchTime::new(stop, probability, piece, pieces) {
        BranchTime::Known(time) => {
            let coarse = coarse.clock(time);
            return BranchClock { mean: gamma1 * fine_clock.at(time) + coarse, spread: 0.0, coarse };
        }
        BranchTime::Random(time) => time,
    };
    let fine_start = fine_clock.at(time.after);
    if coarse.variance == 0.0 {
        let (gain, spread) = time.gain(fine_clock);
        return BranchClock { mean: gamma1 * (fine_start + gain), spread, coarse: 0.0 };
    }
    // Both parts in the same unit, so that no square overflows.
    let unit = unit(hyper);
    let (of_fine, of_coarse) = (gamma1 / unit, 2.0 * coarse.variance / unit);
    let left = 2.0 * coarse.variance * coarse_clock.rest(time.after);
    if left <= NEGLIGIBLE * (noise_variance + gamma1 * fine_clock.rest(time.after)) {
        let (gain, spread) = time.gain(fine_clock);
        let coarse = coarse.clock(time.after);
        let mean = gamma1 * (fine_start + gain) + coarse;
        return BranchClock { mean, spread: of_fine * of_fine * spread, coarse };
    }
    let Gains { means: [gain, coarse_gain], variances: [fine_spread, coarse_spread], covariance } =
        time.gains([fine_clock, coarse_clock]);
    let spread = of_fine * of_fine * fine_spread
        + of_coarse * (of_coarse * coarse_spread + 2.0 * of_fine * covariance);
    let coarse = 2.0 * coarse.variance * (coarse_clock.at(time.after) + coarse_gain);
    BranchClock { mean: gamma1 * (fine_start + gain) + coarse, spread: spread.max(0.0), coarse }
}

/// The mean of the coarse part of the clock at the branch.
pub(crate) fn expected_coarse(
    stop: &Stop,
    coarse: CoarsePrior,
    probability: f64,
    piece: u32,
    pieces: u32,
) -> f64 {
    if coarse.variance == 0.0 {
        return 0.0;
    }
    match BranchTime::new(stop, probability, piece, pieces) {
        BranchTime::Known(time) => coarse.clock(time),
        BranchTime::Random(time) => {
            let clock = UnitClock::of_coarse(coarse);
            2.0 * coarse.variance * (clock.at(time.after) + time.gain(clock).0)
        }
    }
}

/// A part of the prior's clock in its units: `sigma(rate (t - delay)) - sigma(-rate delay)` at time `t`.
#[derive(Debug, Clone, Copy)]
struct UnitClock {
    rate: f64,
    delay: f64,
}

impl UnitClock {
    fn of_coarse(coarse: CoarsePrior) -> Self {
        Self { rate: coarse.rate, delay: 0.0 }
    }

    fn at(self, time: f64) -> f64 {
        unit_clock(self.rate, self.delay, time)
    }

    /// `e^(-rate (t - delay))`.
    fn decay(self, time: f64) -> f64 {
        (-self.rate * (time - self.delay)).exp()
    }

    /// The clock, given its decay; `start` is its value at a time before, which it is less.
    fn gained(self, decay: f64, start: f64) -> f64 {
        let zero = if self.delay == 0.0 { 0.5 } else { 1.0 / (1.0 + (self.rate * self.delay).exp()) };
        1.0 / (1.0 + decay) - zero - start
    }

    /// What is left of it at a time.
    fn rest(self, time: f64) -> f64 {
        1.0 / (1.0 + (self.rate * (time - self.delay)).exp())
    }
}

/// The time at which a test row branches off above a stop.
enum BranchTime {
    Known(f64),
    Random(TruncatedExponential),
}

impl BranchTime {
    /// The law of the time, given that it is in one of several pieces of equal probability.
    fn new(stop: &Stop, probability: f64, piece: u32, pieces: u32) -> Self {
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
        Self::Random(TruncatedExponential { rate, after, span: until - after })
    }
}

/// Means, variances and covariance of what two unit clocks gain until a branch.
struct Gains {
    means: [f64; 2],
    variances: [f64; 2],
    covariance: f64,
}

/// An exponential time `T` of rate `h` after `a`, truncated at `b`.
///
/// By parts, `E[v(T)] = v(a) + int v'(t) S(t) dt` with `S(t) = (e^(-h(t-a)) - e^(-h(b-a))) / (1 - e^(-h(b-a)))`, and
/// likewise for `v^2`. In `q = e^(-(h + gamma_2)(t - a))` the integrand is smooth at both ends; `q = z^3` makes it smoother
/// at 0.
#[derive(Debug, Clone, Copy)]
struct TruncatedExponential {
    rate: f64,
    after: f64,
    span: f64,
}

impl TruncatedExponential {
    /// The mean of what a clock gains until the time, and the variance.
    fn gain(&self, clock: UnitClock) -> (f64, f64) {
        if clock.delay > self.after {
            return self.delayed_gain(clock);
        }
        let start = clock.at(self.after);
        let (mut gain, mut square) = (0.0, 0.0);
        let first = clock.decay(self.after);
        for Node { decay, both, weight, survives, .. } in self.nodes(clock) {
            let slope = clock.rate * first / ((1.0 + decay) * (1.0 + decay) * both);
            let part = weight * slope * survives;
            gain += part;
            square += part * 2.0 * clock.gained(decay, start);
        }
        (gain, (square - gain * gain).max(0.0))
    }

    /// The same for a clock whose slope first grows.
    fn delayed_gain(&self, clock: UnitClock) -> (f64, f64) {
        /// Nodes are all but equally spaced, where `S` falls less than the slope grows.
        const EQUAL: f64 = 1e-3;
        let start = clock.at(self.after);
        let (mut gain, mut square) = (0.0, 0.0);
        for (from, to) in self.parts(clock) {
            let is_rising = self.after + 0.5 * (from + to) < clock.delay;
            let falling = (self.rate - clock.rate).max(EQUAL / (to - from));
            let both = if is_rising { falling } else { self.rate + clock.rate };
            for Node { elapsed, decay, weight, survives, .. } in self.nodes_within(clock, both, (from, to)) {
                let time = weight * (both * (elapsed - from)).exp() / both;
                let slope = clock.rate * decay / ((1.0 + decay) * (1.0 + decay));
                let part = time * slope * survives * (-self.rate * elapsed).exp();
                gain += part;
                square += part * 2.0 * clock.gained(decay, start);
            }
        }
        (gain, (square - gain * gain).max(0.0))
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

    /// The gains of two clocks that are not delayed.
    fn gains(&self, clocks: [UnitClock; 2]) -> Gains {
        if (self.rate + clocks[0].rate.max(clocks[1].rate)) * self.span <= SHORT {
            return self.gains_at_once(clocks);
        }
        let [(a, of_a), (b, of_b)] = clocks.map(|clock| self.gain(clock));
        let [first, second] = [(clocks[0], a), (clocks[1], b)];
        let first_is_slower = first.0.rate < second.0.rate;
        let covariance =
            if first_is_slower { self.covariance(second, first) } else { self.covariance(first, second) };
        Gains { means: [a, b], variances: [of_a, of_b], covariance }
    }

    /// The same in a short time, in which both are smooth functions of `q`.
    fn gains_at_once(&self, clocks: [UnitClock; 2]) -> Gains {
        let fast = if clocks[0].rate < clocks[1].rate { clocks[1] } else { clocks[0] };
        let starts = clocks.map(|clock| clock.at(self.after));
        let (mut means, mut squares, mut product) = ([0.0; 2], [0.0; 2], 0.0);
        for Node { elapsed, both, weight, survives, .. } in self.nodes(fast) {
            // `S dt`.
            let part = weight * survives * (fast.rate * elapsed).exp() / both;
            let (mut gained, mut slopes) = ([0.0; 2], [0.0; 2]);
            for k in 0..2 {
                let now = clocks[k].decay(self.after + elapsed);
                gained[k] = clocks[k].gained(now, starts[k]);
                slopes[k] = part * clocks[k].rate * now / ((1.0 + now) * (1.0 + now));
                means[k] += slopes[k];
                squares[k] += 2.0 * gained[k] * slopes[k];
            }
            product += gained[0] * slopes[1] + gained[1] * slopes[0];
        }
        let variance = |k: usize| (squares[k] - means[k] * means[k]).max(0.0);
        Gains { means, variances: [variance(0), variance(1)], covariance: product - means[0] * means[1] }
    }

    /// The covariance of two clocks' gains, each given with its mean gain, the faster one first.
    ///
    /// With gains `U` of the faster and `C` of the slower, and `R` what is left of the faster clock,
    /// `E[U C] = int (U C' + C U') S dt = R(a) E[C] + int (C U' - R C') S dt`, whose integrand falls as the faster clock's.
    fn covariance(&self, (fast, fast_gain): (UnitClock, f64), (slow, slow_gain): (UnitClock, f64)) -> f64 {
        let start = slow.at(self.after);
        let [fast_first, slow_first] = [fast, slow].map(|clock| clock.decay(self.after));
        let mut product = fast.rest(self.after) * slow_gain;
        for Node { elapsed, decay, both, weight, survives } in self.nodes(fast) {
            let now = slow_first * (-slow.rate * elapsed).exp();
            let gained = slow.gained(now, start);
            let slope = slow.rate * now / ((1.0 + now) * (1.0 + now));
            let beyond = 1.0 + decay;
            product +=
                weight * survives * fast_first / (beyond * both) * (gained * fast.rate / beyond - slope);
        }
        product - fast_gain * slow_gain
    }

    /// The rule's nodes for integrands that fall as a clock's slope times `S`.
    fn nodes(self, clock: UnitClock) -> impl Iterator<Item = Node> {
        self.nodes_within(clock, self.rate + clock.rate, (0.0, self.span))
    }

    /// The rule's nodes for integrands that fall at the rate `both`, in a part of the time.
    fn nodes_within(self, clock: UnitClock, both: f64, (from, to): (f64, f64)) -> impl Iterator<Item = Node> {
        let Self { rate, after, span } = self;
        let own = -(-rate * span).exp_m1();
        let last = (-both * (to - from)).exp();
        GAUSS.into_iter().map(move |(z, weight)| {
            let q = last + (1.0 - last) * z * z * z;
            let elapsed = from - q.ln() / both;
            let decay = clock.decay(after + elapsed);
            let survives = if own > 0.0 { -(-rate * (span - elapsed)).exp_m1() / own } else { 1.0 };
            Node { elapsed, decay, both, weight: weight * 3.0 * z * z * (1.0 - last), survives }
        })
    }
}

/// A node of the rule of integration.
struct Node {
    /// The time since the start.
    elapsed: f64,
    /// `e^(-gamma_2 (t - t_0))`.
    decay: f64,
    /// The integrand's rate.
    both: f64,
    /// The weight in `q`.
    weight: f64,
    /// `S(t)` over `e^(-h(t-a))`.
    survives: f64,
}
