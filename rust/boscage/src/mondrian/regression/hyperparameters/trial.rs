//! Rows that are left out of the trees of a forest, for many hyperparameters.

use crate::control::Run;
use crate::data::{RowId, RowTargets, Scalar, Table};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::prediction::branch_rate::BranchRate;
use crate::mondrian::regression::hierarchy::belief_propagation::{Hyperparameters, Message, UnitClocks};
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::hierarchy::subtree_beliefs::SubtreeBeliefs;
use crate::mondrian::regression::hyperparameters::left_out_rows::{LeftOutRow, choose, paths, place};
use crate::mondrian::regression::hyperparameters::without_parts::{PathSizes, WithoutParts};
use crate::mondrian::regression::joint::common_order;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::settings::{Noise, Posterior, RegressionSettings};
use crate::mondrian::regression::trend::Observed;
use crate::mondrian::tree::Tree;

/// Trees of the mixture (at most).
pub(crate) const TREES: usize = 32;
/// Rows that are left out together: one of so many, or fewer.
pub(super) const PARTS: usize = 8;

/// Clocks of one tree in units of `gamma_1`, for one `gamma_2`.
pub(super) struct Clocks {
    pub(super) nodes: UnitClocks,
    /// Where each chosen row branches off, if it rather does than not.
    branches: Vec<Option<f64>>,
}

/// The chosen rows, each left out of every tree of the mixture.
pub(super) struct LeftOut {
    /// The error, and its variance without factors, by tree and row.
    errors: Vec<Vec<(f64, f64)>>,
    /// For local noise, by tree.
    sizes: Vec<PathSizes>,
}

/// The trees, and what does not depend on hyperparameters.
pub(super) struct Trial<'a, S> {
    pub(super) trees: &'a [Tree<S, NodeMoments>],
    /// For every tree of the mixture.
    mixture: Vec<MixtureTree>,
    /// For every tree, each chosen row's place.
    pub(super) places: Vec<Vec<LeftOutRow>>,
    targets: Vec<f64>,
    /// Of the chosen rows, over their mean.
    pub(super) weights: Vec<f64>,
    pub(super) forest: &'a Forest<NodeMoments>,
    pub(super) storage: &'a Storage<S, NodeMoments>,
    pub(super) observed: Observed<'a>,
    /// All rows in their common order.
    pub(super) order: Vec<RowId>,
    pub(super) chosen: ChosenRows,
    pub(super) run: &'a Run<'a>,
}

/// What the beliefs about the chosen rows' leaves need.
struct MixtureTree {
    subtree: SubtreeBeliefs,
    /// Where the belief about each row's leaf stands.
    ends: Vec<usize>,
    /// For local noise.
    without_parts: Option<WithoutParts>,
}

/// The rows that are left out, one by one or in parts.
pub(super) struct ChosenRows {
    /// The number among the chosen rows, by row.
    pub(super) numbers: Vec<Option<u32>>,
    /// Number of parts. Each is left out as a whole where leaving out row by row takes too long.
    pub(super) n_parts: usize,
}

impl ChosenRows {
    /// Given the number of rows that are not chosen too.
    fn new(rows: &[RowId], n: usize, n_all: usize) -> Self {
        let mut numbers = vec![None; n];
        for (number, &row) in rows.iter().enumerate() {
            numbers[row as usize] = Some(number as u32);
        }
        Self { numbers, n_parts: (rows.len() * PARTS).div_ceil(n_all).max(1) }
    }

    /// The part that a row belongs to, if it is chosen.
    pub(super) fn part(&self, row: RowId) -> Option<usize> {
        self.numbers[row as usize].map(|number| number as usize % self.n_parts)
    }
}

/// The weights of rows over their mean.
fn relative_weights(rows: &[RowId], targets: RowTargets<'_, f64>) -> Vec<f64> {
    let mean = rows.iter().map(|&row| targets.weight(row)).sum::<f64>() / rows.len() as f64;
    rows.iter().map(|&row| targets.weight(row) / mean).collect()
}

