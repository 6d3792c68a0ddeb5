//! Which cells of which trees there are, and who owns them.

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::cells::counts::CellCount;
use crate::mondrian::cells::top::{Below, Top, TopStep};
use crate::mondrian::forest::digest::{Hash, hash_split};
use crate::mondrian::forest::row_index::MAX_ROWS;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::process::cell::Cell;
use crate::mondrian::process::domain::{CoordinateBuffer, Domain};
use crate::mondrian::tree::boxes::box_rule::FEW;
use crate::random::keyed::Key;

/// What a domain must know of rows before cells can be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowExtent {
    /// The level of the smallest box that holds the rows.
    pub level: u32,
    /// Whether `f32` holds all of their coordinates.
    pub is_single: bool,
}

impl RowExtent {
    /// That of some rows.
    ///
    /// # Errors
    /// A value that is missing and may not be, or a row that is in the box of no level.
    pub fn of(domain: &Domain, rows: Rows<'_>) -> Result<Self> {
        with_coordinates(domain, rows, |coordinates| {
            let level = |row| {
                let at = |feature| rows.at(row, feature);
                let level = domain.level_of(coordinates.row(row));
                level.map_err(|feature| domain.too_far(row, feature, at(feature)))
            };
            let levels = (0..rows.n_rows()).map(level).try_fold(0, |most, level| Ok(most.max(level?)))?;
            Ok(Self { level: levels, is_single: coordinates.to_exact::<f32>().is_some() })
        })
    }

    /// That of the rows of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { level: self.level.max(other.level), is_single: self.is_single && other.is_single }
    }
}

/// The top of every tree of a forest, and the owners of its cells.
///
/// Lists over all cells go from the first tree's on, and through each tree's from left to right.
#[derive(Debug, Clone)]
pub struct CellPlan {
    pub(crate) settings: MondrianSettings,
    pub(crate) domain: Domain,
    pub(crate) extent: RowExtent,
    pub(crate) tops: Vec<Top>,
    /// The place of each tree's first cell in lists over all cells.
    pub(crate) first: Vec<usize>,
    pub(crate) owners: Vec<u32>,
}

impl CellPlan {
    /// Trees without cuts: one cell each, which the first owner has.
    ///
    /// # Errors
    /// Settings out of range, or those of a share of trees.
    pub fn new(settings: MondrianSettings, domain: Domain, extent: RowExtent) -> Result<Self> {
        let n_trees = settings.n_estimators;
        let steps = vec![vec![TopStep::Cell as u8]; n_trees];
        Self::of_steps(settings, domain, extent, &steps, vec![0; n_trees])
    }

    /// The plan with the tops whose [`steps`](Self::steps) these are, and with these owners.
    ///
    /// # Errors
    /// As [`new`](Self::new); steps that make no tops, or a number of owners other than that of the cells.
    pub fn of_steps(
        settings: MondrianSettings,
        domain: Domain,
        extent: RowExtent,
        steps: &[Vec<u8>],
        owners: Vec<u32>,
    ) -> Result<Self> {
        settings.check()?;
        settings.check_whole()?;
        let mut plan = Self { settings, domain, extent, tops: Vec::new(), first: vec![0], owners };
        check_length("steps", steps.len(), plan.settings.n_estimators)?;
        let mut cell = plan.cell();
        let tops: Result<Vec<Top>> = (0..)
            .zip(steps)
            .map(|(tree, bytes)| {
                let steps: Result<Vec<TopStep>> = bytes.iter().map(|&byte| TopStep::of_byte(byte)).collect();
                Top::new(&steps?, &mut cell, plan.key(tree), plan.settings.lifetime)
            })
            .collect();
        drop(cell);
        plan.tops = tops?;
        for top in &plan.tops {
            plan.first.push(plan.first[plan.first.len() - 1] + top.n_cells());
        }
        check_length("owners", plan.owners.len(), plan.n_cells())?;
        Ok(plan)
    }

    /// The steps that make each tree's top.
    #[must_use]
    pub fn steps(&self) -> Vec<Vec<u8>> {
        self.tops.iter().map(|top| top.steps().map(|step| step as u8).collect()).collect()
    }

    /// Settings of the trees.
    #[must_use]
    pub fn settings(&self) -> &MondrianSettings {
        &self.settings
    }

    /// Reference ranges and weights.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// What the domain knows of the rows.
    #[must_use]
    pub fn extent(&self) -> RowExtent {
        self.extent
    }

