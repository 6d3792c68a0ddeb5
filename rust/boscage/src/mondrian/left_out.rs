//! The regression hierarchy's hyperparameters by the leave-one-out predictive of the forest.
//!
//! The marginal likelihood judges each tree alone: what one tree misses counts as noise. Together trees miss
//! less than each alone, so that a mixture of such trees is smoother than it should be, and far too wide. Here
//! the forest is judged as it predicts: a row's density under the mixture of all trees, each without the row.
//! In one tree that is the belief about the row's leaf with the row's own message taken away: exact for the
//! trees as they are, where the cut that parts the row from all others is the one that the tree has. In a leaf
//! that holds other rows, the row branches off as a test point would.

use super::forest::{Forest, Kept, Run};
use super::gaussian::{self, Hyperparameters, Message, Messages};
use super::local_noise::Sizes;
use super::numbers::Numbers;
use super::regressor::Noise;
use super::route::{Branch, Stop};
use super::tree::Tree;
use crate::data::Scalar;
use crate::error::Result;
use crate::tree::{NodeId, RowId};

/// Trees of the mixture (at most).
const TREES: usize = 32;
/// Rows that are left out (about).
const ROWS: usize = 1000;
/// The noise as a share of `gamma_1`, and `gamma_2` in units of the heuristic's, where the search starts.
const START: (f64, f64) = (1.0 / 16.0, 8.0);
/// Powers of two (at most) from there to where it ends.
const FARTHEST: i32 = 8;
/// No noise is a smaller share of `gamma_1`: rows of one leaf could not be told from atoms.
const LEAST_NOISE: f64 = 1e-3;
/// Steps are taken as long as the mean log density grows by this.
const WORTHWHILE: f64 = 1e-3;

/// The hyperparameters under which rows that are left out are most likely: the noise's share and `gamma_2`
/// by powers of two, and for each of these the best scale of all variances, which moves no mean. `mu_H` is
/// that of `heuristic`, and so is the noise if it is `fixed`: then `gamma_1` is sought instead of its share.
pub(crate) fn maximise<S: Scalar>(
    forest: &Forest<Numbers>,
    kept: &Kept<S, Numbers>,
    heuristic: Hyperparameters,
    noise: Noise,
    fixed: bool,
    run: &Run<'_>,
) -> Result<Hyperparameters> {
    let trial = Trial::new(forest, kept, noise, run)?;
    let evaluate = |(share, gamma2): (i32, i32)| {
        let gamma2 = heuristic.gamma2 * START.1 * f64::from(gamma2).exp2();
        let hyper = if fixed {
            Hyperparameters { gamma1: heuristic.gamma1 * f64::from(-share).exp2(), gamma2, ..heuristic }
        } else {
            let share = (START.0 * f64::from(share).exp2()).max(LEAST_NOISE);
            Hyperparameters { gamma2, noise_variance: heuristic.gamma1 * share, ..heuristic }
        };
        let left_out = trial.left_out(&hyper)?;
        if fixed {
            return Ok((trial.score(&left_out, 1.0), hyper));
        }
        let (score, scale) = trial.best_scale(&left_out);
        let (gamma1, noise_variance) = (hyper.gamma1 * scale, hyper.noise_variance * scale);
        Ok((score, Hyperparameters { gamma1, noise_variance, ..hyper }))
    };
    let mut at = (0, 0);
    let mut best = evaluate(at)?;
    // Every direction as far as it leads, until none does.
    let directions = [(0, 1), (0, -1), (-1, 0), (1, 0)];
    let (mut vain, mut next) = (0, 0);
    while vain < directions.len() {
        let (share, gamma2) = directions[next % directions.len()];
        next += 1;
        vain += 1;
        loop {
            let there = (at.0 + share, at.1 + gamma2);
            if there.0.abs() > FARTHEST || there.1.abs() > FARTHEST {
                break;
            }
            let found = evaluate(there)?;
            // Never a density that is no number.
            let better = found.0 > best.0 + WORTHWHILE;
            if !better {
                break;
            }
            (at, best, vain) = (there, found, 1);
        }
    }
    // Targets of so many orders of magnitude that no density of theirs is a number.
    let usable = best.0.is_finite() && [best.1.gamma1, best.1.noise_variance].iter().all(|v| v.is_normal());
    Ok(if usable { best.1 } else { heuristic })
}

/// Where a row is in a tree that does not have it.
struct Place {
    /// From the root to the leaf.
    path: Vec<NodeId>,
    /// The branch that parts it from the other rows of its leaf, if they do not coincide with it.
    branch: Option<Stop>,
}

struct Trial<'a, S> {
    trees: &'a [Tree<S, Numbers>],
    preorders: Vec<Vec<NodeId>>,
    /// For every tree, each chosen row's place.
    places: Vec<Vec<Place>>,
    targets: Vec<f64>,
    all_targets: &'a [f64],
    lifetime: f64,
    noise: Noise,
    run: &'a Run<'a>,
}

