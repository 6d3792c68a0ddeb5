//! Weighted trees from either sampler: predictions (eq. 2.1) and reports.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::log_posterior::log_posteriors;
use crate::bayes::mcmc;
use crate::bayes::mcmc::{Acceptance, Draw, McmcSettings};
use crate::bayes::smc;
use crate::bayes::smc::island::Stage;
use crate::bayes::smc::settings::{IslandWeights, SmcSettings};
use crate::bayes::target::TargetPosterior;
use crate::bayes::tree::{PreorderSplit, PreorderTree};
use crate::control::{Control, Run, Threads, try_for_each_mut};
use crate::data::sorted::columns::SortedColumns;
use crate::data::splits::FeatureKinds;
use crate::data::{Rows, goes_right};
use crate::error::{Error, Result};
use crate::math::greatest;
use crate::math::logs::{log_mean_exp, log_sum_exp, normalised};
use crate::validate::{check, check_n_features};

/// The sampler of the posterior.
#[derive(Debug, Clone, PartialEq)]
pub enum Sampler {
    /// Sequential Monte Carlo (Algorithm 3.1).
    Smc(SmcSettings),
    /// Markov chain Monte Carlo (Chipman et al. 1998).
    Mcmc(McmcSettings),
}

/// The report of an island.
#[derive(Debug, Clone, PartialEq)]
pub struct IslandReport {
    /// Number of particles.
    pub n_particles: u32,
    /// Logarithm of an unbiased estimate of the marginal likelihood.
    pub log_evidence: f64,
    /// Number of particles with unfinished trees after `max_stages`.
    pub n_unfinished: u32,
    /// A report of each stage.
    pub stages: Vec<Stage>,
}

/// The report of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainReport {
    /// A summary of each kept tree.
    pub draws: Vec<Draw>,
    /// Acceptance by move, over all steps.
    pub acceptance: [Acceptance; 4],
}

/// The report of a sampler.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// One report for each island.
    Smc(Vec<IslandReport>),
    /// One report for each chain.
    Mcmc(Vec<ChainReport>),
}

impl Report {
    /// The report of all islands or chains, given those of some; of islands if there are both.
    fn join<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let (mut islands, mut chains) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Self::Smc(some) => islands.extend_from_slice(some),
                Self::Mcmc(some) => chains.extend_from_slice(some),
            }
        }
        if islands.is_empty() { Self::Mcmc(chains) } else { Self::Smc(islands) }
    }

    /// The number of islands or chains.
    fn n_parts(&self) -> usize {
        match self {
            Self::Smc(islands) => islands.len(),
            Self::Mcmc(chains) => chains.len(),
        }
    }

    /// Logarithm of the marginal likelihood, estimated from all islands together, and its standard error (NaN
    /// for a single island). None for MCMC.
    #[must_use]
    pub fn log_evidence(&self) -> Option<(f64, f64)> {
        let Self::Smc(islands) = self else {
            return None;
        };
        let logs: Vec<f64> = islands.iter().map(|island| island.log_evidence).collect();
        Some((log_mean_exp(&logs), log_mean_error(&logs)))
    }
}

/// The jackknife standard error of the logarithm of a mean. For similar numbers it is the relative error of
/// the mean. If one number outweighs the rest it grows with the distance of the logarithms, while the
/// relative error would be at most one.
fn log_mean_error(logs: &[f64]) -> f64 {
    let (n, total) = (logs.len() as f64, log_sum_exp(logs));
    let first = greatest(logs);
    let without = |i: usize| {
        if i == first {
            // Subtracting this number from the sum could leave nothing, since they may be equal after
            // rounding.
            log_sum_exp(&[&logs[..i], &logs[i + 1..]].concat())
        } else {
            total + libm::log1p(-libm::exp(logs[i] - total))
        }
    };
    let means: Vec<f64> = (0..logs.len()).map(|i| without(i) - libm::log(n - 1.0)).collect();
    let centre = means.iter().sum::<f64>() / n;
    let squares: f64 = means.iter().map(|mean| (mean - centre).powi(2)).sum();
    ((n - 1.0) / n * squares).sqrt()
}

