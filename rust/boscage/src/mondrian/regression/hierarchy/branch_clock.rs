//! What the prior's clock gains until a test row branches off: mean and variance, to some 1e-11 of what it can gain.
//!
//! With the time `T` of a branch, counted from the stop before, and its survival function `S`, and with what the clock gains,
//! `c(t)`, by parts `E[c(T)] = int c' S dt` and `E[c(T)^2] = 2 int c c' S dt`. Over short times these are integrated
//! numerically. Over long ones they have a series.

use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hierarchy::branch_law::{BranchLaw, ShortTime};
use crate::mondrian::regression::hierarchy::branch_time::{BranchTime, TruncatedExponential, UnitClock};

/// The coarse part of the clock has no effect beyond a branch where less of it is left than this share of the noise
/// and of what is left of the other part.
const NEGLIGIBLE: f64 = 1e-7;

/// Beyond so many times its rate, what falls exponentially is lost in rounding.
const LOST: f64 = 40.0;
/// Where two clocks are integrated together, the faster one is followed no longer than this.
const FADED: f64 = 28.0;

/// What the clock of the prior gains between the stop before and a branch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockGain {
    pub(crate) mean: f64,
    /// Its variance, in units of the square of [`unit`].
    pub(crate) spread: f64,
    /// The coarse part's share of the mean.
    pub(crate) coarse: f64,
}

/// The larger of the clock's two parts, without rounding what is `gamma_1` if there is but one.
pub(crate) fn unit(hyper: &Hyperparameters) -> f64 {
    hyper.gamma1.max(2.0 * hyper.coarse.variance)
}

/// Mean and variance of what the clock gains until the branch above a stop.
pub(crate) fn clock_gain(law: &BranchLaw, stop: &Stop, hyper: &Hyperparameters) -> ClockGain {
    let Hyperparameters { gamma1, coarse, .. } = *hyper;
    let fine_clock = UnitClock { rate: hyper.gamma2, delay: hyper.delay };
    let time = match law.time {
        BranchTime::Known(time) => {
            let mean = hyper.clock(time) - hyper.clock(stop.after);
            return ClockGain { mean, spread: 0.0, coarse: coarse.clock(time) - coarse.clock(stop.after) };
        }
        BranchTime::Random(time) => time,
    };
    // In one unit, so that no square overflows.
    let unit = unit(hyper);
    let fine = ClockPart::new(fine_clock, gamma1 / unit, time.after);
    let fine_start = fine_clock.gain(stop.after, time.after);
    if coarse.variance == 0.0 || is_negligible(stop, hyper, coarse) {
        let Gains { means: [gain], spread } = law.gains(&time, [fine]);
        return ClockGain { mean: gamma1 * (fine_start + gain), spread, coarse: 0.0 };
    }
    let coarse_clock = UnitClock::of_coarse(coarse);
    let parts = [fine, ClockPart::new(coarse_clock, 2.0 * coarse.variance / unit, time.after)];
    let Gains { means: [gain, coarse_gain], spread } = law.gains(&time, parts);
    let coarse = 2.0 * coarse.variance * (coarse_clock.gain(stop.after, time.after) + coarse_gain);
    ClockGain { mean: gamma1 * (fine_start + gain) + coarse, spread, coarse }
}

/// A time from which on the coarse part of the clock surely has no effect, since less of it is left than a share of the noise.
pub(crate) fn end_of_coarse(coarse: CoarsePrior, noise_variance: f64) -> f64 {
    if coarse.variance == 0.0 {
        return 0.0;
    }
    let left = (2.0 * coarse.variance / (NEGLIGIBLE * noise_variance)).ln();
    left.clamp(0.0, LOST) / coarse.rate
}

/// Whether the coarse part of the clock has no effect after the stop before; of all pieces of a time alike, so that they add up
/// to the whole.
fn is_negligible(stop: &Stop, hyper: &Hyperparameters, coarse: CoarsePrior) -> bool {
    let left = 2.0 * coarse.variance * UnitClock::of_coarse(coarse).rest(stop.after);
    let fine_clock = UnitClock { rate: hyper.gamma2, delay: hyper.delay };
    left <= NEGLIGIBLE * (hyper.noise_variance + hyper.gamma1 * fine_clock.rest(stop.after))
}

