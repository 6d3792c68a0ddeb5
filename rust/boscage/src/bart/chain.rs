//! Chains: burn-in, thinning, kept draws, and the continuation of an earlier fit (Algorithm 4.1).

use sha2::{Digest, Sha256};

use crate::bart::chain_state::ChainState;
use crate::bart::draws::Draws;
use crate::bart::kernel_table::StepCounts;
use crate::bart::prior::sparse::SplitWeights;
use crate::bart::settings::BartSettings;
use crate::bart::state::tree::{Node, TreeState};
use crate::bart::state::varying::parts_present;
use crate::control::{Run, map};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::data::splits::FeatureKinds;
use crate::error::{Error, Result, check_room};
use crate::random::keyed::Stream;
use crate::validate::{check, check_n_features, check_numbers};

/// Summaries of the draws that a chain kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BartTrace {
    /// Standard deviation of the noise.
    pub sigma: Vec<f64>,
    /// Logarithm of the likelihood given trees and noise.
    pub log_likelihood: Vec<f64>,
    /// Number of leaves of all trees.
    pub n_leaves: Vec<f64>,
    /// Shrinkage of leaf values; empty if it is not sampled.
    pub k: Vec<f64>,
    /// Concentration of the split probabilities; empty if they are not sampled.
    pub alpha: Vec<f64>,
    /// Split probabilities of all features, one draw after the other; empty if they are not sampled.
    pub split_probabilities: Vec<f64>,
    /// How often each kind of step was tried, and how often it changed a tree, over all sweeps.
    pub acceptance: StepCounts,
}

/// Summary of the state of a chain after a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sweep {
    /// The number of the chain, from 0.
    pub chain: usize,
    /// The number of the sweep, from 1. The first `n_burn` sweeps are burn-in.
    pub iteration: usize,
    /// Standard deviation of the noise.
    pub sigma: f64,
    /// Logarithm of the likelihood given trees and noise.
    pub log_likelihood: f64,
}

/// A callback after every sweep, called from the threads of the chains. An error ends all chains and the fit.
pub type Watch<'a> = dyn Fn(&Sweep) -> Result<()> + Sync + 'a;

/// The draws of all chains.
#[derive(Debug, Clone)]
pub(crate) struct SumsOfTrees {
    pub(crate) n_trees: usize,
    pub(crate) n_features: usize,
    pub(crate) kinds: FeatureKinds,
    /// The constant that is added to each sum of trees.
    pub(crate) centres: Vec<f64>,
    /// The trees of each draw, one sum after the other.
    pub(crate) draws: Draws,
    pub(crate) traces: Vec<BartTrace>,
    /// The state of each chain after its last sweep, from which a later fit continues.
    pub(crate) ends: Vec<ChainEnd>,
    pub(crate) seed: u64,
    /// Hash of rows, targets, and all settings except the number of draws.
    pub(crate) fingerprint: [u8; 32],
}

/// The state of a chain after its last sweep.
#[derive(Debug, Clone)]
pub(crate) struct ChainEnd {
    /// Number of sweeps so far.
    pub(crate) sweeps: u64,
    /// Number of random numbers drawn so far.
    pub(crate) position: u64,
    /// The trees, without the leaves of the training rows.
    pub(crate) trees: Vec<TreeState>,
    /// The other numbers of the state.
    pub(crate) numbers: Vec<f64>,
    /// Concentration and log split probabilities, if these are sampled.
    pub(crate) weights: Option<(f64, Vec<f64>)>,
}

/// The input of all chains.
pub(crate) struct Chains<'a> {
    pub(crate) settings: &'a BartSettings,
    pub(crate) centres: Vec<f64>,
    /// Hash of rows, targets and settings.
    pub(crate) fingerprint: [u8; 32],
    /// Whether all chains start from trees without cuts.
    pub(crate) starts_alike: bool,
    /// The draws to continue from.
    pub(crate) from: Option<&'a SumsOfTrees>,
    pub(crate) watch: Option<&'a Watch<'a>>,
}

impl<'a> Chains<'a> {
    /// Those of a sum that is counted from zero, which cannot be continued.
    pub(crate) fn alone(settings: &'a BartSettings, watch: Option<&'a Watch<'a>>) -> Self {
        Self { settings, centres: vec![0.0], fingerprint: [0; 32], starts_alike: false, from: None, watch }
    }
}

