//! What one owner of cells holds: the subtrees of these cells, and stubs in place of all others.

use std::collections::HashMap;

use crate::control::Run;
use crate::data::{RowId, Rows, Scalar, Table, transpose};
use crate::error::{Error, Result};
use crate::mondrian::cells::plan::{CellPlan, RowExtent};
use crate::mondrian::cells::statistics::{CellPosterior, CellStatistics};
use crate::mondrian::cells::summary::{Words, wrong};
use crate::mondrian::cells::top::Below;
use crate::mondrian::forest::digest::{Hash, digest_of_rows, hash_subtrees};
use crate::mondrian::forest::storage::{Applied, Storage, with_storage};
use crate::mondrian::forest::{Batch, Forest};
use crate::mondrian::model::{MondrianForest, NodePosterior, Target};
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::process::cut::SkippedCut;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeLink};
use crate::mondrian::tree::boxes::box_rule::BoxRule;
use crate::mondrian::tree::scratch::Scratch;
use crate::mondrian::tree::statistics::Statistics;

/// The rows of one owner's cells and the subtrees below these; after [`join`](Self::join) also the tops of all trees.
#[derive(Debug, Clone)]
#[expect(private_bounds, reason = "posteriors are this crate's own")]
pub struct CellShare<P: NodePosterior> {
    pub(crate) plan: CellPlan,
    pub(crate) owner: u32,
    pub(crate) model: MondrianForest<P>,
    /// By tree, the roots of the subtrees of its own cells, in order.
    pub(crate) roots: Vec<Vec<NodeId>>,
    /// The same of all cells, once stubs stand for those of other owners.
    pub(crate) cells: Vec<Vec<NodeId>>,
    stage: Stage,
}

/// How far a share is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has rows.
    Rows,
    /// Its subtrees are drawn.
    Apart,
    /// The tops of all trees are made, so that it can predict.
    Joined,
}

#[expect(private_bounds, reason = "posteriors are this crate's own")]
impl<P: CellPosterior> CellShare<P> {
    /// The rows of an owner's cells; `batch` has those that [`CellPlan::rows_by_owner`] sends to it.
    pub(crate) fn of_rows(
        plan: CellPlan,
        owner: u32,
        posterior: P,
        batch: Batch<'_>,
        targets: &[Target<P>],
    ) -> Result<Self> {
        check_extent(&plan, batch.rows)?;
        let mut forest = Forest::of_rows(plan.settings.clone(), plan.domain.clone(), batch, targets)?;
        if !plan.extent.is_single {
            forest.storage.get_mut().make_wide();
        }
        let model = MondrianForest { forest, posterior, annotation: String::new() };
        Ok(Self { plan, owner, model, roots: Vec::new(), cells: Vec::new(), stage: Stage::Rows })
    }

    /// Draws the subtrees of the owner's cells.
    ///
    /// # Errors
    /// A share whose trees are drawn; a cell without rows; an interrupt: the share is as it was.
    pub fn grow(&mut self, run: &Run<'_>) -> Result<()> {
        self.check_stage(Stage::Rows)?;
        let forest = &mut self.model.forest;
        let mut storage = std::mem::take(forest.storage.get_mut());
        let grower = Grower { plan: &self.plan, owner: self.owner, forest };
        let grown = with_storage!(&mut storage, storage => grower.grow(storage, run));
        *forest.storage.get_mut() = storage;
        self.roots = grown?;
        self.stage = Stage::Apart;
        Ok(())
    }

    /// What other owners need of this one's subtrees.
    #[must_use]
    pub fn summaries(&self) -> Vec<u64> {
        let mut words = Vec::new();
        self.model.forest.storage.peek(|storage| {
            with_storage!(storage, storage => {
                let table = Table::new(&storage.values, self.plan.domain.n_coordinates());
                for (tree, roots) in storage.trees.iter().zip(&self.roots) {
                    for &root in roots {
                        summarise(tree, root, table, &mut words);
                    }
                }
            });
        });
        words
    }

    /// Whether its subtrees are drawn.
    #[must_use]
    pub fn is_grown(&self) -> bool {
        self.stage != Stage::Rows
    }

