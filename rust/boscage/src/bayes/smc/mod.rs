//! Sequential Monte Carlo over trees that grow from the root (Algorithm 3.1), plain and conditional.

pub(crate) mod nodes;
pub(crate) mod particle;
pub(crate) mod proposals;
pub(crate) mod resampling;
pub(crate) mod row_set;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::smc::nodes::{Keep, RankCut, SharedNodeId, SharedNodes, SubtreeRoot};
use crate::bayes::smc::particle::{History, Open, Particle};
use crate::bayes::smc::proposals::{Decision, Plan, Proposal};
use crate::bayes::smc::resampling::{Resampling, effective_size};
use crate::bayes::target::Target;
use crate::bayes::tree::PreorderTree;
use crate::control::{Control, Threads};
use crate::error::{Error, Result};
use crate::math::logs::{log_mean_exp, normalised};
use crate::random::distributions::multinomial;
use crate::random::keyed::Stream;
use crate::validate::{MAX_CHAINS, MAX_DRAWS, MAX_PARTICLES, check_count, check_product};

/// Gaps that may be weighed at a time however few rows there are: some 16 MB.
const FEW_GAPS: usize = 1 << 20;

/// How many nodes a particle decides about in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expansion {
    /// One.
    #[default]
    Node,
    /// All that are eligible.
    Layer,
}

/// Which node is decided about first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CandidateOrder {
    /// The oldest.
    #[default]
    BreadthFirst,
    /// The one with the lowest marginal likelihood.
    MarginalLikelihood,
}

/// How much say each island has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IslandWeights {
    /// All the same.
    #[default]
    Uniform,
    /// By their estimates of the evidence.
    Evidence,
}

/// How Sequential Monte Carlo is done.
#[derive(Debug, Clone, PartialEq)]
pub struct SmcSettings {
    /// Particles, on each island.
    pub n_particles: usize,
    /// Independent runs.
    pub n_islands: usize,
    /// The proposal kernel.
    pub proposal: Proposal,
    /// How many nodes are decided about in a stage.
    pub expansion: Expansion,
    /// Which node comes first.
    pub candidate_order: CandidateOrder,
    /// How particles are drawn anew.
    pub resampling: Resampling,
    /// They are when the effective sample size is below this share of `n_particles`.
    pub ess_threshold: f64,
    /// Trees that are not finished after so many stages stay as they are: nodes not decided about are leaves. The
    /// evidence is then that of trees which are cut short so, under the prior too.
    pub max_stages: usize,
    /// How islands are combined.
    pub island_weights: IslandWeights,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for SmcSettings {
    fn default() -> Self {
        Self {
            n_particles: 10,
            n_islands: 5,
            proposal: Proposal::default(),
            expansion: Expansion::default(),
            candidate_order: CandidateOrder::default(),
            resampling: Resampling::default(),
            ess_threshold: 0.5,
            max_stages: 5000,
            island_weights: IslandWeights::default(),
            seed: 0,
        }
    }
}

impl SmcSettings {
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        check_count("n_particles", self.n_particles, MAX_PARTICLES)?;
        check_count("n_islands", self.n_islands, MAX_CHAINS)?;
        check_product("n_particles * n_islands", &[self.n_particles, self.n_islands], MAX_DRAWS)?;
        check_count("max_stages", self.max_stages, (usize::MAX, "at least 1"))?;
        if let Proposal::OptimalSubset(n) | Proposal::Exploring(n) = self.proposal {
            let name = "the number of features that a proposal considers";
            check_count(name, n, (usize::MAX, "at least 1"))?;
        }
        if !(0.0..=1.0).contains(&self.ess_threshold) {
            return Err(Error::InvalidSetting {
                name: "ess_threshold",
                expected: "from 0 to 1",
                found: self.ess_threshold.to_string(),
            });
        }
        Ok(())
    }
}

/// What is known of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Effective sample size of the weights.
    pub ess: f64,
    /// Logarithm of the mean weight, the estimate of the evidence of trees cut off here.
    pub log_evidence: f64,
    /// Each particle's ancestor among those before, if particles were resampled.
    pub ancestors: Option<Vec<u32>>,
}

