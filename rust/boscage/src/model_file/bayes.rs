//! What stands in the file of Bayesian trees: the trees themselves, with the statistics of their nodes.

use std::sync::Arc;

use crate::bayes::classifier::{BayesianTreeClassifier, Classes};
use crate::bayes::leaf::dirichlet::{Counts, check_alpha};
use crate::bayes::leaf::normal::{Moments, NormalPrior};
use crate::bayes::mcmc::{Acceptance, Draw};
use crate::bayes::prior::ChipmanPrior;
use crate::bayes::regressor::BayesianTreeRegressor;
use crate::bayes::smc::Stage;
use crate::bayes::tree::{Split, Tree, TreeNode};
use crate::bayes::weighted_trees::{ChainReport, Ensemble, IslandReport, Report};
use crate::error::Result;
use crate::model_file::format::{Reader, Writer, as_file, read_label, write_label, wrong};
use crate::validate::{MOST_KEPT, MOST_PARTICLES};

/// Statistics of a node's rows, as they are checked.
trait Stored {
    fn n_rows(&self) -> u32;

    /// Whether they are those of the children together, but for rounding in sums over all rows.
    fn is_sum(&self, children: [&Self; 2], root: &Self) -> bool;
}

impl Stored for Counts {
    fn n_rows(&self) -> u32 {
        self.n_rows()
    }

    fn is_sum(&self, [left, right]: [&Self; 2], _: &Self) -> bool {
        let pairs = left.by_class.iter().zip(&right.by_class);
        pairs.zip(&self.by_class).all(|((left, right), &all)| left.checked_add(*right) == Some(all))
    }
}

impl Stored for Moments {
    fn n_rows(&self) -> u32 {
        self.n
    }

    fn is_sum(&self, [left, right]: [&Self; 2], root: &Self) -> bool {
        /// More than rounding makes of sums over rows.
        const ROUNDING: f64 = 1e-6;
        let is_near = |a: f64, b: f64, scale: f64| (a - b).abs() <= ROUNDING * scale;
        left.n.checked_add(right.n) == Some(self.n)
            && is_near(self.sum, left.sum + right.sum, (f64::from(root.n) * root.squares).sqrt())
            && is_near(self.squares, left.squares + right.squares, root.squares)
    }
}

pub(crate) fn write_classifier(writer: &mut Writer, model: &BayesianTreeClassifier, annotation: &str) {
    writer.f64(model.leaf.alpha);
    writer.list(&model.leaf.labels, write_label);
    write_prior(writer, model.prior.as_ref());
    writer.text(annotation);
    write_ensemble(writer, &model.ensemble, |writer, counts| {
        counts.by_class.iter().for_each(|&count| writer.u32(count));
    });
}

