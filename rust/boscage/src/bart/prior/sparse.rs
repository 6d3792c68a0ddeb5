//! A prior of the split probabilities of features (Linero 2018): `s ~ Dirichlet(alpha / p, ..., alpha / p)`
//! for `p` features, and a prior of `alpha`.
//!
//! A node is split along feature `d` of the features `V` that vary among its rows with probability
//! `s_d / sum_V s`. Write `s = g / sum g` with independent `g_d ~ Gamma(alpha / p, 1)`; the common scale of
//! `g` cancels. The sampler draws an auxiliary variable `t ~ Exponential(rate sum_V g)` for each inner node.
//! Since `1 / sum_V g` is the integral of `exp(-t sum_V g)` over `t`, the `g_d` are independent given all
//! `t`: `g_d ~ Gamma(alpha / p + n_d, 1 + t_d)`, where `n_d` is the number of cuts along `d`, and `t_d` is
//! the sum of `t` over the nodes with `d` in `V`. A feature of categories has a column for each rule; where only some of
//! them divide the rows of a node, it counts in the sums with their share. If all features vary in every node, this is
//! Linero's Dirichlet update.

use crate::bart::settings::Sparsity;
use crate::bart::state::tree::TreeState;
use crate::bart::state::varying::inner_nodes;
use crate::data::sorted::columns::SortedColumns;
use crate::math::logs::log_sum_exp;
use crate::random::distributions::draw_by_weight;
use crate::random::distributions::log_exponential;
use crate::random::keyed::Stream;

/// The state of the prior of split probabilities.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SplitWeights {
    /// Grid of concentrations; empty if the concentration is fixed.
    grid: Vec<(f64, f64)>,
    pub(crate) alpha: f64,
    /// `log s`.
    pub(crate) log_s: Vec<f64>,
}

impl SplitWeights {
    /// Equal probabilities, the starting state of chains.
    pub(crate) fn new(sparsity: Sparsity, n_features: usize) -> Self {
        let alpha = sparsity.alpha.unwrap_or(1.0);
        let grid = if sparsity.alpha.is_none() { concentrations(n_features as f64) } else { Vec::new() };
        Self { grid, alpha, log_s: vec![-libm::log(n_features as f64); n_features] }
    }

