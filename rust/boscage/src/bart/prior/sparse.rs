//! Split probabilities of features that are learnt (Linero 2018): `s ~ Dirichlet(alpha / p, ..., alpha / p)`, and a
//! prior of `alpha`.
//!
//! A node is split along one of the features `V` that vary among its rows, feature `d` with probability
//! `s_d / sum_V s`. What `s` multiplies does not matter to this: `s = g / sum g` with `g_d ~ Gamma(alpha / p, 1)`. For
//! each inner node draw `t ~ Exponential(rate sum_V g)`; then `1 / sum_V g` is the integral of `exp(-t sum_V g)`, and
//! given all `t` the `g` are independent again: `g_d ~ Gamma(alpha / p + cuts along d, 1 + sum of t of nodes with d
//! in V)`. (Where all of `V` is always everything, this is the Dirichlet update of Linero.)

use crate::bart::settings::Sparsity;
use crate::bart::state::tree::TreeState;
use crate::bart::state::varying::inner_nodes;
use crate::data::sorted_columns::SortedColumns;
use crate::math::logs::log_sum_exp;
use crate::random::distributions::draw_by_weight;
use crate::random::distributions::log_exponential;
use crate::random::keyed::Stream;

/// The state of the prior of split probabilities.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SplitWeights {
    /// Grid of concentrations; empty if the concentration is given.
    grid: Vec<(f64, f64)>,
    pub(crate) alpha: f64,
    /// `log s`.
    pub(crate) log_s: Vec<f64>,
}

impl SplitWeights {
    /// Equal probabilities, with which chains start.
    pub(crate) fn new(sparsity: Sparsity, n_features: usize) -> Self {
        let alpha = sparsity.alpha.unwrap_or(1.0);
        let grid = if sparsity.alpha.is_none() { concentrations(n_features as f64) } else { Vec::new() };
        Self { grid, alpha, log_s: vec![-libm::log(n_features as f64); n_features] }
    }

    /// Draws split probabilities given trees, and then their concentration.
    pub(crate) fn draw<'t>(
        &mut self,
        trees: impl Iterator<Item = &'t TreeState>,
        table: &SortedColumns,
        stream: &mut Stream,
    ) {
        let p = self.log_s.len();
        // The scale of g is independent of s a priori, and trees say nothing of it: it can be drawn anew.
        let log_scale = stream.log_gamma(self.alpha);
        let weights: Vec<f64> = self.log_s.iter().map(|&log_s| libm::exp(log_s)).collect();
        let mut cuts = vec![0.0; p];
        // Sums of t: of nodes all of whose features vary, and of others.
        let (mut common, mut rates) = (RateSums::new(1), RateSums::new(p));
        let mut varies = vec![1.0; p];
        for tree in trees {
            for node in inner_nodes(tree, table) {
                cuts[node.feature as usize] += 1.0;
                if node.constant.is_empty() {
                    common.add(log_exponential(log_scale, stream), &[1.0]);
                    continue;
                }
                node.constant.iter().for_each(|&d| varies[d as usize] = 0.0);
                let log_sum = self.log_sum(&weights, &varies);
                rates.add(log_exponential(log_scale + log_sum, stream), &varies);
                node.constant.iter().for_each(|&d| varies[d as usize] = 1.0);
            }
        }
        let share = self.alpha / p as f64;
        for (d, log_s) in self.log_s.iter_mut().enumerate() {
            let log_rate = RateSums::log_one_more([common.at(0), rates.at(d)]);
            *log_s = stream.log_gamma(share + cuts[d]) - log_rate;
        }
        let total = log_sum_exp(&self.log_s);
        for log_s in &mut self.log_s {
            *log_s -= total;
        }
        if !self.grid.is_empty() {
            self.alpha = draw_alpha(&self.grid, &self.log_s, stream);
        }
    }

    /// Logarithm of the sum of `s`, or `weights`, of features that vary: what varies may have hardly any probability.
    fn log_sum(&self, weights: &[f64], varies: &[f64]) -> f64 {
        /// Weights that underflowed to zero are below 1e-307; beside a sum above this they do not count, however many.
        const SURE: f64 = 1e-280;
        let sum: f64 = weights.iter().zip(varies).map(|(weight, varies)| weight * varies).sum();
        if sum > SURE {
            return libm::log(sum);
        }
        let own = self.log_s.iter().zip(varies).filter(|(_, varies)| **varies > 0.0);
        log_sum_exp(&own.map(|(&log_s, _)| log_s).collect::<Vec<_>>())
    }
}

