//! What stands in the file of BART: the drawn trees one after the other, the traces of the chains, and where these
//! ended.

use crate::bart::backfitting::normal::N_MOVES;
use crate::bart::chain::{BartTrace, ChainEnd, SumsOfTrees};
use crate::bart::classifier::BartClassifier;
use crate::bart::draws::{DrawnNode, Draws, LEAF};
use crate::bart::regressor::BartRegressor;
use crate::bart::settings::MOST_BY_FEATURE;
use crate::bart::state::tree::{Kind, TreeState};
use crate::bayes::mcmc::Acceptance;
use crate::bayes::mcmc::state::Rule;
use crate::bayes::smc::nodes::Cut;
use crate::error::Result;
use crate::model_file::format::{Reader, Writer, read_label, write_label, wrong};

pub(crate) fn write_regressor(writer: &mut Writer, model: &BartRegressor, annotation: &str) {
    writer.text(annotation);
    write_posterior(writer, &model.posterior);
}

pub(crate) fn read_regressor(reader: &mut Reader<'_>) -> Result<BartRegressor> {
    let annotation = reader.text()?;
    Ok(BartRegressor { posterior: read_posterior(reader, 1)?, annotation })
}

pub(crate) fn write_classifier(writer: &mut Writer, model: &BartClassifier, annotation: &str) {
    writer.list(&model.classes, write_label);
    writer.text(annotation);
    write_posterior(writer, &model.posterior);
}

pub(crate) fn read_classifier(reader: &mut Reader<'_>) -> Result<BartClassifier> {
    let classes = reader.list(8, read_label)?;
    if classes.len() < 2 || !classes.is_sorted_by(|a, b| a < b) {
        return Err(wrong("classes that are not sorted, or fewer than two"));
    }
    let annotation = reader.text()?;
    let n_sums = if classes.len() == 2 { 1 } else { classes.len() };
    Ok(BartClassifier { posterior: read_posterior(reader, n_sums)?, classes, annotation })
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
        for acceptance in trace.acceptance {
            writer.u64(acceptance.tried);
            writer.u64(acceptance.made);
        }
    });
    // In preorder: where a tree ends, and where right children are, follows from which nodes are leaves.
    writer.list(&posterior.draws.nodes, |writer, node| {
        writer.u32(node.feature);
        writer.f64(node.value);
    });
    writer.u64(posterior.seed);
    writer.raw(&posterior.fingerprint);
    writer.list(&posterior.ends, write_end);
}

fn read_posterior(reader: &mut Reader<'_>, n_sums: usize) -> Result<SumsOfTrees> {
    let mut size = || usize::try_from(reader.u64()?).map_err(|_| wrong("a number that is too large"));
    let (n_features, n_trees) = (size()?, size()?);
    let centres = reader.list(8, number)?;
    let traces = reader.list(160, |reader| read_trace(reader, n_features))?;
    let draws = read_draws(reader, n_features)?;
    let n_draws: usize = traces.iter().map(|trace| trace.sigma.len()).sum();
    let all_trees = n_draws.checked_mul(n_trees).and_then(|n| n.checked_mul(n_sums));
    if n_trees == 0 || n_draws == 0 || centres.len() != n_sums || all_trees != Some(draws.starts.len()) {
        return Err(wrong("more or fewer trees than draws of them"));
    }
    if n_draws.checked_mul(n_features).is_none_or(|n| n > MOST_BY_FEATURE.0) {
        return Err(wrong("more features than a fit can have"));
    }
    let (seed, fingerprint) = (reader.u64()?, reader.array()?);
    let ends = reader.list(41, read_end)?;
    let same_length = traces.iter().all(|trace| trace.sigma.len() == traces[0].sigma.len());
    if ends.len() != traces.len() || !same_length {
        return Err(wrong("chains that are not alike"));
    }
    Ok(SumsOfTrees { n_trees, n_features, centres, draws, traces, ends, seed, fingerprint })
}

fn read_trace(reader: &mut Reader<'_>, n_features: usize) -> Result<BartTrace> {
    let mut numbers = || reader.list(8, number);
    let [sigma, log_likelihood, n_leaves] = [numbers()?, numbers()?, numbers()?];
    let [k, alpha, split_probabilities] = [numbers()?, numbers()?, numbers()?];
    if [&log_likelihood, &n_leaves].iter().any(|other| other.len() != sigma.len())
        || [&k, &alpha].iter().any(|learnt| !(learnt.is_empty() || learnt.len() == sigma.len()))
        || alpha.len().checked_mul(n_features) != Some(split_probabilities.len())
    {
        return Err(wrong("traces of different lengths"));
    }
    let mut acceptance = [Acceptance::default(); N_MOVES];
    for of_move in &mut acceptance {
        *of_move = Acceptance { tried: reader.u64()?, made: reader.u64()? };
    }
    Ok(BartTrace { sigma, log_likelihood, n_leaves, k, alpha, split_probabilities, acceptance })
}

