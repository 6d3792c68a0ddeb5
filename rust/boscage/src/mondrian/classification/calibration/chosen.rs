//! The rows that calibrate, and what the classes weigh.

use super::CALIBRATING_ROWS;
use crate::data::RowId;
use crate::data::copies::expected;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::rows_by_contents::Copies;

/// What every class weighs more than its rows, of which a class that is declared may have none.
const UNSEEN: f64 = 0.5;
/// Copies are used, whatever the features, where at least this share of them have a copy of another class.
const DISAGREE: f64 = 0.05;

/// Rows to be left out, and the copies of each.
pub(in crate::mondrian::classification) struct ChosenRows {
    pub(in crate::mondrian::classification) rows: Vec<RowId>,
    pub(super) copies: Vec<Copies>,
}

impl ChosenRows {
    /// Those of some rows that may be left out: without the only row of a class that is not declared, nobody knows of the class.
    pub(in crate::mondrian::classification) fn of(
        chosen: impl IntoIterator<Item = (RowId, Copies)>,
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
    ) -> Self {
        let is_known = |row: RowId| !classes.goes_with_its_row(forest.targets[row as usize]);
        let (rows, copies) = chosen.into_iter().filter(|&(row, _)| is_known(row)).unzip();
        Self { rows, copies }
    }

    /// The numbers of the rows that are used: all, or those without copies if these are repetitions.
    pub(super) fn usable(&self, forest: &Forest<ClassCounts>, classes: &ClassTable) -> Vec<usize> {
        let all = !self.copies_agree() || !self.are_repeated(forest, classes);
        (0..self.rows.len()).filter(|&i| all || self.copies[i] == Copies::None).collect()
    }

    pub(in crate::mondrian::classification) fn into_usable(
        self,
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
    ) -> Vec<RowId> {
        self.usable(forest, classes).into_iter().map(|i| self.rows[i]).collect()
    }

    /// Whether there are copies, hardly any of which disagree.
    pub(super) fn copies_agree(&self) -> bool {
        let count = |kind: Copies| self.copies.iter().filter(|&&own| own == kind).count() as f64;
        let (agree, disagree) = (count(Copies::Agree), count(Copies::Disagree));
        agree > 0.0 && disagree < DISAGREE * (disagree + agree)
    }

    /// Whether most copies, among some of the rows, are more than chance explains.
    fn are_repeated(&self, forest: &Forest<ClassCounts>, classes: &ClassTable) -> bool {
        let some = &self.rows[..self.rows.len().min(CALIBRATING_ROWS)];
        let views: Vec<_> = some.iter().map(|&row| forest.row_view(row)).collect();
        let value = |row: usize, coordinate: usize| views[row].at(forest.domain.feature_of(coordinate));
        let size = (some.len(), forest.domain.n_coordinates());
        let expected = expected(size, value, classes.n_rows.iter().sum());
        let of_copies = expected.iter().zip(&self.copies).filter(|&(_, &kind)| kind == Copies::Agree);
        let (n_copies, n_repeated) =
            of_copies.fold((0, 0), |(all, few), (&n, _)| (all + 1, few + usize::from(n < 1.0)));
        2 * n_repeated > n_copies
    }
}

/// So many rows at most.
pub(in crate::mondrian::classification) fn choose(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    n_rows: usize,
) -> ChosenRows {
    let places = classes.columns();
    let place = |row: RowId| places[forest.targets[row as usize] as usize];
    let weight = |row: RowId| forest.row_targets().weight(row).to_bits();
    ChosenRows::of(forest.rows_by_contents().first(n_rows, place, weight), forest, classes)
}

pub(super) fn over_their_mean(mut weights: Vec<f64>) -> Vec<f64> {
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    for weight in &mut weights {
        *weight /= mean;
    }
    weights
}

/// The weights of the classes, of all rows.
pub(super) struct ClassWeights(Vec<f64>);

impl ClassWeights {
    /// Given the number of rows of each class, and some rows' classes and weights.
    pub(super) fn new(n_rows: &[usize], some: impl Iterator<Item = (usize, f64)>) -> Self {
        let mut of_some = vec![(0.0, 0.0); n_rows.len()];
        for (class, weight) in some {
            of_some[class].0 += weight;
            of_some[class].1 += 1.0;
        }
        let weight = |(&n, (sum, of)): (&usize, (f64, f64))| {
            let mean = if of > 0.0 { sum / of } else { 1.0 };
            UNSEEN + n as f64 * mean
        };
        Self(n_rows.iter().zip(of_some).map(weight).collect())
    }

    pub(super) fn shares(&self) -> Vec<f64> {
        let all: f64 = self.0.iter().sum();
        self.0.iter().map(|weight| weight / all).collect()
    }

    /// The logarithm of a class's share over that of a row's own class, without the row.
    pub(super) fn log_odds(&self, class: usize, own: usize, weight: f64) -> f64 {
        libm::log(self.0[class] / (self.0[own] - weight).max(UNSEEN))
    }
}
