//! Grows a forest without rows, cell by cell.

use crate::control::Run;
use crate::data::Table;
use crate::error::{Error, Result};
use crate::mondrian::cells::plan::CellPlan;
use crate::mondrian::cells::share::CellShare;
use crate::mondrian::cells::top::TopStep;
use crate::mondrian::forest::storage::{AnyStorage, with_storage};
use crate::mondrian::frozen::forest::{FrozenForest, bytes_of_trees, check_realised};
use crate::mondrian::frozen::posterior::FrozenPosterior;
use crate::mondrian::frozen::record::TreeRecord;
use crate::mondrian::model::NodePosterior;

/// A forest without rows that grows: it takes groups of cells in the order of a plan, and makes each tree when its last cell
/// has come. After an error it is unusable.
#[derive(Debug, Clone)]
#[expect(private_bounds, reason = "posteriors are this crate's own")]
pub struct Freezer<P: NodePosterior> {
    plan: CellPlan,
    posterior: P,
    /// The trees that are complete.
    storage: AnyStorage<P::Statistics>,
    /// The next tree, as far as its cells have come.
    record: TreeRecord,
    /// How many steps of that tree's top are written down.
    n_steps: usize,
    /// Numbers of cells and of leaves that have come.
    n_cells: usize,
    n_leaves: usize,
}

#[expect(private_bounds, reason = "posteriors are this crate's own")]
impl<P: FrozenPosterior> Freezer<P> {
    /// One without cells.
    ///
    /// # Errors
    /// Settings of averaged predictions, which need the boxes of all nodes.
    pub(crate) fn of(plan: CellPlan, posterior: P) -> Result<Self> {
        check_realised(&plan.settings)?;
        let mut storage = AnyStorage::default();
        if !plan.extent.is_single {
            storage.make_wide();
        }
        let record = TreeRecord::new(plan.extent.is_single);
        Ok(Self { plan, posterior, storage, record, n_steps: 0, n_cells: 0, n_leaves: 0 })
    }

    /// The plan in which the first owner has the next cells, so many, and nobody else's cells matter.
    ///
    /// # Errors
    /// More cells than are still to come.
    pub fn next_cells(&self, n_cells: usize) -> Result<CellPlan> {
        let n_left = self.plan.n_cells() - self.n_cells;
        if n_cells == 0 || n_cells > n_left {
            let (expected, found) =
                ("between 1 and that of the cells to come", format!("{n_cells} of {n_left}"));
            return Err(Error::InvalidSetting { name: "n_cells", expected, found });
        }
        let is_next = |cell: usize| (self.n_cells..self.n_cells + n_cells).contains(&cell);
        self.plan.owned((0..self.plan.n_cells()).map(|cell| u32::from(!is_next(cell))).collect())
    }

    /// Grows a share, whose cells must be the next ones, and adds its subtrees.
    ///
    /// # Errors
    /// Other cells; those of [`CellShare::grow`].
    pub(crate) fn add(&mut self, mut share: CellShare<P>, run: &Run<'_>) -> Result<()> {
        let n_cells = share.plan.owners.iter().filter(|&&owner| owner == share.owner).count();
        if share.plan.owners != self.next_cells(n_cells)?.owners {
            let (expected, found) = ("that of the next cells", "another".into());
            return Err(Error::InvalidSetting { name: "the plan", expected, found });
        }
        share.grow(run)?;
        let n_features = self.plan.domain.n_coordinates();
        with_storage!(share.model.forest.storage.get_mut(), grown => {
            let table = Table::new(&grown.values, n_features);
            for (tree, roots) in grown.trees.iter().zip(&share.roots) {
                for &root in roots {
                    run.control.check()?;
                    self.add_top();
                    self.record.add(&self.posterior, tree, root, table);
                    self.n_cells += 1;
                    self.complete_tree()?;
                }
            }
        });
        Ok(())
    }

    /// Writes down the cuts of the next tree's top up to its next cell.
    fn add_top(&mut self) {
        let tree = self.n_trees();
        for step in self.plan.tops[tree].steps().skip(self.n_steps) {
            self.n_steps += 1;
            if step == TopStep::Cell {
                break;
            }
            self.record.add_top(step);
        }
    }

    /// Makes a tree of the record if all of its cells have come.
    fn complete_tree(&mut self) -> Result<()> {
        let tree = self.n_trees();
        if self.n_cells < self.plan.first[tree + 1] {
            return Ok(());
        }
        let record = std::mem::replace(&mut self.record, TreeRecord::new(self.plan.extent.is_single));
        let (n_features, key) = (self.plan.domain.n_coordinates(), self.plan.key(tree));
        let mut cell = self.plan.cell();
        let process = (key, self.plan.settings.lifetime);
        with_storage!(&mut self.storage, storage => {
            storage.trees.push(record.tree(&self.posterior, &mut cell, process, n_features)?);
        });
        self.n_steps = 0;
        self.n_leaves += record.n_rows.len();
        Ok(())
    }

    /// The forest, once all cells have come.
    ///
    /// # Errors
    /// Cells that have not come; an interrupt.
    pub fn finish(self, run: &Run<'_>) -> Result<FrozenForest<P>> {
        let Self { plan, posterior, storage, n_cells, .. } = self;
        if n_cells < plan.n_cells() {
            let (found, expected, why) = (n_cells, plan.n_cells(), "all cells of the plan");
            return Err(Error::Length { what: "cells", found, expected, why });
        }
        FrozenForest::of_trees(plan.settings, plan.domain, plan.extent, posterior, storage, run)
    }

    /// The posterior of the forest.
    pub(crate) fn posterior(&self) -> &P {
        &self.posterior
    }

    /// The posterior of the forest, to be changed.
    pub(crate) fn posterior_mut(&mut self) -> &mut P {
        &mut self.posterior
    }

    /// The trees that are complete.
    pub(crate) fn storage(&self) -> &AnyStorage<P::Statistics> {
        &self.storage
    }

    /// Number of trees that are complete.
    #[must_use]
    pub fn n_trees(&self) -> usize {
        with_storage!(&self.storage, storage => storage.trees.len())
    }

    /// Number of leaves that have come.
    #[must_use]
    pub fn n_leaves(&self) -> usize {
        self.n_leaves + self.record.n_rows.len()
    }

    /// Number of leaves of the tree that is not complete.
    #[must_use]
    pub fn n_open_leaves(&self) -> usize {
        self.record.n_rows.len()
    }

    /// Bytes that the complete trees hold, and are going to hold in the forest.
    #[must_use]
    pub fn bytes_of_trees(&self) -> usize {
        with_storage!(&self.storage, storage => bytes_of_trees(&self.posterior, &storage.trees))
    }

    /// The same, with what is written down of the next tree.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes_of_trees() + self.record.bytes()
    }
}
