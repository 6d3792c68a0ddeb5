//! A hash of everything that determines what a forest predicts and will go on to predict.

use sha2::{Digest, Sha256};

use crate::data::Scalar;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::process::cut::Cut;
use crate::mondrian::process::substitute::SubstituteTerm;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeKind};
use crate::mondrian::tree::statistics::Statistics;

/// Half of a SHA-256.
pub(crate) type Hash = [u8; 16];

/// The hash of settings, domain, rows' contents and trees; not of ids, order or caches. `model` are the bytes that stand
/// for the posterior's settings, `rows` are the hashes of rows, and `trees` those of all trees in order.
pub(crate) fn digest<P: Statistics>(
    forest: &Forest<P>,
    model: &[u8],
    rows: &RowHashes,
    trees: &[Hash],
) -> String {
    let mut hasher = Sha256::new();
    hasher.update(model);
    hasher.update((forest.settings.n_estimators as u64).to_le_bytes());
    hasher.update(forest.settings.seed.to_le_bytes());
    hasher.update(forest.settings.lifetime.to_le_bytes());
    hasher.update((forest.settings.min_samples_split as u64).to_le_bytes());
    hasher.update([forest.settings.predictive as u8]);
    for values in [forest.domain.low(), forest.domain.high(), forest.domain.weights()] {
        hasher.update((values.len() as u64).to_le_bytes());
        for value in values {
            hasher.update((value + 0.0).to_le_bytes());
        }
    }
    for map in forest.domain.maps().unwrap_or_default() {
        hasher.update((map.knots().len() as u64).to_le_bytes());
        for value in map.knots().iter().chain(map.shares()) {
            hasher.update((value + 0.0).to_le_bytes());
        }
    }
    for substitute in forest.domain.substitutes().unwrap_or_default() {
        hasher.update((substitute.terms.len() as u64).to_le_bytes());
        hasher.update((substitute.centre + 0.0).to_le_bytes());
        for SubstituteTerm { feature, slope, from } in &substitute.terms {
            hasher.update(feature.to_le_bytes());
            hasher.update((slope + 0.0).to_le_bytes());
            hasher.update((from + 0.0).to_le_bytes());
        }
    }
    for (feature, categories) in forest.domain.categories() {
        hasher.update(feature.to_le_bytes());
        hasher.update((categories.labels().len() as u64).to_le_bytes());
        for label in categories.labels() {
            let bytes = label.to_bytes();
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
        for place in categories.places().iter().chain([&categories.missing()]) {
            hasher.update((place + 0.0).to_le_bytes());
        }
    }
    let mut sorted: Vec<Hash> = forest.row_index.rows().map(|row| rows.0[row as usize]).collect();
    sorted.sort_unstable();
    hasher.update((sorted.len() as u64).to_le_bytes());
    hasher.update(sorted.as_flattened());
    hasher.update(trees.as_flattened());
    format!("{:032x}", u128::from_be_bytes(finish(hasher)))
}

/// The hash of every row's contents.
pub(crate) struct RowHashes(Vec<Hash>);

impl RowHashes {
    /// `target` gives the bytes that stand for a row's target.
    pub(crate) fn new<P: Statistics>(forest: &Forest<P>, target: impl Fn(P::Target) -> Vec<u8>) -> Self {
        let mut hashes = vec![[0; 16]; forest.row_index.capacity()];
        for row in forest.row_index.rows() {
            let mut hasher = Sha256::new();
            for value in forest.row_values(row) {
                hasher.update(value.to_le_bytes());
            }
            let targets = forest.row_targets();
            hasher.update(target(targets.of(row)));
            hashes[row as usize] = with_weight(finish(hasher), targets.weight(row));
        }
        Self(hashes)
    }
}

/// The hashes of the trees that are drawn here.
pub(crate) fn tree_hashes<P: Statistics>(forest: &Forest<P>, rows: &RowHashes) -> Vec<Hash> {
    with_storage!(forest.flushed_alone(), storage => {
        storage.trees.iter().map(|tree| hash_tree(tree, &rows.0)).collect()
    })
}

/// A tree's hash: splits by their cut and children, leaves by their rows.
fn hash_tree<S: Scalar, P: Statistics>(tree: &Tree<S, P>, of_row: &[Hash]) -> Hash {
    let arena = &tree.arena;
    let order = arena.preorder();
    let mut hashes = vec![[0; 16]; arena.n_indices()];
    let of = |hashes: &[Hash], node: NodeId| hashes[node.index()];
    for &node in order.iter().rev() {
        let mut hasher = Sha256::new();
        if let NodeKind::Split(left, right) = arena.kind(node) {
            let Cut { time, feature, threshold } = arena.cut(node);
            hasher.update(feature.to_le_bytes());
            hasher.update((threshold + 0.0).to_le_bytes());
            hasher.update(time.to_le_bytes());
            hasher.update(of(&hashes, left));
            hasher.update(of(&hashes, right));
        } else {
            let mut rows: Vec<Hash> = arena.leaf_rows(node).map(|row| of_row[row as usize]).collect();
            rows.sort_unstable();
            hasher.update(rows.as_flattened());
        }
        hashes[node.index()] = finish(hasher);
    }
    order.first().map_or([0; 16], |&root| hashes[root.index()])
}

/// A row's hash; rows of weight 1 have that which they had when there were no weights.
fn with_weight(row: Hash, weight: f64) -> Hash {
    if weight == 1.0 {
        return row;
    }
    let mut hasher = Sha256::new();
    hasher.update(b"weight");
    hasher.update(row);
    hasher.update(weight.to_le_bytes());
    finish(hasher)
}

fn finish(hasher: Sha256) -> Hash {
    let mut half = [0; 16];
    half.copy_from_slice(&hasher.finalize()[..16]);
    half
}
