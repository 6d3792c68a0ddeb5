//! The rows in a random order that only their contents determine, not their ids or their order of arrival.
//!
//! The first rows of this order are a simple random sample, which changes little when rows come and leave. It serves what is
//! estimated from some rows on every read: the rows at the beginning are found without looking at the others.
//!
//! The order is one of keys, one for each distinct row of features, and of numbers of copies. So it can be found from how many rows
//! have each key, wherever the rows are.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use crate::data::{RowId, Rows};
use crate::error::Result;
use crate::math::order::to_ordered;
use crate::random::keyed::Key;
use crate::validate::{check_n_targets, check_row_weights};

/// The numbers of the first `n` rows, or of all, in a random order that only the rows' contents and the seed determine.
///
/// Targets, and then weights, order rows with equal features, and nothing else: shifted and scaled targets choose the same
/// rows.
///
/// # Errors
/// Lengths that differ.
pub fn first_by_contents(
    rows: Rows<'_>,
    (targets, weights): (&[f64], Option<&[f64]>),
    n: usize,
    seed: u64,
) -> Result<Vec<u32>> {
    check_n_targets(rows.n_rows(), targets.len())?;
    weights.map_or(Ok(()), |weights| check_row_weights(weights, rows.n_rows()))?;
    first_of_contents(keys_of_contents(rows, seed), (targets, weights), n)
}

/// The key of a row's contents.
pub(crate) fn key_of_contents(values: impl Iterator<Item = f64>, seed: u64) -> u64 {
    Key::of_contents(seed).of_values(values).to_bits()
}

/// The same as [`first_by_contents`], given the keys of rows, and as many targets and weights.
pub(crate) fn first_of_contents(
    keys: Vec<u64>,
    (targets, weights): (&[f64], Option<&[f64]>),
    n: usize,
) -> Result<Vec<u32>> {
    let mut by_key: Vec<(u64, RowId)> = keys.into_iter().zip(0..).collect();
    by_key.sort_unstable();
    let copies = || by_key.chunk_by(|(a, _), (b, _)| a == b);
    let keys: Vec<u64> = copies().map(|copies| copies[0].0).collect();
    let n_rows_of: Vec<u64> = copies().map(|copies| copies.len() as u64).collect();
    let content = |row: RowId| {
        let weight = weights.map_or(0, |weights| weights[row as usize].to_bits());
        (to_ordered(targets[row as usize] + 0.0), weight)
    };
    let mut sorted: HashMap<u64, Vec<RowId>> = HashMap::new();
    let chosen = first_of_keys(&keys, &n_rows_of, n)?.into_iter().map(|(_, key, number)| {
        let copies = sorted.entry(key).or_insert_with(|| {
            let start = by_key.partition_point(|&(other, _)| other < key);
            let copies = by_key[start..].iter().take_while(|&&(other, _)| other == key);
            let mut copies: Vec<RowId> = copies.map(|&(_, row)| row).collect();
            copies.sort_by_key(|&row| content(row));
            copies
        });
        copies[number as usize]
    });
    Ok(chosen.collect())
}

/// The keys of rows' features, from which [`first_of_keys`] finds the order of a seed.
#[must_use]
pub fn keys_of_contents(rows: Rows<'_>, seed: u64) -> Vec<u64> {
    (0..rows.n_rows()).map(|row| key_of_contents(rows.row(row), seed)).collect()
}

/// The first `n` places, or all, in the order of rows of which so many have each key: the place's rank in the order, the key,
/// and the number of the row among those of the key, which targets and weights order.
///
/// # Errors
/// Lengths that differ.
pub fn first_of_keys(keys: &[u64], n_rows_of: &[u64], n: usize) -> Result<Vec<(u64, u64, u64)>> {
    check_n_targets(keys.len(), n_rows_of.len())?;
    let mut first = BinaryHeap::new();
    for (&key, &n_rows) in keys.iter().zip(n_rows_of) {
        for number in 0..n_rows {
            let place = (Key::from_bits(key).rank(number), key, number);
            if first.len() < n {
                first.push(place);
            } else if first.peek().is_some_and(|last| place < *last) {
                first.pop();
                first.push(place);
            }
        }
    }
    Ok(first.into_sorted_vec())
}

/// Other rows with a row's features, and whether their targets are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Copies {
    /// There are none.
    None,
    /// All of the row's rank.
    Agree,
    /// Some of other ranks.
    Disagree,
}

/// Rows by the hashes of their features.
#[derive(Debug, Clone)]
pub(crate) struct RowsByContents {
    key: Key,
    /// The rows with the same features.
    copies: HashMap<Key, Vec<RowId>>,
    /// For each row its rank, the key of its features, and its number among its copies. As copies are ranked each for itself,
    /// features that many rows share are found among the first as often as they are in the forest.
    order: BTreeSet<(u64, Key, u32)>,
}

