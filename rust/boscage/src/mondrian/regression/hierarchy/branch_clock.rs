//! What the prior's clock gains until a test row branches off: mean and variance, to some 1e-11 of what it can gain.
//!
//! With the time `T` of a branch, counted from the stop before, and its survival function `S`, and with what the clock gains,
//! `c(t)`, by parts `E[c(T)] = int c' S dt` and `E[c(T)^2] = 2 int c c' S dt`. Over short times these are integrated
//! numerically. Over long ones they have a series.

use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hierarchy::branch_law::BranchLaw;
use crate::mondrian::regression::hierarchy::branch_time::{BranchTime, TruncatedExponential, UnitClock};
use crate::mondrian::regression::hierarchy::clock_part::ClockPart;

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
    if coarse.variance == 0.0 || is_negligible(left_of(coarse, stop), stop, hyper) {
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

/// Whether the coarse part of the clock, of which so much is left, has no effect after the stop before; of all pieces of a time
/// alike, so that they add up to the whole.
fn is_negligible(left: f64, stop: &Stop, hyper: &Hyperparameters) -> bool {
    // The other part's rest is at most 1, and takes an exponential.
    if left > NEGLIGIBLE * (hyper.noise_variance + hyper.gamma1) {
        return false;
    }
    let fine_clock = UnitClock { rate: hyper.gamma2, delay: hyper.delay };
    left <= NEGLIGIBLE * (hyper.noise_variance + hyper.gamma1 * fine_clock.rest(stop.after))
}

/// What is left of the coarse part after the stop before, without an end.
fn left_of(coarse: CoarsePrior, stop: &Stop) -> f64 {
    2.0 * coarse.variance * UnitClock::of_coarse(coarse).rest(stop.after)
}

/// The mean of [`clock_gain`].
pub(crate) fn mean_clock_gain(law: &BranchLaw, stop: &Stop, hyper: &Hyperparameters) -> f64 {
    match law.time {
        BranchTime::Random(time) if hyper.coarse.variance == 0.0 => {
            let clock = UnitClock { rate: hyper.gamma2, delay: hyper.delay };
            let part = ClockPart::new(clock, 1.0, time.after);
            hyper.gamma1 * (clock.gain(stop.after, time.after) + law.mean_gain(&time, part))
        }
        _ => clock_gain(law, stop, hyper).mean,
    }
}

/// What the coarse part of the clock gains between the branch and the lifetime, in the mean. `end` is the coarse part at the
/// lifetime, and `until` is [`end_of_coarse`]; `hyper` has no coarse part.
pub(crate) fn coarse_rest(
    law: &BranchLaw,
    stop: &Stop,
    hyper: &Hyperparameters,
    (coarse, end, until): (CoarsePrior, f64, f64),
) -> f64 {
    let (unit, clock) = (2.0 * coarse.variance, UnitClock::of_coarse(coarse));
    // The clock at a time at which such a share of it is left.
    let spent = |left: f64| unit * (0.5 - left);
    let time = match law.time {
        BranchTime::Random(time) if stop.after < until => time,
        BranchTime::Known(time) if stop.after < until => return end - coarse.clock(time),
        _ => return end - spent(clock.rest(stop.after)),
    };
    let part = ClockPart::new(clock, 1.0, time.after);
    // A piece of the time starts later.
    let left = if time.after == stop.after { part.rest() } else { clock.rest(stop.after) };
    if is_negligible(unit * left, stop, hyper) {
        return end - spent(left);
    }
    end - spent(part.rest()) - unit * law.mean_gain(&time, part)
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
        let probability = time.probability;
        if probability <= 0.0 {
            // A piece of a time that overflows is a moment.
            return Self { means: [0.0; N], spread: 0.0 };
        }
        if let [part] = &parts[..]
            && part.is_past_delay()
        {
            let [mean, square] = part.moments(time);
            let spread = part.weight * part.weight * (square - mean * mean);
            return Self { means: [mean; N], spread: spread.max(0.0) };
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
            [part] => {
                let delay = part.delay();
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
        let falls_until = |rate: f64| if from > 0.0 { (-rate * from).exp() } else { 1.0 };
        let mut slowest = 0;
        let mut before = 0.0;
        for (k, part) in self.parts.iter().enumerate() {
            if part.rate < self.parts[slowest].rate {
                slowest = k;
            }
            if from > 0.0 {
                before += part.weight * part.gain(falls_until(part.rate)).0;
            }
        }
        let part = self.parts[slowest];
        let (falls, stays) = (falls_until(part.rate), falls_until(rate));
        let [mut mean, mut square] = part.endless(falls, rate).map(|endless| stays * endless);
        if self.ends > 0.0 {
            let last = (-part.rate * span).exp();
            let gain = part.gain(last).0 - part.gain(falls).0;
            let [beyond, beyond_square] = part.endless(last, rate);
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
                // With the rule for short times, and without.
                let law = BranchLaw::new(&stop).unwrap();
                for law in [law, law.without_rule()] {
                    let mean = mean_clock_gain(&law, &stop, &hyper);
                    assert!((mean - expected[0]).abs() < 1e-10 * unit, "{mean} {stop:?} {hyper:?}");
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
            let found = clock_gain(&BranchLaw::new(&stop).unwrap(), &stop, &hyper);
            assert!(found.mean < 1e-17 && found.spread < 1e-17, "{found:?} {rate}");
        }
    }

    /// The means of pieces have the mean of the whole, and variances add up.
    #[test]
    fn pieces_add_up_to_the_whole() {
        for hyper in PRIORS.map(hyper) {
            let unit = unit(&hyper);
            for stop in stops() {
                let law = BranchLaw::new(&stop).unwrap();
                let whole = clock_gain(&law, &stop, &hyper);
                let piece = |piece| law.piece(&stop, (piece, 4));
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
