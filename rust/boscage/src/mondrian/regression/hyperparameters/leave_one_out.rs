//! Hyperparameters by the leave-one-out predictive of the forest.
//!
//! The marginal likelihood judges each tree alone, and attributes to noise what one tree cannot explain. The trees
//! together explain more, so a mixture of trees with such hyperparameters is too smooth and much too wide. This rule
//! judges the forest's own predictions: the density of each row's target under the mixture of all trees, each without
//! the row.
//!
//! In one tree, a row is left out by taking its own message away from the belief about its leaf. This is exact for the
//! given trees, in which the cut that separates the row from all others is known. In a leaf that holds other rows too,
//! the row branches off as a test row would.

use crate::control::Run;
use crate::data::RowId;
use crate::data::{Scalar, Table};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::Trees;
use crate::mondrian::prediction::branch_rate::BranchRate;
use crate::mondrian::regression::hierarchy::belief_propagation;
use crate::mondrian::regression::hierarchy::belief_propagation::{
    Hyperparameters, Message, Messages, UnitClocks,
};
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::hierarchy::subtree_beliefs::SubtreeBeliefs;
use crate::mondrian::regression::hyperparameters::far_prior::FarPrior;
use crate::mondrian::regression::hyperparameters::left_out_rows::{LeftOutRow, choose, paths, place};
use crate::mondrian::regression::hyperparameters::search::{best_scale, climb, score};
use crate::mondrian::regression::joint::{Joint, Standard, common_order};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::noise::local_noise::{PRIOR, Sizes};
use crate::mondrian::regression::noise::noise_tails::NoiseTails;
use crate::mondrian::regression::settings::{Noise, Posterior, RegressionSettings};
use crate::mondrian::regression::trend::start_line::StartLine;
use crate::mondrian::regression::trend::{Design, Observed};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// Trees of the mixture (at most).
pub(crate) const TREES: usize = 32;
/// The noise as a share of `gamma_1`, and `gamma_2` in units of the heuristic's, where the search starts.
const START: (f64, f64) = (1.0 / 16.0, 8.0);
/// The smallest noise as a share of `gamma_1`: with less, rows of one leaf would look like atoms.
const LEAST_NOISE: f64 = 1e-3;
/// Steps of the spread from none to that of the mixture.
const FULL_SPREAD: f64 = 4.0;
/// Values of `gamma_2` whose clocks are kept, 8 bytes a split each: that of the best point so far, and its neighbours.
const REMEMBERED: usize = 3;
/// Rows that are left out together of the joint model: one of so many, or fewer.
const PARTS: usize = 8;
/// Trees (at most) for which its hyperparameters are sought.
const FEW_TREES: usize = 16;
/// Accuracy of its weights.
const TOLERANCE: f64 = 1e-2;

/// While hyperparameters are sought, targets are rounded to this, in the joint model's units. Equations that are
/// solved to a hundredth amplify the last bits of targets, which differ where targets are shifted and scaled.
const GRID: f64 = 1.0 / 65536.0;

/// The joint model's part in a forest's predictions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Together {
    /// The joint model.
    pub(crate) model: Standard,
    /// The joint mean's share in the forest's, beside that of the mixture's mean.
    pub(crate) share: f64,
    /// Factor on the distances of the mixture's components from their mean.
    pub(crate) spread: f64,
}

/// Everything that a rule chooses.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) hyper: Hyperparameters,
    /// Of the first trees, as far as they are known.
    pub(crate) clocks: Vec<UnitClocks>,
    /// For the joint posterior.
    pub(crate) together: Option<Together>,
    /// For local noise.
    pub(crate) tails: Option<NoiseTails>,
    /// For local noise: how many rows a parent's factor counts as.
    pub(crate) prior: f64,
}

impl Chosen {
    /// Hyperparameters, and nothing else.
    pub(crate) fn alone(hyper: Hyperparameters) -> Self {
        Self { hyper, clocks: Vec::new(), together: None, tails: None, prior: PRIOR }
    }
}

