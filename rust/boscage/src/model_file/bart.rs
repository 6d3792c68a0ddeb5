//! The fields of BART: the drawn trees one after the other, the traces of the chains, and the final state of
//! each chain.

use crate::bart::chain::{BartTrace, ChainEnd, SumsOfTrees};
use crate::bart::draws::{DrawnNode, Draws, LEAF, MAX_FEATURE};
use crate::bart::kernel_table::{BartStep, StepCounts};
use crate::bart::posterior::classifier::BartClassifier;
use crate::bart::posterior::regressor::BartRegressor;
use crate::bart::settings::MAX_BY_FEATURE;
use crate::bart::state::tree::{NodeKind, TreeState};
use crate::bayes::cuts::{RankCut, Rule};
use crate::bayes::mcmc::Acceptance;
use crate::control::Run;
use crate::data::splits::FeatureKinds;
use crate::error::Result;
use crate::model_file::format::{ITEM, MISSING_SIDES, Reader, STEP_COUNTS, Writer};
use crate::model_file::splits::version_of_trees;

pub(crate) fn write_regressor(writer: &mut Writer, model: &BartRegressor, annotation: &str) {
    writer.text(annotation);
    write_posterior(writer, &model.posterior);
}

pub(crate) fn read_regressor(reader: &mut Reader<'_>, _: &Run<'_>) -> Result<BartRegressor> {
    let annotation = reader.text("annotation")?;
    Ok(BartRegressor { posterior: read_posterior(reader, 1)?, annotation })
}

pub(crate) fn write_classifier(writer: &mut Writer, model: &BartClassifier, annotation: &str) {
    writer.list(&model.classes, Writer::label);
    writer.text(annotation);
    write_posterior(writer, &model.posterior);
}

pub(crate) fn read_classifier(reader: &mut Reader<'_>, _: &Run<'_>) -> Result<BartClassifier> {
    let classes = reader.list("classes", 8, |reader| reader.label(ITEM))?;
    if classes.len() < 2 || !classes.is_sorted_by(|a, b| a < b) {
        return Err(reader.expected("two labels or more, in ascending order", format!("{classes:?}")));
    }
    let annotation = reader.text("annotation")?;
    let n_sums = if classes.len() == 2 { 1 } else { classes.len() };
    Ok(BartClassifier { posterior: read_posterior(reader, n_sums)?, classes, annotation })
}

/// The oldest version that can hold a model.
pub(crate) fn version(posterior: &SumsOfTrees) -> u32 {
    version_of_trees(&posterior.kinds, STEP_COUNTS)
}

fn write_posterior(writer: &mut Writer, posterior: &SumsOfTrees) {
    writer.u64(posterior.n_features as u64);
    writer.u64(posterior.n_trees as u64);
    writer.list(&posterior.centres, |writer, centre| writer.f64(*centre));
    writer.list(&posterior.traces, |writer, trace| {
        for numbers in [
            &trace.sigma,
            &trace.log_likelihood,
            &trace.n_leaves,
            &trace.k,
            &trace.alpha,
            &trace.split_probabilities,
        ] {
            writer.list(numbers, |writer, number| writer.f64(*number));
        }
        let counts: Vec<_> = trace.acceptance.iter().collect();
        writer.list(&counts, |writer, (step, counts)| {
            writer.text(step.name());
            writer.u64(counts.tried);
            writer.u64(counts.made);
        });
    });
    // Nodes are in preorder, so the ends of trees and the indices of right children follow from which nodes
    // are leaves.
    writer.feature_kinds(&posterior.kinds);
    writer.list(&posterior.draws.nodes, |writer, node| {
        writer.u32(if node.is_leaf() { LEAF } else { node.feature() });
        writer.f64(node.value);
        if posterior.kinds.has_sides && !node.is_leaf() {
            writer.u8(u8::from(node.missing_right()));
        }
    });
    writer.u64(posterior.seed);
    writer.raw(&posterior.fingerprint);
    writer.list(&posterior.ends, write_end);
}

