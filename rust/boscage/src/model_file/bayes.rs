//! The fields of Bayesian trees: the trees with the statistics of their nodes, and the sampler's report.

use std::sync::Arc;

use crate::bayes::leaf::dirichlet::{ClassTotals, check_alpha};
use crate::bayes::leaf::normal::{NormalPrior, NormalTotals};
use crate::bayes::mcmc::{Acceptance, Draw};
use crate::bayes::posterior::bayesian_trees::{BayesianTrees, FittedLeaf};
use crate::bayes::posterior::classifier::{BayesianTreeClassifier, ClassLeaves};
use crate::bayes::posterior::regressor::BayesianTreeRegressor;
use crate::bayes::posterior::weighted_trees::{ChainReport, Ensemble, IslandReport, Report};
use crate::bayes::prior::ChipmanPrior;
use crate::bayes::smc::island::Stage;
use crate::bayes::tree::{PreorderNode, PreorderSplit, PreorderTree};
use crate::control::Run;
use crate::data::splits::FeatureKinds;
use crate::error::Result;
use crate::model_file::format::{ITEM, PLAIN, Reader, TREE_WEIGHTS, Writer};
use crate::model_file::splits::version_of_trees;
use crate::validate::{MAX_DRAWS, MAX_PARTICLES};

/// Statistics of a node's rows, and how they are checked.
pub(crate) trait Stored {
    fn n_rows(&self) -> u32;

    /// The sum of the rows' weights.
    fn weight(&self) -> f64;

    /// Whether all rows weigh 1, as far as the sums tell.
    fn is_without_weights(&self) -> bool {
        self.weight() == f64::from(self.n_rows())
    }

    /// Whether they are the sum of the children's, up to rounding errors of sums over all rows.
    fn is_sum(&self, children: [&Self; 2], root: &Self) -> bool;
}

impl Stored for ClassTotals {
    fn n_rows(&self) -> u32 {
        self.n_rows
    }

    fn weight(&self) -> f64 {
        self.weight()
    }

    fn is_without_weights(&self) -> bool {
        self.by_class.iter().all(|weight| weight.fract() == 0.0) && self.weight() == f64::from(self.n_rows)
    }

    fn is_sum(&self, [left, right]: [&Self; 2], root: &Self) -> bool {
        /// Larger differences than those of rounded weights, and smaller ones than those of numbers of rows.
        const ROUNDING: f64 = 1e-12;
        let tolerance = ROUNDING * root.weight();
        let mut classes = self.by_class.iter().zip(left.by_class.iter().zip(&right.by_class));
        left.n_rows.checked_add(right.n_rows) == Some(self.n_rows)
            && classes.all(|(all, (left, right))| (all - (left + right)).abs() <= tolerance)
    }
}

impl Stored for NormalTotals {
    fn n_rows(&self) -> u32 {
        self.n_rows
    }

    fn weight(&self) -> f64 {
        self.weight
    }

    fn is_sum(&self, [left, right]: [&Self; 2], root: &Self) -> bool {
        /// Larger differences than rounding causes in sums over rows.
        const ROUNDING: f64 = 1e-6;
        let is_near = |a: f64, b: f64, scale: f64| (a - b).abs() <= ROUNDING * scale;
        left.n_rows.checked_add(right.n_rows) == Some(self.n_rows)
            && is_near(self.weight, left.weight + right.weight, root.weight)
            && is_near(self.sum, left.sum + right.sum, (root.weight * root.squares).sqrt())
            && is_near(self.squares, left.squares + right.squares, root.squares)
    }
}

/// The oldest version that can hold a model.
pub(crate) fn version<L: FittedLeaf<Stats: Stored>>(model: &BayesianTrees<L>) -> u32 {
    let mut nodes = model.ensemble.trees.iter().flat_map(|tree| &tree.nodes);
    let without_weights = version_of_trees(&model.ensemble.kinds, PLAIN);
    if nodes.all(|node| node.stats.is_without_weights()) {
        without_weights
    } else {
        without_weights.max(TREE_WEIGHTS)
    }
}

pub(crate) fn write_classifier(writer: &mut Writer, model: &BayesianTreeClassifier, annotation: &str) {
    writer.f64(model.leaf.alpha);
    writer.list(&model.leaf.labels, Writer::label);
    write_prior(writer, model.prior.as_ref());
    writer.text(annotation);
    write_ensemble(writer, &model.ensemble, |writer, totals| {
        if writer.version < TREE_WEIGHTS {
            totals.by_class.iter().for_each(|&count| writer.u32(count as u32));
        } else {
            writer.u32(totals.n_rows);
            totals.by_class.iter().for_each(|&weight| writer.f64(weight));
        }
    });
}

