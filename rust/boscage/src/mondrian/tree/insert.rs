//! Inserting rows into a tree; a new tree inserts all of its rows.
//!
//! This replaces Algorithms 5.5 and 5.6, and 5.10, 6.3 and 6.4, in which leaves pause. A row goes down the tree. At a
//! split it takes its side. Above every node it passes the node's skipped cuts; at the first one that separates it from
//! the node's rows, it branches off. Rows get a new subtree where there is no node yet, and at a paused leaf whose
//! pause ends. For this subtree further cuts of the cell are drawn (Algorithm 5.9, with cells in place of data boxes).

use crate::control::Control;
use crate::data::{RowId, RowTargets, Scalar, Table};
use crate::error::Result;
use crate::mondrian::process::cut::{Cut, SkippedCut};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeLink};
use crate::mondrian::tree::boxes::box_moves::Moved;
use crate::mondrian::tree::process::{Process, partition};
use crate::mondrian::tree::scratch::{Block, Changed, Scratch, Site, Task, Touched};
use crate::mondrian::tree::skipped_cuts::SkippedRun;
use crate::mondrian::tree::statistics::Statistics;

impl<S: Scalar, P: Statistics> Tree<S, P> {
    /// Inserts rows, which are numbered in the table; their order is lost. The result is that of drawing a tree
    /// (Algorithm 5.1, Algorithm 6.1) and of extending one (Algorithm 5.5, Algorithm 6.3), which are the same
    /// (eq. 5.1).
    ///
    /// # Errors
    /// An interrupt: the tree is then unusable.
    pub(crate) fn insert(
        &mut self,
        rows: &mut [RowId],
        process: &Process<'_, S, P::Target>,
        scratch: &mut Scratch<'_>,
        control: &Control,
    ) -> Result<()> {
        self.arena.reserve_rows(process.targets.targets.len());
        Insertion { tree: self, process, scratch, control, names: None }.run(rows)?;
        self.refresh_grown(&mut scratch.touched, rows, process);
        self.arena.compact();
        Ok(())
    }

    /// Draws the subtree of rows of a cell, apart from the rest of the tree, as Algorithms 5.2 and 6.2 draw a block; the cell
    /// is given by the cuts above it and their sides, from the last cut up to the root's. Returns the subtree's root.
    ///
    /// # Errors
    /// An interrupt: the tree is then unusable.
    pub(crate) fn grow_apart(
        &mut self,
        cell: &[(Cut, bool)],
        rows: &mut [RowId],
        process: &Process<'_, S, P::Target>,
        scratch: &mut Scratch<'_>,
        control: &Control,
    ) -> Result<NodeId> {
        self.arena.reserve_rows(process.targets.targets.len());
        scratch.begin(rows.len());
        scratch.cell.place(process.key, cell);
        let (end, parent) = (rows.len(), Touched::NO_PARENT);
        let all = Block { link: NodeLink::Root, start: 0, end, depth: 0, side: None, parent };
        Insertion { tree: self, process, scratch, control, names: None }.build_block(all, rows)?;
        self.refresh_grown(&mut scratch.touched, rows, process);
        let root = self.arena.root().expect("a block of rows has a node");
        self.arena.set(NodeLink::Root, None);
        Ok(root)
    }