fn read_posterior(reader: &mut Reader<'_>, n_sums: usize) -> Result<SumsOfTrees> {
    let n_features = reader.size("n_features")?;
    let n_features_at = reader.last();
    let n_trees = reader.size("n_trees")?;
    if n_trees == 0 {
        return Err(reader.expected("at least 1", n_trees));
    }
    let centres = reader.list("centres", 8, |reader| reader.finite(ITEM))?;
    if centres.len() != n_sums {
        return Err(reader.expected(format!("{n_sums} numbers, one for each sum of trees"), centres.len()));
    }
    let traces = reader.list("traces", 56, |reader| read_trace(reader, n_features))?;
    let n_draws: usize = traces.iter().map(|trace| trace.sigma.len()).sum();
    if n_draws == 0 || traces.iter().any(|trace| trace.sigma.len() != traces[0].sigma.len()) {
        let lengths: Vec<usize> = traces.iter().map(|trace| trace.sigma.len()).collect();
        let found = format!("chains of {lengths:?} draws");
        return Err(reader.expected("chains of as many draws each, at least one", found));
    }
    if n_draws.checked_mul(n_features).is_none_or(|n| n > MAX_BY_FEATURE.0) {
        let expected = format!("at most {} features for {n_draws} draws", MAX_BY_FEATURE.0 / n_draws);
        return Err(reader.expected_at(n_features_at, expected, n_features));
    }
    let kinds = reader.feature_kinds(n_features)?;
    let draws = read_draws(reader, n_features, &kinds)?;
    let n_stored = draws.starts.len();
    if n_draws.checked_mul(n_trees).and_then(|n| n.checked_mul(n_sums)) != Some(n_stored) {
        let expected = format!("{n_trees} trees for each of {n_sums} sums in each of {n_draws} draws");
        return Err(reader.expected(expected, format!("{n_stored} trees in all")));
    }
    let (seed, fingerprint) = (reader.u64("seed")?, reader.array("fingerprint")?);
    let ends = reader.list("ends", 41, read_end)?;
    if ends.len() != traces.len() {
        return Err(reader.expected(format!("{} states, one for each chain", traces.len()), ends.len()));
    }
    Ok(SumsOfTrees { n_trees, n_features, kinds, centres, draws, traces, ends, seed, fingerprint })
}

fn read_trace(reader: &mut Reader<'_>, n_features: usize) -> Result<BartTrace> {
    let mut n_draws = None;
    // The length of the first list is the number of draws.
    let mut numbers = |name, is_optional: bool| {
        let numbers = reader.list(name, 8, |reader| reader.finite(ITEM))?;
        let n_draws = *n_draws.get_or_insert(numbers.len());
        if numbers.len() == n_draws || is_optional && numbers.is_empty() {
            return Ok(numbers);
        }
        Err(reader.expected(format!("{n_draws} numbers, one for each draw"), numbers.len()))
    };
    let [sigma, log_likelihood] = [numbers("sigma", false)?, numbers("log_likelihood", false)?];
    let n_leaves = numbers("n_leaves", false)?;
    let [k, alpha] = [numbers("k", true)?, numbers("alpha", true)?];
    let split_probabilities = reader.list("split_probabilities", 8, |reader| reader.finite(ITEM))?;
    if alpha.len().checked_mul(n_features) != Some(split_probabilities.len()) {
        let expected = format!("{n_features} numbers for each of {} draws of alpha", alpha.len());
        return Err(reader.expected(expected, split_probabilities.len()));
    }
    let acceptance = read_counts(reader)?;
    Ok(BartTrace { sigma, log_likelihood, n_leaves, k, alpha, split_probabilities, acceptance })
}

