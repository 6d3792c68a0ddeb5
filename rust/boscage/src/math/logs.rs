//! Sums of numbers that are given by their logarithms.

/// Logarithm of the sum of exponentials; minus infinity for no terms.
pub(crate) fn log_sum_exp(logs: &[f64]) -> f64 {
    let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if best == f64::NEG_INFINITY {
        return best;
    }
    best + libm::log(logs.iter().map(|log| libm::exp(log - best)).sum())
}

/// Logarithm of the mean of exponentials.
pub(crate) fn log_mean_exp(logs: &[f64]) -> f64 {
    log_sum_exp(logs) - libm::log(logs.len() as f64)
}

/// Normalised weights. Weights are equal if all are zero; NaN counts as zero.
pub(crate) fn normalised(logs: &[f64]) -> Vec<f64> {
    let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if best == f64::NEG_INFINITY {
        return vec![1.0 / logs.len() as f64; logs.len()];
    }
    // Relative to the largest: subtracting the logarithm of a large total would round small differences away.
    let weight = |&log: &f64| if log == best { 1.0 } else { libm::exp(log - best).max(0.0) };
    let weights: Vec<f64> = logs.iter().map(weight).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_numbers_whatever_logarithms_are() {
        assert_eq!(normalised(&[0.0, f64::NAN, f64::NEG_INFINITY, 0.0]), [0.5, 0.0, 0.0, 0.5]);
        assert_eq!(normalised(&[f64::NAN; 2]), [0.5; 2]);
        assert_eq!(normalised(&[f64::INFINITY, 1.0, f64::NAN]), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn sums_do_not_overflow() {
        assert_eq!(log_sum_exp(&[-1e5, -1e5]), -1e5 + 2.0f64.ln());
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY; 2]), f64::NEG_INFINITY);
        assert_eq!(normalised(&[-1e5; 4]), [0.25; 4]);
    }
}
