//! Statistics for classification: which classes each node holds.
//!
//! Interpolated Kneser-Ney lets a restaurant serve a dish at one table at most, so an inner node's
//! customers are `c_jk = tab_left(j),k + tab_right(j),k` and its tables `tab_jk = min(c_jk, 1)` (thesis
//! section 5.4.1): one bit a class and node says it all, and only leaves count rows.

use super::statistics::Statistics;
use crate::tree::{RowId, SiteId};

/// A class's number in its forest, in order of first appearance.
pub(crate) type Class = u32;

/// Bits to a word.
const WORD: usize = 64;
/// In `slots`: the leaf holds one class, or the node is no leaf.
const NONE: u32 = u32::MAX;

/// The classes at every node of one tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Classes {
    /// Words to a set of classes.
    words: usize,
    /// Two sets to a site: the tables `tab_jk`, and the classes that both children of a split have.
    sets: Vec<u64>,
    /// Where a leaf of several classes has its counts.
    slots: Vec<u32>,
    /// Classes and numbers of rows, in order of class.
    counts: Vec<Box<[(Class, u32)]>>,
    free: Vec<u32>,
}

impl Classes {
    /// The classes that a site holds, as words of bits.
    pub(crate) fn tables(&self, site: SiteId) -> &[u64] {
        self.sets(site).0
    }

    /// The classes that a site holds, and those that both its children hold (a leaf has none).
    pub(crate) fn sets(&self, site: SiteId) -> (&[u64], &[u64]) {
        let start = site.index() * 2 * self.words;
        self.sets[start..start + 2 * self.words].split_at(self.words)
    }

    /// Words to a set of classes.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// Customers `c_jk` of a leaf of several classes; none for a leaf of one class, whose every row is it.
    pub(crate) fn counts(&self, leaf: SiteId) -> Option<&[(Class, u32)]> {
        match self.slots.get(leaf.index()) {
            None | Some(&NONE) => None,
            Some(&slot) => Some(&self.counts[slot as usize]),
        }
    }

    /// Makes every set hold a class.
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

    fn sets_mut(&mut self, site: SiteId) -> (&mut [u64], &mut [u64]) {
        let (start, size) = (site.index() * 2 * self.words, 2 * self.words);
        if self.sets.len() < start + size {
            self.sets.resize(start + size, 0);
        }
        self.sets[start..start + size].split_at_mut(self.words)
    }

    fn set_counts(&mut self, leaf: SiteId, counts: Vec<(Class, u32)>) {
        for &(class, _) in &counts {
            self.widen(class);
        }
        let (tables, both) = self.sets_mut(leaf);
        tables.fill(0);
        both.fill(0);
        for &(class, _) in &counts {
            tables[class as usize / WORD] |= 1 << (class as usize % WORD);
        }
        self.clear(leaf);
        if counts.len() > 1 {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.counts.push(Box::default());
                self.counts.len() as u32 - 1
            });
            self.counts[slot as usize] = counts.into_boxed_slice();
            if self.slots.len() <= leaf.index() {
                self.slots.resize(leaf.index() + 1, NONE);
            }
            self.slots[leaf.index()] = slot;
        }
    }

    /// A leaf's counts, also if it holds one class.
    fn all_counts(&self, leaf: SiteId, n_rows: usize) -> Vec<(Class, u32)> {
        match self.counts(leaf) {
            Some(counts) => counts.to_vec(),
            None => iter_bits(self.tables(leaf)).map(|class| (class, n_rows as u32)).collect(),
        }
    }
}

impl Statistics for Classes {
    type Target = Class;

    fn set_leaf(&mut self, leaf: SiteId, rows: &[RowId], targets: &[Class]) {
        self.set_counts(leaf, tally(rows, targets));
    }

    fn grow_leaf(&mut self, leaf: SiteId, n_rows: usize, added: &[RowId], targets: &[Class]) -> bool {
        let mut counts = self.all_counts(leaf, n_rows - added.len());
        for (class, n) in tally(added, targets) {
            match counts.binary_search_by_key(&class, |&(class, _)| class) {
                Ok(i) => counts[i].1 += n,
                Err(i) => counts.insert(i, (class, n)),
            }
        }
        self.set_counts(leaf, counts);
        true
    }

    fn shrink_leaf(&mut self, leaf: SiteId, n_rows: usize, removed: &[RowId], targets: &[Class]) -> bool {
        let mut counts = self.all_counts(leaf, n_rows + removed.len());
        for (class, n) in tally(removed, targets) {
            let i = counts.binary_search_by_key(&class, |&(class, _)| class).expect("the leaf held the row");
            counts[i].1 -= n;
        }
        counts.retain(|&(_, n)| n > 0);
        self.set_counts(leaf, counts);
        true
    }

    fn join(&mut self, site: SiteId, (left, _): (SiteId, usize), (right, _): (SiteId, usize)) {
        for word in 0..self.words {
            let (left, right) = (self.tables(left)[word], self.tables(right)[word]);
            let (tables, both) = self.sets_mut(site);
            tables[word] = left | right;
            both[word] = left & right;
        }
    }

    fn is_uniform(&self, site: SiteId) -> bool {
        self.tables(site).iter().map(|word| word.count_ones()).sum::<u32>() == 1
    }

    fn clear(&mut self, site: SiteId) {
        if let Some(slot) = self.slots.get_mut(site.index())
            && *slot != NONE
        {
            self.counts[*slot as usize] = Box::default();
            self.free.push(*slot);
            *slot = NONE;
        }
    }

    fn shrink_to_fit(&mut self) {
        self.sets.shrink_to_fit();
        self.slots.shrink_to_fit();
        self.counts.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        let counts: usize = self.counts.iter().map(|counts| size_of_val::<[_]>(counts)).sum();
        self.sets.capacity() * size_of::<u64>()
            + self.slots.capacity() * size_of::<u32>()
            + self.counts.capacity() * size_of::<Box<[(Class, u32)]>>()
            + counts
    }
}

/// Rows by class, in order of class.
fn tally(rows: &[RowId], targets: &[Class]) -> Vec<(Class, u32)> {
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

/// The classes in words of bits, in order.
pub(crate) fn iter_bits(words: &[u64]) -> impl Iterator<Item = Class> + '_ {
    words.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some((i * WORD) as Class + bit)
        })
    })
}
