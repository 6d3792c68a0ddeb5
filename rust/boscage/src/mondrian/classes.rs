//! Statistics for classification: which classes each node holds.
//!
//! Interpolated Kneser-Ney lets a restaurant serve a dish at one table at most, so an inner node's
//! customers are `c_jk = tab_left(j),k + tab_right(j),k` and its tables `tab_jk = min(c_jk, 1)` (thesis
//! section 5.4.1): one bit a class and node says it all, and only leaves count rows.

use super::statistics::Statistics;
use crate::tree::{NodeId, RowId};

/// A class's number in its forest, in order of first appearance.
pub(crate) type Class = u32;

/// Bits to a word.
const WORD: usize = 64;
/// In `slots`: the leaf holds one class, or the node is no leaf.
const NONE: u32 = u32::MAX;

/// The classes at every node of one tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Classes {
    /// Words to a node.
    words: usize,
    /// The tables `tab_jk`, one bit a class.
    tables: Vec<u64>,
    /// Where a leaf of several classes has its counts.
    slots: Vec<u32>,
    /// Classes and numbers of rows, in order of class.
    counts: Vec<Box<[(Class, u32)]>>,
    free: Vec<u32>,
}

impl Classes {
    /// The classes that a node holds, as words of bits.
    pub(crate) fn tables(&self, node: NodeId) -> &[u64] {
        &self.tables[node.index() * self.words..(node.index() + 1) * self.words]
    }

    /// Words to a node.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// Customers `c_jk` of a leaf of several classes; none for a leaf of one class, whose every row is it.
    pub(crate) fn counts(&self, leaf: NodeId) -> Option<&[(Class, u32)]> {
        match self.slots.get(leaf.index()) {
            None | Some(&NONE) => None,
            Some(&slot) => Some(&self.counts[slot as usize]),
        }
    }

    /// Makes every node's bits hold a class.
    fn widen(&mut self, class: Class) {
        let words = class as usize / WORD + 1;
        if words <= self.words {
            return;
        }
        let mut tables = vec![0; self.tables.len() / self.words.max(1) * words];
        if self.words > 0 {
            for (to, from) in tables.chunks_mut(words).zip(self.tables.chunks(self.words)) {
                to[..from.len()].copy_from_slice(from);
            }
        }
        self.tables = tables;
        self.words = words;
    }

    fn node_mut(&mut self, node: NodeId) -> &mut [u64] {
        let end = (node.index() + 1) * self.words;
        if self.tables.len() < end {
            self.tables.resize(end, 0);
        }
        &mut self.tables[end - self.words..end]
    }

    fn set_counts(&mut self, leaf: NodeId, counts: Vec<(Class, u32)>) {
        for &(class, _) in &counts {
            self.widen(class);
        }
        let tables = self.node_mut(leaf);
        tables.fill(0);
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
    fn all_counts(&self, leaf: NodeId, n_rows: usize) -> Vec<(Class, u32)> {
        match self.counts(leaf) {
            Some(counts) => counts.to_vec(),
            None => iter_bits(self.tables(leaf)).map(|class| (class, n_rows as u32)).collect(),
        }
    }
}

impl Statistics for Classes {
    type Target = Class;

    fn set_leaf(&mut self, leaf: NodeId, rows: &[RowId], targets: &[Class]) {
        self.set_counts(leaf, tally(rows, targets));
    }

    fn grow_leaf(&mut self, leaf: NodeId, n_rows: usize, added: &[RowId], targets: &[Class]) -> bool {
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

    fn shrink_leaf(&mut self, leaf: NodeId, n_rows: usize, removed: &[RowId], targets: &[Class]) -> bool {
        let mut counts = self.all_counts(leaf, n_rows + removed.len());
        for (class, n) in tally(removed, targets) {
            let i = counts.binary_search_by_key(&class, |&(class, _)| class).expect("the leaf held the row");
            counts[i].1 -= n;
        }
        counts.retain(|&(_, n)| n > 0);
        self.set_counts(leaf, counts);
        true
    }

    fn join(&mut self, node: NodeId, (left, _): (NodeId, usize), (right, _): (NodeId, usize)) {
        let words = self.words;
        self.node_mut(node);
        for i in 0..words {
            self.tables[node.index() * words + i] =
                self.tables[left.index() * words + i] | self.tables[right.index() * words + i];
        }
    }

    fn copy(&mut self, node: NodeId, child: NodeId) {
        self.join(node, (child, 0), (child, 0));
    }

    fn is_uniform(&self, node: NodeId) -> bool {
        self.tables(node).iter().map(|word| word.count_ones()).sum::<u32>() == 1
    }

    fn clear(&mut self, node: NodeId) {
        if let Some(slot) = self.slots.get_mut(node.index())
            && *slot != NONE
        {
            self.counts[*slot as usize] = Box::default();
            self.free.push(*slot);
            *slot = NONE;
        }
    }

    fn shrink_to_fit(&mut self) {
        self.tables.shrink_to_fit();
        self.slots.shrink_to_fit();
        self.counts.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        let counts: usize = self.counts.iter().map(|counts| size_of_val::<[_]>(counts)).sum();
        self.tables.capacity() * size_of::<u64>()
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
