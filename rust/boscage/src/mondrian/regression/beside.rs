//! Rows beside all others, where the coarse part of the prior is spent early among them.
//!
//! Where many features and little noise ask for a higher rate of the coarse part (`hyperparameters::coarse_rate`), predictions
//! beside all rows would be too sure of themselves, too. There, a cut between a test row and the box of all rows comes at the
//! rate `D = sum_d w_d (max(x_d - u_d, 0) + max(l_d - x_d, 0))`. What would be left at its time if the coarse part were spent at
//! the lowest rate, less what is left at the chosen one, is added to the row's variance: 0 among the rows and far away, where
//! both are left whole.

use std::array;

use crate::data::{RowId, Scalar, Table};
use crate::mondrian::forest::Forest;
use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hierarchy::branch_clock::{coarse_rest, end_of_coarse};
use crate::mondrian::regression::hierarchy::branch_law::BranchLaw;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::settings::LEAST_PRIOR_RATE;
use crate::mondrian::tree::arena::NodeId;

/// The variance beside all rows.
#[derive(Debug, Clone)]
pub(super) struct Beside {
    /// Without a coarse part.
    hyper: Hyperparameters,
    chosen: CoarsePrior,
    lowest: CoarsePrior,
    lifetime: f64,
    /// By coordinate, the two lowest and the two highest values of the rows, from the ends inwards: the second of each are the
    /// ends without the row that has the first.
    ends: Vec<[[f64; 2]; 2]>,
}

impl Beside {
    /// None if the coarse part is spent at the lowest rate, or if there is none.
    pub(super) fn new<S: Scalar>(
        hyper: &Hyperparameters,
        forest: &Forest<NodeMoments>,
        table: Table<'_, S>,
        rows: &[RowId],
    ) -> Option<Self> {
        let (chosen, lifetime) = (hyper.coarse, forest.settings.lifetime);
        let lowest_rate = LEAST_PRIOR_RATE * forest.domain.total_weight();
        if chosen.variance == 0.0 || chosen.rate <= lowest_rate {
            return None;
        }
        let unit = CoarsePrior { variance: 1.0, rate: lowest_rate };
        let lowest = CoarsePrior { variance: chosen.clock(lifetime) / unit.clock(lifetime), ..unit };
        let ends = (0..forest.domain.n_coordinates()).map(|d| {
            let values = || rows.iter().map(|&row| -> f64 { table.row(row)[d].into() });
            [two_least(values()), two_least(values().map(|x| -x)).map(|x| -x)]
        });
        let hyper = Hyperparameters { coarse: CoarsePrior::NONE, ..*hyper };
        Some(Self { hyper, chosen, lowest, lifetime, ends: ends.collect() })
    }

    /// The variance that is added at a row of these coordinates; `is_row` if it is one of the rows, and is left out.
    pub(super) fn variance(&self, rates: &[f64], x: impl Fn(usize) -> f64, is_row: bool) -> f64 {
        let outside = |(d, [low, high]): (usize, &[[f64; 2]; 2])| {
            let x = x(d);
            let end = |two: [f64; 2]| two[usize::from(is_row && two[0] == x)];
            rates[d] * ((x - end(*high)).max(0.0) + (end(*low) - x).max(0.0))
        };
        let rate: f64 = self.ends.iter().enumerate().map(outside).sum();
        let mut stop =
            Stop { node: NodeId::split(0), after: 0.0, time: self.lifetime, branch: Branch::Never };
        stop.set_rate(rate);
        let Some(law) = BranchLaw::new(&stop) else { return 0.0 };
        let left = |coarse: CoarsePrior| {
            let until = end_of_coarse(coarse, self.hyper.noise_variance);
            coarse_rest(&law, &stop, &self.hyper, (coarse, coarse.clock(self.lifetime), until))
        };
        law.probability * (left(self.lowest) - left(self.chosen)).max(0.0)
    }
}

