//! Which rows are landmarks: the first ones with different coordinates in a random order that contents alone determine. So
//! they depend on nothing but the set of rows, and change little where rows come and leave.

use std::collections::HashMap;

use crate::data::{RowId, Scalar, Table};
use crate::random::keyed::Key;

/// The landmarks among rows in their common order.
#[derive(Clone)]
pub(crate) struct LandmarkRows {
    /// Their places, each with whether no other row has its coordinates; then the next one, if there is one.
    first: Vec<(usize, bool)>,
    /// How many there may be.
    most: usize,
}

impl LandmarkRows {
    /// At most so many.
    pub(crate) fn new<S: Scalar>(seed: u64, most: usize, table: Table<'_, S>, order: &[RowId]) -> Self {
        let seed = Key::of_contents(seed);
        let mut places: HashMap<Key, (usize, bool)> = HashMap::with_capacity(order.len());
        for (place, &row) in order.iter().enumerate() {
            let key = seed.of_values(table.row(row).iter().map(|&x| x.into()));
            places.entry(key).and_modify(|(_, is_alone)| *is_alone = false).or_insert((place, true));
        }
        let mut sorted: Vec<(u64, Key, (usize, bool))> =
            places.into_iter().map(|(key, own)| (key.rank(0), key, own)).collect();
        sorted.sort_unstable();
        Self { first: sorted.into_iter().take(most + 1).map(|(_, _, own)| own).collect(), most }
    }

    pub(crate) fn places(&self) -> Vec<usize> {
        self.first.iter().take(self.most).map(|own| own.0).collect()
    }

    /// Those that the others have without the row at a place, if they are others.
    pub(crate) fn without(&self, place: usize) -> Option<Self> {
        let at = self.first.iter().take(self.most).position(|&own| own == (place, true))?;
        let mut other = self.clone();
        other.first.remove(at);
        Some(other)
    }
}
