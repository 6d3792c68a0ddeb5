//! A hash of everything that determines what a forest predicts and will go on to predict.

use sha2::{Digest, Sha256};

use crate::data::{RowId, Scalar};
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::process::cut::Cut;
use crate::mondrian::process::domain::Domain;
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
    let of_rows = forest.row_index.rows().map(|row| rows.of(row)).collect();
    digest_of_rows(&forest.settings, &forest.domain, model, of_rows, trees)
}

/// The same, given the hashes of all rows in any order.
pub(crate) fn digest_of_rows(
    settings: &MondrianSettings,
    domain: &Domain,
    model: &[u8],
    mut rows: Vec<Hash>,
    trees: &[Hash],
) -> String {
    let mut hasher = Sha256::new();
    hasher.update(model);
    hasher.update((settings.n_estimators as u64).to_le_bytes());
    hasher.update(settings.seed.to_le_bytes());
    hasher.update(settings.lifetime.to_le_bytes());
    hasher.update((settings.min_samples_split as u64).to_le_bytes());
    hasher.update([settings.predictive as u8]);
    for values in [domain.low(), domain.high(), domain.weights()] {
        hasher.update((values.len() as u64).to_le_bytes());
        for value in values {
            hasher.update((value + 0.0).to_le_bytes());
        }
    }
    for map in domain.maps().unwrap_or_default() {
        hasher.update((map.knots().len() as u64).to_le_bytes());
        for value in map.knots().iter().chain(map.shares()) {
            hasher.update((value + 0.0).to_le_bytes());
        }
    }
    for substitute in domain.substitutes().unwrap_or_default() {
        hasher.update((substitute.terms.len() as u64).to_le_bytes());
        hasher.update((substitute.centre + 0.0).to_le_bytes());
        for SubstituteTerm { feature, slope, from } in &substitute.terms {
            hasher.update(feature.to_le_bytes());
            hasher.update((slope + 0.0).to_le_bytes());
            hasher.update((from + 0.0).to_le_bytes());
        }
    }
    for (feature, categories) in domain.categories() {
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
    rows.sort_unstable();
    hasher.update((rows.len() as u64).to_le_bytes());
    hasher.update(rows.as_flattened());
    hasher.update(trees.as_flattened());
    format!("{:032x}", u128::from_be_bytes(finish(hasher)))
}

/// The hash of every row's contents.
pub(crate) struct RowHashes(Vec<Hash>);

impl RowHashes {
    pub(crate) fn of(&self, row: RowId) -> Hash {
        self.0[row as usize]
    }

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
        let of_tree = |tree| hash_subtrees(&forest.domain, tree, tree.arena.root().as_slice(), rows);
        storage.trees.iter().map(|tree| of_tree(tree).first().copied().unwrap_or([0; 16])).collect()
    })
}

/// The hashes of some of a tree's subtrees, by their roots: splits by their cut and children, leaves by their rows.
pub(crate) fn hash_subtrees<S: Scalar, P: Statistics>(
    domain: &Domain,
    tree: &Tree<S, P>,
    roots: &[NodeId],
    of_row: &RowHashes,
) -> Vec<Hash> {
    let arena = &tree.arena;
    let mut hashes = vec![[0; 16]; arena.n_indices()];
    for &root in roots {
        for &node in arena.preorder_of(Some(root)).iter().rev() {
            hashes[node.index()] = if let NodeKind::Split(left, right) = arena.kind(node) {
                hash_split(domain, arena.cut(node), [left, right].map(|child| hashes[child.index()]))
            } else {
                let mut rows: Vec<Hash> = arena.leaf_rows(node).map(|row| of_row.of(row)).collect();
                rows.sort_unstable();
                let mut hasher = Sha256::new();
                hasher.update(rows.as_flattened());
                finish(hasher)
            };
        }
    }
    roots.iter().map(|root| hashes[root.index()]).collect()
}

/// The hash of a split, given those of its children.
pub(crate) fn hash_split(domain: &Domain, cut: Cut, [left, right]: [Hash; 2]) -> Hash {
    let Cut { time, coordinate, threshold } = cut;
    let mut hasher = Sha256::new();
    hasher.update((domain.feature_of(coordinate as usize) as u32).to_le_bytes());
    hasher.update((threshold + 0.0).to_le_bytes());
    hasher.update(time.to_le_bytes());
    hasher.update(left);
    hasher.update(right);
    finish(hasher)
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