/// The end of an independent run.
#[derive(Debug, Clone)]
pub(crate) struct Island<S> {
    pub(crate) trees: Vec<PreorderTree<S>>,
    /// Normalised.
    pub(crate) weights: Vec<f64>,
    /// Logarithm of an unbiased estimate of the marginal likelihood.
    pub(crate) log_evidence: f64,
    /// Particles that the last stage left with nodes to decide about.
    pub(crate) n_unfinished: u32,
    pub(crate) stages: Vec<Stage>,
}

impl<S> Island<S> {
    /// A tree, drawn in proportion to weights.
    pub(crate) fn draw(mut self, stream: &mut Stream) -> PreorderTree<S> {
        let mut rest = stream.unit() * self.weights.iter().sum::<f64>();
        let drawn = self.weights.iter().position(|weight| {
            rest -= weight;
            rest < 0.0
        });
        self.trees.swap_remove(drawn.unwrap_or(self.trees.len() - 1))
    }
}

/// Runs Algorithm 3.1 on every island.
///
/// # Errors
/// Settings outside their domain; an interrupt.
pub(crate) fn sample<L: ConjugateLeaf>(
    target: &Target<'_, L>,
    settings: &SmcSettings,
    threads: &Threads,
    control: &Control,
) -> Result<Vec<Island<L::Stats>>> {
    settings.check()?;
    let root = SubtreeRoot::of_all(target.table);
    let mut cloud = Cloud::new(target, settings, (threads, control), (root, None));
    cloud.run(control)?;
    Ok(cloud.finish())
}

/// Runs Algorithm 3.1 with the first particle of each island held to a given tree (Algorithm 4.2): drawing one of
/// the resulting trees by weight leaves the posterior invariant. Particles are resampled independently, whatever
/// the settings say. The root may be an inner node of a larger tree, whose subtree is then drawn given the rest.
///
/// # Errors
/// As [`sample`].
pub(crate) fn sample_conditionally<L: ConjugateLeaf>(
    target: &Target<'_, L>,
    settings: &SmcSettings,
    (root, retained): (SubtreeRoot, &PreorderTree<L::Stats>),
    threads: &Threads,
    control: &Control,
) -> Result<Vec<Island<L::Stats>>> {
    settings.check()?;
    let mut cloud = Cloud::new(target, settings, (threads, control), (root, Some(retained)));
    cloud.run(control)?;
    Ok(cloud.finish())
}

/// All particles of all islands, which go on stage by stage together so that they share nodes.
struct Cloud<'a, L: ConjugateLeaf> {
    target: &'a Target<'a, L>,
    settings: &'a SmcSettings,
    nodes: SharedNodes<'a, L>,
    history: History<L::Stats>,
    islands: Vec<Group>,
    retained: Option<&'a PreorderTree<L::Stats>>,
}

/// The particles of an island.
struct Group {
    particles: Vec<Particle>,
    /// One for each particle's decisions.
    streams: Vec<Stream>,
    resampling: Stream,
    stages: Vec<Stage>,
    /// The retained tree's nodes by number in the first particle's tree.
    retained: Vec<u32>,
}

/// A node that a particle is about to decide about.
struct Job {
    island: usize,
    particle: usize,
    open: Open,
    retained: Option<Decision>,
}