    /// The owner of every cell.
    #[must_use]
    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    /// Number of cells of all trees.
    #[must_use]
    pub fn n_cells(&self) -> usize {
        self.first[self.first.len() - 1]
    }

    /// The counts of every cell for some rows, whose targets are numbers, or numbers of classes.
    ///
    /// # Errors
    /// A number of targets other than that of the rows; rows that are not of the domain; an interrupt.
    pub fn count(&self, rows: Rows<'_>, targets: &[f64], run: &Run<'_>) -> Result<Vec<CellCount>> {
        check_length("targets", targets.len(), rows.n_rows())?;
        let cells = self.cells_of(rows, &self.tops, run)?;
        let mut counts = vec![CellCount::NONE; self.n_cells()];
        for (tree, cells) in cells.into_iter().enumerate() {
            for (cell, &target) in cells.into_iter().zip(targets) {
                let count = &mut counts[self.first[tree] + cell as usize];
                *count = count.and(CellCount::one(target));
            }
        }
        Ok(counts)
    }

    /// The same trees, with their tops as the counts of all rows make them: no node of at most `least` rows is cut. Also the
    /// counts of its cells, and whether each may be cut further. With `one_less`, no node is cut that the stopping rule would pause
    /// without one of its rows (Algorithm 5.9, line 3): so a leaf that there is without some row has all its rows in one place.
    ///
    /// # Errors
    /// A number of counts other than that of the cells; no rows, or too many.
    pub fn condensed(
        &self,
        counts: &[CellCount],
        least: u64,
        one_less: bool,
    ) -> Result<(Self, Vec<CellCount>, Vec<bool>)> {
        check_length("counts", counts.len(), self.n_cells())?;
        // The stopping rule pauses nodes of fewer rows than `min_samples_split`, perhaps (some weights are large); and where
        // there are few, nodes keep no boxes, and have rows read instead (`BoxRule::of_cells`).
        let least = least.max(self.settings.min_samples_split as u64).max(FEW as u64);
        let is_cell = |count: &CellCount| count.n_rows <= least || count.is_uniform(one_less);
        let (mut steps, mut all) = (Vec::new(), Vec::new());
        for (tree, top) in self.tops.iter().enumerate() {
            let own = &counts[self.first[tree]..self.first[tree + 1]];
            match own.iter().map(|count| count.n_rows).sum::<u64>() as usize {
                0 => return Err(Error::Empty { n_rows: 0, n_features: self.domain.n_features() }),
                found if found > MAX_ROWS => return Err(Error::TooManyRows { max: MAX_ROWS, found }),
                _ => {}
            }
            let (own, cells) = top.condensed(own, is_cell);
            steps.push(own.into_iter().map(|step| step as u8).collect());
            all.extend(cells);
        }
        let may_be_cut = all.iter().map(|count| !is_cell(count)).collect();
        let plan = self.with(&steps, vec![0; all.len()])?;
        Ok((plan, all, may_be_cut))
    }

    /// The same with some cells cut, and their sides again, `depth` cuts deep.
    ///
    /// # Errors
    /// A number of marks other than that of the cells.
    pub fn refined(&self, is_cut: &[bool], depth: usize) -> Result<Self> {
        check_length("marks", is_cut.len(), self.n_cells())?;
        let mut cell = self.cell();
        let steps: Vec<Vec<u8>> = (self.tops.iter().enumerate())
            .map(|(tree, top)| {
                let draw = (&mut cell, self.key(tree), self.settings.lifetime);
                let steps = top.refined(|cell| is_cut[self.first[tree] + cell], depth, draw);
                steps.into_iter().map(|step| step as u8).collect()
            })
            .collect();
        let n_cells = steps.iter().flatten().filter(|&&step| step == TopStep::Cell as u8).count();
        self.with(&steps, vec![0; n_cells])
    }

    /// The same with other owners of the cells.
    ///
    /// # Errors
    /// A number of owners other than that of the cells.
    pub fn owned(&self, owners: Vec<u32>) -> Result<Self> {
        check_length("owners", owners.len(), self.n_cells())?;
        Ok(Self { owners, ..self.clone() })
    }

    /// By owner, the rows (by their places, in order) that it holds in some tree.
    ///
    /// # Errors
    /// Rows that are not of the domain; an interrupt.
    pub fn rows_by_owner(&self, rows: Rows<'_>, n_owners: usize, run: &Run<'_>) -> Result<Vec<Vec<u32>>> {
        let owners = self.owners_of(rows, run)?;
        let mut by_owner = vec![Vec::new(); n_owners];
        for row in 0..rows.n_rows() {
            for of_tree in &owners {
                let own: &mut Vec<u32> =
                    by_owner.get_mut(of_tree[row] as usize).ok_or_else(|| no_owner(of_tree[row]))?;
                if own.last() != Some(&(row as u32)) {
                    own.push(row as u32);
                }
            }
        }
        Ok(by_owner)
    }