/// A tree of a posterior as parallel arrays over its nodes in preorder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PosteriorTree {
    /// Index of the left child; -1 at a leaf.
    pub children_left: Vec<i32>,
    /// Index of the right child; -1 at a leaf.
    pub children_right: Vec<i32>,
    /// Index of the parent; -1 at the root.
    pub parent: Vec<i32>,
    /// Feature that is cut; -1 at a leaf.
    pub feature: Vec<i32>,
    /// Rows with `x[feature] <= threshold` go left; NaN at a leaf and at a split of categories. Infinite where a split
    /// separates missing from present values.
    pub threshold: Vec<f64>,
    /// Whether rows in which the feature's value is missing go left; false at a leaf. Empty if the model is from an older file,
    /// which does not say it.
    pub missing_go_to_left: Vec<bool>,
    /// The codes of the categories that go right, ascending; none at a leaf or another split. Empty if no feature has
    /// categories.
    pub right_categories: Vec<Vec<u32>>,
    /// Number of training rows of each node.
    pub n_rows: Vec<u64>,
    /// The same number of values for each node. Classes: the number of rows of each class, or the sum of their weights.
    /// Numbers: degrees of freedom, location and scale of the predictive Student t distribution, and mean and variance of
    /// the rows' targets, weighted if they have weights.
    pub values: Vec<f64>,
}

/// Trees with weights that sum to one.
#[derive(Debug, Clone)]
pub(crate) struct Ensemble<S> {
    pub(crate) trees: Vec<PreorderTree<S>>,
    pub(crate) weights: Vec<f64>,
    /// Logarithm of each tree's posterior probability, up to the log evidence.
    pub(crate) log_posteriors: Vec<f64>,
    /// The lowest and highest training value of each feature; all cuts are between them, but those between missing and
    /// present values.
    pub(crate) ranges: Vec<(f64, f64)>,
    pub(crate) kinds: FeatureKinds,
    pub(crate) report: Report,
    /// The number of the island or chain, if it was sampled alone. Files do not have it.
    pub(crate) number: Option<usize>,
}

impl<S: Clone + Send + Sync> Ensemble<S> {
    /// Samples trees, whose splits are along the columns of the table. `fitted` turns the sampler's statistics of nodes
    /// into those that the trees keep.
    pub(crate) fn sample<L: ConjugateLeaf>(
        target: &TargetPosterior<'_, L>,
        sampler: &Sampler,
        fitted: &impl Fn(&L::Stats) -> S,
        (threads, control): (&Threads, &Control),
    ) -> Result<Self> {
        let table = target.table;
        let ((trees, weights, report), number) = match sampler {
            Sampler::Smc(settings) => {
                (of_islands(smc::sample(target, settings, threads, control)?, settings), settings.island)
            }
            Sampler::Mcmc(settings) => {
                (of_chains(mcmc::sample(target, settings, threads, control)?), settings.chain)
            }
        };
        let log_posteriors = log_posteriors(target, &trees, control)?;
        let ranges = (0..table.n_features() as u32).map(|d| table.ends(d)).collect();
        // Trees share the statistics of nodes, which the sampled trees keep alive meanwhile.
        let mut known: HashMap<*const L::Stats, Arc<S>> = HashMap::new();
        let mut keep = |stats: &Arc<L::Stats>| {
            Arc::clone(known.entry(Arc::as_ptr(stats)).or_insert_with(|| Arc::new(fitted(stats))))
        };
        let trees = trees.iter().map(|tree| tree.with_stats(&mut keep)).collect();
        Ok(Self { trees, weights, log_posteriors, ranges, kinds: table.kinds().clone(), report, number })
    }

    /// The trees of all islands or chains, given those of each, in their order.
    ///
    /// # Errors
    /// [`Error::NotJoinable`] for parts of other rows or another sampler; [`Error::InvalidSetting`] for none, for one of several
    /// islands or chains, and for numbers that do not ascend.
    pub(crate) fn join(parts: Vec<Self>, sampler: &Sampler) -> Result<Self> {
        let report = Report::join(parts.iter().map(|part| &part.report));
        let says = match (&report, sampler) {
            (Report::Smc(islands), Sampler::Smc(settings)) => {
                let logs: Vec<f64> = islands.iter().map(|island| island.log_evidence).collect();
                says(&logs, settings.island_weights)
            }
            (Report::Mcmc(chains), Sampler::Mcmc(_)) => vec![1.0; chains.len()],
            _ => return Err(Error::NotJoinable { what: "samplers" }),
        };
        let several = parts.iter().map(|part| part.report.n_parts()).find(|&n| n != 1);
        let found = format!("one of {}", several.unwrap_or(1));
        check("fits to join", several.is_none(), "fits of one island or chain each", &found)?;
        let numbers: Vec<usize> = parts.iter().filter_map(|part| part.number).collect();
        let ascend = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        let expected = "in their order, and each there once";
        check("islands or chains to join", ascend, expected, &format!("the numbers {numbers:?}"))?;
        let ends = parts[0].ends();
        if parts.iter().any(|part| part.ends() != ends || !part.kinds.are_alike(&parts[0].kinds)) {
            return Err(Error::NotJoinable { what: "rows" });
        }
        let (ranges, mut kinds) = (parts[0].ranges.clone(), parts[0].kinds.clone());
        kinds.has_sides = parts.iter().all(|part| part.kinds.has_sides);
        let (trees, weights, log_posteriors) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Self { trees, weights, log_posteriors, ranges, kinds, report, number: None };
        for (part, say) in parts.into_iter().zip(says) {
            for ((tree, weight), log) in part.trees.into_iter().zip(part.weights).zip(part.log_posteriors) {
                // The weight of a tree may underflow.
                if weight * say > 0.0 {
                    all.trees.push(tree);
                    all.weights.push(weight * say);
                    all.log_posteriors.push(log);
                }
            }
        }
        if matches!(all.report, Report::Mcmc(_)) {
            all.weights = equal_weights(all.trees.len());
        }
        Ok(all)
    }

