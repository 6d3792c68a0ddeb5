//! Statistics for classification: which classes each node holds.
//!
//! Interpolated Kneser-Ney lets a restaurant serve a dish at one table at most, so an inner node's
//! customers are `c_jk = tab_left(j),k + tab_right(j),k` and its tables `tab_jk = min(c_jk, 1)` (thesis
//! section 5.4.1, Algorithm 5.3): one bit a class and node suffices, and only leaves count rows. An update stops at the
//! first node whose set of classes stays the same (Algorithm 5.7).

use crate::data::RowId;
use crate::data::fetch;
use crate::error::{Error, Result};
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;

/// A class's number in its forest, in order of first appearance.
pub(crate) type Class = u32;

/// Bits in a word.
pub(crate) const WORD: usize = 64;
/// In `leaves`: the leaf holds several classes; the other bits are the index of their counts.
const MIXED: u32 = 1 << 31;

/// The classes at every node of one tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassCounts {
    /// Words in a set of classes.
    words: usize,
    /// Two sets a split: the tables `tab_jk`, and the classes that both children hold.
    sets: Vec<u64>,
    /// A leaf's class, or the index of its counts.
    leaves: Vec<u32>,
    /// Classes and numbers of rows, in order of class.
    counts: Vec<Box<[(Class, u32)]>>,
    free: Vec<u32>,
}

/// Refuses forests whose sets of classes, two at each split, have no room in memory: they take as many bits as there are
/// classes.
///
/// # Errors
/// [`Error::Memory`].
pub(crate) fn check_memory(n_trees: usize, n_rows: usize, n_classes: usize) -> Result<()> {
    let n_words = 2 * n_classes.div_ceil(WORD);
    let n = n_trees.saturating_mul(n_rows.saturating_sub(1)).saturating_mul(n_words);
    // Reserved at once and given back, since a failed allocation would abort the process while trees grow.
    Vec::<u64>::new().try_reserve_exact(n).map_err(|_| Error::Memory {
        what: "the classes at the nodes of trees (fewer trees, rows or classes need less)",
        n_bytes: n.saturating_mul(size_of::<u64>()),
    })
}

/// What a leaf holds.
pub(crate) enum Held<'a> {
    /// Rows of one class.
    One(Class),
    /// Rows of several: customers `c_jk` in order of class.
    Several(&'a [(Class, u32)]),
}

impl ClassCounts {
    /// Words to a set of classes.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// What a leaf holds.
    pub(crate) fn held(&self, leaf: NodeId) -> Held<'_> {
        let class = self.leaves[leaf.rank()];
        if class & MIXED == 0 {
            Held::One(class)
        } else {
            Held::Several(&self.counts[(class & !MIXED) as usize])
        }
    }

    /// One word of the classes that a node holds.
    pub(crate) fn tables(&self, node: NodeId, word: usize) -> u64 {
        if !node.is_leaf() {
            return self.sets[node.rank() * 2 * self.words + word];
        }
        match self.held(node) {
            Held::One(class) => bit(class, word),
            Held::Several(counts) => counts.iter().fold(0, |bits, &(class, _)| bits | bit(class, word)),
        }
    }

    /// One word of the classes that both children of a split hold.
    pub(crate) fn both(&self, split: NodeId, word: usize) -> u64 {
        self.sets[(split.rank() * 2 + 1) * self.words + word]
    }

    /// Numbers of the classes that a node holds, and of those that both its children hold (a leaf has none).
    pub(crate) fn n_tables(&self, node: NodeId) -> (u32, u32) {
        if node.is_leaf() {
            return match self.held(node) {
                Held::One(_) => (1, 0),
                Held::Several(counts) => (counts.len() as u32, 0),
            };
        }
        let start = node.rank() * 2 * self.words;
        let (tables, both) = self.sets[start..start + 2 * self.words].split_at(self.words);
        let count = |bits: &[u64]| bits.iter().map(|word| word.count_ones()).sum();
        (count(tables), count(both))
    }

    /// Widens all sets to hold a class.
    fn widen(&mut self, class: Class) {
        let words = class as usize / WORD + 1;
        if words <= self.words {
            return;
        }
        let mut sets = vec![0; self.sets.len() / self.words.max(1) * words];
        if self.words > 0 {
            for (to, from) in sets.chunks_mut(words).zip(self.sets.chunks(self.words)) {
                to[..from.len()].copy_from_slice(from);
            }
        }
        self.sets = sets;
        self.words = words;
    }

    fn set_leaf_to(&mut self, leaf: NodeId, held: u32) {
        self.clear(leaf);
        if self.leaves.len() <= leaf.rank() {
            self.leaves.resize(leaf.rank() + 1, 0);
        }
        self.leaves[leaf.rank()] = held;
    }

    fn set_counts(&mut self, leaf: NodeId, counts: Vec<(Class, u32)>) {
        for &(class, _) in &counts {
            self.widen(class);
        }
        if let [(class, _)] = counts[..] {
            return self.set_leaf_to(leaf, class);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.counts.push(Box::default());
            self.counts.len() as u32 - 1
        });
        self.counts[slot as usize] = counts.into_boxed_slice();
        self.set_leaf_to(leaf, slot | MIXED);
    }

    /// Changes the counts of a leaf; returns whether its set of classes changed.
    fn recount(
        &mut self,
        leaf: NodeId,
        n_before: usize,
        change: impl FnOnce(&mut Vec<(Class, u32)>),
    ) -> bool {
        let mut counts = match self.held(leaf) {
            Held::One(class) => vec![(class, n_before as u32)],
            Held::Several(counts) => counts.to_vec(),
        };
        let before: Vec<Class> = counts.iter().map(|&(class, _)| class).collect();
        change(&mut counts);
        let same = before.iter().eq(counts.iter().map(|(class, _)| class));
        self.set_counts(leaf, counts);
        !same
    }

    /// Whether a leaf holds nothing but the class of some rows.
    fn is_all(&self, leaf: NodeId, rows: &[RowId], targets: &[Class]) -> bool {
        matches!(self.held(leaf), Held::One(class) if rows.iter().all(|&row| targets[row as usize] == class))
    }
}

