//! The rows of the table by id and in order of arrival.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::data::RowId;
use crate::error::{Error, Result};

/// Leaves, of which there may be one a row, are numbered with 31 bits, and the largest number marks the end
/// of a list.
pub(crate) const MAX_ROWS: usize = i32::MAX as usize - 1;

/// The number of rows that arrived before a row.
pub(crate) type Arrival = u64;

/// The rows of a forest by id and by arrival.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowIndex {
    places: Places,
    next_arrival: Arrival,
    next_id: u64,
}

/// Which row has which id and arrival.
#[derive(Debug, Clone)]
enum Places {
    /// No row has left, and ids count up from the first: row `i` arrived as number `i`. This takes no memory, and is
    /// what a fit leaves.
    Counted {
        n_rows: usize,
        first_id: u64,
    },
    Listed(Lists),
}

#[derive(Debug, Clone, Default)]
struct Lists {
    /// Id and arrival of every row of the table, also of those that left.
    entries: Vec<(u64, Arrival)>,
    by_id: HashMap<u64, RowId>,
    by_arrival: BTreeMap<Arrival, RowId>,
    free: Vec<RowId>,
}

impl Default for Places {
    fn default() -> Self {
        Self::Counted { n_rows: 0, first_id: 0 }
    }
}

impl Places {
    /// Adds rows whose ids continue the count, if they do.
    fn count_on(&mut self, ids: &[u64]) -> Option<Vec<RowId>> {
        let Self::Counted { n_rows, first_id } = self else { return None };
        let Some(&first) = ids.first() else { return Some(Vec::new()) };
        let first = if *n_rows == 0 { first } else { *first_id };
        let start = first.checked_add(*n_rows as u64)?;
        let continues = |(i, &id): (usize, &u64)| start.checked_add(i as u64) == Some(id);
        if !ids.iter().enumerate().all(continues) {
            return None;
        }
        let rows = *n_rows as RowId..(*n_rows + ids.len()) as RowId;
        (*first_id, *n_rows) = (first, rows.end as usize);
        Some(rows.collect())
    }

    /// The lists, which are made if there are none yet.
    fn lists(&mut self) -> &mut Lists {
        if let Self::Counted { n_rows, first_id } = *self {
            let rows = 0..n_rows as RowId;
            let entry = |row: RowId| (first_id + u64::from(row), Arrival::from(row));
            *self = Self::Listed(Lists {
                entries: rows.clone().map(entry).collect(),
                by_id: rows.clone().map(|row| (entry(row).0, row)).collect(),
                // Building the map at once is much faster than inserting one by one.
                by_arrival: rows.map(|row| (entry(row).1, row)).collect(),
                free: Vec::new(),
            });
        }
        match self {
            Self::Listed(lists) => lists,
            Self::Counted { .. } => unreachable!("the lists were made"),
        }
    }

    /// Id and arrival of a row of the table, also of one that left.
    fn entry(&self, row: RowId) -> (u64, Arrival) {
        match self {
            Self::Counted { first_id, .. } => (first_id + u64::from(row), Arrival::from(row)),
            Self::Listed(lists) => lists.entries[row as usize],
        }
    }

    /// The row with an id.
    fn find(&self, id: u64) -> Option<RowId> {
        match self {
            Self::Counted { n_rows, first_id } => {
                let row = id.checked_sub(*first_id).filter(|&row| row < *n_rows as u64)?;
                Some(row as RowId)
            }
            Self::Listed(lists) => lists.by_id.get(&id).copied(),
        }
    }
}