    /// Whether the tops of the trees are made.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.stage == Stage::Joined
    }

    /// Makes the tops of all trees, given the [`summaries`](Self::summaries) of all owners.
    ///
    /// # Errors
    /// Words that are no summaries of the plan's cells, or a share whose trees are joined: nothing has changed.
    pub fn join(&mut self, summaries: &[&[u64]]) -> Result<()> {
        self.check_stage(Stage::Apart)?;
        let Self { plan, owner, model, roots, .. } = self;
        self.cells = with_storage!(model.forest.storage.get_mut(), storage => {
            let mut others = read_summaries::<_, P::Statistics>(plan, *owner, summaries)?.into_iter();
            let Storage { values, trees, .. } = storage;
            let table = Table::new(values, plan.domain.n_coordinates());
            let each = trees.iter_mut().zip(roots).enumerate();
            let joined = each.map(|(i, (tree, roots))| {
                let owners = &plan.owners[plan.first[i]..plan.first[i + 1]];
                let cells = cells_of_tree(tree, (owners, *owner), roots, &mut others);
                let root = plan.tops[i].fold(&cells, |cut, below| match below {
                    Below::Both(sides) => tree.split_apart(cut, sides, table),
                    Below::One(root, right) => {
                        tree.skip_apart(SkippedCut::of(cut, right), root);
                        root
                    }
                });
                tree.arena.set(NodeLink::Root, Some(root));
                cells
            });
            joined.collect()
        });
        self.stage = Stage::Joined;
        Ok(())
    }

    /// The hashes of this owner's subtrees, in order, and those of the rows of [`first_rows`](Self::first_rows).
    #[must_use]
    pub fn hashes(&self) -> (Vec<Hash>, Vec<Hash>) {
        let of_row = self.model.row_hashes();
        let of_cells = self.model.forest.storage.peek(|storage| {
            with_storage!(storage, storage => {
                let domain = &self.plan.domain;
                let of_tree =
                    |(tree, roots): (_, &Vec<NodeId>)| hash_subtrees(domain, tree, roots, &of_row);
                storage.trees.iter().zip(&self.roots).flat_map(of_tree).collect()
            })
        });
        (of_cells, self.first_rows().into_iter().map(|row| of_row.of(row)).collect())
    }

    /// The rows, by their places, of this owner's cells of the first tree: of all owners these are all rows, each once. None
    /// before the subtrees are drawn.
    #[must_use]
    pub fn first_rows(&self) -> Vec<u32> {
        let mut rows = Vec::new();
        self.model.forest.storage.peek(|storage| {
            with_storage!(storage, storage => {
                if let (Some(tree), Some(roots)) = (storage.trees.first(), self.roots.first()) {
                    for &root in roots {
                        tree.arena.collect_rows(root, &mut rows);
                    }
                }
            });
        });
        rows.sort_unstable();
        rows
    }

    /// The digest of the whole forest, given the hashes of all rows, in any order, and of all trees.
    #[must_use]
    pub fn digest(&self, rows: Vec<Hash>, trees: &[Hash]) -> String {
        let model = self.model.posterior.digest_bytes();
        digest_of_rows(&self.plan.settings, &self.plan.domain, &model, rows, trees)
    }

    /// Which cells there are, and who owns them.
    #[must_use]
    pub fn plan(&self) -> &CellPlan {
        &self.plan
    }

    /// Number of rows that are here.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.model.n_rows()
    }

    /// The features of the rows that are here, `n_rows x n_features`.
    #[must_use]
    pub fn rows(&self) -> Vec<f64> {
        self.model.rows()
    }

    /// The weights of the rows that are here; none if all are 1.
    #[must_use]
    pub fn row_weights(&self) -> Option<Vec<f64>> {
        self.model.row_weights()
    }

    /// Number of rows below this owner's cells, summed over trees.
    #[must_use]
    pub fn n_pairs(&self) -> usize {
        self.model.forest.storage.peek(|storage| {
            with_storage!(storage, storage => {
                let trees = storage.trees.iter().zip(&self.roots);
                trees.flat_map(|(tree, roots)| roots.iter().map(|&root| tree.arena.n_rows(root))).sum()
            })
        })
    }

    /// Bytes that trees and rows hold.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.model.bytes()
    }

    /// By tree, who has the path that each of some rows that are here takes in the tree without the row: the owner of its cell,
    /// or where it is alone there, of the cell that it reaches instead.
    ///
    /// # Errors
    /// Trees that are not joined; a row that is not here.
    pub(crate) fn owners_without(&self, rows: &[RowId]) -> Result<Vec<Vec<u32>>> {
        self.check_stage(Stage::Joined)?;
        if let Some(row) = rows.iter().find(|&&row| row as usize >= self.n_rows()) {
            return Err(Error::InvalidSetting {
                name: "rows",
                expected: "those of the owner",
                found: row.to_string(),
            });
        }
        Ok(self.model.forest.storage.peek(|storage| {
            with_storage!(storage, storage => {
                let table = Table::new(&storage.values, self.plan.domain.n_coordinates());
                let of_tree = |(i, tree): (usize, &Tree<_, _>)| {
                    let is_alone = |cell: u32| tree.arena.n_rows(self.cells[i][cell as usize]) == 1;
                    let cell = |row: RowId| self.plan.tops[i].cell_without(table.row(row), is_alone);
                    rows.iter().map(|&row| self.plan.owners[self.plan.first[i] + cell(row) as usize]).collect()
                };
                storage.trees.iter().enumerate().map(of_tree).collect()
            })
        }))
    }

    /// Lists about test rows, which are those that [`CellPlan::rows_by_owner`] sends to this owner, row by row. `gather` makes
    /// a visitor, given by tree the owner of each of some rows, and `lists` takes the lists of these rows out of its chunk.
    pub(crate) fn lists<V: Visitor<P::Statistics>>(
        &self,
        rows: Rows<'_>,
        run: &Run<'_>,
        gather: impl Fn(Vec<Vec<u32>>) -> V + Sync,
        lists: impl Fn(V::Chunk) -> Vec<Vec<u64>> + Sync,
    ) -> Result<Vec<u64>> {
        /// Rows that are taken through all trees at a time.
        const CHUNK: usize = 1024;
        self.check_stage(Stage::Joined)?;
        let alone = Run { n_threads: 1, control: run.control };
        let parts = run.map_ranges(rows.n_rows(), CHUNK, |range| {
            let part = rows.slice(range.start, range.end);
            let visitor = gather(self.plan.owners_of(part, &alone)?);
            let chunks = walk::predict(&self.model.forest, part, &alone, &visitor)?;
            Ok(chunks.into_iter().flat_map(&lists).flatten().collect::<Vec<u64>>())
        })?;
        Ok(parts.concat())
    }

    /// By tree, what others tell of the subtrees that stubs stand for, given the words of all owners about their cells and what
    /// reads a cell's.
    ///
    /// # Errors
    /// Those of `read`; words about other cells.
    pub(crate) fn read_of_stubs<T>(
        &self,
        words: &[&[u64]],
        read: impl Fn(&mut Words<'_>) -> Result<T>,
    ) -> Result<Vec<HashMap<NodeId, T>>> {
        let mut words: Vec<Words<'_>> = words.iter().map(|&words| Words::new(words)).collect();
        let mut owners = self.plan.owners.iter();
        let mut of_tree = |cells: &Vec<NodeId>| {
            let mut told = HashMap::new();
            for (&cell, &owner) in cells.iter().zip(owners.by_ref()) {
                let words = words.get_mut(owner as usize).ok_or_else(|| wrong("too few owners"))?;
                let of_cell = read(words)?;
                if owner != self.owner {
                    told.insert(cell, of_cell);
                }
            }
            Ok(told)
        };
        let told = self.cells.iter().map(&mut of_tree).collect::<Result<_>>()?;
        words.iter().try_for_each(Words::end)?;
        Ok(told)
    }

    /// # Errors
    /// A share that is not so far, or farther.
    pub(crate) fn check_stage(&self, needed: Stage) -> Result<()> {
        if self.stage == needed {
            return Ok(());
        }
        let expected = match needed {
            Stage::Rows => "one whose subtrees are not yet drawn",
            Stage::Apart => "one whose subtrees are drawn and not yet joined",
            Stage::Joined => "one whose trees are joined",
        };
        let found = format!("one at the stage {:?}", self.stage);
        Err(Error::InvalidSetting { name: "the share of cells", expected, found })
    }
}

