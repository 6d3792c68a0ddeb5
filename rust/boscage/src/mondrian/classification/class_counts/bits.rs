//! Sets of classes, as the bits of words.

/// A class's number in its forest, in order of first appearance.
pub(crate) type Class = u32;

/// Bits in a word.
pub(crate) const WORD: usize = 64;

/// The bit of a class in one word of a set.
pub(super) fn bit(class: Class, word: usize) -> u64 {
    if class as usize / WORD == word { 1 << (class as usize % WORD) } else { 0 }
}

/// The classes of one word of bits, in order.
pub(crate) fn iter_bits(word: usize, bits: u64) -> impl Iterator<Item = Class> {
    let mut rest = bits;
    std::iter::from_fn(move || {
        let bit = (rest != 0).then(|| rest.trailing_zeros())?;
        rest &= rest - 1;
        Some((word * WORD) as Class + bit)
    })
}
