//! The sets of classes at the splits of one tree.
//!
//! Sets of up to [`NARROW`] words lie beside each other. With more classes than that most splits hold few of them, and each
//! split has sets of its own.

use std::borrow::Cow;

use crate::data::fetch;
use crate::mondrian::classification::class_counts::bits::{Class, WORD};
use crate::mondrian::classification::class_counts::class_set::ClassSet;
use crate::mondrian::tree::arena::NodeId;

/// Words in the widest sets that lie beside each other.
const NARROW: usize = 16;

/// Two sets a split: the tables `tab_jk`, and the classes that both children hold.
#[derive(Debug, Clone, Default)]
pub(super) struct SplitSets {
    /// Words in a set.
    words: usize,
    /// Both sets of every split, up to [`NARROW`] words.
    narrow: Vec<u64>,
    /// Beyond.
    wide: Vec<[ClassSet; 2]>,
}

impl SplitSets {
    /// Words in a set of classes.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Whether every split has sets of its own.
    pub(super) fn is_wide(&self) -> bool {
        self.words > NARROW
    }

    /// One word of the tables of a split.
    pub(super) fn tables(&self, split: NodeId, word: usize) -> u64 {
        self.word(split, 0, word)
    }

    /// One word of the classes that both children of a split hold.
    pub(super) fn both(&self, split: NodeId, word: usize) -> u64 {
        self.word(split, 1, word)
    }

    fn word(&self, split: NodeId, which: usize, word: usize) -> u64 {
        if self.is_wide() {
            return self.wide[split.rank()][which].word(word);
        }
        self.narrow[(2 * split.rank() + which) * self.words + word]
    }

    /// The numbers of classes in both sets of a split.
    pub(super) fn lens(&self, split: NodeId) -> (u32, u32) {
        if self.is_wide() {
            let [tables, both] = &self.wide[split.rank()];
            return (tables.len(), both.len());
        }
        let start = 2 * split.rank() * self.words;
        let (tables, both) = self.narrow[start..start + 2 * self.words].split_at(self.words);
        let count = |bits: &[u64]| bits.iter().map(|word| word.count_ones()).sum();
        (count(tables), count(both))
    }

    /// The tables of a split.
    pub(super) fn tables_of(&self, split: NodeId) -> Cow<'_, ClassSet> {
        if self.is_wide() {
            return Cow::Borrowed(&self.wide[split.rank()][0]);
        }
        let start = 2 * split.rank() * self.words;
        Cow::Owned(ClassSet::of_words(self.narrow[start..start + self.words].to_vec()))
    }

    /// Makes room for a split.
    pub(super) fn make_room(&mut self, split: NodeId) {
        if self.is_wide() {
            if self.wide.len() <= split.rank() {
                self.wide.resize_with(split.rank() + 1, Default::default);
            }
            return;
        }
        let end = 2 * (split.rank() + 1) * self.words;
        if self.narrow.len() < end {
            self.narrow.resize(end, 0);
        }
    }

    /// Sets one word of both sets of a split, which are not wide; returns whether the tables changed.
    pub(super) fn set_word(&mut self, split: NodeId, word: usize, [tables, both]: [u64; 2]) -> bool {
        let start = 2 * split.rank() * self.words + word;
        let changed = self.narrow[start] != tables;
        self.narrow[start] = tables;
        self.narrow[start + self.words] = both;
        changed
    }

    /// Sets both sets of a split, which are wide; returns whether the tables changed.
    pub(super) fn set(&mut self, split: NodeId, sets: [ClassSet; 2]) -> bool {
        let before = std::mem::replace(&mut self.wide[split.rank()], sets);
        before[0] != self.wide[split.rank()][0]
    }

    /// Adds classes, in order, to both sets of a split.
    pub(super) fn insert(&mut self, split: NodeId, classes: [Vec<Class>; 2]) {
        for (which, classes) in classes.into_iter().enumerate() {
            if self.is_wide() {
                let set = &mut self.wide[split.rank()][which];
                [*set, _] = set.join(&ClassSet::of(classes));
            } else {
                let start = (2 * split.rank() + which) * self.words;
                for class in classes {
                    self.narrow[start + class as usize / WORD] |= 1 << (class as usize % WORD);
                }
            }
        }
    }

    /// Widens all sets to hold a class.
    pub(super) fn widen(&mut self, class: Class) {
        let (before, words) = (self.words, class as usize / WORD + 1);
        if words <= before {
            return;
        }
        self.words = words;
        let narrow = if before > NARROW { Vec::new() } else { std::mem::take(&mut self.narrow) };
        let sets = narrow.chunks(before.max(1));
        if self.is_wide() {
            let mut sets = sets.map(|set| ClassSet::of_words(set.to_vec()));
            self.wide.extend(std::iter::from_fn(|| Some([sets.next()?, sets.next()?])));
            return;
        }
        self.narrow = vec![0; sets.len() * words];
        for (to, from) in self.narrow.chunks_mut(words).zip(sets) {
            to[..from.len()].copy_from_slice(from);
        }
    }

    /// Frees the memory of a split's own sets.
    pub(super) fn clear(&mut self, split: NodeId) {
        if let Some(sets) = self.wide.get_mut(split.rank()) {
            *sets = Default::default();
        }
    }

    pub(super) fn fetch_all(&self) {
        fetch(&self.narrow);
    }

    pub(super) fn bytes(&self) -> usize {
        let own: usize = self.wide.iter().flatten().map(ClassSet::bytes).sum();
        self.narrow.capacity() * size_of::<u64>() + self.wide.capacity() * size_of::<[ClassSet; 2]>() + own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mondrian::classification::class_counts::bits::iter_bits;

    /// Classes of both sets of some split.
    fn classes(sets: &SplitSets, split: NodeId) -> [Vec<Class>; 2] {
        let of = |read: fn(&SplitSets, NodeId, usize) -> u64| {
            (0..sets.words()).flat_map(|word| iter_bits(word, read(sets, split, word))).collect()
        };
        [of(SplitSets::tables), of(SplitSets::both)]
    }

    #[test]
    fn sets_keep_their_classes_as_they_are_widened() {
        let mut sets = SplitSets::default();
        let splits = [0, 1, 2].map(NodeId::split);
        let mut expected = vec![[Vec::new(), Vec::new()]; 3];
        for last in [3, 63, 64, 500, 1023, 1024, 5_000, 100_000] {
            sets.widen(last);
            for (i, &split) in splits.iter().enumerate() {
                sets.make_room(split);
                let both = if i == 1 { vec![last] } else { Vec::new() };
                sets.insert(split, [vec![last], both.clone()]);
                expected[i][0].push(last);
                expected[i][1].extend(both);
                assert_eq!(classes(&sets, split), expected[i]);
                let n = expected[i].each_ref().map(|classes| classes.len() as u32);
                assert_eq!(sets.lens(split), (n[0], n[1]));
                assert_eq!(*sets.tables_of(split), ClassSet::of(expected[i][0].clone()));
            }
        }
    }
}