/// Counts by the names of steps, so that kinds of steps can be added. Files older than [`STEP_COUNTS`] have
/// the counts of seven steps.
fn read_counts(reader: &mut Reader<'_>) -> Result<StepCounts> {
    let mut all = StepCounts::default();
    if reader.version < STEP_COUNTS {
        let steps = BartStep::OF_FIRST_FILES;
        let counts = reader.list_of("steps", steps.len(), read_acceptance)?;
        steps.into_iter().zip(counts).for_each(|(step, counts)| all.set(step, counts));
        return Ok(all);
    }
    let mut found = Vec::new();
    reader.list("steps", 24, |reader| {
        let name = reader.text("name")?;
        let step = BartStep::from_name(&name)
            .ok_or_else(|| reader.expected("the name of a step of a chain", format!("{name:?}")))?;
        if found.contains(&step) {
            return Err(reader.expected("each step once", format!("{name:?} twice")));
        }
        found.push(step);
        all.set(step, read_acceptance(reader)?);
        Ok(())
    })?;
    Ok(all)
}

fn read_acceptance(reader: &mut Reader<'_>) -> Result<Acceptance> {
    Ok(Acceptance { tried: reader.u64("tried")?, made: reader.u64("accepted")? })
}

fn write_end(writer: &mut Writer, end: &ChainEnd) {
    writer.u64(end.sweeps);
    writer.u64(end.position);
    writer.list(&end.trees, |writer, tree| {
        writer.list(&tree.nodes, |writer, node| match node.kind {
            NodeKind::Free => writer.u8(0),
            NodeKind::Leaf => {
                writer.u8(1);
                writer.f64(node.mu);
            }
            NodeKind::Inner(rule, children) => {
                writer.u8(2);
                writer.u32(rule.cut.feature);
                writer.u32(rule.cut.rank);
                writer.f64(rule.threshold);
                for child in children {
                    writer.u32(u32::from(child));
                }
            }
        });
        writer.list(tree.free(), |writer, &free| writer.u32(u32::from(free)));
    });
    writer.list(&end.numbers, |writer, number| writer.f64(*number));
    writer.u8(u8::from(end.weights.is_some()));
    if let Some((alpha, log_s)) = &end.weights {
        writer.f64(*alpha);
        writer.list(log_s, |writer, number| writer.f64(*number));
    }
}

fn read_end(reader: &mut Reader<'_>) -> Result<ChainEnd> {
    let (sweeps, position) = (reader.u64("sweeps")?, reader.u64("position")?);
    if position > u64::MAX / 2 {
        return Err(reader.expected(format!("at most {} random numbers drawn", u64::MAX / 2), position));
    }
    let trees = reader.list("trees", 16, |reader| {
        let nodes = reader.list("nodes", 1, read_node)?;
        let nodes_at = reader.last();
        let free = reader.list("free", 4, |reader| node_number(reader, ITEM))?;
        TreeState::from_parts(nodes, free).map_err(|found| reader.expected_at(nodes_at, "a tree", found))
    })?;
    let numbers = reader.list("numbers", 8, |reader| bounded(reader, ITEM))?;
    let has_weights = reader.flag("has_split_probabilities")?;
    let weights = has_weights.then(|| {
        let alpha = reader.f64("alpha")?;
        if !(1e-100..1e100).contains(&alpha) {
            return Err(reader.expected("a concentration from 1e-100 to 1e100", alpha));
        }
        Ok((alpha, reader.list("log_split_probabilities", 8, |reader| bounded(reader, ITEM))?))
    });
    let weights = weights.transpose()?;
    Ok(ChainEnd { sweeps, position, trees, numbers, weights })
}

fn read_node(reader: &mut Reader<'_>) -> Result<(NodeKind, f64)> {
    Ok(match reader.u8("kind")? {
        0 => (NodeKind::Free, 0.0),
        1 => (NodeKind::Leaf, bounded(reader, "mu")?),
        2 => {
            let cut = RankCut { feature: reader.u32("feature")?, rank: reader.u32("rank")? };
            let rule = Rule { cut, threshold: read_threshold(reader)? };
            let children = [node_number(reader, "left")?, node_number(reader, "right")?];
            (NodeKind::Inner(rule, children), 0.0)
        }
        other => return Err(reader.expected("0 (free), 1 (leaf) or 2 (split)", other)),
    })
}

