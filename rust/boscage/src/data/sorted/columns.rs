//! The training features, sorted once for all trees.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::OnceLock;

use crate::control::{Control, Threads};
use crate::data::Rows;
use crate::data::categories::{RightSide, n_rules};
use crate::data::sorted::column::SortedColumn;
use crate::data::sorted::ties::Ties;
use crate::data::splits::{FeatureKinds, SideRule};
use crate::error::{Result, check_room};

/// Features by column: each row's value as its rank among the distinct values of the column, and the rows in
/// sorted order. Trees compare ranks; thresholds are in the user's units.
///
/// Features of which values are missing have two columns, one for each side to which missing values may go. The first
/// `n_features` columns are those of the features; in these, missing values go left. Columns in which they go right
/// come after them. A feature of categories has a column for each of its rules (`categories`), of ones in the rows that
/// the rule sends right; the first is that of the feature, and the others come last. Samplers split along columns, each
/// as a feature of its own with the same share of the feature's weight.
#[derive(Debug)]
pub(crate) struct SortedColumns {
    n_rows: usize,
    n_features: usize,
    columns: Vec<SortedColumn>,
    /// The features of the columns after the first `n_features`.
    features_again: Vec<u32>,
    /// By feature, its number of columns, and the number's logarithm.
    n_columns: Vec<(u32, f64)>,
    rules: CategoryRules,
    kinds: FeatureKinds,
    tells_rows_apart: bool,
    /// The columns with more than one value, ascending.
    varying: Vec<u32>,
    /// The same, by descending number of rows that do not have the commonest value.
    telling: Vec<u32>,
    /// Computed on first use.
    ties: OnceLock<Ties>,
}