impl<'a, S: Scalar> Trial<'a, S> {
    fn new(
        forest: &'a Forest<Numbers>,
        kept: &'a Kept<S, Numbers>,
        noise: Noise,
        run: &'a Run<'a>,
    ) -> Result<Self> {
        let trees = &kept.trees[..kept.trees.len().min(TREES)];
        let n_features = forest.domain.n_features();
        let preorders: Vec<Vec<NodeId>> = trees.iter().map(|tree| tree.arena.preorder()).collect();
        let values = |row: RowId| &kept.values[row as usize * n_features..][..n_features];
        // Rows are chosen, and summed over, in the order of the first tree's leaves: their own, not that in
        // which they came.
        let every = forest.n_rows().div_ceil(ROWS);
        let mut chosen = Vec::new();
        let mut seen = 0;
        for &node in &preorders[0] {
            if !node.is_leaf() {
                continue;
            }
            let mut rows: Vec<RowId> = trees[0].arena.leaf_rows(node).collect();
            rows.sort_by(|&a, &b| {
                let by_target = forest.targets[a as usize].total_cmp(&forest.targets[b as usize]);
                let pairs = || values(a).iter().zip(values(b));
                by_target.then_with(|| {
                    pairs()
                        .map(|(&a, &b)| {
                            let (a, b): (f64, f64) = (a.into(), b.into());
                            a.total_cmp(&b)
                        })
                        .find(|order| order.is_ne())
                        .unwrap_or(std::cmp::Ordering::Equal)
                })
            });
            for row in rows {
                if seen % every == 0 {
                    chosen.push(row);
                }
                seen += 1;
            }
        }
        let rates = forest.domain.rates();
        let lifetime = forest.settings.lifetime;
        let places = run.map(trees.len(), |i| {
            let arena = &trees[i].arena;
            let root = arena.root().expect("a forest of rows has roots");
            let mut low = vec![0.0; n_features];
            let mut high = vec![0.0; n_features];
            let places = chosen
                .iter()
                .map(|&row| {
                    let x = values(row);
                    let mut node = root;
                    let mut after = 0.0;
                    let mut path = vec![node];
                    while !node.is_leaf() {
                        after = arena.time(node);
                        node = arena.follow(node, |d| x[d as usize].into()).1;
                        path.push(node);
                    }
                    low.fill(f64::INFINITY);
                    high.fill(f64::NEG_INFINITY);
                    for other in arena.leaf_rows(node).filter(|&other| other != row) {
                        for (d, &value) in values(other).iter().enumerate() {
                            let value: f64 = value.into();
                            low[d] = low[d].min(value);
                            high[d] = high[d].max(value);
                        }
                    }
                    let mut rate = 0.0;
                    if arena.n_rows(node) > 1 {
                        for (d, &value) in x.iter().enumerate() {
                            let value: f64 = value.into();
                            rate += rates[d] * ((low[d] - value).max(0.0) + (value - high[d]).max(0.0));
                        }
                    }
                    let stop = Stop { node, after, time: lifetime, branch: Branch::Rate(rate) };
                    Place { path, branch: (rate > 0.0).then_some(stop) }
                })
                .collect();
            Ok(places)
        })?;
        let targets = chosen.iter().map(|&row| forest.targets[row as usize]).collect();
        Ok(Self { trees, preorders, places, targets, all_targets: &forest.targets, lifetime, noise, run })
    }

    /// Squared distance and variance of every chosen row, by tree, under the tree without the row.
    fn left_out(&self, hyper: &Hyperparameters) -> Result<Vec<Vec<(f64, f64)>>> {
        self.run.map(self.trees.len(), |i| {
            let (tree, preorder) = (&self.trees[i], &self.preorders[i]);
            let (messages, _) = Messages::upward(tree, preorder, self.lifetime, hyper);
            let above = gaussian::beliefs(tree, &messages, hyper, self.lifetime, preorder);
            let sizes = (self.noise == Noise::Local)
                .then(|| Sizes::of(tree, preorder, &above, hyper.noise_variance, self.all_targets));
            let each = self.places[i]
                .iter()
                .zip(&self.targets)
                .map(|(place, &y)| {
                    let leaf = place.path[place.path.len() - 1];
                    let n = tree.arena.n_rows(leaf) as f64;
                    let mut belief = above[leaf.index()];
                    if n > 1.0 {
                        let mean = tree.statistics.moments(leaf).mean;
                        let mean = mean + (mean - y) / (n - 1.0);
                        let others = Message { precision: (n - 1.0) / hyper.noise_variance, mean };
                        belief = belief.without(others, place.branch.as_ref(), hyper, self.lifetime);
                    }
                    let apart = y - belief.mean;
                    let scale = sizes.as_ref().map_or(1.0, |sizes| {
                        sizes.without(y, &place.path, tree, &above, hyper.noise_variance)
                    });
                    (apart * apart, (belief.variance + hyper.noise_variance) * scale)
                })
                .collect();
            Ok(each)
        })
    }

    /// Mean log density of the rows, with a factor on all variances.
    fn score(&self, left_out: &[Vec<(f64, f64)>], scale: f64) -> f64 {
        let sum: f64 = (0..self.targets.len())
            .map(|row| {
                let each = left_out.iter().map(|tree| {
                    let (square, variance) = (tree[row].0, tree[row].1 * scale);
                    -0.5 * (square / variance + variance.ln())
                });
                let most = each.clone().fold(f64::NEG_INFINITY, f64::max);
                most + each.map(|term| (term - most).exp()).sum::<f64>().ln()
            })
            .sum();
        sum / self.targets.len() as f64 - (left_out.len() as f64).ln()
    }

    /// The factor on all variances under which the rows are most likely, and their mean log density.
    fn best_scale(&self, left_out: &[Vec<(f64, f64)>]) -> (f64, f64) {
        let score = |log_scale: f64| self.score(left_out, log_scale.exp());
        // Golden section.
        let (mut low, mut high) = (-8.0, 2.0);
        let share = 0.618_033_988_749_895;
        let (mut a, mut b) = (high - share * (high - low), low + share * (high - low));
        let (mut at_a, mut at_b) = (score(a), score(b));
        for _ in 0..16 {
            if at_a > at_b {
                (high, b, at_b) = (b, a, at_a);
                a = high - share * (high - low);
                at_a = score(a);
            } else {
                (low, a, at_a) = (a, b, at_b);
                b = low + share * (high - low);
                at_b = score(b);
            }
        }
        if at_a > at_b { (at_a, a.exp()) } else { (at_b, b.exp()) }
    }
}