/// A threshold, which is infinite where a split separates missing from present values.
fn read_threshold(reader: &mut Reader<'_>) -> Result<f64> {
    if reader.version < MISSING_SIDES {
        return reader.finite("threshold");
    }
    let threshold = reader.f64("threshold")?;
    if threshold.is_nan() { Err(reader.expected("a number", threshold)) } else { Ok(threshold) }
}

fn node_number(reader: &mut Reader<'_>, name: &'static str) -> Result<u16> {
    let number = reader.u32(name)?;
    u16::try_from(number)
        .map_err(|_| reader.expected(format!("the number of a node, at most {}", u16::MAX), number))
}

fn read_draws(reader: &mut Reader<'_>, n_features: usize, kinds: &FeatureKinds) -> Result<Draws> {
    let mut nodes = reader.list("drawn_nodes", 12, |reader| {
        let feature = reader.u32("feature")?;
        if feature == LEAF {
            return reader.finite("value").map(DrawnNode::leaf);
        }
        let n = n_features.min(MAX_FEATURE as usize);
        if feature as usize >= n {
            let expected = format!("a feature below {n}, or {LEAF} for a leaf");
            return Err(reader.expected(expected, feature));
        }
        reader.tree_split(feature, kinds, read_threshold).map(DrawnNode::inner)
    })?;
    let mut starts = Vec::new();
    // Inner nodes whose right child is still to come. It is the first node after the left subtree.
    let mut waiting: Vec<usize> = Vec::new();
    let mut begins = true;
    for i in 0..nodes.len() {
        if begins {
            starts.push(i);
            begins = false;
        }
        if !nodes[i].is_leaf() {
            waiting.push(i);
        } else if let Some(parent) = waiting.pop() {
            nodes[parent].right = u32::try_from(i + 1 - parent)
                .map_err(|_| reader.expected("left subtrees of less than 2^32 nodes", i - parent))?;
        } else {
            begins = true;
        }
    }
    if begins {
        return Ok(Draws { nodes, starts });
    }
    let found = match waiting.last() {
        Some(parent) => format!("a split, node {parent}, that lacks a child"),
        None => "the end of the list before that of a tree".into(),
    };
    Err(reader.expected("whole trees", found))
}

/// A number whose square is finite.
fn bounded(reader: &mut Reader<'_>, name: &'static str) -> Result<f64> {
    let value = reader.finite(name)?;
    if value.abs() <= 1e140 { Ok(value) } else { Err(reader.expected("at most 1e140 by magnitude", value)) }
}

#[cfg(test)]
mod tests {
    use crate::bart::kernel_table::{BartStep, Kernel, Kernels};
    use crate::bart::posterior::regressor::BartRegressor;
    use crate::bart::settings::BartSettings;
    use crate::control::Run;
    use crate::data::Rows;
    use crate::error::Error;
    use crate::model_file::AnyModel;
    use crate::model_file::format::{Reader, Writer};

    use super::read_counts;

    /// The counts of cuts by feature would need more memory than there is.
    #[test]
    fn features_beyond_all_bounds_are_refused() {
        let settings =
            BartSettings { n_trees: 2, n_chains: 1, n_burn: 1, n_draws: 3, ..BartSettings::default() };
        let rows = Rows::from_f64(&[0.0, 1.0, 2.0, 3.0], 1).unwrap();
        let mut model = BartRegressor::fit(&settings, rows, &[0.0, 0.0, 1.0, 1.0], &Run::default()).unwrap();
        for (n_features, is_read) in
            [(1, true), (1000, true), (1 << 31, false), (1 << 40, false), (1 << 62, false)]
        {
            model.posterior.n_features = n_features;
            match AnyModel::from_bytes(&model.to_bytes(), &Run::default()) {
                Ok(AnyModel::BartRegressor(read)) => {
                    assert!(is_read);
                    assert_eq!(read.cuts().unwrap().len(), 3 * n_features);
                }
                Ok(_) => panic!("another kind of model"),
                Err(error) => {
                    assert!(!is_read && matches!(error, Error::ModelFile(_)), "{n_features}: {error}");
                }
            }
        }
    }

