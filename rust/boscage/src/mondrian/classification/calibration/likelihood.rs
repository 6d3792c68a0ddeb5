//! The likelihood of the classes of left-out rows, and the numbers under which it is greatest.
//!
//! Beside a row's own class, another one has the odds `exp(t_k)` with `t_k = a l_k + max(0, 1 - a) s_k + b f_k + c g_k`: the logarithms of
//! probabilities and shares, and the values of functions, all less those of the own class. So the own class has the probability
//! `p = 1 / (1 + sum exp(t_k))` before noise, and `(1 - e) p + e / K` after. Below and above the power 1, `t_k` is linear in `a`,
//! `b` and `c`, and `-log p` is convex in them. Each side is searched on its own: from the best of some starts, by Newton's method
//! in all numbers and in `log e`.

use crate::math::newton::{Local, minimise};
use crate::mondrian::classification::calibration::link::nearness;
use crate::mondrian::classification::predictive::Average;

/// Bounds of the power.
pub(super) const MIN_POWER: f64 = 1.0 / 16.0;
pub(super) const MAX_POWER: f64 = 16.0;
/// A prior on the power, `(a exp(1 - a))^PRIOR`, which is greatest at 1: about as strong as this many rows. Without it, rows
/// that are all predicted well would ask for the greatest power.
pub(super) const PRIOR: f64 = 1.0;
/// A prior on the share of noise, `e^NOISE`: rows that show no noise leave a share of about `NOISE` over their number, so that
/// no class is ever ruled out.
pub(super) const NOISE: f64 = 0.1;
/// The bound of a function's weight, and the mean of its exponential prior, which counts as much as the power's.
const MAX_WEIGHT: f64 = 64.0;
pub(super) const USUAL_WEIGHT: f64 = 10.0;
/// Bounds of the share of noise. The largest leaves the order of classes.
const MIN_NOISE: f64 = 1e-12;
pub(super) const MAX_NOISE: f64 = 0.99;
/// Stands for a probability of 0 of a row's own class: every power of it is next to nothing, and only noise explains the row.
const SMALLEST: f64 = 1e-300;
/// The same where there are no shares: forests in older files keep what was fitted with it.
const SMALLEST_OF_FILES: f64 = 1e-18;
/// Powers on either side of 1 from which a search may start, evenly on a logarithmic scale, and weights.
const POWERS: usize = 17;
const WEIGHTS: [f64; 2] = [0.0, 5.0];

/// What is fitted: the power, the share of noise, and the weights of functions, which are 0 where there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) power: f64,
    pub(super) noise: f64,
    pub(super) joint: f64,
    pub(super) trend: f64,
    /// What is minimised, with them: 0 without any rows.
    pub(super) loss: f64,
}

/// What there is beside probabilities.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Terms {
    pub(super) shares: bool,
    pub(super) joint: bool,
    pub(super) trend: bool,
}

impl Terms {
    /// The number of functions.
    fn n_functions(self) -> usize {
        usize::from(self.joint) + usize::from(self.trend)
    }

    /// The number of terms of `t`.
    fn width(self) -> usize {
        1 + usize::from(self.shares) + self.n_functions()
    }
}

/// What stands beside the average of a left-out row: logarithms of the shares of classes over that of its own, and the
/// values of the functions that there are, the joint one first.
pub(super) struct BesideRow<'a, F> {
    pub(super) log_shares: F,
    pub(super) joint: Option<&'a [f64]>,
    pub(super) trend: Option<&'a [f64]>,
}

/// Rows of several classes.
pub(super) struct LeftOutRows {
    pub(super) terms: Terms,
    pub(super) n_classes: usize,
    /// Of each row the terms of all other classes that are not impossible, class after class.
    pub(super) odds: Vec<Vec<f64>>,
    /// Their mean is 1.
    weights: Vec<f64>,
}

impl LeftOutRows {
    pub(super) fn new(terms: Terms, n_classes: usize) -> Self {
        Self { terms, n_classes, odds: Vec::new(), weights: Vec::new() }
    }

    /// Adds a row of a class.
    pub(super) fn push(
        &mut self,
        Average { proba, of_all }: Average<'_>,
        beside: &BesideRow<'_, impl Fn(usize) -> f64>,
        (own, weight): (usize, f64),
    ) {
        let smallest = if self.terms.shares { SMALLEST } else { SMALLEST_OF_FILES };
        let (near, log_own) = (nearness(of_all), libm::log(proba[own].max(smallest)));
        let more = |values: Option<&[f64]>, k: usize| values.map(|values| values[k] - values[own]);
        let mut odds = Vec::with_capacity(self.terms.width() * (proba.len() - 1));
        for (k, &p) in proba.iter().enumerate().filter(|&(k, &p)| k != own && p > 0.0) {
            odds.push(libm::log(p) - log_own);
            odds.extend(self.terms.shares.then(|| near * (beside.log_shares)(k)));
            odds.extend(more(beside.joint, k));
            odds.extend(more(beside.trend, k).map(|more| near * more));
        }
        debug_assert_eq!(odds.len() % self.terms.width(), 0, "as many terms as were announced");
        self.odds.push(odds);
        self.weights.push(weight);
    }

