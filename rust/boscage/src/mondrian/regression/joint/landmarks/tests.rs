use super::*;
use crate::data::Rows;
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::regression::joint::common_order;
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::regression::settings::RegressionSettings;
use crate::random::keyed::Stream;

/// The model of rows, the places of their landmarks, and the values of the rows in their common order.
fn model(x: &[f64]) -> (LandmarkModel, Vec<f64>) {
    let run = Run::default();
    let settings = MondrianSettings { n_estimators: 1, seed: 2, ..MondrianSettings::default() };
    let domain = Domain::new(vec![0.0], vec![1.0], None).unwrap();
    let batch = Batch { rows: Rows::from_f64(x, 1).unwrap(), ids: None, weights: None };
    let targets: Vec<f64> = (0..x.len()).map(|i| i as f64).collect();
    let regression = RegressionSettings::default();
    let forest = MondrianRegressor::fit(settings, regression, domain, batch, &targets, &run).unwrap();
    let forest = &forest.forest;
    with_storage!(forest.flushed(&run).unwrap(), storage => {
        let order = common_order(forest, storage);
        let limit = Limit::new(forest, storage, &order);
        let values = order.iter().map(|&row| forest.row_values(row)[0]).collect();
        (LandmarkModel::new(limit, forest, storage, &order), values)
    })
}

fn landmarks(x: &[f64]) -> Vec<f64> {
    let (model, values) = model(x);
    model.landmarks.places().into_iter().map(|place| values[place]).collect()
}

/// Without a landmark the next row takes its place, unless another row has its coordinates, as in a forest of the other rows.
#[test]
fn landmarks_without_a_row_are_those_of_the_others() {
    let mut stream = Stream::new(6, 0);
    let mut x: Vec<f64> = (0..LANDMARKS + 200).map(|_| f64::from(stream.unit() as f32)).collect();
    x[7] = x[90];
    let (all, values) = model(&x);
    assert_eq!(all.landmarks.places().len(), LANDMARKS);
    let mut n_changed = 0;
    for row in [7, 90, 100, 101, 300, 500, 900, 1200, 1500, 1700] {
        let others: Vec<f64> = (0..x.len()).filter(|&other| other != row).map(|other| x[other]).collect();
        let place = values.iter().position(|&value| value == x[row]).unwrap();
        let without = all.without(place);
        n_changed += usize::from(without.is_some());
        let found = without.as_ref().unwrap_or(&all).landmarks.places();
        let found: Vec<f64> = found.into_iter().map(|place| values[place]).collect();
        assert_eq!(found, landmarks(&others), "row {row}");
        assert!(row != 7 || without.is_none());
    }
    assert!((3..10).contains(&n_changed));
}