pub(crate) fn read_classifier(reader: &mut Reader<'_>) -> Result<BayesianTreeClassifier> {
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

pub(crate) fn write_regressor(writer: &mut Writer, model: &BayesianTreeRegressor, annotation: &str) {
    let leaf = &model.leaf;
    for value in [leaf.prior_mean, leaf.kappa, leaf.shape, leaf.scale] {
        writer.f64(value);
    }
    write_prior(writer, model.prior.as_ref());
    writer.text(annotation);
    write_ensemble(writer, &model.ensemble, |writer, moments| {
        writer.u32(moments.n);
        writer.f64(moments.sum);
        writer.f64(moments.squares);
    });
}

pub(crate) fn read_regressor(reader: &mut Reader<'_>) -> Result<BayesianTreeRegressor> {
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

/// A prior of the user's own is not in the file, only that it is one.
fn write_prior(writer: &mut Writer, prior: Option<&ChipmanPrior>) {
    let numbers = prior.map(|prior| [prior.alpha_s(), prior.beta_s()]);
    writer.list(numbers.as_ref().map_or(&[], <[f64; 2]>::as_slice), |writer, value| writer.f64(*value));
}

fn read_prior(reader: &mut Reader<'_>) -> Result<Option<ChipmanPrior>> {
    match reader.list(8, Reader::f64)?[..] {
        [] => Ok(None),
        [alpha_s, beta_s] => as_file(ChipmanPrior::new(alpha_s, beta_s)).map(Some),
        _ => Err(wrong("a prior of trees that is not of two numbers")),
    }
}

fn write_ensemble<S>(writer: &mut Writer, ensemble: &Ensemble<S>, stats: impl Fn(&mut Writer, &S)) {
    writer.list(&ensemble.ranges, |writer, (low, high)| {
        writer.f64(*low);
        writer.f64(*high);
    });
    writer.list(&ensemble.weights, |writer, weight| writer.f64(*weight));
    writer.list(&ensemble.log_posteriors, |writer, log| writer.f64(*log));
    writer.list(&ensemble.trees, |writer, tree| write_tree(writer, tree, &stats));
    write_report(writer, &ensemble.report);
}

fn write_tree<S>(writer: &mut Writer, tree: &Tree<S>, stats: &impl Fn(&mut Writer, &S)) {
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
}

fn read_ensemble<S: Stored>(
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
    let log_posteriors = reader.list(8, Reader::f64)?;
    if log_posteriors.iter().any(|log| log.is_nan() || *log == f64::INFINITY) {
        return Err(wrong("a tree whose posterior probability is no number"));
    }
    let trees: Vec<Tree<S>> = reader.list(8, |reader| read_tree(reader, &ranges, &stats))?;
    if trees.windows(2).any(|pair| pair[0].nodes[0].stats.n_rows() != pair[1].nodes[0].stats.n_rows()) {
        return Err(wrong("trees of unlike numbers of rows"));
    }
    if trees.len() != weights.len() || trees.len() != log_posteriors.len() {
        return Err(wrong("more or fewer weights or probabilities than trees"));
    }
    let shapes: Vec<(u32, u32)> = trees.iter().map(Tree::leaves_and_depth).collect();
    let report = read_report(reader, &shapes)?;
    Ok(Ensemble { trees, weights, log_posteriors, ranges, report })
}

fn read_tree<S: Stored>(
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
    let stats = |i: usize| nodes[i].stats.as_ref();
    for (i, node) in nodes.iter().enumerate() {
        let is_whole = match node.split {
            None => node.stats.n_rows() > 0,
            Some(split) => stats(i).is_sum([stats(i + 1), stats(split.right as usize)], stats(0)),
        };
        if !is_whole {
            return Err(wrong("a leaf of no rows, or a node whose rows are not those of its children"));
        }
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

/// `shapes` are leaves and depth of every tree.
fn read_report(reader: &mut Reader<'_>, shapes: &[(u32, u32)]) -> Result<Report> {
    if reader.choice(&[true, false])? {
        let islands = reader.list(24, |reader| {
            let (n_particles, n_unfinished) = (reader.u32()?, reader.u32()?);
            let log_evidence = reader.f64()?;
            let stages = reader.list(24, |reader| {
                let (ess, log_evidence) = (reader.f64()?, reader.f64()?);
                let ancestors = reader.list(4, Reader::u32)?;
                if log_evidence.is_nan() || !(0.999..=1.001 * f64::from(n_particles)).contains(&ess) {
                    return Err(wrong("a stage whose weights are none"));
                }
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
        if n_particles < shapes.len() as u64 || islands.iter().any(|island| island.n_particles == 0) {
            return Err(wrong("fewer particles than trees, or an island of none"));
        }
        let too_many = |island: &IslandReport| island.n_particles as usize > MOST_PARTICLES.0;
        if n_particles > MOST_KEPT.0 as u64 || islands.iter().any(too_many) {
            return Err(wrong("more particles than there can be"));
        }
        if islands
            .iter()
            .any(|island| island.n_unfinished > island.n_particles || island.log_evidence.is_nan())
        {
            return Err(wrong("more unfinished particles than particles, or evidence that is no number"));
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
    let draws: Vec<&Draw> = chains.iter().flat_map(|chain| &chain.draws).collect();
    let is_of_tree = |(draw, shape): (&&Draw, &(u32, u32))| {
        (draw.n_leaves, draw.depth) == *shape && !draw.log_prior.is_nan() && !draw.log_likelihood.is_nan()
    };
    if !draws.iter().zip(shapes).all(is_of_tree) {
        return Err(wrong("draws that are not those of the trees"));
    }
    if draws.len() != shapes.len() || chains.windows(2).any(|pair| pair[0].draws.len() != pair[1].draws.len())
    {
        return Err(wrong("draws that are not one a tree, or not as many for each chain"));
    }
    Ok(Report::Mcmc(chains))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_file::format::PLAIN;

    fn is_read(report: &Report, n_trees: usize) -> bool {
        let mut writer = Writer::default();
        writer.u32(PLAIN);
        write_report(&mut writer, report);
        read_report(&mut Reader::new(writer.bytes()).unwrap(), &vec![(1, 0); n_trees]).is_ok()
    }

    #[test]
    fn nodes_have_the_rows_of_their_children() {
        let split = || Some(Split { dimension: 0, threshold: 0.5, right: 0 });
        let is_read = |stats: [Counts; 3]| {
            let mut writer = Writer::default();
            writer.u32(PLAIN);
            let [root, left, right] = stats;
            let nodes = [(split(), root), (None, left), (None, right)];
            let tree =
                Tree { nodes: nodes.map(|(split, stats)| TreeNode { split, stats: stats.into() }).into() };
            write_tree(&mut writer, &tree, &|writer: &mut Writer, counts: &Counts| {
                counts.by_class.iter().for_each(|&count| writer.u32(count));
            });
            let read =
                |reader: &mut Reader<'_>| Ok(Counts { by_class: Box::new([reader.u32()?, reader.u32()?]) });
            read_tree(&mut Reader::new(writer.bytes()).unwrap(), &[(0.0, 1.0)], read).is_ok()
        };
        let counts = |a, b| Counts { by_class: Box::new([a, b]) };
        assert!(is_read([counts(3, 4), counts(3, 1), counts(0, 3)]));
        assert!(!is_read([counts(3, 4), counts(3, 4), counts(0, 0)]));
        assert!(!is_read([counts(4, 3), counts(3, 1), counts(0, 3)]));
        assert!(!is_read([counts(3, 4), counts(3, 1), counts(0, 4)]));
        assert!(!is_read([counts(0, 4), counts(u32::MAX, 1), counts(1, 3)]));
    }

    #[test]
    fn sums_agree_with_those_of_children_but_for_rounding() {
        let moments = |n, sum, squares| Moments { n, sum, squares };
        let root = moments(5, 1e3, 1e6);
        let (left, right) = (moments(2, 1e3 - 1e-5, 1e6 - 1e-3), moments(3, 1e-5, -1e-9));
        assert!(root.is_sum([&left, &right], &root));
        assert!(!root.is_sum([&left, &moments(4, 1e-5, 1e-3)], &root));
        assert!(!root.is_sum([&left, &moments(3, 1.0, 1e-3)], &root));
        assert!(!root.is_sum([&left, &moments(3, 1e-5, 10.0)], &root));
        assert!(!root.is_sum([&moments(2, f64::NAN, 0.0), &right], &root));
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
        assert!(!is_read(&[IslandReport { log_evidence: f64::NAN, ..island(2, None) }], 1));
        for ess in [f64::NAN, 0.0, 2.1] {
            let stages = vec![Stage { ess, log_evidence: -1.0, ancestors: None }];
            assert!(!is_read(&[IslandReport { stages, ..island(2, None) }], 1));
        }
    }

    #[test]
    fn reports_of_chains_agree_with_themselves() {
        let draw = Draw { log_prior: -1.0, log_likelihood: -1.0, n_leaves: 1, depth: 0 };
        let is_read_of = |draw, lengths: &[usize], n_trees| {
            let chain = |&n: &usize| ChainReport { draws: vec![draw; n], acceptance: Default::default() };
            is_read(&Report::Mcmc(lengths.iter().map(chain).collect()), n_trees)
        };
        let is_read = |lengths: &[usize], n_trees| is_read_of(draw, lengths, n_trees);
        assert!(is_read(&[2, 2], 4));
        assert!(!is_read(&[2, 2], 3));
        assert!(!is_read(&[1, 3], 4));
        assert!(!is_read(&[], 1));
        assert!(!is_read_of(Draw { n_leaves: 2, ..draw }, &[1], 1));
        assert!(!is_read_of(Draw { depth: 1, ..draw }, &[1], 1));
        assert!(!is_read_of(Draw { log_prior: f64::NAN, ..draw }, &[1], 1));
    }
}
