//! A part of the prior's clock, a sigmoid, and what it gains until an exponential time: series.

use crate::mondrian::regression::hierarchy::branch_time::{TruncatedExponential, UnitClock};

/// The share of a series' sum below which its terms are left out.
const SERIES_ENDS: f64 = 1e-14;

/// A part of the clock: a weight times `sigma(rate t - ln decay)`, where `t` is counted from the stop before.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockPart {
    pub(super) weight: f64,
    pub(super) rate: f64,
    decay: f64,
    /// The sigmoid at the start.
    pub(super) start: f64,
}

impl ClockPart {
    pub(super) fn new(clock: UnitClock, weight: f64, after: f64) -> Self {
        let decay = clock.decay(after);
        Self { weight, rate: clock.rate, decay, start: 1.0 / (1.0 + decay) }
    }

    /// What the sigmoid can still gain.
    pub(super) fn rest(&self) -> f64 {
        self.decay * self.start
    }

    /// Whether the clock's slope falls from the start on.
    pub(super) fn is_past_delay(&self) -> bool {
        self.decay <= 1.0
    }

    /// How long it takes until the slope falls.
    pub(super) fn delay(&self) -> f64 {
        if self.is_past_delay() { 0.0 } else { self.decay.ln() / self.rate }
    }

    /// What the sigmoid has gained, given `1 - e^(-rate t)`.
    pub(super) fn gain_of(&self, fall: f64) -> f64 {
        self.decay * self.start * fall / (1.0 + self.decay * (1.0 - fall))
    }

    /// What the sigmoid has gained, given `e^(-rate t)`, and its slope.
    pub(super) fn gain(&self, falls: f64) -> (f64, f64) {
        let decay = self.decay * falls;
        let sigmoid = 1.0 / (1.0 + decay);
        (sigmoid - self.start, self.rate * decay * sigmoid * sigmoid)
    }

    /// The mean of what the sigmoid gains until a branch; the clock is past its delay, and the branch is not impossible.
    pub(super) fn mean_gain(&self, time: &TruncatedExponential) -> f64 {
        let whole = self.endless_mean(1.0, time.rate);
        match self.end(time) {
            None => whole,
            Some((falls, gain)) => {
                // The time has no memory.
                let beyond = gain + self.endless_mean(falls, time.rate);
                (whole - (1.0 - time.probability) * beyond) / time.probability
            }
        }
    }

    /// The same, and the mean square.
    pub(super) fn moments(&self, time: &TruncatedExponential) -> [f64; 2] {
        let whole = self.endless_square(1.0, time.rate);
        let square = match self.end(time) {
            None => whole,
            Some((falls, gain)) => {
                let [mean, square] = self.endless(falls, time.rate);
                let beyond = gain * (gain + 2.0 * mean) + square;
                (whole - (1.0 - time.probability) * beyond) / time.probability
            }
        };
        [self.mean_gain(time), square]
    }

    /// `e^(-rate t)` at the end of a time that has one, and what the sigmoid has gained there.
    fn end(&self, time: &TruncatedExponential) -> Option<(f64, f64)> {
        (time.probability < 1.0).then(|| {
            let falls = (-self.rate * time.span).exp();
            (falls, self.gain(falls).0)
        })
    }

    /// Mean and mean square of what the sigmoid gains from a time on, at which `e^(-rate t)` is `falls`, until a branch at the
    /// rate `branches`.
    ///
    /// With `r = branches / rate`, `s = decay / (1 + decay)` and rising factorials `(x)_k`, Pfaff's transformation of
    /// hypergeometric functions gives series of positive terms,
    /// `s (1 - s) / (r + 1) sum_k (2)_k / (r + 2)_k s^k` and
    /// `2 (s (1 - s))^2 / ((r + 1)(r + 2)) sum_k (k + 1) (3)_k / (r + 3)_k s^k`.
    pub(super) fn endless(&self, falls: f64, branches: f64) -> [f64; 2] {
        [self.endless_mean(falls, branches), self.endless_square(falls, branches)]
    }

    fn endless_mean(&self, falls: f64, branches: f64) -> f64 {
        let (s, both) = self.sides(falls);
        let r = branches / self.rate;
        let (mut k, mut term, mut sum) = (1.0, 1.0, 1.0);
        while term > SERIES_ENDS * sum {
            term *= s * (k + 1.0) / (r + 1.0 + k);
            sum += term;
            k += 1.0;
        }
        both / (r + 1.0) * sum
    }

    fn endless_square(&self, falls: f64, branches: f64) -> f64 {
        let (s, both) = self.sides(falls);
        let r = branches / self.rate;
        let (mut k, mut term, mut sum) = (1.0, 1.0, 1.0);
        while k * term > SERIES_ENDS * sum {
            term *= s * (k + 2.0) / (r + 2.0 + k);
            k += 1.0;
            sum += k * term;
        }
        2.0 * both * both / ((r + 1.0) * (r + 2.0)) * sum
    }

    /// `s` and `s (1 - s)`.
    fn sides(&self, falls: f64) -> (f64, f64) {
        let decay = self.decay * falls;
        let other = 1.0 / (1.0 + decay);
        (decay * other, decay * other * other)
    }
}
