//! An island: particles that are weighted and resampled together, independently of other islands
//! (section 3.4.1.3).

use std::collections::BTreeMap;

use crate::bayes::smc::particle::{History, Particle};
use crate::bayes::smc::resampling::effective_size;
use crate::bayes::smc::settings::SmcSettings;
use crate::bayes::smc::shared_node::SharedNodeId;
use crate::bayes::tree::PreorderTree;
use crate::math::logs::{log_mean_exp, normalised};
use crate::random::distributions::multinomial;
use crate::random::keyed::Stream;

/// The report of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Effective sample size of the weights.
    pub ess: f64,
    /// Logarithm of the mean weight: the estimate of the evidence of trees that end at this stage.
    pub log_evidence: f64,
    /// The ancestor of each particle in the previous stage, if particles were resampled.
    pub ancestors: Option<Vec<u32>>,
}

/// The result of an island.
#[derive(Debug, Clone)]
pub(crate) struct Island<S> {
    pub(crate) trees: Vec<PreorderTree<S>>,
    /// Normalised weights.
    pub(crate) weights: Vec<f64>,
    /// Logarithm of an unbiased estimate of the marginal likelihood.
    pub(crate) log_evidence: f64,
    /// Number of particles with open nodes after the last stage.
    pub(crate) n_unfinished: u32,
    pub(crate) stages: Vec<Stage>,
}

impl<S> Island<S> {
    /// A tree drawn by weight.
    pub(crate) fn draw(mut self, stream: &mut Stream) -> PreorderTree<S> {
        let mut rest = stream.unit() * self.weights.iter().sum::<f64>();
        let drawn = self.weights.iter().position(|weight| {
            rest -= weight;
            rest < 0.0
        });
        self.trees.swap_remove(drawn.unwrap_or(self.trees.len() - 1))
    }
}

/// The particles of an island while it runs.
pub(crate) struct RunningIsland {
    pub(crate) particles: Vec<Particle>,
    /// The random stream of each particle.
    pub(crate) streams: Vec<Stream>,
    resampling: Stream,
    stages: Vec<Stage>,
    /// Nodes of the retained tree, by slot in the first particle's tree.
    pub(crate) retained: Vec<u32>,
}

impl RunningIsland {
    /// An island with this number whose particles have only the root.
    pub(crate) fn new(
        settings: &SmcSettings,
        island: usize,
        (root, log_likelihood): (SharedNodeId, f64),
    ) -> Self {
        Self {
            particles: vec![Particle::new(root, log_likelihood); settings.n_particles],
            streams: (0..settings.n_particles).map(|i| stream(settings.seed, island, i + 1)).collect(),
            resampling: stream(settings.seed, island, 0),
            stages: Vec::new(),
            retained: vec![0],
        }
    }

    /// Lines 11 to 15 of Algorithm 3.1 (14 to 17 of Algorithm 4.2): resamples if the effective sample size is
    /// low.
    pub(crate) fn end_stage(&mut self, settings: &SmcSettings, conditional: bool) {
        let logs: Vec<f64> = self.particles.iter().map(|particle| particle.log_weight).collect();
        let (weights, log_evidence) = (normalised(&logs), log_mean_exp(&logs));
        let ess = effective_size(&weights);
        let n = weights.len();
        // The tolerance allows for rounding, which may take the effective sample size of equal weights below
        // their number.
        let ancestors = (ess < settings.ess_threshold * n as f64 * (1.0 - 1e-9)).then(|| {
            if conditional {
                // The retained particle stays; other particles may also descend from it.
                let mut others = multinomial(&weights, n - 1, &mut self.resampling);
                others.insert(0, 0);
                others
            } else {
                settings.resampling.draw(&weights, &mut self.resampling)
            }
        });
        if let Some(ancestors) = &ancestors {
            self.particles = ancestors.iter().map(|&a| self.particles[a as usize].clone()).collect();
            self.particles.iter_mut().for_each(|particle| particle.log_weight = log_evidence);
        }
        self.stages.push(Stage { ess, log_evidence, ancestors });
    }

    /// The trees; particles that made the same cuts become one tree with the sum of their weights.
    pub(crate) fn finish<S>(self, history: &History<S>) -> Island<S> {
        let logs: Vec<f64> = self.particles.iter().map(|particle| particle.log_weight).collect();
        let mut place = BTreeMap::new();
        let (mut trees, mut weights) = (Vec::new(), Vec::new());
        for (particle, weight) in self.particles.iter().zip(normalised(&logs)) {
            let at = *place.entry(particle.last()).or_insert(trees.len());
            if at == trees.len() {
                trees.push(history.tree(particle));
                weights.push(0.0);
            }
            weights[at] += weight;
        }
        let n_unfinished = self.particles.iter().filter(|particle| !particle.open.is_empty()).count() as u32;
        Island { trees, weights, log_evidence: log_mean_exp(&logs), n_unfinished, stages: self.stages }
    }
}

/// A separate stream for each purpose, the same for any number of islands and particles.
fn stream(seed: u64, island: usize, purpose: usize) -> Stream {
    Stream::numbered(seed, (island as u64) << 32 | purpose as u64)
}
