//! The arena: binary trees of cuts in flat arrays, with the rows of every leaf. Knows no model.
//!
//! A node is a *cut* or a *leaf*. A cut with two children separates rows; a cut with one child leaves all
//! rows of its cell on one side (DESIGN: a *skipped* cut), and the missing child is where a new row would
//! branch off. A tree of a set of rows is so a trie of cells, and adding or removing a row only sets or
//! clears child links.

/// The number of a node in its tree's arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

/// The number of a split or leaf among those of its tree: statistics, boxes and messages are kept by site,
/// so that skipped cuts, which are many, carry nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SiteId(u32);

/// The number of a row in the forest's table.
pub(crate) type RowId = u32;

const NONE: u32 = u32::MAX;
/// In [`Node::feature`]: the stopping rule holds the leaf.
const PAUSED: u32 = u32::MAX;
/// In [`Node::feature`]: no cut before the lifetime.
const EXHAUSTED: u32 = u32::MAX - 1;

impl NodeId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

impl SiteId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a subtree hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Root,
    Child { of: NodeId, right: bool },
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Separates its rows.
    Split(NodeId, NodeId),
    /// Leaves all rows on the side of its one child (`right` says which side that is).
    Skip {
        child: NodeId,
        right: bool,
    },
    Leaf,
}

/// A cut or a leaf, 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Node {
    threshold: f64,
    time: f64,
    feature: u32,
    /// A cut's children; of a leaf, the first row and the last.
    links: [u32; 2],
    /// Of a split or leaf; a skipped cut has none.
    site: u32,
}

