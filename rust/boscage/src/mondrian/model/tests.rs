//! A third posterior, of the size that a new one has at least: the total of the counts at every node.

use super::*;
use crate::data::{RowId, RowTargets, Rows, Scalar};
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::random::keyed::Stream;

const FEATURES: usize = 2;

/// Statistics: the total of the targets at every node of a tree.
#[derive(Debug, Clone, Default)]
struct NodeTotals(Vec<u64>);

impl NodeTotals {
    fn set(&mut self, node: NodeId, total: u64) -> bool {
        if self.0.len() <= node.index() {
            self.0.resize(node.index() + 1, 0);
        }
        std::mem::replace(&mut self.0[node.index()], total) != total
    }
}

impl Statistics for NodeTotals {
    type Target = u32;

    fn set_leaf(&mut self, leaf: NodeId, rows: &[RowId], targets: RowTargets<'_, u32>) {
        self.set(leaf, rows.iter().map(|&row| u64::from(targets.of(row))).sum());
    }

    fn grow_leaf(&mut self, _: NodeId, _: usize, _: &[RowId], _: RowTargets<'_, u32>) -> Option<bool> {
        None
    }

    fn shrink_leaf(&mut self, _: NodeId, _: usize, _: &[RowId], _: RowTargets<'_, u32>) -> Option<bool> {
        None
    }

    fn join(&mut self, split: NodeId, (left, _): (NodeId, usize), (right, _): (NodeId, usize)) -> bool {
        let total = self.0[left.index()] + self.0[right.index()];
        self.set(split, total)
    }

    fn is_uniform(&self, _: NodeId) -> bool {
        false
    }

    fn clear(&mut self, _: NodeId) {}

    fn fetch_all(&self) {}

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}

/// The posterior: it has no settings.
#[derive(Debug, Clone)]
struct Counting;

impl NodePosterior for Counting {
    type Statistics = NodeTotals;

    fn rows_came(&mut self, _: &[u32]) {}

    fn rows_left(&mut self, _: &[u32]) {}

    fn check_mergeable(&self, _: &Self) -> Result<()> {
        Ok(())
    }

    fn digest_bytes(&self) -> Vec<u8> {
        b"counting".to_vec()
    }

    fn target_bytes(&self, count: u32) -> Vec<u8> {
        count.to_le_bytes().to_vec()
    }
}

/// The prediction: the mean count in the leaf.
struct LeafMeans;

impl Visitor<NodeTotals> for LeafMeans {
    type Chunk = Vec<f64>;

    fn start(&self, n_rows: usize) -> Vec<f64> {
        vec![0.0; n_rows]
    }

    fn visit<S: Scalar>(
        &self,
        _: usize,
        tree: &Tree<S, NodeTotals>,
        row: usize,
        stops: &[Stop],
        means: &mut Vec<f64>,
    ) {
        let leaf = stops[stops.len() - 1].node;
        means[row] += tree.statistics.0[leaf.index()] as f64 / tree.arena.n_rows(leaf) as f64;
    }
}

type Counter = MondrianForest<Counting>;

/// A row and its count, which its id determines.
fn row(id: u64) -> ([f64; FEATURES], u32) {
    let mut stream = Stream::numbered(id, 0);
    (std::array::from_fn(|_| stream.unit()), stream.below(5) as u32)
}

fn rows(ids: &[u64]) -> (Vec<f64>, Vec<u32>) {
    let (x, y): (Vec<_>, Vec<_>) = ids.iter().map(|&id| row(id)).unzip();
    (x.concat(), y)
}

fn batch<'a>(x: &'a [f64], ids: &'a [u64]) -> Batch<'a> {
    Batch { rows: Rows::from_f64(x, FEATURES).unwrap(), ids: Some(ids), weights: None }
}

fn fitted(ids: &[u64], min_samples_split: usize) -> Counter {
    let (x, y) = rows(ids);
    let settings = MondrianSettings { n_estimators: 5, min_samples_split, ..MondrianSettings::default() };
    let domain = Domain::new(vec![0.0; FEATURES], vec![1.0; FEATURES], None).unwrap();
    Counter::draw(settings, Counting, domain, batch(&x, ids), &y, &Run::default()).unwrap()
}

fn predict(forest: &Counter, x: &[f64]) -> Vec<f64> {
    let rows = Rows::from_f64(x, FEATURES).unwrap();
    walk::predict(&forest.forest, rows, &Run::default(), &LeafMeans).unwrap().concat()
}

#[test]
fn a_third_posterior_streams_forgets_and_merges_to_the_same_bits() {
    let (first, second): (Vec<u64>, Vec<u64>) = (0..120).partition(|id| id % 4 > 0);
    let all: Vec<u64> = (0..120).collect();
    let at = rows(&(500..540).collect::<Vec<u64>>()).0;
    let together = fitted(&all, 10);

    let mut streamed = fitted(&first, 10);
    let (x, y) = rows(&second);
    streamed.insert(batch(&x, &second), |_| y).unwrap();
    assert_eq!(streamed.n_pending(), 30);
    let mut merged = fitted(&first, 10);
    merged.merge(&fitted(&second, 10)).unwrap();
    for mut forest in [streamed, merged] {
        assert_eq!(predict(&forest, &at), predict(&together, &at));
        assert_eq!(forest.digest(), together.digest());
        forest.forget(&second).unwrap();
        assert!(!forest.is_flushed());
        assert_eq!(predict(&forest, &at), predict(&fitted(&first, 10), &at));
        assert_eq!(forest.digest(), fitted(&first, 10).digest());
        forest.check().unwrap();
    }
}

/// With a leaf that is never split the prediction of every tree is the mean of all counts.
#[test]
fn a_third_posterior_predicts_from_its_statistics() {
    let ids: Vec<u64> = (0..50).collect();
    let mean = f64::from(rows(&ids).1.iter().sum::<u32>()) / 50.0;
    let found = predict(&fitted(&ids, 1000), &[0.3, 0.4]);
    assert!((found[0] - 5.0 * mean).abs() < 1e-12, "{found:?} and {mean}");
}
