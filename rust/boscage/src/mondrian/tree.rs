//! One Mondrian tree: the restriction of the tree's keyed process to a set of rows.

use super::cell::Cell;
use super::domain::Domain;
use super::extents::Extents;
use super::keyed::Key;
use super::statistics::Statistics;
use crate::control::Control;
use crate::data::{Scalar, Table};
use crate::error::Result;
use crate::tree::{Arena, Cut, Link, NodeId, RowId, Run, Skip};

/// Everything that determines a tree besides its set of rows, and where those rows are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process<'a, S, T> {
    pub(crate) domain: &'a Domain,
    pub(crate) level: u32,
    pub(crate) key: Key,
    pub(crate) lifetime: f64,
    pub(crate) min_samples_split: usize,
    pub(crate) table: Table<'a, S>,
    pub(crate) targets: &'a [T],
}

/// A tree's structure, its statistics and its boxes.
#[derive(Debug, Clone)]
pub(crate) struct Tree<S, P> {
    pub(crate) arena: Arena,
    pub(crate) statistics: P,
    pub(crate) extents: Extents<S>,
}

/// A node that rows came to or left: a range of the rows at hand.
#[derive(Debug, Clone, Copy)]
struct Touched {
    link: Link,
    node: NodeId,
    /// Its parent's place in the list.
    parent: u32,
    start: u32,
    end: u32,
    /// Made anew, so that nothing of it is known yet.
    fresh: bool,
    /// What has changed below.
    below: Changed,
}

/// What of a node is another than before, so that its parent must look.
#[derive(Debug, Clone, Copy, Default)]
struct Changed {
    statistics: bool,
    extent: bool,
}

impl Changed {
    const ALL: Self = Self { statistics: true, extent: true };

    fn include(&mut self, other: Self) {
        self.statistics |= other.statistics;
        self.extent |= other.extent;
    }
}

impl Touched {
    const NO_PARENT: u32 = u32::MAX;

    /// A node made anew.
    fn fresh(link: Link, node: NodeId, parent: u32) -> Self {
        Self { link, node, parent, start: 0, end: 0, fresh: true, below: Changed::default() }
    }

    fn rows<'a>(&self, rows: &'a [RowId]) -> &'a [RowId] {
        &rows[self.start as usize..self.end as usize]
    }
}

/// A range of the rows at hand, on its way down to `link`, below `depth` cuts.
#[derive(Debug, Clone, Copy)]
struct Task {
    link: Link,
    start: usize,
    end: usize,
    depth: usize,
    /// Place of the split above in the list of touched nodes.
    parent: u32,
}

impl<S: Scalar, P: Statistics> Tree<S, P> {
    /// The tree of no rows.
    pub(crate) fn new(n_features: usize, splits_have_boxes: bool) -> Self {
        let extents = Extents::new(n_features, splits_have_boxes);
        Self { arena: Arena::new(), statistics: P::default(), extents }
    }

    /// Inserts rows (numbered in the table; their order is lost). Returns the nodes that are new or have
    /// more rows, parents first.
    ///
    /// # Errors
    /// Interrupted: the tree is then of no use.
    pub(crate) fn insert(
        &mut self,
        rows: &mut [RowId],
        process: &Process<'_, S, P::Target>,
        control: &Control,
    ) -> Result<Vec<NodeId>> {
        self.arena.reserve_rows(process.targets.len());
        let mut growth = Growth {
            tree: self,
            process,
            control,
            walk: Walk::new(process),
            touched: Vec::new(),
            scratch: vec![0; rows.len()],
        };
        growth.insert(rows)?;
        let mut touched = growth.touched;
        self.refresh_grown(&mut touched, rows, process);
        self.arena.compact();
        Ok(touched.into_iter().map(|touched| touched.node).collect())
    }