pub(crate) fn read_classifier(reader: &mut Reader<'_>, _: &Run<'_>) -> Result<BayesianTreeClassifier> {
    let alpha = reader.f64("alpha")?;
    reader.checked(check_alpha(alpha))?;
    let labels = reader.list("classes", 8, |reader| reader.label(ITEM))?;
    if labels.is_empty() || !labels.is_sorted_by(|a, b| a < b) {
        return Err(reader.expected("one label or more, in ascending order", format!("{labels:?}")));
    }
    let prior = read_prior(reader)?;
    let annotation = reader.text("annotation")?;
    let ensemble = read_ensemble(reader, |reader| {
        if reader.version < TREE_WEIGHTS {
            read_counts(reader, labels.len())
        } else {
            let n_rows = reader.u32("n_rows")?;
            let by_class = reader.list_of("weights", labels.len(), read_weight)?;
            Ok(ClassTotals { n_rows, by_class: by_class.into() })
        }
    })?;
    Ok(BayesianTreeClassifier { ensemble, prior, leaf: ClassLeaves { alpha, labels }, annotation })
}

/// The rows of a node of each class, of weight 1.
fn read_counts(reader: &mut Reader<'_>, n_classes: usize) -> Result<ClassTotals> {
    let by_class = reader.list_of("counts", n_classes, |reader| reader.u32(ITEM))?;
    match by_class.iter().try_fold(0u32, |sum, &count| sum.checked_add(count)) {
        Some(n_rows) => Ok(ClassTotals { n_rows, by_class: by_class.into_iter().map(f64::from).collect() }),
        None => Err(reader.expected("counts whose sum is below 2^32", format!("{by_class:?}"))),
    }
}

/// The sum of the weights of some rows.
fn read_weight(reader: &mut Reader<'_>) -> Result<f64> {
    let weight = reader.finite(ITEM)?;
    if weight >= 0.0 { Ok(weight) } else { Err(reader.expected("a number not below 0", weight)) }
}

pub(crate) fn write_regressor(writer: &mut Writer, model: &BayesianTreeRegressor, annotation: &str) {
    let leaf = &model.leaf;
    for value in [leaf.prior_mean, leaf.kappa, leaf.shape, leaf.scale] {
        writer.f64(value);
    }
    write_prior(writer, model.prior.as_ref());
    writer.text(annotation);
    write_ensemble(writer, &model.ensemble, |writer, totals| {
        writer.u32(totals.n_rows);
        if writer.version >= TREE_WEIGHTS {
            writer.f64(totals.weight);
        }
        writer.f64(totals.sum);
        writer.f64(totals.squares);
    });
}

pub(crate) fn read_regressor(reader: &mut Reader<'_>, _: &Run<'_>) -> Result<BayesianTreeRegressor> {
    let leaf = reader.group("leaf_prior", |reader| {
        let [prior_mean, kappa] = [reader.f64("prior_mean")?, reader.f64("kappa")?];
        Ok(NormalPrior { prior_mean, kappa, shape: reader.f64("shape")?, scale: reader.f64("scale")? })
    })?;
    reader.checked(leaf.check())?;
    let prior = read_prior(reader)?;
    let annotation = reader.text("annotation")?;
    let ensemble = read_ensemble(reader, |reader| {
        let n_rows = reader.u32("n_rows")?;
        let is_weighted = reader.version >= TREE_WEIGHTS;
        Ok(NormalTotals {
            n_rows,
            weight: if is_weighted { reader.group("weight", read_weight)? } else { f64::from(n_rows) },
            sum: reader.finite("sum")?,
            squares: reader.finite("sum_of_squares")?,
        })
    })?;
    Ok(BayesianTreeRegressor { ensemble, prior, leaf, annotation })
}

/// A prior of the user's type is not stored; the file records only that it is one.
fn write_prior(writer: &mut Writer, prior: Option<&ChipmanPrior>) {
    let numbers = prior.map(|prior| [prior.alpha_s(), prior.beta_s()]);
    writer.list(numbers.as_ref().map_or(&[], <[f64; 2]>::as_slice), |writer, value| writer.f64(*value));
}