impl RowsByContents {
    /// No rows yet, in the order of a forest's seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { key: Key::of_contents(seed), copies: HashMap::new(), order: BTreeSet::new() }
    }

    /// The key of a row with these features: that of its copies, too.
    pub(crate) fn key(&self, features: impl Iterator<Item = f64>) -> Key {
        self.key.of_values(features)
    }

    /// Adds a row.
    pub(crate) fn insert(&mut self, row: RowId, features: impl Iterator<Item = f64>) {
        let key = self.key(features);
        let copies = self.copies.entry(key).or_insert_with(|| Vec::with_capacity(1));
        self.order.insert(entry(key, copies.len()));
        copies.push(row);
    }

    /// Removes a row that was added with these features.
    pub(crate) fn remove(&mut self, row: RowId, features: impl Iterator<Item = f64>) {
        let key = self.key(features);
        let copies = self.copies.get_mut(&key).expect(ADDED);
        copies.swap_remove(copies.iter().position(|&other| other == row).expect(ADDED));
        self.order.remove(&entry(key, copies.len()));
        if copies.is_empty() {
            self.copies.remove(&key);
        }
    }

    /// The first `n` rows, or all, and the copies of each. Copies are numbered in the order of `rank`, and those of the same
    /// rank in that of `tie`, so that rows that differ in these alone are told apart.
    pub(crate) fn first<T: Ord>(
        &self,
        n: usize,
        rank: impl Fn(RowId) -> T,
        tie: impl Fn(RowId) -> u64,
    ) -> Vec<(RowId, Copies)> {
        let mut sorted: BTreeMap<Key, Vec<RowId>> = BTreeMap::new();
        let chosen = self.order.iter().take(n).map(|&(_, key, number)| {
            let copies = &self.copies[&key];
            if let [row] = copies[..] {
                return (row, Copies::None);
            }
            let copies = sorted.entry(key).or_insert_with(|| {
                let mut copies = copies.clone();
                copies.sort_by_key(|&row| (rank(row), tie(row)));
                copies
            });
            let agree = rank(copies[0]) == rank(copies[copies.len() - 1]);
            (copies[number as usize], if agree { Copies::Agree } else { Copies::Disagree })
        });
        chosen.collect()
    }
}

/// The entry of a row with so many copies before it.
fn entry(key: Key, number: usize) -> (u64, Key, u32) {
    (key.rank(number as u64), key, number as u32)
}

const ADDED: &str = "the row was added";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::keyed::Stream;

    fn features(row: RowId) -> impl Iterator<Item = f64> {
        let mut stream = Stream::new(3, row as usize);
        (0..2).map(move |_| stream.below(12) as f64)
    }

    fn contents(rows: &RowsByContents, n: usize) -> Vec<(Vec<f64>, u32, u32, Copies)> {
        let (rank, tie) = (|row: RowId| row % 3, |row: RowId| row % 5);
        rows.first(n, rank, |row| tie(row).into())
            .into_iter()
            .map(|(row, copies)| (features(row).collect(), rank(row), tie(row), copies))
            .collect()
    }

    #[test]
    fn the_order_depends_on_the_rows_alone() {
        let mut stream = Stream::new(1, 0);
        for _ in 0..50 {
            let mut rows = RowsByContents::new(7);
            let mut held: Vec<RowId> = Vec::new();
            for row in 0..200 {
                rows.insert(row, features(row));
                held.push(row);
                if stream.below(3) == 0 {
                    let gone = held.swap_remove(stream.below(held.len()));
                    rows.remove(gone, features(gone));
                }
            }
            let mut again = RowsByContents::new(7);
            held.sort_unstable_by_key(|row| row % 7);
            for &row in &held {
                again.insert(row, features(row));
            }
            for n in [1, 20, 1000] {
                assert_eq!(contents(&rows, n), contents(&again, n));
            }
            let mut all: Vec<RowId> =
                rows.first(1000, |row| row, |_| 0).into_iter().map(|(row, _)| row).collect();
            all.sort_unstable();
            held.sort_unstable();
            assert_eq!(all, held);
            for &row in &held {
                rows.remove(row, features(row));
            }
            assert!(rows.copies.is_empty() && rows.order.is_empty());
        }
    }

    #[test]
    fn counts_of_keys_give_the_same_order() {
        for n_rows in [0, 1, 50, 500] {
            let columns: Vec<f64> = (0..n_rows).flat_map(features).collect();
            let rows = Rows::from_f64(&columns, 2).expect("whole rows");
            let targets: Vec<f64> = (0..n_rows).map(|row| f64::from(row % 7)).collect();
            let mut counts: BTreeMap<u64, Vec<RowId>> = BTreeMap::new();
            for (row, key) in keys_of_contents(rows, 5).into_iter().enumerate() {
                counts.entry(key).or_default().push(row as RowId);
            }
            let (keys, numbers): (Vec<u64>, Vec<u64>) =
                counts.iter().map(|(key, rows)| (*key, rows.len() as u64)).unzip();
            for copies in counts.values_mut() {
                copies.sort_by_key(|&row| to_ordered(targets[row as usize]));
            }
            let mut all = RowsByContents::new(5);
            (0..n_rows).for_each(|row| all.insert(row, features(row)));
            for n in [0, 1, 20, 1000] {
                let places = first_of_keys(&keys, &numbers, n).expect("as many numbers");
                let found: Vec<RowId> =
                    places.iter().map(|(_, key, number)| counts[key][*number as usize]).collect();
                let expected = all.first(n, |row| to_ordered(targets[row as usize]), |_| 0);
                let expected: Vec<RowId> = expected.into_iter().map(|(row, _)| row).collect();
                assert_eq!(found, expected);
                let first = first_by_contents(rows, (&targets, None), n, 5).expect("as many targets");
                assert_eq!(first, expected);
            }
        }
        assert!(first_of_keys(&[1, 2], &[1], 3).is_err());
    }

    #[test]
    fn rows_are_chosen_as_often_as_each_other() {
        let n_chosen = (0..400).map(|seed| {
            let mut rows = RowsByContents::new(seed);
            // Half of the rows are the same.
            for row in 0..100 {
                rows.insert(row, [f64::from(row.max(49))].into_iter());
            }
            rows.first(10, |_| (), |_| 0).iter().filter(|(row, _)| *row < 50).count()
        });
        let mean = n_chosen.sum::<usize>() as f64 / 400.0;
        assert!((mean - 5.0).abs() < 0.3, "{mean}");
    }
}