    /// The bits of the ranges of features, which are NaN where all values are missing.
    fn ends(&self) -> Vec<[u64; 2]> {
        self.ranges.iter().map(|&(low, high)| [low, high].map(f64::to_bits)).collect()
    }

    /// The trees with features, and sides of missing values, in place of columns.
    pub(crate) fn with_features(mut self, table: &SortedColumns, n_rows: impl Fn(&S) -> u32) -> Self {
        for tree in &mut self.trees {
            tree.set_features(table, &n_rows);
        }
        self
    }

    /// Checks the number of features of some rows, and whether values may be missing.
    pub(crate) fn check_rows(&self, rows: Rows<'_>) -> Result<()> {
        check_n_features(rows, self.ranges.len())?;
        self.kinds.check(rows)
    }

    /// Calls `f(leaves, parts)` for every row, in order; `leaves` is the row's leaf in each tree, and `parts`
    /// are the row's `width` numbers of each of `K` results.
    pub(crate) fn predict<T: Copy + Default + Send, const K: usize>(
        &self,
        rows: Rows<'_>,
        run: &Run<'_>,
        width: usize,
        f: impl Fn(&[usize], [&mut [T]; K]) + Sync + Send,
    ) -> Result<[Vec<T>; K]> {
        self.check_rows(rows)?;
        // Complete rows need fewer comparisons.
        if rows.has_missing() || self.kinds.has_categories() {
            self.predict_by(|x, split| split.rule.sends_right(x), rows, run, width, f)
        } else {
            self.predict_by(|x, split| goes_right(x, split.rule.threshold), rows, run, width, f)
        }
    }

    /// [`Self::predict`], where `side` says whether a row with a value goes to the right of a split.
    fn predict_by<T: Copy + Default + Send, const K: usize>(
        &self,
        side: impl Fn(f64, &PreorderSplit) -> bool + Sync + Send,
        rows: Rows<'_>,
        run: &Run<'_>,
        width: usize,
        f: impl Fn(&[usize], [&mut [T]; K]) + Sync + Send,
    ) -> Result<[Vec<T>; K]> {
        /// Rows between two checks of the stop flag.
        const CHUNK: usize = 256;
        run.control.expect(rows.n_rows() as u64);
        let mut results: [Vec<T>; K] = std::array::from_fn(|_| vec![T::default(); rows.n_rows() * width]);
        let mut pieces = results.each_mut().map(|result| result.chunks_mut(CHUNK * width));
        let mut chunks: Vec<[&mut [T]; K]> = (0..rows.n_rows().div_ceil(CHUNK))
            .map(|_| {
                pieces.each_mut().map(|pieces| pieces.next().expect("as many as there are chunks of rows"))
            })
            .collect();
        let leaves = || vec![0; self.trees.len()];
        try_for_each_mut(run.n_threads, &mut chunks, leaves, |leaves, i, parts| {
            run.control.check()?;
            let first = i * CHUNK;
            let n = CHUNK.min(rows.n_rows() - first);
            for row in 0..n {
                for (leaf, tree) in leaves.iter_mut().zip(&self.trees) {
                    *leaf = tree.leaf(|split| side(rows.at(first + row, split.rule.feature as usize), split));
                }
                f(leaves, parts.each_mut().map(|part| &mut part[row * width..][..width]));
            }
            run.control.advance(n as u64);
            Ok(())
        })?;
        Ok(results)
    }
}

