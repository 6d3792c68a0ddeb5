//! Partial shuffles: only the items that are needed are drawn (Fisher and Yates).

use super::Stream;

/// Draws one of `items[at..]` uniformly and swaps it to `at`.
pub(crate) fn draw_next<T>(items: &mut [T], at: usize, stream: &mut Stream) {
    items.swap(at, at + stream.below(items.len() - at));
}

/// Makes the first `n` of `items` a uniform draw without replacement, in random order.
pub(crate) fn shuffle_first<T>(items: &mut [T], n: usize, stream: &mut Stream) {
    for at in 0..n {
        draw_next(items, at, stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 60 ordered draws of 3 of 5 are equally frequent: Pearson's statistic has 59 degrees of freedom, and five
    /// standard deviations above its mean are 59 + 5 sqrt(118) < 114.
    #[test]
    fn ordered_draws_are_uniform() {
        let mut stream = Stream::new(3, 0);
        let mut counts = std::collections::BTreeMap::new();
        let mut items: Vec<u8> = (0..5).collect();
        for _ in 0..60_000 {
            shuffle_first(&mut items, 3, &mut stream);
            *counts.entry([items[0], items[1], items[2]]).or_insert(0.0) += 1.0;
        }
        assert_eq!(counts.len(), 60);
        let statistic: f64 = counts.values().map(|n: &f64| (n - 1000.0).powi(2) / 1000.0).sum();
        assert!(statistic < 114.0, "{statistic}");
    }
}
