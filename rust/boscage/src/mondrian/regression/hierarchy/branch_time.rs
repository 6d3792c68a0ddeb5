//! When a test row branches off, on the clock of the prior.

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
pub(crate) fn likely_branch(stop: &Stop, gamma2: f64) -> Option<f64> {
    let probability = branch_probability(stop);
    (probability > 0.5).then(|| match BranchTime::new(stop, probability, 0, 1) {
        BranchTime::Known(time) => unit_clock(gamma2, time),
        BranchTime::Random(time) => unit_clock(gamma2, time.after) + time.gain(gamma2).0,
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
    let Hyperparameters { gamma1, gamma2, noise_variance, coarse, .. } = *hyper;
    let time = match BranchTime::new(stop, probability, piece, pieces) {
        BranchTime::Known(time) => {
            let coarse = coarse.clock(time);
            return BranchClock { mean: gamma1 * unit_clock(gamma2, time) + coarse, spread: 0.0, coarse };
        }
        BranchTime::Random(time) => time,
    };
    let fine_start = unit_clock(gamma2, time.after);
    let left = 2.0 * coarse.variance * rest(coarse.rate, time.after);
    if coarse.variance == 0.0 {
        let (gain, spread) = time.gain(gamma2);
        return BranchClock { mean: gamma1 * (fine_start + gain), spread, coarse: 0.0 };
    }
    // Both parts in the same unit, so that no square overflows.
    let unit = unit(hyper);
    let (of_fine, of_coarse) = (gamma1 / unit, 2.0 * coarse.variance / unit);
    if left <= NEGLIGIBLE * (noise_variance + gamma1 * rest(gamma2, time.after)) {
        let (gain, spread) = time.gain(gamma2);
        let coarse = coarse.clock(time.after);
        let mean = gamma1 * (fine_start + gain) + coarse;
        return BranchClock { mean, spread: of_fine * of_fine * spread, coarse };
    }
    let gains = if (time.rate + gamma2.max(coarse.rate)) * time.span <= SHORT {
        time.gains_at_once([gamma2, coarse.rate])
    } else {
        time.gains([gamma2, coarse.rate])
    };
    let Gains { means: [gain, coarse_gain], variances: [fine_spread, coarse_spread], covariance } = gains;
    let spread = of_fine * of_fine * fine_spread
        + of_coarse * (of_coarse * coarse_spread + 2.0 * of_fine * covariance);
    let coarse = 2.0 * coarse.variance * (unit_clock(coarse.rate, time.after) + coarse_gain);
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
            2.0 * coarse.variance * (unit_clock(coarse.rate, time.after) + time.gain(coarse.rate).0)
        }
    }
}

/// What is left of a clock at a time, in its units: `1/2 - v(t)`.
fn rest(gamma2: f64, time: f64) -> f64 {
    let left = (-gamma2 * time).exp();
    left / (1.0 + left)
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
    /// The mean of what a unit clock gains until the time, and the variance.
    fn gain(&self, gamma2: f64) -> (f64, f64) {
        let start = unit_clock(gamma2, self.after);
        let (mut gain, mut square) = (0.0, 0.0);
        let left = (-gamma2 * self.after).exp();
        for Node { decay, both, weight, survives, .. } in self.nodes(gamma2) {
            let slope = gamma2 * left / (decay * decay * both);
            let part = weight * slope * survives;
            gain += part;
            // The clock is 1 / decay - 1 / 2.
            square += part * 2.0 * (1.0 / decay - 0.5 - start);
        }
        (gain, (square - gain * gain).max(0.0))
    }

    /// The gains of two unit clocks, each at nodes of its own.
    fn gains(&self, rates: [f64; 2]) -> Gains {
        let [(a, of_a), (b, of_b)] = rates.map(|rate| self.gain(rate));
        let [first, second] = [(rates[0], a), (rates[1], b)];
        let covariance =
            if first.0 < second.0 { self.covariance(second, first) } else { self.covariance(first, second) };
        Gains { means: [a, b], variances: [of_a, of_b], covariance }
    }

    /// The same in a short time, in which both are smooth functions of `q`.
    fn gains_at_once(&self, rates: [f64; 2]) -> Gains {
        let fast = rates[0].max(rates[1]);
        let starts = rates.map(|rate| unit_clock(rate, self.after));
        let (mut means, mut squares, mut product) = ([0.0; 2], [0.0; 2], 0.0);
        for Node { elapsed, both, weight, survives, .. } in self.nodes(fast) {
            // `S dt`.
            let part = weight * survives * (fast * elapsed).exp() / both;
            let (mut gained, mut slopes) = ([0.0; 2], [0.0; 2]);
            for k in 0..2 {
                let now = (-rates[k] * (self.after + elapsed)).exp();
                gained[k] = 1.0 / (1.0 + now) - 0.5 - starts[k];
                slopes[k] = part * rates[k] * now / ((1.0 + now) * (1.0 + now));
                means[k] += slopes[k];
                squares[k] += 2.0 * gained[k] * slopes[k];
            }
            product += gained[0] * slopes[1] + gained[1] * slopes[0];
        }
        let variance = |k: usize| (squares[k] - means[k] * means[k]).max(0.0);
        Gains { means, variances: [variance(0), variance(1)], covariance: product - means[0] * means[1] }
    }

    /// The covariance of two clocks' gains, each given by its rate and its mean gain, the faster one first.
    ///
    /// With gains `U` of the faster and `C` of the slower, and `R` what is left of the faster clock,
    /// `E[U C] = int (U C' + C U') S dt = R(a) E[C] + int (C U' - R C') S dt`, whose integrand falls as the faster clock's.
    fn covariance(&self, (fast, fast_gain): (f64, f64), (slow, slow_gain): (f64, f64)) -> f64 {
        let start = unit_clock(slow, self.after);
        let [fast_left, slow_left] = [fast, slow].map(|rate| (-rate * self.after).exp());
        let mut product = rest(fast, self.after) * slow_gain;
        for Node { elapsed, decay, both, weight, survives } in self.nodes(fast) {
            let now = slow_left * (-slow * elapsed).exp();
            let gained = 1.0 / (1.0 + now) - 0.5 - start;
            let slope = slow * now / ((1.0 + now) * (1.0 + now));
            product += weight * survives * fast_left / (decay * both) * (gained * fast / decay - slope);
        }
        product - fast_gain * slow_gain
    }

    /// The rule's nodes for integrands that fall as a clock's slope times `S`.
    fn nodes(self, gamma2: f64) -> impl Iterator<Item = Node> {
        let Self { rate, after, span } = self;
        let own = -(-rate * span).exp_m1();
        let both = rate + gamma2;
        let last = (-both * span).exp();
        GAUSS.into_iter().map(move |(z, weight)| {
            let q = last + (1.0 - last) * z * z * z;
            let elapsed = -q.ln() / both;
            let decay = 1.0 + (-gamma2 * (after + elapsed)).exp();
            let survives = if own > 0.0 { -(-rate * (span - elapsed)).exp_m1() / own } else { 1.0 };
            Node { elapsed, decay, both, weight: weight * 3.0 * z * z * (1.0 - last), survives }
        })
    }
}

/// A node of the rule of integration.
struct Node {
    /// The time since the start.
    elapsed: f64,
    /// `1 + e^(-gamma_2 t)`.
    decay: f64,
    /// `h + gamma_2`.
    both: f64,
    /// The weight in `q`.
    weight: f64,
    /// `S(t)` over `e^(-h(t-a))`.
    survives: f64,
}