    /// Draws the split probabilities given the trees, and then their concentration.
    pub(crate) fn draw<'t>(
        &mut self,
        trees: impl Iterator<Item = &'t TreeState>,
        table: &SortedColumns,
        stream: &mut Stream,
    ) {
        let p = self.log_s.len();
        // The sum of `g` is independent of `s` under the prior, and trees do not depend on it, so it is
        // redrawn from its prior.
        let log_scale = stream.log_gamma(self.alpha);
        let weights: Vec<f64> = self.log_s.iter().map(|&log_s| libm::exp(log_s)).collect();
        let mut cuts = vec![0.0; p];
        // Sums of `t` over nodes in which all features vary, and over the other nodes.
        let (mut common, mut rates) = (RateSums::new(1), RateSums::new(p));
        // By feature, the share of its columns that vary in a node.
        let mut varies = vec![1.0; p];
        for tree in trees {
            for node in inner_nodes(tree, table) {
                cuts[table.feature_of(node.feature) as usize] += 1.0;
                if node.constant.is_empty() {
                    common.add(log_exponential(log_scale, stream), &[1.0]);
                    continue;
                }
                let constant = || node.constant.iter().map(|&d| table.feature_of(d) as usize);
                constant().for_each(|d| varies[d] = 0.0);
                if table.has_more_columns() {
                    shares_that_vary(constant(), table, &mut varies);
                }
                let log_sum = self.log_sum(&weights, &varies);
                rates.add(log_exponential(log_scale + log_sum, stream), &varies);
                constant().for_each(|d| varies[d] = 1.0);
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

    /// Logarithm of the sum of `s` over the features that vary; `weights` is `s`. It falls back to logarithms
    /// if the sum nearly underflows.
    fn log_sum(&self, weights: &[f64], varies: &[f64]) -> f64 {
        /// Weights that underflowed to zero are below 1e-307, and are negligible in a sum above this.
        const SURE: f64 = 1e-280;
        let sum: f64 = weights.iter().zip(varies).map(|(weight, varies)| weight * varies).sum();
        if sum > SURE {
            return libm::log(sum);
        }
        let own = self.log_s.iter().zip(varies).filter(|(_, varies)| **varies > 0.0);
        log_sum_exp(&own.map(|(&log_s, varies)| log_s + libm::log(*varies)).collect::<Vec<_>>())
    }
}

/// Sets the shares of columns that vary, of features of which some columns are constant. `constant` has a feature as
/// often as it has constant columns; its shares are zero at first.
fn shares_that_vary(
    constant: impl Iterator<Item = usize> + Clone,
    table: &SortedColumns,
    shares: &mut [f64],
) {
    constant.clone().for_each(|d| shares[d] -= 1.0);
    // Now they are minus the numbers of constant columns.
    for d in constant {
        if shares[d] < 0.0 {
            let n_columns = f64::from(table.n_columns_of(d));
            shares[d] = (n_columns + shares[d]) / n_columns;
        }
    }
}

/// Sums of `t` by feature. If the features that vary have very small probabilities `t` may overflow; such
/// terms are summed by their logarithms.
struct RateSums {
    sums: Vec<f64>,
    /// Empty until a term does not fit into `sums`.
    log_sums: Vec<f64>,
}

impl RateSums {
    fn new(n: usize) -> Self {
        Self { sums: vec![0.0; n], log_sums: Vec::new() }
    }

    /// Adds `t`, given by its logarithm, to the sums of the features that vary, times the share of their columns
    /// that do.
    fn add(&mut self, log_t: f64, varies: &[f64]) {
        /// Any number of terms below the exponential of this has a finite sum.
        const LARGEST: f64 = 600.0;
        if log_t < LARGEST {
            let t = libm::exp(log_t);
            self.sums.iter_mut().zip(varies).for_each(|(sum, varies)| *sum += t * varies);
            return;
        }
        self.log_sums.resize(self.sums.len(), f64::NEG_INFINITY);
        for (log_sum, varies) in self.log_sums.iter_mut().zip(varies).filter(|(_, varies)| **varies > 0.0) {
            *log_sum = log_sum_exp(&[*log_sum, log_t + libm::log(*varies)]);
        }
    }

    /// The sum of a feature: terms added directly, and the logarithm of the sum of the others.
    fn at(&self, d: usize) -> (f64, f64) {
        (self.sums[d], self.log_sums.get(d).copied().unwrap_or(f64::NEG_INFINITY))
    }

    /// Logarithm of one plus two such sums.
    fn log_one_more([a, b]: [(f64, f64); 2]) -> f64 {
        let log = libm::log(1.0 + a.0 + b.0);
        if a.1.max(b.1) == f64::NEG_INFINITY { log } else { log_sum_exp(&[log, a.1, b.1]) }
    }
}

/// A grid of concentrations, on which `alpha / (alpha + p)` has equal steps. The second number is the part of
/// the log density of `alpha` that does not depend on `log s`, with prior
/// `alpha / (alpha + p) ~ Beta(1/2, 1)`.
fn concentrations(p: f64) -> Vec<(f64, f64)> {
    const POINTS: u32 = 1000;
    let point = |i: u32| {
        let share = f64::from(i) / f64::from(POINTS);
        let alpha = p * share / (1.0 - share);
        (alpha, libm::lgamma(alpha) - p * libm::lgamma(alpha / p) - 0.5 * libm::log(share))
    };
    (1..POINTS).map(point).collect()
}

/// Draws the concentration given `log s`.
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

    /// Sums agree with sums of logarithms, within the range of floating-point numbers and beyond.
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