fn write_end(writer: &mut Writer, end: &ChainEnd) {
    writer.u64(end.sweeps);
    writer.u64(end.position);
    writer.list(&end.trees, |writer, tree| {
        writer.list(&tree.nodes, |writer, node| match node.kind {
            Kind::Free => writer.u8(0),
            Kind::Leaf => {
                writer.u8(1);
                writer.f64(node.mu);
            }
            Kind::Inner(rule, children) => {
                writer.u8(2);
                writer.u32(rule.cut.dimension);
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
    let (sweeps, position) = (reader.u64()?, reader.u64()?);
    if position > u64::MAX / 2 {
        return Err(wrong("more random numbers than there are"));
    }
    let trees = reader.list(16, |reader| {
        let nodes = reader.list(1, read_node)?;
        let free = reader.list(4, label)?;
        TreeState::from_parts(nodes, free).ok_or_else(|| wrong("nodes that are no tree"))
    })?;
    let numbers = reader.list(8, bounded)?;
    let weights = match reader.u8()? {
        0 => None,
        1 => {
            let alpha = number(reader)?;
            if !(1e-100..1e100).contains(&alpha) {
                return Err(wrong("a concentration beyond all bounds"));
            }
            Some((alpha, reader.list(8, bounded)?))
        }
        _ => return Err(wrong("neither yes nor no")),
    };
    Ok(ChainEnd { sweeps, position, trees, numbers, weights })
}

fn read_node(reader: &mut Reader<'_>) -> Result<(Kind, f64)> {
    Ok(match reader.u8()? {
        0 => (Kind::Free, 0.0),
        1 => (Kind::Leaf, bounded(reader)?),
        2 => {
            let cut = Cut { dimension: reader.u32()?, rank: reader.u32()? };
            let rule = Rule { cut, threshold: number(reader)? };
            (Kind::Inner(rule, [label(reader)?, label(reader)?]), 0.0)
        }
        _ => return Err(wrong("an unknown kind of node")),
    })
}

fn label(reader: &mut Reader<'_>) -> Result<u16> {
    u16::try_from(reader.u32()?).map_err(|_| wrong("a number of a node that is too large"))
}

fn read_draws(reader: &mut Reader<'_>, n_features: usize) -> Result<Draws> {
    let mut nodes = reader.list(12, |reader| {
        let node = DrawnNode { feature: reader.u32()?, right: 0, value: number(reader)? };
        if !node.is_leaf() && node.feature as usize >= n_features {
            return Err(wrong("a cut of a feature that does not exist"));
        }
        Ok(node)
    })?;
    let mut starts = Vec::new();
    // Inner nodes whose right child is still to come: the first node that no left subtree takes.
    let mut waiting: Vec<usize> = Vec::new();
    let mut begins = true;
    for i in 0..nodes.len() {
        if begins {
            starts.push(i);
            begins = false;
        }
        if nodes[i].feature != LEAF {
            waiting.push(i);
        } else if let Some(parent) = waiting.pop() {
            nodes[parent].right = u32::try_from(i + 1 - parent).map_err(|_| wrong("a tree too large"))?;
        } else {
            begins = true;
        }
    }
    if begins { Ok(Draws { nodes, starts }) } else { Err(wrong("a tree that does not end")) }
}

/// A number of a chain, whose square is finite.
fn bounded(reader: &mut Reader<'_>) -> Result<f64> {
    let value = number(reader)?;
    if value.abs() <= 1e140 { Ok(value) } else { Err(wrong("a number that is too large")) }
}

fn number(reader: &mut Reader<'_>) -> Result<f64> {
    let value = reader.f64()?;
    if value.is_finite() { Ok(value) } else { Err(wrong("a number that is not finite")) }
}

#[cfg(test)]
mod tests {
    use crate::bart::regressor::BartRegressor;
    use crate::bart::settings::BartSettings;
    use crate::control::Run;
    use crate::data::Rows;
    use crate::error::Error;
    use crate::model_file::AnyModel;

    /// Counts of cuts by feature would take more than all memory.
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
}