/// The hyperparameters under which rows that are left out are most likely: the noise's share and `gamma_2`
/// by powers of two, and for each of these the best scale of all variances, which moves no mean. `mu_H` is
/// that of `heuristic`, and so is the noise if it is fixed: then `gamma_1` is sought instead of its share.
/// What has more variance than `far` away from all data is delayed, and judged so.
///
/// For the joint posterior, those under which all trees together predict such rows with least squared error
/// come first. Then, beside the others, the share of their mean and the spread of the trees about it.
///
/// For local noise, its tails are chosen, and how many rows a parent's factor counts as. Here rows are left out in
/// parts. A row that lies far off increases the errors of its neighbours, so errors that it contributed to would
/// predict its own.
///
/// With a trend, `observed` are the residuals of a line, and the joint model is judged by those of the lines of the rows that
/// are not left out.
pub(crate) fn maximise<S: Scalar>(
    forest: &Forest<NodeMoments>,
    storage: &Storage<S, NodeMoments>,
    (observed, line): (Observed<'_>, Option<(&Design, &StartLine)>),
    heuristic: Hyperparameters,
    far: Option<FarPrior>,
    settings: &RegressionSettings,
    run: &Run<'_>,
) -> Result<Chosen> {
    let trial = Trial::new(forest, storage, observed, settings, run)?;
    let fixed = settings.noise_variance.is_some();
    let at = |heuristic: &Hyperparameters, share: i32, gamma2: i32| {
        let gamma2 = heuristic.gamma2 * START.1 * f64::from(gamma2).exp2();
        if fixed {
            let gamma1 = heuristic.gamma1 * f64::from(-share).exp2();
            return Hyperparameters { gamma1, gamma2, ..*heuristic };
        }
        let share = (START.0 * f64::from(share).exp2()).max(LEAST_NOISE);
        Hyperparameters { gamma2, noise_variance: heuristic.gamma1 * share, ..*heuristic }
    };
    let joint = match settings.posterior {
        Posterior::Joint => {
            let standard = Standard::new(&heuristic);
            Some(trial.joint(standard, line, |[share, gamma2]| at(&standard.hyper, share, gamma2))?)
        }
        Posterior::Exact | Posterior::Fast => None,
    };
    // Many points of the grid share a gamma_2, and so most of the work of clocks.
    let mut clocks: Vec<(f64, Vec<Clocks>)> = Vec::new();
    let mut best = f64::NEG_INFINITY;
    let evaluate = |[share, gamma2, spread, prior]: [i32; 4]| {
        let hyper = at(&heuristic, share, gamma2);
        let prior = PRIOR * f64::from(prior).exp2();
        match clocks.iter().position(|known| known.0 == hyper.gamma2) {
            Some(known) => clocks[..=known].rotate_right(1),
            None => {
                clocks.truncate(REMEMBERED - 1);
                clocks.insert(0, (hyper.gamma2, trial.clocks(hyper.gamma2, 0.0)?));
            }
        }
        let judge = |hyper: Hyperparameters, clocks: &[Clocks], most: f64| -> Result<(f64, Chosen)> {
            let mut left_out = trial.left_out(&hyper, clocks, prior)?;
            let together = joint.as_ref().map(|(model, errors)| {
                let spread = (f64::from(spread) / FULL_SPREAD).clamp(0.0, 1.0);
                Together { model: *model, share: recentre(&mut left_out, errors, spread), spread }
            });
            let alone = Chosen { together, prior, ..Chosen::alone(hyper) };
            let rows = by_row(&left_out);
            if fixed {
                return Ok((score(&rows, 1.0), alone));
            }
            let (score, scale, tails) = trial.likeliest(&rows, most);
            let (gamma1, noise_variance) = (hyper.gamma1 * scale, hyper.noise_variance * scale);
            Ok((score, Chosen { hyper: Hyperparameters { gamma1, noise_variance, ..hyper }, tails, ..alone }))
        };
        let (score, chosen) = judge(hyper, &clocks[0].1, f64::INFINITY)?;
        // Variances that are too great far away are judged as they will be, unless the point is no better without that.
        let delayed = far.and_then(|far| far.delayed(&chosen.hyper)).filter(|_| score > best);
        let (score, chosen) = match delayed {
            Some(hyper) => judge(hyper, &trial.clocks(hyper.gamma2, hyper.delay)?, 1.0)?,
            None => (score, chosen),
        };
        best = best.max(score);
        Ok((score, chosen))
    };
    let mut directions = vec![[0, 1, 0, 0], [0, -1, 0, 0], [-1, 0, 0, 0], [1, 0, 0, 0]];
    if joint.is_some() {
        directions.extend([[0, 0, -1, 0], [0, 0, 1, 0]]);
    }
    if settings.noise == Noise::Local {
        directions.extend([[0, 0, 0, 1], [0, 0, 0, -1]]);
    }
    let (score, found) = climb([0, 0, FULL_SPREAD as i32, 0], &directions, evaluate)?;
    // Targets of so many orders of magnitude that no density is finite.
    let Hyperparameters { gamma1, noise_variance, .. } = found.hyper;
    let usable = score.is_finite() && [gamma1, noise_variance].iter().all(|v| v.is_normal());
    if !usable {
        return Ok(Chosen { together: found.together, ..Chosen::alone(heuristic) });
    }
    let known = clocks.into_iter().find(|known| known.0 == found.hyper.gamma2 && found.hyper.delay == 0.0);
    let clocks = known.into_iter().flat_map(|known| known.1).map(|clocks| clocks.nodes).collect();
    Ok(Chosen { clocks, ..found })
}

/// Squares of distances over variances, and the variances' logarithms, by row and tree.
fn by_row(left_out: &[Vec<(f64, f64)>]) -> Vec<Vec<(f64, f64)>> {
    let row = |row: usize| {
        let each = left_out.iter().map(|tree| tree[row]);
        each.map(|(miss, variance)| (miss / variance * miss, variance.ln())).collect()
    };
    (0..left_out[0].len()).map(row).collect()
}

/// Moves every tree's errors (`left_out`, by tree and row) towards the joint model's `errors`, as far as
/// that lowers the squared error; returns the share of the way. About their new mean, trees' deviations are
/// multiplied by `spread`.
fn recentre(left_out: &mut [Vec<(f64, f64)>], errors: &[f64], spread: f64) -> f64 {
    let n_trees = left_out.len() as f64;
    let own: Vec<f64> =
        (0..errors.len()).map(|row| left_out.iter().map(|tree| tree[row].0 / n_trees).sum()).collect();
    let (mut product, mut square) = (0.0, 0.0);
    for (own, error) in own.iter().zip(errors) {
        product += own * (own - error);
        square += (own - error) * (own - error);
    }
    let share = product / square;
    // Both are equally good, or squares overflow.
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    for tree in left_out {
        for ((miss, _), (own, error)) in tree.iter_mut().zip(own.iter().zip(errors)) {
            *miss = own + share * (error - own) + spread * (*miss - own);
        }
    }
    share
}

/// Clocks of one tree in units of `gamma_1`, for one `gamma_2`.
struct Clocks {
    nodes: UnitClocks,
    /// Where each chosen row branches off, if it rather does than not.
    branches: Vec<Option<f64>>,
}

struct Trial<'a, S> {
    trees: &'a [Tree<S, NodeMoments>],
    /// For every tree its nodes, parents before children.
    orders: Vec<Vec<NodeId>>,
    /// For every tree of the mixture, what beliefs about the chosen rows' leaves need, and where these beliefs stand.
    subtree_beliefs: Vec<(SubtreeBeliefs, Vec<usize>)>,
    /// For every tree, each chosen row's place.
    places: Vec<Vec<LeftOutRow>>,
    targets: Vec<f64>,
    forest: &'a Forest<NodeMoments>,
    observed: Observed<'a>,
    /// All rows in their common order.
    order: Vec<RowId>,
    /// The number among the chosen rows, by row.
    numbers: Vec<Option<u32>>,
    noise: Noise,
    run: &'a Run<'a>,
}

