//! The codes of rows in a common order.

use crate::data::{RowId, Scalar};
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::row_order::{in_order, places_in};

/// The classes of some rows.
pub(super) struct Codes {
    pub(super) order: Vec<RowId>,
    /// The places in the order, by row.
    places: Vec<u32>,
    /// The column of each row's class, in their order.
    columns: Vec<usize>,
    /// As how many rows each of them counts, unless all count as one.
    pub(super) row_weights: Option<Vec<f64>>,
    /// As how many rows those of each class count; some classes may have none.
    class_sizes: Vec<f64>,
}

/// All rows of a forest in a common order.
pub(super) fn common_order<S: Scalar>(
    forest: &Forest<ClassCounts>,
    storage: &Storage<S, ClassCounts>,
    classes: &ClassTable,
) -> Vec<RowId> {
    let column = classes.columns();
    in_order(forest, storage, |a: Class, b: Class| column[a as usize].cmp(&column[b as usize]))
}

impl Codes {
    /// Of rows in their common order. `classes` may have rows that are not among them.
    pub(super) fn new(forest: &Forest<ClassCounts>, classes: &ClassTable, order: Vec<RowId>) -> Self {
        let column = classes.columns();
        let columns: Vec<usize> =
            order.iter().map(|&row| column[forest.targets[row as usize] as usize]).collect();
        let row_weights = forest.row_targets().weights_of(&order);
        let mut class_sizes = vec![0.0; classes.live().len()];
        for (place, &column) in columns.iter().enumerate() {
            class_sizes[column] += row_weights.as_ref().map_or(1.0, |weights| weights[place]);
        }
        Self { places: places_in(&order), order, columns, row_weights, class_sizes }
    }

    pub(super) fn n_classes(&self) -> usize {
        self.class_sizes.len()
    }

    /// All classes but the last: the codes of a row sum to 0.
    pub(super) fn n_columns(&self) -> usize {
        self.n_classes() - 1
    }

    pub(super) fn place(&self, row: RowId) -> usize {
        self.places[row as usize] as usize
    }

    /// The number of the class of the row at a place.
    pub(super) fn class(&self, place: usize) -> usize {
        self.columns[place]
    }

    /// As how many rows the row at a place counts.
    pub(super) fn weight(&self, place: usize) -> f64 {
        self.row_weights.as_ref().map_or(1.0, |weights| weights[place])
    }

    /// The share of each class among all rows.
    pub(super) fn shares(&self) -> Vec<f64> {
        let n: f64 = self.class_sizes.iter().sum();
        self.class_sizes.iter().map(|size| size / n).collect()
    }

    /// The share of each class among the rows without the one at a place.
    pub(super) fn shares_without(&self, place: usize) -> impl Iterator<Item = f64> {
        let own = self.columns[place];
        let row_weight = self.weight(place);
        let sizes = move |k: usize| self.class_sizes[k] - if k == own { row_weight } else { 0.0 };
        let of_others: f64 = (0..self.n_classes()).map(sizes).sum();
        // No other row, or weights that vanish beside the row's.
        let of_others = if of_others > 0.0 { of_others } else { 1.0 };
        (0..self.n_classes()).map(move |k| sizes(k) / of_others)
    }

    /// The squared error of all classes' codes, summed over the rows at some places, given what is left of those of all classes but the
    /// last.
    pub(super) fn squares(&self, places: &[usize], residuals: &[f64]) -> f64 {
        let of_row = |(&place, residuals): (&usize, &[f64])| {
            let last: f64 = residuals.iter().sum();
            self.weight(place)
                * (residuals.iter().map(|residual| residual * residual).sum::<f64>() + last * last)
        };
        places.iter().zip(residuals.chunks_exact(self.n_columns())).map(of_row).sum()
    }

    /// The values of all classes for the rows at some places, each by the others, given what these leave of the codes of all classes
    /// but the last.
    pub(super) fn left_out(&self, places: &[usize], residuals: &[f64]) -> Vec<f64> {
        let mut values = Vec::with_capacity(places.len() * self.n_classes());
        for (&place, residuals) in places.iter().zip(residuals.chunks_exact(self.n_columns())) {
            let start = values.len();
            for (k, (share, residual)) in self.shares_without(place).zip(residuals).enumerate() {
                values.push(f64::from(u8::from(self.class(place) == k)) - share - residual);
            }
            values.push(-values[start..].iter().sum::<f64>());
        }
        values
    }

    /// The codes of all classes but the last, `n_rows x n_columns`, for the rows in their order.
    pub(super) fn values(&self) -> Vec<f64> {
        let shares = &self.shares()[..self.n_columns()];
        let of_row = |&column: &usize| {
            let codes = shares.iter().enumerate();
            codes.map(move |(k, share)| f64::from(u8::from(column == k)) - share)
        };
        self.columns.iter().flat_map(of_row).collect()
    }
}

/// The values of all classes, whose sum is 0, from those of all but the last, row after row.
pub(super) fn of_all_classes(values: &[f64], n_columns: usize) -> impl Iterator<Item = f64> {
    values.chunks_exact(n_columns).flat_map(|row| row.iter().copied().chain([-row.iter().sum::<f64>()]))
}
