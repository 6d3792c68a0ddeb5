//! The loops that take most of the time of fits and predictions. `cargo bench` runs all,
//! `cargo bench -- NAME` some.
//!
//! Only the public interface is used: a cut is drawn by fitting trees to two rows, and a sweep by fitting a
//! short chain.

use boscage::{
    BartRegressor, BartSettings, Batch, BayesianTreeClassifier, Calibration, ChipmanPrior,
    ClassificationSettings, Domain, Label, MondrianClassifier, MondrianRegressor, MondrianSettings,
    Predictive, RegressionSettings, Rows, Run, Sampler, SmcSettings, Stream,
};
use divan::{Bencher, counter::ItemsCount};

const N_FEATURES: usize = 10;

fn main() {
    divan::main();
}

/// Uniform rows, and targets that depend on the first two features.
struct Data {
    x: Vec<f64>,
    y: Vec<f64>,
    classes: Vec<u32>,
    labels: [Label; 2],
}

impl Data {
    fn new(n_rows: usize) -> Self {
        let mut stream = Stream::new(1, 0);
        let x: Vec<f64> = (0..n_rows * N_FEATURES).map(|_| stream.unit()).collect();
        let noisy = |row: &[f64]| (6.0 * row[0]).sin() + row[1] + 0.2 * stream.unit();
        let y: Vec<f64> = x.chunks(N_FEATURES).map(noisy).collect();
        let classes = y.iter().map(|&y| u32::from(y > 0.7)).collect();
        Self { x, y, classes, labels: [Label::Bool(false), Label::Bool(true)] }
    }

    fn rows(&self) -> Rows<'_> {
        Rows::from_f64(&self.x, N_FEATURES).expect("rows are finite")
    }

    fn classifier(&self, n_estimators: usize, predictive: Predictive) -> MondrianClassifier {
        let settings = MondrianSettings { n_estimators, predictive, ..MondrianSettings::default() };
        let domain =
            Domain::new(vec![0.0; N_FEATURES], vec![1.0; N_FEATURES], None).expect("ranges are valid");
        let batch = Batch { rows: self.rows(), ids: None, weights: None };
        let targets = (&self.classes[..], &self.labels[..]);
        // Loops over trees alone are measured.
        let classification =
            ClassificationSettings { calibration: Calibration::None, ..ClassificationSettings::default() };
        MondrianClassifier::fit(settings, classification, domain, batch, targets, &[], &Run::default())
            .expect("the data are valid")
    }

    fn regressor(&self, n_estimators: usize, predictive: Predictive) -> MondrianRegressor {
        let settings = MondrianSettings { n_estimators, predictive, ..MondrianSettings::default() };
        let domain =
            Domain::new(vec![0.0; N_FEATURES], vec![1.0; N_FEATURES], None).expect("ranges are valid");
        let batch = Batch { rows: self.rows(), ids: None, weights: None };
        MondrianRegressor::fit(
            settings,
            RegressionSettings::default(),
            domain,
            batch,
            &self.y,
            &Run::default(),
        )
        .expect("the data are valid")
    }
}

/// Trees with two rows: one cut each.
#[divan::bench]
fn draw_a_cut(bencher: Bencher) {
    const N_TREES: usize = 1000;
    let data = Data::new(2);
    bencher.counter(ItemsCount::new(N_TREES)).bench_local(|| data.classifier(N_TREES, Predictive::Averaged));
}

/// Inserts one row after the other into ten trees with 1,000 rows.
#[divan::bench]
fn insert_a_row(bencher: Bencher) {
    const N_NEW: usize = 100;
    let forest = Data::new(1000).classifier(10, Predictive::Averaged);
    let new = Data::new(1000 + N_NEW);
    let from = 1000 * N_FEATURES;
    bencher.counter(ItemsCount::new(N_NEW)).with_inputs(|| forest.clone()).bench_local_values(
        |mut forest| {
            for (row, class) in new.x[from..].chunks(N_FEATURES).zip(&new.classes[1000..]) {
                let rows = Rows::from_f64(row, N_FEATURES).expect("rows are finite");
                forest
                    .partial_fit(Batch { rows, ids: None, weights: None }, (&[*class], &new.labels))
                    .expect("the row is valid");
                forest.flush(&Run::default()).expect("the control never stops");
            }
            forest
        },
    );
}

#[divan::bench(args = [1_000, 10_000], sample_count = 20)]
fn fit_classifier(bencher: Bencher, n_rows: usize) {
    let data = Data::new(n_rows);
    bencher.counter(ItemsCount::new(n_rows)).bench_local(|| data.classifier(10, Predictive::Averaged));
}

#[divan::bench(args = [1_000], sample_count = 20)]
fn fit_regressor(bencher: Bencher, n_rows: usize) {
    let data = Data::new(n_rows);
    bencher.counter(ItemsCount::new(n_rows)).bench_local(|| data.regressor(10, Predictive::Averaged));
}

#[divan::bench(args = [Predictive::Averaged, Predictive::Realised])]
fn predict_classifier(bencher: Bencher, predictive: Predictive) {
    let forest = Data::new(1000).classifier(10, predictive);
    let at = Data::new(1500);
    let rows = Rows::from_f64(&at.x[1000 * N_FEATURES..], N_FEATURES).expect("rows are finite");
    bencher
        .counter(ItemsCount::new(rows.n_rows()))
        .bench_local(|| forest.predict_proba(rows, &Run::default()).expect("the control never stops"));
}

#[divan::bench(args = [Predictive::Averaged, Predictive::Realised])]
fn predict_regressor(bencher: Bencher, predictive: Predictive) {
    let forest = Data::new(1000).regressor(10, predictive);
    let at = Data::new(1500);
    let rows = Rows::from_f64(&at.x[1000 * N_FEATURES..], N_FEATURES).expect("rows are finite");
    bencher
        .counter(ItemsCount::new(rows.n_rows()))
        .bench_local(|| forest.predict(rows, &Run::default()).expect("the control never stops"));
}

/// Sweeps over 200 trees with the default kernels: the first sweeps of a chain, and the setup of a fit.
#[divan::bench(args = [1_000, 10_000], sample_count = 10)]
fn sweep_bart(bencher: Bencher, n_rows: usize) {
    const N_SWEEPS: usize = 20;
    let data = Data::new(n_rows);
    let settings = BartSettings { n_chains: 1, n_burn: N_SWEEPS - 1, n_draws: 1, ..BartSettings::default() };
    bencher.counter(ItemsCount::new(N_SWEEPS)).bench_local(|| {
        BartRegressor::fit(&settings, data.rows(), &data.y, &Run::default()).expect("the data are valid")
    });
}

/// All stages of one island with 100 particles.
#[divan::bench(sample_count = 20)]
fn run_smc(bencher: Bencher) {
    let data = Data::new(1000);
    let prior = ChipmanPrior::new(0.95, 0.5).expect("the prior is valid");
    let sampler = Sampler::Smc(SmcSettings { n_particles: 100, n_islands: 1, ..SmcSettings::default() });
    let targets = (&data.classes[..], &data.labels[..]);
    let fit = || {
        BayesianTreeClassifier::fit(&prior, 5.0, &sampler, data.rows(), targets, &Run::default())
            .expect("the data are valid")
    };
    let trees = fit();
    let boscage::Report::Smc(islands) = trees.report() else { panic!("SMC reports islands") };
    bencher.counter(ItemsCount::new(islands[0].stages.len())).bench_local(fit);
}
