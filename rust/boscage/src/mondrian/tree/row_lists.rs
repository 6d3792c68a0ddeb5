//! The rows of leaves, as linked lists.

use crate::data::{RowId, fetch};

const NONE: u32 = u32::MAX;

/// The list of a leaf, by its first row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowList(u32);

impl RowList {
    /// The list of no rows.
    pub(super) const EMPTY: Self = Self(NONE);

    pub(super) fn first(self) -> RowId {
        self.0
    }
}

/// What comes next to every row in its list.
#[derive(Debug, Clone, Default)]
pub(super) struct RowLists {
    next: Vec<u32>,
    /// The links back, by which a row leaves in constant time. None until a row leaves.
    previous: Vec<u32>,
}

impl RowLists {
    /// Makes room for rows numbered below `n`.
    pub(super) fn reserve(&mut self, n: usize) {
        let n = n.max(self.next.len());
        self.next.resize(n, NONE);
        if !self.previous.is_empty() {
            self.previous.resize(n, NONE);
        }
    }

    /// One past the largest number that a row may have.
    pub(super) fn n_places(&self) -> usize {
        self.next.len()
    }

    /// Forgets all rows. Memory is kept for others.
    pub(super) fn reset(&mut self) {
        self.next.clear();
        self.previous.clear();
    }

    /// Puts a row that is in no list at the beginning of one.
    pub(super) fn add(&mut self, list: &mut RowList, row: RowId) {
        let second = std::mem::replace(&mut list.0, row);
        self.next[row as usize] = second;
        if !self.previous.is_empty() {
            self.previous[row as usize] = NONE;
            if second != NONE {
                self.previous[second as usize] = row;
            }
        }
    }

    /// Takes a row out of the list that holds it.
    pub(super) fn take(&mut self, list: &mut RowList, row: RowId) {
        if self.previous.is_empty() {
            self.link_back();
        }
        let (before, after) = (self.previous[row as usize], self.next[row as usize]);
        if before == NONE {
            list.0 = after;
        } else {
            self.next[before as usize] = after;
        }
        if after != NONE {
            self.previous[after as usize] = before;
        }
    }

    /// Whether the link back of the next row, if there is one, is to this one.
    pub(super) fn is_linked_back(&self, row: RowId) -> bool {
        let after = self.next[row as usize];
        after == NONE || self.previous.is_empty() || self.previous[after as usize] == row
    }

    /// Sets the links back. No row has left so far, so that all links are those of lists.
    fn link_back(&mut self) {
        self.previous = vec![NONE; self.next.len()];
        for (row, &after) in (0..).zip(&self.next) {
            if after != NONE {
                self.previous[after as usize] = row;
            }
        }
    }

    /// The rows of a list, in arbitrary order.
    pub(super) fn rows(&self, list: RowList) -> impl Iterator<Item = RowId> + '_ {
        let mut row = list.0;
        std::iter::from_fn(move || {
            let this = (row != NONE).then_some(row)?;
            row = self.next[this as usize];
            Some(this)
        })
    }

    /// Reads all of it into the cache.
    pub(super) fn fetch_all(&self) {
        fetch(&self.next);
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        (self.next.capacity() + self.previous.capacity()) * size_of::<u32>()
    }
}
