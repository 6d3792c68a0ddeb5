//! A tree without its rows, as it is written down: which cuts separate rows, and what its leaves say.

use crate::data::{Scalar, Table};
use crate::error::{Error, Result};
use crate::mondrian::cells::summary::Words;
use crate::mondrian::cells::top::TopStep;
use crate::mondrian::forest::row_index::MAX_ROWS;
use crate::mondrian::forest::row_values::RowValues;
use crate::mondrian::frozen::posterior::FrozenPosterior;
use crate::mondrian::process::cell::Cell;
use crate::mondrian::process::cut::SkippedCut;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeKind, NodeLink};
use crate::mondrian::tree::boxes::box_rule::BoxRule;
use crate::random::keyed::Key;

/// What becomes of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    /// It is a leaf whose cuts are drawn up to the lifetime.
    Leaf,
    /// It is a paused leaf.
    Paused,
    /// It is cut, and there are rows on both sides.
    Split,
    /// It is cut, and all rows are on the left.
    Left,
    /// All rows are on the right.
    Right,
}

impl Step {
    const ALL: [Self; 5] = [Self::Leaf, Self::Paused, Self::Split, Self::Left, Self::Right];

    /// # Errors
    /// A byte that is no step.
    pub(crate) fn of_byte(byte: u8) -> Result<Self> {
        Self::ALL.get(usize::from(byte)).copied().ok_or_else(|| wrong(format!("the step {byte}")))
    }

    fn skip(right: bool) -> Self {
        if right { Self::Right } else { Self::Left }
    }
}

fn wrong(found: impl Into<String>) -> Error {
    Error::InvalidSetting {
        name: "record",
        expected: "a tree in preorder, without its rows",
        found: found.into(),
    }
}

/// A tree without its rows. Lists over leaves go from left to right.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TreeRecord {
    /// In preorder, left before right.
    pub(crate) steps: Vec<Step>,
    /// Numbers of rows of leaves.
    pub(crate) n_rows: Vec<u32>,
    /// What the posterior says of leaves.
    pub(crate) words: Vec<u64>,
    /// Lower bounds, then upper bounds, of each paused leaf; coordinates.
    pub(crate) bounds: RowValues,
}

impl TreeRecord {
    /// An empty record of a tree whose coordinates `f32` holds, or not.
    pub(crate) fn new(is_single: bool) -> Self {
        let bounds = if is_single { RowValues::F32(Vec::new()) } else { RowValues::F64(Vec::new()) };
        Self { steps: Vec::new(), n_rows: Vec::new(), words: Vec::new(), bounds }
    }

    /// Appends a cut of a tree's top.
    pub(super) fn add_top(&mut self, step: TopStep) {
        match step {
            TopStep::Cell => {}
            TopStep::Split => self.steps.push(Step::Split),
            TopStep::Left => self.steps.push(Step::Left),
            TopStep::Right => self.steps.push(Step::Right),
        }
    }

    /// Appends a subtree.
    pub(crate) fn add<S: Scalar, P: FrozenPosterior>(
        &mut self,
        posterior: &P,
        tree: &Tree<S, P::Statistics>,
        root: NodeId,
        table: Table<'_, S>,
    ) {
        for node in tree.arena.preorder_of(Some(root)) {
            self.steps.extend(tree.arena.skips(node).iter().map(|skip| Step::skip(skip.right)));
            if let NodeKind::Split(..) = tree.arena.kind(node) {
                self.steps.push(Step::Split);
                continue;
            }
            self.n_rows.push(tree.arena.n_rows(node) as u32);
            posterior.write_leaf(&tree.statistics, node, &mut self.words);
            if tree.arena.is_paused(node) {
                self.steps.push(Step::Paused);
                let (low, high) = tree.box_below(node, table);
                self.bounds.extend(low.into_iter().chain(high));
            } else {
                self.steps.push(Step::Leaf);
            }
        }
    }

