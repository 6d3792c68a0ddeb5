//! Rows that were repeated, as in tables that were copied, joined or resampled.
//!
//! A row whose copy, target and all, is among the others is predicted by it however badly the model predicts new rows. So each
//! such row counts once for what left-out rows choose. Where features have few values, rows that equal others are no copies, as
//! new rows will equal them, too: then targets of rows with the same features differ, or so many are expected by chance
//! (`data::copies`). The most frequent target does not tell, since chance alone may give it to all rows of a group.

use std::collections::{HashMap, HashSet};

use crate::data::copies::expected;
use crate::data::{RowId, Rows};
use crate::error::Result;
use crate::mondrian::forest::rows_by_contents::keys_of_contents;
use crate::validate::{check_n_targets, check_row_weights};

/// Of rows with the same features, the share whose targets must agree if they are copies.
const AGREE: f64 = 0.95;

/// The first of each set of equal rows, in order; None if no rows are copies of others.
///
/// # Errors
/// Lengths that differ.
pub fn distinct_rows(
    rows: Rows<'_>,
    (targets, weights): (&[f64], Option<&[f64]>),
) -> Result<Option<Vec<RowId>>> {
    check_n_targets(rows.n_rows(), targets.len())?;
    weights.map_or(Ok(()), |weights| check_row_weights(weights, rows.n_rows()))?;
    let value = |row: usize, feature: usize| rows.at(row, feature);
    Ok(distinct_of_keys(&keys_of_contents(rows, 0), (rows.n_features(), value), (targets, weights)))
}

/// The same, given the keys of rows' features, and the values of so many features by row and number.
pub(super) fn distinct_of_keys(
    keys: &[u64],
    (n_features, value): (usize, impl Fn(usize, usize) -> f64),
    (targets, weights): (&[f64], Option<&[f64]>),
) -> Option<Vec<RowId>> {
    let target = |row: RowId| targets[row as usize].to_bits();
    let mut order: Vec<RowId> = (0..keys.len() as RowId).collect();
    order.sort_by_key(|&row| (keys[row as usize], target(row), row));
    let groups = || {
        let groups = order.chunk_by(|&a, &b| keys[a as usize] == keys[b as usize]);
        groups.filter(|group| group.len() > 1)
    };
    if !mostly_agree(groups(), targets) {
        return None;
    }
    let expected = expected((keys.len(), n_features), value, keys.len());
    let (n_rows, n_repeated) = groups().flatten().fold((0, 0), |(all, repeated), &row| {
        (all + 1, repeated + usize::from(expected[row as usize] < 1.0))
    });
    if 2 * n_repeated <= n_rows {
        return None;
    }
    let weight = |row: RowId| weights.map_or(0, |weights| weights[row as usize].to_bits());
    let mut seen = HashSet::new();
    order.retain(|&row| seen.insert((keys[row as usize], target(row), weight(row))));
    order.sort_unstable();
    // Those that differ in their weights alone stay.
    (order.len() < keys.len()).then_some(order)
}

/// Whether groups of rows with the same features mostly agree in their targets.
fn mostly_agree<'a>(groups: impl Iterator<Item = &'a [RowId]>, targets: &[f64]) -> bool {
    let most_frequent = most_frequent(targets);
    let (mut agreeing, mut all) = (0, 0);
    for group in groups {
        let first = targets[group[0] as usize].to_bits();
        let agree = group.iter().all(|&row| targets[row as usize].to_bits() == first);
        if !agree || Some(first) != most_frequent {
            all += group.len();
            agreeing += if agree { group.len() } else { 0 };
        }
    }
    all > 0 && agreeing as f64 >= AGREE * all as f64
}

/// The target that comes most often, as bits.
fn most_frequent(targets: &[f64]) -> Option<u64> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for y in targets {
        *counts.entry(y.to_bits()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(bits, count)| (count, bits)).map(|(bits, _)| bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(x: &[f64], y: &[f64]) -> Option<Vec<RowId>> {
        distinct_rows(Rows::from_f64(x, 1).unwrap(), (y, None)).unwrap()
    }

    #[test]
    fn copies_agree_in_their_targets() {
        let once: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(of(&once, &once), None);
        assert_eq!(of(&[], &[]), None);
        let twice: Vec<f64> = once.iter().chain(&once).copied().collect();
        assert_eq!(of(&twice, &twice), Some((0..10).collect()));
        assert_eq!(of(&twice[..12], &twice[..12]), Some((0..10).collect()));
        // Other targets.
        let other: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(of(&twice, &other), None);
        // Two values, each twice: copies, too. The more frequent one alone says nothing.
        let two: Vec<f64> = twice.iter().map(|x| f64::from(*x > 6.0)).collect();
        assert_eq!(of(&twice, &two), Some((0..10).collect()));
        assert_eq!(of(&twice, &[0.0; 20]), None);
    }

    /// Each of two cells has both targets, or each of some has one.
    #[test]
    fn equal_rows_of_few_values_are_no_copies() {
        let (x, y): (Vec<f64>, Vec<f64>) =
            (0..40).map(|i| (f64::from(i % 2), f64::from(i / 2 % 3 % 2))).unzip();
        assert_eq!(of(&x, &y), None);
        let cells: Vec<f64> = (0..40).map(|i| f64::from(i % 5)).collect();
        assert_eq!(of(&cells, &cells), None);
    }

    #[test]
    fn weights_tell_rows_apart() {
        let x: Vec<f64> = (0..20).map(|i| f64::from(i % 10)).collect();
        let mut weights = [1.0; 20];
        weights[13] = 2.0;
        let rows = Rows::from_f64(&x, 1).unwrap();
        let expected: Vec<RowId> = (0..10).chain([13]).collect();
        assert_eq!(distinct_rows(rows, (&x, Some(&weights))).unwrap(), Some(expected));
        let rest = Rows::from_f64(&x[3..14], 1).unwrap();
        assert_eq!(distinct_rows(rest, (&x[3..14], Some(&weights[3..14]))).unwrap(), None);
    }
}
