//! The predictive distribution of a regressor, before and after saving and loading.
//!
//! `cargo run --example uncertainty`

use boscage::{
    AnyModel, Batch, Domain, MondrianRegressor, MondrianSettings, RegressionSettings, Result, Rows, Run,
};

fn main() -> Result<()> {
    let x: Vec<f64> = (0..400).map(|i| f64::from(i) / 400.0).collect();
    // A wave, with a deterministic jitter in place of noise.
    let y: Vec<f64> =
        x.iter().enumerate().map(|(i, x)| (6.0 * x).sin() + 0.1 * (i as f64 * 7.3).sin()).collect();
    let rows = Rows::from_f64(&x, 1)?;
    let run = Run::default();
    let settings = MondrianSettings { n_estimators: 50, min_samples_split: 5, ..MondrianSettings::default() };
    let forest = MondrianRegressor::fit(
        settings,
        RegressionSettings::default(),
        Domain::of_rows(rows, None)?,
        Batch { rows, ids: None, weights: None },
        &y,
        &run,
    )?;

    let path = std::env::temp_dir().join("boscage-uncertainty.boscage");
    forest.save(&path)?;
    let AnyModel::MondrianRegressor(forest) = boscage::load(&path, &run)? else {
        panic!("the file holds a regressor");
    };

    // Far from the data the prediction returns to the prior.
    let at = [0.25, 0.5, 1.2, 3.0, 30.0];
    let mixtures = forest.predict_dist(Rows::from_f64(&at, 1)?, &run)?;
    for (x, mixture) in at.iter().zip(mixtures.rows()) {
        let (low, high) = mixture.interval(0.9)?;
        println!("x = {x:5.2}: {:6.3}, with 90 % from {low:6.3} to {high:6.3}", mixture.mean());
    }
    println!("hyperparameters: {:?}", forest.hyperparameters(&Run::default())?);
    Ok(())
}
