//! A forest without rows.

use crate::control::Run;
use crate::data::{Scalar, Table};
use crate::error::{Error, Result};
use crate::mondrian::cells::plan::RowExtent;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::forest::storage::{AnyStorage, Applied, with_storage};
use crate::mondrian::frozen::posterior::FrozenPosterior;
use crate::mondrian::frozen::record::TreeRecord;
use crate::mondrian::model::{MondrianForest, NodePosterior};
use crate::mondrian::process::cell::Cell;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::tree::Tree;
use crate::random::keyed::Key;

/// A forest without rows: a [`FrozenClassifier`](crate::FrozenClassifier) or a [`FrozenRegressor`](crate::FrozenRegressor). It
/// predicts what the forest with rows does where predictions are realised, bit for bit, and learns no more.
#[derive(Debug, Clone)]
#[expect(private_bounds, reason = "posteriors are this crate's own")]
pub struct FrozenForest<P: NodePosterior> {
    pub(crate) model: MondrianForest<P>,
    pub(crate) extent: RowExtent,
}

#[expect(private_bounds, reason = "posteriors are this crate's own")]
impl<P: FrozenPosterior> FrozenForest<P> {
    /// The forest of some trees, all that the settings say.
    pub(crate) fn of_trees(
        settings: MondrianSettings,
        domain: Domain,
        extent: RowExtent,
        mut posterior: P,
        storage: AnyStorage<P::Statistics>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let mut forest = Forest::without_rows(settings, domain, storage);
        let lifetime = forest.settings.lifetime;
        with_storage!(forest.storage.get_mut(), storage => {
            storage.level = extent.level;
            storage.applied = vec![Applied::default(); storage.trees.len()];
            posterior.complete(&storage.trees, lifetime, run)?;
        });
        Ok(Self { model: MondrianForest { forest, posterior, annotation: String::new() }, extent })
    }

    /// The forest whose trees are written down.
    ///
    /// # Errors
    /// Settings out of range; records that are no trees; an interrupt.
    pub(crate) fn of_records(
        settings: MondrianSettings,
        domain: Domain,
        extent: RowExtent,
        posterior: P,
        records: &[TreeRecord],
        run: &Run<'_>,
    ) -> Result<Self> {
        let mut storage = AnyStorage::<P::Statistics>::default();
        if !extent.is_single {
            storage.make_wide();
        }
        with_storage!(&mut storage, storage => {
            storage.trees = run.map(records.len(), |i| {
                let key = Key::of_tree(settings.seed, i as u64);
                let mut cell = Cell::root(&domain, extent.level, key);
                records[i].tree(&posterior, &mut cell, (key, settings.lifetime), domain.n_coordinates())
            })?;
        });
        Self::of_trees(settings, domain, extent, posterior, storage, run)
    }

    /// A tree, written down.
    pub(crate) fn record(&self, tree: usize) -> TreeRecord {
        let mut record = TreeRecord::new(self.extent.is_single);
        self.model.forest.storage.peek(|storage| {
            with_storage!(storage, storage => {
                let tree = &storage.trees[tree];
                let root = tree.arena.root().expect("a tree without rows has a root");
                record.add(&self.model.posterior, tree, root, Table::new(&storage.values, self.domain().n_coordinates()));
            });
        });
        record
    }

    /// Number of rows from which the forest was grown.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.model.forest.storage.peek(|storage| with_storage!(storage, storage => storage.trees[0].n_rows()))
    }

    /// Bytes that the trees hold.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let posterior = &self.model.posterior;
        self.model
            .forest
            .storage
            .peek(|storage| with_storage!(storage, storage => bytes_of_trees(posterior, &storage.trees)))
    }

    /// Reference ranges and weights.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        self.model.domain()
    }

    /// Settings of the trees.
    #[must_use]
    pub fn settings(&self) -> &MondrianSettings {
        self.model.settings()
    }

    /// Text kept with the model and in its file; see [`MondrianForest::annotation`].
    #[must_use]
    pub fn annotation(&self) -> &str {
        self.model.annotation()
    }

    /// Sets the text of [`annotation`](Self::annotation).
    pub fn set_annotation(&mut self, text: impl Into<String>) {
        self.model.set_annotation(text);
    }
}

/// # Errors
/// Averaged predictions, which need the boxes of all nodes.
pub(crate) fn check_realised(settings: &MondrianSettings) -> Result<()> {
    if settings.predictive == Predictive::Realised {
        return Ok(());
    }
    let (expected, found) = ("'realised' for a forest without rows", "'averaged'".into());
    Err(Error::InvalidSetting { name: "predictive", expected, found })
}

/// Bytes that trees hold, with what the posterior keeps of them.
pub(super) fn bytes_of_trees<S: Scalar, P: FrozenPosterior>(
    posterior: &P,
    trees: &[Tree<S, P::Statistics>],
) -> usize {
    trees.iter().map(|tree| tree.bytes() + posterior.bytes_of(tree.arena.n_indices())).sum()
}