/// A hash of rows, targets, and all settings except the number of draws.
pub(crate) fn fingerprint(
    settings: &BartSettings,
    rows: Rows<'_>,
    observed: impl Iterator<Item = u64>,
) -> [u8; 32] {
    /// Tables with more features have the hash of the values that are not 0, each with its row and feature.
    const WIDE: usize = 1 << 10;
    let (mut hash, n_features) = (Sha256::new(), rows.n_features());
    settings.hashed().iter().for_each(|bits| hash.update(bits.to_le_bytes()));
    if n_features > WIDE {
        hash.update((n_features as u64).to_le_bytes());
    }
    for row in 0..rows.n_rows() {
        if n_features > WIDE {
            for (feature, value) in rows.nonzero(row) {
                for bits in [row as u64, feature as u64, value.to_bits()] {
                    hash.update(bits.to_le_bytes());
                }
            }
        } else {
            // Negative zero becomes zero.
            rows.row(row).for_each(|value| hash.update((value + 0.0).to_le_bytes()));
        }
    }
    observed.for_each(|bits| hash.update(bits.to_le_bytes()));
    rows.n_categories().iter().for_each(|n| hash.update(n.to_le_bytes()));
    hash.finalize().into()
}

impl Chains<'_> {
    /// Runs Algorithm 4.1, which leaves the posterior (eq. 4.6) invariant, on every chain; `sampler` makes the
    /// state of a chain from its number. The first chain starts from trees without cuts and the others from
    /// draws of the prior, so that agreement between chains indicates convergence, unless `starts_alike`.
    pub(crate) fn run<S: ChainState>(
        &self,
        table: &SortedColumns,
        sampler: impl Fn(usize, &mut Stream) -> Result<S> + Sync,
        run: &Run<'_>,
    ) -> Result<SumsOfTrees> {
        let settings = self.settings;
        let done = self.check_from()?;
        let numbers = check_numbers("chain", settings.chain, settings.n_chains)?;
        run.control.expect((numbers.len() * (n_sweeps(settings) - done)) as u64);
        let chains = map(run.n_threads, numbers.len(), |i| {
            let number = numbers.start + i;
            let mut stream = Stream::new(settings.seed, number);
            let sampler = sampler(if self.starts_alike { 0 } else { number }, &mut stream)?;
            let weights = settings.sparse.map(|sparse| SplitWeights::new(sparse, table.n_features()));
            let (draws, trace) = (Draws::default(), BartTrace::default());
            let mut chain = RunningChain { number, sampler, stream, sweeps: 0, weights, draws, trace };
            if let Some(from) = self.from {
                chain.resume(from, (table, settings))?;
            }
            while chain.sweeps < n_sweeps(settings) {
                chain.advance(table, self, run)?;
            }
            Ok(chain.end())
        });
        let (mut draws, mut traces, mut ends) = (Draws::default(), Vec::new(), Vec::new());
        for chain in chains {
            let (drawn, trace, end) = chain?;
            draws.append(&drawn);
            traces.push(trace);
            ends.push(end);
        }
        let mut kinds = table.kinds().clone();
        // The draws of an older file lack the sides.
        kinds.has_sides = self.from.is_none_or(|from| from.kinds.has_sides);
        Ok(SumsOfTrees {
            n_trees: settings.n_trees,
            n_features: table.n_features(),
            kinds,
            centres: self.centres.clone(),
            draws,
            traces,
            ends,
            seed: settings.seed,
            fingerprint: self.fingerprint,
        })
    }

    /// Number of sweeps that each chain did in the earlier fit.
    fn check_from(&self) -> Result<usize> {
        let Some(from) = self.from else { return Ok(0) };
        let same = from.fingerprint == self.fingerprint && from.ends.len() == self.settings.n_chains;
        check("a continued fit", same, "one of the same X, y and settings except n_draws", &"others")?;
        let n_draws = from.n_draws() / self.settings.n_chains;
        let enough = self.settings.n_draws >= n_draws;
        check("n_draws", enough, "at least the number of draws so far", &self.settings.n_draws)?;
        Ok(n_sweeps(&BartSettings { n_draws, ..self.settings.clone() }))
    }
}

/// A chain while it runs.
struct RunningChain<S> {
    number: usize,
    sampler: S,
    stream: Stream,
    sweeps: usize,
    weights: Option<SplitWeights>,
    draws: Draws,
    trace: BartTrace,
}