impl<'a, S: Scalar> Trial<'a, S> {
    fn new(
        forest: &'a Forest<NodeMoments>,
        storage: &'a Storage<S, NodeMoments>,
        observed: Observed<'a>,
        settings: &RegressionSettings,
        run: &'a Run<'a>,
    ) -> Result<Self> {
        // The joint model is judged on all trees.
        let n_trees = if settings.posterior == Posterior::Joint { storage.trees.len() } else { TREES };
        let trees = &storage.trees[..storage.trees.len().min(n_trees)];
        let n_features = forest.domain.n_features();
        let table = Table::new(&storage.values, n_features);
        let order = common_order(forest, storage);
        let chosen = choose(&order, |a, b| {
            forest.targets[a as usize] == forest.targets[b as usize] && table.row(a) == table.row(b)
        });
        // One tree after the other, while it is in the cache.
        let each = run.map(trees.len(), |i| {
            let tree = &trees[i];
            let moments = observed.moments(i, tree);
            let order = tree.arena.breadth_first();
            let mut branch_rate = BranchRate::new(forest.domain.rates(), table);
            let paths = paths(tree, table, &chosen).into_iter();
            let place = |(path, &row): (_, &RowId)| {
                let itself = (row, table.row(row), observed.targets[row as usize]);
                place((tree, moments), &mut branch_rate, path, itself, forest.settings.lifetime)
            };
            let places: Vec<LeftOutRow> = paths.zip(&chosen).map(place).collect();
            let paths = places.iter().map(|place| place.path.as_slice());
            let subtree_beliefs = (i < TREES).then(|| SubtreeBeliefs::new(tree, moments, &order, paths));
            Ok((order, places, subtree_beliefs))
        })?;
        let (mut orders, mut places, mut all_beliefs) = (Vec::new(), Vec::new(), Vec::new());
        for (order, places_of_tree, beliefs) in each {
            orders.push(order);
            places.push(places_of_tree);
            all_beliefs.extend(beliefs);
        }
        let targets = chosen.iter().map(|&row| observed.targets[row as usize]).collect();
        let mut numbers = vec![None; forest.targets.len()];
        for (number, &row) in chosen.iter().enumerate() {
            numbers[row as usize] = Some(number as u32);
        }
        let noise = settings.noise;
        Ok(Self {
            trees,
            orders,
            subtree_beliefs: all_beliefs,
            places,
            targets,
            forest,
            observed,
            order,
            numbers,
            noise,
            run,
        })
    }