    /// The numbers under which the rows are most likely; without any, the noise that so many rows leave that show none.
    pub(super) fn best(&self, n_without_noise: usize) -> Numbers {
        if self.odds.is_empty() {
            let others = 1.0 - 1.0 / self.n_classes as f64;
            let noise = NOISE / ((NOISE + n_without_noise as f64) * others);
            return Numbers { power: 1.0, noise: noise.min(MAX_NOISE), joint: 0.0, trend: 0.0, loss: 0.0 };
        }
        let sides = if self.terms.shares {
            vec![(MIN_POWER, 1.0), (1.0, MAX_POWER)]
        } else {
            vec![(MIN_POWER, MAX_POWER)]
        };
        let found = sides.into_iter().map(|powers| self.best_of_side(powers));
        let (x, loss) = found.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are sides");
        let mut functions = x[1..x.len() - 1].iter().copied();
        let mut weight = |is_there: bool| if is_there { functions.next() } else { None }.unwrap_or(0.0);
        let (joint, trend) = (weight(self.terms.joint), weight(self.terms.trend));
        Numbers { power: x[0], noise: libm::exp(x[x.len() - 1]).min(MAX_NOISE), joint, trend, loss }
    }

    /// The best numbers with a power within bounds, and their loss.
    fn best_of_side(&self, powers: (f64, f64)) -> (Vec<f64>, f64) {
        let side = Side { rows: self, draws: self.terms.shares && powers.1 <= 1.0 };
        let step = libm::log(powers.1 / powers.0) / (POWERS - 1) as f64;
        let n_starts = WEIGHTS.len().pow(self.terms.n_functions() as u32);
        let mut best: Option<(Vec<f64>, f64)> = None;
        for start in 0..n_starts {
            for power in 0..POWERS {
                let mut x = vec![(powers.0 * libm::exp(step * power as f64)).clamp(powers.0, powers.1)];
                x.extend((0..self.terms.n_functions()).map(|f| WEIGHTS[start >> f & 1]));
                let (noise, loss) = side.with_best_noise(&x);
                x.push(libm::log(noise));
                if best.as_ref().is_none_or(|(_, least)| loss < *least) {
                    best = Some((x, loss));
                }
            }
        }
        let (start, _) = best.expect("there are powers");
        let mut bounds = vec![powers];
        bounds.extend((0..self.terms.n_functions()).map(|_| (0.0, MAX_WEIGHT)));
        bounds.push((libm::log(MIN_NOISE), libm::log(MAX_NOISE)));
        minimise(|x| side.local(x), &start, &bounds)
    }
}

/// The loss of some rows on one side of the power 1: of the power, the weights of functions, and the logarithm of noise.
pub(super) struct Side<'a> {
    pub(super) rows: &'a LeftOutRows,
    /// Whether probabilities are drawn to the shares of classes.
    pub(super) draws: bool,
}