/// Reads the lists of all owners about rows, given the owner of each by tree: calls `read` for every row and each of its trees,
/// in order.
///
/// # Errors
/// Those of `read`; lists about other rows.
pub(crate) fn each_list(
    owners: &[Vec<u32>],
    lists: &[&[u64]],
    mut read: impl FnMut(usize, &mut Words<'_>) -> Result<()>,
) -> Result<()> {
    let mut lists: Vec<Words<'_>> = lists.iter().map(|&words| Words::new(words)).collect();
    for row in 0..owners.first().map_or(0, Vec::len) {
        for of_tree in owners {
            let words = lists.get_mut(of_tree[row] as usize).ok_or_else(|| wrong("too few owners"))?;
            read(row, words)?;
        }
    }
    lists.iter().try_for_each(Words::end)
}

/// An owner that grows its subtrees.
struct Grower<'a, P: Statistics> {
    plan: &'a CellPlan,
    owner: u32,
    forest: &'a Forest<P>,
}

impl<P: Statistics> Grower<'_, P> {
    fn grow<S: Scalar>(&self, storage: &mut Storage<S, P>, run: &Run<'_>) -> Result<Vec<Vec<NodeId>>> {
        let Self { plan, forest, .. } = *self;
        let n_features = plan.domain.n_coordinates();
        let by_column = transpose(&storage.values, n_features);
        let table = Table::new(&storage.values, n_features).with_transpose(&by_column);
        run.control.expect(plan.tops.len() as u64);
        let grown = run.map(plan.tops.len(), |i| {
            let mut tree = Tree::new(n_features, BoxRule::of_cells(forest.needs_boxes()));
            let roots = self.grow_tree(i, &mut tree, table, run)?;
            run.control.advance(1);
            // A copy is as large as it must be.
            Ok((tree.clone(), roots))
        })?;
        let roots;
        (storage.trees, roots) = grown.into_iter().unzip();
        storage.level = plan.extent.level;
        let all = Applied { arrived: forest.row_index.next_arrival(), n_removed: 0 };
        storage.applied = vec![all; plan.tops.len()];
        Ok(roots)
    }

    /// Grows the subtrees of one tree; returns their roots.
    fn grow_tree<S: Scalar>(
        &self,
        i: usize,
        tree: &mut Tree<S, P>,
        table: Table<'_, S>,
        run: &Run<'_>,
    ) -> Result<Vec<NodeId>> {
        let Self { plan, owner, forest } = *self;
        let top = &plan.tops[i];
        let owners = &plan.owners[plan.first[i]..plan.first[i + 1]];
        if !owners.contains(&owner) {
            return Ok(Vec::new());
        }
        let mut rows: Vec<Vec<RowId>> = vec![Vec::new(); top.n_cells()];
        for row in forest.row_index.rows() {
            let cell = top.cell_of(table.row(row)) as usize;
            if owners[cell] == owner {
                rows[cell].push(row);
            }
        }
        let process = forest.process(i, table);
        let mut scratch = Scratch::new(&plan.domain, plan.extent.level);
        let own =
            top.paths().into_iter().zip(&mut rows).zip(owners).filter(|(_, of_cell)| **of_cell == owner);
        own.map(|((path, rows), _)| {
            if rows.is_empty() {
                return Err(wrong("a cell without rows"));
            }
            tree.grow_apart(&path, rows, &process, &mut scratch, run.control)
        })
        .collect()
    }
}