    /// The joint model, and its error for every chosen row. Rows are left out in parts.
    fn joint(
        &self,
        standard: Standard,
        line: Option<(&Design, &StartLine)>,
        at: impl Fn([i32; 2]) -> Hyperparameters,
    ) -> Result<(Standard, Vec<f64>)> {
        let lifetime = self.forest.settings.lifetime;
        let round = |y: f64| (standard.target(y) / GRID).round() * GRID;
        // By part, or the same for all of them.
        let targets: Vec<Vec<f64>> = match line {
            None => vec![self.order.iter().map(|&row| round(self.observed.targets[row as usize])).collect()],
            Some((design, line)) => {
                let part = |part: usize| {
                    let others = |place: usize| !self.is_left_out(self.order[place], (part, self.n_parts()));
                    let mut coefficients = line.of_some(design, others);
                    coefficients[0] = 0.0;
                    (0..self.order.len()).map(|place| round(design.residual(place, &coefficients))).collect()
                };
                (0..self.n_parts()).map(part).collect()
            }
        };
        let errors = |trees: &Trees, hyper: Hyperparameters| {
            let joint = Joint::new(trees, hyper, self.run)?;
            match self.n_parts() {
                1 => self.errors::<1>(&joint, &targets, 1),
                n_parts => self.errors::<PARTS>(&joint, &targets, n_parts),
            }
        };
        let few = &self.trees[..self.trees.len().min(FEW_TREES)];
        let few = Trees::new(few, &self.order, lifetime, self.run)?;
        let evaluate = |point: [i32; 2]| {
            let hyper = at(point);
            let errors = errors(&few, hyper)?;
            let square = errors.iter().map(|error| error * error / errors.len() as f64).sum::<f64>();
            Ok((-0.5 * square.ln(), hyper))
        };
        let (_, hyper) = climb([0, 0], &[[0, 1], [0, -1], [-1, 0], [1, 0]], evaluate)?;
        let all = Trees::new(self.trees, &self.order, lifetime, self.run)?;
        let errors = errors(&all, hyper)?.into_iter().map(|error| standard.difference(error)).collect();
        Ok((standard.with(hyper), errors))
    }