/// What the coarse part of the clock gains between the branch and the lifetime, in the mean. `end` is the coarse part at the
/// lifetime, and `until` is [`end_of_coarse`]; `hyper` has no coarse part.
pub(crate) fn coarse_rest(
    law: &BranchLaw,
    stop: &Stop,
    hyper: &Hyperparameters,
    (coarse, end, until): (CoarsePrior, f64, f64),
) -> f64 {
    if stop.after >= until {
        return end - coarse.clock(stop.after);
    }
    let time = match law.time {
        BranchTime::Known(time) => return end - coarse.clock(time),
        BranchTime::Random(_) if is_negligible(stop, hyper, coarse) => return end - coarse.clock(stop.after),
        BranchTime::Random(time) => time,
    };
    let part = ClockPart::new(UnitClock::of_coarse(coarse), 1.0, time.after);
    let gain = match ShortTime::new(&time, coarse.rate) {
        Some(short) => short.gain(&part),
        None => Gains::until(&time, [part]).means[0],
    };
    end - coarse.clock(time.after) - 2.0 * coarse.variance * gain
}

/// A part of the clock: a weight times `sigma(rate t - ln decay)`, where `t` is counted from the stop before.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockPart {
    pub(super) weight: f64,
    pub(super) rate: f64,
    decay: f64,
    /// The sigmoid at the start.
    start: f64,
}

impl ClockPart {
    pub(super) fn new(clock: UnitClock, weight: f64, after: f64) -> Self {
        let decay = clock.decay(after);
        Self { weight, rate: clock.rate, decay, start: 1.0 / (1.0 + decay) }
    }

    /// What the sigmoid has gained, given `1 - e^(-rate t)`.
    pub(super) fn gain_of(&self, fall: f64) -> f64 {
        self.decay * self.start * fall / (1.0 + self.decay * (1.0 - fall))
    }

    /// What the sigmoid has gained, given `e^(-rate t)`, and its slope.
    fn gain(&self, falls: f64) -> (f64, f64) {
        let decay = self.decay * falls;
        let sigmoid = 1.0 / (1.0 + decay);
        (sigmoid - self.start, self.rate * decay * sigmoid * sigmoid)
    }

    /// Mean and square of what the sigmoid gains from a time on, at which `e^(-rate t)` is `falls`, until a branch at
    /// the rate `branches`.
    ///
    /// With `r = branches / rate`, `s = decay / (1 + decay)` and rising factorials `(x)_k`, Pfaff's transformation of
    /// hypergeometric functions gives series of positive terms,
    /// `s (1 - s) / (r + 1) sum_k (2)_k / (r + 2)_k s^k` and
    /// `2 (s (1 - s))^2 / ((r + 1)(r + 2)) sum_k (k + 1) (3)_k / (r + 3)_k s^k`.
    fn endless(&self, falls: f64, branches: f64) -> (f64, f64) {
        let r = branches / self.rate;
        let decay = self.decay * falls;
        let (s, both) = (decay / (1.0 + decay), decay / ((1.0 + decay) * (1.0 + decay)));
        let [one, two] = [1.0 / (r + 1.0), 1.0 / (r + 2.0)];
        let (mut first, mut second) = (1.0, 1.0);
        let (mut mean, mut square) = (1.0, 1.0);
        let (mut k, mut next) = (1.0, two);
        while k * second > f64::EPSILON * 0.1 * square {
            first *= s * (k + 1.0) * next;
            next = 1.0 / (r + 2.0 + k);
            second *= s * (k + 2.0) * next;
            k += 1.0;
            mean += first;
            square += k * second;
        }
        (both * one * mean, 2.0 * both * both * one * two * square)
    }
}

/// Half of the nodes of Gauss-Legendre rules on `[0, 1]`, and their weights; the others mirror them.
pub(super) const GAUSS_4: [(f64, f64); 2] = [
    (0.069_431_844_202_973_71, 0.173_927_422_568_726_79),
    (0.330_009_478_207_571_87, 0.326_072_577_431_273_2),
];
const GAUSS_6: [(f64, f64); 3] = [
    (0.033_765_242_898_423_98, 0.085_662_246_189_585_14),
    (0.169_395_306_766_867_76, 0.180_380_786_524_069_36),
    (0.380_690_406_958_401_56, 0.233_956_967_286_345_52),
];
pub(super) const GAUSS_8: [(f64, f64); 4] = [
    (0.019_855_071_751_231_912, 0.050_614_268_145_188_13),
    (0.101_666_761_293_186_64, 0.111_190_517_226_687_21),
    (0.237_233_795_041_835_5, 0.156_853_322_938_943_7),
    (0.408_282_678_752_175_1, 0.181_341_891_689_180_83),
];

