//! The tables and customers of a class at a node.

use crate::data::Weight;
use crate::mondrian::classification::class_counts::bits::Class;

/// Less than one table of a class or, where it has one, less than one customer more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeatFraction {
    pub(super) class: Class,
    /// As [`Weight::fraction`].
    pub(super) fraction: u64,
}

/// A class at a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seat {
    /// The table `tab_jk`: at most one.
    pub(crate) table: Weight,
    /// The customers beyond: `c_jk - tab_jk`.
    pub(crate) more: Weight,
}

impl Seat {
    /// Of so many customers.
    pub(crate) fn of(customers: Weight) -> Self {
        let table = customers.min(Weight::ONE);
        Self { table, more: customers - table }
    }

    /// What is not a whole table, or not a whole customer more.
    pub(crate) fn part(self) -> Option<Self> {
        let part = |weight: Weight| if weight < Weight::ONE { weight } else { Weight::NONE };
        let (table, more) = (part(self.table), part(self.more));
        (table + more > Weight::NONE).then_some(Self { table, more })
    }
}
