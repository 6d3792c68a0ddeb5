//! The measure under which a Mondrian process makes the recorded cuts of other trees with the greatest
//! likelihood.
//!
//! A process with mass `m_dk` on bin `k` of feature `d` cuts a node in that bin with probability
//! `m_dk o_dk / sum m o`, where `o_dk` is the share of the bin that lies in the node's box. The cuts of the
//! trees, weighted by their gains, therefore have a likelihood as a function of the masses (Luce's choice
//! model). Hunter's (2004) minorisation maximises it. Bins are shrunk towards their feature, and features
//! towards each other, so that no rate becomes 0.

use crate::mondrian::feature_rates::best_split_trees::SplitChoice;
use crate::mondrian::feature_rates::binned_axis::Axis;

const ITERATIONS: usize = 40;
/// Prior weight of a feature's mean rate in each of its bins, relative to the bin's base measure.
const BIN_PRIOR: f64 = 0.2;
/// Prior gains, as a share of all gains, spread evenly over the features.
const FEATURE_PRIOR: f64 = 1e-3;
/// Least rate of a feature, for features that are never cut.
const LEAST_WEIGHT: f64 = 1e-4;

/// A measure: the rate of each feature, and the masses of its bins.
#[derive(Debug, Clone)]
pub(crate) struct Measure {
    /// The rates of features; their mean is about one.
    pub(crate) weights: Vec<f64>,
    /// By feature. Only ratios within a feature matter.
    pub(crate) masses: Vec<Vec<f64>>,
}

/// The measure with the greatest likelihood. If there are many cuts, only those with the greatest gains are
/// used.
pub(crate) fn maximum_likelihood(mut choices: Vec<SplitChoice>, axes: &[Axis]) -> Measure {
    choices.retain(|choice| axes[choice.feature].n_bins() > 0);
    choices.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    choices.truncate(if axes.len() < 60 { 6000 } else { 1500 });
    let bins = Bins::new(axes);
    let gains: Vec<f64> = choices.iter().map(|choice| choice.gain).collect();
    let mut cut = vec![0.0; bins.base.len()];
    for choice in &choices {
        cut[bins.starts[choice.feature] + choice.bin] += choice.gain;
    }
    let exposures: Vec<Vec<f32>> = choices.iter().map(|choice| bins.exposure(axes, choice)).collect();
    let rates = bins.maximise(&gains, &cut, &exposures);
    let of = |d: usize| bins.starts[d]..bins.starts[d + 1];
    let masses: Vec<Vec<f64>> =
        (0..axes.len()).map(|d| of(d).map(|k| bins.base[k] * rates[k]).collect()).collect();
    let weights = masses.iter().map(|masses| masses.iter().sum::<f64>().max(LEAST_WEIGHT)).collect();
    Measure { weights, masses }
}

/// The bins of all features, one feature after the other.
struct Bins {
    /// Index of the first bin of each feature, and the number of bins.
    starts: Vec<usize>,
    base: Vec<f64>,
}

impl Bins {
    fn new(axes: &[Axis]) -> Self {
        let mut starts = vec![0];
        starts.extend(axes.iter().scan(0, |end, axis| {
            *end += axis.n_bins();
            Some(*end)
        }));
        Self { starts, base: axes.iter().flat_map(|axis| axis.base.iter().copied()).collect() }
    }

    /// The base measure of the part of each bin that lies in the node's box.
    fn exposure(&self, axes: &[Axis], choice: &SplitChoice) -> Vec<f32> {
        let mut exposure = Vec::with_capacity(self.base.len());
        for ((axis, &low), &high) in axes.iter().zip(&choice.low).zip(&choice.high) {
            for (ends, base) in axis.knots.windows(2).zip(&axis.base) {
                let inside = (high.min(ends[1]) - low.max(ends[0])).max(0.0);
                exposure.push((base * inside / (ends[1] - ends[0])) as f32);
            }
        }
        exposure
    }

    /// The rates of the bins, relative to the base measure, with the greatest likelihood.
    fn maximise(&self, gains: &[f64], cut: &[f64], exposures: &[Vec<f32>]) -> Vec<f64> {
        let total: f64 = gains.iter().sum();
        let n_features = (self.starts.len() - 1) as f64;
        let own = FEATURE_PRIOR * total / n_features;
        let mut rates = vec![1.0; self.base.len()];
        if total.is_nan() || total <= 0.0 {
            return rates;
        }
        for _ in 0..ITERATIONS {
            let mut expected = vec![0.0_f32; rates.len()];
            let narrow: Vec<f32> = rates.iter().map(|&rate| rate as f32).collect();
            for (gain, exposure) in gains.iter().zip(exposures) {
                let rate = dot(exposure, &narrow);
                let factor = (gain / f64::from(rate.max(1e-30))) as f32;
                expected.iter_mut().zip(exposure).for_each(|(sum, share)| *sum += factor * share);
            }
            for range in self.starts.windows(2).map(|ends| ends[0]..ends[1]) {
                let cut_all = cut[range.clone()].iter().sum::<f64>() + own;
                let expected_all = expected[range.clone()].iter().map(|&e| f64::from(e)).sum::<f64>() + own;
                for k in range {
                    let prior = BIN_PRIOR * self.base[k];
                    rates[k] = (cut[k] + prior * cut_all)
                        / (f64::from(expected[k]) + prior * expected_all).max(f64::MIN_POSITIVE);
                }
            }
            let mean = rates.iter().zip(&self.base).map(|(rate, base)| rate * base).sum::<f64>() / n_features;
            for rate in &mut rates {
                *rate /= mean;
            }
        }
        rates
    }
}

/// A dot product, summed in an order that suits vector registers and does not depend on the platform.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}
