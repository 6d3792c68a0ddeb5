//! Belief propagation as far as some leaves of a tree need, for many hyperparameters: the tree is read once, and then
//! lies in the order in which messages go up, children before parents.

use super::gaussian::{Above, Hyperparameters, Message, Told, UnitClocks, join, sibling};
use super::numbers::Numbers;
use super::tree::Tree;
use crate::data::Scalar;
use crate::tree::NodeId;

/// What a tree says, without rows and cuts.
#[derive(Debug)]
pub(super) struct Skeleton {
    nodes: Vec<Node>,
    /// The nodes on the ways to the leaves that count, parents before children, the root first.
    ways: Vec<Way>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    id: NodeId,
    /// Whether beliefs need what it says.
    is_kept: bool,
    /// Of a leaf.
    n_rows: f64,
    mean: f64,
}

/// A node on a way; numbers count kept nodes, but for the parent's, which counts ways.
#[derive(Debug, Clone, Copy)]
struct Way {
    parent: u32,
    own: u32,
    sibling: u32,
}

/// Where there is nothing.
const NONE: u32 = u32::MAX;

impl Skeleton {
    /// For the ends of some paths from the root; besides, where the belief about each of them will stand.
    pub(super) fn new<'p, S: Scalar>(
        tree: &Tree<S, Numbers>,
        preorder: &[NodeId],
        paths: impl Iterator<Item = &'p [NodeId]> + Clone,
    ) -> (Self, Vec<usize>) {
        let mut kin: Vec<Option<Kin>> = vec![None; tree.arena.n_indices()];
        for (&parent, &node) in paths.clone().flat_map(|path| path.iter().zip(&path[1..])) {
            kin[node.index()] = Some(Kin { parent, sibling: sibling(tree, parent, node) });
        }
        let (nodes, numbers) = nodes(tree, preorder, &kin);
        let number = |node: NodeId| numbers[node.index()];
        let (mut ways, mut places) = (Vec::new(), vec![NONE; kin.len()]);
        for (i, &node) in preorder.iter().enumerate() {
            let (parent, sibling) = match kin[node.index()] {
                Some(Kin { parent, sibling }) => (places[parent.index()], number(sibling)),
                None if i == 0 => (0, NONE),
                None => continue,
            };
            places[node.index()] = ways.len() as u32;
            ways.push(Way { parent, own: number(node), sibling });
        }
        let ends = paths.map(|path| places[path[path.len() - 1].index()] as usize).collect();
        (Self { nodes, ways }, ends)
    }

    /// What all other rows of the tree say about the mean of every node on a way.
    pub(super) fn beliefs(&self, hyper: &Hyperparameters, clocks: &UnitClocks) -> Vec<Above> {
        let kept = self.messages(hyper, clocks);
        let mut above: Vec<Above> = Vec::with_capacity(self.ways.len());
        for (i, way) in self.ways.iter().enumerate() {
            let own = kept[way.own as usize];
            above.push(if i == 0 {
                Above { mean: hyper.mu, variance: own.clock }
            } else {
                let parent = kept[self.ways[way.parent as usize].own as usize];
                above[way.parent as usize].of_child(parent.clock, own.clock, kept[way.sibling as usize])
            });
        }
        above
    }

    /// The upward pass; what kept nodes say.
    fn messages(&self, hyper: &Hyperparameters, clocks: &UnitClocks) -> Vec<Told<f64>> {
        let (mut kept, mut waiting) = (Vec::new(), Vec::<Told<f64>>::new());
        for node in &self.nodes {
            let clock = hyper.gamma1 * clocks.of(node.id);
            let message = if node.id.is_leaf() {
                Message { precision: node.n_rows / hyper.noise_variance, mean: node.mean }
            } else {
                // The right side came before the left.
                let [left, right] = [(); 2].map(|()| waiting.pop().expect("children come first"));
                join(left.at_parent(clock), right.at_parent(clock))
            };
            let told = Told { message, clock };
            waiting.push(told);
            if node.is_kept {
                kept.push(told);
            }
        }
        kept
    }
}

/// A node on a way has these.
#[derive(Debug, Clone, Copy)]
struct Kin {
    parent: NodeId,
    sibling: NodeId,
}

/// All nodes, children before parents, and by node the numbers of those that are kept: the root, and nodes on ways with
/// their siblings.
fn nodes<S: Scalar>(
    tree: &Tree<S, Numbers>,
    preorder: &[NodeId],
    kin: &[Option<Kin>],
) -> (Vec<Node>, Vec<u32>) {
    let mut is_kept = vec![false; kin.len()];
    for &node in preorder {
        if let Some(Kin { sibling, .. }) = kin[node.index()] {
            is_kept[node.index()] = true;
            is_kept[sibling.index()] = true;
        }
    }
    let (mut numbers, mut n_kept) = (vec![NONE; kin.len()], 0);
    let node = |(i, &id): (usize, &NodeId)| {
        let is_kept = is_kept[id.index()] || i == 0;
        if is_kept {
            numbers[id.index()] = n_kept;
            n_kept += 1;
        }
        let n_rows = tree.arena.n_rows(id) as f64;
        Node { id, is_kept, n_rows, mean: tree.statistics.moments(id).mean }
    };
    let nodes = preorder.iter().enumerate().rev().map(node).collect();
    (nodes, numbers)
}
