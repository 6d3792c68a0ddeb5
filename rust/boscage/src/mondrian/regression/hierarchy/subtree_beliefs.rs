//! Belief propagation restricted to the paths from the root to some leaves, repeated for many hyperparameters.
//!
//! The tree is read once, into the order in which messages go up: depth by depth, from the last to the root. The two
//! messages that a split joins are then next to each other, and a split seldom waits for a message that was computed
//! just before.

use crate::data::Scalar;
use crate::mondrian::regression::hierarchy::belief_propagation::{
    Above, Hyperparameters, Message, Told, UnitClocks, join,
};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// A tree without rows and cuts. Nodes are numbered from the last one up to the root: the k-th split's
/// children are the numbers 2k and 2k + 1.
#[derive(Debug)]
pub(crate) struct SubtreeBeliefs {
    leaves: Vec<LeafEntry>,
    splits: Vec<SplitEntry>,
    /// The nodes on the paths to these leaves, parents before children, the root first.
    ways: Vec<Way>,
}

#[derive(Debug, Clone, Copy)]
struct LeafEntry {
    number: u32,
    /// As how many rows its rows count.
    n: f64,
    mean: f64,
}

#[derive(Debug, Clone, Copy)]
struct SplitEntry {
    number: u32,
    /// Its place among clocks.
    rank: u32,
}

/// A node on a path.
#[derive(Debug, Clone, Copy)]
struct Way {
    number: u32,
    /// Its parent's place among ways.
    parent: u32,
}

