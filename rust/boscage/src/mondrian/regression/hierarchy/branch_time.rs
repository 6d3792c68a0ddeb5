//! The distribution of the time at which a test row branches off, on the clock of the prior.

use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::regression::hierarchy::belief_propagation::{Hyperparameters, unit_clock};

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

/// The expected clock between the stop before and the place where a test row branches off; or else the stop
/// itself, a `span` away.
pub(crate) fn expected_span(stop: &Stop, hyper: &Hyperparameters, span: f64) -> f64 {
    let probability = branch_probability(stop);
    if probability == 0.0 {
        return span;
    }
    let clock = hyper.gamma1 * branch_clock(stop, hyper.gamma2, probability, 0, 1).0;
    probability * (clock - hyper.clock(stop.after)).max(0.0) + (1.0 - probability) * span
}

/// The expected clock where a test row branches off above a stop, in units of `gamma_1`, if that is more
/// likely than not.
pub(crate) fn likely_branch(stop: &Stop, gamma2: f64) -> Option<f64> {
    let probability = branch_probability(stop);
    (probability > 0.5).then(|| branch_clock(stop, gamma2, probability, 0, 1).0)
}

/// The probability `p_j^s(x)` of branching off above a stop (section 5.5.3; Algorithm 6.5, line 6).
pub(crate) fn branch_probability(stop: &Stop) -> f64 {
    match stop.branch {
        Branch::Never => 0.0,
        Branch::At(_) => 1.0,
        Branch::Rate(rate) => -(-rate * (stop.time - stop.after)).exp_m1(),
    }
}

/// Mean and variance of the clock at the branch above a stop, in units of `gamma_1` and its square, given that its time
/// is in one of several pieces of equal probability.
///
/// The time `T` is exponential of rate `h` after `a`, truncated at `b`; in a piece it is so as well. By
/// parts, `E[v(T)] = v(a) + int v'(t) S(t) dt` with `S(t) = (e^(-h(t-a)) - e^(-h(b-a))) / (1 -
/// e^(-h(b-a)))`, and likewise for `v^2`. In `q = e^(-(h + gamma_2)(t - a))` the integrand is smooth at
/// both ends; `q = z^3` makes it smoother at 0.
pub(crate) fn branch_clock(
    stop: &Stop,
    gamma2: f64,
    probability: f64,
    piece: u32,
    pieces: u32,
) -> (f64, f64) {
    let rate = match stop.branch {
        Branch::Rate(rate) => rate,
        Branch::At(time) => return (unit_clock(gamma2, time), 0.0),
        Branch::Never => return (unit_clock(gamma2, stop.time), 0.0),
    };
    // Finite also where the rate is next to nothing.
    let quantile = |piece: u32| {
        (-(-probability * f64::from(piece) / f64::from(pieces)).ln_1p() / rate).min(0.25 * f64::MAX)
    };
    let after = stop.after + if piece == 0 { 0.0 } else { quantile(piece) };
    let until = if piece + 1 == pieces { stop.time } else { stop.after + quantile(piece + 1) };
    let span = until - after;
    let own = -(-rate * span).exp_m1();
    let both = rate + gamma2;
    let last = (-both * span).exp();
    let (start, left) = (unit_clock(gamma2, after), (-gamma2 * after).exp());
    let (mut gain, mut square) = (0.0, 0.0);
    for (z, weight) in GAUSS {
        let q = last + (1.0 - last) * z * z * z;
        let elapsed = -q.ln() / both;
        let decay = 1.0 + (-gamma2 * (after + elapsed)).exp();
        let slope = gamma2 * left / (decay * decay * both);
        let survives = if own > 0.0 { -(-rate * (span - elapsed)).exp_m1() / own } else { 1.0 };
        let part = weight * 3.0 * z * z * (1.0 - last) * slope * survives;
        gain += part;
        // The clock is 1 / decay - 1 / 2.
        square += part * 2.0 * (1.0 / decay - 0.5 - start);
    }
    let spread = (square - gain * gain).max(0.0);
    (start + gain, spread)
}
