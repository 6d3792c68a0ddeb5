//! A set of classes by itself, as a list or as bits.

use crate::mondrian::classification::class_counts::bits::{Class, WORD, iter_bits};

/// A set of classes, in whichever form takes less memory; so equal sets have equal forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClassSet {
    /// In order.
    List(Box<[Class]>),
    /// As words; the last one is not 0.
    Bits(Box<[u64]>),
}

impl Default for ClassSet {
    fn default() -> Self {
        Self::List(Box::default())
    }
}

impl ClassSet {
    /// Of classes in order.
    pub(super) fn of(classes: Vec<Class>) -> Self {
        let n_words = classes.last().map_or(0, |&last| last as usize / WORD + 1);
        if !is_dense(classes.len(), n_words) {
            return Self::List(classes.into());
        }
        let mut words = vec![0; n_words];
        for class in classes {
            words[class as usize / WORD] |= 1 << (class as usize % WORD);
        }
        Self::Bits(words.into())
    }

    /// Of the classes that words hold.
    pub(super) fn of_words(mut words: Vec<u64>) -> Self {
        words.truncate(words.iter().rposition(|&bits| bits != 0).map_or(0, |last| last + 1));
        let n = words.iter().map(|bits| bits.count_ones() as usize).sum();
        if is_dense(n, words.len()) {
            return Self::Bits(words.into());
        }
        Self::List(words.iter().enumerate().flat_map(|(word, &bits)| iter_bits(word, bits)).collect())
    }

    /// One word of the set.
    pub(super) fn word(&self, word: usize) -> u64 {
        match self {
            Self::Bits(words) => words.get(word).copied().unwrap_or(0),
            Self::List(classes) => {
                let first = classes.partition_point(|&class| (class as usize) < word * WORD);
                let inside = classes[first..].iter().take_while(|&&class| class as usize / WORD == word);
                inside.fold(0, |bits, &class| bits | 1 << (class as usize % WORD))
            }
        }
    }

    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Bits(words) => words.iter().map(|bits| bits.count_ones()).sum(),
            Self::List(classes) => classes.len() as u32,
        }
    }

    /// The classes of either set, and those of both.
    pub(super) fn join(&self, other: &Self) -> [Self; 2] {
        match (self, other) {
            (Self::Bits(one), Self::Bits(two)) => join_words(one, two),
            (Self::Bits(words), Self::List(list)) | (Self::List(list), Self::Bits(words)) => {
                join_words_with(words, list)
            }
            (Self::List(one), Self::List(two)) => join_lists(one, two),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::List(classes) => size_of_val::<[_]>(classes),
            Self::Bits(words) => size_of_val::<[_]>(words),
        }
    }
}

/// Whether as many classes take less memory as words than as a list.
fn is_dense(n_classes: usize, n_words: usize) -> bool {
    n_words * size_of::<u64>() < n_classes * size_of::<Class>()
}

fn join_words(one: &[u64], two: &[u64]) -> [ClassSet; 2] {
    let (long, short) = if one.len() < two.len() { (two, one) } else { (one, two) };
    let mut either = long.to_vec();
    either.iter_mut().zip(short).for_each(|(bits, more)| *bits |= more);
    let both = long.iter().zip(short).map(|(one, two)| one & two).collect();
    [either, both].map(ClassSet::of_words)
}

fn join_words_with(words: &[u64], list: &[Class]) -> [ClassSet; 2] {
    let n_words = list.last().map_or(0, |&last| last as usize / WORD + 1).max(words.len());
    let mut either = words.to_vec();
    either.resize(n_words, 0);
    let mut both = Vec::new();
    for &class in list {
        let (bits, bit) = (&mut either[class as usize / WORD], 1 << (class as usize % WORD));
        if *bits & bit != 0 {
            both.push(class);
        }
        *bits |= bit;
    }
    [ClassSet::of_words(either), ClassSet::of(both)]
}

fn join_lists(mut one: &[Class], mut two: &[Class]) -> [ClassSet; 2] {
    let (mut either, mut both) = (Vec::with_capacity(one.len() + two.len()), Vec::new());
    while let ([first, rest @ ..], [second, others @ ..]) = (one, two) {
        either.push(*first.min(second));
        if first == second {
            both.push(*first);
        }
        if first <= second {
            one = rest;
        }
        if second <= first {
            two = others;
        }
    }
    either.extend(one.iter().chain(two));
    [either, both].map(ClassSet::of)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::random::Stream;

    /// At most so many classes below a bound.
    fn some_classes(stream: &mut Stream, n: usize, bound: usize) -> BTreeSet<Class> {
        (0..n).map(|_| stream.below(bound) as Class).collect()
    }

    fn set(classes: &BTreeSet<Class>) -> ClassSet {
        ClassSet::of(classes.iter().copied().collect())
    }

    #[test]
    fn sets_join_as_those_of_the_standard_library_do() {
        let mut stream = Stream::new(0, 0);
        // Lists, bits, and sets that change from one form to the other.
        for (n, m, bound) in [(0, 5, 100), (5, 9, 10_000), (40, 2, 300), (900, 3, 2_000), (900, 800, 2_000)] {
            for _ in 0..20 {
                let one = some_classes(&mut stream, n, bound);
                let two = some_classes(&mut stream, m, 2 * bound);
                let expected = [&one | &two, &one & &two].map(|classes| set(&classes));
                assert_eq!(set(&one).join(&set(&two)), expected);
                assert_eq!(set(&two).join(&set(&one)), expected);
            }
        }
    }

    #[test]
    fn words_and_lists_make_the_same_set() {
        let mut stream = Stream::new(1, 0);
        for (n, bound) in [(0, 1), (1, 5_000), (60, 64), (200, 5_000), (3_000, 5_000)] {
            let classes = some_classes(&mut stream, n, bound);
            let set = set(&classes);
            let n_words = bound.div_ceil(WORD) + 1;
            let words: Vec<u64> = (0..n_words).map(|word| set.word(word)).collect();
            assert_eq!(ClassSet::of_words(words.clone()), set);
            let read = words.iter().enumerate().flat_map(|(word, &bits)| iter_bits(word, bits));
            assert_eq!(read.collect::<BTreeSet<_>>(), classes);
            assert_eq!(set.len() as usize, classes.len());
            assert!(set.bytes() <= 4 * classes.len().min(2 * n_words));
        }
    }
}