impl<'a, L: ConjugateLeaf> Cloud<'a, L> {
    fn new(
        target: &'a Target<'a, L>,
        settings: &'a SmcSettings,
        (threads, control): (&'a Threads, &'a Control),
        (root, retained): (SubtreeRoot, Option<&'a PreorderTree<L::Stats>>),
    ) -> Self {
        let nodes = SharedNodes::new(target, threads, control, root);
        let root = nodes.get(SharedNodes::<L>::ROOT);
        let islands = (0..settings.n_islands).map(|island| Group {
            particles: vec![Particle::new(SharedNodes::<L>::ROOT, root.log_likelihood); settings.n_particles],
            streams: (0..settings.n_particles).map(|i| stream(settings.seed, island, i + 1)).collect(),
            resampling: stream(settings.seed, island, 0),
            stages: Vec::new(),
            retained: vec![0],
        });
        let islands = islands.collect();
        let history = History::new(Arc::clone(&root.stats));
        Self { target, settings, nodes, history, islands, retained }
    }

    /// All stages.
    fn run(&mut self, control: &Control) -> Result<()> {
        for _ in 0..self.settings.max_stages {
            control.check()?;
            let jobs = self.pop();
            if jobs.is_empty() {
                break;
            }
            self.expand(&jobs, control)?;
            // Islands that are done stay as they are, however long others take.
            let mut runs = vec![false; self.islands.len()];
            for job in &jobs {
                runs[job.island] = true;
            }
            for (island, _) in self.islands.iter_mut().zip(runs).filter(|(_, runs)| *runs) {
                island.end_stage(self.settings, self.retained.is_some());
            }
            self.history.prune(self.islands.iter_mut().flat_map(|island| &mut island.particles));
            if self.nodes.is_full() {
                let open = self.islands.iter().flat_map(|island| &island.particles);
                self.nodes.keep(open.flat_map(|particle| particle.open.iter().map(|open| open.node)));
            }
            // A conditional run is a part of something else, which counts its own steps.
            if self.retained.is_none() {
                control.advance(1);
            }
        }
        Ok(())
    }

    /// The nodes of this stage, `C_(t)`, taken from those eligible.
    fn pop(&mut self) -> Vec<Job> {
        let (mut jobs, order) = (Vec::new(), self.settings.candidate_order);
        for (i, island) in self.islands.iter_mut().enumerate() {
            for (k, particle) in island.particles.iter_mut().enumerate() {
                let open = match self.settings.expansion {
                    Expansion::Node => next(particle, order, &self.nodes).into_iter().collect(),
                    Expansion::Layer => layer(particle, order, &self.nodes),
                };
                let retained = self.retained.filter(|_| k == 0);
                let retained = |open| Some(decision(retained?, &island.retained, open, self.target));
                jobs.extend(open.into_iter().map(|open| Job {
                    island: i,
                    particle: k,
                    open,
                    retained: retained(open),
                }));
            }
        }
        jobs
    }

    /// Lines 7 to 10 of Algorithm 3.1: decides about nodes, and updates weights.
    fn expand(&mut self, jobs: &[Job], control: &Control) -> Result<()> {
        let ids: Vec<SharedNodeId> = jobs.iter().map(|job| job.open.node).collect();
        self.nodes.open(&ids)?;
        let mut decisions = vec![(Decision::Stop, 0.0); jobs.len()];
        let (n_rows, n_features) = (self.target.table.n_rows(), self.target.table.n_features());
        // What is weighed at a time takes a part of the memory that the rows take, or little: then it is enough for
        // all threads.
        let most = (n_rows / 8).max(FEW_GAPS / n_features);
        for batch in self.portions(jobs, (0..jobs.len()).collect(), most, |_| 0) {
            control.check()?;
            self.decide(jobs, &batch, &mut decisions)?;
            self.nodes.forget_gaps(batch.iter().map(|&i| jobs[i].open.node));
        }
        let cuts = jobs.iter().zip(&decisions).filter_map(|(job, (decision, _))| match decision {
            Decision::Stop => None,
            Decision::Split { cut, .. } => Some((job.open.node, *cut)),
        });
        self.nodes.split(cuts.collect())?;
        for (job, (decision, log_weight)) in jobs.iter().zip(decisions) {
            self.apply(job, decision, log_weight);
        }
        Ok(())
    }

    /// The decisions of some jobs, with the logarithms of `P / Q`: whether to stop or which extent to cut, then where.
    fn decide(&mut self, jobs: &[Job], batch: &[usize], decisions: &mut [(Decision, f64)]) -> Result<()> {
        let mut extents = BTreeMap::new();
        for (i, (plan, log_weight)) in self.choose(jobs, batch)? {
            decisions[i].1 = log_weight;
            match plan {
                Plan::Made(decision) => decisions[i].0 = decision,
                Plan::Cut(extent) => {
                    extents.insert(i, extent);
                }
            }
        }
        let cutting = extents.keys().copied().collect();
        let most = self.target.table.n_rows().max(FEW_GAPS);
        for portion in self.portions(jobs, cutting, most, |i| extents[&i]) {
            let wanted = portion.iter().map(|i| (jobs[*i].open.node, extents[i])).collect();
            let weighing = self.settings.proposal.weighing().expect("the prior draws its cuts itself");
            self.nodes.weigh(wanted, weighing, Keep::Gaps)?;
            for &i in &portion {
                let job = &jobs[i];
                let at = (self.target, &self.nodes, job.open.node);
                let stream = &mut self.islands[job.island].streams[job.particle];
                let (decision, log_weight) =
                    self.settings.proposal.cut(at, extents[&i], job.retained, stream);
                decisions[i].0 = decision;
                decisions[i].1 += log_weight;
            }
            self.nodes.forget_gaps(portion.iter().map(|&i| jobs[i].open.node));
        }
        Ok(())
    }

    /// Some jobs by node and key, those of the same together, in portions that look at no more than `most` rows unless
    /// they are of one node and key.
    fn portions(
        &self,
        jobs: &[Job],
        mut some: Vec<usize>,
        most: usize,
        key: impl Fn(usize) -> usize,
    ) -> Vec<Vec<usize>> {
        let key = |&i: &usize| (jobs[i].open.node, key(i));
        some.sort_by_key(key);
        let mut portions: Vec<Vec<usize>> = Vec::new();
        let mut left = 0;
        for same in some.chunk_by(|a, b| key(a) == key(b)) {
            let n_rows = self.nodes.get(jobs[same[0]].open.node).n_rows as usize;
            match portions.last_mut() {
                Some(portion) if n_rows <= left => {
                    portion.extend(same);
                    left -= n_rows;
                }
                _ => {
                    portions.push(same.to_vec());
                    left = most.saturating_sub(n_rows);
                }
            }
        }
        portions
    }

    /// What particles are about to do, by job, with extents weighed as the proposal needs them.
    fn choose(&mut self, jobs: &[Job], batch: &[usize]) -> Result<Vec<(usize, (Plan, f64))>> {
        let proposal = self.settings.proposal;
        let ids: Vec<SharedNodeId> = batch.iter().map(|&i| jobs[i].open.node).collect();
        if proposal == Proposal::Optimal {
            self.nodes.weigh_all(&ids)?;
            self.nodes.weigh_choices(ids.iter().copied());
        }
        let mut considered = Vec::with_capacity(batch.len());
        for job in batch.iter().map(|&i| &jobs[i]) {
            let stream = &mut self.islands[job.island].streams[job.particle];
            let at = (self.target, &self.nodes);
            considered.push(proposal.consider(at, job.open.node, job.retained, stream));
        }
        if let Some(weighing) = proposal.weighing().filter(|_| proposal.weighs_considered()) {
            let wanted =
                ids.iter().zip(&considered).flat_map(|(&id, these)| these.iter().map(move |&i| (id, i)));
            self.nodes.weigh(wanted.collect(), weighing, Keep::Sums)?;
        }
        let mut chosen = Vec::with_capacity(batch.len());
        for (&i, considered) in batch.iter().zip(&considered) {
            let job = &jobs[i];
            let at = (self.target, &self.nodes, job.open.node);
            let stream = &mut self.islands[job.island].streams[job.particle];
            chosen.push((i, proposal.choose(at, considered, job.retained, stream)));
        }
        Ok(chosen)
    }

    fn apply(&mut self, job: &Job, decision: Decision, log_weight: f64) {
        let island = &mut self.islands[job.island];
        let particle = &mut island.particles[job.particle];
        let proposal = self.settings.proposal;
        let Decision::Split { cut, threshold } = decision else {
            particle.log_weight += proposal.log_weight(log_weight, 0.0);
            return;
        };
        let node = self.nodes.get(job.open.node);
        let (left, right) = node.children(cut);
        let children = [left, right].map(|id| self.nodes.get(id));
        let likelihood = children[0].log_likelihood + children[1].log_likelihood;
        particle.log_weight += proposal.log_weight(log_weight, likelihood - node.log_likelihood);
        let stats = children.map(|child| Arc::clone(&child.stats));
        let slots = self.history.split(particle, job.open.slot, (cut.feature, threshold), stats);
        for ((node, slot), child) in [left, right].into_iter().zip(slots).zip(children) {
            // A single row cannot be split: its node stops, with certainty.
            if child.n_rows > 1 {
                particle.open.push_back(Open { node, slot });
            }
        }
        if let (Some(tree), 0) = (self.retained, job.particle) {
            let at = island.retained[job.open.slot as usize];
            let split = tree.nodes[at as usize].split.expect("the retained particle splits as its tree does");
            island.retained.extend([at + 1, split.right]);
        }
    }

    fn finish(self) -> Vec<Island<L::Stats>> {
        let Self { nodes, history, islands, .. } = self;
        drop(nodes);
        islands.into_iter().map(|group| group.finish(&history)).collect()
    }
}

impl Group {
    /// Lines 11 to 15 of Algorithm 3.1 (16 of Algorithm 4.2): resamples if weights have become too uneven.
    fn end_stage(&mut self, settings: &SmcSettings, conditional: bool) {
        let logs: Vec<f64> = self.particles.iter().map(|particle| particle.log_weight).collect();
        let (weights, log_evidence) = (normalised(&logs), log_mean_exp(&logs));
        let ess = effective_size(&weights);
        let n = weights.len();
        // But for rounding, which takes equal weights below the whole.
        let ancestors = (ess < settings.ess_threshold * n as f64 * (1.0 - 1e-9)).then(|| {
            if conditional {
                // The retained particle stays; the others may also descend from it.
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

    /// The trees, those of particles that made the same cuts together as one.
    fn finish<S>(self, history: &History<S>) -> Island<S> {
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

/// A stream of its own for each purpose, the same for any number of islands and particles.
fn stream(seed: u64, island: usize, purpose: usize) -> Stream {
    Stream::numbered(seed, (island as u64) << 32 | purpose as u64)
}

/// Takes the node that is decided about first, if there is one.
fn next<L: ConjugateLeaf>(
    particle: &mut Particle,
    order: CandidateOrder,
    nodes: &SharedNodes<'_, L>,
) -> Option<Open> {
    let likelihood = |i: usize| nodes.get(particle.open[i].node).log_likelihood;
    let first = match order {
        CandidateOrder::BreadthFirst => 0,
        // The oldest of equals.
        CandidateOrder::MarginalLikelihood => (1..particle.open.len())
            .fold(0, |best, i| if likelihood(i) < likelihood(best) { i } else { best }),
    };
    particle.open.remove(first)
}

/// Takes all nodes, in the order in which one after the other would be.
fn layer<L: ConjugateLeaf>(
    particle: &mut Particle,
    order: CandidateOrder,
    nodes: &SharedNodes<'_, L>,
) -> Vec<Open> {
    let mut all: Vec<Open> = particle.open.drain(..).collect();
    if order == CandidateOrder::MarginalLikelihood {
        let likelihood = |open: &Open| nodes.get(open.node).log_likelihood;
        all.sort_by(|a, b| likelihood(a).total_cmp(&likelihood(b)));
    }
    all
}

/// What the retained tree does at a node.
fn decision<L: ConjugateLeaf>(
    tree: &PreorderTree<L::Stats>,
    node_of: &[u32],
    open: Open,
    target: &Target<'_, L>,
) -> Decision {
    match tree.nodes[node_of[open.slot as usize] as usize].split {
        None => Decision::Stop,
        Some(split) => {
            let rank = target.table.column(split.feature).last_rank_below(split.threshold);
            let cut = RankCut { feature: split.feature, rank };
            Decision::Split { cut, threshold: split.threshold }
        }
    }
}
