//! A posterior over decision trees: predictions of a leaf, their uncertainty, and the evidence for different
//! priors.
//!
//! `cargo run --release --example bayesian_trees`

use boscage::{BayesianTreeClassifier, ChipmanPrior, Label, Rows, Run, Sampler, SmcSettings};

/// Points on a grid. Those in a square have the second class, except every ninth point.
fn data() -> (Vec<f64>, Vec<u32>) {
    let (mut x, mut classes) = (Vec::new(), Vec::new());
    for i in 0..900_u32 {
        let point = [f64::from(i % 30) / 30.0, f64::from(i / 30) / 30.0];
        let inside = point.iter().all(|u| (0.3..0.7).contains(u));
        classes.push(u32::from(inside != i.is_multiple_of(9)));
        x.extend(point);
    }
    (x, classes)
}

fn main() -> boscage::Result<()> {
    let (x, classes) = data();
    let rows = Rows::from_f64(&x, 2)?;
    let labels = [Label::Text("outside".into()), Label::Text("inside".into())];
    let sampler = Sampler::Smc(SmcSettings { n_particles: 1000, n_islands: 10, ..SmcSettings::default() });
    let run = Run::default();
    for alpha_s in [0.1, 0.95] {
        let prior = ChipmanPrior::new(alpha_s, 0.5)?;
        let trees = BayesianTreeClassifier::fit(&prior, 1.0, &sampler, rows, (&classes, &labels), &run)?;
        let (log_evidence, error) = trees.report().log_evidence().expect("SMC estimates the evidence");
        println!("alpha_s = {alpha_s}: log evidence {log_evidence:.1} +- {error:.1}");
        let points = [0.5, 0.5, 0.05, 0.9, 0.3, 0.3];
        let proba = trees.predict_proba(Rows::from_f64(&points, 2)?, &run)?;
        for (point, proba) in points.chunks(2).zip(proba.chunks(2)) {
            // Labels are sorted, so "inside" comes first.
            println!("  P(inside | {point:?}) = {:.2}", proba[0]);
        }
    }
    Ok(())
}
