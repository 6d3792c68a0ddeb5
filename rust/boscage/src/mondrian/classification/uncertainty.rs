//! The uncertainty about the class of a test row, and its parts: what more rows would tell, and what they would not.
//!
//! The *total* is the entropy `H(q)` of the predicted probabilities. Its *aleatoric* part is the entropy that is expected to
//! remain if `z` were known, and the *epistemic* part the mutual information between `z` and the label. Here `z` is the tree,
//! and, where it falls back to what it says of all its rows, also the label that is drawn there:
//!
//! - Tree `m` predicts `p_mk = D_mk + R_mk`. Here `R_mk` is what the tree says of all its rows, whatever their features: what
//!   comes from the root's tables and customers, from a node that branches off above the root, and from the base measure `H`
//!   (`kneser_ney`). A label from there is that of a new table at `x`, and stays the label of that table: if rows were there,
//!   they would show it. So nothing of `R` is aleatoric, and far away from all rows, where `D` is 0 and all trees predict the
//!   same, all uncertainty is epistemic. (Where the root is a leaf, its own rows are about `x` while `x` stays in it.)
//! - Calibration replaces the average `p_k` over trees by `q_k = (1 - e) s_k + e / K`. What a label says of trees stays the
//!   same (Jeffrey's rule): tree and label have the probability `p_mk s_k / (M p_k)`, whatever power, joint function and trend lead
//!   to `s`. The share `e` of labels that are drawn at random is noise: it is there under every `z`, and aleatoric.
//!
//! - In a population in which class `k` is `w_k` times as frequent, state and label have `w_k` times their probability, before
//!   all are divided by `W = sum_k w_k q_k`.
//!
//! With `u_mk = D_mk s_k / p_k`, `V_k = sum_m R_mk s_k / p_k`, `1_k` the unit vector of a class and `E(v)` the sum of
//! `a_j = w_j ((1 - e) v_j + e / K sum_k v_k)` times the entropy of `a_j / sum_k a_k`, the aleatoric part is
//!
//! `1 / (M W) (sum_m E(u_m) + sum_k E(V_k 1_k))`.
//!
//! The mixture of all these distributions is what is predicted, so that the epistemic part is not negative (entropy is concave).
//!
//! The probabilities of a row that lacks values are the means of those of its completions (`completions`). Which of these it is
//! is aleatoric: more rows would not tell. The epistemic part is the mean of theirs, each weighing as much as its `W`.

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::classifier::{Classification, MondrianClassifier};
use crate::mondrian::classification::kneser_ney::{Buffers, InTree, Predictor};
use crate::mondrian::model::NodePosterior;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::{completions, walk};
use crate::mondrian::tree::Tree;

/// Numbers that are held at a time: every tree's prediction for some rows.
const HELD: usize = 1 << 22;

impl MondrianClassifier {
    /// The entropy of the predicted class probabilities of every row, and its aleatoric part, in nats; the difference is the
    /// epistemic part. `class_weights` says how many times as frequent each class is among these rows as among the training
    /// rows, in the order of the probabilities; `None`: as frequent. (Where only classes of weight 0 are possible nothing is
    /// known of the row, and the others have probabilities in proportion to their weights.)
    ///
    /// # Errors
    /// A number of features other than in `fit`; weights of another number of classes, below 0, not finite or all 0; an interrupt.
    pub fn predict_uncertainty(
        &self,
        rows: Rows<'_>,
        class_weights: Option<&[f64]>,
        run: &Run<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let live = self.posterior.classes.live();
        let link = WithNoise::new(self.calibration_link(run)?.noise, live.len(), class_weights)?;
        let visitor = ByTree {
            n_trees: self.settings().n_estimators,
            n_codes: self.posterior.classes.labels.len(),
            gamma: self.discount() * self.domain().total_weight(),
        };
        let of_complete = |rows: Rows<'_>| self.complete_uncertainty(rows, &link, &visitor, run);
        let found = completions::predict(
            &self.forest,
            (rows, Classification::COMPLETIONS),
            run,
            of_complete,
            |completions, found| completions.by_row(&found, |each| link.mixed(each)),
        )?;
        Ok(found.into_iter().map(|parts| (parts.total, parts.aleatoric)).unzip())
    }

