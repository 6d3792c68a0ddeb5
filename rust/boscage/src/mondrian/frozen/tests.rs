//! A forest without rows predicts as the forest with rows does, to the bit, however its rows come; so does one that was
//! written down.

use crate::control::Run;
use crate::data::Label;
use crate::error::{Error, Result};
use crate::mondrian::cells::plan::{CellPlan, RowExtent};
use crate::mondrian::cells::test_data::{self, Data, classification, domain, plan};
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::classification::frozen::{ClassifierFreezer, FrozenClassifier};
use crate::mondrian::classification::settings::ClassificationSettings;
use crate::mondrian::forest::row_values::RowValues;
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::frozen::forest::FrozenForest;
use crate::mondrian::frozen::posterior::FrozenPosterior;
use crate::mondrian::frozen::record::{Step, TreeRecord};
use crate::mondrian::regression::frozen::{FrozenRegressor, RegressorFreezer};
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hyperparameters::choice::TargetMoments;
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::regression::settings::{Noise, Posterior, RegressionSettings};
use crate::random::keyed::Stream;

const DISCOUNT: f64 = 7.0;

/// Rows without weights.
fn rows(stream: &mut Stream, n_rows: usize) -> Data {
    Data { weights: None, ..Data::random(stream, n_rows) }
}

/// The labels that rows have, their numbers of rows, and the rows' classes among them.
fn classes(data: &Data) -> (Vec<Label>, Vec<u64>, Vec<u32>) {
    let mut found = data.codes.clone();
    found.sort_unstable();
    found.dedup();
    let number = |code: &u32| found.binary_search(code).unwrap() as u32;
    let codes: Vec<u32> = data.codes.iter().map(number).collect();
    let mut n_rows_of = vec![0; found.len()];
    for &code in &codes {
        n_rows_of[code as usize] += 1;
    }
    (found.iter().map(|&code| Label::Int(i64::from(code))).collect(), n_rows_of, codes)
}

fn settings(stream: &mut Stream, seed: u64) -> MondrianSettings {
    MondrianSettings { predictive: Predictive::Realised, ..test_data::settings(stream, seed) }
}