fn read_prior(reader: &mut Reader<'_>) -> Result<Option<ChipmanPrior>> {
    match reader.f64s("tree_prior")?[..] {
        [] => Ok(None),
        [alpha_s, beta_s] => reader.checked(ChipmanPrior::new(alpha_s, beta_s)).map(Some),
        ref other => Err(reader.expected("no number or two (alpha_s and beta_s)", other.len())),
    }
}

fn write_ensemble<S>(writer: &mut Writer, ensemble: &Ensemble<S>, stats: impl Fn(&mut Writer, &S)) {
    writer.list(&ensemble.ranges, |writer, (low, high)| {
        writer.f64(*low);
        writer.f64(*high);
    });
    writer.feature_kinds(&ensemble.kinds);
    let has_sides = ensemble.kinds.has_sides;
    writer.list(&ensemble.weights, |writer, weight| writer.f64(*weight));
    writer.list(&ensemble.log_posteriors, |writer, log| writer.f64(*log));
    writer.list(&ensemble.trees, |writer, tree| write_tree(writer, tree, has_sides, &stats));
    write_report(writer, &ensemble.report);
}

fn write_tree<S>(
    writer: &mut Writer,
    tree: &PreorderTree<S>,
    has_sides: bool,
    stats: &impl Fn(&mut Writer, &S),
) {
    writer.list(&tree.nodes, |writer, node| {
        match node.split {
            None => writer.u8(0),
            Some(split) => {
                writer.u8(1);
                writer.u32(split.rule.feature);
                writer.f64(split.rule.threshold);
                if has_sides {
                    writer.u8(u8::from(split.rule.missing_right));
                }
            }
        }
        stats(writer, &node.stats);
    });
}

fn read_ensemble<S: Stored>(
    reader: &mut Reader<'_>,
    stats: impl Fn(&mut Reader<'_>) -> Result<S>,
) -> Result<Ensemble<S>> {
    let ranges = reader.list("ranges", 16, |reader| {
        let (low, high) = (reader.finite("low")?, reader.finite("high")?);
        if low <= high { Ok((low, high)) } else { Err(reader.expected(format!("at least {low}"), high)) }
    })?;
    let kinds = reader.feature_kinds(ranges.len())?;
    let features = Features { ranges: &ranges, kinds: &kinds };
    let weights = reader.list("weights", 8, |reader| {
        let weight = reader.f64(ITEM)?;
        if weight > 0.0 { Ok(weight) } else { Err(reader.expected("a positive number", weight)) }
    })?;
    let sum: f64 = weights.iter().sum();
    if (sum - 1.0).abs() > 1e-6 {
        return Err(reader.expected("a sum of 1", sum));
    }
    let log_posteriors = reader.list("log_posteriors", 8, |reader| {
        let log = reader.f64(ITEM)?;
        if log < f64::INFINITY { Ok(log) } else { Err(reader.expected("a number below infinity", log)) }
    })?;
    let log_posteriors_at = reader.last();
    let trees: Vec<PreorderTree<S>> =
        reader.list("trees", 8, |reader| read_tree(reader, features, &stats))?;
    let n_rows = |tree: &PreorderTree<S>| tree.nodes[0].stats.n_rows();
    if let Some(i) = trees.iter().position(|tree| n_rows(tree) != n_rows(&trees[0])) {
        let found = format!("{} of tree {i}", n_rows(&trees[i]));
        return Err(reader.expected(format!("the {} rows of tree 0 in every tree", n_rows(&trees[0])), found));
    }
    if trees.len() != weights.len() {
        return Err(reader.expected(format!("{} trees, one for each weight", weights.len()), trees.len()));
    }
    if trees.len() != log_posteriors.len() {
        let expected = format!("{} numbers, one for each tree", trees.len());
        return Err(reader.expected_at(log_posteriors_at, expected, log_posteriors.len()));
    }
    let shapes: Vec<(u32, u32)> = trees.iter().map(PreorderTree::leaves_and_depth).collect();
    let report = reader.group("report", |reader| read_report(reader, &shapes))?;
    Ok(Ensemble { trees, weights, log_posteriors, ranges, kinds, report, number: None })
}

/// What splits of features may be.
#[derive(Debug, Clone, Copy)]
struct Features<'a> {
    ranges: &'a [(f64, f64)],
    kinds: &'a FeatureKinds,
}

