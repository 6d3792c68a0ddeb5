//! One Mondrian tree: the restriction of the tree's keyed process to a set of rows.

use super::cell::{Cell, Cut};
use super::domain::Domain;
use super::extents::Extents;
use super::keyed::Key;
use super::statistics::Statistics;
use crate::control::Control;
use crate::data::{Columns, Scalar};
use crate::error::Result;
use crate::tree::{Arena, Kind, Link, NodeId, RowId, SiteId};

/// Everything that determines a tree besides its set of rows, and where those rows are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process<'a, S, T> {
    pub(crate) domain: &'a Domain,
    pub(crate) level: u32,
    pub(crate) key: Key,
    pub(crate) lifetime: f64,
    pub(crate) min_samples_split: usize,
    /// The rows' features as the cuts read them.
    pub(crate) columns: Columns<'a, S>,
    /// The same row after row, as boxes read them.
    pub(crate) table: &'a [S],
    pub(crate) targets: &'a [T],
}

/// A tree's structure, its statistics and its boxes.
#[derive(Debug, Clone)]
pub(crate) struct Tree<S, P> {
    pub(crate) arena: Arena,
    pub(crate) statistics: P,
    pub(crate) extents: Extents<S>,
}

/// What an insertion or removal did to a node.
#[derive(Debug, Clone, Copy)]
enum Touch {
    /// A cut that is new.
    NewCut,
    /// A cut that rows passed: a range of the rows at hand.
    Cut { start: usize, end: usize },
    /// A leaf made anew.
    New,
    /// A leaf that rows entered or left: a range of the rows at hand.
    Changed { start: usize, end: usize },
}

#[derive(Debug, Clone, Copy)]
struct Touched {
    link: Link,
    node: NodeId,
    touch: Touch,
}