    fn complete_uncertainty(
        &self,
        rows: Rows<'_>,
        link: &WithNoise,
        visitor: &ByTree,
        run: &Run<'_>,
    ) -> Result<Vec<Parts>> {
        let live = self.posterior.classes.live();
        let mut parts = Vec::with_capacity(rows.n_rows());
        let at_once = (HELD / visitor.width()).max(1);
        for first in (0..rows.n_rows()).step_by(at_once) {
            let some = rows.slice(first, (first + at_once).min(rows.n_rows()));
            let proba = self.predict_proba(some, run)?;
            let chunks = walk::predict(&self.forest, some, run, visitor)?;
            let by_tree = chunks.iter().flat_map(|chunk| chunk.predictions.chunks_exact(visitor.width()));
            for (q, by_tree) in proba.chunks_exact(live.len()).zip(by_tree) {
                let trees = Trees { predictions: by_tree, n_codes: visitor.n_codes, live: &live };
                let (total, share) = link.entropy(q);
                // Rounded as the whole is.
                let remains = if share > 0.0 { trees.aleatoric(q, link) / share } else { 0.0 };
                parts.push(Parts { proba: q.to_vec(), share, total, aleatoric: remains.min(total) });
            }
        }
        Ok(parts)
    }
}

/// A row's entropy, its aleatoric part, and what they follow from.
#[derive(Debug, Clone)]
struct Parts {
    proba: Vec<f64>,
    /// What the weights leave of the sum of the probabilities.
    share: f64,
    total: f64,
    aleatoric: f64,
}

/// The last steps of the link: a share of noise, and weights of the classes.
struct WithNoise {
    noise: f64,
    /// By class; the largest is 1.
    weights: Vec<f64>,
    /// `e / K`.
    each: f64,
    /// `E(1_k)` by class.
    certain: Vec<f64>,
}

