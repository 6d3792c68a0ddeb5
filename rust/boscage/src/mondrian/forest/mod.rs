//! A forest of Mondrian trees over one table of rows. It knows no posterior.
//!
//! Every tree is a function of the forest's seed, the domain and the *set* of rows. By eq. 5.1 a tree that is
//! extended row by row has the same distribution as one that is drawn at once. Here the two are equal, bit
//! for bit, for any order and any batches of insertions and removals. So it does not matter when trees are
//! updated, and updates are lazy: insertions and removals are pending until trees are read, and one flush
//! applies them together. A stream without predictions costs one batch fit.
//!
//! - `row_index` finds rows by id and by order of arrival, and `row_features` has their features (`row_values` if they are
//!   dense).
//! - `storage` holds the rows' coordinates and the trees.
//! - `lazy` is a value that one thread updates and many read; `update` is the flush.
//! - `digest` hashes all that predictions depend on, so that anybody can verify a deletion.

pub(crate) mod digest;
pub(crate) mod export;
pub(crate) mod gains;
pub(crate) mod lazy;
pub(crate) mod row_features;
pub(crate) mod row_index;
pub(crate) mod row_values;
pub(crate) mod rows_by_contents;
pub(crate) mod settings;
pub(crate) mod storage;
pub(crate) mod update;

use std::sync::OnceLock;

use crate::control::Run;
use crate::data::{RowId, RowTargets, Rows, SparseRow};
use crate::error::{Error, Result};
use crate::mondrian::forest::lazy::Lazy;
use crate::mondrian::forest::row_features::{RowFeatures, RowView};
use crate::mondrian::forest::row_index::RowIndex;
use crate::mondrian::forest::row_values::row_of;
use crate::mondrian::forest::rows_by_contents::RowsByContents;
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::forest::storage::{AnyStorage, with_storage};
use crate::mondrian::process::categories::Categories;
use crate::mondrian::process::domain::{CoordinateBuffer, Domain};
use crate::mondrian::process::substitute::Substitute;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::statistics::Statistics;
use crate::random::keyed::Key;
use crate::validate::{check, check_n_ranges, check_row_weights};

/// Rows, and their ids unless they are to be numbered in order of arrival.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The features.
    pub rows: Rows<'a>,
    /// One id a row, none of them in the forest.
    pub ids: Option<&'a [u64]>,
    /// As how many rows each row counts, from 1e-12 to 1e9; 1 if none are given.
    pub weights: Option<&'a [f64]>,
}

/// Trees and rows. Extended trees have the law of those drawn at once (eq. 5.1), and are the same trees.
#[derive(Debug, Clone)]
pub(crate) struct Forest<P: Statistics> {
    pub(crate) settings: MondrianSettings,
    pub(crate) domain: Domain,
    pub(crate) targets: Vec<P::Target>,
    /// Rows' weights, once one came that is not 1.
    weights: Option<Vec<f64>>,
    pub(crate) row_index: RowIndex,
    /// Rows' coordinates and the trees over them. Updates are lazy: trees apply all pending ones when they are next read,
    /// and the forest does not depend on when that is.
    pub(crate) storage: Lazy<AnyStorage<P>>,
    /// Rows' features, if their coordinates differ: by the domain, or since a value was missing.
    features: Option<RowFeatures>,
    /// Kept up to date once somebody has asked for it.
    by_contents: OnceLock<RowsByContents>,
    /// The domain with substitutes for missing values of rows to predict, while no row of the forest lacks one. It is forgotten
    /// when rows come or leave.
    guess: OnceLock<Domain>,
}

impl<P: Statistics> Forest<P> {
    /// The forest of some rows, or of none.
    pub(crate) fn fit(
        settings: MondrianSettings,
        domain: Domain,
        batch: Batch<'_>,
        targets: &[P::Target],
        run: &Run<'_>,
    ) -> Result<Self> {
        run.control.check()?;
        let forest = Self::of_rows(settings, domain, batch, targets)?;
        forest.flushed(run)?;
        Ok(forest)
    }