/// The two least of some numbers; both the same if there is but one.
fn two_least(numbers: impl Iterator<Item = f64>) -> [f64; 2] {
    let two = numbers.fold([f64::INFINITY; 2], |[least, second], x| [least.min(x), second.min(x.max(least))]);
    if two[1] < f64::INFINITY { two } else { array::from_fn(|_| two[0]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(lifetime: f64) -> Beside {
        let hyper = Hyperparameters {
            mu: 0.0,
            gamma1: 0.2,
            gamma2: 1.0,
            noise_variance: 0.01,
            delay: 0.0,
            coarse: CoarsePrior::NONE,
        };
        let chosen = CoarsePrior { variance: 3.0, rate: 8.0 };
        let unit = CoarsePrior { variance: 1.0, rate: 0.5 };
        let lowest = CoarsePrior { variance: chosen.clock(lifetime) / unit.clock(lifetime), ..unit };
        Beside {
            hyper,
            chosen,
            lowest,
            lifetime,
            ends: vec![[[0.0, 0.1], [1.0, 0.7]], [[-1.0, -1.0], [1.0, 1.0]]],
        }
    }

    const RATES: [f64; 2] = [2.0, 0.5];

    /// The difference of what is left at the time of a cut, averaged over very many times.
    fn integrated(beside: &Beside, rate: f64) -> f64 {
        let left = |coarse: CoarsePrior, time: f64| coarse.clock(beside.lifetime) - coarse.clock(time);
        let end = beside.lifetime.min(60.0 / rate).min(200.0);
        let n = 400_000;
        let width = end / f64::from(n);
        let at = |i: u32| {
            let time = (f64::from(i) + 0.5) * width;
            rate * (-rate * time).exp() * (left(beside.lowest, time) - left(beside.chosen, time))
        };
        (0..n).map(at).sum::<f64>() * width
    }

    #[test]
    fn the_variance_is_an_integral_over_the_time_of_a_cut() {
        for lifetime in [f64::INFINITY, 2.0] {
            let beside = beside(lifetime);
            for x in [[1.3_f64, 0.0], [-0.2, 1.5], [9.0, -9.0], [1.0, 1.001], [-1e4, 0.0]] {
                let outside = [(x[0] - 1.0).max(-x[0]).max(0.0), (x[1].abs() - 1.0).max(0.0)];
                let rate = RATES[0] * outside[0] + RATES[1] * outside[1];
                let (found, expected) = (beside.variance(&RATES, |d| x[d], false), integrated(&beside, rate));
                assert!((found - expected).abs() < 1e-4 * expected + 1e-7, "{x:?} {found} {expected}");
            }
        }
    }

    #[test]
    fn nothing_is_added_among_the_rows_and_far_away() {
        let beside = beside(f64::INFINITY);
        assert_eq!(beside.variance(&RATES, |d| [0.4, -1.0][d], false), 0.0);
        assert!(beside.variance(&RATES, |d| [1e9, 0.0][d], false) < 1e-6);
    }

    /// The row with the highest value of the first feature is beside all others, those at the ends of the second have copies.
    #[test]
    fn a_row_that_is_left_out_has_no_part_in_the_box() {
        let beside = beside(f64::INFINITY);
        let of = |x: [f64; 2], is_row| beside.variance(&RATES, |d| x[d], is_row);
        assert_eq!(of([1.0, 1.0], false), 0.0);
        assert!((of([1.0, 1.0], true) - integrated(&beside, RATES[0] * 0.3)).abs() < 1e-4);
        assert_eq!(of([0.5, 1.0], true), 0.0);
        assert_eq!(two_least([3.0, 1.0, 2.0, 1.5].into_iter()), [1.0, 1.5]);
        assert_eq!(two_least([3.0, 3.0].into_iter()), [3.0, 3.0]);
        assert_eq!(two_least([3.0].into_iter()), [3.0, 3.0]);
    }
}
