//! The keyed generator: the next cut of a cell is a pure function of the cell's key.
//!
//! A cell's key is a hash of the tree's seed and of the path from the root to the cell. The numbers drawn
//! from it are part of the model file's format: any change here changes every forest, and needs a new format
//! version.

/// The identity of a cell of one tree's Mondrian process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

/// The golden-ratio step of the `SplitMix64` sequence.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// An odd constant, unrelated to `STEP`, that separates the levels of a cell.
const LEVEL: u64 = 0xD6E8_FEB8_6659_FD93;

/// Positions in the `SplitMix64` sequence that starts at a key: three for the cell's cut, two for its
/// children.
const EXPONENTIAL: u64 = 1;
const FEATURE: u64 = 2;
const LOCATION: u64 = 3;
const CHILD: u64 = 4;

/// Stafford's variant 13 of the 64-bit finaliser of `MurmurHash3`, as in `SplitMix64`.
const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The `53` high bits as a number in `[0, 1)`.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

impl Key {
    /// The key of tree `tree` of the forest with seed `seed`.
    pub(crate) fn of_tree(seed: u64, tree: u64) -> Self {
        let forest = mix(seed.wrapping_add(STEP));
        Self(mix(forest ^ mix(tree.wrapping_add(LEVEL))))
    }

    /// The key of the cell on one side of this cell's cut.
    pub(crate) const fn child(self, right: bool) -> Self {
        Self(mix(self.0.wrapping_add((CHILD + right as u64).wrapping_mul(STEP))))
    }

    /// The key of this cell in the process of the domain's shell `level`; level 0 is the cell itself.
    pub(crate) const fn at_level(self, level: usize) -> Self {
        Self(self.0.wrapping_add((level as u64).wrapping_mul(LEVEL)))
    }

    /// The key of the process in a paused leaf. The leaf's cell is on one side of a cut that this tree makes
    /// at `time`.
    pub(crate) fn of_leaf(self, time: f64, right: bool) -> Self {
        Self(mix(self.0 ^ mix(time.to_bits().wrapping_add(LEVEL)))).child(right)
    }

    /// The key of the rows' contents in the forest with seed `seed`.
    pub(crate) fn of_contents(seed: u64) -> Self {
        // No tree has this number.
        Self::of_tree(seed, u64::MAX)
    }

    /// The key of some numbers in their order; both zeros are the same.
    pub(crate) fn of_values(self, values: impl Iterator<Item = f64>) -> Self {
        values.fold(self, |key, value| Self(mix(key.0.wrapping_add(STEP) ^ mix((value + 0.0).to_bits()))))
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// A uniform draw of 64 bits: where copy `number` of these contents comes in a random order.
    pub(crate) fn rank(self, number: u64) -> u64 {
        mix(self.0.wrapping_add(number.wrapping_add(1).wrapping_mul(STEP)))
    }

    const fn bits(self, number: u64) -> u64 {
        mix(self.0.wrapping_add(number.wrapping_mul(STEP)))
    }

    /// A draw from the exponential distribution of rate 1; the logarithm is the same on every platform.
    pub(crate) fn exponential(self) -> f64 {
        -libm::log(1.0 - unit(self.bits(EXPONENTIAL)))
    }

    /// A uniform draw in `[0, 1)` that picks the feature.
    pub(crate) fn feature(self) -> f64 {
        unit(self.bits(FEATURE))
    }

    /// A uniform draw in `[0, 1)` that picks the location.
    pub(crate) fn location(self) -> f64 {
        unit(self.bits(LOCATION))
    }
}

/// A sequence of random numbers, the same on every platform.
#[derive(Debug)]
pub struct Stream {
    key: Key,
    number: u64,
}

impl Stream {
    /// Stream `index` of a seed.
    #[must_use]
    pub fn new(seed: u64, index: usize) -> Self {
        Self::numbered(seed, index as u64)
    }

    /// [`Stream::new`] for an index that may exceed `usize`.
    pub(crate) fn numbered(seed: u64, index: u64) -> Self {
        // The seed is inverted, so that streams and trees of one seed have unrelated keys.
        Self { key: Key::of_tree(!seed, index), number: 0 }
    }

    /// Number of draws so far.
    pub(crate) fn position(&self) -> u64 {
        self.number
    }

    /// Continues as if `position` numbers had been drawn.
    pub(crate) fn seek(&mut self, position: u64) {
        self.number = position;
    }

    /// A uniform draw in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        self.number += 1;
        unit(self.key.bits(self.number))
    }

    /// The next `n` uniform draws, to be read later in any order. All of them count as drawn.
    pub(crate) fn ahead(&mut self, n: usize) -> Ahead {
        let ahead = Ahead { key: self.key, next: self.number + 1 };
        self.number += n as u64;
        ahead
    }

    /// A uniform draw from `0..n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n - 1)
    }
}

/// Draws of a stream that can be read in any order.
#[derive(Debug)]
pub(crate) struct Ahead {
    key: Key,
    next: u64,
}

impl Ahead {
    /// The draw at index `after`.
    pub(crate) fn unit(&self, after: usize) -> f64 {
        unit(self.key.bits(self.next + after as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's statistic of counts that should all be equal.
    fn chi_square(counts: &[f64]) -> f64 {
        let expected = counts.iter().sum::<f64>() / counts.len() as f64;
        counts.iter().map(|n| (n - expected).powi(2) / expected).sum()
    }

    /// Uniform draws along a walk of the tree, across trees and across seeds fill a grid of pairs evenly.
    /// 255 degrees of freedom: 5 standard deviations above the mean is 255 + 5 sqrt(510) < 368.
    #[test]
    fn pairs_of_draws_fill_the_square() {
        type Pair = fn(u64) -> (f64, f64);
        let pairs: [(&str, Pair); 4] = [
            ("feature and location", |i| {
                let key = Key::of_tree(i, 0);
                (key.feature(), key.location())
            }),
            ("parent and child", |i| {
                let key = Key::of_tree(7, i);
                (key.location(), key.child(i % 2 == 0).location())
            }),
            ("siblings", |i| {
                let key = Key::of_tree(i, 3).child(true);
                (key.child(false).feature(), key.child(true).feature())
            }),
            ("levels", |i| {
                let key = Key::of_tree(i, 1);
                (key.at_level(0).location(), key.at_level(1).location())
            }),
        ];
        for (name, pair) in pairs {
            let mut counts = [0.0; 256];
            for i in 0..200_000 {
                let (a, b) = pair(i);
                counts[(a * 16.0) as usize * 16 + (b * 16.0) as usize] += 1.0;
            }
            let statistic = chi_square(&counts);
            assert!(statistic < 368.0, "{name}: {statistic}");
        }
    }

    #[test]
    fn exponential_has_mean_and_variance_one() {
        let draws: Vec<f64> = (0..200_000).map(|i| Key::of_tree(i, 0).exponential()).collect();
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        // Standard errors 1 / sqrt(n) and sqrt(8 / n): five of each.
        assert!((mean - 1.0).abs() < 0.0112, "{mean}");
        assert!((variance - 1.0).abs() < 0.032, "{variance}");
    }

    /// The generator is part of the model file's format: these numbers never change.
    #[test]
    fn golden_draws() {
        let key = Key::of_tree(42, 3).child(true).child(false);
        let draws = [key.exponential(), key.feature(), key.location(), key.at_level(2).location()];
        assert_eq!(draws, GOLDEN);
    }

    const GOLDEN: [f64; 4] = [
        1.184_038_173_229_293_7,
        0.434_022_579_676_724_86,
        0.494_603_299_524_645_1,
        0.079_050_292_195_081_08,
    ];
}
