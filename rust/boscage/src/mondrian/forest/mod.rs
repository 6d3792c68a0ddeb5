//! A forest of Mondrian trees over one table of rows, whatever the posterior at their nodes.

pub(crate) mod digest;
pub(crate) mod export;
pub(crate) mod lazy;
pub(crate) mod row_index;
pub(crate) mod row_values;
pub(crate) mod settings;
pub(crate) mod storage;
pub(crate) mod update;

use crate::control::Run;
use crate::data::RowId;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::mondrian::forest::lazy::Deferred;
use crate::mondrian::forest::row_index::Roster;
use crate::mondrian::forest::row_values::{Values, place, row_of};
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::forest::storage::{Body, with_body};
use crate::mondrian::process::domain::Domain;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::statistics::Statistics;

/// Rows, and their ids unless they are to be numbered in order of arrival.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The features.
    pub rows: Rows<'a>,
    /// One id a row, none of them in the forest.
    pub ids: Option<&'a [u64]>,
}

/// Trees and rows.
#[derive(Debug, Clone)]
pub(crate) struct Forest<P: Statistics> {
    pub(crate) settings: MondrianSettings,
    pub(crate) domain: Domain,
    pub(crate) targets: Vec<P::Target>,
    pub(crate) roster: Roster,
    /// Rows' coordinates and the trees over them. A forest does not depend on when its trees took in its rows and let
    /// others go: they do so together when somebody asks.
    pub(crate) body: Deferred<Body<P>>,
    /// Rows' values, if they are others than their coordinates.
    own: Option<Values>,
    /// Text that a user wants in the model file; nothing depends on it.
    pub(crate) annotation: String,
}

impl<P: Statistics> Forest<P> {
    /// The forest of some rows, or of none.
    pub(crate) fn fit(
        settings: MondrianSettings,
        domain: Domain,
        Batch { rows, ids }: Batch<'_>,
        targets: &[P::Target],
        run: &Run<'_>,
    ) -> Result<Self> {
        settings.check()?;
        if rows.n_features() != domain.n_features() {
            return Err(Error::Length {
                what: "feature_range",
                found: domain.n_features(),
                expected: rows.n_features(),
                why: "one value a feature of X",
            });
        }
        run.control.check()?;
        let own = domain.maps().map(|_| Values::F32(Vec::new()));
        let body = Deferred::new(Body::default());
        let (roster, annotation) = (Roster::default(), String::new());
        let mut forest = Self { settings, domain, targets: Vec::new(), roster, body, own, annotation };
        forest.insert(Batch { rows, ids }, || targets.to_vec())?;
        forest.body(run)?;
        Ok(forest)
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.roster.len()
    }

    /// Adds rows, which the trees take in when somebody asks for these. Targets are asked for when nothing can fail any
    /// more.
    pub(crate) fn insert(
        &mut self,
        Batch { rows, ids }: Batch<'_>,
        targets: impl FnOnce() -> Vec<P::Target>,
    ) -> Result<()> {
        self.check_features(rows.n_features())?;
        // Everything that can be wrong is found before anything changes.
        let coordinates = self.domain.coordinates(rows);
        let arrivals = Arrivals::new(rows, coordinates.as_deref())?;
        check_levels(&self.domain, arrivals)?;
        let ids = self.roster.name(rows.n_rows(), ids)?;
        self.admit(arrivals, &targets(), &ids);
        Ok(())
    }

    /// Removes the rows with the given ids, which the trees let go when somebody asks for these; the rows' targets.
    pub(crate) fn forget(&mut self, ids: &[u64]) -> Result<Vec<P::Target>> {
        let rows = self.roster.find(ids)?;
        Ok(self.dismiss(&rows))
    }

    /// Removes all rows but the `n` that arrived last, as [`forget`](Self::forget) does.
    pub(crate) fn keep_newest(&mut self, n: usize) -> Vec<P::Target> {
        let rows: Vec<RowId> = self.roster.rows().take(self.n_rows().saturating_sub(n)).collect();
        self.dismiss(&rows)
    }

    /// Whether another forest is a shard of the same forest.
    pub(crate) fn check_mergeable(&self, other: &Self) -> Result<()> {
        let (a, b) = (&self.settings, &other.settings);
        for (what, equal) in [
            ("seeds", a.seed == b.seed),
            ("numbers of trees", a.n_estimators == b.n_estimators),
            ("lifetimes", a.lifetime == b.lifetime),
            ("values of min_samples_split", a.min_samples_split == b.min_samples_split),
            (
                "feature ranges",
                self.domain.low() == other.domain.low() && self.domain.high() == other.domain.high(),
            ),
            ("feature weights", self.domain.weights() == other.domain.weights()),
            ("feature maps", self.domain.maps() == other.domain.maps()),
        ] {
            if !equal {
                return Err(Error::NotMergeable { what });
            }
        }
        self.roster.name(other.n_rows(), Some(&other.ids())).map(drop)
    }

