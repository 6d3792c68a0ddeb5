//! The means of what the prior's clock gains until a branch, if the branch's time is in each of several pieces of equal
//! probability.
//!
//! The law of a time in a piece is that of a truncated exponential again. So `clock_gain` has these means, too, and spreads.
//! Where only means are needed the pieces share what they can: a piece begins where the one before ends, clocks are counted
//! from the stop before, and the pieces add up to the whole.

use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hierarchy::branch_clock::{ClockPart, clock_gain, is_negligible};
use crate::mondrian::regression::hierarchy::branch_law::{BranchLaw, ShortTime};
use crate::mondrian::regression::hierarchy::branch_time::{BranchTime, TruncatedExponential, UnitClock};

/// The number of pieces of equal probability into which the time of a branch is divided where its
/// prediction depends on it.
pub(super) const PIECES: u32 = 5;
const N: usize = PIECES as usize;

/// The law of the time of a branch in one of the pieces.
pub(super) fn piece(law: &BranchLaw, stop: &Stop, hyper: &Hyperparameters, piece: u32) -> BranchLaw {
    law.piece(stop, (piece, PIECES), hyper.gamma2)
}

/// The mean of what the clock gains between the stop before and a branch in each of the pieces, given that of the whole.
pub(super) fn means(law: &BranchLaw, stop: &Stop, hyper: &Hyperparameters, whole: f64) -> [f64; N] {
    let BranchTime::Random(time) = law.time else { return [whole; N] };
    let fine = UnitClock { rate: hyper.gamma2, delay: hyper.delay };
    let parts = [
        ClockPart::new(fine, hyper.gamma1, stop.after),
        ClockPart::new(UnitClock::of_coarse(hyper.coarse), 2.0 * hyper.coarse.variance, stop.after),
    ];
    let is_fine_alone = hyper.coarse.variance == 0.0 || is_negligible(stop, hyper, hyper.coarse);
    let parts = if is_fine_alone { &parts[..1] } else { &parts[..] };
    let fastest = parts.iter().map(|part| part.rate).fold(0.0, f64::max);
    let mut start = 0.0;
    let mut means = [0.0; N];
    for (k, mean) in means.iter_mut().enumerate().take(N - 1) {
        let share = (k + 1) as f64 / f64::from(PIECES);
        let end = -(-law.probability * share).ln_1p() / time.rate;
        let here = TruncatedExponential { after: time.after + start, span: end - start, ..time };
        *mean = match ShortTime::new(&here, fastest) {
            Some(short) => {
                let of_part = |part: &ClockPart| short.mean(part, -(-part.rate * start).exp_m1());
                parts.iter().map(|part| part.weight * of_part(part)).sum()
            }
            None => clock_gain(&piece(law, stop, hyper, k as u32), stop, hyper).mean,
        };
        start = end;
    }
    // The last piece is the longest, and needs no rule: the pieces add up to the whole.
    means[N - 1] = f64::from(PIECES) * whole - means[..N - 1].iter().sum::<f64>();
    means
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mondrian::regression::hierarchy::branch_clock::tests::{PRIORS, hyper, stops};

    /// The same means as those of the laws of the pieces.
    #[test]
    fn means_are_those_of_the_pieces() {
        let priors = PRIORS.map(hyper);
        // With much noise the coarse part is negligible at some stops.
        let noisy = priors.map(|hyper| Hyperparameters { noise_variance: 1e3, ..hyper });
        for hyper in priors.into_iter().chain(noisy) {
            let unit = hyper.gamma1 + 2.0 * hyper.coarse.variance;
            for stop in stops() {
                let law = BranchLaw::new(&stop, hyper.gamma2).unwrap();
                let whole = clock_gain(&law, &stop, &hyper).mean;
                for (k, found) in means(&law, &stop, &hyper, whole).into_iter().enumerate() {
                    let expected = clock_gain(&piece(&law, &stop, &hyper, k as u32), &stop, &hyper).mean;
                    assert!((found - expected).abs() < 1e-10 * unit, "{k}: {found} {expected} {stop:?}");
                }
            }
        }
    }
}