impl Side<'_> {
    /// Of another class's terms, the part of `t` that does not depend on the numbers, and its slopes in them.
    fn linear(&self, terms: &[f64], slopes: &mut [f64]) -> f64 {
        let (shares, functions) = terms[1..].split_at(usize::from(self.rows.terms.shares));
        let drawn = if self.draws { shares[0] } else { 0.0 };
        slopes[0] = terms[0] - drawn;
        slopes[1..].copy_from_slice(functions);
        drawn
    }

    /// Calls `visit` with the probability of each row's own class before noise, its weight, and the first and second
    /// derivatives of the negative logarithm, given the power and the weights of functions.
    fn each_row(&self, x: &[f64], mut visit: impl FnMut(f64, f64, &[f64], &[f64])) {
        let (n, width) = (x.len(), self.rows.terms.width());
        let (mut gradient, mut curvature) = (vec![0.0; n], vec![0.0; n * n]);
        let mut slopes = Vec::new();
        let mut odds = Vec::new();
        for (row, &weight) in self.rows.odds.iter().zip(&self.rows.weights) {
            odds.clear();
            slopes.resize(row.len() / width * n, 0.0);
            for (terms, slopes) in row.chunks_exact(width).zip(slopes.chunks_exact_mut(n)) {
                let constant = self.linear(terms, slopes);
                odds.push(constant + slopes.iter().zip(x).map(|(slope, x)| slope * x).sum::<f64>());
            }
            let most = odds.iter().copied().fold(0.0, f64::max);
            let own = libm::exp(-most);
            let mut sum = own;
            for odds in &mut odds {
                *odds = libm::exp(*odds - most);
                sum += *odds;
            }
            gradient.fill(0.0);
            curvature.fill(0.0);
            for (p, slopes) in odds.iter().zip(slopes.chunks_exact(n)) {
                let p = p / sum;
                for i in 0..n {
                    gradient[i] += p * slopes[i];
                    for j in 0..=i {
                        curvature[i * n + j] += p * slopes[i] * slopes[j];
                    }
                }
            }
            for i in 0..n {
                for j in 0..=i {
                    curvature[i * n + j] -= gradient[i] * gradient[j];
                }
            }
            visit(own / sum, weight, &gradient, &curvature);
        }
    }

    /// The probabilities of rows' own classes before noise.
    fn own(&self, x: &[f64]) -> Vec<f64> {
        let mut own = Vec::with_capacity(self.rows.odds.len());
        let (mut slopes, width) = (vec![0.0; x.len()], self.rows.terms.width());
        for row in &self.rows.odds {
            let odds = row.chunks_exact(width).map(|terms| {
                let constant = self.linear(terms, &mut slopes);
                libm::exp(constant + slopes.iter().zip(x).map(|(slope, x)| slope * x).sum::<f64>())
            });
            own.push(1.0 / (1.0 + odds.sum::<f64>()));
        }
        own
    }

    fn uniform(&self) -> f64 {
        1.0 / self.rows.n_classes as f64
    }

    /// The best noise for a power and weights of functions, and the loss.
    fn with_best_noise(&self, x: &[f64]) -> (f64, f64) {
        let (own, weights, uniform) = (self.own(x), &self.rows.weights, self.uniform());
        let noise = best_noise(&own, weights, uniform);
        let loss = |(own, weight): (f64, &f64)| -weight * libm::log((1.0 - noise) * own + noise * uniform);
        let fit: f64 = own.into_iter().zip(weights).map(loss).sum();
        (noise, fit + prior(x, libm::log(noise)))
    }

    /// The loss and its derivatives.
    pub(super) fn local(&self, x: &[f64]) -> Local {
        let n = x.len();
        let (last, uniform, noise) = (n - 1, self.uniform(), libm::exp(x[n - 1]));
        let mut at =
            Local { value: prior(&x[..last], x[last]), gradient: vec![0.0; n], curvature: vec![0.0; n * n] };
        at.gradient[0] = PRIOR * (1.0 - 1.0 / x[0]);
        at.curvature[0] = PRIOR / (x[0] * x[0]);
        at.gradient[1..last].fill(PRIOR / USUAL_WEIGHT);
        at.gradient[last] = -NOISE;
        self.each_row(&x[..last], |own, weight, gradient, curvature| {
            let mixed = (1.0 - noise) * own + noise * uniform;
            at.value -= weight * libm::log(mixed);
            let kept = (1.0 - noise) * own / mixed;
            for i in 0..last {
                at.gradient[i] += weight * kept * gradient[i];
                for j in 0..=i {
                    let crossed = (1.0 - kept) * gradient[i] * gradient[j];
                    at.curvature[i * n + j] += weight * kept * (curvature[i * last + j] - crossed);
                }
                at.curvature[last * n + i] -= weight * noise * own * uniform / (mixed * mixed) * gradient[i];
            }
            // In the logarithm of the noise.
            let slope = noise * (own - uniform) / mixed;
            at.gradient[last] += weight * slope;
            at.curvature[last * n + last] += weight * (slope * slope + slope);
        });
        at
    }
}

/// The negative logarithm of the prior.
fn prior(x: &[f64], log_noise: f64) -> f64 {
    let of_weights = x[1..].iter().sum::<f64>() / USUAL_WEIGHT;
    PRIOR * (x[0] - 1.0 - libm::log(x[0]) + of_weights) - NOISE * log_noise
}

/// The share of noise under which labels with some probabilities are most likely, where noise gives each the probability
/// `uniform`. The negative log likelihood is convex, so that its slope has one zero.
fn best_noise(own: &[f64], weights: &[f64], uniform: f64) -> f64 {
    /// Halvings, which find the smallest shares that there are to many digits.
    const STEPS: usize = 60;
    let slope = |noise: f64| {
        let of_row = |p: &f64| (p - uniform) / ((1.0 - noise) * p + noise * uniform);
        own.iter().zip(weights).map(|(p, weight)| weight * of_row(p)).sum::<f64>() - NOISE / noise
    };
    let (mut low, mut high) = (0.0, MAX_NOISE);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if slope(middle) > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}
