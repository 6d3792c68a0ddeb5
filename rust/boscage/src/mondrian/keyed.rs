//! The keyed generator: the next cut of a cell is a pure function of the cell's key.
//!
//! A cell's key is a hash of the tree's seed and of the path of sides that leads to the cell. The numbers
//! drawn from it are part of the model file's format: changing anything here changes every forest, and
//! needs a new format version.

/// The identity of a cell of one tree's Mondrian process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

/// The golden-ratio step of the SplitMix64 sequence.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// An odd constant, unrelated to `STEP`, that tells the levels of a cell apart.
const LEVEL: u64 = 0xD6E8_FEB8_6659_FD93;

/// Numbers of the SplitMix64 sequence that starts at a key: three for its cut, two for its children.
const EXPONENTIAL: u64 = 1;
const DIMENSION: u64 = 2;
const LOCATION: u64 = 3;
const CHILD: u64 = 4;

/// Stafford's variant 13 of the 64-bit finaliser of `MurmurHash3`, as in SplitMix64.
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
    pub(crate) fn of_tree(seed: u64, tree: usize) -> Self {
        let forest = mix(seed.wrapping_add(STEP));
        Self(mix(forest ^ mix((tree as u64).wrapping_add(LEVEL))))
    }

    /// The key of the cell on one side of this cell's cut.
    pub(crate) const fn child(self, right: bool) -> Self {
        Self(mix(self.0.wrapping_add((CHILD + right as u64).wrapping_mul(STEP))))
    }

    /// The key of the same cell in the process of a shell; level 0 is the cell itself.
    pub(crate) const fn at_level(self, level: usize) -> Self {
        Self(self.0.wrapping_add((level as u64).wrapping_mul(LEVEL)))
    }

    const fn bits(self, number: u64) -> u64 {
        mix(self.0.wrapping_add(number.wrapping_mul(STEP)))
    }

    /// A draw from the exponential distribution of rate 1; the logarithm is the same on every platform.
    pub(crate) fn exponential(self) -> f64 {
        -libm::log(1.0 - unit(self.bits(EXPONENTIAL)))
    }

    /// A uniform draw in `[0, 1)` that picks the dimension.
    pub(crate) fn dimension(self) -> f64 {
        unit(self.bits(DIMENSION))
    }

    /// A uniform draw in `[0, 1)` that picks the location.
    pub(crate) fn location(self) -> f64 {
        unit(self.bits(LOCATION))
    }
}

/// Numbers one after the other, for what is no part of a forest's own process.
#[derive(Debug)]
pub(crate) struct Stream {
    key: Key,
    number: u64,
}

impl Stream {
    /// Stream `index` of a seed.
    pub(crate) fn new(seed: u64, index: usize) -> Self {
        // Far from the trees' keys of the same seed.
        Self { key: Key::of_tree(!seed, index), number: 0 }
    }

    /// A uniform draw in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        self.number += 1;
        unit(self.key.bits(self.number))
    }

    /// A uniform draw among `0..n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n - 1)
    }
}
