//! Features in random order, drawn by weight. A node is split along the first feature that varies among its
//! rows, which is a draw by weight from the features that vary.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::math::logs::log_sum_exp;
use crate::math::order::to_ordered;
use crate::random::distributions::log_exponential_of;
use crate::random::keyed::{Ahead, Stream};

/// Unequal weights of features.
#[derive(Debug)]
pub(crate) struct Weights<'a> {
    pub(crate) logs: Cow<'a, [f64]>,
    /// Cumulative shares of features.
    sums: Vec<f64>,
    /// Features by descending weight.
    descending: OnceCell<Vec<u32>>,
}

impl<'a> Weights<'a> {
    pub(crate) fn new(logs: Cow<'a, [f64]>) -> Self {
        let (log_total, mut sum) = (log_sum_exp(&logs), 0.0);
        let up_to = |log: &f64| {
            sum += libm::exp(log - log_total);
            sum
        };
        let sums = logs.iter().map(up_to).collect();
        Self { logs, sums, descending: OnceCell::new() }
    }

    fn draw(&self, stream: &mut Stream) -> u32 {
        let u = stream.unit();
        self.sums.partition_point(|&sum| sum <= u).min(self.sums.len() - 1) as u32
    }

    fn descending(&self) -> &[u32] {
        self.descending.get_or_init(|| {
            let mut all: Vec<u32> = (0..self.logs.len() as u32).collect();
            all.sort_by(|&a, &b| self.logs[b as usize].total_cmp(&self.logs[a as usize]));
            all
        })
    }
}

/// Draws features by weight without replacement, only as many as are used.
pub(crate) enum FeatureOrder<'a> {
    Uniform {
        features: &'a [u32],
        order: ShuffledRange,
    },
    /// Only the first feature has been drawn.
    Weighted {
        weights: &'a Weights<'a>,
        first: Option<u32>,
    },
    Rest(Rest<'a>),
}

impl<'a> FeatureOrder<'a> {
    /// Some features in random order, or all of them by weight if the weights are not equal.
    pub(crate) fn new(features: &'a [u32], weights: Option<&'a Weights<'a>>) -> Self {
        match weights {
            None => Self::Uniform { features, order: ShuffledRange::new(features.len()) },
            Some(weights) => Self::Weighted { weights, first: None },
        }
    }

    pub(crate) fn next(&mut self, stream: &mut Stream) -> Option<u32> {
        match self {
            Self::Uniform { features, order } => {
                (order.drawn < order.n).then(|| features[order.next(stream)])
            }
            Self::Weighted { weights, first: Some(first) } => {
                *self = Self::Rest(Rest::new(weights, *first, stream));
                self.next(stream)
            }
            Self::Weighted { weights, first } => {
                *first = Some(weights.draw(stream));
                *first
            }
            Self::Rest(rest) => rest.next(),
        }
    }
}

/// Draws all features but the first by weight, without replacement. Each feature has an exponential time
/// whose rate is its weight; in order of these times, features are draws by weight without replacement. Times
/// of features with small weights are drawn only when they might come next.
pub(crate) struct Rest<'a> {
    logs: &'a [f64],
    first: u32,
    /// Features whose time has not been drawn yet, by descending weight.
    waiting: std::slice::Iter<'a, u32>,
    /// The random number of each feature.
    numbers: Ahead,
    /// Logarithms of the drawn times, as integers of the same order.
    times: BinaryHeap<Reverse<(i64, u32)>>,
}

impl<'a> Rest<'a> {
    fn new(weights: &'a Weights<'a>, first: u32, stream: &mut Stream) -> Self {
        let numbers = stream.ahead(weights.logs.len() - 1);
        Self {
            logs: &weights.logs,
            first,
            waiting: weights.descending().iter(),
            numbers,
            times: BinaryHeap::new(),
        }
    }

    fn next(&mut self) -> Option<u32> {
        /// Lower bound of the logarithm of an exponential draw, which is computed from a multiple of 2^-53. A
        /// draw is zero once in 2^53 draws.
        const LEAST: f64 = -37.0;
        while let Some(&d) = self.waiting.as_slice().first() {
            let log_weight = self.logs[d as usize];
            if self.times.peek().is_some_and(|Reverse((time, _))| *time < to_ordered(LEAST - log_weight)) {
                break;
            }
            self.waiting.next();
            if d != self.first {
                let u = self.numbers.unit(d as usize - usize::from(d > self.first));
                self.times.push(Reverse((to_ordered(log_exponential_of(log_weight, u)), d)));
            }
        }
        self.times.pop().map(|Reverse((_, d))| d)
    }
}

/// The numbers below `n` in random order, drawn only as far as needed.
pub(crate) struct ShuffledRange {
    n: usize,
    drawn: usize,
    /// Numbers that are not at their own place.
    moved: BTreeMap<usize, usize>,
}

impl ShuffledRange {
    fn new(n: usize) -> Self {
        Self { n, drawn: 0, moved: BTreeMap::new() }
    }

    fn at(&self, place: usize) -> usize {
        self.moved.get(&place).copied().unwrap_or(place)
    }

    fn next(&mut self, stream: &mut Stream) -> usize {
        let place = self.drawn + stream.below(self.n - self.drawn);
        let number = self.at(place);
        self.moved.insert(place, self.at(self.drawn));
        self.drawn += 1;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::distributions::log_exponential;

    /// Compares with a complete order by times; the stream must advance as if a time had been drawn for each
    /// feature but the first.
    #[test]
    fn an_order_is_that_of_all_times() {
        for scale in [0.0, 1.0, 30.0, 1000.0, 1e200] {
            for seed in 0..50 {
                let [mut stream, mut same] = [Stream::new(seed, 1), Stream::new(seed, 1)];
                let logs: Vec<f64> = (0..40).map(|i| -scale * f64::from(i * 17 % 40)).collect();
                let weights = Weights::new(Cow::Borrowed(&logs));
                let mut order = FeatureOrder::Weighted { weights: &weights, first: None };
                let drawn: Vec<u32> = std::iter::from_fn(|| order.next(&mut stream)).collect();
                let first = weights.draw(&mut same);
                let others = (0..40u32).filter(|&d| d != first);
                let mut times: Vec<(f64, u32)> =
                    others.map(|d| (log_exponential(logs[d as usize], &mut same), d)).collect();
                times.sort_by(|a, b| a.0.total_cmp(&b.0));
                let expected = std::iter::once(first).chain(times.into_iter().map(|(_, d)| d));
                assert!(expected.eq(drawn), "weights of scale {scale}");
                assert_eq!(stream.position(), same.position());
            }
        }
    }

    #[test]
    fn integers_are_ordered_as_numbers() {
        let numbers = [f64::NEG_INFINITY, -1e300, -2.0, -1e-310, 0.0, 3.0, 1e300, f64::INFINITY];
        assert!(numbers.windows(2).all(|pair| to_ordered(pair[0]) < to_ordered(pair[1])));
    }
}