    /// The joint model's error for every chosen row, `n_parts` parts of them being left out in turn.
    fn errors<const L: usize>(
        &self,
        joint: &Joint<'_>,
        targets: &[Vec<f64>],
        n_parts: usize,
    ) -> Result<Vec<f64>> {
        let target = |place: usize, part: usize| targets[part.min(targets.len() - 1)][place];
        let by_part: Vec<[f64; L]> =
            (0..self.order.len()).map(|place| std::array::from_fn(|part| target(place, part))).collect();
        let left_out = |place: usize, part: usize| {
            part >= n_parts || self.is_left_out(self.order[place], (part, n_parts))
        };
        let sums = joint.sums(&joint.weights(&by_part, left_out, TOLERANCE)?)?;
        let numbers = self.order.iter().map(|&row| self.numbers[row as usize]);
        let chosen = numbers.enumerate().filter_map(|(place, row)| Some((place, row? as usize)));
        let rows = chosen.map(|(place, row)| {
            let means = (0..sums.len()).map(|tree| {
                let LeftOutRow { path, branch, .. } = &self.places[tree][row];
                joint.left_out(tree, |node| sums[tree][node.index()][row % n_parts], path, branch.as_ref())
            });
            target(place, row % n_parts) - means.sum::<f64>()
        });
        Ok(rows.collect())
    }

    /// The clocks of the mixture's trees.
    fn clocks(&self, gamma2: f64, delay: f64) -> Result<Vec<Clocks>> {
        let lifetime = self.forest.settings.lifetime;
        self.run.map(self.subtree_beliefs.len(), |i| {
            let nodes = UnitClocks::new(&self.trees[i], lifetime, gamma2, delay);
            let branch =
                |place: &LeftOutRow| branch_time::likely_branch(place.branch.as_ref()?, gamma2, delay);
            Ok(Clocks { nodes, branches: self.places[i].iter().map(branch).collect() })
        })
    }

    /// The error of every tree without a chosen row for that row, and its variance, by tree and row.
    fn left_out(
        &self,
        hyper: &Hyperparameters,
        clocks: &[Clocks],
        prior: f64,
    ) -> Result<Vec<Vec<(f64, f64)>>> {
        self.run.map(clocks.len(), |i| {
            let Clocks { nodes, branches } = &clocks[i];
            let (subtree_beliefs, ends) = &self.subtree_beliefs[i];
            let above = subtree_beliefs.beliefs(hyper, nodes);
            let n_parts = if self.noise == Noise::Local { self.n_parts() } else { 0 };
            let sizes: Vec<Sizes> =
                (0..n_parts).map(|part| self.sizes_without(part, i, hyper, nodes)).collect();
            let rows = self.places[i].iter().zip(&self.targets).enumerate();
            let each = rows
                .map(|(row, (place, &y))| {
                    let mut belief = above[ends[row]];
                    if let Some((n, mean)) = place.others {
                        let others = Message { precision: n / hyper.noise_variance, mean };
                        let branch = branches[row].map(|clock| hyper.gamma1 * clock);
                        belief = belief.without(others, branch, hyper.gamma1 * nodes.end());
                    }
                    let scale =
                        if n_parts == 0 { 1.0 } else { sizes[row % n_parts].along(&place.path, prior) };
                    (y - belief.mean, (belief.variance + hyper.noise_variance) * scale)
                })
                .collect();
            Ok(each)
        })
    }

    /// Number of parts of the chosen rows. Each part is left out as a whole where leaving out row by row takes too long.
    fn n_parts(&self) -> usize {
        (self.targets.len() * PARTS).div_ceil(self.order.len()).max(1)
    }

