use super::*;
use crate::data::{Label, Rows};
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::classification::settings::ClassificationSettings;
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::process::domain::Domain;
use crate::random::keyed::Stream;

const N: usize = 600;
const D: usize = 4;
const N_CLASSES: u32 = 12;

fn forest() -> MondrianClassifier {
    forest_of(None)
}

/// A forest on classes that are the cells of a grid, some rows having wrong labels.
fn forest_of(weights: Option<&[f64]>) -> MondrianClassifier {
    let mut stream = Stream::new(5, 0);
    let x: Vec<f64> = (0..N * D).map(|_| stream.unit()).collect();
    let codes: Vec<u32> = x
        .chunks(D)
        .map(|x| {
            let wrong = stream.below(20) == 0;
            let cell = (3.0 * x[0]).floor() + 3.0 * (4.0 * (x[1] + 0.2 * x[2]) / 1.2).floor();
            if wrong { stream.below(N_CLASSES as usize) as u32 } else { cell as u32 }
        })
        .collect();
    let labels: Vec<Label> = (0..N_CLASSES).map(|i| Label::Int(i64::from(i))).collect();
    let rows = Rows::from_f64(&x, D).unwrap();
    let settings = MondrianSettings { n_estimators: 40, ..MondrianSettings::default() };
    let classification = ClassificationSettings::default();
    let domain = Domain::of_rows(rows, None).unwrap();
    let batch = Batch { rows, ids: None, weights };
    MondrianClassifier::fit(settings, classification, domain, batch, (&codes, &labels), &[], &Run::default())
        .unwrap()
}

/// The second-order error of rough solutions is small, also for rows whose removal makes leaves of splits.
#[test]
fn rough_solutions_give_values_that_calibrate() {
    let run = Run::default();
    let model = forest();
    let (forest, classes) = (&model.forest, &model.posterior.classes);
    let systems = with_storage!(forest.flushed(&run).unwrap(), storage => {
        Systems::new(forest, storage, classes, &run).unwrap()
    });
    let function = systems.function(TOLERANCE, &run).unwrap();
    let rows: Vec<RowId> = (0..N as RowId).step_by(5).collect();
    let values = |tolerance| systems.left_out(forest, &rows, (&function.solutions, tolerance), &run).unwrap();
    let exact = values(1e-9);
    let error = |values: &[f64]| values.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let (rough, fine) = (error(&values(ROUGH)), error(&values(FINE)));
    let most = exact.iter().copied().fold(0.0, f64::max);
    assert!(most > 0.5);
    assert!(rough < 1e-3 && fine < 2e-4, "{rough} and {fine}");
}

/// A block of columns has the solutions of its columns alone, also if one depends on others or is 0.
#[test]
fn columns_are_solved_together_as_alone() {
    const BOUND: f64 = 1e-5;
    let run = Run::default();
    let model = forest();
    let (forest, classes) = (&model.forest, &model.posterior.classes);
    let systems = with_storage!(forest.flushed(&run).unwrap(), storage => {
        Systems::new(forest, storage, classes, &run).unwrap()
    });
    let system = systems.system(&run).unwrap();
    let codes = systems.codes.values();
    for n_columns in [1, 2, 11, 16, 40] {
        let mut stream = Stream::new(7, n_columns);
        let of_row = |row: usize| {
            let mut values: Vec<f64> = (0..n_columns).map(|_| stream.unit() - 0.3).collect();
            let n_codes = n_columns.min(11);
            values[..n_codes].copy_from_slice(&codes[11 * row..][..n_codes]);
            if n_columns > 11 {
                values[12] = 0.0;
                values[13] = values[2] - 3.0 * values[14];
            }
            values
        };
        let values: Vec<f64> = (0..N).flat_map(of_row).collect();
        let found = system.weights_of_columns(values.clone(), n_columns, BOUND).unwrap();
        for column in 0..n_columns {
            let target: Vec<[f64; 1]> = (0..N).map(|row| [values[row * n_columns + column]]).collect();
            let shares = system.weights(&target, |_, _| false, 1e-10).unwrap().weights;
            let n_trees = system.n_trees() as f64;
            let difference = |(row, share): (usize, &[f64; 1])| {
                let difference = found[row * n_columns + column] - n_trees * share[0];
                difference * difference
            };
            let error: f64 = shares.iter().enumerate().map(difference).sum();
            let square: f64 = target.iter().map(|y| y[0] * y[0]).sum();
            // No eigenvalue of the system is less than the noise.
            assert!(error.sqrt() <= BOUND * square.sqrt() / NOISE, "{n_columns} {column}: {error}");
        }
    }
}

/// Single precision would lose what little heavy rows near each other leave unexplained.
#[test]
fn columns_of_heavy_rows_are_solved_as_well() {
    const BOUND: f64 = 1e-5;
    let run = Run::default();
    let mut stream = Stream::new(6, 0);
    for decades in [0.5, 4.0] {
        let weights: Vec<f64> = (0..N).map(|_| 10_f64.powf(decades * stream.unit())).collect();
        let model = forest_of(Some(&weights));
        let (forest, classes) = (&model.forest, &model.posterior.classes);
        let systems = with_storage!(forest.flushed(&run).unwrap(), storage => {
            Systems::new(forest, storage, classes, &run).unwrap()
        });
        let (system, n_columns) = (systems.system(&run).unwrap(), systems.codes.n_columns());
        let roots: Vec<f64> =
            systems.codes.row_weights.as_ref().unwrap().iter().map(|weight| weight.sqrt()).collect();
        let codes = systems.codes.values();
        let found = system.weights_of_columns(codes.clone(), n_columns, BOUND).unwrap();
        for column in 0..n_columns {
            let target: Vec<[f64; 1]> = (0..N).map(|row| [codes[row * n_columns + column]]).collect();
            let shares = system.weights(&target, |_, _| false, 1e-10).unwrap().weights;
            let n_trees = system.n_trees() as f64;
            let (mut error, mut square) = (0.0, 0.0);
            for (row, root) in roots.iter().enumerate() {
                let difference = (found[row * n_columns + column] - n_trees * shares[row][0]) / root;
                error += difference * difference;
                square += (root * target[row][0]).powi(2);
            }
            // No eigenvalue of the scaled system is less than the noise.
            let (error, most) = (error.sqrt(), BOUND * square.sqrt() / NOISE);
            assert!(error <= most, "{decades} {column}: {error} above {most}");
        }
    }
}