impl RowIndex {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        match &self.places {
            Places::Counted { n_rows, .. } => *n_rows,
            Places::Listed(lists) => lists.by_id.len(),
        }
    }

    /// Number of places in the table, also free ones.
    pub(crate) fn capacity(&self) -> usize {
        match &self.places {
            Places::Counted { n_rows, .. } => *n_rows,
            Places::Listed(lists) => lists.entries.len(),
        }
    }

    /// Rows in order of arrival.
    pub(crate) fn rows(&self) -> Box<dyn ExactSizeIterator<Item = RowId> + '_> {
        match &self.places {
            Places::Counted { n_rows, .. } => Box::new(0..*n_rows as RowId),
            Places::Listed(lists) => Box::new(lists.by_arrival.values().copied()),
        }
    }

    /// Rows that arrived at `first` or later, in order of arrival.
    pub(crate) fn rows_from(&self, first: Arrival) -> Box<dyn Iterator<Item = RowId> + '_> {
        match &self.places {
            Places::Counted { n_rows, .. } => Box::new(first.min(*n_rows as u64) as RowId..*n_rows as RowId),
            Places::Listed(lists) => Box::new(lists.by_arrival.range(first..).map(|(_, &row)| row)),
        }
    }

    /// The arrival of a row, also of one that left.
    pub(crate) fn arrival(&self, row: RowId) -> Arrival {
        self.places.entry(row).1
    }

    /// The arrival of the next row.
    pub(crate) fn next_arrival(&self) -> Arrival {
        self.next_arrival
    }

    /// The id of a row.
    pub(crate) fn id(&self, row: RowId) -> u64 {
        self.places.entry(row).0
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
        match ids.iter().find(|&&id| self.places.find(id).is_some() || !seen.insert(id)) {
            Some(&id) => Err(Error::DuplicateId { id }),
            None => Ok(ids.to_vec()),
        }
    }

    /// Gives places in the table to new rows.
    pub(crate) fn insert(&mut self, ids: &[u64]) -> Vec<RowId> {
        let first = self.next_arrival;
        self.next_arrival += ids.len() as u64;
        self.next_id = ids.iter().fold(self.next_id, |next, &id| next.max(id.saturating_add(1)));
        if let Some(rows) = self.places.count_on(ids) {
            return rows;
        }
        let Lists { entries, by_id, by_arrival, free } = self.places.lists();
        by_id.reserve(ids.len());
        let rows: Vec<RowId> = (first..)
            .zip(ids)
            .map(|(arrival, &id)| {
                let entry = (id, arrival);
                let row = if let Some(row) = free.pop() {
                    entries[row as usize] = entry;
                    row
                } else {
                    entries.push(entry);
                    entries.len() as RowId - 1
                };
                by_id.insert(id, row);
                row
            })
            .collect();
        let arrivals = (first..).zip(rows.iter().copied());
        if by_arrival.is_empty() {
            *by_arrival = arrivals.collect();
        } else {
            by_arrival.extend(arrivals);
        }
        rows
    }

    /// The rows with the given ids.
    ///
    /// # Errors
    /// An id that is not held, or given twice.
    pub(crate) fn find(&self, ids: &[u64]) -> Result<Vec<RowId>> {
        let mut seen = HashSet::with_capacity(ids.len());
        ids.iter()
            .map(|&id| match self.places.find(id) {
                Some(row) if seen.insert(id) => Ok(row),
                _ => Err(Error::UnknownId { id }),
            })
            .collect()
    }

    /// Removes rows from the index; their places in the table stay reserved until they are released.
    pub(crate) fn remove(&mut self, rows: &[RowId]) {
        if rows.is_empty() {
            return;
        }
        let lists = self.places.lists();
        for &row in rows {
            let (id, arrival) = lists.entries[row as usize];
            lists.by_id.remove(&id);
            lists.by_arrival.remove(&arrival);
        }
    }

    /// Frees the place of a removed row.
    pub(crate) fn release(&mut self, row: RowId) {
        self.places.lists().free.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::keyed::Stream;

    /// An index agrees with a list of ids in order of arrival, through insertions of counted and of given ids and
    /// removals; those that only count keep no lists.
    #[test]
    fn an_index_is_a_list_of_ids_in_order_of_arrival() {
        for seed in 0..200 {
            let mut stream = Stream::new(seed, 0);
            let (mut index, mut held) = (RowIndex::default(), Vec::new());
            let mut only_counts = true;
            for step in 0..12 {
                let given = (step == 0 && seed % 3 == 1) || stream.below(6) == 0;
                let start = 500 + 40 * step as u64;
                let ids: Vec<u64> = (start..start + stream.below(6) as u64).collect();
                let new = index.new_ids(ids.len(), given.then_some(&ids)).unwrap();
                only_counts &= new.is_empty() || held.last().is_none_or(|&(id, _)| id + 1 == new[0]);
                let rows = index.insert(&new);
                held.extend(new.into_iter().zip(rows));
                if stream.below(4) == 0 && !held.is_empty() {
                    let (id, row) = held.remove(stream.below(held.len()));
                    assert_eq!(index.find(&[id]), Ok(vec![row]));
                    index.remove(&[row]);
                    index.release(row);
                    only_counts = false;
                }
                assert_eq!(index.len(), held.len());
                assert!(index.rows().eq(held.iter().map(|&(_, row)| row)));
                assert!(held.iter().all(|&(id, row)| index.id(row) == id));
                let ids: Vec<u64> = held.iter().map(|&(id, _)| id).collect();
                assert_eq!(index.find(&ids), Ok(held.iter().map(|&(_, row)| row).collect()));
                for &id in &ids {
                    assert_eq!(index.new_ids(1, Some(&[id])), Err(Error::DuplicateId { id }));
                }
                assert!(index.find(&[400]).is_err() && index.find(&[u64::MAX]).is_err());
                if let Some(&(_, middle)) = held.get(held.len() / 2) {
                    let from = index.rows_from(index.arrival(middle));
                    assert!(from.eq(held[held.len() / 2..].iter().map(|&(_, row)| row)));
                }
                assert_eq!(index.rows_from(index.next_arrival()).count(), 0);
                assert_eq!(matches!(index.places, Places::Counted { .. }), only_counts);
            }
        }
    }

    #[test]
    fn the_last_id_can_be_given_to_counted_rows() {
        let mut index = RowIndex::default();
        index.insert(&[u64::MAX - 1, u64::MAX]);
        assert_eq!(index.find(&[u64::MAX]), Ok(vec![1]));
        assert!(index.new_ids(1, None).is_err());
        assert_eq!(index.insert(&[3]), vec![2]);
        assert_eq!((index.id(1), index.id(2)), (u64::MAX, 3));
    }
}