impl Statistics for ClassCounts {
    type Target = Class;

    /// Algorithm 5.3, line 1.
    fn set_leaf(&mut self, leaf: NodeId, rows: &[RowId], targets: &[Class]) {
        let first = targets[rows[0] as usize];
        if rows.iter().all(|&row| targets[row as usize] == first) {
            self.widen(first);
            return self.set_leaf_to(leaf, first);
        }
        self.set_counts(leaf, tally(rows, targets));
    }

    /// Algorithm 5.7, line 1; the parent is updated if a class is new to the leaf (lines 4 and 5).
    fn grow_leaf(&mut self, leaf: NodeId, n: usize, added: &[RowId], targets: &[Class]) -> Option<bool> {
        if self.is_all(leaf, added, targets) {
            return Some(false);
        }
        Some(self.recount(leaf, n - added.len(), |counts| {
            for (class, n) in tally(added, targets) {
                match counts.binary_search_by_key(&class, |&(class, _)| class) {
                    Ok(i) => counts[i].1 += n,
                    Err(i) => counts.insert(i, (class, n)),
                }
            }
        }))
    }

    fn shrink_leaf(&mut self, leaf: NodeId, n: usize, removed: &[RowId], targets: &[Class]) -> Option<bool> {
        if self.is_all(leaf, removed, targets) {
            return Some(false);
        }
        Some(self.recount(leaf, n + removed.len(), |counts| {
            for (class, n) in tally(removed, targets) {
                let i =
                    counts.binary_search_by_key(&class, |&(class, _)| class).expect("the leaf held the row");
                counts[i].1 -= n;
            }
            counts.retain(|&(_, n)| n > 0);
        }))
    }

    /// Algorithm 5.3, lines 5 and 6, and Algorithm 5.7, lines 8 and 9; returns whether the set of classes changed. That
    /// is asked after customers are counted, where line 4 of Algorithm 5.7 asks before, and so misses the customer whom a
    /// child's new table sends.
    fn join(&mut self, split: NodeId, (left, _): (NodeId, usize), (right, _): (NodeId, usize)) -> bool {
        let start = split.rank() * 2 * self.words;
        if self.sets.len() < start + 2 * self.words {
            self.sets.resize(start + 2 * self.words, 0);
        }
        let mut changed = false;
        for word in 0..self.words {
            let (left, right) = (self.tables(left, word), self.tables(right, word));
            changed |= self.sets[start + word] != left | right;
            self.sets[start + word] = left | right;
            self.sets[start + self.words + word] = left & right;
        }
        changed
    }

    fn is_uniform(&self, node: NodeId) -> bool {
        self.n_tables(node).0 == 1
    }

    fn clear(&mut self, node: NodeId) {
        if !node.is_leaf() {
            return;
        }
        if let Some(held) = self.leaves.get_mut(node.rank())
            && *held & MIXED != 0
        {
            let slot = std::mem::take(held) & !MIXED;
            self.counts[slot as usize] = Box::default();
            self.free.push(slot);
        }
    }

    fn fetch_all(&self) {
        fetch(&self.sets);
        fetch(&self.leaves);
    }

    fn shrink_to_fit(&mut self) {
        self.sets.shrink_to_fit();
        self.leaves.shrink_to_fit();
        self.counts.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        let counts: usize = self.counts.iter().map(|counts| size_of_val::<[_]>(counts)).sum();
        self.sets.capacity() * size_of::<u64>()
            + self.leaves.capacity() * size_of::<u32>()
            + self.counts.capacity() * size_of::<Box<[(Class, u32)]>>()
            + counts
    }
}

/// The bit of a class in one word of a set.
fn bit(class: Class, word: usize) -> u64 {
    if class as usize / WORD == word { 1 << (class as usize % WORD) } else { 0 }
}

/// Rows by class, in order of class.
pub(crate) fn tally(rows: &[RowId], targets: &[Class]) -> Vec<(Class, u32)> {
    let mut counts: Vec<(Class, u32)> = Vec::new();
    for &row in rows {
        let class = targets[row as usize];
        // Nearly always one class, and the last one seen.
        match counts.last_mut() {
            Some(last) if last.0 == class => last.1 += 1,
            _ => match counts.binary_search_by_key(&class, |&(class, _)| class) {
                Ok(i) => counts[i].1 += 1,
                Err(i) => counts.insert(i, (class, 1)),
            },
        }
    }
    counts
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_without_room_are_refused() {
        assert!(check_memory(100, 1_000, 1_000).is_ok());
        let refused = |n_trees, n_rows, n_classes| {
            matches!(check_memory(n_trees, n_rows, n_classes), Err(Error::Memory { .. }))
        };
        assert!(refused(100_000, 1 << 32, 1 << 20));
        assert!(refused(usize::MAX, usize::MAX, usize::MAX));
    }
}
