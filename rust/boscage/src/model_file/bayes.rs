//! What stands in the file of Bayesian trees: the trees themselves, with the statistics of their nodes.

use std::sync::Arc;

use super::codec::{Reader, Writer, as_file, read_label, write_label, wrong};
use crate::bayes::{
    Acceptance, BayesianTreeClassifier, BayesianTreeRegressor, ChainReport, ChipmanPrior, Classes, Counts,
    Draw, Ensemble, IslandReport, MOST_KEPT, MOST_PARTICLES, Moments, NormalPrior, Report, Split, Stage,
    Tree, TreeNode, check_alpha,
};
use crate::error::Result;

pub(super) fn write_classifier(writer: &mut Writer, model: &BayesianTreeClassifier) {
    writer.f64(model.leaf.alpha);
    writer.list(&model.leaf.labels, write_label);
    write_prior(writer, &model.prior);
    writer.text(&model.annotation);
    write_ensemble(writer, &model.ensemble, |writer, counts| {
        counts.by_class.iter().for_each(|&count| writer.u32(count));
    });
}

pub(super) fn read_classifier(reader: &mut Reader<'_>) -> Result<BayesianTreeClassifier> {
    let alpha = reader.f64()?;
    as_file(check_alpha(alpha))?;
    let labels = reader.list(8, read_label)?;
    if labels.is_empty() || labels.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(wrong("labels that are not sorted, or none"));
    }
    let prior = read_prior(reader)?;
    let annotation = reader.text()?;
    let ensemble = read_ensemble(reader, |reader| {
        let by_class: Box<[u32]> = labels.iter().map(|_| reader.u32()).collect::<Result<_>>()?;
        match by_class.iter().try_fold(0u32, |sum, &count| sum.checked_add(count)) {
            Some(_) => Ok(Counts { by_class }),
            None => Err(wrong("a node of more rows than there can be")),
        }
    })?;
    Ok(BayesianTreeClassifier { ensemble, prior, leaf: Classes { alpha, labels }, annotation })
}

pub(super) fn write_regressor(writer: &mut Writer, model: &BayesianTreeRegressor) {
    let leaf = &model.leaf;
    for value in [leaf.prior_mean, leaf.kappa, leaf.shape, leaf.scale] {
        writer.f64(value);
    }
    write_prior(writer, &model.prior);
    writer.text(&model.annotation);
    write_ensemble(writer, &model.ensemble, |writer, moments| {
        writer.u32(moments.n);
        writer.f64(moments.sum);
        writer.f64(moments.squares);
    });
}

pub(super) fn read_regressor(reader: &mut Reader<'_>) -> Result<BayesianTreeRegressor> {
    let [prior_mean, kappa, shape, scale] = [reader.f64()?, reader.f64()?, reader.f64()?, reader.f64()?];
    let leaf = NormalPrior { prior_mean, kappa, shape, scale };
    as_file(leaf.check())?;
    let prior = read_prior(reader)?;
    let annotation = reader.text()?;
    let ensemble = read_ensemble(reader, |reader| {
        let moments = Moments { n: reader.u32()?, sum: reader.f64()?, squares: reader.f64()? };
        let is_number = moments.sum.is_finite() && moments.squares.is_finite();
        if is_number { Ok(moments) } else { Err(wrong("sums that are not finite")) }
    })?;
    Ok(BayesianTreeRegressor { ensemble, prior, leaf, annotation })
}

fn write_prior(writer: &mut Writer, prior: &ChipmanPrior) {
    writer.f64(prior.alpha_s());
    writer.f64(prior.beta_s());
}

fn read_prior(reader: &mut Reader<'_>) -> Result<ChipmanPrior> {
    as_file(ChipmanPrior::new(reader.f64()?, reader.f64()?))
}

