//! The rows of the table by id and in order of arrival.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::data::RowId;
use crate::error::{Error, Result};

/// Leaves, of which there may be one a row, are numbered with 31 bits, and the largest number marks the end
/// of a list.
const MAX_ROWS: usize = i32::MAX as usize - 1;

/// The number of rows that arrived before a row.
pub(crate) type Arrival = u64;

/// The rows of a forest by id and by arrival.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowIndex {
    /// Id and arrival of every row of the table, also of those that left.
    entries: Vec<(u64, Arrival)>,
    by_id: HashMap<u64, RowId>,
    by_arrival: BTreeMap<Arrival, RowId>,
    free: Vec<RowId>,
    next_arrival: Arrival,
    next_id: u64,
}

impl RowIndex {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Number of places in the table, also free ones.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Rows in order of arrival.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = RowId> + '_ {
        self.by_arrival.values().copied()
    }

    /// Rows that arrived at `first` or later, in order of arrival.
    pub(crate) fn rows_from(&self, first: Arrival) -> impl Iterator<Item = RowId> + '_ {
        self.by_arrival.range(first..).map(|(_, &row)| row)
    }

    /// The arrival of a row, also of one that left.
    pub(crate) fn arrival(&self, row: RowId) -> Arrival {
        self.entries[row as usize].1
    }

    /// The arrival of the next row.
    pub(crate) fn next_arrival(&self) -> Arrival {
        self.next_arrival
    }

    /// The id of a row.
    pub(crate) fn id(&self, row: RowId) -> u64 {
        self.entries[row as usize].0
    }

    /// The id that the next unnamed row gets.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Sets the id that the next unnamed row gets, unless a held id is as large.
    pub(crate) fn set_next_id(&mut self, next_id: u64) {
        self.next_id = self.next_id.max(next_id);
    }

    /// The ids that `n` new rows get: those given, or the next numbers.
    ///
    /// # Errors
    /// An id that is held already or given twice; too many rows.
    pub(crate) fn new_ids(&self, n: usize, ids: Option<&[u64]>) -> Result<Vec<u64>> {
        if self.len() + n > MAX_ROWS {
            return Err(Error::TooManyRows { max: MAX_ROWS, found: self.len() + n });
        }
        let Some(ids) = ids else {
            let Some(end) = self.next_id.checked_add(n as u64) else {
                let expected = "given, since the count of rows has come to its end";
                return Err(Error::InvalidSetting { name: "ids", expected, found: "none".into() });
            };
            return Ok((self.next_id..end).collect());
        };
        if ids.len() != n {
            return Err(Error::Length { what: "ids", found: ids.len(), expected: n, why: "one a row" });
        }
        let mut seen = HashSet::with_capacity(n);
        match ids.iter().find(|&&id| self.by_id.contains_key(&id) || !seen.insert(id)) {
            Some(&id) => Err(Error::DuplicateId { id }),
            None => Ok(ids.to_vec()),
        }
    }

    /// Gives places in the table to new rows.
    pub(crate) fn insert(&mut self, ids: &[u64]) -> Vec<RowId> {
        self.by_id.reserve(ids.len());
        let rows: Vec<RowId> = (self.next_arrival..)
            .zip(ids)
            .map(|(arrival, &id)| {
                let entry = (id, arrival);
                let row = if let Some(row) = self.free.pop() {
                    self.entries[row as usize] = entry;
                    row
                } else {
                    self.entries.push(entry);
                    self.entries.len() as RowId - 1
                };
                self.by_id.insert(id, row);
                self.next_id = self.next_id.max(id.saturating_add(1));
                row
            })
            .collect();
        let arrivals = (self.next_arrival..).zip(rows.iter().copied());
        if self.by_arrival.is_empty() {
            // Building the map at once is much faster than inserting one by one.
            self.by_arrival = arrivals.collect();
        } else {
            self.by_arrival.extend(arrivals);
        }
        self.next_arrival += ids.len() as u64;
        rows
    }

    /// The rows with the given ids.
    ///
    /// # Errors
    /// An id that is not held, or given twice.
    pub(crate) fn find(&self, ids: &[u64]) -> Result<Vec<RowId>> {
        let mut seen = HashSet::with_capacity(ids.len());
        ids.iter()
            .map(|&id| match self.by_id.get(&id) {
                Some(&row) if seen.insert(id) => Ok(row),
                _ => Err(Error::UnknownId { id }),
            })
            .collect()
    }

    /// Removes rows from the index; their places in the table stay reserved until they are released.
    pub(crate) fn remove(&mut self, rows: &[RowId]) {
        for &row in rows {
            let (id, arrival) = self.entries[row as usize];
            self.by_id.remove(&id);
            self.by_arrival.remove(&arrival);
        }
    }

    /// Frees the place of a removed row.
    pub(crate) fn release(&mut self, row: RowId) {
        self.free.push(row);
    }
}
