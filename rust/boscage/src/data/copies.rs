//! Whether copies of rows are repetitions on purpose, or what features of few values bring about.
//!
//! If features were independent, a forest of `n` rows would hold `n f_1 f_2 f_3` rows with three of a row's values, where `f` is
//! the share of rows that have each. If fewer than one is expected with the three rarest of its values, and the row has copies
//! still, these were made on purpose. Three features are enough to tell continuous ones, even rounded, from those of few values,
//! and suffer little from dependence: the product over all of many dependent features would be far too small.
//!
//! Shares are those among the chosen rows, each counted once, however many copies it has. A value that only the row and its copies
//! have is the harder case: among 300 rows of many thousand no two may share a postcode. Good and Turing estimate the
//! share of such a value from how many values were seen once and twice: next to nothing in a continuous feature, and
//! more in a long list of codes.

use std::collections::HashMap;

use crate::random::keyed::Key;

/// How many of a row's values tell how likely it is to have copies.
const N_RAREST: usize = 3;

/// How many rows like each of some rows, of so many features, are expected by chance among so many rows in all.
pub(crate) fn expected(
    (n_chosen, n_features): (usize, usize),
    value: impl Fn(usize, usize) -> f64,
    n_rows: usize,
) -> Vec<f64> {
    let mut distinct: Vec<usize> = Vec::new();
    let mut numbers = HashMap::new();
    let number_of: Vec<usize> = (0..n_chosen)
        .map(|row| {
            let values = (0..n_features).map(|feature| value(row, feature));
            *numbers.entry(Key::of_contents(0).of_values(values)).or_insert_with(|| {
                distinct.push(row);
                distinct.len() - 1
            })
        })
        .collect();
    // Of each distinct row, in ascending order.
    let mut rarest = vec![[1.0; N_RAREST]; distinct.len()];
    for feature in 0..n_features {
        // Both zeros are the same, as in keys.
        let bits = |&row: &usize| (value(row, feature) + 0.0).to_bits();
        let mut by_value: Vec<(u64, usize)> = distinct.iter().map(bits).zip(0..).collect();
        by_value.sort_unstable();
        let groups = || by_value.chunk_by(|a, b| a.0 == b.0);
        let seen = |times: usize| groups().filter(|group| group.len() == times).count() as f64;
        let of_one = (2.0 * seen(2) + 1.0) / seen(1).max(1.0);
        for group in groups() {
            let others = if group.len() > 1 { (group.len() - 1) as f64 } else { of_one };
            let share = others / distinct.len() as f64;
            for &(_, number) in group {
                let least = &mut rarest[number];
                let place = least.partition_point(|&other| other <= share);
                if place < N_RAREST {
                    least[place..].rotate_right(1);
                    least[place] = share;
                }
            }
        }
    }
    number_of.into_iter().map(|number| n_rows as f64 * rarest[number].iter().product::<f64>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::keyed::Stream;

    /// The share of 300 of these rows, or of all, that are not expected to have a copy.
    fn unexpected(table: &[Vec<f64>]) -> f64 {
        let mut stream = Stream::new(1, 0);
        let mut order: Vec<usize> = (0..table.len()).collect();
        let n = order.len().min(300);
        for i in 0..n {
            let other = i + stream.below(order.len() - i);
            order.swap(i, other);
        }
        let value = |row: usize, feature: usize| table[order[row]][feature];
        let expected = expected((n, table[0].len()), value, table.len());
        expected.iter().filter(|&&n| n < 1.0).count() as f64 / n as f64
    }

    fn draw(n: usize, row: impl Fn(&mut Stream) -> Vec<f64>) -> Vec<Vec<f64>> {
        let mut stream = Stream::new(2, n);
        (0..n).map(|_| row(&mut stream)).collect()
    }

    fn cells(stream: &mut Stream, sizes: &[usize]) -> Vec<f64> {
        sizes.iter().map(|&size| stream.below(size) as f64).collect()
    }

    fn one_hot(row: &[f64], sizes: &[usize]) -> Vec<f64> {
        let of = |(&value, &size): (&f64, &usize)| (0..size).map(move |k| f64::from(value == k as f64));
        row.iter().zip(sizes).flat_map(of).collect()
    }

    #[test]
    fn features_of_few_values_have_copies_by_chance() {
        let mut tables = vec![
            (0..1001).map(|i| vec![f64::from(i % 20), -0.0]).collect(),
            // Longer lists than rows are looked at.
            draw(20_000, |stream| cells(stream, &[1000, 2])),
            draw(100_000, |stream| cells(stream, &[10_000, 2])),
            draw(50_000, |stream| cells(stream, &[3; 10])),
            // Dependent features.
            draw(500, |stream| {
                let party = stream.below(2);
                (0..16).map(|_| if stream.below(12) == 0 { 1 - party } else { party } as f64).collect()
            }),
        ];
        for (n, sizes) in [(300, vec![12, 5]), (1000, vec![10, 6, 4]), (2000, vec![12, 10, 4])] {
            let table = draw(n, |stream| cells(stream, &sizes));
            tables.push(table.iter().map(|row| one_hot(row, &sizes)).collect());
            tables.push(table);
        }
        for (i, table) in tables.iter().enumerate() {
            let share = unexpected(table);
            assert!(share < 0.2, "{i}: {share}");
        }
    }

    #[test]
    fn repeated_rows_do_not() {
        let rounded = |x: f64| (10.0 * x).round() / 10.0;
        let once = [
            draw(1000, |stream| vec![stream.unit()]),
            draw(200_000, |stream| vec![stream.unit(), stream.unit()]),
            // A feature of many values beside some of few.
            draw(150, |stream| [cells(stream, &[5, 5, 5]), vec![stream.unit()]].concat()),
            draw(20_000, |stream| [cells(stream, &[5, 5, 5]), vec![stream.unit()]].concat()),
            draw(1000, |stream| cells(stream, &[30; 6])),
            draw(150, |stream| (0..4).map(|_| rounded(4.0 * stream.unit())).collect()),
            // Mostly zeros.
            draw(500, |stream| (0..800).map(|_| f64::from(stream.below(100) == 0)).collect()),
        ];
        for (i, table) in once.iter().enumerate() {
            let share = unexpected(&[&table[..], table].concat());
            assert!(share > 0.8, "{i}: {share}");
        }
    }
}