impl WithNoise {
    fn new(noise: f64, n_classes: usize, weights: Option<&[f64]>) -> Result<Self> {
        let mut weights = weights.map_or_else(|| vec![1.0; n_classes], <[f64]>::to_vec);
        let (what, found, expected) = ("class_weights", weights.len(), n_classes);
        if found != expected {
            return Err(Error::Length { what, found, expected, why: "one weight a class" });
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 || !weights.iter().all(|w| (0.0..f64::INFINITY).contains(w)) {
            let expected = "finite and not negative, and above 0 for one class at least";
            return Err(Error::InvalidSetting { name: what, expected, found: format!("{weights:?}") });
        }
        for weight in &mut weights {
            *weight /= largest;
        }
        let each = noise / n_classes as f64;
        let of_noise: f64 = weights.iter().map(|w| each * w).sum();
        let logs_of_noise: f64 = weights.iter().map(|w| times_log(each * w)).sum();
        let certain = |weight: &f64| {
            let (lost, found) = (weight * each, weight * (1.0 - noise + each));
            let logs = logs_of_noise - times_log(lost) + times_log(found);
            (times_log(of_noise - lost + found) - logs).max(0.0)
        };
        let certain = weights.iter().map(certain).collect();
        Ok(Self { noise, weights, each, certain })
    }

    /// The entropy of predicted probabilities in which there is noise, and what the weights leave of their sum.
    fn entropy(&self, q: &[f64]) -> (f64, f64) {
        let a = || q.iter().zip(&self.weights).map(|(q, w)| q * w);
        let share: f64 = a().sum();
        if share > 0.0 {
            return (entropy(a().map(|a| a / share)), share);
        }
        let all: f64 = self.weights.iter().sum();
        (entropy(self.weights.iter().map(|w| w / all)), 0.0)
    }

    /// The parts of a row, given those of its completions.
    fn mixed(&self, each: &[Parts]) -> Parts {
        if let [one] = each {
            return one.clone();
        }
        let mean = |k| each.iter().map(|parts| parts.proba[k]).sum::<f64>() / each.len() as f64;
        let proba: Vec<f64> = (0..self.weights.len()).map(mean).collect();
        let (total, share) = self.entropy(&proba);
        let of_each = |parts: &Parts| parts.share / each.len() as f64 * (parts.total - parts.aleatoric);
        let epistemic = each.iter().map(of_each).sum::<f64>();
        let aleatoric = if share > 0.0 { (total - epistemic / share).clamp(0.0, total) } else { 0.0 };
        Parts { proba, share, total, aleatoric }
    }

    /// `E(v)`.
    fn remains(&self, v: &[f64]) -> f64 {
        let all: f64 = v.iter().sum();
        let a = || v.iter().zip(&self.weights).map(|(v, w)| w * ((1.0 - self.noise) * v + self.each * all));
        let share: f64 = a().sum();
        if share > 0.0 { share * entropy(a().map(|a| a / share)) } else { 0.0 }
    }
}

/// Keeps the predictions of all trees apart.
struct ByTree {
    n_trees: usize,
    n_codes: usize,
    gamma: f64,
}

impl ByTree {
    /// Numbers for every row: by tree the probabilities of the classes but for the base measure, the weight of the base
    /// measure, and the part of the probabilities that is about the row.
    fn width(&self) -> usize {
        self.n_trees * (2 * self.n_codes + 1)
    }
}

struct Predictions {
    predictions: Vec<f64>,
    buffers: Buffers,
}

impl Visitor<ClassCounts> for ByTree {
    type Chunk = Predictions;

    fn start(&self, n_rows: usize) -> Predictions {
        Predictions { predictions: vec![0.0; n_rows * self.width()], buffers: Buffers::default() }
    }

    fn visit<S: Scalar>(
        &self,
        number: usize,
        tree: &Tree<S, ClassCounts>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Predictions,
    ) {
        let predictor = Predictor { number, counts: InTree { tree, stops }, gamma: self.gamma };
        let of_tree = 2 * self.n_codes + 1;
        let at = row * self.width() + number * of_tree;
        let (whole, own) = chunk.predictions[at..at + of_tree].split_at_mut(self.n_codes + 1);
        let (shares, base) = whole.split_at_mut(self.n_codes);
        base[0] = predictor.predict(stops, &mut chunk.buffers, shares).base;
        own.copy_from_slice(shares);
        predictor.take_root_away(stops, &chunk.buffers, own);
    }
}

/// What all trees predict for a row.
struct Trees<'a> {
    predictions: &'a [f64],
    n_codes: usize,
    live: &'a [Class],
}

impl Trees<'_> {
    /// Every tree's predictions.
    fn iter(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.predictions.chunks_exact(2 * self.n_codes + 1)
    }

    /// A tree's probability of a live class, and the part of it that is about the row.
    fn of_class(&self, tree: &[f64], class: Class) -> (f64, f64) {
        let whole = tree[class as usize] + tree[self.n_codes] / self.live.len() as f64;
        // What is left may be less than nothing, by rounding.
        (whole, tree[self.n_codes + 1 + class as usize].clamp(0.0, whole))
    }

    /// The aleatoric part of the entropy of `q`, times the sum of the weighted probabilities.
    fn aleatoric(&self, q: &[f64], link: &WithNoise) -> f64 {
        let n_trees = self.iter().len() as f64;
        let ratio = |(&class, &q): (&Class, &f64)| {
            let sum: f64 = self.iter().map(|tree| self.of_class(tree, class).0).sum();
            let without_noise = ((q - link.each) / (1.0 - link.noise)).max(0.0);
            if sum > 0.0 { without_noise * n_trees / sum } else { 0.0 }
        };
        let ratios: Vec<f64> = self.live.iter().zip(q).map(ratio).collect();
        let mut sum = 0.0;
        let (mut own, mut drawn) = (vec![0.0; q.len()], vec![0.0; q.len()]);
        for tree in self.iter() {
            for (k, &class) in self.live.iter().enumerate() {
                let (whole, about_row) = self.of_class(tree, class);
                own[k] = about_row * ratios[k];
                drawn[k] += (whole - about_row) * ratios[k];
            }
            sum += link.remains(&own);
        }
        let drawn: f64 = drawn.iter().zip(&link.certain).map(|(drawn, remains)| drawn * remains).sum();
        (sum + drawn) / n_trees
    }
}