impl SortedColumns {
    /// Sorts every column.
    ///
    /// # Errors
    /// An interrupt; [`Error::Memory`](crate::Error::Memory) for more features than there is room for.
    pub(crate) fn new(rows: Rows<'_>, threads: &Threads, control: &Control) -> Result<Self> {
        let (n_rows, n_features) = (rows.n_rows(), rows.n_features());
        let rules = CategoryRules::new(rows);
        check_room(
            "the sorted features",
            n_features.saturating_mul(size_of::<SortedColumn>() + size_of::<usize>()),
        )?;
        let nonzero = rows.is_sparse().then(|| NonzeroByFeature::new(rows));
        let column = |d| match (rules.first(d), &nonzero) {
            (Some(rule), _) => rule.column(rows, control),
            (None, Some(nonzero)) => SortedColumn::sparse(nonzero.of(d), n_rows, control),
            (None, None) => SortedColumn::new((0..n_rows).map(|i| rows.at(i, d)), control),
        };
        let mut columns: Vec<SortedColumn> =
            threads.map(n_features, column).into_iter().collect::<Result<_>>()?;
        let tells_rows_apart = columns.iter().any(|column| !column.has_ties());
        let mut features_again = add_other_sides(&mut columns);
        let has_missing = !features_again.is_empty();
        let more = &rules.more;
        features_again.extend(more.iter().map(|rule| rule.feature));
        let of_more = threads.map(more.len(), |i| more[i].column(rows, control));
        columns.extend(of_more.into_iter().collect::<Result<Vec<_>>>()?);
        let n_columns = counts(n_features, &features_again);
        let n_categories = if rules.is_empty() { Vec::new() } else { rows.n_categories().to_vec() };
        let kinds = FeatureKinds { n_categories, has_missing, has_sides: true };
        let (varying, telling) = varying(&columns);
        let ties = OnceLock::new();
        Ok(Self {
            n_rows,
            n_features,
            columns,
            features_again,
            n_columns,
            rules,
            kinds,
            tells_rows_apart,
            varying,
            telling,
            ties,
        })
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of features.
    pub(crate) fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of columns: one for each feature, and more if values of it are missing or categories.
    pub(crate) fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Number of values that the columns store.
    pub(crate) fn n_stored(&self) -> usize {
        self.columns.iter().map(SortedColumn::n_stored).sum()
    }

    /// What the features hold.
    pub(crate) fn kinds(&self) -> &FeatureKinds {
        &self.kinds
    }

    /// The lowest and the highest value of a feature that is present, or code of its categories.
    pub(crate) fn ends(&self, feature: u32) -> (f64, f64) {
        match self.kinds.n_categories.get(feature as usize) {
            Some(&n) if n > 0 => (0.0, f64::from(n - 1)),
            _ => self.column(feature).ends(),
        }
    }

    /// Whether features have several columns.
    pub(crate) fn has_more_columns(&self) -> bool {
        !self.features_again.is_empty()
    }

    /// Number of columns of a feature.
    pub(crate) fn n_columns_of(&self, feature: usize) -> u32 {
        self.n_columns[feature].0
    }

    /// A cut along a column, with the numbers of training rows on its sides, as a split of its feature.
    pub(crate) fn side_rule(&self, column: u32, threshold: f64, [n_left, n_right]: [u32; 2]) -> SideRule {
        let feature = self.feature_of(column);
        match self.rule(column) {
            None => {
                let missing_right = self.column(column).missing_right(n_left, n_right);
                SideRule { feature, threshold, missing_right, is_categorical: false }
            }
            Some(rule) => {
                let missing_right =
                    rule.missing.map_or(n_right > n_left, |code| rule.right.has(f64::from(code)));
                SideRule { feature, threshold: rule.right.number(), missing_right, is_categorical: true }
            }
        }
    }

    /// The rule of a column of categories. Rules after the first of each feature have the last columns.
    fn rule(&self, column: u32) -> Option<CategoryRule> {
        let start = self.columns.len() - self.rules.more.len();
        let of_more = (column as usize).checked_sub(start).map(|i| self.rules.more[i]);
        of_more.or_else(|| self.rules.first(column as usize))
    }

    /// The feature of a column.
    pub(crate) fn feature_of(&self, column: u32) -> u32 {
        match (column as usize).checked_sub(self.n_features) {
            None => column,
            Some(again) => self.features_again[again],
        }
    }

    /// Logarithm of the weight of a column, given those of the features unless these are equal. All columns of a feature
    /// have the same weight: both sides of missing values, and all rules of categories.
    pub(crate) fn log_weight(&self, column: u32, of_features: Option<&[f64]>) -> f64 {
        let feature = self.feature_of(column) as usize;
        of_features.map_or(0.0, |logs| logs[feature]) - self.n_columns[feature].1
    }

    /// [`Self::log_weight`] of all columns; None if all columns have equal weights.
    pub(crate) fn log_weights<'w>(&self, of_features: Option<&'w [f64]>) -> Option<Cow<'w, [f64]>> {
        if self.has_more_columns() {
            let columns = 0..self.n_columns() as u32;
            return Some(columns.map(|column| self.log_weight(column, of_features)).collect());
        }
        of_features.map(Cow::Borrowed)
    }

    /// Whether some feature has distinct values in all rows.
    pub(crate) fn tells_rows_apart(&self) -> bool {
        self.tells_rows_apart
    }

    /// The columns with more than one value, ascending.
    pub(crate) fn varying(&self) -> &[u32] {
        &self.varying
    }

    /// The columns with more than one value, by descending number of rows that do not have the commonest value.
    pub(crate) fn telling(&self) -> &[u32] {
        &self.telling
    }

    /// A column.
    pub(crate) fn column(&self, column: u32) -> &SortedColumn {
        &self.columns[column as usize]
    }

    /// The features in which rows share values.
    pub(crate) fn ties(&self) -> &Ties {
        self.ties.get_or_init(|| Ties::new(&self.columns))
    }
}

/// The values of sparse rows that are not 0, by feature.
struct NonzeroByFeature {
    starts: Vec<usize>,
    /// Each with its row; rows ascend in each feature.
    values: Vec<(u32, f64)>,
}

