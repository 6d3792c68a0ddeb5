//! The measure under which a Mondrian process would most likely have cut where trees with best splits did.
//!
//! A process with mass `m_dk` on bin `k` of feature `d` cuts a node in that bin with probability `m_dk o_dk
//! / sum m o`, `o_dk` being the share of the bin that lies in the node's box. So the trees' choices,
//! weighted by their gains, have a likelihood (Luce's choice model), and Hunter's (2004) minorisation finds
//! its maximum. Bins are shrunk towards their feature, and features towards each other, so that no rate
//! becomes 0.

use crate::mondrian::feature_rates::best_split_trees::SplitChoice;
use crate::mondrian::feature_rates::binned_axis::Axis;

const ITERATIONS: usize = 40;
/// Weight of a feature's mean rate in each of its bins, beside the bin's own share.
const BIN_PRIOR: f64 = 0.2;
/// Share of all gains that is added as prior gains, spread evenly over the features.
const FEATURE_PRIOR: f64 = 1e-3;
/// The weight of a feature that is never cut.
const LEAST_WEIGHT: f64 = 1e-4;

/// Rate of a measure by feature, and masses of its bins.
#[derive(Debug, Clone)]
pub(crate) struct Measure {
    /// Their mean is about one.
    pub(crate) weights: Vec<f64>,
    /// By feature; only ratios within a feature count.
    pub(crate) masses: Vec<Vec<f64>>,
}

/// The likeliest measure, from the choices that gained most if they are many.
pub(crate) fn likeliest(mut choices: Vec<SplitChoice>, axes: &[Axis]) -> Measure {
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
    /// Where each feature's begin, and where all end.
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

    /// The base measure of each bin within a node's box.
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

    /// Rates of the bins relative to the base measure.
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

/// A sum of products in an order that fits wide registers, the same everywhere.
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
