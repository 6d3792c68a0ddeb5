//! Chains: burn-in, thinning, and what is kept of each draw.

use super::context::Odds;
use super::draws::Draws;
use super::response::Response;
use super::settings::BartSettings;
use super::sweep::Forest;
use super::tree_state::Node;
use crate::bayes::{Acceptance, Table};
use crate::control::{Threads, map};
use crate::data::Rows;
use crate::error::Result;
use crate::mondrian::{Run, Stream};

/// Where a chain was at each draw that was kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BartTrace {
    /// Standard deviation of the noise.
    pub sigma: Vec<f64>,
    /// Logarithm of the likelihood given trees and noise.
    pub log_likelihood: Vec<f64>,
    /// Leaves of all trees together.
    pub n_leaves: Vec<f64>,
    /// Of growing, pruning, changing or swapping, and Particle Gibbs, over all sweeps.
    pub acceptance: [Acceptance; 4],
}

/// All draws of all chains.
#[derive(Debug, Clone)]
pub(crate) struct SumsOfTrees {
    pub(crate) n_trees: usize,
    pub(crate) n_features: usize,
    /// What the sum of trees is added to.
    pub(crate) centre: f64,
    pub(crate) draws: Draws,
    pub(crate) traces: Vec<BartTrace>,
}

/// Targets as the chain sees them, `(y - centre) / scale`, with the scales of the priors.
#[derive(Debug)]
pub(super) struct Problem<R> {
    pub(super) targets: Vec<f64>,
    pub(super) centre: f64,
    pub(super) scale: f64,
    /// Where chains start.
    pub(super) sigma: f64,
    pub(super) sigma_mu: f64,
    pub(super) response: R,
}

impl SumsOfTrees {
    /// Runs Algorithm 4.1 on every chain.
    pub(super) fn sample<R: Response + Clone + Sync>(
        problem: &Problem<R>,
        settings: &BartSettings,
        rows: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let table = Table::new(rows, &Threads::new(run.n_threads), run.control)?;
        let odds = Odds::new(settings.prior);
        run.control.expect((settings.n_chains * n_sweeps(settings)) as u64);
        let chains = map(run.n_threads, settings.n_chains, |i| {
            chain(problem, (&table, settings, &odds), &mut Stream::new(settings.seed, i), run)
        });
        let (mut draws, mut traces) = (Draws::default(), Vec::new());
        for chain in chains {
            let (drawn, trace) = chain?;
            draws.append(&drawn);
            traces.push(trace);
        }
        let (n_trees, n_features) = (settings.n_trees, rows.n_features());
        Ok(Self { n_trees, n_features, centre: problem.centre, draws, traces })
    }

    /// Number of draws of all chains.
    pub(crate) fn n_draws(&self) -> usize {
        self.draws.starts.len() / self.n_trees
    }

    /// The mean over draws of `f(draw, centre + sum of trees)`, for every row.
    pub(super) fn mean(
        &self,
        rows: Rows<'_>,
        run: &Run<'_>,
        f: impl Fn(f64) -> f64 + Sync,
    ) -> Result<Vec<f64>> {
        let n_draws = self.n_draws();
        let blocks = self.draws.over_rows((self.n_trees, self.n_features), rows, run, |add, n_rows| {
            let (mut means, mut sums) = (vec![0.0; n_rows], vec![0.0; n_rows]);
            for draw in 0..n_draws {
                sums.fill(self.centre);
                add(draw, &mut sums);
                means.iter_mut().zip(&sums).for_each(|(mean, &sum)| *mean += f(sum) / n_draws as f64);
            }
            means
        })?;
        Ok(blocks.concat())
    }

    /// The sum of trees at every row, one draw after the other.
    pub(super) fn at(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        let n_draws = self.n_draws();
        let blocks = self.draws.over_rows((self.n_trees, self.n_features), rows, run, |add, n_rows| {
            let mut sums = vec![self.centre; n_draws * n_rows];
            for (draw, sums) in sums.chunks_exact_mut(n_rows).enumerate() {
                add(draw, sums);
            }
            (n_rows, sums)
        })?;
        let mut out = Vec::with_capacity(n_draws * rows.n_rows());
        for draw in 0..n_draws {
            for (n_rows, sums) in &blocks {
                out.extend_from_slice(&sums[draw * n_rows..(draw + 1) * n_rows]);
            }
        }
        Ok(out)
    }

    /// How many cuts of each draw are along each dimension, one draw after the other.
    pub(super) fn cuts(&self) -> Vec<u32> {
        let mut cuts = vec![0; self.n_draws() * self.n_features];
        for (i, cuts) in cuts.chunks_exact_mut(self.n_features).enumerate() {
            for tree in i * self.n_trees..(i + 1) * self.n_trees {
                for node in self.draws.tree(tree).iter().filter(|node| !node.is_leaf()) {
                    cuts[node.feature as usize] += 1;
                }
            }
        }
        cuts
    }
}

fn n_sweeps(settings: &BartSettings) -> usize {
    settings.n_burn + settings.n_draws * settings.thin
}

fn chain<R: Response + Clone>(
    problem: &Problem<R>,
    setting: (&Table, &BartSettings, &Odds),
    stream: &mut Stream,
    run: &Run<'_>,
) -> Result<(Draws, BartTrace)> {
    let settings = setting.1;
    let start = (problem.sigma, problem.sigma_mu);
    let mut forest = Forest::from_prior(setting, &problem.targets, start, stream);
    let mut response = problem.response.clone();
    let (mut draws, mut trace) = (Draws::default(), BartTrace::default());
    for sweep in 1..=n_sweeps(settings) {
        run.control.check()?;
        forest.sigma = response.draw(&mut forest.residuals, forest.sigma, stream);
        forest.sweep(stream);
        if sweep > settings.n_burn && (sweep - settings.n_burn).is_multiple_of(settings.thin) {
            forest.trees.iter().for_each(|tree| draws.push(tree, problem.scale));
            trace.add(problem, &forest, &response);
        }
        run.control.advance(1);
    }
    trace.acceptance = forest.acceptance;
    Ok((draws, trace))
}

impl BartTrace {
    fn add<R: Response>(&mut self, problem: &Problem<R>, forest: &Forest<'_>, response: &R) {
        self.sigma.push(problem.scale * forest.sigma);
        let n = problem.targets.len() as f64;
        let log_likelihood = response.log_likelihood(&forest.residuals, forest.sigma);
        self.log_likelihood.push(log_likelihood - n * libm::log(problem.scale));
        let leaves = |node: &&Node| node.is_leaf();
        let n_leaves: usize = forest.trees.iter().map(|tree| tree.nodes.iter().filter(leaves).count()).sum();
        self.n_leaves.push(n_leaves as f64);
    }
}