    /// Removes rows that the tree holds: the tree becomes, bit for bit, that of the others.
    pub(crate) fn remove(&mut self, rows: &mut [RowId], process: &Process<'_, S, P::Target>) {
        let mut touched = self.take_rows(rows, process);
        for i in (0..touched.len()).rev() {
            let this = touched[i];
            let changed = if this.node.is_leaf() {
                self.refresh_shrunk_leaf(&this, rows, process)
            } else {
                self.refresh_shrunk_split(&this, rows, process)
            };
            if let Some(parent) = touched.get_mut(this.parent as usize) {
                parent.below.include(changed);
            }
        }
        self.arena.compact();
    }

    /// Builds the boxes anew, of splits too or of leaves alone.
    pub(crate) fn build_extents(&mut self, n_features: usize, splits: bool, table: Table<'_, S>) {
        let mut extents = Extents::new(n_features, splits);
        let order = self.arena.preorder();
        extents.reserve(&self.arena, order.iter().copied());
        for &node in order.iter().rev() {
            extents.set(&self.arena, node, table);
        }
        self.extents = extents;
    }

    /// Gives back room that growing left over.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.arena.shrink_to_fit();
        self.statistics.shrink_to_fit();
        self.extents.shrink_to_fit();
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.bytes() + self.statistics.bytes() + self.extents.bytes()
    }

    /// Brings statistics and boxes up to date, children before parents.
    fn refresh_grown(
        &mut self,
        touched: &mut [Touched],
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) {
        if touched.len() == self.arena.n_nodes() {
            // A tree made anew: room for all of its boxes at once.
            self.extents.reserve(&self.arena, touched.iter().map(|touched| touched.node));
        }
        for i in (0..touched.len()).rev() {
            let this = touched[i];
            let changed = match (this.node.is_leaf(), this.fresh) {
                (true, true) => {
                    self.extents.set(&self.arena, this.node, process.table);
                    Changed::ALL
                }
                (true, false) => self.refresh_grown_leaf(&this, rows, process),
                (false, true) => {
                    self.arena.count_rows(this.node);
                    self.join(this.node);
                    self.extents.set(&self.arena, this.node, process.table);
                    Changed::ALL
                }
                (false, false) => {
                    let added = this.rows(rows);
                    self.arena.count_in(this.node, added.len());
                    let extent = this.below.extent || self.extents.is_due(&self.arena, this.node);
                    Changed {
                        statistics: this.below.statistics && self.join(this.node),
                        extent: extent && self.extents.grow(&self.arena, this.node, added, process.table),
                    }
                }
            };
            if let Some(parent) = touched.get_mut(this.parent as usize) {
                parent.below.include(changed);
            }
        }
    }

    fn refresh_grown_leaf(
        &mut self,
        this: &Touched,
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) -> Changed {
        let (leaf, added) = (this.node, this.rows(rows));
        let n_rows = self.arena.n_rows(leaf);
        let statistics = self.statistics.grow_leaf(leaf, n_rows, added, process.targets);
        if statistics.is_none() {
            self.set_leaf(leaf, process.targets);
        }
        let extent = self.extents.grow(&self.arena, leaf, added, process.table);
        Changed { statistics: statistics.unwrap_or(true), extent }
    }

    fn set_leaf(&mut self, leaf: NodeId, targets: &[P::Target]) {
        let rows: Vec<RowId> = self.arena.leaf_rows(leaf).collect();
        self.statistics.set_leaf(leaf, &rows, targets);
    }

    /// Sets a split's statistics from its children's; whether they are others than before.
    fn join(&mut self, split: NodeId) -> bool {
        let side = |right| {
            let child = self.arena.child(split, right);
            (child, self.arena.n_rows(child))
        };
        self.statistics.join(split, side(false), side(true))
    }

    /// Takes rows out of their leaves; the nodes on the way, parents first.
    fn take_rows(&mut self, rows: &mut [RowId], process: &Process<'_, S, P::Target>) -> Vec<Touched> {
        let mut touched = Vec::new();
        let mut scratch = vec![0; rows.len()];
        let mut tasks = vec![(Link::Root, 0, rows.len(), Touched::NO_PARENT)];
        while let Some((link, start, end, parent)) = tasks.pop() {
            if start == end {
                continue;
            }
            let node = self.arena.get(link).expect("the tree holds the rows");
            let at = touched.len() as u32;
            let (first, last) = (start as u32, end as u32);
            let fresh = Touched::fresh(link, node, parent);
            touched.push(Touched { start: first, end: last, fresh: false, ..fresh });
            if node.is_leaf() {
                for &row in &rows[start..end] {
                    self.arena.take_row(node, row);
                }
                continue;
            }
            let cut = self.arena.cut(node);
            let middle = start + partition(&mut rows[start..end], &mut scratch, &process.table, cut);
            tasks.push((Link::Child { of: node, right: true }, middle, end, at));
            tasks.push((Link::Child { of: node, right: false }, start, middle, at));
        }
        touched
    }

    /// Brings a split whose rows became fewer up to date; its children are so already.
    fn refresh_shrunk_split(
        &mut self,
        this: &Touched,
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) -> Changed {
        let &Touched { link, node, below, .. } = this;
        let child = |right| self.arena.get(Link::Child { of: node, right });
        match (child(false), child(true)) {
            (None, None) => {
                self.drop_node(link, node);
                return Changed::ALL;
            }
            // Its child holds the same rows as it: what pauses one pauses the other.
            (None, Some(_)) | (Some(_), None) => {
                self.extents.clear(node);
                self.arena.skip_split(link, node);
                return Changed::ALL;
            }
            (Some(_), Some(_)) => self.arena.count_out(node, this.rows(rows).len()),
        }
        let statistics = below.statistics && self.join(node);
        if self.arena.n_rows(node) < process.min_samples_split
            || statistics && self.statistics.is_uniform(node)
        {
            self.collapse(link, node, process);
            return Changed::ALL;
        }
        let removed = this.rows(rows);
        let extent = (below.extent || self.extents.is_due(&self.arena, node))
            && self.extents.shrink(&self.arena, node, removed, process.table);
        Changed { statistics, extent }
    }

    fn refresh_shrunk_leaf(
        &mut self,
        this: &Touched,
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) -> Changed {
        let (leaf, removed) = (this.node, this.rows(rows));
        let n_rows = self.arena.n_rows(leaf);
        if n_rows == 0 {
            self.drop_node(this.link, leaf);
            return Changed::ALL;
        }
        let statistics = self.statistics.shrink_leaf(leaf, n_rows, removed, process.targets);
        if statistics.is_none() {
            self.set_leaf(leaf, process.targets);
        }
        if !self.arena.is_paused(leaf) {
            let rows: Vec<RowId> = self.arena.leaf_rows(leaf).collect();
            if process.pauses(&rows) || process.coincide(&rows) {
                self.arena.pause(leaf);
            }
        }
        let extent = self.extents.shrink(&self.arena, leaf, removed, process.table);
        Changed { statistics: statistics.unwrap_or(true), extent }
    }

    /// Makes a subtree one paused leaf.
    fn collapse(&mut self, link: Link, node: NodeId, process: &Process<'_, S, P::Target>) {
        let mut rows = Vec::with_capacity(self.arena.n_rows(node));
        self.arena.for_each_row(node, |row| rows.push(row));
        let Self { arena, statistics, extents } = self;
        arena.remove_subtree(node, |freed| {
            statistics.clear(freed);
            extents.clear(freed);
        });
        let leaf = self.arena.add_leaf(None, &rows);
        self.arena.set(link, Some(leaf));
        self.statistics.set_leaf(leaf, &rows, process.targets);
        self.extents.set(&self.arena, leaf, process.table);
    }

    /// Frees one node and clears its link.
    fn drop_node(&mut self, link: Link, node: NodeId) {
        self.arena.set(link, None);
        self.statistics.clear(node);
        self.extents.clear(node);
        self.arena.remove(node);
    }
}