/// A range of the rows at hand, on its way down to `link`, below `depth` cuts.
#[derive(Debug, Clone, Copy)]
struct Task {
    link: Link,
    start: usize,
    end: usize,
    depth: usize,
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
        let touched = growth.touched;
        self.refresh_grown(&touched, rows, process);
        Ok(touched.into_iter().map(|touched| touched.node).collect())
    }

    /// Removes rows that the tree holds: the tree becomes, bit for bit, that of the others.
    pub(crate) fn remove(&mut self, rows: &mut [RowId], process: &Process<'_, S, P::Target>) {
        let touched = self.take_rows(rows, process);
        for &touched in touched.iter().rev() {
            self.refresh_shrunk(touched, rows, process);
        }
    }

    /// Builds the boxes anew, of splits too or of leaves alone.
    pub(crate) fn build_extents(&mut self, n_features: usize, splits: bool, table: &[S]) {
        let mut extents = Extents::new(n_features, splits);
        let order = self.arena.preorder();
        let has_box = |&&node: &&NodeId| {
            Extents::<S>::keeps(self.arena.n_rows(node)) && (splits || self.arena.is_leaf(node))
        };
        extents.reserve(order.iter().filter(has_box).count());
        for &node in order.iter().rev() {
            extents.refresh(&self.arena, node, table);
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
    fn refresh_grown(&mut self, touched: &[Touched], rows: &[RowId], process: &Process<'_, S, P::Target>) {
        let mut all = Vec::new();
        for &Touched { node, touch, .. } in touched.iter().rev() {
            match touch {
                Touch::NewCut | Touch::Cut { .. } => self.refresh_cut(node),
                Touch::New => self.refresh_leaf(node, &mut all, process.targets),
                Touch::Changed { start, end } => {
                    let site = self.arena.site(node);
                    let n_rows = self.arena.n_rows_at(site);
                    let added = &rows[start..end];
                    if !self.statistics.grow_leaf(site, n_rows, added, process.targets) {
                        self.refresh_leaf(node, &mut all, process.targets);
                    }
                }
            }
        }
        let extents = &mut self.extents;
        let arena = &self.arena;
        let keeps = |t: &&Touched| {
            arena.find_site(t.node).is_some_and(|site| Extents::<S>::keeps(arena.n_rows_at(site)))
        };
        if extents.has_splits() && touched.len() == arena.n_nodes() {
            // A tree made anew: all of its boxes at once.
            extents.reserve(touched.iter().filter(keeps).count());
        }
        for &Touched { node, touch, .. } in touched.iter().rev() {
            match touch {
                Touch::Changed { start, end } | Touch::Cut { start, end } => {
                    extents.grow(&self.arena, node, &rows[start..end], process.table);
                }
                Touch::New | Touch::NewCut => extents.refresh(&self.arena, node, process.table),
            }
        }
    }

    fn refresh_leaf(&mut self, leaf: NodeId, all: &mut Vec<RowId>, targets: &[P::Target]) {
        all.clear();
        all.extend(self.arena.leaf_rows(leaf));
        self.statistics.set_leaf(self.arena.site(leaf), all, targets);
    }

    /// Brings a cut up to date, whose children are: a split joins theirs, a skipped cut has nothing.
    fn refresh_cut(&mut self, node: NodeId) {
        let Kind::Split(left, right) = self.arena.kind(node) else {
            if let Some(site) = self.arena.find_site(node) {
                self.clear(site);
                self.arena.release_site(node);
            }
            return;
        };
        let site = self.arena.claim_site(node);
        let side = |child| {
            let site = self.arena.site(self.arena.below_skips(child));
            (site, self.arena.n_rows_at(site))
        };
        let (left, right) = (side(left), side(right));
        self.arena.set_n_rows_at(site, left.1 + right.1);
        self.statistics.join(site, left, right);
    }

    /// Forgets what a site held.
    fn clear(&mut self, site: SiteId) {
        self.statistics.clear(site);
        self.extents.clear(site);
    }

    /// Takes rows out of their leaves; the nodes on the way, parents first.
    fn take_rows(&mut self, rows: &mut [RowId], process: &Process<'_, S, P::Target>) -> Vec<Touched> {
        let mut touched = Vec::new();
        let mut scratch = vec![0; rows.len()];
        let mut tasks = vec![(Link::Root, 0, rows.len())];
        while let Some((link, start, end)) = tasks.pop() {
            if start == end {
                continue;
            }
            let node = self.arena.get(link).expect("the tree holds the rows");
            if self.arena.is_leaf(node) {
                for &row in &rows[start..end] {
                    self.arena.take_row(node, row);
                }
                touched.push(Touched { link, node, touch: Touch::Changed { start, end } });
                continue;
            }
            touched.push(Touched { link, node, touch: Touch::Cut { start, end } });
            let cut = self.cut(node);
            let middle = start + partition(&mut rows[start..end], &mut scratch, &process.columns, cut);
            tasks.push((Link::Child { of: node, right: true }, middle, end));
            tasks.push((Link::Child { of: node, right: false }, start, middle));
        }
        touched
    }

    /// Brings a node whose rows became fewer up to date; its children are so already.
    fn refresh_shrunk(
        &mut self,
        Touched { link, node, touch }: Touched,
        rows: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) {
        let removed = match touch {
            Touch::Changed { start, end } => {
                return self.refresh_shrunk_leaf(link, node, &rows[start..end], process);
            }
            Touch::Cut { start, end } => &rows[start..end],
            Touch::New | Touch::NewCut => unreachable!("a removal makes no node"),
        };
        let child = |right| self.arena.get(Link::Child { of: node, right });
        let (left, right) = (child(false), child(true));
        if left.is_none() && right.is_none() {
            return self.drop_node(link, node);
        }
        self.refresh_cut(node);
        let site = self.arena.site(self.arena.below_skips(node));
        if self.arena.n_rows_at(site) < process.min_samples_split || self.statistics.is_uniform(site) {
            return self.collapse(link, node, process);
        }
        // Rows that a skipped cut holds are its child's: what pauses one pauses the other.
        if let Kind::Skip { child, .. } = self.arena.kind(node)
            && self.arena.is_paused(child)
        {
            self.drop_node(link, node);
            self.arena.set(link, Some(child));
            return;
        }
        self.extents.shrink(&self.arena, node, removed, process.table);
    }

    fn refresh_shrunk_leaf(
        &mut self,
        link: Link,
        leaf: NodeId,
        removed: &[RowId],
        process: &Process<'_, S, P::Target>,
    ) {
        let site = self.arena.site(leaf);
        let n_rows = self.arena.n_rows_at(site);
        if n_rows == 0 {
            return self.drop_node(link, leaf);
        }
        if !self.statistics.shrink_leaf(site, n_rows, removed, process.targets) {
            self.refresh_leaf(leaf, &mut Vec::new(), process.targets);
        }
        if !self.arena.is_paused(leaf) {
            let rows: Vec<RowId> = self.arena.leaf_rows(leaf).collect();
            let paused = process.pauses(&rows) || process.coincide(&rows);
            self.arena.set_paused(leaf, paused);
        }
        self.extents.shrink(&self.arena, leaf, removed, process.table);
    }

    /// Makes a subtree one paused leaf.
    fn collapse(&mut self, link: Link, node: NodeId, process: &Process<'_, S, P::Target>) {
        let mut rows = Vec::with_capacity(self.arena.n_rows(node));
        self.arena.rows_under(node, &mut rows);
        let Self { arena, statistics, extents } = self;
        arena.remove_subtree(node, |freed| {
            statistics.clear(freed);
            extents.clear(freed);
        });
        let leaf = self.arena.add_leaf(true, &rows);
        self.arena.set(link, Some(leaf));
        self.statistics.set_leaf(self.arena.site(leaf), &rows, process.targets);
        self.extents.refresh(&self.arena, leaf, process.table);
    }

    /// Frees one node and clears its link.
    fn drop_node(&mut self, link: Link, node: NodeId) {
        self.arena.set(link, None);
        if let Some(site) = self.arena.find_site(node) {
            self.clear(site);
        }
        self.arena.remove(node);
    }

    fn cut(&self, node: NodeId) -> Cut {
        Cut {
            time: self.arena.time(node),
            feature: self.arena.feature(node),
            threshold: self.arena.threshold(node),
        }
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

    /// Whether all rows are the same where a cut could see it.
    fn coincide(&self, rows: &[RowId]) -> bool {
        let d = self.domain.n_features();
        let row = |row: RowId| &self.table[row as usize * d..][..d];
        let first = row(rows[0]);
        rows[1..].iter().all(|&other| {
            first.iter().zip(row(other)).zip(self.domain.rates()).all(|((a, b), &rate)| a == b || rate == 0.0)
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
        let mut tasks = vec![Task { link: Link::Root, start: 0, end: rows.len(), depth: 0 }];
        while let Some(Task { link, start, end, depth }) = tasks.pop() {
            if start == end {
                continue;
            }
            if let Link::Child { of, right } = link {
                self.walk.go(depth - 1, self.tree.cut(of), right);
            }
            let Some(node) = self.tree.arena.get(link) else {
                self.grow(link, &mut rows[start..end])?;
                continue;
            };
            if self.tree.arena.is_leaf(node) {
                self.enter_leaf(link, node, rows, start, end)?;
                continue;
            }
            self.touched.push(Touched { link, node, touch: Touch::Cut { start, end } });
            let cut = self.tree.cut(node);
            let middle =
                start + partition(&mut rows[start..end], &mut self.scratch, &self.process.columns, cut);
            let side = |right| Link::Child { of: node, right };
            tasks.push(Task { link: side(true), start: middle, end, depth: depth + 1 });
            tasks.push(Task { link: side(false), start, end: middle, depth: depth + 1 });
        }
        Ok(())
    }

    /// Rows reach a leaf: it goes on pausing, or is built anew (Algorithm 5.10, lines 1-9).
    fn enter_leaf(
        &mut self,
        link: Link,
        leaf: NodeId,
        rows: &mut [RowId],
        start: usize,
        end: usize,
    ) -> Result<()> {
        let added = &rows[start..end];
        let arena = &mut self.tree.arena;
        let one = arena.leaf_rows(leaf).next().expect("a leaf holds rows");
        let targets = self.process.targets;
        let stays = !arena.is_paused(leaf)
            || arena.n_rows(leaf) + added.len() < self.process.min_samples_split
            || if self.tree.statistics.is_uniform(arena.site(leaf)) {
                added.iter().all(|&row| targets[row as usize] == targets[one as usize])
            } else {
                // Paused for its number of rows, or because they coincide.
                arena.n_rows(leaf) >= self.process.min_samples_split
                    && added.iter().all(|&row| self.process.coincide(&[one, row]))
            };
        if stays {
            arena.extend_leaf(leaf, added);
            self.touched.push(Touched { link, node: leaf, touch: Touch::Changed { start, end } });
            return Ok(());
        }
        let mut all: Vec<RowId> = arena.leaf_rows(leaf).collect();
        all.extend_from_slice(added);
        self.tree.drop_node(link, leaf);
        if self.scratch.len() < all.len() {
            self.scratch.resize(all.len(), 0);
        }
        self.grow(link, &mut all)
    }

    /// Samples the Mondrian block of rows that are nowhere in the tree (Algorithm 5.9 by cuts of cells).
    fn grow(&mut self, link: Link, rows: &mut [RowId]) -> Result<()> {
        if self.process.pauses(rows) {
            self.add_leaf(link, true, rows);
            return Ok(());
        }
        let top = self.walk.cell().depth();
        let mut tasks = vec![Block { link, start: 0, end: rows.len(), depth: top, side: None }];
        while let Some(block) = tasks.pop() {
            let rows = &mut rows[block.start..block.end];
            if self.process.pauses(rows) {
                self.add_leaf(block.link, true, rows);
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
        let Block { mut link, start, end, .. } = block;
        loop {
            self.control.check()?;
            let cell = self.walk.cell.as_mut().expect("a block is built in its cell");
            let cut = cell.next_cut(self.process.lifetime);
            let columns = &self.process.columns;
            let n_left = cut.map_or(0, |cut| partition(rows, &mut self.scratch, columns, cut));
            let separates = 0 < n_left && n_left < rows.len();
            if !separates && link == block.link && self.process.coincide(rows) {
                // No cut would ever separate them.
                self.add_leaf(link, true, rows);
                return Ok(());
            }
            let Some(cut) = cut else {
                self.add_leaf(link, false, rows);
                return Ok(());
            };
            let node = self.tree.arena.add_cut(cut.time, cut.feature, cut.threshold);
            self.tree.arena.set(link, Some(node));
            self.touched.push(Touched { link, node, touch: Touch::NewCut });
            let side = |right| Link::Child { of: node, right };
            if separates {
                let (middle, depth) = (start + n_left, cell.depth());
                tasks.push(Block { link: side(true), start: middle, end, depth, side: Some(true) });
                tasks.push(Block { link: side(false), start, end: middle, depth, side: Some(false) });
                return Ok(());
            }
            let right = n_left == 0;
            cell.descend(right);
            link = side(right);
        }
    }

    fn add_leaf(&mut self, link: Link, paused: bool, rows: &[RowId]) {
        let node = self.tree.arena.add_leaf(paused, rows);
        self.tree.arena.set(link, Some(node));
        self.touched.push(Touched { link, node, touch: Touch::New });
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
}

/// Puts the rows that go left of a cut first, keeping their order; returns how many they are.
fn partition<S: Scalar>(
    rows: &mut [RowId],
    scratch: &mut [RowId],
    columns: &Columns<'_, S>,
    cut: Cut,
) -> usize {
    let column = columns.column(cut.feature);
    let scratch = &mut scratch[..rows.len()];
    let (mut n_left, mut n_right) = (0, 0);
    // Both places are written and one of them counted, so that nothing depends on a branch.
    for i in 0..rows.len() {
        let row = rows[i];
        let right = column.at(row) > cut.threshold;
        rows[n_left] = row;
        scratch[n_right] = row;
        n_left += usize::from(!right);
        n_right += usize::from(right);
    }
    rows[n_left..].copy_from_slice(&scratch[..n_right]);
    n_left
}