impl NonzeroByFeature {
    fn new(rows: Rows<'_>) -> Self {
        let mut starts = vec![0; rows.n_features() + 1];
        for row in 0..rows.n_rows() {
            rows.nonzero(row).for_each(|(feature, _)| starts[feature + 1] += 1);
        }
        for feature in 0..rows.n_features() {
            starts[feature + 1] += starts[feature];
        }
        let (mut next, mut values) = (starts.clone(), vec![(0, 0.0); starts[rows.n_features()]]);
        for row in 0..rows.n_rows() {
            for (feature, value) in rows.nonzero(row) {
                values[next[feature]] = (row as u32, value);
                next[feature] += 1;
            }
        }
        Self { starts, values }
    }

    fn of(&self, feature: usize) -> &[(u32, f64)] {
        &self.values[self.starts[feature]..self.starts[feature + 1]]
    }
}

/// The rule of a column of categories.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CategoryRule {
    feature: u32,
    right: RightSide,
    /// The code of missing values, if there are any in training.
    missing: Option<u32>,
}

impl CategoryRule {
    /// Ones for rows that go right, zeros for the others.
    fn column(self, rows: Rows<'_>, control: &Control) -> Result<SortedColumn> {
        let missing = self.missing.map_or(f64::NAN, f64::from);
        let of_row = |i: usize| {
            let code = rows.at(i, self.feature as usize);
            f64::from(u8::from(self.right.has(if code.is_nan() { missing } else { code })))
        };
        SortedColumn::new((0..rows.n_rows()).map(of_row), control)
    }
}

/// The rules of all features with categories.
#[derive(Debug)]
struct CategoryRules {
    /// The first rule by feature; empty if no feature has categories.
    first: Vec<Option<CategoryRule>>,
    /// The other rules.
    more: Vec<CategoryRule>,
}

impl CategoryRules {
    fn new(rows: Rows<'_>) -> Self {
        let mut rules = Self { first: Vec::new(), more: Vec::new() };
        for (feature, &n) in rows.n_categories().iter().enumerate().filter(|(_, n)| **n > 0) {
            let has_missing = (0..rows.n_rows()).any(|row| rows.at(row, feature).is_nan());
            let (missing, n) = if has_missing { (Some(n), n + 1) } else { (None, n) };
            let rule = |k| CategoryRule { feature: feature as u32, right: RightSide::of_rule(k, n), missing };
            rules.first.resize(rows.n_features(), None);
            rules.first[feature] = Some(rule(0));
            rules.more.extend((1..n_rules(n)).map(rule));
        }
        rules
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The first rule of a feature.
    fn first(&self, feature: usize) -> Option<CategoryRule> {
        self.first.get(feature).copied().flatten()
    }
}

/// Adds the columns in which missing values go right, and returns their features.
fn add_other_sides(columns: &mut Vec<SortedColumn>) -> Vec<u32> {
    let others = (0..).zip(&*columns).filter_map(|(d, column)| Some((d, column.with_missing_highest()?)));
    let (features, others): (Vec<u32>, Vec<SortedColumn>) = others.unzip();
    columns.extend(others);
    features
}

/// The columns with more than one value, ascending, and by descending number of uncommon rows.
fn varying(columns: &[SortedColumn]) -> (Vec<u32>, Vec<u32>) {
    let varies = |d: &u32| columns[*d as usize].n_values() > 1;
    let varying: Vec<u32> = (0..columns.len() as u32).filter(varies).collect();
    let mut telling = varying.clone();
    telling.sort_by_key(|&d| Reverse(columns[d as usize].n_uncommon()));
    (varying, telling)
}

/// By feature, its number of columns, and the number's logarithm.
fn counts(n_features: usize, features_again: &[u32]) -> Vec<(u32, f64)> {
    let mut counts = vec![1u32; n_features];
    for &feature in features_again {
        counts[feature as usize] += 1;
    }
    counts.into_iter().map(|n| (n, libm::log(f64::from(n)))).collect()
}