    /// Adds the rows of another shard of the same forest, which was checked.
    pub(crate) fn merge(&mut self, other: &Self, target: impl Fn(P::Target) -> P::Target) -> Result<()> {
        let rows: Vec<RowId> = other.roster.rows().collect();
        let ids: Vec<u64> = rows.iter().map(|&row| other.roster.id(row)).collect();
        let targets: Vec<P::Target> = rows.iter().map(|&row| target(other.targets[row as usize])).collect();
        let values: Vec<f64> = rows.iter().flat_map(|&row| other.row_values(row)).collect();
        let rows = Rows::from_f64(&values, self.domain.n_features())?;
        self.insert(Batch { rows, ids: Some(&ids) }, || targets)
    }

    /// Turns averaged prediction on or off. Trees build or drop the boxes of splits when somebody asks for them.
    pub(crate) fn set_predictive(&mut self, predictive: Predictive) {
        self.settings.predictive = predictive;
        // From now on somebody has to look whether trees are up to date.
        self.body.get_mut();
    }

    /// A row's values.
    pub(crate) fn row_values(&self, row: RowId) -> Vec<f64> {
        let d = self.domain.n_features();
        match &self.own {
            Some(table) => table.row(row, d),
            None => self.body.peek(|body| with_body!(body, kept => row_of(&kept.values, row, d))),
        }
    }

    /// Ids of the rows in order of arrival.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.roster.rows().map(|row| self.roster.id(row)).collect()
    }

    /// Bytes that trees and rows hold.
    pub(crate) fn bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, Values::bytes);
        own + self.body.peek(|body| {
            with_body!(body, kept => {
                let trees: usize = kept.trees.iter().map(Tree::bytes).sum();
                trees + size_of_val::<[_]>(&kept.values)
            })
        })
    }

    /// # Errors
    /// The first invariant that does not hold in some tree, in words.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        self.body.peek(|body| {
            with_body!(body, kept => {
                for (i, tree) in kept.trees.iter().enumerate() {
                    tree.arena.check().map_err(|wrong| format!("tree {i}: {wrong}"))?;
                    let held = tree.n_rows() + self.roster.rows_from(tree.lacks_from).count();
                    let expected = self.n_rows() + self.unwanted(tree, &kept.leaving).count();
                    if held != expected {
                        return Err(format!("tree {i} holds and lacks {held} rows of {expected}"));
                    }
                }
                Ok(())
            })
        })
    }

    pub(crate) fn check_features(&self, found: usize) -> Result<()> {
        let expected = self.domain.n_features();
        if found == expected {
            return Ok(());
        }
        Err(Error::Length { what: "a row of X", found, expected, why: "as many features as in fit" })
    }

    /// Puts rows into the table.
    fn admit(&mut self, arrivals: Arrivals<'_>, targets: &[P::Target], ids: &[u64]) {
        self.reclaim();
        let new = self.roster.admit(ids);
        if let Some(own) = &mut self.own {
            own.place(&new, arrivals.rows, self.roster.capacity());
        }
        for (&row, &target) in new.iter().zip(targets) {
            if self.targets.len() <= row as usize {
                self.targets.resize(row as usize + 1, target);
            }
            self.targets[row as usize] = target;
        }
        let (n_features, capacity) = (self.domain.n_features(), self.roster.capacity());
        let rows = arrivals.coordinates;
        let body = self.body.get_mut();
        if let Body::F32(kept) = body {
            match rows.to_exact() {
                Some(values) => return place(&mut kept.values, &new, values, n_features, capacity),
                None => *body = Body::F64(kept.widen()),
            }
        }
        if let Body::F64(kept) = body {
            let values = rows.to_exact().expect("f64 holds every value");
            place(&mut kept.values, &new, values, n_features, capacity);
        }
    }

    /// Takes rows out of the forest.
    fn dismiss(&mut self, rows: &[RowId]) -> Vec<P::Target> {
        self.reclaim();
        self.roster.dismiss(rows);
        let (roster, body) = (&mut self.roster, self.body.get_mut());
        with_body!(body, kept => {
            let some_tree_has = kept.trees.iter().map(|tree| tree.lacks_from).max().unwrap_or(0);
            for &row in rows {
                if roster.arrival(row) < some_tree_has {
                    kept.leaving.push(row);
                } else {
                    roster.release(row);
                }
            }
        });
        rows.iter().map(|&row| self.targets[row as usize]).collect()
    }
}

/// Rows as they are given, and where they lie for the trees.
#[derive(Debug, Clone, Copy)]
struct Arrivals<'a> {
    rows: Rows<'a>,
    coordinates: Rows<'a>,
}

impl<'a> Arrivals<'a> {
    fn new(rows: Rows<'a>, coordinates: Option<&'a [f32]>) -> Result<Self> {
        let mapped = coordinates.map(|values| Rows::from_f32(values, rows.n_features())).transpose()?;
        Ok(Self { rows, coordinates: mapped.unwrap_or(rows) })
    }
}

/// # Errors
/// A row that is in the box of no level.
fn check_levels(domain: &Domain, Arrivals { rows, coordinates }: Arrivals<'_>) -> Result<()> {
    (0..rows.n_rows()).try_for_each(|row| match domain.level_of(coordinates.row(row)) {
        Ok(_) => Ok(()),
        Err(feature) => Err(domain.too_far(row, feature, rows.at(row, feature))),
    })
}