/// Sums of `t` by feature. Where the features that vary have hardly any probability, `t` may overflow: such ones are
/// summed by their logarithms.
struct RateSums {
    sums: Vec<f64>,
    /// Empty as long as all fit into `sums`.
    log_sums: Vec<f64>,
}

impl RateSums {
    fn new(n: usize) -> Self {
        Self { sums: vec![0.0; n], log_sums: Vec::new() }
    }

    /// Adds `t`, given by its logarithm, where features vary (1, or else 0).
    fn add(&mut self, log_t: f64, varies: &[f64]) {
        /// The exponential of this, however often it is added up, is finite.
        const LARGEST: f64 = 600.0;
        if log_t < LARGEST {
            let t = libm::exp(log_t);
            self.sums.iter_mut().zip(varies).for_each(|(sum, varies)| *sum += t * varies);
            return;
        }
        self.log_sums.resize(self.sums.len(), f64::NEG_INFINITY);
        for (log_sum, _) in self.log_sums.iter_mut().zip(varies).filter(|(_, varies)| **varies > 0.0) {
            *log_sum = log_sum_exp(&[*log_sum, log_t]);
        }
    }

    /// A sum in two parts, of which the second is given by its logarithm.
    fn at(&self, d: usize) -> (f64, f64) {
        (self.sums[d], self.log_sums.get(d).copied().unwrap_or(f64::NEG_INFINITY))
    }

    /// Logarithm of one and two such sums.
    fn log_one_more([a, b]: [(f64, f64); 2]) -> f64 {
        let log = libm::log(1.0 + a.0 + b.0);
        if a.1.max(b.1) == f64::NEG_INFINITY { log } else { log_sum_exp(&[log, a.1, b.1]) }
    }
}

/// Concentrations `alpha` of `p` features where `alpha / (alpha + p)` is on a grid of equal steps, with all of the
/// logarithm of their density given `log s` that does not depend on it: `alpha / (alpha + p) ~ Beta(1/2, 1)`.
fn concentrations(p: f64) -> Vec<(f64, f64)> {
    const POINTS: u32 = 1000;
    let point = |i: u32| {
        let share = f64::from(i) / f64::from(POINTS);
        let alpha = p * share / (1.0 - share);
        (alpha, libm::lgamma(alpha) - p * libm::lgamma(alpha / p) - 0.5 * libm::log(share))
    };
    (1..POINTS).map(point).collect()
}

/// A draw of the concentration given `log s`.
fn draw_alpha(grid: &[(f64, f64)], log_s: &[f64], stream: &mut Stream) -> f64 {
    let mean = log_s.iter().sum::<f64>() / log_s.len() as f64;
    let logs: Vec<f64> = grid.iter().map(|(alpha, constant)| constant + alpha * mean).collect();
    grid[draw_by_weight(&logs, log_sum_exp(&logs), stream)].0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} and {b}");
    }

    /// As sums of logarithms say, in the range of numbers and beyond.
    #[test]
    fn sums_of_times_may_be_beyond_numbers() {
        for times in [&[-800.0, 2.0, -3.0][..], &[599.0, 601.0, 600.5], &[5.0, 1e4, -1e5, 650.0], &[1e250]] {
            let (mut common, mut rates) = (RateSums::new(1), RateSums::new(2));
            for &time in times {
                common.add(time, &[1.0]);
                rates.add(time, &[0.0, 1.0]);
            }
            let own = log_sum_exp(times);
            assert_close(RateSums::log_one_more([common.at(0), rates.at(0)]), log_sum_exp(&[0.0, own]));
            assert_close(RateSums::log_one_more([common.at(0), rates.at(1)]), log_sum_exp(&[0.0, own, own]));
        }
    }

    #[test]
    fn sums_of_probabilities_may_be_beyond_numbers() {
        let mut own = SplitWeights::new(Sparsity { alpha: None }, 4);
        own.log_s = vec![0.0, -640.0, -700.0, -1e5];
        let weights: Vec<f64> = own.log_s.iter().map(|&log_s| libm::exp(log_s)).collect();
        for varies in [[1.0; 4], [0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]] {
            let logs: Vec<f64> = (0..4).filter(|&d| varies[d] > 0.0).map(|d| own.log_s[d]).collect();
            assert_close(own.log_sum(&weights, &varies), log_sum_exp(&logs));
        }
    }
}
