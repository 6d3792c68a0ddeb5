//! Bad input from outside returns an error, and never panics or aborts.

use boscage::{
    BartRegressor, BartSettings, Batch, ClassificationSettings, Domain, Error, Label, MondrianClassifier,
    MondrianRegressor, MondrianSettings, Posterior, RegressionSettings, Rows, Run, SparseRow, TargetKind,
    candidate_rates, extra_trees_rates, most_important_features,
};

const X: [f64; 8] = [0.1, 0.9, 0.3, 0.5, 0.6, 0.2, 0.8, 0.4];

fn rows() -> Rows<'static> {
    Rows::from_f64(&X, 1).unwrap()
}

fn batch() -> Batch<'static> {
    Batch { rows: rows(), ids: None, weights: None }
}

fn trees() -> MondrianSettings {
    MondrianSettings { n_estimators: 3, ..MondrianSettings::default() }
}

fn regressor(posterior: Posterior, targets: &[f64]) -> Result<MondrianRegressor, Error> {
    let settings = RegressionSettings { posterior, ..RegressionSettings::default() };
    let domain = Domain::of_rows(rows(), None)?;
    MondrianRegressor::fit(trees(), settings, domain, batch(), targets, &Run::default())
}

fn classifier(labels: &[Label]) -> Result<MondrianClassifier, Error> {
    let codes: Vec<u32> = (0..8).map(|i| i % labels.len() as u32).collect();
    let settings = ClassificationSettings::default();
    let domain = Domain::of_rows(rows(), None)?;
    MondrianClassifier::fit(trees(), settings, domain, batch(), (&codes, labels), &[], &Run::default())
}

/// Forests that have forgotten all rows explain their predictions by nothing: the base is the prior's.
#[test]
fn forests_without_rows_have_explanations() {
    for posterior in [Posterior::Exact, Posterior::Fast, Posterior::Joint] {
        let mut forest = regressor(posterior, &X).unwrap();
        forest.keep_newest(0);
        let run = Run::default();
        let found = forest.shapley(rows(), &run).unwrap();
        let (mean, _) = forest.predict(rows(), &run).unwrap();
        assert!(found.values.iter().all(|value| *value == 0.0));
        assert!((found.base[0] - mean[0]).abs() < 1e-12, "{:?} {mean:?}", found.base);
        assert_eq!(forest.leaf_trees(&run).unwrap().len(), 3);
    }
    let mut forest = classifier(&[Label::from("a"), Label::from("b")]).unwrap();
    forest.keep_newest(0);
    assert!(forest.shapley(rows(), &Run::default()).unwrap().values.iter().all(|value| *value == 0.0));
}

#[test]
fn draws_that_are_not_there_have_no_trees() {
    let settings = BartSettings { n_chains: 1, n_burn: 5, n_draws: 5, ..BartSettings::for_trees(2) };
    let bart = BartRegressor::fit(&settings, rows(), &X, &Run::default()).unwrap();
    assert_eq!(bart.trees(4).unwrap().len(), 2);
    for draw in [5, usize::MAX] {
        assert!(matches!(bart.trees(draw), Err(Error::InvalidSetting { .. })));
    }
}

#[test]
fn rates_are_learned_from_targets_that_can_be() {
    let run = Run::default();
    let rates = |y: &[f64], kind, n| extra_trees_rates(rows(), y, kind, n, 0, &run);
    for wrong in [f64::NAN, f64::INFINITY, -1.0, 0.5] {
        let y = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, wrong];
        assert!(rates(&y, TargetKind::Classification, 3).is_err(), "{wrong}");
        assert!(most_important_features(rows(), &y, TargetKind::Classification, 0, 0, &run).is_err());
        let domain = Domain::of_rows(rows(), None).unwrap();
        let is_number = wrong.is_finite();
        assert_eq!(rates(&y, TargetKind::Regression, 3).is_ok(), is_number, "{wrong}");
        assert_eq!(candidate_rates(rows(), &y, &domain, 3, 0, &run).is_ok(), is_number, "{wrong}");
    }
    // Only the order of classes matters, and not their numbers.
    let few = [0.0, 1.0, 0.0, 2.0, 0.0, 1.0, 2.0, 1.0];
    let many = few.map(|y| 1e12 * y);
    let kind = TargetKind::Classification;
    assert_eq!(rates(&few, kind, 3).unwrap(), rates(&many, kind, 3).unwrap());
    for n in [0, usize::MAX] {
        assert!(rates(&few, kind, n).is_err());
    }
}

#[test]
fn features_beyond_all_bounds_are_refused() {
    let sparse = [SparseRow::new(vec![(3, 1.0)]).unwrap()];
    assert!(Rows::from_sparse(&sparse, usize::MAX).is_err());
    let most = Rows::from_sparse(&sparse, u32::MAX as usize).unwrap();
    // A machine may have the room for them, or not.
    if let Err(error) =
        most_important_features(most, &[1.0], TargetKind::Regression, usize::MAX, 0, &Run::default())
    {
        assert!(matches!(error, Error::Memory { .. }));
    }
}

#[test]
fn squares_of_targets_do_not_vanish() {
    let tiny = X.map(|y| 1e-155 * y);
    assert!(regressor(Posterior::Exact, &tiny).is_err());
    assert!(regressor(Posterior::Exact, &[0.0; 8]).is_ok());
    let mut forest = regressor(Posterior::Exact, &X).unwrap();
    // Beside targets that are larger, they are as good as 0.
    forest.partial_fit(batch(), &tiny).unwrap();
    let mut zero = regressor(Posterior::Exact, &[0.0; 8]).unwrap();
    assert!(zero.partial_fit(batch(), &tiny).is_err());
    assert_eq!(zero.n_rows(), 8);
}

#[test]
fn labels_that_come_are_of_the_kind_that_there_is() {
    assert!(classifier(&[Label::from(f64::NAN), Label::from(1.0)]).is_err());
    let mut forest = classifier(&[Label::from("a"), Label::from("b")]).unwrap();
    let error = forest.partial_fit(batch(), (&[0; 8], &[Label::from(3)])).unwrap_err();
    assert_eq!(error.to_string(), "labels of classes must be of one kind, found \"a\" and 3");
    forest.partial_fit(batch(), (&[0; 8], &[Label::from("c")])).unwrap();
    assert_eq!(forest.classes(), ["a", "b", "c"].map(Label::from));
}
