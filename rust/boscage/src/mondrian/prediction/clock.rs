//! A clock that runs down, and how much of it a row is expected to share with the rows below each stop.

use crate::mondrian::prediction::stop::{Branch, Stop};

/// `v(t) = 1 - exp(-rate t)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    rate: f64,
}

impl Clock {
    pub(crate) fn new(rate: f64) -> Self {
        Self { rate }
    }

    pub(crate) fn at(self, time: f64) -> f64 {
        gain(self.rate, time)
    }

    /// What is spent between the stop before and a stop.
    pub(crate) fn span(self, stop: &Stop) -> f64 {
        (-self.rate * stop.after).exp() * gain(self.rate, stop.time - stop.after)
    }

    /// The parts of the stops' spans that a row is expected to share with the rows below them.
    ///
    /// A row that branches off above a stop after an exponential time of rate `h`, or else comes to the stop, a time `l`
    /// after the one before, shares `int_0^l rate e^(-rate t) e^(-h t) dt` of `1 - e^(-rate l)`.
    pub(crate) fn parts(self, stops: &[Stop]) -> impl Iterator<Item = f64> {
        let mut stays = 1.0;
        stops.iter().map(move |stop| {
            let length = stop.time - stop.after;
            let whole = gain(self.rate, length);
            let of_whole = |shared: f64| if whole > 0.0 { (shared / whole).min(1.0) } else { 1.0 };
            let part = match stop.branch {
                Branch::Never => stays,
                Branch::At(time) => stays * of_whole(gain(self.rate, time - stop.after)),
                Branch::Rate(rate) => {
                    let both = self.rate + rate;
                    stays * of_whole(self.rate / both * gain(both, length))
                }
            };
            stays *= match stop.branch {
                Branch::Never => 1.0,
                Branch::At(_) => 0.0,
                Branch::Rate(rate) => 1.0 - gain(rate, length),
            };
            part
        })
    }
}

/// `1 - exp(-rate time)`, also where the rate is 0 and the time has no end.
fn gain(rate: f64, time: f64) -> f64 {
    if time == f64::INFINITY { 1.0 } else { -(-rate * time).exp_m1() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::mondrian::classification::class_counts::ClassCounts;
    use crate::mondrian::forest::settings::MondrianSettings;
    use crate::mondrian::forest::storage::with_storage;
    use crate::mondrian::forest::{Batch, Forest};
    use crate::mondrian::process::domain::Domain;
    use crate::mondrian::tree::arena::NodeId;

    fn node() -> NodeId {
        let rows = Rows::from_f64(&[0.3], 1).unwrap();
        let (domain, batch) =
            (Domain::of_rows(rows, None).unwrap(), Batch { rows, ids: None, weights: None });
        let settings = MondrianSettings::default();
        let forest: Forest<ClassCounts> =
            Forest::fit(settings, domain, batch, &[0], &crate::Run::default()).unwrap();
        with_storage!(forest.flushed_alone(), storage => storage.trees[0].arena.root().unwrap())
    }

    /// The clock at the time at which a row branches off, integrated numerically stop by stop.
    #[test]
    fn parts_are_those_that_are_expected() {
        let clock = Clock::new(0.7);
        let node = node();
        let stop = |after, time, branch| Stop { node, after, time, branch };
        let ends = [2.3, f64::INFINITY];
        for (end, rates) in ends.into_iter().flat_map(|end| [(end, [0.2, 3.0]), (end, [1e-9, 1e4])]) {
            let stops = [
                stop(0.0, 0.4, Branch::Never),
                stop(0.4, 1.1, Branch::Rate(rates[0])),
                stop(1.1, end, Branch::Rate(rates[1])),
            ];
            let found: f64 =
                stops.iter().zip(clock.parts(&stops)).map(|(s, part)| part * clock.span(s)).sum();
            // `int v'(t) P(the row has not branched off by t) dt`.
            let n = 400_000;
            let until = end.min(60.0);
            let width = until / f64::from(n);
            let expected: f64 = (0..n)
                .map(|i| {
                    let t = (f64::from(i) + 0.5) * width;
                    let hazard = rates[0] * (t.min(1.1) - 0.4).max(0.0) + rates[1] * (t - 1.1).max(0.0);
                    0.7 * (-0.7 * t - hazard).exp() * width
                })
                .sum();
            assert!((found - expected).abs() < 1e-5, "{found} and {expected}");
        }
        let stops = [stop(0.0, 0.4, Branch::Never), stop(0.4, f64::INFINITY, Branch::At(0.9))];
        let found: f64 = stops.iter().zip(clock.parts(&stops)).map(|(s, part)| part * clock.span(s)).sum();
        assert!((found - clock.at(0.9)).abs() < 1e-15);
    }
}