impl SubtreeBeliefs {
    /// For the ends of some paths from the root, given the moments of targets, and all nodes as [`Arena::breadth_first`] does; also the
    /// position of the belief about each end.
    ///
    /// [`Arena::breadth_first`]: crate::mondrian::tree::arena::Arena::breadth_first
    pub(crate) fn new<'p, S: Scalar>(
        tree: &Tree<S, NodeMoments>,
        moments: &NodeMoments,
        order: &[NodeId],
        paths: impl Iterator<Item = &'p [NodeId]> + Clone,
    ) -> (Self, Vec<usize>) {
        let mut is_on_way = vec![false; tree.arena.n_indices()];
        for path in paths.clone() {
            for node in path.iter().rev() {
                if std::mem::replace(&mut is_on_way[node.index()], true) {
                    // Another path marked the nodes above.
                    break;
                }
            }
        }
        let (mut leaves, mut splits) = (Vec::new(), Vec::new());
        for (number, &node) in (0..).zip(order.iter().rev()) {
            if node.is_leaf() {
                let n = moments.weight(node, tree.arena.n_rows(node));
                leaves.push(LeafEntry { number, n, mean: moments.moments(node).mean });
            } else {
                splits.push(SplitEntry { number, rank: node.rank() as u32 });
            }
        }
        let last = order.len() - 1;
        let (mut ways, mut places) = (Vec::new(), vec![0; is_on_way.len()]);
        for (i, &node) in order.iter().enumerate().filter(|(_, node)| is_on_way[node.index()]) {
            let number = last - i;
            // The root has no parent.
            let parent = splits.get(number / 2).map(|split| order[last - split.number as usize]);
            let parent = parent.map_or(0, |parent| places[parent.index()]);
            places[node.index()] = ways.len() as u32;
            ways.push(Way { number: number as u32, parent });
        }
        let ends = paths.map(|path| places[path[path.len() - 1].index()] as usize).collect();
        (Self { leaves, splits, ways }, ends)
    }

    /// The belief about every node on a path from all rows that are not below it; the clock has no coarse part.
    pub(crate) fn beliefs(&self, hyper: &Hyperparameters, clocks: &UnitClocks) -> Vec<Above> {
        let told = self.messages(hyper, clocks);
        let told = |number: u32| told[number as usize];
        let mut above: Vec<Above> = Vec::with_capacity(self.ways.len());
        for (i, way) in self.ways.iter().enumerate() {
            let own = told(way.number).clock;
            above.push(if i == 0 {
                Above { mean: hyper.mu, variance: own }
            } else {
                let parent = told(self.ways[way.parent as usize].number).clock;
                above[way.parent as usize].of_child(parent, own, told(way.number ^ 1))
            });
        }
        above
    }

    /// The upward pass; messages by number.
    fn messages(&self, hyper: &Hyperparameters, clocks: &UnitClocks) -> Vec<Told<f64>> {
        let nothing =
            Told { message: Message { precision: 0.0, mean: 0.0 }, clock: hyper.gamma1 * clocks.end() };
        let mut told = vec![nothing; self.leaves.len() + self.splits.len()];
        for &LeafEntry { number, n, mean } in &self.leaves {
            told[number as usize].message = Message { precision: n / hyper.noise_variance, mean };
        }
        for (k, &SplitEntry { number, rank }) in self.splits.iter().enumerate() {
            let clock = hyper.gamma1 * clocks.of_split(rank as usize);
            // Numbers run from the last node to the first: the right child comes before the left.
            let [left, right] = [told[2 * k + 1], told[2 * k]].map(|side| side.at_parent(clock));
            told[number as usize] = Told { message: join(left, right), clock };
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Run;
    use crate::data::Rows;
    use crate::mondrian::forest::settings::MondrianSettings;
    use crate::mondrian::forest::storage::AnyStorage;
    use crate::mondrian::forest::{Batch, Forest};
    use crate::mondrian::process::domain::Domain;
    use crate::mondrian::regression::hierarchy::belief_propagation;
    use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Messages};
    use crate::random::keyed::Stream;

    /// Also for trees with free nodes, and nodes in no order.
    #[test]
    fn beliefs_are_those_of_the_whole_tree() {
        let mut stream = Stream::new(1, 0);
        let x: Vec<f64> = (0..600).map(|_| stream.unit() / 3.0).collect();
        let y: Vec<f64> = x.chunks(2).map(|x| (9.0 * x[0]).sin() + x[1]).collect();
        let rows = Rows::from_f64(&x, 2).unwrap();
        let settings =
            MondrianSettings { n_estimators: 3, min_samples_split: 3, ..MondrianSettings::default() };
        let (domain, run) = (Domain::of_rows(rows, None).unwrap(), Run::default());
        let mut forest =
            Forest::fit(settings, domain, Batch { rows, ids: None, weights: None }, &y, &run).unwrap();
        forest.forget(&(0..300).step_by(7).collect::<Vec<u64>>()).unwrap();
        let hyper = Hyperparameters {
            mu: 0.7,
            gamma1: 2.0,
            gamma2: 0.8,
            noise_variance: 0.05,
            delay: 0.0,
            coarse: CoarsePrior::NONE,
        };
        let AnyStorage::F64(storage) = forest.flushed_alone() else { panic!("thirds are kept as f64") };
        for tree in &storage.trees {
            let clocks = UnitClocks::new(tree, 5.0, hyper.gamma2, 0.0);
            let preorder = tree.arena.preorder();
            let messages = Messages::upward(tree, &tree.statistics, &preorder, &hyper, &clocks);
            let expected = belief_propagation::beliefs(tree, &messages, &hyper, &preorder);
            let to = |x: &[f64]| {
                let mut path = vec![preorder[0]];
                while !path[path.len() - 1].is_leaf() {
                    path.push(tree.arena.follow(path[path.len() - 1], |d| x[d as usize]).1);
                }
                path
            };
            let paths: Vec<Vec<NodeId>> = x.chunks(2).step_by(20).map(to).collect();
            let order = tree.arena.breadth_first();
            let (subtree_beliefs, ends) =
                SubtreeBeliefs::new(tree, &tree.statistics, &order, paths.iter().map(Vec::as_slice));
            let found = subtree_beliefs.beliefs(&hyper, &clocks);
            for (path, end) in paths.iter().zip(ends) {
                let expected = expected[path[path.len() - 1].index()];
                assert_eq!((found[end].mean, found[end].variance), (expected.mean, expected.variance));
            }
        }
    }
}
