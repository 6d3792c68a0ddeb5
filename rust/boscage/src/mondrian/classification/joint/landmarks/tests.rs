use super::*;
use crate::data::{Label, Rows};
use crate::mondrian::classification::calibration;
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::classification::joint::limit::LimitEquations;
use crate::mondrian::classification::settings::ClassificationSettings;
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::process::domain::Domain;
use crate::random::keyed::Stream;

const N: usize = 120;
const NOISE: f64 = 0.03;

/// Rows of four classes, some at the same place.
fn rows() -> (Vec<f64>, Vec<u32>, Vec<f64>) {
    let mut stream = Stream::new(8, 0);
    let mut x: Vec<f64> = (0..2 * N).map(|_| stream.unit()).collect();
    x.copy_within(0..20, 40);
    let code = |x: &[f64]| {
        let is_above = x[1] + 0.2 * stream.unit() > 0.6;
        (2.0 * x[0]) as u32 + 2 * u32::from(is_above)
    };
    let codes = x.chunks(2).map(code).collect();
    let weights = (0..N).map(|_| 0.5 + stream.below(4) as f64).collect();
    (x, codes, weights)
}

fn forest(x: &[f64], codes: &[u32], weights: Option<&[f64]>) -> MondrianClassifier {
    let labels: Vec<Label> = (0..4).map(Label::Int).collect();
    let settings = MondrianSettings { n_estimators: 1, seed: 3, ..MondrianSettings::default() };
    let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], None).unwrap();
    let batch = Batch { rows: Rows::from_f64(x, 2).unwrap(), ids: None, weights };
    let classification = ClassificationSettings::default();
    MondrianClassifier::fit(settings, classification, domain, batch, (codes, &labels), &[], &Run::default())
        .unwrap()
}

fn equations(model: &MondrianClassifier, most: usize) -> LandmarkEquations {
    let (forest, classes, run) = (&model.forest, &model.posterior.classes, Run::default());
    with_storage!(forest.flushed(&run).unwrap(), storage => {
        LandmarkEquations::new(forest, storage, classes, (most, NOISE), &run).unwrap()
    })
}

fn values(
    model: &MondrianClassifier,
    function: &LimitFunction<ExponentialCovariance>,
    x: &[f64],
) -> Vec<f64> {
    function.at_rows(&model.forest.domain, Rows::from_f64(x, 2).unwrap(), &Run::default()).unwrap()
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} and {expected}, {what}");
    }
}

/// Where every place is a landmark, they know all that the rows know.
#[test]
fn with_few_places_it_is_the_function_of_all_rows() {
    let ((x, codes, weights), run) = (rows(), Run::default());
    for weights in [None, Some(&weights[..])] {
        let model = forest(&x, &codes, weights);
        let (forest, classes) = (&model.forest, &model.posterior.classes);
        let of_rows = with_storage!(forest.flushed(&run).unwrap(), storage => {
            LimitEquations::new(forest, storage, classes, Some(NOISE), &run).unwrap()
        });
        let found = equations(&model, N);
        let ids: Vec<RowId> = (0..N as RowId).collect();
        let expected = of_rows.left_out(&ids, &run).unwrap();
        assert!(expected.iter().any(|value| value.abs() > 0.3));
        assert_close(&found.nearly_left_out(&ids, &run).unwrap(), &expected, "left out");
        assert_close(&found.left_out(&ids, &run).unwrap(), &expected, "left out with its landmark");
        let at: Vec<f64> = x.iter().map(|x| 1.3 * x - 0.1).collect();
        let function = found.function(&run).unwrap();
        assert_close(&values(&model, &function, &at), &values(&model, &of_rows.function(), &at), "function");
    }
}

/// Also a row that is a landmark, and one with copies.
#[test]
fn leaving_a_row_out_is_forgetting_it() {
    const MOST: usize = 40;
    let ((x, codes, weights), run) = (rows(), Run::default());
    for weights in [None, Some(&weights[..])] {
        let model = forest(&x, &codes, weights);
        let all = equations(&model, MOST);
        let ids: Vec<RowId> = (0..N as RowId).collect();
        let (exact, nearly) = (all.left_out(&ids, &run).unwrap(), all.nearly_left_out(&ids, &run).unwrap());
        let n_landmarks = (0..N).filter(|i| exact[4 * i..4 * i + 4] != nearly[4 * i..4 * i + 4]).count();
        assert!((20..=MOST).contains(&n_landmarks), "{n_landmarks}");
        for row in 0..N {
            let mut others = model.clone();
            others.forget(&[row as u64]).unwrap();
            let function = equations(&others, MOST).function(&run).unwrap();
            let found = values(&others, &function, &x[2 * row..2 * row + 2]);
            assert_close(&found, &exact[4 * row..4 * row + 3], &format!("row {row}"));
        }
    }
}

/// Where labels are clear there is no trial; where they are drawn anew, left-out rows choose the noise, and the same solution follows
/// from it.
#[test]
fn noisy_labels_are_worth_a_trial() {
    let ((x, codes, _), run) = (rows(), Run::default());
    let mut stream = Stream::new(2, 0);
    let wrong: Vec<u32> =
        codes.iter().map(|&code| if stream.below(2) == 0 { stream.below(4) as u32 } else { code }).collect();
    let on_trial = |codes: &[u32]| {
        let model = forest(&x, codes, None);
        let (forest, classes) = (&model.forest, &model.posterior.classes);
        with_storage!(forest.flushed(&run).unwrap(), storage => {
            let found = LandmarkEquations::on_trial(forest, storage, classes, 40, &run).unwrap();
            found.map(|found| {
                let known = (40, found.noise);
                (LandmarkEquations::new(forest, storage, classes, known, &run).unwrap(), found)
            })
        })
    };
    let clear: Vec<u32> = x.chunks(2).map(|x| (2.0 * x[0]) as u32).collect();
    assert!(on_trial(&clear).is_none());
    let (again, found) = on_trial(&wrong).unwrap();
    assert!(found.noise >= LEAST_NOISE);
    assert_eq!(again.solution.solved, found.solution.solved);
}

/// Rows that calibrate are no more often landmarks than others.
#[test]
fn landmarks_are_in_another_order_than_calibrating_rows() {
    let (x, codes, _) = rows();
    let model = forest(&x, &codes, None);
    let all = equations(&model, 40);
    let judges = calibration::choose(&model.forest, &model.posterior.classes, 40).rows;
    let order = &all.problem.codes.order;
    let landmarks: Vec<RowId> = all.chosen.places().into_iter().map(|place| order[place]).collect();
    let n_both = judges.iter().filter(|row| landmarks.contains(row)).count();
    assert!((5..25).contains(&n_both), "{n_both} of {}", judges.len());
}