/// Appends the summary of a subtree.
fn summarise<S: Scalar, P: CellStatistics>(
    tree: &Tree<S, P>,
    root: NodeId,
    table: Table<'_, S>,
    words: &mut Vec<u64>,
) {
    words.extend([tree.arena.n_rows(root) as u64, u64::from(tree.arena.is_paused(root))]);
    let (low, high) = tree.box_below(root, table);
    words.extend(low.into_iter().chain(high).map(|bound| f64::to_bits(bound.into())));
    tree.statistics.summarise(root, words);
}

/// The root of another owner's subtree.
struct Summary<S, R> {
    n_rows: usize,
    is_paused: bool,
    low: Vec<S>,
    high: Vec<S>,
    statistics: R,
}

/// The summaries of the cells of all owners but one, in order.
fn read_summaries<S: Scalar, P: CellStatistics>(
    plan: &CellPlan,
    owner: u32,
    summaries: &[&[u64]],
) -> Result<Vec<Summary<S, P::Root>>> {
    let n_features = plan.domain.n_coordinates();
    let mut words: Vec<Words<'_>> = summaries.iter().map(|&words| Words::new(words)).collect();
    let mut others = Vec::new();
    for &of_cell in &plan.owners {
        let words = words.get_mut(of_cell as usize).ok_or_else(|| wrong("too few owners"))?;
        let (n_rows, is_paused) = (words.next()? as usize, words.next()? != 0);
        let (low, high) = (words.values(n_features)?, words.values(n_features)?);
        let statistics = P::read(words)?;
        if of_cell != owner {
            others.push(Summary { n_rows, is_paused, low, high, statistics });
        }
    }
    words.iter().try_for_each(Words::end)?;
    Ok(others)
}

/// The roots of the subtrees of all cells of a tree; stubs are made for those that are elsewhere.
fn cells_of_tree<S: Scalar, P: CellStatistics>(
    tree: &mut Tree<S, P>,
    (owners, owner): (&[u32], u32),
    roots: &[NodeId],
    others: &mut impl Iterator<Item = Summary<S, P::Root>>,
) -> Vec<NodeId> {
    let mut own = roots.iter();
    let mut cell = |of_cell| {
        if of_cell == owner {
            return *own.next().expect("there is a root for each own cell");
        }
        let other = others.next().expect("there is a summary for each other cell");
        let stub = tree.add_stub(other.n_rows, other.is_paused, &other.low, &other.high);
        tree.statistics.set_stub(stub, other.statistics);
        stub
    };
    owners.iter().map(|&of_cell| cell(of_cell)).collect()
}

/// # Errors
/// Rows that the plan does not know of.
fn check_extent(plan: &CellPlan, rows: Rows<'_>) -> Result<()> {
    let known = plan.extent;
    let found = RowExtent::of(&plan.domain, rows)?;
    if found.and(known) == known {
        return Ok(());
    }
    let (expected, found) = ("that of all rows", format!("{known:?} for rows of {found:?}"));
    Err(Error::InvalidSetting { name: "the extent of a plan of cells", expected, found })
}