    /// The tree with key `key`, whose cuts are drawn in `cell`.
    ///
    /// # Errors
    /// What is no record of a tree.
    pub(crate) fn tree<S: Scalar, P: FrozenPosterior>(
        &self,
        posterior: &P,
        cell: &mut Cell<'_>,
        (key, lifetime): (Key, f64),
        n_features: usize,
    ) -> Result<Tree<S, P::Statistics>> {
        let all: u64 = self.n_rows.iter().map(|&n| u64::from(n)).sum();
        if all > MAX_ROWS as u64 || self.n_rows.contains(&0) {
            return Err(wrong(format!("{all} rows, or a leaf without rows")));
        }
        cell.place(key, &[]);
        let mut leaves = Leaves {
            n_rows: self.n_rows.iter(),
            words: Words::new(&self.words),
            bounds: self.bounds.iter(),
            n_features,
        };
        let mut tree = Tree::new(n_features, BoxRule::WITHOUT_ROWS);
        let (mut steps, mut skips, mut splits) = (self.steps.iter(), Vec::new(), Vec::new());
        // Sides to go to: below which node, in the cell below how many cuts.
        let mut waiting = vec![(NodeLink::Root, 0)];
        while let Some((link, depth)) = waiting.pop() {
            cell.ascend_to(depth);
            if let NodeLink::Child { right, .. } = link {
                cell.descend(right);
            }
            skips.clear();
            loop {
                let step = *steps.next().ok_or_else(|| wrong("steps that end early"))?;
                if matches!(step, Step::Leaf | Step::Paused) {
                    leaves.add(&mut tree, posterior, link, (step == Step::Leaf).then_some(&skips[..]))?;
                    break;
                }
                let cut = cell.next_cut(lifetime).ok_or_else(|| wrong("a cut after the lifetime"))?;
                if step == Step::Split {
                    let split = tree.add_split_apart(link, cut, &skips);
                    let side = |right| (NodeLink::Child { of: split, right }, cell.depth());
                    waiting.extend([side(true), side(false)]);
                    splits.push(split);
                    break;
                }
                let right = step == Step::Right;
                skips.push(SkippedCut::of(cut, right));
                cell.descend(right);
            }
        }
        if steps.next().is_some() {
            return Err(wrong("more steps than the tree has"));
        }
        leaves.end()?;
        for split in splits.into_iter().rev() {
            tree.complete_split(split);
        }
        // A copy is as large as it must be.
        Ok(tree.clone())
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.steps.capacity()
            + self.n_rows.capacity() * size_of::<u32>()
            + self.words.capacity() * size_of::<u64>()
            + self.bounds.bytes()
    }
}

/// What a record says of the leaves that are still to come.
struct Leaves<'a> {
    n_rows: std::slice::Iter<'a, u32>,
    words: Words<'a>,
    bounds: Box<dyn Iterator<Item = f64> + 'a>,
    n_features: usize,
}

impl Leaves<'_> {
    /// Adds the next leaf: below skipped cuts, or paused.
    fn add<S: Scalar, P: FrozenPosterior>(
        &mut self,
        tree: &mut Tree<S, P::Statistics>,
        posterior: &P,
        link: NodeLink,
        skips: Option<&[SkippedCut]>,
    ) -> Result<()> {
        let n_rows = *self.n_rows.next().ok_or_else(|| wrong("too few leaves"))?;
        let leaf = match skips {
            Some(skips) => tree.add_leaf_apart(link, n_rows as usize, skips),
            None => {
                let (low, high): (Vec<S>, Vec<S>) = (self.bound()?, self.bound()?);
                if low.iter().zip(&high).any(|(low, high)| low > high) {
                    return Err(wrong("a box whose lower bound is above its upper bound"));
                }
                tree.add_paused_apart(link, n_rows as usize, &low, &high)
            }
        };
        posterior.read_leaf(&mut tree.statistics, leaf, n_rows, &mut self.words)
    }

    /// One corner of a box.
    fn bound<S: Scalar>(&mut self) -> Result<Vec<S>> {
        let mut bound = |_| {
            let value = self.bounds.next().ok_or_else(|| wrong("too few boxes"))?;
            S::exact(value).filter(|_| value.is_finite()).ok_or_else(|| wrong("a bound that is not finite"))
        };
        (0..self.n_features).map(&mut bound).collect()
    }

    fn end(&mut self) -> Result<()> {
        if self.n_rows.next().is_some() || self.bounds.next().is_some() {
            return Err(wrong("more leaves or boxes than the tree has"));
        }
        self.words.end()
    }
}