/// Calls `grow` with the rows of some cells at a time, by their places, until all have come.
fn each_group(
    stream: &mut Stream,
    n_cells: usize,
    data: &Data,
    mut grow: impl FnMut(usize, &mut dyn FnMut(&CellPlan) -> Data),
) {
    let mut left = n_cells;
    while left > 0 {
        let n = (1 + stream.below(left)).min(1 + stream.below(12));
        grow(n, &mut |plan| data.some(&plan.rows_of(data.rows(), 0, &Run::default()).unwrap()));
        left -= n;
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The forest that the records of another hold.
fn written<P: FrozenPosterior + Clone>(forest: &FrozenForest<P>, posterior: P) -> Result<FrozenForest<P>> {
    let records: Vec<TreeRecord> =
        (0..forest.settings().n_estimators).map(|tree| forest.record(tree)).collect();
    let (settings, domain) = (forest.settings().clone(), forest.domain().clone());
    FrozenForest::of_records(settings, domain, forest.extent, posterior, &records, &Run::default())
}

#[test]
fn a_classifier_without_rows_predicts_as_one_with_rows() {
    let run = Run::default();
    let mut n_cells = 0;
    for seed in 0..60 {
        let mut stream = Stream::new(seed, 5);
        let n_rows = 1 + stream.below(600);
        let data = rows(&mut stream, n_rows);
        let test = rows(&mut stream, 200);
        let settings = settings(&mut stream, seed);
        let (labels, n_rows_of, codes) = classes(&data);
        let classification = ClassificationSettings { discount: DISCOUNT, ..classification() };
        let targets = (&codes[..], &labels[..]);
        let one = MondrianClassifier::fit(
            settings.clone(),
            classification,
            domain(),
            data.batch(),
            targets,
            &[],
            &run,
        )
        .unwrap();
        let data = Data { codes, ..data };
        let plan = plan(&mut stream, settings, &data, false);
        n_cells += plan.n_cells();
        let mut freezer = ClassifierFreezer::new(plan.clone(), DISCOUNT, &labels, &n_rows_of).unwrap();
        each_group(&mut stream, plan.n_cells(), &data, |n, rows_of| {
            let next = freezer.next_cells(n).unwrap();
            let own = rows_of(&next);
            freezer.grow(next, own.rows(), &own.codes, &run).unwrap();
        });
        let (bytes, n_leaves) = (freezer.bytes(), freezer.n_leaves());
        let frozen = freezer.finish(&run).unwrap();
        assert_eq!(frozen.bytes(), bytes);
        assert_eq!((frozen.n_rows(), frozen.classes()), (n_rows, one.classes()));
        let expected = bits(&one.predict_proba(test.rows(), &run).unwrap());
        assert_eq!(bits(&frozen.predict_proba(test.rows(), &run).unwrap()), expected, "seed {seed}");
        let trees = one.tree_structures();
        let leaves = trees.iter().map(|tree| tree.feature.iter().filter(|&&d| d < 0).count()).sum::<usize>();
        assert_eq!(n_leaves, leaves);
        let again: FrozenClassifier = written(&frozen, frozen.model.posterior.clone()).unwrap();
        assert_eq!(bits(&again.predict_proba(test.rows(), &run).unwrap()), expected);
        assert_eq!(again.record(0), frozen.record(0));
    }
    assert!(n_cells > 400, "{n_cells}");
}

#[test]
fn a_regressor_without_rows_predicts_as_one_with_rows() {
    let run = Run { n_threads: 2, ..Run::default() };
    for seed in 0..40 {
        let mut stream = Stream::new(seed, 6);
        let n_rows = 1 + stream.below(500);
        let data = rows(&mut stream, n_rows);
        let test = rows(&mut stream, 100);
        let settings = settings(&mut stream, seed);
        // One of the two is not 0, or neither.
        let (delay, variance) = [(0.0, 0.0), (0.4, 0.0), (0.0, 3.0)][stream.below(3)];
        let hyper = Hyperparameters {
            mu: 1.0,
            gamma1: 2.0,
            gamma2: 0.5,
            noise_variance: 0.3,
            delay,
            coarse: CoarsePrior { variance, rate: 0.2 },
        };
        let regression = RegressionSettings {
            posterior: Posterior::Exact,
            noise: Noise::Global,
            hyperparameters: Some(hyper),
            ..RegressionSettings::default()
        };
        let targets = data.numbers();
        let fitted =
            MondrianRegressor::fit(settings.clone(), regression, domain(), data.batch(), &targets, &run);
        let plan = plan(&mut stream, settings, &data, false);
        let mut freezer = RegressorFreezer::new(plan.clone()).unwrap();
        each_group(&mut stream, plan.n_cells(), &data, |n, rows_of| {
            let next = freezer.next_cells(n).unwrap();
            let own = rows_of(&next);
            freezer.grow(next, own.rows(), &own.numbers(), &run).unwrap();
        });
        assert!(freezer.clone().finish(&run).is_err(), "hyperparameters are not set");
        let one = fitted.unwrap();
        assert_eq!(freezer.target_moments().unwrap(), target_moments(&one), "seed {seed}");
        freezer.set_hyperparameters(hyper).unwrap();
        let frozen = freezer.finish(&run).unwrap();
        let moments = |(mean, variance): (Vec<f64>, Vec<f64>)| (bits(&mean), bits(&variance));
        let expected = moments(one.predict(test.rows(), &run).unwrap());
        assert_eq!(moments(frozen.predict(test.rows(), &run).unwrap()), expected, "seed {seed}");
        let again: FrozenRegressor = written(&frozen, frozen.model.posterior.clone()).unwrap();
        assert_eq!(moments(again.predict(test.rows(), &run).unwrap()), expected);
    }
}

/// The moments at the root of the first tree.
fn target_moments(one: &MondrianRegressor) -> TargetMoments {
    with_storage!(one.forest.flushed_alone(), storage => {
        TargetMoments::at_root(&storage.trees[0], &storage.trees[0].statistics)
    })
}

/// A forest of one tree of 200 rows.
fn small() -> (FrozenClassifier, ClassifierFreezer) {
    let (mut stream, run) = (Stream::new(3, 7), Run::default());
    let data = rows(&mut stream, 200);
    let (labels, n_rows_of, codes) = classes(&data);
    let settings = MondrianSettings {
        n_estimators: 1,
        predictive: Predictive::Realised,
        min_samples_split: 5,
        ..MondrianSettings::default()
    };
    let extent = RowExtent::of(&domain(), data.rows()).unwrap();
    let plan = CellPlan::new(settings, domain(), extent).unwrap();
    let new = || ClassifierFreezer::new(plan.clone(), DISCOUNT, &labels, &n_rows_of).unwrap();
    let mut freezer = new();
    freezer.grow(freezer.next_cells(1).unwrap(), data.rows(), &codes, &run).unwrap();
    (freezer.finish(&run).unwrap(), new())
}

#[test]
fn what_is_no_record_is_refused() {
    let (forest, _) = small();
    let record = forest.record(0);
    let is_refused = |change: &dyn Fn(&mut TreeRecord)| {
        let mut changed = record.clone();
        change(&mut changed);
        let posterior = forest.model.posterior.clone();
        let (settings, domain) = (forest.settings().clone(), forest.domain().clone());
        let made =
            FrozenForest::of_records(settings, domain, forest.extent, posterior, &[changed], &Run::default());
        matches!(made, Err(Error::InvalidSetting { .. }))
    };
    assert!(!is_refused(&|_| {}));
    assert!(is_refused(&|record| record.steps.clear()));
    assert!(is_refused(&|record| record.steps.push(Step::Leaf)));
    assert!(is_refused(&|record| record.steps.truncate(record.steps.len() - 1)));
    assert!(is_refused(&|record| record.n_rows.truncate(record.n_rows.len() - 1)));
    assert!(is_refused(&|record| record.n_rows.push(1)));
    assert!(is_refused(&|record| record.n_rows[0] += 1));
    assert!(is_refused(&|record| record.n_rows[0] = 0));
    assert!(is_refused(&|record| record.words.truncate(record.words.len() - 1)));
    assert!(is_refused(&|record| record.words.push(0)));
    assert!(is_refused(&|record| record.words.fill(u64::MAX)));
    assert!(is_refused(&|record| record.words.fill(1 << 32)));
    assert!(is_refused(&|record| record.bounds.extend([0.0].into_iter())));
    assert!(is_refused(&|record| {
        let mut bounds: Vec<f64> = record.bounds.iter().collect();
        bounds[0] = f64::NAN;
        record.bounds = RowValues::F64(bounds);
    }));
    assert!(Step::of_byte(5).is_err());
}

#[test]
fn groups_come_in_the_order_of_the_plan() {
    let (_, freezer) = small();
    let is_wrong = |result: Result<CellPlan>| matches!(result, Err(Error::InvalidSetting { .. }));
    assert!(is_wrong(freezer.next_cells(0)) && is_wrong(freezer.next_cells(2)));
    let plan = freezer.next_cells(1).unwrap();
    let (mut stream, run) = (Stream::new(3, 7), Run::default());
    let data = rows(&mut stream, 200);
    let (labels, n_rows_of, codes) = classes(&data);
    let mut freezer = freezer;
    let others = plan.owned(vec![1]).unwrap();
    assert!(matches!(freezer.grow(others, data.rows(), &codes, &run), Err(Error::InvalidSetting { .. })));
    assert!(matches!(freezer.finish(&run), Err(Error::Length { .. })));
    let averaged = MondrianSettings { n_estimators: 1, ..MondrianSettings::default() };
    let plan = CellPlan::new(averaged, domain(), plan.extent()).unwrap();
    assert!(ClassifierFreezer::new(plan.clone(), DISCOUNT, &labels, &n_rows_of).is_err());
    let new = |labels: &[Label], n_rows_of: &[u64]| {
        let realised = MondrianSettings { predictive: Predictive::Realised, ..plan.settings().clone() };
        let plan = CellPlan::new(realised, domain(), plan.extent()).unwrap();
        ClassifierFreezer::new(plan, DISCOUNT, labels, n_rows_of)
    };
    assert!(new(&labels, &n_rows_of).is_ok());
    assert!(new(&labels, &n_rows_of[1..]).is_err() && new(&[], &[]).is_err());
    assert!(new(&[Label::Int(1), Label::Int(0)], &[1, 1]).is_err());
}