    /// A file of the first version, which has the counts of seven steps without their names.
    const OLD: &[u8] = include_bytes!("../../tests/files/bart_regressor_v1.boscage");

    fn read(bytes: &[u8]) -> BartRegressor {
        match AnyModel::from_bytes(bytes, &Run::default()) {
            Ok(AnyModel::BartRegressor(model)) => *model,
            other => panic!("{other:?}"),
        }
    }

    fn counts(model: &BartRegressor, chain: usize) -> Vec<(&'static str, u64, u64)> {
        let counts = model.traces()[chain].acceptance;
        counts.iter().map(|(step, counts)| (step.name(), counts.tried, counts.made)).collect()
    }

    /// A file of the first version holds the same model, and its chains continue as those of a new fit. The sides of missing
    /// values remain unknown, since the first draws lack them.
    #[test]
    fn files_of_the_first_version_are_read_and_go_on() {
        let old = read(OLD);
        let new = read(&old.to_bytes());
        let first_chain = [
            ("grow", 7, 3),
            ("prune", 1, 0),
            ("change_or_swap", 0, 0),
            ("particle_gibbs", 3, 0),
            ("shift", 8, 7),
            ("regrow", 1, 1),
            ("edit", 2, 2),
        ];
        assert_eq!(counts(&old, 0), first_chain);
        assert_eq!(counts(&old, 1), counts(&new, 1));
        let x: Vec<f64> = (0..24).map(|i| f64::from(i % 7)).collect();
        let rows = Rows::from_f64(&x, 2).unwrap();
        let y: Vec<f64> =
            (0..12).map(|i| f64::from(u8::from(x[2 * i] > 3.0)) + 0.25 * f64::from(i as u32 % 3)).collect();
        let kernels = Kernels::new(&[
            (Kernel::Local, 0.3),
            (Kernel::GrowPrune, 0.2),
            (Kernel::Cgm, 0.2),
            (Kernel::ParticleGibbs, 0.1),
            (Kernel::Regrow, 0.1),
            (Kernel::Edit, 0.1),
        ]);
        let settings = BartSettings {
            n_trees: 2,
            n_chains: 2,
            n_burn: 3,
            n_draws: 9,
            kernels,
            n_particles: 4,
            seed: 3,
            ..BartSettings::default()
        };
        let run = Run::default();
        let mut all = BartRegressor::fit(&settings, rows, &y, &run).unwrap();
        assert!(all.takes_missing());
        all.posterior.kinds.has_sides = false;
        for from in [old, new] {
            let more = BartRegressor::fit_from(Some(&from), None, (&settings, rows, &y, None), &run).unwrap();
            assert!(!more.takes_missing());
            assert_eq!(more.to_bytes(), all.to_bytes());
        }
    }

    /// An unknown or repeated step is an error; a missing step has not been tried.
    #[test]
    fn steps_are_counted_by_name() {
        let with = |names: &[&str]| {
            let mut writer = Writer::default();
            writer.list(names, |writer, name| {
                writer.text(name);
                writer.u64(5);
                writer.u64(3);
            });
            let bytes = writer.into_bytes();
            read_counts(&mut Reader::new(&bytes))
        };
        let counts = with(&["edit", "grow"]).unwrap();
        assert_eq!((counts.of(BartStep::Edit).tried, counts.of(BartStep::Grow).made), (5, 3));
        assert_eq!(counts.of(BartStep::Shift).tried, 0);
        for names in [&["edit", "edit"][..], &["jump"]] {
            assert!(matches!(with(names), Err(Error::ModelFile(_))), "{names:?}");
        }
    }
}
