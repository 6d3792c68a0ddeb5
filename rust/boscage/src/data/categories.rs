//! Splits of categories in two: how trees divide a feature whose values are codes `0, 1, ...` of categories.
//!
//! A feature with `n` categories has a fixed list of rules. With at most [`MAX_PARTED`] categories these are all
//! `2^(n-1) - 1` ways to divide the categories in two; with more they are one category against the others, `n` rules.
//! Each rule is a column of zeros and ones of the training rows (`sorted_columns`), and each has the same weight, so
//! that the rules of a feature together weigh as much as another feature. A node draws its rule, by weight, from those
//! that divide its rows. Given the feature, all ways to divide the categories that are present in the node are then equally
//! probable (Chipman et al. 1998), and categories that are not are on either side with probability 1/2
//! where all ways are rules.
//!
//! Missing values are one more category where there are some in training.

/// The most categories of which all ways to divide them are rules.
pub(crate) const MAX_PARTED: u32 = 6;

/// The categories that a rule sends right. Nodes hold it in place of a threshold, as a number: the sum of `2^code`
/// over these categories, or `-1 - code` if there is one and the feature has more than [`MAX_PARTED`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RightSide(f64);

impl RightSide {
    /// Rule `k` of a feature with `n` categories.
    pub(crate) fn of_rule(k: u32, n: u32) -> Self {
        // The last category is always on the left, so that no rule is another one with its sides exchanged.
        if n <= MAX_PARTED { Self(f64::from(k + 1)) } else { Self(-1.0 - f64::from(k)) }
    }

    /// The side that a node holds as a number.
    pub(crate) fn from_number(number: f64) -> Self {
        Self(number)
    }

    /// As a number.
    pub(crate) fn number(self) -> f64 {
        self.0
    }

    /// Whether a category goes right.
    #[inline]
    pub(crate) fn has(self, code: f64) -> bool {
        if self.0 < 0.0 {
            return code == -1.0 - self.0;
        }
        (0.0..32.0).contains(&code) && self.0 as u32 >> code as u32 & 1 == 1
    }

    /// The codes below `n` that go right, ascending.
    pub(crate) fn codes(self, n: u32) -> Vec<u32> {
        (0..n).filter(|&code| self.has(f64::from(code))).collect()
    }

    /// Whether this is a rule of a feature with `n` categories.
    pub(crate) fn is_rule_of(self, n: u32) -> bool {
        let k = if n <= MAX_PARTED { self.0 - 1.0 } else { -1.0 - self.0 };
        k.fract() == 0.0 && (0.0..f64::from(n_rules(n))).contains(&k)
    }
}

/// Number of rules of a feature with `n` categories. One category has a rule that divides no rows.
pub(crate) fn n_rules(n: u32) -> u32 {
    match n {
        0 | 1 => 1,
        2..=MAX_PARTED => (1 << (n - 1)) - 1,
        _ => n,
    }
}

/// Whether a value, which may be missing (NaN), goes right at a split of categories.
#[inline]
pub(crate) fn category_goes_right(code: f64, right: RightSide, missing_right: bool) -> bool {
    if code.is_nan() { missing_right } else { right.has(code) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn right(k: u32, n: u32) -> u32 {
        (0..n).filter(|&code| RightSide::of_rule(k, n).has(f64::from(code))).map(|code| 1 << code).sum()
    }

    #[test]
    fn rules_are_all_partitions_of_few_categories() {
        for n in 2..=MAX_PARTED {
            let all = (1 << n) - 1;
            let partitions: BTreeSet<[u32; 2]> = (0..n_rules(n))
                .map(|k| right(k, n))
                .map(|right| [right.min(all - right), right.max(all - right)])
                .collect();
            assert_eq!(partitions.len() as u32, (1 << (n - 1)) - 1);
            assert!(partitions.iter().all(|sides| sides[0] > 0));
        }
    }

    #[test]
    fn many_categories_are_parted_one_from_the_others() {
        for n in [MAX_PARTED + 1, 31] {
            assert!((0..n_rules(n)).map(|k| right(k, n)).eq((0..n).map(|code| 1 << code)));
        }
        let last = RightSide::of_rule(999, 1000);
        assert!(last.has(999.0) && !last.has(998.0) && last.is_rule_of(1000) && !last.is_rule_of(999));
    }

    #[test]
    fn other_numbers_are_no_rules() {
        for number in [0.0, 7.0, 1.5, -1.0, -0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(!RightSide::from_number(number).is_rule_of(3), "{number}");
        }
        for number in [1.0, 0.0, -0.5, -8.0, -9.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(RightSide::from_number(number).is_rule_of(8), number == -8.0, "{number}");
        }
    }
}