impl<S: ChainState> RunningChain<S> {
    fn advance(&mut self, table: &SortedColumns, chains: &Chains<'_>, run: &Run<'_>) -> Result<()> {
        let settings = chains.settings;
        self.sampler.sweep(&mut self.stream, run.control)?;
        self.sweeps += 1;
        // In the first half of burn-in all features have equal weights, while trees find the relevant ones.
        if let Some(weights) = self.weights.as_mut().filter(|_| self.sweeps > settings.n_burn / 2) {
            weights.draw(self.sampler.trees().into_iter(), table, &mut self.stream);
            self.sampler.set_log_weights(&weights.log_s);
        }
        if self.sweeps > settings.n_burn && (self.sweeps - settings.n_burn).is_multiple_of(settings.thin) {
            self.keep(table);
        }
        if let Some(watch) = chains.watch {
            let (sigma, log_likelihood) = (self.sampler.sigma(), self.sampler.log_likelihood());
            let sweep = Sweep { chain: self.number, iteration: self.sweeps, sigma, log_likelihood };
            watch(&sweep).inspect_err(|_| run.control.stop())?;
        }
        run.control.advance(1);
        Ok(())
    }

    fn keep(&mut self, table: &SortedColumns) {
        let trees = self.sampler.trees();
        for tree in &trees {
            self.draws.push(tree, self.sampler.scale(), table);
        }
        self.trace.sigma.push(self.sampler.sigma());
        self.trace.log_likelihood.push(self.sampler.log_likelihood());
        let n_leaves: usize = trees.iter().map(|tree| tree.n_leaves()).sum();
        self.trace.n_leaves.push(n_leaves as f64);
        self.trace.k.extend(self.sampler.k());
        if let Some(weights) = &self.weights {
            self.trace.alpha.push(weights.alpha);
            self.trace.split_probabilities.extend(weights.log_s.iter().map(|&log_s| libm::exp(log_s)));
        }
    }

    /// Restores the state of the same chain from an earlier fit.
    fn resume(
        &mut self,
        from: &SumsOfTrees,
        (table, settings): (&SortedColumns, &BartSettings),
    ) -> Result<()> {
        let end = &from.ends[self.number];
        self.trace = from.traces[self.number].clone();
        self.draws = from.draws.of_chain(self.number, from.ends.len());
        self.stream.seek(end.position);
        self.sweeps = end.sweeps as usize;
        let with_rows = |tree: &TreeState| {
            let tree = tree.clone().with_rows(table)?;
            let is_valid = tree.select(Node::is_inner).all(|id| parts_present(&tree, id, table));
            is_valid.then_some(tree)
        };
        let trees: Option<Vec<_>> = end.trees.iter().map(with_rows).collect();
        let restored =
            trees.is_some_and(|trees| self.sampler.restore(trees, &end.numbers, self.trace.acceptance));
        let n_draws = self.trace.sigma.len();
        let sweeps = n_sweeps(&BartSettings { n_draws, ..settings.clone() });
        let mut fits = restored && sweeps == self.sweeps && self.weights.is_some() == end.weights.is_some();
        if let (Some(weights), Some((alpha, log_s))) = (&mut self.weights, &end.weights) {
            fits &= log_s.len() == weights.log_s.len();
            (weights.alpha, weights.log_s) = (*alpha, log_s.clone());
            if self.sweeps > settings.n_burn / 2 {
                self.sampler.set_log_weights(log_s);
            }
        }
        if fits {
            Ok(())
        } else {
            Err(Error::ModelFile("where its chains ended is not of these data".into()))
        }
    }

    fn end(mut self) -> (Draws, BartTrace, ChainEnd) {
        self.trace.acceptance = self.sampler.acceptance();
        let end = ChainEnd {
            sweeps: self.sweeps as u64,
            position: self.stream.position(),
            trees: self.sampler.trees().into_iter().map(TreeState::bare).collect(),
            numbers: self.sampler.numbers(),
            weights: self.weights.map(|weights| (weights.alpha, weights.log_s)),
        };
        (self.draws, self.trace, end)
    }
}

/// The link function: replaces the sums of trees at some rows, each sum a slice, by predictions.
pub(crate) type LinkFunction = fn(&mut [f64], usize);

impl SumsOfTrees {
    /// The draws of all chains, given those of each, in their order.
    ///
    /// # Errors
    /// [`Error::NotJoinable`] if data or settings differ; [`Error::InvalidSetting`] if there is none, or one twice.
    pub(crate) fn join(chains: Vec<Self>) -> Result<Self> {
        check("the number of fits to join", !chains.is_empty(), "at least 1", &0)?;
        for (second, chain) in chains.iter().enumerate() {
            // Chains draw real numbers, each its own.
            let first = chains.iter().position(|other| other.draws == chain.draws).unwrap_or(second);
            let found = format!("the same draws in fits {first} and {second}");
            check("chains to join", first == second, "there once each", &found)?;
        }
        let mut chains = chains.into_iter();
        let mut all = chains.next().expect("there is a chain");
        for chain in chains {
            all.check_same_fit(&chain)?;
            all.kinds.has_sides &= chain.kinds.has_sides;
            all.draws.append(&chain.draws);
            all.traces.extend(chain.traces);
            all.ends.extend(chain.ends);
        }
        Ok(all)
    }