/// Rules, and the longest time for each in units in which the integrand falls at the rate 1: its error is below 1e-11
/// then.
const RULES: [(f64, &[(f64, f64)]); 3] = [(0.25, &GAUSS_4), (1.0, &GAUSS_6), (LONGEST, &GAUSS_8)];
const LONGEST: f64 = 2.0;

/// Means of what the parts of a clock gain until a branch, without their weights, and the variance of the whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gains<const N: usize> {
    pub(super) means: [f64; N],
    pub(super) spread: f64,
}

impl<const N: usize> Gains<N> {
    pub(super) fn until(time: &TruncatedExponential, parts: [ClockPart; N]) -> Self {
        let probability = -(-time.rate * time.span).exp_m1();
        if probability <= 0.0 {
            // A piece of a time that overflows is a moment.
            return Self { means: [0.0; N], spread: 0.0 };
        }
        let mut this =
            Integrals { time: *time, parts, ends: 1.0 - probability, means: [0.0; N], square: 0.0 };
        this.integrate();
        let means = this.means.map(|mean| mean / probability);
        let mean: f64 = parts.iter().zip(means).map(|(part, mean)| part.weight * mean).sum();
        Self { means, spread: (this.square / probability - mean * mean).max(0.0) }
    }
}

/// Sums on the way to [`Gains`], times the probability that the branch comes in time.
struct Integrals<const N: usize> {
    time: TruncatedExponential,
    parts: [ClockPart; N],
    /// The probability that it does not.
    ends: f64,
    means: [f64; N],
    square: f64,
}

impl<const N: usize> Integrals<N> {
    fn integrate(&mut self) {
        let TruncatedExponential { rate, span, .. } = self.time;
        let fastest = self.parts.iter().map(|part| part.rate).fold(0.0, f64::max);
        let both = rate + fastest;
        if both * span <= LONGEST {
            return self.step(0.0, span, both);
        }
        let (from, until) = match self.parts[..] {
            // The series needs a clock that is past its delay; farther before that it hardly moves.
            [ClockPart { decay, .. }] => {
                let delay = decay.ln().max(0.0) / fastest;
                let until = delay.min(LOST / rate).min(span);
                ((delay - LOST / fastest).clamp(0.0, until), until)
            }
            // It needs a single clock.
            _ => (0.0, (FADED / both).min(span)),
        };
        let n = (both * (until - from) / LONGEST).ceil();
        let width = (until - from) / n;
        for i in 0..n as u32 {
            let start = from + f64::from(i) * width;
            self.step(start, if f64::from(i + 1) < n { start + width } else { until }, both);
        }
        if until < span && until < LOST / rate {
            self.rest(until);
        }
    }

    /// Adds the integrals over a short time, in which the integrands fall at the rate `both` at most.
    fn step(&mut self, from: f64, to: f64, both: f64) {
        let TruncatedExponential { rate, .. } = self.time;
        let width = to - from;
        let at = both * width;
        let (_, rule) = RULES.into_iter().find(|(longest, _)| at <= *longest).unwrap_or(RULES[2]);
        // Exponentials at a node give those at the node that mirrors it.
        let start = |rate: f64| if from > 0.0 { (-rate * from).exp() } else { 1.0 };
        let all = |rate: f64| (start(rate), (-rate * width).exp());
        let (stays, whole_stays) = all(rate);
        let falls = self.parts.map(|part| all(part.rate));
        for &(z, weight) in rule {
            let part = |rate: f64| (-rate * (width * z)).exp();
            let near = part(rate);
            let near_falls = self.parts.map(|own| part(own.rate));
            let mut far_falls = near_falls;
            for k in 0..N {
                far_falls[k] = falls[k].1 / near_falls[k];
            }
            for (survives, parts) in [(near, near_falls), (whole_stays / near, far_falls)] {
                let measure = width * weight * (stays * survives - self.ends);
                let (mut gained, mut slope) = (0.0, 0.0);
                for k in 0..N {
                    let part = &self.parts[k];
                    let (gain, own_slope) = part.gain(falls[k].0 * parts[k]);
                    self.means[k] += measure * own_slope;
                    gained += part.weight * gain;
                    slope += part.weight * own_slope;
                }
                self.square += 2.0 * measure * gained * slope;
            }
        }
    }

