//! A sampled posterior over decision trees with any kind of leaf.

use std::any::Any;

use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::posterior::weighted_trees::{Ensemble, PosteriorTree, Report, Sampler, export};
use crate::bayes::prior::{ChipmanPrior, TreePrior, check_prior};
use crate::bayes::target::TargetPosterior;
use crate::bayes::tree::PreorderTree;
use crate::control::{Run, Threads};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::error::{Error, Result};
use crate::math::greatest;
use crate::validate::check;

/// The leaf model of a fitted posterior: classes or numbers.
pub trait FittedLeaf: std::fmt::Debug + Clone + PartialEq + Sync {
    /// Sufficient statistics of a node's rows.
    type Stats: std::fmt::Debug + Clone + Send + Sync;

    /// Number of training rows.
    fn n_rows(stats: &Self::Stats) -> u32;

    /// Sum of their weights: their number, if they have none.
    fn weight(stats: &Self::Stats) -> f64;

    /// Appends a node's entries of [`PosteriorTree::values`].
    fn values(&self, stats: &Self::Stats, values: &mut Vec<f64>);

    /// Appends what a node predicts: the mean, or the probability of each class.
    fn prediction(&self, stats: &Self::Stats, prediction: &mut Vec<f64>);
}

/// A tree prior, and the same as a [`ChipmanPrior`] if it is one.
pub(crate) fn known(prior: &(impl TreePrior + 'static)) -> (&dyn TreePrior, Option<ChipmanPrior>) {
    (prior, (prior as &dyn Any).downcast_ref().copied())
}

/// A posterior over decision trees (thesis chapter 3): weighted trees and the sampler's report.
#[derive(Debug, Clone)]
pub struct BayesianTrees<L: FittedLeaf> {
    pub(crate) ensemble: Ensemble<L::Stats>,
    /// None if the prior is a type of the user's.
    pub(crate) prior: Option<ChipmanPrior>,
    pub(crate) leaf: L,
    pub(crate) annotation: String,
}

impl<L: FittedLeaf> BayesianTrees<L> {
    /// Samples the posterior. `model` holds the targets, and `fitted` turns its statistics into those of the fitted leaves;
    /// `known` is the prior if it is a [`ChipmanPrior`]. Not generic in the prior, so that the samplers are not compiled
    /// again in crates that call `fit`.
    pub(crate) fn sample<M: ConjugateLeaf>(
        (prior, known): (&dyn TreePrior, Option<ChipmanPrior>),
        leaf: L,
        (model, fitted): (&M, impl Fn(&M::Stats) -> L::Stats + Sync),
        sampler: &Sampler,
        rows: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Self> {
        if known.is_none() {
            check_prior(prior, rows.n_rows(), rows.n_features())?;
        }
        let threads = Threads::new(run.n_threads);
        let ensemble = threads.install(|| {
            let table = SortedColumns::new(rows, &threads, run.control)?;
            let target = TargetPosterior { table: &table, prior, leaf: model };
            let ensemble = Ensemble::sample(&target, sampler, &fitted, (&threads, run.control))?;
            Ok(ensemble.with_features(&table, L::n_rows))
        })?;
        Ok(Self { ensemble, prior: known, leaf, annotation: String::new() })
    }

    /// The posterior of all islands or chains, given fits of [single ones](crate::SmcSettings::island) to the same rows,
    /// in their order: equal, bit for bit, to that of one fit. `sampler` says how islands are weighted.
    ///
    /// # Errors
    /// No part; parts of several islands or chains, or whose rows, priors or samplers differ; parts out of order or given
    /// twice, as far as is known: files do not tell the numbers of islands and chains.
    pub fn join(parts: Vec<Self>, sampler: &Sampler) -> Result<Self> {
        check("the number of fits to join", !parts.is_empty(), "at least 1", &0)?;
        let (prior, leaf) = (parts[0].prior, parts[0].leaf.clone());
        if parts.iter().any(|part| part.prior != prior || part.leaf != leaf) {
            return Err(Error::NotJoinable { what: "priors" });
        }
        let ensemble = Ensemble::join(parts.into_iter().map(|part| part.ensemble).collect(), sampler)?;
        Ok(Self { ensemble, prior, leaf, annotation: String::new() })
    }

    /// The leaf of every row in every tree, `n_rows x n_trees`, as an index into the tree's nodes.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub fn apply(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<u32>> {
        let [leaves] = self.ensemble.predict(rows, run, self.ensemble.trees.len(), |leaves, [out]| {
            out.iter_mut().zip(leaves).for_each(|(out, &leaf)| *out = leaf as u32);
        })?;
        Ok(leaves)
    }

    /// Every tree as arrays.
    #[must_use]
    pub fn trees(&self) -> Vec<PosteriorTree> {
        self.ensemble.trees.iter().map(|tree| self.export(tree)).collect()
    }

    /// The tree with the greatest [log posterior](Self::log_posteriors); the first if several are equal.
    #[must_use]
    pub fn best_tree(&self) -> PosteriorTree {
        self.export(&self.ensemble.trees[greatest(self.log_posteriors())])
    }

    /// Logarithm of each tree's posterior probability, up to the marginal likelihood of the data. Trees whose cuts lie in
    /// the same gaps between training rows count as the same tree.
    #[must_use]
    pub fn log_posteriors(&self) -> &[f64] {
        &self.ensemble.log_posteriors
    }

    /// Number of cuts along each feature in each tree, `n_trees x n_features`.
    #[must_use]
    pub fn cuts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.ensemble.trees.len() * self.n_features()];
        for (tree, counts) in self.ensemble.trees.iter().zip(counts.chunks_exact_mut(self.n_features())) {
            for split in tree.nodes.iter().filter_map(|node| node.split) {
                counts[split.rule.feature as usize] += 1;
            }
        }
        counts
    }

    /// Weights of the trees; they sum to one.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.ensemble.weights
    }

    fn export(&self, tree: &PreorderTree<L::Stats>) -> PosteriorTree {
        let values = |stats: &L::Stats, values: &mut Vec<f64>| self.leaf.values(stats, values);
        export((tree, &self.ensemble.kinds), |stats| u64::from(L::n_rows(stats)), values)
    }

    /// The sampler's report.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.ensemble.report
    }

    /// The prior of trees; None if it is a type of the user's.
    #[must_use]
    pub fn prior(&self) -> Option<ChipmanPrior> {
        self.prior
    }

    /// Number of features.
    #[must_use]
    pub fn n_features(&self) -> usize {
        self.ensemble.ranges.len()
    }

    /// By feature, how many categories it has, or 0; empty if no feature has any.
    #[must_use]
    pub fn n_categories(&self) -> &[u32] {
        &self.ensemble.kinds.n_categories
    }

    /// Whether numbers were missing in training.
    #[must_use]
    pub fn has_missing(&self) -> bool {
        self.ensemble.kinds.has_missing
    }

    /// Whether numbers may be missing in rows to predict: always, but in models from older files without sides.
    #[must_use]
    pub fn takes_missing(&self) -> bool {
        self.ensemble.kinds.has_sides
    }

    /// Text kept with the model and in its file.
    #[must_use]
    pub fn annotation(&self) -> &str {
        &self.annotation
    }

    /// Sets the text of [`annotation`](Self::annotation).
    pub fn set_annotation(&mut self, text: impl Into<String>) {
        self.annotation = text.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::leaf::dirichlet::Dirichlet;
    use crate::bayes::mcmc::McmcSettings;
    use crate::bayes::posterior::classifier::BayesianTreeClassifier;
    use crate::bayes::smc::proposals::Proposal;
    use crate::bayes::smc::settings::{Expansion, IslandWeights, SmcSettings};
    use crate::bayes::testing::enumerate::{Exact, Mean, name_of};
    use crate::bayes::testing::visit_frequencies::Visits;
    use crate::control::Control;
    use crate::data::labels::Label;

    /// A split probability that does not depend on depth up to a limit, and features with unequal weights.
    #[derive(Debug)]
    struct Own {
        split: f64,
        log_weights: Vec<f64>,
    }

    impl TreePrior for Own {
        fn split_probability(&self, depth: u32) -> f64 {
            if depth < 2 { self.split } else { 0.0 }
        }

        fn log_weights(&self) -> Option<&[f64]> {
            Some(&self.log_weights)
        }
    }

    const X: [f64; 10] = [0.0, 1.0, 1.0, 2.0, 3.0, 0.5, 3.5, 0.1, 1.0, 1.0];
    const CODES: [u32; 5] = [0, 1, 1, 0, 1];

    fn fit(prior: &Own, sampler: &Sampler) -> Result<BayesianTreeClassifier> {
        let labels = [Label::Int(0), Label::Int(1)];
        let rows = Rows::from_f64(&X, 2).unwrap();
        BayesianTreeClassifier::fit(prior, 0.9, sampler, rows, (&CODES, &labels), &Run::default())
    }

    /// Through the public interface: the evidence of SMC and the visits of chains, under a prior of the
    /// user's.
    #[test]
    fn samplers_aim_at_the_posterior_of_any_prior() {
        let prior = Own { split: 0.6, log_weights: vec![0.7, -0.4] };
        let control = Control::new();
        let table = SortedColumns::new(Rows::from_f64(&X, 2).unwrap(), &Threads::new(1), &control).unwrap();
        let leaf = Dirichlet::new(&CODES, 2, 0.9).unwrap();
        let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
        let mut exact = Exact::new(&target);
        let all = exact.all_rows();
        let z = exact.evidence(all, 0);
        for proposal in [
            Proposal::Prior,
            Proposal::Empirical,
            Proposal::Optimal,
            Proposal::OptimalSubset(1),
            Proposal::Exploring(1),
        ] {
            let settings =
                SmcSettings { n_particles: 5, n_islands: 4000, proposal, ..SmcSettings::default() };
            let model = fit(&prior, &Sampler::Smc(settings)).unwrap();
            assert!(model.prior().is_none());
            let Report::Smc(islands) = model.report() else { panic!("SMC reports of islands") };
            let mut evidence = Mean::new();
            for island in islands {
                evidence.add(island.log_evidence.exp() / z);
            }
            evidence.check(1.0, 5.0, &format!("{proposal:?}"));
        }
        let settings = McmcSettings { n_chains: 1, n_draws: 100_000, thin: 3, ..McmcSettings::default() };
        let model = fit(&prior, &Sampler::Mcmc(settings)).unwrap();
        let mut visits = Visits::new(100_000);
        for tree in &model.ensemble.trees {
            visits.note(name_of(tree, &table));
        }
        let trees = exact.trees(all, 0).into_iter().filter(|(_, weight)| *weight > 0.0);
        visits.check("a prior of one's own", &trees.map(|(name, weight)| (name, weight / z)).collect());
    }

    /// Fits of single islands or chains, joined, equal the fit of all bit for bit.
    #[test]
    fn joined_parts_equal_one_fit() {
        let prior = ChipmanPrior::default();
        let x: Vec<f64> = (0..120).map(|i| f64::from(i * 37 % 101)).collect();
        let codes: Vec<u32> = (0..40).map(|i| u32::from(x[3 * i] > 50.0) ^ u32::from(i % 7 == 0)).collect();
        let (labels, rows) = ([Label::Int(0), Label::Int(1)], Rows::from_f64(&x, 3).unwrap());
        let fit = |sampler: &Sampler, alpha| {
            let run = Run::default();
            BayesianTreeClassifier::fit(&prior, alpha, sampler, rows, (&codes, &labels), &run).unwrap()
        };
        let (proposals, weights) = (
            [Proposal::Prior, Proposal::Empirical, Proposal::Optimal, Proposal::OptimalSubset(2)],
            [IslandWeights::Uniform, IslandWeights::Evidence],
        );
        for (proposal, island_weights) in proposals.iter().flat_map(|&p| weights.map(|w| (p, w))) {
            let smc = SmcSettings {
                n_particles: 8,
                n_islands: 3,
                proposal,
                island_weights,
                ..SmcSettings::default()
            };
            let of_island = |i| fit(&Sampler::Smc(SmcSettings { island: Some(i), ..smc.clone() }), 0.9);
            let all = Sampler::Smc(smc.clone());
            let joined = BayesianTreeClassifier::join((0..3).map(of_island).collect(), &all).unwrap();
            assert_eq!(joined.to_bytes(), fit(&all, 0.9).to_bytes(), "{proposal:?}, {island_weights:?}");
            let refused = |parts| BayesianTreeClassifier::join(parts, &all).unwrap_err().to_string();
            assert!(refused(vec![fit(&all, 0.9)]).ends_with("one island or chain each, found one of 3"));
            assert!(refused([0, 2, 2].map(of_island).to_vec()).ends_with("found the numbers [0, 2, 2]"));
            assert!(refused([1, 0].map(of_island).to_vec()).ends_with("found the numbers [1, 0]"));
            assert_eq!(refused(Vec::new()), "the number of fits to join must be at least 1, found 0");
            let other = fit(&Sampler::Smc(SmcSettings { island: Some(1), ..smc.clone() }), 0.8);
            let refused = BayesianTreeClassifier::join(vec![of_island(0), other], &all);
            assert_eq!(refused.unwrap_err(), Error::NotJoinable { what: "priors" });
            assert!(SmcSettings { island: Some(3), ..smc.clone() }.check().is_err());
            let layers = SmcSettings { expansion: Expansion::Layer, ..smc.clone() };
            assert!(
                SmcSettings { island: Some(1), ..layers.clone() }.check().is_err() && layers.check().is_ok()
            );
        }
        let mcmc = McmcSettings { n_chains: 3, n_burn: 50, n_draws: 7, ..McmcSettings::default() };
        let of_chain = |i| fit(&Sampler::Mcmc(McmcSettings { chain: Some(i), ..mcmc.clone() }), 0.9);
        let all = Sampler::Mcmc(mcmc.clone());
        let joined = BayesianTreeClassifier::join((0..3).map(of_chain).collect(), &all).unwrap();
        assert_eq!(joined.to_bytes(), fit(&all, 0.9).to_bytes());
        let refused = BayesianTreeClassifier::join(vec![of_chain(0)], &Sampler::Smc(SmcSettings::default()));
        assert_eq!(refused.unwrap_err(), Error::NotJoinable { what: "samplers" });
    }

    #[test]
    fn invalid_priors_are_refused() {
        let smc = Sampler::Smc(SmcSettings::default());
        let is_taken = |split, logs: &[f64]| fit(&Own { split, log_weights: logs.to_vec() }, &smc).is_ok();
        assert!(is_taken(0.5, &[0.0, 0.0]));
        assert!(is_taken(0.0, &[-1e300, 1e300]));
        for split in [1.0, -0.1, f64::NAN] {
            assert!(!is_taken(split, &[0.0, 0.0]));
        }
        for logs in [&[0.0][..], &[0.0; 3], &[0.0, f64::NAN], &[0.0, f64::NEG_INFINITY]] {
            assert!(!is_taken(0.5, logs));
        }
    }
}