/// Trees, weights and reports of islands.
fn of_islands<S>(
    islands: Vec<smc::island::Island<S>>,
    settings: &SmcSettings,
) -> (Vec<PreorderTree<S>>, Vec<f64>, Report) {
    let logs: Vec<f64> = islands.iter().map(|island| island.log_evidence).collect();
    let says = says(&logs, settings.island_weights);
    let (mut trees, mut weights, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for (island, say) in islands.into_iter().zip(says) {
        for (tree, weight) in island.trees.into_iter().zip(island.weights) {
            // The weight of a tree may underflow.
            if weight * say > 0.0 {
                trees.push(tree);
                weights.push(weight * say);
            }
        }
        reports.push(IslandReport {
            n_particles: settings.n_particles as u32,
            log_evidence: island.log_evidence,
            n_unfinished: island.n_unfinished,
            stages: island.stages,
        });
    }
    (trees, weights, Report::Smc(reports))
}

/// The weight of each island, given its log evidence.
fn says(logs: &[f64], island_weights: IslandWeights) -> Vec<f64> {
    match island_weights {
        IslandWeights::Uniform => equal_weights(logs.len()),
        IslandWeights::Evidence => normalised(logs),
    }
}

/// Trees, weights and reports of chains.
fn of_chains<S>(chains: Vec<mcmc::McmcChain<S>>) -> (Vec<PreorderTree<S>>, Vec<f64>, Report) {
    let (mut trees, mut reports) = (Vec::new(), Vec::new());
    for chain in chains {
        trees.extend(chain.trees);
        reports.push(ChainReport { draws: chain.draws, acceptance: chain.acceptance });
    }
    let weights = equal_weights(trees.len());
    (trees, weights, Report::Mcmc(reports))
}

fn equal_weights(n: usize) -> Vec<f64> {
    vec![1.0 / n as f64; n]
}

/// A tree as arrays, with the sides of missing values if they are known, and with categories if features have any. `values`
/// appends a node's values, and `n_rows` returns its number of rows.
pub(crate) fn export<S>(
    (tree, kinds): (&PreorderTree<S>, &FeatureKinds),
    n_rows: impl Fn(&S) -> u64,
    values: impl Fn(&S, &mut Vec<f64>),
) -> PosteriorTree {
    let n = tree.nodes.len();
    let mut out = PosteriorTree { parent: vec![-1; n], ..PosteriorTree::default() };
    for (i, node) in tree.nodes.iter().enumerate() {
        let (left, right) = node.split.map_or((-1, -1), |split| (i as i32 + 1, split.right as i32));
        out.children_left.push(left);
        out.children_right.push(right);
        if let Some(split) = node.split {
            out.parent[i + 1] = i as i32;
            out.parent[split.right as usize] = i as i32;
        }
        out.feature.push(node.split.map_or(-1, |split| split.rule.feature as i32));
        out.threshold.push(node.split.map_or(f64::NAN, |split| split.rule.shown_threshold()));
        if kinds.has_categories() {
            let right = node.split.map_or_else(Vec::new, |split| kinds.right_categories(&split.rule));
            out.right_categories.push(right);
        }
        if kinds.has_sides {
            out.missing_go_to_left.push(node.split.is_some_and(|split| !split.rule.missing_right));
        }
        out.n_rows.push(n_rows(&node.stats));
        values(&node.stats, &mut out.values);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::tree::PreorderNode;

    /// Two islands with two trees each; the second has three times the evidence of the first.
    fn weights(island_weights: IslandWeights) -> Vec<f64> {
        let tree = || PreorderTree { nodes: vec![PreorderNode { split: None, stats: Arc::new(()) }] };
        let island = |log_evidence, first| smc::island::Island {
            trees: vec![tree(), tree()],
            weights: vec![first, 1.0 - first],
            log_evidence,
            n_unfinished: 0,
            stages: Vec::new(),
        };
        let islands = vec![island(-800.0, 0.3), island(-800.0 + 3.0f64.ln(), 0.9)];
        let settings = SmcSettings { n_islands: 2, island_weights, ..SmcSettings::default() };
        of_islands(islands, &settings).1
    }

    #[test]
    fn islands_count_alike_or_by_their_evidence() {
        let check = |found: Vec<f64>, expected: [f64; 4]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        };
        check(weights(IslandWeights::Uniform), [0.15, 0.35, 0.45, 0.05]);
        check(weights(IslandWeights::Evidence), [0.075, 0.175, 0.675, 0.075]);
    }

    /// For similar numbers the jackknife gives the relative error of the mean; for distant ones it is about
    /// their distance.
    #[test]
    fn errors_of_log_means_have_no_bound() {
        let near = [0.1, -0.05, 0.02, 0.0, -0.07];
        let mean = log_mean_exp(&near);
        let squares: f64 = near.iter().map(|log| (libm::exp(log - mean) - 1.0).powi(2)).sum();
        assert!((log_mean_error(&near) / (squares / 20.0).sqrt() - 1.0).abs() < 0.05);
        assert!((log_mean_error(&[-800.0, -850.0]) - 25.0).abs() < 1e-9);
        assert!(log_mean_error(&[-800.0]).is_nan());
        assert_eq!(log_mean_error(&[-3.0; 4]), 0.0);
    }
}
