//! What stands in the file of BART: the drawn trees one after the other, and the traces of the chains.

use super::codec::{Reader, Writer, read_label, write_label, wrong};
use crate::bart::{BartClassifier, BartRegressor, BartTrace, DrawnNode, Draws, LEAF, SumsOfTrees};
use crate::bayes::Acceptance;
use crate::error::Result;

pub(super) fn write_regressor(writer: &mut Writer, model: &BartRegressor) {
    writer.text(&model.annotation);
    write_posterior(writer, &model.posterior);
}

pub(super) fn read_regressor(reader: &mut Reader<'_>) -> Result<BartRegressor> {
    let annotation = reader.text()?;
    Ok(BartRegressor { posterior: read_posterior(reader)?, annotation })
}

pub(super) fn write_classifier(writer: &mut Writer, model: &BartClassifier) {
    writer.list(&model.classes, write_label);
    writer.text(&model.annotation);
    write_posterior(writer, &model.posterior);
}

pub(super) fn read_classifier(reader: &mut Reader<'_>) -> Result<BartClassifier> {
    let classes = reader.list(8, read_label)?;
    if classes.len() != 2 || classes[0] >= classes[1] {
        return Err(wrong("classes that are not sorted, or not two"));
    }
    let annotation = reader.text()?;
    Ok(BartClassifier { posterior: read_posterior(reader)?, classes, annotation })
}

fn write_posterior(writer: &mut Writer, posterior: &SumsOfTrees) {
    writer.u64(posterior.n_features as u64);
    writer.u64(posterior.n_trees as u64);
    writer.f64(posterior.centre);
    writer.list(&posterior.traces, |writer, trace| {
        for numbers in [&trace.sigma, &trace.log_likelihood, &trace.n_leaves] {
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
}

fn read_posterior(reader: &mut Reader<'_>) -> Result<SumsOfTrees> {
    let mut size = || usize::try_from(reader.u64()?).map_err(|_| wrong("a number that is too large"));
    let (n_features, n_trees) = (size()?, size()?);
    let centre = number(reader)?;
    let traces = reader.list(88, read_trace)?;
    let draws = read_draws(reader, n_features)?;
    let n_draws: usize = traces.iter().map(|trace| trace.sigma.len()).sum();
    if n_trees == 0 || n_draws == 0 || n_draws.checked_mul(n_trees) != Some(draws.starts.len()) {
        return Err(wrong("more or fewer trees than draws of them"));
    }
    Ok(SumsOfTrees { n_trees, n_features, centre, draws, traces })
}

fn read_trace(reader: &mut Reader<'_>) -> Result<BartTrace> {
    let [sigma, log_likelihood, n_leaves] =
        [reader.list(8, number)?, reader.list(8, number)?, reader.list(8, number)?];
    if sigma.len() != log_likelihood.len() || sigma.len() != n_leaves.len() {
        return Err(wrong("traces of different lengths"));
    }
    let mut acceptance = [Acceptance::default(); 6];
    for of_move in &mut acceptance {
        *of_move = Acceptance { tried: reader.u64()?, made: reader.u64()? };
    }
    Ok(BartTrace { sigma, log_likelihood, n_leaves, acceptance })
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

fn number(reader: &mut Reader<'_>) -> Result<f64> {
    let value = reader.f64()?;
    if value.is_finite() { Ok(value) } else { Err(wrong("a number that is not finite")) }
}
