//! A tree of the sum as a chain holds it: its nodes, and the leaf of every training row.

use crate::bayes::cuts::Rule;
use crate::bayes::tree::{PreorderNode, PreorderSplit, PreorderTree};
use crate::data::goes_right;
use crate::data::sorted::columns::SortedColumns;

/// The number of a node, with which rows of a leaf are labelled.
pub(crate) type NodeLabel = u16;

/// Largest number of nodes of a tree. The prior is truncated to such trees.
pub(crate) const MAX_NODES: usize = NodeLabel::MAX as usize;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NodeKind {
    /// An unused number.
    Free,
    Leaf,
    Inner(Rule, [NodeLabel; 2]),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Node {
    pub(crate) parent: Option<NodeLabel>,
    pub(crate) depth: u32,
    pub(crate) n_rows: u32,
    /// Whether some feature varies among the node's rows.
    pub(crate) splittable: bool,
    /// The value of a leaf.
    pub(crate) mu: f64,
    pub(crate) kind: NodeKind,
}

impl Node {
    pub(crate) fn is_leaf(&self) -> bool {
        self.kind == NodeKind::Leaf
    }

    pub(crate) fn is_inner(&self) -> bool {
        matches!(self.kind, NodeKind::Inner(..))
    }
}

/// A row that moves from one leaf to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) row: u32,
    pub(crate) from: NodeLabel,
    pub(crate) to: NodeLabel,
}

/// A tree and the leaf of every row.
#[derive(Debug, Clone)]
pub(crate) struct TreeState {
    pub(crate) nodes: Vec<Node>,
    /// The leaf of each row.
    pub(crate) labels: Vec<NodeLabel>,
    free: Vec<NodeLabel>,
}

impl TreeState {
    pub(crate) const ROOT: NodeLabel = 0;

    /// A tree with only the root, which has value zero.
    pub(crate) fn new(table: &SortedColumns) -> Self {
        let mut state = Self { nodes: Vec::new(), labels: Vec::new(), free: Vec::new() };
        let root = PreorderNode { split: None, stats: std::sync::Arc::new(()) };
        state.replace(&PreorderTree { nodes: vec![root] }, table);
        state
    }

    pub(crate) fn get(&self, id: NodeLabel) -> &Node {
        &self.nodes[id as usize]
    }

    /// The cut and the children of an inner node.
    pub(crate) fn cut(&self, id: NodeLabel) -> (Rule, [NodeLabel; 2]) {
        match self.get(id).kind {
            NodeKind::Inner(rule, children) => (rule, children),
            NodeKind::Leaf | NodeKind::Free => unreachable!("an inner node has a cut"),
        }
    }

    /// The rules along a feature above a node, from the last one up, each with whether the node is on its left.
    pub(crate) fn rules_above(&self, id: NodeLabel, feature: u32) -> impl Iterator<Item = (Rule, bool)> {
        let mut below = id;
        let rules = std::iter::from_fn(move || {
            let parent = self.get(below).parent?;
            let (rule, [left, _]) = self.cut(parent);
            let is_left = below == left;
            below = parent;
            Some((rule, is_left))
        });
        rules.filter(move |(rule, _)| rule.cut.feature == feature)
    }

    /// Numbers of the nodes with a property.
    pub(crate) fn select(&self, f: impl Fn(&Node) -> bool) -> impl Iterator<Item = NodeLabel> {
        self.nodes.iter().enumerate().filter(move |(_, node)| f(node)).map(|(id, _)| id as NodeLabel)
    }