fn read_tree<S: Stored>(
    reader: &mut Reader<'_>,
    features: Features<'_>,
    stats: impl Fn(&mut Reader<'_>) -> Result<S>,
) -> Result<PreorderTree<S>> {
    let mut nodes = reader.list("nodes", 1, |reader| {
        let split = reader.flag("is_split")?.then(|| read_split(reader, features)).transpose()?;
        Ok(PreorderNode { split, stats: Arc::new(stats(reader)?) })
    })?;
    // Nodes are in preorder: a right child is the first node after the left subtree.
    let mut waiting: Vec<usize> = Vec::new();
    for i in 0..nodes.len() {
        if nodes[i].split.is_some() {
            waiting.push(i);
        } else if i + 1 < nodes.len() {
            let Some(parent) = waiting.pop() else {
                return Err(reader.expected("a tree", format!("{} nodes after its end", nodes.len() - i - 1)));
            };
            nodes[parent].split.as_mut().expect("only split nodes are on the stack").right = i as u32 + 1;
        }
    }
    if nodes.is_empty() {
        return Err(reader.expected("a tree", "no nodes"));
    }
    if let Some(&parent) = waiting.first() {
        return Err(reader.expected("a tree", format!("a split, node {parent}, that lacks a child")));
    }
    let stats = |i: usize| nodes[i].stats.as_ref();
    for (i, node) in nodes.iter().enumerate() {
        match node.split {
            None if node.stats.n_rows() == 0 || node.stats.weight() <= 0.0 => {
                return Err(reader.expected("rows in every leaf", format!("none in node {i}")));
            }
            Some(split) if !stats(i).is_sum([stats(i + 1), stats(split.right as usize)], stats(0)) => {
                let found = format!("others in node {i}");
                return Err(reader.expected("in every split the rows of both children", found));
            }
            _ => {}
        }
    }
    Ok(PreorderTree { nodes })
}

fn read_split(reader: &mut Reader<'_>, features: Features<'_>) -> Result<PreorderSplit> {
    let Features { ranges, kinds } = features;
    let feature = reader.u32("feature")?;
    let Some(&(low, high)) = ranges.get(feature as usize) else {
        return Err(reader.expected(format!("a feature below {}", ranges.len()), feature));
    };
    let rule = reader.tree_split(feature, kinds, |reader| {
        let threshold = reader.f64("threshold")?;
        // An infinite threshold separates missing from present values.
        let is_apart = kinds.has_missing && threshold.is_infinite();
        if !is_apart && !(low..high).contains(&threshold) {
            let expected = format!("at least {low} and below {high}, the range of feature {feature}");
            return Err(reader.expected(expected, threshold));
        }
        Ok(threshold)
    })?;
    Ok(PreorderSplit { rule, right: 0 })
}

fn write_report(writer: &mut Writer, report: &Report) {
    match report {
        Report::Smc(islands) => {
            writer.u8(0);
            writer.list(islands, |writer, island| {
                writer.u32(island.n_particles);
                writer.u32(island.n_unfinished);
                writer.f64(island.log_evidence);
                writer.list(&island.stages, |writer, stage| {
                    writer.f64(stage.ess);
                    writer.f64(stage.log_evidence);
                    let ancestors = stage.ancestors.as_deref().unwrap_or_default();
                    writer.list(ancestors, |writer, ancestor| writer.u32(*ancestor));
                });
            });
        }
        Report::Mcmc(chains) => {
            writer.u8(1);
            writer.list(chains, |writer, chain| {
                for acceptance in chain.acceptance {
                    writer.u64(acceptance.tried);
                    writer.u64(acceptance.made);
                }
                writer.list(&chain.draws, |writer, draw| {
                    writer.f64(draw.log_prior);
                    writer.f64(draw.log_likelihood);
                    writer.u32(draw.n_leaves);
                    writer.u32(draw.depth);
                });
            });
        }
    }
}

/// `shapes` has the number of leaves and the depth of every tree.
fn read_report(reader: &mut Reader<'_>, shapes: &[(u32, u32)]) -> Result<Report> {
    if reader.flag("is_mcmc")? { read_chains(reader, shapes) } else { read_islands(reader, shapes.len()) }
}

fn read_islands(reader: &mut Reader<'_>, n_trees: usize) -> Result<Report> {
    let islands = reader.list("islands", 24, |reader| {
        let n_particles = reader.u32("n_particles")?;
        if n_particles == 0 || n_particles as usize > MAX_PARTICLES.0 {
            return Err(reader.expected(MAX_PARTICLES.1, n_particles));
        }
        let n_unfinished = reader.u32("n_unfinished")?;
        if n_unfinished > n_particles {
            return Err(
                reader.expected(format!("at most {n_particles}, the number of particles"), n_unfinished)
            );
        }
        let log_evidence = number(reader, "log_evidence")?;
        let stages = reader.list("stages", 24, |reader| read_stage(reader, n_particles))?;
        Ok(IslandReport { n_particles, log_evidence, n_unfinished, stages })
    })?;
    // Particles that made the same cuts share one tree.
    let n_particles: u64 = islands.iter().map(|island| u64::from(island.n_particles)).sum();
    if n_particles < n_trees as u64 || n_particles > MAX_DRAWS.0 as u64 {
        let expected =
            format!("at least {n_trees} particles, one for each tree, and at most {}", MAX_DRAWS.0);
        return Err(reader.expected(expected, n_particles));
    }
    Ok(Report::Smc(islands))
}

fn read_stage(reader: &mut Reader<'_>, n_particles: u32) -> Result<Stage> {
    let ess = reader.f64("ess")?;
    if !(0.999..=1.001 * f64::from(n_particles)).contains(&ess) {
        return Err(reader.expected(format!("an effective number of 1 to {n_particles} particles"), ess));
    }
    let log_evidence = number(reader, "log_evidence")?;
    let ancestors = reader.list("ancestors", 4, |reader| {
        let ancestor = reader.u32(ITEM)?;
        if ancestor < n_particles {
            return Ok(ancestor);
        }
        Err(reader.expected(format!("the number of a particle, below {n_particles}"), ancestor))
    })?;
    if !ancestors.is_empty() && ancestors.len() != n_particles as usize {
        let expected = format!("no numbers or {n_particles}, one for each particle");
        return Err(reader.expected(expected, ancestors.len()));
    }
    Ok(Stage { ess, log_evidence, ancestors: (!ancestors.is_empty()).then_some(ancestors) })
}

fn read_chains(reader: &mut Reader<'_>, shapes: &[(u32, u32)]) -> Result<Report> {
    let chains = reader.list("chains", 72, |reader| {
        let moves = reader.list_of("moves", 4, |reader| {
            let (tried, made) = (reader.u64("tried")?, reader.u64("accepted")?);
            if made <= tried {
                return Ok(Acceptance { tried, made });
            }
            Err(reader.expected(format!("at most {tried}, as often as it was tried"), made))
        })?;
        let draws = reader.list("draws", 24, |reader| {
            Ok(Draw {
                log_prior: number(reader, "log_prior")?,
                log_likelihood: number(reader, "log_likelihood")?,
                n_leaves: reader.u32("n_leaves")?,
                depth: reader.u32("depth")?,
            })
        })?;
        let acceptance = moves.try_into().expect("four were read");
        Ok(ChainReport { draws, acceptance })
    })?;
    let draws: Vec<&Draw> = chains.iter().flat_map(|chain| &chain.draws).collect();
    if draws.len() != shapes.len() {
        return Err(reader.expected(format!("{} draws, one for each tree", shapes.len()), draws.len()));
    }
    if chains.windows(2).any(|pair| pair[0].draws.len() != pair[1].draws.len()) {
        let lengths: Vec<usize> = chains.iter().map(|chain| chain.draws.len()).collect();
        return Err(reader.expected("as many draws in each chain", format!("{lengths:?}")));
    }
    let differs = |(draw, shape): (&&Draw, &(u32, u32))| (draw.n_leaves, draw.depth) != *shape;
    if let Some(i) = draws.iter().zip(shapes).position(differs) {
        let (n_leaves, depth) = shapes[i];
        let expected = format!("{n_leaves} leaves and depth {depth}, those of tree {i}, in draw {i}");
        return Err(reader.expected(expected, format!("{} and {}", draws[i].n_leaves, draws[i].depth)));
    }
    Ok(Report::Mcmc(chains))
}

/// A number that may be infinite.
fn number(reader: &mut Reader<'_>, name: &'static str) -> Result<f64> {
    let value = reader.f64(name)?;
    if value.is_nan() { Err(reader.expected("a number", value)) } else { Ok(value) }
}

#[cfg(test)]
mod tests;