    /// The rows (by their places, in order) that an owner holds in some tree.
    ///
    /// # Errors
    /// Rows that are not of the domain; an interrupt.
    pub fn rows_of(&self, rows: Rows<'_>, owner: u32, run: &Run<'_>) -> Result<Vec<u32>> {
        let owners = |tree: usize| &self.owners[self.first[tree]..self.first[tree + 1]];
        let tops: Vec<Top> = (self.tops.iter().enumerate())
            .filter(|(tree, _)| owners(*tree).contains(&owner))
            .map(|(tree, top)| top.parting(|cell| owners(tree)[cell] == owner))
            .collect();
        let parts = self.cells_of(rows, &tops, run)?;
        let is_own = |row: usize| parts.iter().any(|of_rows| of_rows[row] == 1);
        Ok((0..rows.n_rows()).filter(|&row| is_own(row)).map(|row| row as u32).collect())
    }

    /// By tree, the owner of every row.
    pub(crate) fn owners_of(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<Vec<u32>>> {
        let mut owners = self.cells_of(rows, &self.tops, run)?;
        for (tree, cells) in owners.iter_mut().enumerate() {
            let of_cells = &self.owners[self.first[tree]..];
            for cell in cells {
                *cell = of_cells[*cell as usize];
            }
        }
        Ok(owners)
    }

    /// By top of some, the cell of every row.
    fn cells_of(&self, rows: Rows<'_>, tops: &[Top], run: &Run<'_>) -> Result<Vec<Vec<u32>>> {
        with_coordinates(&self.domain, rows, |coordinates| match coordinates.to_exact::<f32>() {
            Some(values) => self.cells_of_values(&values, tops, run),
            None => {
                let values = coordinates.to_exact::<f64>().expect("f64 holds every value");
                self.cells_of_values(&values, tops, run)
            }
        })
    }

    fn cells_of_values<S: Scalar>(&self, values: &[S], tops: &[Top], run: &Run<'_>) -> Result<Vec<Vec<u32>>> {
        let rows = values.chunks_exact(self.domain.n_coordinates());
        run.map(tops.len(), |i| Ok(rows.clone().map(|x| tops[i].cell_of(x)).collect()))
    }

    /// The hashes of all trees, given those of the subtrees of all cells.
    ///
    /// # Errors
    /// A number of hashes other than that of the cells.
    pub fn tree_hashes(&self, cells: &[Hash]) -> Result<Vec<Hash>> {
        check_length("hashes", cells.len(), self.n_cells())?;
        let of_tree = |(tree, top): (usize, &Top)| {
            top.fold(&cells[self.first[tree]..], |cut, below| match below {
                Below::Both(children) => hash_split(&self.domain, cut, children),
                Below::One(hash, _) => hash,
            })
        };
        Ok(self.tops.iter().enumerate().map(of_tree).collect())
    }

    fn with(&self, steps: &[Vec<u8>], owners: Vec<u32>) -> Result<Self> {
        Self::of_steps(self.settings.clone(), self.domain.clone(), self.extent, steps, owners)
    }

    /// A cell in which the cuts of any tree can be drawn.
    pub(crate) fn cell(&self) -> Cell<'_> {
        Cell::root(&self.domain, self.extent.level, self.key(0))
    }

    /// A tree's key.
    pub(crate) fn key(&self, tree: usize) -> Key {
        Key::of_tree(self.settings.seed, tree as u64)
    }
}

/// Does something with the coordinates of rows, in which no value is missing.
fn with_coordinates<R>(
    domain: &Domain,
    rows: Rows<'_>,
    work: impl FnOnce(Rows<'_>) -> Result<R>,
) -> Result<R> {
    let mut filled = Vec::new();
    let complete = domain.complete(rows, &mut filled)?;
    work(domain.coordinates(complete, &mut CoordinateBuffer::default())?)
}

fn check_length(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Length { what, found, expected, why: "those of the plan of cells" })
}

fn no_owner(owner: u32) -> Error {
    let expected = "one of the owners of cells";
    Error::InvalidSetting { name: "owner", expected, found: owner.to_string() }
}