impl<P: Statistics> Tree<f32, P> {
    /// The same tree for rows of `f64`.
    pub(crate) fn widen(&self) -> Tree<f64, P> {
        Tree { arena: self.arena.clone(), statistics: self.statistics.clone(), extents: self.extents.widen() }
    }
}

impl<S: Scalar, T: Copy + PartialEq> Process<'_, S, T> {
    /// Whether the stopping rule holds back a node of these rows, as far as labels and numbers say.
    fn pauses(&self, rows: &[RowId]) -> bool {
        let target = |row: RowId| self.targets[row as usize];
        rows.len() < self.min_samples_split || rows.iter().all(|&row| target(row) == target(rows[0]))
    }

    /// Whether all rows go to one side of a cut.
    fn all_go(&self, rows: &[RowId], cut: Cut, right: bool) -> bool {
        let column = self.table.column(cut.feature, rows.len());
        rows.iter().all(|&row| (column.at(row) > cut.threshold) == right)
    }

    /// Whether all rows are the same where a cut could see it.
    fn coincide(&self, rows: &[RowId]) -> bool {
        let first = self.table.row(rows[0]);
        rows[1..].iter().all(|&other| {
            first
                .iter()
                .zip(self.table.row(other))
                .zip(self.domain.rates())
                .all(|((a, b), &rate)| a == b || rate == 0.0)
        })
    }
}