impl<'a, S: Scalar> Trial<'a, S> {
    pub(super) fn new(
        forest: &'a Forest<NodeMoments>,
        storage: &'a Storage<S, NodeMoments>,
        observed: Observed<'a>,
        settings: &RegressionSettings,
        run: &'a Run<'a>,
    ) -> Result<Self> {
        // The joint model is judged on all trees.
        let n_trees = if settings.posterior == Posterior::Joint { storage.trees.len() } else { TREES };
        let trees = &storage.trees[..storage.trees.len().min(n_trees)];
        let n_features = forest.domain.n_coordinates();
        let table = Table::new(&storage.values, n_features);
        let order = common_order(forest, storage);
        let rows = choose(&order);
        let chosen = ChosenRows::new(&rows, forest.targets.len(), order.len());
        // One tree after the other, while it is in the cache.
        let each = run.map(trees.len(), |i| {
            let tree = &trees[i];
            let moments = &*observed.moments(tree);
            let mut branch_rate = BranchRate::new(forest.domain.rates(), table);
            let paths = paths(tree, table, &rows).into_iter();
            let place = |(path, &row): (_, &RowId)| {
                let itself = (row, table.row(row), observed.targets);
                place((tree, moments), &mut branch_rate, path, itself, forest.settings.lifetime)
            };
            let places: Vec<LeftOutRow> = paths.zip(&rows).map(place).collect();
            let mixture = (i < TREES).then(|| {
                let order = tree.arena.breadth_first();
                let paths = places.iter().map(|place| place.path.as_slice());
                let (subtree, ends) = SubtreeBeliefs::new(tree, moments, &order, paths.clone());
                let parts = (chosen.n_parts, |row| chosen.part(row));
                let without_parts = (settings.noise == Noise::Local)
                    .then(|| WithoutParts::new((tree, &order), observed.targets, parts, paths));
                MixtureTree { subtree, ends, without_parts }
            });
            Ok((places, mixture))
        })?;
        let (places, mixture): (_, Vec<Option<MixtureTree>>) = each.into_iter().unzip();
        let mixture = mixture.into_iter().flatten().collect();
        let targets = rows.iter().map(|&row| observed.targets.of(row)).collect();
        let weights = relative_weights(&rows, observed.targets);
        Ok(Self { trees, mixture, places, targets, weights, forest, storage, observed, order, chosen, run })
    }

    /// The clocks of the mixture's trees.
    pub(super) fn clocks(&self, gamma2: f64, delay: f64) -> Result<Vec<Clocks>> {
        let lifetime = self.forest.settings.lifetime;
        self.run.map(self.mixture.len(), |i| {
            let nodes = UnitClocks::new(&self.trees[i], lifetime, gamma2, delay);
            let branch =
                |place: &LeftOutRow| branch_time::likely_branch(place.branch.as_ref()?, gamma2, delay);
            Ok(Clocks { nodes, branches: self.places[i].iter().map(branch).collect() })
        })
    }

    /// The chosen rows, each left out of every tree of the mixture.
    pub(super) fn left_out(&self, hyper: &Hyperparameters, clocks: &[Clocks]) -> Result<LeftOut> {
        let each = self.run.map(clocks.len(), |i| {
            let Clocks { nodes, branches } = &clocks[i];
            let MixtureTree { subtree, ends, without_parts } = &self.mixture[i];
            let above = subtree.beliefs(hyper, nodes);
            let rows = self.places[i].iter().zip(&self.targets).zip(ends.iter().zip(branches));
            let error = |((place, y), (&end, &branch)): ((&LeftOutRow, &f64), (&usize, &Option<f64>))| {
                let mut belief = above[end];
                if let Some((n, mean)) = place.others {
                    let others = Message { precision: n / hyper.noise_variance, mean };
                    let branch = branch.map(|clock| hyper.gamma1 * clock);
                    belief = belief.without(others, branch, hyper.gamma1 * nodes.end());
                }
                (y - belief.mean, belief.variance + hyper.noise_variance)
            };
            let sizes = without_parts.as_ref().map(|without| without.sizes(hyper, nodes));
            Ok((rows.map(error).collect::<Vec<_>>(), sizes))
        })?;
        let (errors, sizes): (_, Vec<Option<PathSizes>>) = each.into_iter().unzip();
        Ok(LeftOut { errors, sizes: sizes.into_iter().flatten().collect() })
    }