fn write_ensemble<S>(writer: &mut Writer, ensemble: &Ensemble<S>, stats: impl Fn(&mut Writer, &S)) {
    writer.list(&ensemble.ranges, |writer, (low, high)| {
        writer.f64(*low);
        writer.f64(*high);
    });
    writer.list(&ensemble.weights, |writer, weight| writer.f64(*weight));
    writer.list(&ensemble.trees, |writer, tree| {
        writer.list(&tree.nodes, |writer, node| {
            match node.split {
                None => writer.u8(0),
                Some(split) => {
                    writer.u8(1);
                    writer.u32(split.dimension);
                    writer.f64(split.threshold);
                }
            }
            stats(writer, &node.stats);
        });
    });
    write_report(writer, &ensemble.report);
}

fn read_ensemble<S>(
    reader: &mut Reader<'_>,
    stats: impl Fn(&mut Reader<'_>) -> Result<S>,
) -> Result<Ensemble<S>> {
    let ranges = reader.list(16, |reader| Ok((reader.f64()?, reader.f64()?)))?;
    if ranges.iter().any(|(low, high)| !(low <= high && low.is_finite() && high.is_finite())) {
        return Err(wrong("a feature without a lowest and a highest value"));
    }
    let weights = reader.list(8, Reader::f64)?;
    let sum: f64 = weights.iter().sum();
    if weights.iter().any(|w| w.is_nan() || *w <= 0.0) || (sum - 1.0).abs() > 1e-6 {
        return Err(wrong("weights that do not sum to one"));
    }
    let trees = reader.list(8, |reader| read_tree(reader, &ranges, &stats))?;
    if trees.len() != weights.len() {
        return Err(wrong("more or fewer weights than trees"));
    }
    let report = read_report(reader, trees.len())?;
    Ok(Ensemble { trees, weights, ranges, report })
}

fn read_tree<S>(
    reader: &mut Reader<'_>,
    ranges: &[(f64, f64)],
    stats: impl Fn(&mut Reader<'_>) -> Result<S>,
) -> Result<Tree<S>> {
    let mut nodes = reader.list(1, |reader| {
        let split = match reader.u8()? {
            0 => None,
            1 => Some(Split { dimension: reader.u32()?, threshold: reader.f64()?, right: 0 }),
            _ => return Err(wrong("a node that is neither leaf nor split")),
        };
        let is_inside = |split: Split| {
            let range = ranges.get(split.dimension as usize);
            range.is_some_and(|(low, high)| (*low..*high).contains(&split.threshold))
        };
        if split.is_some_and(|split| !is_inside(split)) {
            return Err(wrong("a cut of a feature that does not exist, or outside of its range"));
        }
        Ok(TreeNode { split, stats: Arc::new(stats(reader)?) })
    })?;
    // Nodes come in preorder: a right child is the first that no left subtree takes.
    let mut waiting: Vec<usize> = Vec::new();
    for i in 0..nodes.len() {
        if nodes[i].split.is_some() {
            waiting.push(i);
        } else if i + 1 < nodes.len() {
            let parent = waiting.pop().ok_or_else(|| wrong("nodes after the end of a tree"))?;
            nodes[parent].split.as_mut().expect("only splits wait").right = i as u32 + 1;
        }
    }
    if nodes.last().is_none_or(|node| node.split.is_some()) || !waiting.is_empty() {
        return Err(wrong("a tree that does not end"));
    }
    Ok(Tree { nodes })
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

fn read_report(reader: &mut Reader<'_>, n_trees: usize) -> Result<Report> {
    if reader.choice(&[true, false])? {
        let islands = reader.list(24, |reader| {
            let (n_particles, n_unfinished) = (reader.u32()?, reader.u32()?);
            let log_evidence = reader.f64()?;
            let stages = reader.list(24, |reader| {
                let (ess, log_evidence) = (reader.f64()?, reader.f64()?);
                let ancestors = reader.list(4, Reader::u32)?;
                let is_whole = ancestors.is_empty() || ancestors.len() == n_particles as usize;
                if !is_whole || ancestors.iter().any(|&ancestor| ancestor >= n_particles) {
                    return Err(wrong("ancestors that are not particles, or not one for each"));
                }
                Ok(Stage { ess, log_evidence, ancestors: (!ancestors.is_empty()).then_some(ancestors) })
            })?;
            Ok(IslandReport { n_particles, log_evidence, n_unfinished, stages })
        })?;
        // Particles that made the same cuts are one tree.
        let n_particles: u64 = islands.iter().map(|island| u64::from(island.n_particles)).sum();
        if n_particles < n_trees as u64 || islands.iter().any(|island| island.n_particles == 0) {
            return Err(wrong("fewer particles than trees, or an island of none"));
        }
        let too_many = |island: &IslandReport| island.n_particles as usize > MOST_PARTICLES.0;
        if n_particles > MOST_KEPT.0 as u64 || islands.iter().any(too_many) {
            return Err(wrong("more particles than there can be"));
        }
        if islands.iter().any(|island| island.n_unfinished > island.n_particles) {
            return Err(wrong("more unfinished particles than particles"));
        }
        return Ok(Report::Smc(islands));
    }
    let chains = reader.list(72, |reader| {
        let mut acceptance = [Acceptance::default(); 4];
        for of_move in &mut acceptance {
            *of_move = Acceptance { tried: reader.u64()?, made: reader.u64()? };
        }
        if acceptance.iter().any(|of_move| of_move.made > of_move.tried) {
            return Err(wrong("moves that were made more often than tried"));
        }
        let draws = reader.list(24, |reader| {
            Ok(Draw {
                log_prior: reader.f64()?,
                log_likelihood: reader.f64()?,
                n_leaves: reader.u32()?,
                depth: reader.u32()?,
            })
        })?;
        Ok(ChainReport { draws, acceptance })
    })?;
    let n_draws: usize = chains.iter().map(|chain| chain.draws.len()).sum();
    if n_draws != n_trees || chains.windows(2).any(|pair| pair[0].draws.len() != pair[1].draws.len()) {
        return Err(wrong("draws that are not one a tree, or not as many for each chain"));
    }
    Ok(Report::Mcmc(chains))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_file::codec::PLAIN;

    fn is_read(report: &Report, n_trees: usize) -> bool {
        let mut writer = Writer::default();
        writer.u32(PLAIN);
        write_report(&mut writer, report);
        read_report(&mut Reader::new(writer.bytes()).unwrap(), n_trees).is_ok()
    }

    #[test]
    fn reports_of_islands_agree_with_themselves() {
        let island = |n_particles, ancestors| IslandReport {
            n_particles,
            log_evidence: -1.0,
            n_unfinished: 0,
            stages: vec![Stage { ess: 1.0, log_evidence: -1.0, ancestors }],
        };
        let is_read = |islands: &[IslandReport], n_trees| is_read(&Report::Smc(islands.to_vec()), n_trees);
        assert!(is_read(&[island(2, None), island(2, Some(vec![1, 1]))], 4));
        assert!(!is_read(&[island(2, None)], 3));
        assert!(!is_read(&[], 1));
        assert!(!is_read(&[island(0, None), island(2, None)], 1));
        assert!(!is_read(&[island(u32::MAX, None)], 1));
        assert!(!is_read(&vec![island(1_000_000, None); 11], 1));
        assert!(!is_read(&[island(2, Some(vec![0]))], 1));
        assert!(!is_read(&[island(2, Some(vec![0, 2]))], 1));
        assert!(!is_read(&[IslandReport { n_unfinished: 3, ..island(2, None) }], 1));
    }

    #[test]
    fn reports_of_chains_agree_with_themselves() {
        let draw = Draw { log_prior: -1.0, log_likelihood: -1.0, n_leaves: 1, depth: 0 };
        let is_read = |lengths: &[usize], n_trees| {
            let chain = |&n: &usize| ChainReport { draws: vec![draw; n], acceptance: Default::default() };
            is_read(&Report::Mcmc(lengths.iter().map(chain).collect()), n_trees)
        };
        assert!(is_read(&[2, 2], 4));
        assert!(!is_read(&[2, 2], 3));
        assert!(!is_read(&[1, 3], 4));
        assert!(!is_read(&[], 1));
    }
}
