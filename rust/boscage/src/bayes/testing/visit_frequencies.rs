//! How often a chain visits trees, compared with their probabilities.

use std::collections::HashMap;

/// Number of batches of a chain. Their means are nearly independent if each is longer than the
/// autocorrelation time.
const N_BATCHES: usize = 50;

/// Trees of at least this probability are visited often enough that batches show the autocorrelation of
/// draws.
const FREQUENT: f64 = 0.01;

/// The smallest effective number of draws; with fewer, the test would prove nothing.
const FEWEST: f64 = 100.0;

/// The largest deviation allowed, in standard errors.
const FAR: f64 = 5.5;

/// Counts of visits, by name of the tree and by batch.
#[derive(Debug)]
pub(crate) struct Visits {
    n: usize,
    n_noted: usize,
    by_name: HashMap<String, [u32; N_BATCHES]>,
}

impl Visits {
    /// Counts for a chain of `n` draws.
    pub(crate) fn new(n: u32) -> Self {
        Self { n: n as usize, n_noted: 0, by_name: HashMap::new() }
    }

    /// Counts the next draw, which is the tree with this name.
    pub(crate) fn note(&mut self, name: String) {
        self.by_name.entry(name).or_insert([0; N_BATCHES])[self.n_noted * N_BATCHES / self.n] += 1;
        self.n_noted += 1;
    }

    /// Names of the visited trees.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &String> {
        self.by_name.keys()
    }

    /// Asserts that trees were visited in proportion to their probabilities, up to the errors estimated from
    /// batches. Rare trees do not show their autocorrelation; they are given the largest one of the frequent
    /// trees.
    pub(crate) fn check(&self, what: &str, expected: &HashMap<String, f64>) {
        assert_eq!(self.n_noted, self.n, "{what}: all draws");
        for name in self.names() {
            assert!(expected.contains_key(name), "{what}: {name} is not possible");
        }
        let alone = |p: f64| p * (1.0 - p) / self.n as f64;
        let frequent = expected.iter().filter(|(_, p)| (FREQUENT..1.0).contains(*p));
        let stickiest = frequent.map(|(name, p)| self.square_error(name) / alone(*p)).fold(1.0, f64::max);
        let worth = self.n as f64 / stickiest;
        assert!(worth > FEWEST, "{what}: draws are worth no more than {worth}");
        for (name, &p) in expected {
            let found = self.counts(name).iter().sum::<u32>();
            let found = f64::from(found) / self.n as f64;
            let least = if p < FREQUENT { stickiest } else { 1.0 };
            let error = self.square_error(name).max(least * alone(p)).sqrt() + 1.0 / self.n as f64;
            assert!((found - p).abs() < FAR * error, "{what}: {name}: {found} for {p} +- {error}");
        }
    }

    fn counts(&self, name: &str) -> [u32; N_BATCHES] {
        self.by_name.get(name).copied().unwrap_or([0; N_BATCHES])
    }

    /// Squared standard error of a tree's share.
    fn square_error(&self, name: &str) -> f64 {
        let shares = self.counts(name).map(|count| f64::from(count) * N_BATCHES as f64 / self.n as f64);
        let mean = shares.iter().sum::<f64>() / N_BATCHES as f64;
        let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
        squares / (N_BATCHES * (N_BATCHES - 1)) as f64
    }
}

mod tests {
    use super::*;
    use crate::random::keyed::Stream;

    /// Visits of a chain with two states, which redraws its state with a given probability at each step.
    fn chain(p: f64, renewal: f64) -> Visits {
        const N: u32 = 100_000;
        let (mut stream, mut visits, mut state) = (Stream::new(3, 0), Visits::new(N), false);
        for _ in 0..N {
            if stream.unit() < renewal {
                state = stream.unit() < p;
            }
            visits.note(state.to_string());
        }
        visits
    }

    fn expected(p: f64) -> HashMap<String, f64> {
        [("true", p), ("false", 1.0 - p)].map(|(name, p)| (name.to_owned(), p)).into()
    }

    #[test]
    fn sticky_chains_are_right() {
        for renewal in [1.0, 0.3, 0.05] {
            chain(0.2, renewal).check("two states", &expected(0.2));
        }
    }

    #[test]
    #[should_panic(expected = " +- ")]
    fn wrong_shares_are_found() {
        chain(0.21, 1.0).check("two states", &expected(0.2));
    }

    #[test]
    #[should_panic(expected = "are worth no more than")]
    fn chains_that_hardly_move_show_nothing() {
        chain(0.5, 0.0005).check("two states", &expected(0.5));
    }
}