    /// By tree and chosen row: the error that the tree makes at the row without having seen it, and the error's variance
    /// with local noise.
    pub(super) fn errors_with_noise(&self, left_out: &LeftOut, prior: f64) -> Vec<Vec<(f64, f64)>> {
        let mut errors = left_out.errors.clone();
        for ((errors, tree), sizes) in errors.iter_mut().zip(&self.mixture).zip(&left_out.sizes) {
            let scales = tree.without_parts.iter().flat_map(|without| without.scales(sizes, prior));
            errors.iter_mut().zip(scales).for_each(|((_, variance), scale)| *variance *= scale);
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::mondrian::forest::Batch;
    use crate::mondrian::forest::settings::MondrianSettings;
    use crate::mondrian::forest::storage::AnyStorage;
    use crate::mondrian::process::domain::Domain;
    use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Messages};
    use crate::mondrian::regression::noise::local_noise;
    use crate::mondrian::tree::arena::NodeId;
    use crate::random::keyed::Stream;

    const ROWS: usize = 90;

    fn forest() -> Forest<NodeMoments> {
        let mut stream = Stream::new(1, 0);
        // Thirds are not exact in f32, so that the forest keeps f64.
        let x: Vec<f64> = (0..2 * ROWS).map(|_| stream.unit() / 3.0).collect();
        let y: Vec<f64> = x.chunks(2).map(|x| (9.0 * x[0]).sin() + 3.0 * x[1] * stream.unit()).collect();
        let rows = Rows::from_f64(&x, 2).unwrap();
        let settings = MondrianSettings { n_estimators: 3, ..MondrianSettings::default() };
        let domain = Domain::of_rows(rows, None).unwrap();
        Forest::fit(settings, domain, Batch { rows, ids: None, weights: None }, &y, &Run::default()).unwrap()
    }

    #[test]
    fn local_noise_without_some_rows_is_that_of_a_forest_that_forgot_them() {
        let hyper = Hyperparameters {
            mu: 0.7,
            gamma1: 2.0,
            gamma2: 0.8,
            noise_variance: 0.05,
            delay: 0.0,
            coarse: CoarsePrior::NONE,
        };
        let (prior, run) = (4.0, Run::default());
        let forest = forest();
        let AnyStorage::F64(storage) = forest.flushed_alone() else { panic!("thirds are kept as f64") };
        let settings = RegressionSettings { noise: Noise::Local, ..RegressionSettings::default() };
        let observed = Observed::targets_of(&forest);
        let trial = Trial::new(&forest, storage, observed, &settings, &run).unwrap();
        assert_eq!((trial.targets.len(), trial.chosen.n_parts), (ROWS, PARTS));
        let clocks = trial.clocks(hyper.gamma2, 0.0).unwrap();
        for part in 0..PARTS {
            let is_left_out = |row: &RowId| trial.chosen.part(*row) == Some(part);
            let rows: Vec<RowId> = (0..ROWS as RowId).filter(is_left_out).collect();
            let mut smaller = forest.clone();
            let ids: Vec<u64> = rows.iter().map(|&row| u64::from(row)).collect();
            smaller.forget(&ids).unwrap();
            let AnyStorage::F64(others) = smaller.flushed_alone() else {
                panic!("rows are kept as they are")
            };
            for (i, tree) in others.trees.iter().enumerate() {
                let (order, own) =
                    (tree.arena.preorder(), UnitClocks::new(tree, f64::INFINITY, hyper.gamma2, 0.0));
                let messages = Messages::upward(tree, &tree.statistics, &order, &hyper, &own);
                let rest = (smaller.row_targets(), &tree.statistics);
                let expected = local_noise::estimate((tree, &order), rest, (&messages, &hyper), prior);
                let without = trial.mixture[i].without_parts.as_ref().unwrap();
                let scales = without.scales(&without.sizes(&hyper, &clocks[i].nodes), prior);
                for &row in &rows {
                    let number = trial.chosen.numbers[row as usize].unwrap() as usize;
                    let path = &trial.places[i][number].path;
                    let there = |node: &NodeId| {
                        let mut all = Vec::new();
                        trial.trees[i].arena.collect_rows(*node, &mut all);
                        all.into_iter().filter(|row| !is_left_out(row)).count()
                    };
                    let n = path.iter().map(there).filter(|&n| n > 0).min().unwrap();
                    let x = &storage.values[2 * row as usize..][..2];
                    let mut node = tree.arena.root().unwrap();
                    while tree.arena.n_rows(node) > n {
                        node = tree.arena.follow(node, |d| x[d as usize]).1;
                    }
                    let found = scales[number];
                    assert!((found - expected[node.index()]).abs() < 1e-9 * found, "{found}");
                }
            }
        }
    }
}
