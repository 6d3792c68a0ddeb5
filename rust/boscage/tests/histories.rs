//! A forest depends only on its settings and its rows, and not on the history of updates.

use boscage::{
    AnyModel, Batch, Calibration, ClassPosterior, ClassificationSettings, Domain, FeatureMap, JointKernel,
    Label, MondrianClassifier, MondrianRegressor, MondrianSettings, Noise, Predictive, RegressionSettings,
    Rows, Run,
};
use proptest::prelude::*;

/// A row with an id. Values are on a coarse grid, so that duplicates and ties are common; a few are far
/// outside the ranges.
#[derive(Debug, Clone)]
struct Row {
    x: [f64; 2],
    class: u32,
    weight: f64,
}

fn row() -> impl Strategy<Value = Row> {
    let value = prop_oneof![
        6 => (-4i32..=4).prop_map(|v| f64::from(v) / 4.0),
        2 => -1.0..1.0f64,
        1 => -40.0..40.0f64,
    ];
    let weight = prop_oneof![
        3 => Just(1.0),
        2 => (1u8..5).prop_map(f64::from),
        3 => 0.0..2.0f64,
        1 => Just(1e-7),
    ];
    let weight = weight.prop_map(|weight| weight.max(1e-12));
    ([value.clone(), value], 0u32..3, weight).prop_map(|(x, class, weight)| Row { x, class, weight })
}

#[derive(Debug, Clone)]
struct Setting {
    seed: u64,
    lifetime: f64,
    min_samples_split: usize,
    predictive: Predictive,
    mapped: bool,
    weighs: bool,
}

fn setting() -> impl Strategy<Value = Setting> {
    (
        any::<u64>(),
        prop_oneof![Just(f64::INFINITY), 0.0..3.0f64],
        prop_oneof![Just(2usize), Just(5)],
        prop_oneof![Just(Predictive::Averaged), Just(Predictive::Realised)],
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(seed, lifetime, min_samples_split, predictive, mapped, weighs)| Setting {
            seed,
            lifetime,
            min_samples_split,
            predictive,
            mapped,
            weighs,
        })
}

const LABELS: [Label; 3] = [Label::Int(0), Label::Int(1), Label::Int(2)];

struct Data {
    x: Vec<f64>,
    codes: Vec<u32>,
    y: Vec<f64>,
    ids: Vec<u64>,
    weights: Vec<f64>,
}

fn data(rows: &[Row], which: &[usize]) -> Data {
    Data {
        x: which.iter().flat_map(|&i| rows[i].x).collect(),
        codes: which.iter().map(|&i| rows[i].class).collect(),
        y: which.iter().map(|&i| rows[i].x[0] + f64::from(rows[i].class)).collect(),
        ids: which.iter().map(|&i| i as u64).collect(),
        weights: which.iter().map(|&i| rows[i].weight).collect(),
    }
}

fn settings(setting: &Setting) -> MondrianSettings {
    MondrianSettings {
        n_estimators: 2,
        lifetime: setting.lifetime,
        min_samples_split: setting.min_samples_split,
        predictive: setting.predictive,
        seed: setting.seed,
        share: None,
    }
}

/// One feature with a map and one without, or neither.
fn domain(setting: &Setting) -> Domain {
    let domain = Domain::new(vec![-0.5, -1.0], vec![1.0, 0.75], None).unwrap();
    if !setting.mapped {
        return domain;
    }
    let map = FeatureMap::new(vec![-0.5, 0.1, 0.25, 1.0], vec![0.0, 0.7, 0.71, 1.0]).unwrap();
    domain.with_maps(vec![map, FeatureMap::default()]).unwrap()
}

fn classifier(setting: &Setting, rows: &[Row], which: &[usize]) -> MondrianClassifier {
    let Data { x, codes, ids, weights, .. } = data(rows, which);
    let weights = setting.weighs.then_some(&weights[..]);
    let batch = Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: Some(&ids), weights };
    let run = Run::default();
    let classification = ClassificationSettings { discount: 20.0, ..ClassificationSettings::default() };
    let targets = (&codes[..], &LABELS[..]);
    MondrianClassifier::fit(settings(setting), classification, domain(setting), batch, targets, &[], &run)
        .unwrap()
}