    /// The forest of some rows, whose trees are still to be drawn.
    pub(crate) fn of_rows(
        settings: MondrianSettings,
        domain: Domain,
        batch: Batch<'_>,
        targets: &[P::Target],
    ) -> Result<Self> {
        settings.check()?;
        check_n_ranges(domain.n_features(), batch.rows)?;
        let mut forest = Self::without_rows(settings, domain, AnyStorage::default());
        // Where every feature has a coordinate, the table of these is as large as dense rows.
        let are_sparse = batch.rows.is_sparse() && !forest.domain.has_every_coordinate();
        let none = if are_sparse { RowFeatures::SPARSE } else { RowFeatures::DENSE };
        forest.features = forest.domain.coordinates_differ().then_some(none);
        forest.insert(batch, || targets.to_vec())?;
        Ok(forest)
    }

    /// A forest of trees whose leaves do not keep their rows.
    pub(crate) fn without_rows(settings: MondrianSettings, domain: Domain, storage: AnyStorage<P>) -> Self {
        Self {
            settings,
            domain,
            targets: Vec::new(),
            weights: None,
            row_index: RowIndex::default(),
            storage: Lazy::new(storage),
            features: None,
            by_contents: OnceLock::new(),
            guess: OnceLock::new(),
        }
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.row_index.len()
    }

    /// Adds rows. `targets` is called when nothing can fail any more.
    pub(crate) fn insert(
        &mut self,
        Batch { rows, ids, weights }: Batch<'_>,
        targets: impl FnOnce() -> Vec<P::Target>,
    ) -> Result<()> {
        // Everything that can be wrong is found before anything changes.
        let mut filled = Vec::new();
        let complete = self.domain.complete(rows, &mut filled)?;
        let mut buffer = CoordinateBuffer::default();
        let coordinates = self.domain.coordinates(complete, &mut buffer)?;
        let arrivals = Arrivals { rows, coordinates, weights };
        weights.map_or(Ok(()), |weights| check_row_weights(weights, rows.n_rows()))?;
        check_levels(&self.domain, arrivals)?;
        let ids = self.row_index.new_ids(rows.n_rows(), ids)?;
        self.insert_rows(arrivals, &targets(), &ids);
        Ok(())
    }

    /// Removes the rows with the given ids; returns their targets.
    pub(crate) fn forget(&mut self, ids: &[u64]) -> Result<Vec<P::Target>> {
        let rows = self.row_index.find(ids)?;
        Ok(self.remove_rows(&rows))
    }

    /// Removes all rows but the `n` that arrived last, as [`forget`](Self::forget) does.
    pub(crate) fn keep_newest(&mut self, n: usize) -> Vec<P::Target> {
        let rows: Vec<RowId> = self.row_index.rows().take(self.n_rows().saturating_sub(n)).collect();
        self.remove_rows(&rows)
    }

    /// Whether another forest is a shard of the same forest.
    pub(crate) fn check_mergeable(&self, other: &Self) -> Result<()> {
        let (a, b) = (&self.settings, &other.settings);
        for (what, equal) in [
            ("seeds", a.seed == b.seed),
            ("numbers of trees", a.n_estimators == b.n_estimators),
            ("shares of the trees", a.share == b.share),
            ("lifetimes", a.lifetime == b.lifetime),
            ("values of min_samples_split", a.min_samples_split == b.min_samples_split),
            (
                "feature ranges",
                self.domain.low() == other.domain.low() && self.domain.high() == other.domain.high(),
            ),
            ("feature weights", self.domain.weights() == other.domain.weights()),
            ("feature maps", self.domain.maps() == other.domain.maps()),
            (
                "coordinates: one of them comes from a file of an older version",
                self.domain.n_coordinates() == other.domain.n_coordinates(),
            ),
            ("categories", self.domain.categories() == other.domain.categories()),
            (
                "substitutes for missing values",
                // A forest without any has no row that needs them.
                self.domain.substitutes().is_none()
                    || other.domain.substitutes().is_none()
                    || self.domain.substitutes() == other.domain.substitutes(),
            ),
        ] {
            if !equal {
                return Err(Error::NotMergeable { what });
            }
        }
        self.row_index.new_ids(other.n_rows(), Some(&other.ids())).map(drop)
    }