    /// Whether a row belongs to part `part` of the chosen rows.
    fn is_left_out(&self, row: RowId, (part, n_parts): (usize, usize)) -> bool {
        self.numbers[row as usize].is_some_and(|number| number as usize % n_parts == part)
    }

    /// The errors of a tree that does not hold a part of the chosen rows.
    fn sizes_without(&self, part: usize, tree: usize, hyper: &Hyperparameters, clocks: &UnitClocks) -> Sizes {
        /// The weight of an empty leaf: negligible, but positive, since precisions are divided by.
        const NOTHING: f64 = 1e-12;
        let (tree, order) = (&self.trees[tree], &self.orders[tree]);
        let part = (part, self.n_parts());
        let rows = |leaf, targets: &mut Vec<f64>| {
            let others = tree.arena.leaf_rows(leaf).filter(|&row| !self.is_left_out(row, part));
            targets.extend(others.map(|row| self.observed.targets[row as usize]));
            targets.sort_unstable_by(f64::total_cmp);
            let n = targets.len() as f64;
            targets
                .first()
                .map_or(hyper.mu, |first| first + targets.iter().map(|y| (y - first) / n).sum::<f64>())
        };
        let mut targets = Vec::new();
        let clock = |node| hyper.gamma1 * clocks.of(node);
        let messages = Messages::of_leaves(tree, order, clock, |leaf| {
            targets.clear();
            let mean = rows(leaf, &mut targets);
            Message { precision: (targets.len() as f64).max(NOTHING) / hyper.noise_variance, mean }
        });
        let above = belief_propagation::beliefs(tree, &messages, hyper, order);
        Sizes::of(tree, order, &above, hyper.noise_variance, rows)
    }

    /// The mean log density of the rows, and the factor on all variances, of `most` at most, and the tails that make it so.
    fn likeliest(&self, rows: &[Vec<(f64, f64)>], most: f64) -> (f64, f64, Option<NoiseTails>) {
        match self.noise {
            Noise::Global => {
                let (score, scale) = best_scale(rows, most);
                (score, scale, None)
            }
            Noise::Local => {
                let (_, scale) = best_scale(rows, f64::INFINITY);
                let (tails, scale, score) = NoiseTails::fit(rows, scale);
                (score, scale.min(most), Some(tails))
            }
        }
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
    use crate::mondrian::regression::hierarchy::belief_propagation::CoarsePrior;
    use crate::mondrian::regression::noise::local_noise;
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
        Forest::fit(settings, domain, Batch { rows, ids: None }, &y, &Run::default()).unwrap()
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
        assert_eq!((trial.targets.len(), trial.n_parts()), (ROWS, PARTS));
        let clocks = trial.clocks(hyper.gamma2, 0.0).unwrap();
        for part in 0..PARTS {
            let is_left_out = |row: &RowId| trial.is_left_out(*row, (part, PARTS));
            let rows: Vec<RowId> = (0..ROWS as RowId).filter(is_left_out).collect();
            let mut smaller = forest.clone();
            let ids: Vec<u64> = rows.iter().map(|&row| u64::from(row)).collect();
            smaller.forget(&ids).unwrap();
            let AnyStorage::F64(others) = smaller.flushed_alone() else {
                panic!("rows are kept as they are")
            };
            let messages: Vec<Messages> = others
                .trees
                .iter()
                .map(|tree| {
                    let clocks = UnitClocks::new(tree, f64::INFINITY, hyper.gamma2, 0.0);
                    Messages::upward(tree, &tree.statistics, &tree.arena.preorder(), &hyper, &clocks)
                })
                .collect();
            let rest = Observed::targets_of(&smaller);
            let expected = local_noise::estimate(rest, others, &messages, &hyper, prior, &run).unwrap();
            for (i, tree) in others.trees.iter().enumerate() {
                let sizes = trial.sizes_without(part, i, &hyper, &clocks[i].nodes);
                for &row in &rows {
                    let number = trial.numbers[row as usize].unwrap() as usize;
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
                    let found = sizes.along(path, prior);
                    assert!((found - expected[i][node.index()]).abs() < 1e-9 * found, "{found}");
                }
            }
        }
    }
}