    /// Whether other chains are of the same data and settings.
    fn check_same_fit(&self, other: &Self) -> Result<()> {
        let shape = |this: &Self| (this.n_trees, this.n_features, this.traces[0].sigma.len());
        let is_same = self.fingerprint == other.fingerprint
            && self.kinds.are_alike(&other.kinds)
            && self.centres == other.centres
            && shape(self) == shape(other);
        if is_same { Ok(()) } else { Err(Error::NotJoinable { what: "X, y and settings" }) }
    }

    /// Number of sums of trees: one, or one for each class.
    pub(crate) fn n_sums(&self) -> usize {
        self.centres.len()
    }

    /// Number of draws of all chains.
    pub(crate) fn n_draws(&self) -> usize {
        self.draws.starts.len() / (self.n_trees * self.n_sums())
    }

    /// Checks the number of features of some rows, and whether values may be missing.
    pub(crate) fn check_rows(&self, rows: Rows<'_>) -> Result<()> {
        check_n_features(rows, self.n_features)?;
        self.kinds.check(rows)
    }

    /// The predictions of a draw at the rows of a block.
    fn sums(
        &self,
        draw: usize,
        link: LinkFunction,
        add: &mut dyn FnMut(usize, &mut [f64]),
        sums: &mut [f64],
    ) {
        let n_rows = sums.len() / self.n_sums();
        for (i, (sums, &centre)) in sums.chunks_exact_mut(n_rows).zip(&self.centres).enumerate() {
            sums.fill(centre);
            add(draw * self.n_sums() + i, sums);
        }
        link(sums, n_rows);
    }

    /// Predictions averaged over draws, row by row.
    pub(crate) fn mean(&self, rows: Rows<'_>, run: &Run<'_>, link: LinkFunction) -> Result<Vec<f64>> {
        self.check_rows(rows)?;
        let (n_draws, n_sums) = (self.n_draws(), self.n_sums());
        let blocks = self.draws.over_rows(self.n_trees, rows, run, |add, n_rows| {
            let (mut means, mut sums) = (vec![0.0; n_sums * n_rows], vec![0.0; n_sums * n_rows]);
            for draw in 0..n_draws {
                self.sums(draw, link, add, &mut sums);
                means.iter_mut().zip(&sums).for_each(|(mean, &f)| *mean += f / n_draws as f64);
            }
            by_row(&means, n_sums)
        })?;
        Ok(blocks.concat())
    }

    /// Predictions of each draw, row by row, one draw after the other.
    pub(crate) fn at(&self, rows: Rows<'_>, run: &Run<'_>, link: LinkFunction) -> Result<Vec<f64>> {
        self.check_rows(rows)?;
        let (n_draws, n_sums) = (self.n_draws(), self.n_sums());
        let blocks = self.draws.over_rows(self.n_trees, rows, run, |add, n_rows| {
            let mut sums = vec![0.0; n_sums * n_rows];
            let of_draw = |draw| {
                self.sums(draw, link, add, &mut sums);
                by_row(&sums, n_sums)
            };
            (n_sums * n_rows, (0..n_draws).flat_map(of_draw).collect::<Vec<f64>>())
        })?;
        let mut out = Vec::with_capacity(n_draws * n_sums * rows.n_rows());
        for draw in 0..n_draws {
            for (n, sums) in &blocks {
                out.extend_from_slice(&sums[draw * n..(draw + 1) * n]);
            }
        }
        Ok(out)
    }

    /// Number of cuts along each feature in each draw, one draw after the other.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn cuts(&self) -> Result<Vec<u32>> {
        let n_trees = self.n_trees * self.n_sums();
        let n = self.n_draws() * self.n_features;
        check_room("counts of cuts", n * size_of::<u32>())?;
        let mut cuts = vec![0; n];
        for (i, cuts) in cuts.chunks_exact_mut(self.n_features).enumerate() {
            for tree in i * n_trees..(i + 1) * n_trees {
                for node in self.draws.tree(tree).iter().filter(|node| !node.is_leaf()) {
                    cuts[node.feature() as usize] += 1;
                }
            }
        }
        Ok(cuts)
    }
}

fn n_sweeps(settings: &BartSettings) -> usize {
    settings.n_burn + settings.n_draws * settings.thin
}

/// Transposes values ordered by sum to values ordered by row.
fn by_row(sums: &[f64], n_sums: usize) -> Vec<f64> {
    let n_rows = sums.len() / n_sums;
    (0..sums.len()).map(|i| sums[i % n_sums * n_rows + i / n_sums]).collect()
}