/// A tree's structure.
#[derive(Debug, Clone)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    free: Vec<NodeId>,
    /// Number of rows by site.
    n_rows: Vec<u32>,
    free_sites: Vec<SiteId>,
    root: u32,
    /// Rows of a leaf as a list linked both ways, so that one leaves or enters in constant time.
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            n_rows: Vec::new(),
            free_sites: Vec::new(),
            root: NONE,
            next: Vec::new(),
            previous: Vec::new(),
        }
    }

    /// One past the largest index of a site.
    pub(crate) fn n_sites(&self) -> usize {
        self.n_rows.len()
    }

    /// Number of nodes.
    pub(crate) fn n_nodes(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    pub(crate) fn root(&self) -> Option<NodeId> {
        id(self.root)
    }

    /// The site of the first split or the only leaf.
    pub(crate) fn root_site(&self) -> Option<SiteId> {
        self.root().map(|root| self.site(self.below_skips(root)))
    }

    pub(crate) fn get(&self, link: Link) -> Option<NodeId> {
        match link {
            Link::Root => id(self.root),
            Link::Child { of, right } => id(self.nodes[of.index()].links[usize::from(right)]),
        }
    }

    pub(crate) fn set(&mut self, link: Link, to: Option<NodeId>) {
        let to = to.map_or(NONE, |node| node.0);
        match link {
            Link::Root => self.root = to,
            Link::Child { of, right } => self.nodes[of.index()].links[usize::from(right)] = to,
        }
    }

    pub(crate) fn kind(&self, node: NodeId) -> Kind {
        let Node { feature, links: [left, right], .. } = self.nodes[node.index()];
        if feature >= EXHAUSTED {
            return Kind::Leaf;
        }
        match (id(left), id(right)) {
            (Some(left), Some(right)) => Kind::Split(left, right),
            (Some(child), None) => Kind::Skip { child, right: false },
            (None, Some(child)) => Kind::Skip { child, right: true },
            (None, None) => unreachable!("a cut without children is removed at once"),
        }
    }

    pub(crate) fn is_leaf(&self, node: NodeId) -> bool {
        self.nodes[node.index()].feature >= EXHAUSTED
    }

    pub(crate) fn is_paused(&self, node: NodeId) -> bool {
        self.nodes[node.index()].feature == PAUSED
    }

    /// Says of a leaf whether the stopping rule holds it.
    pub(crate) fn set_paused(&mut self, leaf: NodeId, paused: bool) {
        self.nodes[leaf.index()].feature = if paused { PAUSED } else { EXHAUSTED };
    }

    /// The site of a split or leaf.
    pub(crate) fn site(&self, node: NodeId) -> SiteId {
        let site = self.nodes[node.index()].site;
        debug_assert_ne!(site, NONE, "a skipped cut has no site");
        SiteId(site)
    }

    /// The site of a node, if it has one already or still.
    pub(crate) fn find_site(&self, node: NodeId) -> Option<SiteId> {
        let site = self.nodes[node.index()].site;
        (site != NONE).then_some(SiteId(site))
    }

    /// Gives a node that is a split now a site, unless it has one.
    pub(crate) fn claim_site(&mut self, node: NodeId) -> SiteId {
        if let Some(site) = self.find_site(node) {
            return site;
        }
        let site = self.free_sites.pop().unwrap_or_else(|| {
            self.n_rows.push(0);
            SiteId(self.n_rows.len() as u32 - 1)
        });
        self.nodes[node.index()].site = site.0;
        self.n_rows[site.index()] = 0;
        site
    }

    /// Takes its site from a node that is a skipped cut now.
    pub(crate) fn release_site(&mut self, node: NodeId) {
        if let Some(site) = self.find_site(node) {
            self.nodes[node.index()].site = NONE;
            self.free_sites.push(site);
        }
    }

    /// Number of rows under a node.
    pub(crate) fn n_rows(&self, node: NodeId) -> usize {
        self.n_rows_at(self.site(self.below_skips(node)))
    }

    /// Number of rows at a site.
    pub(crate) fn n_rows_at(&self, site: SiteId) -> usize {
        self.n_rows[site.index()] as usize
    }

    pub(crate) fn set_n_rows_at(&mut self, site: SiteId, n_rows: usize) {
        self.n_rows[site.index()] = n_rows as u32;
    }

    /// A cut's time; a leaf's is the lifetime, which the arena does not know: infinity.
    pub(crate) fn time(&self, node: NodeId) -> f64 {
        self.nodes[node.index()].time
    }

    pub(crate) fn feature(&self, node: NodeId) -> u32 {
        self.nodes[node.index()].feature
    }

    pub(crate) fn threshold(&self, node: NodeId) -> f64 {
        self.nodes[node.index()].threshold
    }

    /// The one place that decides left or right: `x <= threshold` goes left.
    pub(crate) fn goes_right(&self, node: NodeId, x: impl Fn(u32) -> f64) -> bool {
        let Node { feature, threshold, .. } = self.nodes[node.index()];
        x(feature) > threshold
    }

    pub(crate) fn add_cut(&mut self, time: f64, feature: u32, threshold: f64) -> NodeId {
        self.add(Node { threshold, time, feature, links: [NONE; 2], site: NONE })
    }

    pub(crate) fn add_leaf(&mut self, paused: bool, rows: &[RowId]) -> NodeId {
        let feature = if paused { PAUSED } else { EXHAUSTED };
        let leaf = self.add(Node {
            threshold: f64::NAN,
            time: f64::INFINITY,
            feature,
            links: [NONE; 2],
            site: NONE,
        });
        self.claim_site(leaf);
        self.extend_leaf(leaf, rows);
        leaf
    }

    /// Puts rows into a leaf.
    pub(crate) fn extend_leaf(&mut self, leaf: NodeId, rows: &[RowId]) {
        let node = &mut self.nodes[leaf.index()];
        self.n_rows[node.site as usize] += rows.len() as u32;
        let mut last = node.links[1];
        for &row in rows {
            if last == NONE {
                node.links[0] = row;
            } else {
                self.next[last as usize] = row;
            }
            self.previous[row as usize] = last;
            last = row;
        }
        if last != NONE {
            self.next[last as usize] = NONE;
        }
        node.links[1] = last;
    }

    /// Takes one row out of the leaf that holds it; the leaf may be left empty.
    pub(crate) fn take_row(&mut self, leaf: NodeId, row: RowId) {
        let (before, after) = (self.previous[row as usize], self.next[row as usize]);
        let node = &mut self.nodes[leaf.index()];
        self.n_rows[node.site as usize] -= 1;
        if before == NONE {
            node.links[0] = after;
        } else {
            self.next[before as usize] = after;
        }
        if after == NONE {
            node.links[1] = before;
        } else {
            self.previous[after as usize] = before;
        }
    }

    /// Rows of a leaf, in no order that means anything.
    pub(crate) fn leaf_rows(&self, leaf: NodeId) -> impl Iterator<Item = RowId> + '_ {
        let mut row = self.nodes[leaf.index()].links[0];
        std::iter::from_fn(move || {
            let this = id(row)?.0;
            row = self.next[this as usize];
            Some(this)
        })
    }

    /// Makes room for rows numbered below `n`.
    pub(crate) fn reserve_rows(&mut self, n: usize) {
        if self.next.len() < n {
            self.next.resize(n, NONE);
            self.previous.resize(n, NONE);
        }
    }

    /// Frees one node.
    pub(crate) fn remove(&mut self, node: NodeId) {
        self.release_site(node);
        self.free.push(node);
    }

    /// The node itself unless it is skipped cuts, then the split or leaf below them.
    pub(crate) fn below_skips(&self, mut node: NodeId) -> NodeId {
        while let Kind::Skip { child, .. } = self.kind(node) {
            node = child;
        }
        node
    }

    /// Calls `visit` for every leaf under a node.
    pub(crate) fn for_each_leaf(&self, node: NodeId, mut visit: impl FnMut(NodeId)) {
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            match self.kind(node) {
                Kind::Split(left, right) => stack.extend([right, left]),
                Kind::Skip { child, .. } => stack.push(child),
                Kind::Leaf => visit(node),
            }
        }
    }

    /// All rows under a node.
    pub(crate) fn rows_under(&self, node: NodeId, rows: &mut Vec<RowId>) {
        self.for_each_leaf(node, |leaf| rows.extend(self.leaf_rows(leaf)));
    }

    /// Frees every node under and including a node; the rows' links are left as they are.
    pub(crate) fn remove_subtree(&mut self, node: NodeId, mut removed: impl FnMut(SiteId)) {
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            match self.kind(node) {
                Kind::Split(left, right) => stack.extend([left, right]),
                Kind::Skip { child, .. } => stack.push(child),
                Kind::Leaf => {}
            }
            if let Some(site) = self.find_site(node) {
                removed(site);
            }
            self.remove(node);
        }
    }

    /// Splits and leaves from the root down, parents first, left before right: the tree as users know it.
    pub(crate) fn preorder(&self) -> Vec<NodeId> {
        let mut order = Vec::new();
        let mut stack: Vec<NodeId> = self.root().into_iter().collect();
        while let Some(node) = stack.pop() {
            let node = self.below_skips(node);
            order.push(node);
            if let Kind::Split(left, right) = self.kind(node) {
                stack.extend([right, left]);
            }
        }
        order
    }

    /// Gives back room that growing left over.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.nodes.shrink_to_fit();
        self.n_rows.shrink_to_fit();
        self.free.shrink_to_fit();
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + (self.n_rows.capacity() + self.next.capacity() + self.previous.capacity()) * size_of::<u32>()
            + (self.free.capacity() + self.free_sites.capacity()) * size_of::<u32>()
    }

    /// States every invariant of the structure: times increase, rows add up, every node is reached once,
    /// every leaf holds its rows.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut reached = 0;
        let mut held = vec![false; self.next.len()];
        let mut stack: Vec<(NodeId, f64)> = self.root().map(|root| (root, 0.0)).into_iter().collect();
        while let Some((node, after)) = stack.pop() {
            reached += 1;
            let time = self.time(node);
            if time < after {
                return Err(format!("{node:?} is cut at {time}, its parent at {after}"));
            }
            let children = match self.kind(node) {
                Kind::Split(left, right) => vec![left, right],
                Kind::Skip { child, .. } => vec![child],
                Kind::Leaf => {
                    let mut n = 0;
                    for row in self.leaf_rows(node) {
                        if std::mem::replace(&mut held[row as usize], true) {
                            return Err(format!("row {row} is in two leaves"));
                        }
                        n += 1;
                    }
                    if n != self.n_rows(node) || n == 0 {
                        return Err(format!("leaf {node:?} holds {n} rows and counts {}", self.n_rows(node)));
                    }
                    continue;
                }
            };
            let n: usize = children.iter().map(|&child| self.n_rows(child)).sum();
            if n != self.n_rows(node) {
                return Err(format!("{node:?} counts {} rows, its children {n}", self.n_rows(node)));
            }
            stack.extend(children.into_iter().map(|child| (child, time)));
        }
        let sites = self.preorder().len() + self.free_sites.len();
        if sites != self.n_sites() {
            return Err(format!("{sites} sites are in use or free, of {}", self.n_sites()));
        }
        if reached + self.free.len() != self.nodes.len() {
            return Err(format!(
                "{reached} nodes reached, {} free, {} in all",
                self.free.len(),
                self.nodes.len()
            ));
        }
        Ok(())
    }

    fn add(&mut self, node: Node) -> NodeId {
        if let Some(at) = self.free.pop() {
            self.nodes[at.index()] = node;
            return at;
        }
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }
}

fn id(raw: u32) -> Option<NodeId> {
    (raw != NONE).then_some(NodeId(raw))
}