    /// The numbers of the leaves.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = NodeLabel> {
        self.select(Node::is_leaf)
    }

    /// Number of leaves.
    pub(crate) fn n_leaves(&self) -> usize {
        // A binary tree has one leaf more than it has inner nodes.
        self.n_nodes().div_ceil(2)
    }

    /// Number of nodes.
    fn n_nodes(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Whether both children of a node are leaves.
    pub(crate) fn is_prunable(&self, node: &Node) -> bool {
        match node.kind {
            NodeKind::Inner(_, children) => children.iter().all(|&id| self.get(id).is_leaf()),
            NodeKind::Free | NodeKind::Leaf => false,
        }
    }

    /// Whether there are unused numbers for two children and `extra` other new nodes.
    pub(crate) fn has_room(&self, extra: usize) -> bool {
        self.n_nodes() + extra + 2 <= MAX_NODES
    }

    /// Splits a leaf and returns the numbers of its children. The caller updates the labels of rows.
    pub(crate) fn grow(&mut self, id: NodeLabel, rule: Rule, children: [Node; 2]) -> [NodeLabel; 2] {
        let ids = children.map(|child| match self.free.pop() {
            Some(free) => {
                self.nodes[free as usize] = child;
                free
            }
            None => {
                self.nodes.push(child);
                (self.nodes.len() - 1) as NodeLabel
            }
        });
        self.nodes[id as usize].kind = NodeKind::Inner(rule, ids);
        ids
    }

    /// Turns a node whose children are leaves into a leaf with value zero. The caller updates the labels of
    /// rows.
    pub(crate) fn prune(&mut self, id: NodeLabel) {
        if let NodeKind::Inner(_, children) = self.get(id).kind {
            for child in children.into_iter().rev() {
                self.nodes[child as usize].kind = NodeKind::Free;
                self.free.push(child);
            }
        }
        let node = &mut self.nodes[id as usize];
        (node.kind, node.mu) = (NodeKind::Leaf, 0.0);
    }

    /// The tree in preorder; `stats` returns the statistics of a node given its value (zero at inner nodes).
    pub(crate) fn to_tree<S>(&self, stats: impl Fn(&Node) -> std::sync::Arc<S>) -> PreorderTree<S> {
        PreorderTree::from_root(Self::ROOT, |id| {
            let node = self.get(id);
            let split = match node.kind {
                NodeKind::Inner(rule, children) => {
                    Some((PreorderSplit::new(rule.cut.feature, rule.threshold), children))
                }
                NodeKind::Free | NodeKind::Leaf => None,
            };
            (stats(node), split)
        })
    }

    /// Replaces the tree by another, with leaf values zero, and finds the leaf of every row.
    pub(crate) fn replace<S>(&mut self, tree: &PreorderTree<S>, table: &SortedColumns) {
        let root =
            Node { parent: None, depth: 0, n_rows: 0, splittable: false, mu: 0.0, kind: NodeKind::Leaf };
        self.free.clear();
        self.nodes.clear();
        self.nodes.resize(tree.nodes.len(), root);
        for (at, node) in tree.nodes.iter().enumerate() {
            let Some(split) = node.split else { continue };
            let rule = Rule::of_split(split.rule, table);
            let children = [at as NodeLabel + 1, split.right as NodeLabel];
            self.nodes[at].kind = NodeKind::Inner(rule, children);
            for child in children {
                self.nodes[child as usize].parent = Some(at as NodeLabel);
                self.nodes[child as usize].depth = self.nodes[at].depth + 1;
            }
        }
        self.label_rows(table);
    }

    /// The tree without the labels of rows, as it is stored.
    pub(crate) fn bare(&self) -> Self {
        Self { nodes: self.nodes.clone(), labels: Vec::new(), free: self.free.clone() }
    }

    /// Restores the labels of rows to a tree from [`Self::bare`]; None if a leaf has no rows.
    pub(crate) fn with_rows(mut self, table: &SortedColumns) -> Option<Self> {
        for node in &mut self.nodes {
            (node.n_rows, node.splittable) = (0, false);
            if let NodeKind::Inner(rule, _) = node.kind {
                let column = ((rule.cut.feature as usize) < table.n_columns())
                    .then(|| table.column(rule.cut.feature))?;
                (column.rank_at(rule.threshold) == Some(rule.cut.rank)).then_some(())?;
            }
        }
        self.label_rows(table);
        let all_have_rows = self.leaves().all(|id| self.get(id).n_rows > 0);
        all_have_rows.then_some(self)
    }

    /// A tree from the nodes and unused numbers in a file.
    ///
    /// # Errors
    /// The reason why these are not a tree.
    pub(crate) fn from_parts(
        kinds: Vec<(NodeKind, f64)>,
        free: Vec<NodeLabel>,
    ) -> std::result::Result<Self, String> {
        let node = |(kind, mu)| Node { parent: None, depth: 0, n_rows: 0, splittable: false, mu, kind };
        let mut state = Self { nodes: kinds.into_iter().map(node).collect(), labels: Vec::new(), free };
        let n = state.nodes.len();
        if n == 0 || n > MAX_NODES {
            return Err(format!("{n} nodes, not 1 to {MAX_NODES}"));
        }
        let (mut stack, mut seen) = (vec![Self::ROOT], vec![false; n]);
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut seen[id as usize], true) {
                return Err(format!("node {id} twice in the tree"));
            }
            match state.get(id).kind {
                NodeKind::Free => return Err(format!("node {id} both free and in the tree")),
                NodeKind::Leaf => {}
                NodeKind::Inner(_, children) => {
                    let depth = state.get(id).depth + 1;
                    for child in children {
                        let Some(child) = state.nodes.get_mut(child as usize) else {
                            return Err(format!("node {child}, a child of node {id}, beyond the last"));
                        };
                        (child.parent, child.depth) = (Some(id), depth);
                    }
                    stack.extend(children);
                }
            }
        }
        for &id in &state.free {
            if !state.nodes.get(id as usize).is_some_and(|node| node.kind == NodeKind::Free) {
                return Err(format!("node {id} in the list of free nodes, but not free"));
            }
            if std::mem::replace(&mut seen[id as usize], true) {
                return Err(format!("node {id} twice in the list of free nodes"));
            }
        }
        match seen.iter().position(|&seen| !seen) {
            Some(id) => Err(format!("node {id} neither in the tree nor in the list of free nodes")),
            None => Ok(state),
        }
    }

    /// Unused numbers; the last one is used next.
    pub(crate) fn free(&self) -> &[NodeLabel] {
        &self.free
    }

    /// The leaf of a row in the subtree of a node.
    pub(crate) fn leaf_below(&self, mut id: NodeLabel, row: u32, table: &SortedColumns) -> NodeLabel {
        while let NodeKind::Inner(rule, [left, right]) = self.get(id).kind {
            id = if goes_right(table.column(rule.cut.feature).rank(row), rule.cut.rank) {
                right
            } else {
                left
            };
        }
        id
    }

    fn label_rows(&mut self, table: &SortedColumns) {
        let mut first = vec![None; self.nodes.len()];
        self.labels.clear();
        for row in 0..table.n_rows() as u32 {
            let mut id = Self::ROOT;
            while let NodeKind::Inner(rule, [left, right]) = self.get(id).kind {
                self.nodes[id as usize].n_rows += 1;
                let rank = table.column(rule.cut.feature).rank(row);
                id = if goes_right(rank, rule.cut.rank) { right } else { left };
            }
            let node = &mut self.nodes[id as usize];
            node.n_rows += 1;
            let first = *first[id as usize].get_or_insert(row);
            node.splittable = node.splittable || differ(table, first, row);
            self.labels.push(id);
        }
        for node in &mut self.nodes {
            node.splittable |= !node.is_leaf();
        }
    }

    /// Asserts that the nodes are a tree, and that every row has the label of the leaf to which the cuts send
    /// it.
    #[cfg(test)]
    pub(crate) fn check(&self, table: &SortedColumns) {
        let mut other = Self::new(table);
        other.replace(&self.to_tree(|_| std::sync::Arc::new(())), table);
        let mut pairs = vec![(Self::ROOT, Self::ROOT)];
        while let Some((own, same)) = pairs.pop() {
            let (node, twin) = (self.get(own), other.get(same));
            assert_eq!(node.depth, twin.depth);
            assert_eq!(node.n_rows, twin.n_rows);
            assert_eq!(node.splittable, twin.splittable);
            match (node.kind, twin.kind) {
                (NodeKind::Inner(a, own_children), NodeKind::Inner(b, twin_children)) => {
                    assert_eq!(a, b);
                    for (child, twin) in own_children.into_iter().zip(twin_children) {
                        assert_eq!(self.get(child).parent, Some(own));
                        pairs.push((child, twin));
                    }
                }
                (NodeKind::Leaf, NodeKind::Leaf) => {
                    let same_rows =
                        self.labels.iter().zip(&other.labels).all(|(&a, &b)| (a == own) == (b == same));
                    assert!(same_rows, "rows are in their leaves");
                }
                kinds => panic!("{kinds:?}"),
            }
        }
        let used = self.select(|node| node.kind != NodeKind::Free).count();
        assert_eq!(used + self.free.len(), self.nodes.len());
        assert_eq!(used, other.nodes.len());
    }
}

/// Whether some feature varies among the `n` rows for which `holds` is true.
pub(crate) fn vary(table: &SortedColumns, n: u32, holds: impl Fn(u32) -> bool) -> bool {
    if n < 2 || table.tells_rows_apart() {
        return n > 1;
    }
    let mut rows = (0..table.n_rows() as u32).filter(|&row| holds(row));
    rows.next().is_some_and(|first| rows.any(|row| differ(table, first, row)))
}

/// Whether two rows differ in some feature.
pub(crate) fn differ(table: &SortedColumns, a: u32, b: u32) -> bool {
    let differs = |d: u32| table.column(d).rank(a) != table.column(d).rank(b);
    a != b && table.telling().iter().any(|&d| differs(d))
}
