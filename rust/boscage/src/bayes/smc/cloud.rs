//! The particles of all islands, advanced stage by stage: lines 2 to 17 of Algorithm 3.1.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bayes::cuts::Rule;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::smc::island::{Island, RunningIsland};
use crate::bayes::smc::nodes::{Keep, SharedNodes};
use crate::bayes::smc::particle::{History, Open, Particle};
use crate::bayes::smc::proposals::{Decision, Plan, Proposal};
use crate::bayes::smc::settings::{CandidateOrder, Expansion, SmcSettings};
use crate::bayes::smc::shared_node::SharedNodeId;
use crate::bayes::target::{SubtreeRoot, TargetPosterior};
use crate::bayes::tree::PreorderTree;
use crate::control::{Control, Threads};
use crate::error::Result;

/// Gaps that are always weighed together, however few rows there are; they take some 16 MB.
const FEW_GAPS: usize = 1 << 20;

/// The particles of all islands. All islands advance together, so that they share nodes.
pub(crate) struct Cloud<'a, L: ConjugateLeaf> {
    target: &'a TargetPosterior<'a, L>,
    settings: &'a SmcSettings,
    nodes: SharedNodes<'a, L>,
    history: History<L::Stats>,
    islands: Vec<RunningIsland>,
    retained: Option<&'a PreorderTree<L::Stats>>,
}

/// A node that a particle has to decide about in this stage.
struct Job {
    island: usize,
    particle: usize,
    open: Open,
    retained: Option<Decision>,
}

impl<'a, L: ConjugateLeaf> Cloud<'a, L> {
    /// All islands with only the root. If `retained` is given, the first particle of each island follows that
    /// tree.
    pub(crate) fn new(
        target: &'a TargetPosterior<'a, L>,
        settings: &'a SmcSettings,
        (threads, control): (&'a Threads, &'a Control),
        (root, retained): (SubtreeRoot, Option<&'a PreorderTree<L::Stats>>),
    ) -> Self {
        let nodes = SharedNodes::new(target, threads, control, root);
        let root = nodes.get(SharedNodes::<L>::ROOT);
        let start = (SharedNodes::<L>::ROOT, root.log_likelihood);
        let numbers = settings.island.map_or(0..settings.n_islands, |number| number..number + 1);
        let islands = numbers.map(|i| RunningIsland::new(settings, i, start)).collect();
        let history = History::new(Arc::clone(&root.stats));
        Self { target, settings, nodes, history, islands, retained }
    }

    /// Runs all stages (Algorithm 3.1).
    pub(crate) fn run(&mut self, control: &Control) -> Result<()> {
        for _ in 0..self.settings.max_stages {
            control.check()?;
            let jobs = self.pop();
            if jobs.is_empty() {
                break;
            }
            self.expand(&jobs, control)?;
            // Finished islands do not change while others continue.
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
            // A conditional run is part of another computation, which counts its own steps.
            if self.retained.is_none() {
                control.advance(1);
            }
        }
        Ok(())
    }

    /// The nodes `C_(t)` of this stage, removed from those eligible for expansion.
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

    /// Lines 7 to 10 of Algorithm 3.1: decides about nodes and updates weights.
    fn expand(&mut self, jobs: &[Job], control: &Control) -> Result<()> {
        let ids: Vec<SharedNodeId> = jobs.iter().map(|job| job.open.node).collect();
        self.nodes.open(&ids)?;
        let mut decisions = vec![(Decision::Stop, 0.0); jobs.len()];
        let (n_rows, n_features) = (self.target.table.n_rows(), self.target.table.n_columns());
        // Gaps weighed together take at most a fraction of the memory of the rows, or a few megabytes, which
        // is enough work for all threads.
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

    /// Decides for some jobs whether to stop, or which extent to cut and where, and computes the logarithms
    /// of `P / Q`. Jobs are decided independently (eq. 3.8).
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
            let weighing = self.settings.proposal.weighing().expect("only the prior has no weights of gaps");
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

    /// Sorts jobs by node and key, and divides them into portions of at most `most` rows. Jobs of the same
    /// node and key stay together, and may exceed the limit.
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

    /// The choice of each job, after the extents that the proposal needs have been weighed.
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

    /// Gives the particle of a job its decision and its new weight (eq. 3.7; in BART, eq. 4.10).
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
            // A single row cannot be split, so its node is a leaf.
            if child.n_rows > 1 || self.target.leaf.stands_for_several(&child.stats) {
                particle.open.push_back(Open { node, slot });
            }
        }
        if let (Some(tree), 0) = (self.retained, job.particle) {
            let at = island.retained[job.open.slot as usize];
            let split = tree.nodes[at as usize].split.expect("the retained particle splits as its tree does");
            island.retained.extend([at + 1, split.right]);
        }
    }

    /// The islands with their trees.
    pub(crate) fn finish(self) -> Vec<Island<L::Stats>> {
        let Self { nodes, history, islands, .. } = self;
        drop(nodes);
        islands.into_iter().map(|island| island.finish(&history)).collect()
    }
}

/// Removes the node to decide about first, if there is one.
fn next<L: ConjugateLeaf>(
    particle: &mut Particle,
    order: CandidateOrder,
    nodes: &SharedNodes<'_, L>,
) -> Option<Open> {
    let likelihood = |i: usize| nodes.get(particle.open[i].node).log_likelihood;
    let first = match order {
        CandidateOrder::BreadthFirst => 0,
        // The oldest if several are equal.
        CandidateOrder::MarginalLikelihood => (1..particle.open.len())
            .fold(0, |best, i| if likelihood(i) < likelihood(best) { i } else { best }),
    };
    particle.open.remove(first)
}

/// Removes all nodes, in the order in which [`next`] would return them.
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

/// The decision of the retained tree at a node.
fn decision<L: ConjugateLeaf>(
    tree: &PreorderTree<L::Stats>,
    node_of: &[u32],
    open: Open,
    target: &TargetPosterior<'_, L>,
) -> Decision {
    match tree.nodes[node_of[open.slot as usize] as usize].split {
        None => Decision::Stop,
        Some(split) => {
            let Rule { cut, threshold } = Rule::of_split(split.rule, target.table);
            Decision::Split { cut, threshold }
        }
    }
}