    /// Adds the rows of another shard of the same forest, which was checked, with these targets.
    pub(crate) fn merge(&mut self, other: &Self, targets: &[P::Target]) -> Result<()> {
        if let (None, Some(substitutes)) = (self.domain.substitutes(), other.domain.substitutes()) {
            self.set_substitutes(Some(substitutes.to_vec()))?;
        }
        let features = other.features_by_arrival();
        let rows = features.rows(self.domain.n_features())?;
        let (ids, weights) = (other.ids(), other.weights_by_arrival());
        self.insert(Batch { rows, ids: Some(&ids), weights: weights.as_deref() }, || targets.to_vec())
    }

    /// Says what stands for missing values from now on.
    ///
    /// # Errors
    /// As [`Domain::with_substitutes`]; [`Error::InvalidSetting`] if a row of the forest lacks a value.
    pub(crate) fn set_substitutes(&mut self, substitutes: Option<Vec<Substitute>>) -> Result<()> {
        let lacking = self.features_by_arrival().rows(self.domain.n_features())?.has_missing();
        let found = "a row that lacks a value, whose place in the trees is fixed";
        check("substitutes", !lacking, "set before a value is missing", &found)?;
        self.domain = self.domain.clone().with_substitutes(substitutes)?;
        self.guess = OnceLock::new();
        Ok(())
    }

    /// Says what stands for missing values of rows to predict, until rows come or leave. Nothing changes if that is known.
    ///
    /// # Errors
    /// As [`Domain::with_substitutes`].
    pub(crate) fn guess_substitutes(&self, substitutes: Vec<Substitute>) -> Result<()> {
        let guess = self.domain.clone().with_substitutes(Some(substitutes))?;
        self.guess.get_or_init(|| guess);
        Ok(())
    }

    /// The domain with what stands for missing values of rows to predict, if anything does.
    pub(crate) fn domain_to_predict(&self) -> &Domain {
        if self.domain.substitutes().is_some() {
            return &self.domain;
        }
        self.guess.get().unwrap_or(&self.domain)
    }

    /// Rows to predict, with substitutes for missing values, which `buffer` is to hold.
    ///
    /// # Errors
    /// As [`Domain::filled`].
    pub(crate) fn complete<'a>(&self, rows: Rows<'a>, buffer: &'a mut Vec<f64>) -> Result<Rows<'a>> {
        self.domain_to_predict().complete(rows, buffer)
    }

    /// Sets which features are categories, and where these lie; rows stay where they are.
    ///
    /// # Errors
    /// As [`Domain::with_categories`].
    pub(crate) fn set_categories(&mut self, categories: Vec<(u32, Categories)>) -> Result<()> {
        self.domain = self.domain.clone().with_categories(categories)?;
        self.guess = OnceLock::new();
        Ok(())
    }

    /// Rows' features in order of arrival.
    pub(crate) fn features_by_arrival(&self) -> RowFeatures {
        self.features_of(self.row_index.rows())
    }

    /// Rows' features in order of arrival, if they are held as sparse rows.
    pub(crate) fn sparse_rows(&self) -> Option<impl Iterator<Item = &SparseRow>> {
        match &self.features {
            Some(RowFeatures::Sparse(table)) => Some(self.row_index.rows().map(|row| &table[row as usize])),
            _ => None,
        }
    }