    /// Adds the integrals from a time on, at which only the slowest part is left. The time has no memory, so that they
    /// are those without an end, less those from the end on.
    fn rest(&mut self, from: f64) {
        let TruncatedExponential { rate, span, .. } = self.time;
        let mut slowest = 0;
        let mut before = 0.0;
        for (k, part) in self.parts.iter().enumerate() {
            if part.rate < self.parts[slowest].rate {
                slowest = k;
            }
            before += part.weight * part.gain((-part.rate * from).exp()).0;
        }
        let part = self.parts[slowest];
        let (falls, stays) = ((-part.rate * from).exp(), (-rate * from).exp());
        let (mean, square) = part.endless(falls, rate);
        let (mut mean, mut square) = (stays * mean, stays * square);
        if self.ends > 0.0 {
            let last = (-part.rate * span).exp();
            let gain = part.gain(last).0 - part.gain(falls).0;
            let (beyond, beyond_square) = part.endless(last, rate);
            mean -= self.ends * (gain + beyond);
            square -= self.ends * (gain * (gain + 2.0 * beyond) + beyond_square);
        }
        self.means[slowest] += mean;
        self.square += part.weight * (2.0 * before * mean + part.weight * square);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::control::Run;
    use crate::data::Rows;
    use crate::mondrian::forest::Batch;
    use crate::mondrian::forest::settings::MondrianSettings;
    use crate::mondrian::forest::storage::with_storage;
    use crate::mondrian::prediction::stop::Branch;
    use crate::mondrian::process::domain::Domain;
    use crate::mondrian::regression::regressor::MondrianRegressor;
    use crate::mondrian::regression::settings::RegressionSettings;
    use crate::mondrian::tree::arena::NodeId;
    use crate::random::keyed::Stream;

    const NONE: CoarsePrior = CoarsePrior::NONE;
    pub(crate) const PRIORS: [(f64, f64, CoarsePrior); 6] = [
        (0.7, 0.0, NONE),
        (30.0, 0.0, NONE),
        (0.7, 2.0, NONE),
        (25.0, 3.0, NONE),
        (0.7, 0.0, CoarsePrior { variance: 0.8, rate: 11.0 }),
        (2.0, 0.0, CoarsePrior { variance: 3.0, rate: 0.4 }),
    ];

    pub(crate) fn hyper((gamma2, delay, coarse): (f64, f64, CoarsePrior)) -> Hyperparameters {
        Hyperparameters { mu: 0.0, gamma1: 1.3, gamma2, noise_variance: 1e-30, delay, coarse }
    }

    /// Any node.
    fn node() -> NodeId {
        let rows = Rows::from_f64(&[0.3], 1).unwrap();
        let (domain, batch) =
            (Domain::new(vec![0.0], vec![1.0], None).unwrap(), Batch { rows, ids: None, weights: None });
        let (trees, settings) = (MondrianSettings::default(), RegressionSettings::default());
        let forest = MondrianRegressor::fit(trees, settings, domain, batch, &[1.0], &Run::default()).unwrap();
        with_storage!(forest.forest.flushed_alone(), storage => storage.trees[0].arena.root().unwrap())
    }

    /// Stops of all lengths, some without an end, at all rates.
    pub(crate) fn stops() -> Vec<Stop> {
        let mut stream = Stream::new(8, 0);
        let mut of_size = |least: f64, most: f64| least * (most / least).powf(stream.unit());
        let node = node();
        (0..60)
            .map(|i| {
                let after = if i % 5 == 0 { 0.0 } else { of_size(1e-3, 5.0) };
                let time = if i % 3 == 0 { f64::INFINITY } else { after + of_size(1e-3, 30.0) };
                Stop { node, after, time, branch: Branch::Rate(of_size(1e-2, 1e2)) }
            })
            .collect()
    }

    /// Mean, variance and mean of the coarse part, by the density of the time and very many steps.
    fn integrated(stop: &Stop, hyper: &Hyperparameters) -> [f64; 3] {
        let Branch::Rate(rate) = stop.branch else { panic!("it is random") };
        let [mean, square, coarse] = averaged(rate, stop.time - stop.after, |time| {
            let clock = hyper.clock(stop.after + time) - hyper.clock(stop.after);
            let coarse = hyper.coarse.clock(stop.after + time) - hyper.coarse.clock(stop.after);
            [clock, clock * clock, coarse]
        });
        [mean, square - mean * mean, coarse]
    }

    /// Averages over an exponential time that ends before `span`.
    pub(crate) fn averaged<const N: usize>(rate: f64, span: f64, of: impl Fn(f64) -> [f64; N]) -> [f64; N] {
        let (span, steps) = (span.min(60.0 / rate), 20_000);
        let edge = |i: i32| span * (f64::from(i) / f64::from(steps)).powi(3);
        let (mut all, mut sums) = (0.0, [0.0; N]);
        for i in 0..steps {
            let (from, width) = (edge(i), edge(i + 1) - edge(i));
            for (z, weight) in GAUSS_4.into_iter().flat_map(|(z, weight)| [(z, weight), (1.0 - z, weight)]) {
                let time = from + z * width;
                let mass = width * weight * rate * (-rate * time).exp();
                all += mass;
                sums.iter_mut().zip(of(time)).for_each(|(sum, value)| *sum += mass * value);
            }
        }
        sums.map(|sum| sum / all)
    }

    #[test]
    fn moments_are_the_integrals_over_the_time() {
        for hyper in PRIORS.map(hyper) {
            let unit = unit(&hyper);
            for stop in stops() {
                let expected = integrated(&stop, &hyper);
                // With rules for short times, and without.
                for fastest in [0.0, hyper.gamma2, f64::INFINITY] {
                    let law = BranchLaw::new(&stop, fastest).unwrap();
                    let found = clock_gain(&law, &stop, &hyper);
                    let found = [found.mean, unit * unit * found.spread, found.coarse];
                    for (found, expected) in found.into_iter().zip(expected) {
                        assert!(
                            (found - expected).abs() < 1e-10 * unit,
                            "{found} {expected} {stop:?} {hyper:?}"
                        );
                    }
                    let end = hyper.coarse.clock(7.0);
                    let rest = coarse_rest(&law, &stop, &hyper, (hyper.coarse, end, f64::INFINITY));
                    let expected = end - hyper.coarse.clock(stop.after) - expected[2];
                    assert!((rest - expected).abs() < 1e-10 * unit, "{stop:?} {hyper:?}");
                }
            }
        }
    }

    /// Of branches that come before a late clock moves: the series would have no end there.
    #[test]
    fn branches_long_before_the_delay_gain_next_to_nothing() {
        let (node, hyper) = (node(), hyper((25.0, 3.0, NONE)));
        for rate in (0..2000).map(|i| 20.0 + 0.37 * f64::from(i)) {
            let stop = Stop { node, after: 0.0, time: f64::INFINITY, branch: Branch::Rate(rate) };
            let found = clock_gain(&BranchLaw::new(&stop, hyper.gamma2).unwrap(), &stop, &hyper);
            assert!(found.mean < 1e-17 && found.spread < 1e-17, "{found:?} {rate}");
        }
    }

    /// The means of pieces have the mean of the whole, and variances add up.
    #[test]
    fn pieces_add_up_to_the_whole() {
        for hyper in PRIORS.map(hyper) {
            let unit = unit(&hyper);
            for stop in stops() {
                let law = BranchLaw::new(&stop, hyper.gamma2).unwrap();
                let whole = clock_gain(&law, &stop, &hyper);
                let piece = |piece| law.piece(&stop, (piece, 4), hyper.gamma2);
                let pieces: Vec<_> = (0..4).map(|k| clock_gain(&piece(k), &stop, &hyper)).collect();
                let mean = pieces.iter().map(|piece| 0.25 * piece.mean).sum::<f64>();
                let within = pieces.iter().map(|piece| 0.25 * piece.spread).sum::<f64>();
                let between =
                    pieces.iter().map(|piece| 0.25 * ((piece.mean - mean) / unit).powi(2)).sum::<f64>();
                assert!((mean - whole.mean).abs() < 1e-11 * unit, "{stop:?} {hyper:?}");
                assert!((within + between - whole.spread).abs() < 1e-11, "{stop:?} {hyper:?}");
            }
        }
    }
}