/// The cell of the process where an insertion is, made when a cut must be drawn.
struct Walk<'a, S, T> {
    process: &'a Process<'a, S, T>,
    /// Cuts and sides from the root to here.
    path: Vec<(Cut, bool)>,
    cell: Option<Cell<'a>>,
    /// How much of the path the cell has followed.
    followed: usize,
}

impl<'a, S, T> Walk<'a, S, T> {
    fn new(process: &'a Process<'a, S, T>) -> Self {
        Self { process, path: Vec::new(), cell: None, followed: 0 }
    }

    /// Goes to one side of a cut of the tree that lies below `depth` others.
    fn go(&mut self, depth: usize, cut: Cut, right: bool) {
        self.path.truncate(depth);
        self.followed = self.followed.min(depth);
        self.path.push((cut, right));
    }

    fn cell(&mut self) -> &mut Cell<'a> {
        let Process { domain, level, key, .. } = *self.process;
        let cell = self.cell.get_or_insert_with(|| Cell::root(domain, level, key));
        cell.ascend_to(self.followed);
        for &(cut, right) in &self.path[self.followed..] {
            cell.follow(cut, right);
        }
        self.followed = self.path.len();
        cell
    }
}

/// An insertion at work.
struct Growth<'a, S, P: Statistics> {
    tree: &'a mut Tree<S, P>,
    process: &'a Process<'a, S, P::Target>,
    control: &'a Control,
    walk: Walk<'a, S, P::Target>,
    touched: Vec<Touched>,
    scratch: Vec<RowId>,
}