/// The entropy in nats.
fn entropy(proba: impl Iterator<Item = f64>) -> f64 {
    (-proba.map(times_log).sum::<f64>()).max(0.0)
}

fn times_log(a: f64) -> f64 {
    if a > 0.0 { a * a.ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Label;
    use crate::mondrian::classification::predictive::Averages;
    use crate::mondrian::classification::settings::ClassificationSettings;
    use crate::mondrian::forest::Batch;
    use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
    use crate::mondrian::process::domain::Domain;
    use crate::random::keyed::Stream;

    /// The weight of what trees say of all their rows is what the classes lose with the root, and the base measure.
    #[test]
    fn what_is_not_about_the_row_has_the_weight_that_predictions_say() {
        let run = Run::default();
        for seed in 0..40 {
            let mut stream = Stream::new(11, seed);
            let n = 1 + stream.below(40);
            let x: Vec<f64> = (0..2 * n).map(|_| stream.unit()).collect();
            let codes: Vec<u32> = (0..n).map(|_| stream.below(3) as u32).collect();
            let predictive = [Predictive::Averaged, Predictive::Realised][stream.below(2)];
            let lifetime = [f64::INFINITY, 1.0][stream.below(2)];
            let weights: Vec<f64> = (0..n).map(|_| 0.1 + stream.unit()).collect();
            let weights = (seed % 3 == 0).then_some(&weights[..]);
            let model = MondrianClassifier::fit(
                MondrianSettings { n_estimators: 4, predictive, lifetime, ..MondrianSettings::default() },
                ClassificationSettings { discount: 0.4, ..ClassificationSettings::default() },
                Domain::new(vec![0.0; 2], vec![1.0; 2], None).unwrap(),
                Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: None, weights },
                (&codes, &[Label::Int(0), Label::Int(1), Label::Int(2)]),
                &[],
                &run,
            )
            .unwrap();
            let test: Vec<f64> =
                (0..60).map(|i| f64::from(1 + i / 20) * (2.0 * stream.unit() - 0.5)).collect();
            let rows = Rows::from_f64(&test, 2).unwrap();
            let gather = model.gather(&[0.4]);
            let mut averages = Averages::default();
            for chunk in walk::predict(&model.forest, rows, &run, &gather).unwrap() {
                gather.finish(&chunk, 0, None, &mut averages);
            }
            let n_codes = model.posterior.classes.labels.len();
            let gamma = model.discount() * model.domain().total_weight();
            let visitor = ByTree { n_trees: 4, n_codes, gamma };
            let chunks = walk::predict(&model.forest, rows, &run, &visitor).unwrap();
            let by_row = chunks.iter().flat_map(|chunk| chunk.predictions.chunks_exact(visitor.width()));
            for (by_tree, of_all) in by_row.zip(averages.of_all) {
                let about_row: f64 =
                    by_tree.chunks_exact(2 * n_codes + 1).flat_map(|tree| &tree[n_codes + 1..]).sum();
                assert!((1.0 - about_row / 4.0 - of_all).abs() < 1e-12, "{seed}: {about_row} {of_all}");
            }
        }
    }
}