fn regressor(setting: &Setting, rows: &[Row], which: &[usize]) -> MondrianRegressor {
    let Data { x, y, ids, weights, .. } = data(rows, which);
    let weights = setting.weighs.then_some(&weights[..]);
    let batch = Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: Some(&ids), weights };
    let regression = RegressionSettings { noise: Noise::Local, ..RegressionSettings::default() };
    MondrianRegressor::fit(settings(setting), regression, domain(setting), batch, &y, &Run::default())
        .unwrap()
}

fn probes() -> Vec<f64> {
    (0..40).map(|i| f64::from(i * 7919 % 83) / 20.0 - 2.0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn classifiers_are_functions_of_their_rows(
        setting in setting(),
        rows in prop::collection::vec(row(), 2..40),
        order in any::<prop::sample::Index>(),
        batch in 1usize..6,
        keep in 1usize..40,
        flush in 1usize..5,
    ) {
        let n = rows.len();
        let turn = order.index(n);
        let mut turned: Vec<usize> = (0..n).collect();
        turned.rotate_left(turn);
        turned.reverse();
        let start = (n / 2).max(1);
        let mut forest = classifier(&setting, &rows, &turned[..start]);
        for (i, part) in turned[start..].chunks(batch).enumerate() {
            let Data { x, codes, ids, weights, .. } = data(&rows, part);
            let weights = setting.weighs.then_some(&weights[..]);
            let batch = Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: Some(&ids), weights };
            forest.partial_fit(batch, (&codes, &LABELS)).unwrap();
            prop_assert!(forest.n_pending() >= part.len());
            if i % flush == 0 {
                forest.flush(&Run::default()).unwrap();
                prop_assert_eq!(forest.n_pending(), 0);
            }
            forest.check().unwrap();
        }
        let all: Vec<usize> = (0..n).collect();
        let whole = classifier(&setting, &rows, &all);
        let probes = probes();
        let probes = Rows::from_f64(&probes, 2).unwrap();
        let one = Run::default();
        let two = Run { n_threads: 2, ..one };
        prop_assert_eq!(forest.digest(), whole.digest());
        prop_assert_eq!(forest.predict_proba(probes, &one), whole.predict_proba(probes, &two));

        let keep = keep.min(n);
        let gone: Vec<u64> = (keep as u64..n as u64).collect();
        for part in gone.chunks(flush * flush) {
            forest.forget(part).unwrap();
            forest.check().unwrap();
        }
        let rest = classifier(&setting, &rows, &all[..keep]);
        prop_assert_eq!(forest.digest(), rest.digest());
        prop_assert_eq!(forest.predict_proba(probes, &one), rest.predict_proba(probes, &one));

        if keep < n {
            let mut shard = classifier(&setting, &rows, &all[keep..]);
            shard.merge(&forest).unwrap();
            shard.check().unwrap();
            prop_assert_eq!(shard.digest(), whole.digest());
        }

        let loaded = match AnyModel::from_bytes(&forest.to_bytes(), &Run::default()).unwrap() {
            AnyModel::MondrianClassifier(loaded) => loaded,
            other => panic!("a classifier was saved, not a {}", other.kind().description()),
        };
        prop_assert_eq!(loaded.digest(), forest.digest());
        prop_assert_eq!(loaded.ids(), forest.ids());
    }

    #[test]
    fn regressors_are_functions_of_their_rows(
        setting in setting(),
        rows in prop::collection::vec(row(), 2..30),
        keep in 1usize..30,
        flushes in any::<bool>(),
    ) {
        let n = rows.len();
        let backwards: Vec<usize> = (0..n).rev().collect();
        let mut forest = regressor(&setting, &rows, &backwards[..1]);
        for part in backwards[1..].chunks(3) {
            let Data { x, y, ids, weights, .. } = data(&rows, part);
            let weights = setting.weighs.then_some(&weights[..]);
            let batch = Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: Some(&ids), weights };
            forest.partial_fit(batch, &y).unwrap();
            if flushes {
                forest.flush(&Run::default()).unwrap();
            }
        }
        forest.check().unwrap();
        let all: Vec<usize> = (0..n).collect();
        let probes = probes();
        let probes = Rows::from_f64(&probes, 2).unwrap();
        let one = Run::default();
        let two = Run { n_threads: 2, ..one };
        let whole = regressor(&setting, &rows, &all);
        prop_assert_eq!(forest.digest(), whole.digest());
        prop_assert_eq!(forest.predict(probes, &one), whole.predict(probes, &two));

        // Boxes are dropped and computed again, and predictions must not change.
        for predictive in [Predictive::Realised, Predictive::Averaged, setting.predictive] {
            prop_assert!(forest.is_flushed());
            let before = forest.settings().predictive;
            forest.set_predictive(predictive);
            prop_assert!(n == 1 || forest.is_flushed() == (before == predictive));
            forest.flush(&one).unwrap();
            let again = regressor(&Setting { predictive, ..setting.clone() }, &rows, &all);
            prop_assert_eq!(forest.predict(probes, &one), again.predict(probes, &one));
        }
        let keep = keep.min(n);
        forest.forget(&(keep as u64..n as u64).collect::<Vec<_>>()).unwrap();
        forest.check().unwrap();
        let rest = regressor(&setting, &rows, &all[..keep]);
        prop_assert_eq!(forest.digest(), rest.digest());
        prop_assert_eq!(forest.predict(probes, &one), rest.predict(probes, &one));
        let (_, variance) = rest.predict(probes, &one).unwrap();
        prop_assert!(variance.iter().all(|&v| v > 0.0));

        let loaded = AnyModel::from_bytes(&forest.to_bytes(), &Run::default()).unwrap();
        let AnyModel::MondrianRegressor(loaded) = loaded else { panic!("a regressor was saved") };
        prop_assert_eq!(loaded.domain(), forest.domain());
        prop_assert_eq!(loaded.digest(), forest.digest());
    }

    /// Exported thresholds and boxes are in the units of the rows, and every row is on the right side of
    /// them.
    #[test]
    fn exported_trees_hold_the_rows(
        setting in setting(),
        rows in prop::collection::vec(row(), 2..30),
    ) {
        let all: Vec<usize> = (0..rows.len()).collect();
        for tree in regressor(&setting, &rows, &all).trees(&Run::default()).unwrap() {
            let mut at = vec![Vec::new(); tree.feature.len()];
            at[0] = all.clone();
            for node in 0..at.len() {
                let here = at[node].clone();
                prop_assert_eq!(here.len() as u64, tree.n_rows[node]);
                for k in 0..2 {
                    let of = || here.iter().map(|&i| rows[i].x[k]);
                    prop_assert_eq!(of().fold(f64::INFINITY, f64::min), tree.lower[2 * node + k]);
                    prop_assert_eq!(of().fold(f64::NEG_INFINITY, f64::max), tree.upper[2 * node + k]);
                }
                let Ok(feature) = usize::try_from(tree.feature[node]) else { continue };
                let left = |i: &usize| rows[*i].x[feature] <= tree.threshold[node];
                let sides: (Vec<usize>, Vec<usize>) = here.into_iter().partition(left);
                at[tree.children_left[node] as usize] = sides.0;
                at[tree.children_right[node] as usize] = sides.1;
            }
        }
    }

    /// Rows are inserted and removed while other updates are pending, and positions in the table are reused.
    #[test]
    fn pending_rows_can_be_removed(
        setting in setting(),
        rows in prop::collection::vec(row(), 4..40),
        steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), 0u8..4), 1..60),
        window in 1usize..40,
    ) {
        let one = Run::default();
        let mut held: Vec<usize> = vec![0, 1];
        let mut forest = classifier(&setting, &rows, &held);
        for (at, comes, then) in steps {
            let out: Vec<usize> = (0..rows.len()).filter(|i| !held.contains(i)).collect();
            if comes && !out.is_empty() {
                let new = out[at.index(out.len())];
                let Data { x, codes, ids, weights, .. } = data(&rows, &[new]);
                let weights = setting.weighs.then_some(&weights[..]);
                let batch = Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: Some(&ids), weights };
                forest.partial_fit(batch, (&codes, &LABELS)).unwrap();
                held.push(new);
            } else if !comes && !held.is_empty() {
                let gone = held.remove(at.index(held.len()));
                forest.forget(&[gone as u64]).unwrap();
            }
            if then == 0 {
                forest.flush(&one).unwrap();
            }
            forest.check().unwrap();
            let held: Vec<u64> = held.iter().map(|&i| i as u64).collect();
            prop_assert_eq!(forest.ids(), held);
        }
        let again = AnyModel::from_bytes(&forest.to_bytes(), &one).unwrap();
        let AnyModel::MondrianClassifier(again) = again else { panic!("a classifier was saved") };
        let copy = forest.clone();
        forest.keep_newest(window);
        prop_assert_eq!(copy.digest(), classifier(&setting, &rows, &held).digest());
        prop_assert_eq!(again.digest(), copy.digest());
        let newest = classifier(&setting, &rows, &held[held.len().saturating_sub(window)..]);
        prop_assert_eq!(forest.digest(), newest.digest());
        let probes = probes();
        let probes = Rows::from_f64(&probes, 2).unwrap();
        prop_assert_eq!(again.predict_proba(probes, &one), copy.predict_proba(probes, &one));
        prop_assert_eq!(forest.predict_proba(probes, &one), newest.predict_proba(probes, &one));
    }

    /// Nodes grow past the size at which they store boxes, and shrink below it again. Boxes have many
    /// features, and many rows on their bounds. Predictions use every box.
    #[test]
    fn boxes_are_functions_of_their_rows(
        seed in any::<u64>(),
        rows in prop::collection::vec(prop::collection::vec(-2i8..=2, 19), 30..120),
        batch in prop_oneof![Just(1usize), 2usize..40],
        keep in 1usize..100,
        flushes in any::<bool>(),
        boxless in 0usize..6,
    ) {
        const D: usize = 19;
        let n = rows.len();
        // Many values are at the ends of their range.
        let values: Vec<f64> = rows.iter().flatten().map(|&v| f64::from(v).clamp(-1.5, 1.0)).collect();
        let codes: Vec<u32> = rows.iter().map(|row| row[1].unsigned_abs().into()).collect();
        let settings = || MondrianSettings { n_estimators: 2, seed, ..MondrianSettings::default() };
        let classification = ClassificationSettings { discount: 20.0, ..ClassificationSettings::default() };
        let domain = || Domain::new(vec![-1.5; D], vec![1.0; D], None).unwrap();
        let one = Run::default();
        let part = |of: &[usize]| -> (Vec<f64>, Vec<u32>, Vec<u64>) {
            let x = of.iter().flat_map(|&i| values[i * D..(i + 1) * D].to_vec()).collect();
            (x, of.iter().map(|&i| codes[i]).collect(), of.iter().map(|&i| i as u64).collect())
        };
        let fit = |of: &[usize]| {
            let (x, codes, ids) = part(of);
            let batch = Batch { rows: Rows::from_f64(&x, D).unwrap(), ids: Some(&ids), weights: None };
            let targets: (&[u32], &[Label]) = (&codes, &LABELS);
            MondrianClassifier::fit(settings(), classification.clone(), domain(), batch, targets, &LABELS, &one).unwrap()
        };
        let points: Vec<f64> = values.iter().map(|v| 1.3 * v + 0.1).collect();
        let points = Rows::from_f64(&points, D).unwrap();
        let all: Vec<usize> = (0..n).collect();
        let keep = keep.min(n);
        let (whole, rest) = (fit(&all), fit(&all[..keep]));

        let mut forest = fit(&all[..keep]);
        for (i, part_of) in all[keep..].chunks(batch).enumerate() {
            let predictive = if i + 1 == boxless { Predictive::Realised } else { Predictive::Averaged };
            forest.set_predictive(predictive);
            let (x, codes, ids) = part(part_of);
            let batch = Batch { rows: Rows::from_f64(&x, D).unwrap(), ids: Some(&ids), weights: None };
            forest.partial_fit(batch, (&codes, &LABELS)).unwrap();
            if flushes {
                forest.flush(&one).unwrap();
            }
        }
        forest.set_predictive(Predictive::Averaged);
        forest.check().unwrap();
        prop_assert_eq!(forest.digest(), whole.digest());
        prop_assert_eq!(forest.predict_proba(points, &one), whole.predict_proba(points, &one));
        for gone in all[keep..].chunks(batch) {
            forest.forget(&gone.iter().map(|&i| i as u64).collect::<Vec<_>>()).unwrap();
        }
        forest.check().unwrap();
        prop_assert_eq!(forest.digest(), rest.digest());
        prop_assert_eq!(forest.predict_proba(points, &one), rest.predict_proba(points, &one));
    }

    /// A row of a whole weight is as many rows, whatever came and left.
    #[test]
    fn whole_weights_are_repeated_rows(
        setting in setting(),
        rows in prop::collection::vec((row(), 1usize..4), 3..30),
        steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..30),
    ) {
        let one = Run::default();
        let times = |i: usize| rows[i].1;
        let rows: Vec<Row> =
            rows.iter().map(|(row, times)| Row { weight: *times as f64, ..row.clone() }).collect();
        let setting = Setting { weighs: true, ..setting };
        let copies = |which: &[usize]| {
            let all = which.iter().flat_map(|&i| (0..times(i)).map(move |k| (i, (4 * i + k) as u64)));
            let (which, ids): (Vec<usize>, Vec<u64>) = all.unzip();
            Data { ids, ..data(&rows, &which) }
        };
        let fitted = |which: &[usize]| {
            let Data { x, codes, ids, .. } = copies(which);
            let batch = Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: Some(&ids), weights: None };
            let classification = ClassificationSettings {
                discount: 20.0, calibration: Calibration::None, ..ClassificationSettings::default()
            };
            let targets = (&codes[..], &LABELS[..]);
            MondrianClassifier::fit(
                settings(&setting), classification, domain(&setting), batch, targets, &[], &one,
            ).unwrap()
        };
        let mut held = vec![0, 1];
        let mut once = classifier(&setting, &rows, &held);
        once.set_posterior(ClassPosterior::KneserNey, Calibration::None, JointKernel::Trees, false).unwrap();
        let mut often = fitted(&held);
        let probes = probes();
        let probes = Rows::from_f64(&probes, 2).unwrap();
        for (at, comes) in steps {
            let out: Vec<usize> = (0..rows.len()).filter(|i| !held.contains(i)).collect();
            if comes && !out.is_empty() {
                let new = [out[at.index(out.len())]];
                let Data { x, codes, ids, weights, .. } = data(&rows, &new);
                let x = Rows::from_f64(&x, 2).unwrap();
                let batch = Batch { rows: x, ids: Some(&ids), weights: Some(&weights) };
                once.partial_fit(batch, (&codes, &LABELS)).unwrap();
                let Data { x, codes, ids, .. } = copies(&new);
                let batch = Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: Some(&ids), weights: None };
                often.partial_fit(batch, (&codes, &LABELS)).unwrap();
                held.push(new[0]);
            } else if !comes && held.len() > 1 {
                let gone = held.remove(at.index(held.len()));
                once.forget(&[gone as u64]).unwrap();
                often.forget(&copies(&[gone]).ids).unwrap();
            }
            prop_assert_eq!(once.predict_proba(probes, &one), often.predict_proba(probes, &one));
        }
        let values = |forest: &MondrianClassifier| -> Vec<Vec<f64>> {
            forest.trees().unwrap().into_iter().map(|tree| tree.values).collect()
        };
        prop_assert_eq!(values(&once), values(&often));
        let uncertainty = |forest: &MondrianClassifier| forest.predict_uncertainty(probes, None, &one);
        prop_assert_eq!(uncertainty(&once), uncertainty(&often));
        prop_assert_eq!(once.split_gains(&one), often.split_gains(&one));
    }

    /// A leave-one-out prediction equals removing the row, predicting, and inserting it again.
    #[test]
    fn leave_one_out_equals_forgetting(
        setting in setting(),
        rows in prop::collection::vec(row(), 2..25),
        out in any::<prop::sample::Index>(),
    ) {
        let n = rows.len();
        let all: Vec<usize> = (0..n).collect();
        let out = out.index(n);
        let forest = classifier(&setting, &rows, &all);
        let ids = forest.ids();
        let loo = || forest.loo_proba(&ids, &[20.0], Calibration::None, &Run::default()).unwrap();
        let found = loo();
        let mut without = forest.clone();
        without.set_posterior(ClassPosterior::KneserNey, Calibration::None, JointKernel::Trees, false).unwrap();
        without.forget(&[out as u64]).unwrap();
        let proba = without.predict_proba(Rows::from_f64(&rows[out].x, 2).unwrap(), &Run::default()).unwrap();
        let classes = forest.classes();
        for (class, p) in without.classes().iter().zip(proba) {
            let column = classes.iter().position(|other| other == class).unwrap();
            prop_assert_eq!(found[out * classes.len() + column], p);
        }
        prop_assert_eq!(loo(), found);
    }
}