    /// Brings statistics (for classes, Algorithm 5.7) and boxes up to date, children before parents.
    fn refresh_grown(
        &mut self,
        touched: &mut [Touched],
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) {
        if touched.len() == self.arena.n_nodes() {
            // A new tree: memory for all of its boxes at once.
            self.boxes.reserve(&self.arena, touched.iter().map(|touched| touched.node));
        }
        self.boxes.start();
        self.boxes.fetch(&self.arena, touched.iter().map(|touched| touched.node));
        for i in (0..touched.len()).rev() {
            let this = touched[i];
            let changed = match (this.node.is_leaf(), this.fresh) {
                (true, true) => {
                    self.boxes.set(&self.arena, this.node, process.table);
                    Changed::ALL
                }
                (true, false) => self.refresh_grown_leaf(&this, rows, process),
                (false, true) => {
                    self.arena.count_rows(this.node);
                    self.join(this.node);
                    self.boxes.set(&self.arena, this.node, process.table);
                    Changed::ALL
                }
                (false, false) => {
                    let (below, added) = (this.below, this.rows(rows));
                    let statistics = below.statistics && self.join(this.node);
                    let boxes = self.boxes.grow(&self.arena, this.node, below.boxes, added, process.table);
                    Changed { statistics, boxes }
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
        let boxes = self.boxes.grow(&self.arena, leaf, Moved::Anything, added, process.table);
        Changed { statistics: statistics.unwrap_or(true), boxes }
    }
}

/// An insertion in progress.
struct Insertion<'g, 'p, 'd, S, P: Statistics> {
    tree: &'g mut Tree<S, P>,
    process: &'g Process<'p, S, P::Target>,
    scratch: &'g mut Scratch<'d>,
    control: &'g Control,
    /// The forest's row numbers, if the process' table is a copy of some rows.
    names: Option<&'g [RowId]>,
}

impl<S: Scalar, P: Statistics> Insertion<'_, '_, '_, S, P> {
    /// Inserts rows; statistics of splits, and boxes, are updated afterwards for the touched nodes.
    fn run(&mut self, rows: &mut [RowId]) -> Result<()> {
        self.scratch.sites.clear();
        self.scratch.rows.clear();
        self.descend(rows);
        // The tree above the sites is complete, so that their cells are found by walking up.
        let mut rows = std::mem::take(&mut self.scratch.rows);
        self.scratch.make_room(rows.len());
        for i in 0..self.scratch.sites.len() {
            let site = self.scratch.sites[i];
            self.build(site, &mut rows)?;
        }
        self.scratch.rows = rows;
        Ok(())
    }

    /// Sends rows down the tree, depth by depth, to leaves and to sites of new subtrees.
    fn descend(&mut self, rows: &mut [RowId]) {
        self.scratch.start(Task::all(self.tree.arena.root(), rows.len()));
        while let Some(wave) = self.scratch.next_wave(&self.tree.arena) {
            for &task in &wave {
                let Some(node) = task.node else {
                    self.add(&task, &rows[task.range()]);
                    continue;
                };
                let task = self.pass_skips(task, node, rows);
                if !task.is_empty() {
                    self.enter(&task, node, rows);
                }
            }
            self.scratch.reuse(wave);
        }
    }

    /// Takes rows past the skipped cuts above a node, in place of Algorithm 5.6, lines 1-9 (Algorithm 5.10 and
    /// Algorithm 6.4 have the same lines). A cut that separates some of them from the node's rows becomes a split;
    /// the returned task holds the others.
    fn pass_skips(&mut self, mut task: Task, node: NodeId, rows: &mut [RowId]) -> Task {
        let mut k = 0;
        while let Some(&skip) = self.tree.arena.skips(node).get(k) {
            let cut = skip.cut();
            let here = &mut rows[task.range()];
            if here.is_empty() {
                break;
            }
            k += 1;
            if self.process.all_go(here, cut, skip.right) {
                continue;
            }
            let n_left = partition(here, &mut self.scratch.buffer, &self.process.table, cut);
            let middle = task.start + n_left as u32;
            let split = self.tree.arena.split_run(task.link, node, k - 1);
            let parent = self.scratch.touch(Touched::fresh(task.link, split, task.parent));
            let side = |right| NodeLink::Child { of: split, right };
            let (left, right) = ((task.start, middle), (middle, task.end));
            let (stay, leave) = if skip.right { (right, left) } else { (left, right) };
            let (start, end) = leave;
            let gone = Task { link: side(!skip.right), node: None, start, end, parent };
            self.add(&gone, &rows[gone.range()]);
            task = Task { link: side(skip.right), start: stay.0, end: stay.1, parent, ..task };
            k = 0;
        }
        task
    }

    /// Rows reach a leaf, or a split, which sends them to its sides (Algorithm 5.6, lines 11-13).
    fn enter(&mut self, task: &Task, node: NodeId, rows: &mut [RowId]) {
        if node.is_leaf() {
            return self.enter_leaf(task, node, &rows[task.range()]);
        }
        let parent = self.scratch.touch(Touched::met(node, task));
        self.tree.arena.count_in(node, task.range().len());
        self.scratch.part(&self.tree.arena, node, task, parent, rows, &self.process.table);
    }

    /// Rows reach a leaf: it stays paused, or its pause ends and it is drawn anew (Algorithm 5.10, lines
    /// 1-9; Algorithm 6.4 as corrected).
    fn enter_leaf(&mut self, task: &Task, leaf: NodeId, added: &[RowId]) {
        let arena = &mut self.tree.arena;
        let one = arena.any_row(leaf);
        let (process, held) = (self.process, || arena.leaf_rows(leaf));
        let n_rows = arena.n_rows(leaf);
        let stays = !arena.is_paused(leaf)
            || process.are_few(n_rows + added.len(), || held().chain(added.iter().copied()))
            || if self.tree.statistics.is_uniform(leaf) {
                added.iter().all(|&row| process.targets.of(row) == process.targets.of(one))
            } else {
                // Paused for its number of rows, or because its rows coincide.
                !process.are_few(n_rows, held) && added.iter().all(|&row| process.coincide(&[one, row]))
            };
        if stays {
            arena.extend_leaf(leaf, added.iter().copied());
            self.scratch.touch(Touched::met(leaf, task));
            return;
        }
        let start = self.scratch.rows.len();
        self.scratch.rows.extend(arena.leaf_rows(leaf));
        self.tree.drop_node(task.link, leaf);
        self.found(task, start, added);
    }

    /// Rows reach a link where there is no node yet (Algorithm 5.9).
    fn add(&mut self, task: &Task, rows: &[RowId]) {
        if self.process.pauses(rows) {
            self.add_leaf(task.link, task.parent, None, rows);
        } else {
            self.found(task, self.scratch.rows.len(), rows);
        }
    }

    /// Notes a site for some rows and for those that were stored from `start` on.
    fn found(&mut self, task: &Task, start: usize, rows: &[RowId]) {
        self.scratch.rows.extend_from_slice(rows);
        let end = self.scratch.rows.len();
        self.scratch.sites.push(Site { link: task.link, parent: task.parent, start, end });
    }

    /// Draws the subtree of rows that are nowhere in the tree yet (Algorithm 5.6, lines 7 and 8; Algorithm 5.9
    /// by cuts of cells).
    fn build(&mut self, Site { link, parent, start, end }: Site, rows: &mut [RowId]) -> Result<()> {
        self.place_cell(link, parent);
        self.scratch.blocks.clear();
        self.build_block(Block { link, start, end, depth: 0, side: None, parent }, rows)
    }

    /// Draws a block and all below it.
    fn build_block(&mut self, block: Block, rows: &mut [RowId]) -> Result<()> {
        let others = self.scratch.blocks.len();
        self.scratch.blocks.push(block);
        while self.scratch.blocks.len() > others {
            let block = self.scratch.blocks.pop().expect("more than the others");
            let rows = &mut rows[block.start..block.end];
            if self.process.pauses(rows) {
                self.add_leaf(block.link, block.parent, None, rows);
            } else if self.process.table.is_worth_copying(rows.len()) {
                self.build_copied(block, rows)?;
            } else {
                let cell = &mut self.scratch.cell;
                cell.ascend_to(block.depth);
                if let Some(right) = block.side {
                    cell.descend(right);
                }
                self.split(block, rows)?;
            }
        }
        Ok(())
    }

    /// Draws a block and all below it on a copy of its rows, which fits the cache.
    fn build_copied(&mut self, block: Block, rows: &[RowId]) -> Result<()> {
        let values = self.process.table.copy(rows);
        let targets: Vec<P::Target> = rows.iter().map(|&row| self.process.targets.of(row)).collect();
        let weights = self.process.targets.weights_of(rows);
        let table = Table::new(&values, values.len() / rows.len());
        let targets = RowTargets { targets: &targets, weights: weights.as_deref() };
        let process = Process { table, targets, ..*self.process };
        let Self { tree, scratch, control, .. } = self;
        let mut copied = Insertion { tree, process: &process, scratch, control, names: Some(rows) };
        let mut numbers: Vec<RowId> = (0..rows.len() as u32).collect();
        copied.build_block(Block { start: 0, end: rows.len(), ..block }, &mut numbers)
    }

    /// Moves the cell to that of a link below a touched node.
    fn place_cell(&mut self, mut link: NodeLink, mut parent: u32) {
        let Scratch { cell, path, touched, .. } = &mut *self.scratch;
        let arena = &self.tree.arena;
        path.clear();
        while let NodeLink::Child { of, right } = link {
            path.push((arena.cut(of), right));
            path.extend(arena.skips(of).iter().rev().map(|skip| (skip.cut(), skip.right)));
            let above = &touched[parent as usize];
            (link, parent) = (above.link, above.parent);
        }
        cell.place(self.process.key, path);
    }

    /// Cuts the cell until a cut separates the rows (Algorithm 5.2, lines 3 to 10; Algorithm 6.2), and remembers
    /// the skipped cuts.
    fn split(&mut self, block: Block, rows: &mut [RowId]) -> Result<()> {
        let Block { link, start, end, parent, .. } = block;
        let mut run = self.tree.arena.skips.start_run();
        loop {
            self.control.check()?;
            let Some(cut) = self.scratch.cell.next_cut(self.process.lifetime) else {
                let paused = run.is_empty() && self.process.coincide(rows);
                self.add_leaf(link, parent, (!paused).then_some(run), rows);
                return Ok(());
            };
            let n_left = partition(rows, &mut self.scratch.buffer, &self.process.table, cut);
            if 0 < n_left && n_left < rows.len() {
                let split = self.tree.arena.add_split(cut, run, rows.len());
                self.tree.arena.set(link, Some(split));
                let parent = self.scratch.touch(Touched::fresh(link, split, parent));
                let (middle, depth) = (start + n_left, self.scratch.cell.depth());
                let side = |right| NodeLink::Child { of: split, right };
                let right = Block { link: side(true), start: middle, end, depth, side: Some(true), parent };
                let left = Block { link: side(false), start, end: middle, depth, side: Some(false), parent };
                self.scratch.blocks.extend([right, left]);
                return Ok(());
            }
            if run.is_empty() && self.process.coincide(rows) {
                // No cut would ever separate them.
                self.add_leaf(link, parent, None, rows);
                return Ok(());
            }
            let right = n_left == 0;
            self.tree.arena.skips.push(&mut run, SkippedCut::of(cut, right));
            self.scratch.cell.descend(right);
        }
    }

    fn add_leaf(&mut self, link: NodeLink, parent: u32, run: Option<SkippedRun>, rows: &[RowId]) {
        let arena = &mut self.tree.arena;
        let leaf = match self.names {
            None => arena.add_leaf(run, rows.iter().copied()),
            Some(names) => arena.add_leaf(run, rows.iter().map(|&row| names[row as usize])),
        };
        arena.set(link, Some(leaf));
        self.tree.statistics.set_leaf(leaf, rows, self.process.targets);
        self.scratch.touch(Touched::fresh(link, leaf, parent));
    }
}