    /// The features of some rows.
    pub(crate) fn features_of(&self, rows: impl Iterator<Item = RowId>) -> RowFeatures {
        let d = self.domain.n_features();
        match &self.features {
            Some(features) => features.of_rows(rows, d),
            None => RowFeatures::Dense(self.storage.peek(|storage| storage.values_of(rows, d))),
        }
    }

    /// Targets in order of arrival.
    pub(crate) fn targets_by_arrival(&self) -> Vec<P::Target> {
        self.row_index.rows().map(|row| self.targets[row as usize]).collect()
    }

    /// Weights in order of arrival; none if all are 1.
    pub(crate) fn weights_by_arrival(&self) -> Option<Vec<f64>> {
        let weights = self.weights.as_ref()?;
        let weights: Vec<f64> = self.row_index.rows().map(|row| weights[row as usize]).collect();
        weights.iter().any(|&weight| weight != 1.0).then_some(weights)
    }

    /// Targets and weights by row.
    pub(crate) fn row_targets(&self) -> RowTargets<'_, P::Target> {
        RowTargets { targets: &self.targets, weights: self.weights.as_deref() }
    }

    /// Turns averaged prediction on or off. The next flush builds or drops the boxes of splits.
    pub(crate) fn set_predictive(&mut self, predictive: Predictive) {
        self.settings.predictive = predictive;
        // The next reader flushes.
        self.storage.get_mut();
    }

    /// A row's values.
    pub(crate) fn row_values(&self, row: RowId) -> Vec<f64> {
        let d = self.domain.n_features();
        match &self.features {
            Some(table) => table.row(row, d),
            None => self
                .storage
                .peek(|storage| with_storage!(storage, storage => row_of(&storage.values, row, d))),
        }
    }

    /// A row's values, to be read one by one.
    pub(crate) fn row_view(&self, row: RowId) -> RowView<'_> {
        match &self.features {
            Some(features) => features.view(row, self.domain.n_features()),
            None => RowView::Dense(self.row_values(row)),
        }
    }

    /// The same, with substitutes for those that are missing.
    pub(crate) fn filled_view(&self, row: RowId) -> RowView<'_> {
        match self.row_view(row) {
            RowView::Sparse(values) if !values.has_missing() => RowView::Sparse(values),
            _ => RowView::Dense(self.filled_values(row)),
        }
    }

    /// A row's values, with substitutes for those that are missing.
    pub(crate) fn filled_values(&self, row: RowId) -> Vec<f64> {
        self.domain.filled_row(self.row_values(row))
    }

    /// The key of a row's features, which is that of its copies.
    pub(crate) fn contents_key(&self, row: RowId) -> Key {
        let values = self.row_view(row);
        self.rows_by_contents().key(self.domain.contents(|feature| values.at(feature)))
    }

    /// The rows in an order that only their contents and the seed determine: what they are to the trees.
    pub(crate) fn rows_by_contents(&self) -> &RowsByContents {
        self.by_contents.get_or_init(|| {
            let mut all = RowsByContents::new(self.settings.seed);
            for row in self.row_index.rows() {
                let values = self.row_view(row);
                all.insert(row, self.domain.contents(|feature| values.at(feature)));
            }
            all
        })
    }

    /// Ids of the rows in order of arrival.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.row_index.rows().map(|row| self.row_index.id(row)).collect()
    }

    /// Bytes that trees and rows hold.
    pub(crate) fn bytes(&self) -> usize {
        let features = self.features.as_ref().map_or(0, RowFeatures::bytes);
        features
            + self.storage.peek(|storage| {
                with_storage!(storage, storage => {
                    let trees: usize = storage.trees.iter().map(Tree::bytes).sum();
                    trees + size_of_val::<[_]>(&storage.values)
                })
            })
    }

    /// # Errors
    /// The first invariant that does not hold in some tree, in words.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        self.storage.peek(|storage| {
            with_storage!(storage, storage => {
                for (i, (tree, applied)) in storage.trees.iter().zip(&storage.applied).enumerate() {
                    tree.arena.check().map_err(|wrong| format!("tree {i}: {wrong}"))?;
                    let held = tree.n_rows() + self.row_index.rows_from(applied.arrived).count();
                    let expected =
                        self.n_rows() + applied.to_remove(&storage.leaving, &self.row_index).count();
                    if held != expected {
                        return Err(format!("tree {i} holds and lacks {held} rows of {expected}"));
                    }
                }
                Ok(())
            })
        })
    }

    /// Puts rows into the table.
    fn insert_rows(&mut self, arrivals: Arrivals<'_>, targets: &[P::Target], ids: &[u64]) {
        self.guess = OnceLock::new();
        self.reclaim();
        let new = self.row_index.insert(ids);
        if let Some(by_contents) = self.by_contents.get_mut() {
            for (i, &row) in new.iter().enumerate() {
                by_contents.insert(row, self.domain.contents(|feature| arrivals.rows.at(i, feature)));
            }
        }
        if self.features.is_none() && arrivals.rows.has_missing() {
            // Until now the coordinates of all rows were their features.
            self.features = Some(RowFeatures::Dense(self.storage.peek(AnyStorage::values)));
        }
        if let Some(features) = &mut self.features {
            features.place(&new, arrivals.rows, self.row_index.capacity());
        }
        for (&row, &target) in new.iter().zip(targets) {
            if self.targets.len() <= row as usize {
                self.targets.resize(row as usize + 1, target);
            }
            self.targets[row as usize] = target;
        }
        self.place_weights(&new, arrivals.weights);
        self.storage.get_mut().place(&new, arrivals.coordinates, self.row_index.capacity());
    }

    fn place_weights(&mut self, new: &[RowId], weights: Option<&[f64]>) {
        if self.weights.is_none()
            && weights.is_some_and(|weights| weights.iter().any(|&weight| weight != 1.0))
        {
            self.weights = Some(Vec::new());
        }
        let Some(of_rows) = &mut self.weights else { return };
        of_rows.resize(self.targets.len(), 1.0);
        for (i, &row) in new.iter().enumerate() {
            of_rows[row as usize] = weights.map_or(1.0, |weights| weights[i]);
        }
    }

    /// Takes rows out of the forest.
    fn remove_rows(&mut self, rows: &[RowId]) -> Vec<P::Target> {
        self.guess = OnceLock::new();
        self.reclaim();
        if let Some(mut by_contents) = self.by_contents.take() {
            for &row in rows {
                let values = self.row_view(row);
                by_contents.remove(row, self.domain.contents(|feature| values.at(feature)));
            }
            self.by_contents = OnceLock::from(by_contents);
        }
        self.row_index.remove(rows);
        let (row_index, storage) = (&mut self.row_index, self.storage.get_mut());
        with_storage!(storage, storage => {
            let held_from = storage.applied.iter().map(|applied| applied.arrived).max().unwrap_or(0);
            for &row in rows {
                if row_index.arrival(row) < held_from {
                    storage.leaving.push(row);
                } else {
                    row_index.release(row);
                }
            }
        });
        rows.iter().map(|&row| self.targets[row as usize]).collect()
    }
}

/// Rows as they are given, where they lie for the trees, and their weights.
#[derive(Debug, Clone, Copy)]
struct Arrivals<'a> {
    rows: Rows<'a>,
    coordinates: Rows<'a>,
    weights: Option<&'a [f64]>,
}

/// # Errors
/// A row that is in the box of no level.
fn check_levels(domain: &Domain, Arrivals { rows, coordinates, .. }: Arrivals<'_>) -> Result<()> {
    (0..rows.n_rows()).try_for_each(|row| match domain.level_of(coordinates.row(row)) {
        Ok(_) => Ok(()),
        Err(feature) => Err(domain.too_far(row, feature, rows.at(row, feature))),
    })
}