impl<S: Scalar, P: Statistics> Growth<'_, S, P> {
    /// Sends rows down the tree; the parts that are new are built where they branch off.
    fn insert(&mut self, rows: &mut [RowId]) -> Result<()> {
        let parent = Touched::NO_PARENT;
        let mut tasks = vec![Task { link: Link::Root, start: 0, end: rows.len(), depth: 0, parent }];
        while let Some(task) = tasks.pop() {
            if task.start == task.end {
                continue;
            }
            if let Link::Child { of, right } = task.link {
                self.walk.go(task.depth - 1, self.tree.arena.cut(of), right);
            }
            let Some(node) = self.tree.arena.get(task.link) else {
                self.grow(task.link, task.parent, &mut rows[task.start..task.end])?;
                continue;
            };
            let task = self.pass_skips(task, node, rows, &mut tasks);
            if task.start < task.end {
                self.enter(task, node, rows, &mut tasks)?;
            }
        }
        Ok(())
    }

    /// Takes rows past the skipped cuts above a node. Those that such a cut parts from the node's rows are
    /// left as tasks; what is left of the task stands right above the node.
    fn pass_skips(
        &mut self,
        mut task: Task,
        node: NodeId,
        rows: &mut [RowId],
        tasks: &mut Vec<Task>,
    ) -> Task {
        let mut k = 0;
        while let Some(&skip) = self.tree.arena.skips(node).get(k) {
            let cut = skip.cut();
            let here = &mut rows[task.start..task.end];
            if here.is_empty() {
                break;
            }
            self.walk.go(task.depth, cut, skip.right);
            task.depth += 1;
            k += 1;
            if self.process.all_go(here, cut, skip.right) {
                continue;
            }
            let middle = task.start + partition(here, &mut self.scratch, &self.process.table, cut);
            let split = self.tree.arena.split_run(task.link, node, k - 1);
            let parent = self.touch(task.link, split, &task, true);
            let side = |right| Link::Child { of: split, right };
            let (left, right) = ((task.start, middle), (middle, task.end));
            let (stay, leave) = if skip.right { (right, left) } else { (left, right) };
            tasks.push(Task { link: side(!skip.right), start: leave.0, end: leave.1, parent, ..task });
            task = Task { link: side(skip.right), start: stay.0, end: stay.1, parent, ..task };
            k = 0;
        }
        task
    }

    /// Rows reach a leaf, or a split that parts them.
    fn enter(&mut self, task: Task, node: NodeId, rows: &mut [RowId], tasks: &mut Vec<Task>) -> Result<()> {
        if node.is_leaf() {
            return self.enter_leaf(task, node, rows);
        }
        let Task { link, start, end, depth, .. } = task;
        let parent = self.touch(link, node, &task, false);
        let cut = self.tree.arena.cut(node);
        let middle = start + partition(&mut rows[start..end], &mut self.scratch, &self.process.table, cut);
        let side = |right| Link::Child { of: node, right };
        tasks.push(Task { link: side(true), start: middle, end, depth: depth + 1, parent });
        tasks.push(Task { link: side(false), start, end: middle, depth: depth + 1, parent });
        Ok(())
    }

    /// Rows reach a leaf: it goes on pausing, or is built anew (Algorithm 5.10, lines 1-9).
    fn enter_leaf(&mut self, task: Task, leaf: NodeId, rows: &[RowId]) -> Result<()> {
        let added = &rows[task.start..task.end];
        let arena = &mut self.tree.arena;
        let one = arena.any_row(leaf);
        let targets = self.process.targets;
        let stays = !arena.is_paused(leaf)
            || arena.n_rows(leaf) + added.len() < self.process.min_samples_split
            || if self.tree.statistics.is_uniform(leaf) {
                added.iter().all(|&row| targets[row as usize] == targets[one as usize])
            } else {
                // Paused for its number of rows, or because they coincide.
                arena.n_rows(leaf) >= self.process.min_samples_split
                    && added.iter().all(|&row| self.process.coincide(&[one, row]))
            };
        if stays {
            arena.extend_leaf(leaf, added);
            self.touch(task.link, leaf, &task, false);
            return Ok(());
        }
        let mut all: Vec<RowId> = arena.leaf_rows(leaf).collect();
        all.extend_from_slice(added);
        self.tree.drop_node(task.link, leaf);
        if self.scratch.len() < all.len() {
            self.scratch.resize(all.len(), 0);
        }
        self.grow(task.link, task.parent, &mut all)
    }

    /// Samples the Mondrian block of rows that are nowhere in the tree (Algorithm 5.9 by cuts of cells).
    fn grow(&mut self, link: Link, parent: u32, rows: &mut [RowId]) -> Result<()> {
        if self.process.pauses(rows) {
            self.add_leaf(link, parent, None, rows);
            return Ok(());
        }
        let top = self.walk.cell().depth();
        let mut tasks = vec![Block { link, start: 0, end: rows.len(), depth: top, side: None, parent }];
        while let Some(block) = tasks.pop() {
            let rows = &mut rows[block.start..block.end];
            if self.process.pauses(rows) {
                self.add_leaf(block.link, block.parent, None, rows);
                continue;
            }
            let cell = self.walk.cell.as_mut().expect("made above");
            cell.ascend_to(block.depth);
            if let Some(right) = block.side {
                cell.descend(right);
            }
            self.split(block, rows, &mut tasks)?;
        }
        if let Some(cell) = &mut self.walk.cell {
            cell.ascend_to(top);
        }
        Ok(())
    }

    /// Cuts the cell until a cut separates the rows, remembering those that do not.
    fn split(&mut self, block: Block, rows: &mut [RowId], tasks: &mut Vec<Block>) -> Result<()> {
        let Block { link, start, end, .. } = block;
        let mut run = self.tree.arena.start_run();
        loop {
            self.control.check()?;
            let cell = self.walk.cell.as_mut().expect("a block is built in its cell");
            let Some(cut) = cell.next_cut(self.process.lifetime) else {
                let paused = run.is_empty() && self.process.coincide(rows);
                self.add_leaf(link, block.parent, (!paused).then_some(run), rows);
                return Ok(());
            };
            let n_left = partition(rows, &mut self.scratch, &self.process.table, cut);
            if 0 < n_left && n_left < rows.len() {
                let split = self.tree.arena.add_split(cut, run, rows.len());
                self.tree.arena.set(link, Some(split));
                let parent = self.touched.len() as u32;
                self.touched.push(Touched::fresh(link, split, block.parent));
                let (middle, depth) = (start + n_left, cell.depth());
                let side = |right| Link::Child { of: split, right };
                let right = Block { link: side(true), start: middle, end, depth, side: Some(true), parent };
                let left = Block { link: side(false), start, end: middle, depth, side: Some(false), parent };
                tasks.extend([right, left]);
                return Ok(());
            }
            let right = n_left == 0;
            if run.is_empty() && self.process.coincide(rows) {
                // No cut would ever separate them.
                self.add_leaf(link, block.parent, None, rows);
                return Ok(());
            }
            self.tree.arena.push_skip(&mut run, Skip::of(cut, right));
            cell.descend(right);
        }
    }

    fn add_leaf(&mut self, link: Link, parent: u32, run: Option<Run>, rows: &[RowId]) {
        let leaf = self.tree.arena.add_leaf(run, rows);
        self.tree.arena.set(link, Some(leaf));
        self.tree.statistics.set_leaf(leaf, rows, self.process.targets);
        self.touched.push(Touched::fresh(link, leaf, parent));
    }

    /// Notes that rows came to a node; its place in the list.
    fn touch(&mut self, link: Link, node: NodeId, task: &Task, fresh: bool) -> u32 {
        let (start, end) = (task.start as u32, task.end as u32);
        self.touched.push(Touched { start, end, fresh, ..Touched::fresh(link, node, task.parent) });
        self.touched.len() as u32 - 1
    }
}

/// Rows that a new subtree at `link` is to hold; its cell is reached from the one below `depth` cuts by
/// going to `side` of that cell's cut.
#[derive(Debug, Clone, Copy)]
struct Block {
    link: Link,
    start: usize,
    end: usize,
    depth: usize,
    side: Option<bool>,
    parent: u32,
}

/// Puts the rows that go left of a cut first, keeping their order; returns how many they are.
pub(crate) fn partition<S: Scalar>(
    rows: &mut [RowId],
    scratch: &mut [RowId],
    table: &Table<'_, S>,
    cut: Cut,
) -> usize {
    let column = table.column(cut.feature, rows.len());
    let goes_right = |row: RowId| column.at(row) > cut.threshold;
    let Some(&first) = rows.first() else { return 0 };
    // Many cuts leave all rows on one side: then nothing moves.
    let right = goes_right(first);
    let Some(same) = rows[1..].iter().position(|&row| goes_right(row) != right) else {
        return if right { 0 } else { rows.len() };
    };
    let same = same + 1;
    let scratch = &mut scratch[..rows.len()];
    let (mut n_left, mut n_right) = if right { (0, same) } else { (same, 0) };
    scratch[..n_right].copy_from_slice(&rows[..n_right]);
    // Both places are written and one of them counted, so that nothing depends on a branch.
    for i in same..rows.len() {
        let row = rows[i];
        let right = goes_right(row);
        rows[n_left] = row;
        scratch[n_right] = row;
        n_left += usize::from(!right);
        n_right += usize::from(right);
    }
    rows[n_left..].copy_from_slice(&scratch[..n_right]);
    n_left
}
