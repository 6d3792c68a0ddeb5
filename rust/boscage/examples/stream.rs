//! A classifier that learns from a stream and removes a row, and then equals a fit without this row.
//!
//! `cargo run --example stream`

use boscage::{
    Batch, ClassificationSettings, Domain, Label, MondrianClassifier, MondrianSettings, Result, Rows, Run,
};

/// Points of a spiral with two arms: features in row-major order, and the arm of each point.
fn spiral(n: u32) -> (Vec<f64>, Vec<u32>) {
    (0..n)
        .map(|i| {
            // Points do not come in order along the arms.
            let (arm, along) = (i % 2, f64::from(i * 233 % n) / f64::from(n));
            let angle = 9.0 * along + std::f64::consts::PI * f64::from(arm);
            ([along * angle.cos(), along * angle.sin()], arm)
        })
        .fold((Vec::new(), Vec::new()), |(mut x, mut y), (point, arm)| {
            x.extend(point);
            y.push(arm);
            (x, y)
        })
}

fn main() -> Result<()> {
    let (x, y) = spiral(600);
    let labels = [Label::Text("first arm".into()), Label::Text("second arm".into())];
    let run = Run::default();
    let settings = MondrianSettings { n_estimators: 50, seed: 1, ..MondrianSettings::default() };
    // Ranges are given instead of taken from the rows, so that removed rows leave no trace in them.
    let domain = Domain::new(vec![-1.0; 2], vec![1.0; 2], None)?;

    let rows = |from: usize, to: usize| Rows::from_f64(&x[2 * from..2 * to], 2);
    let batch = |from, to| Ok(Batch { rows: rows(from, to)?, ids: None, weights: None });
    let mut forest = MondrianClassifier::fit(
        settings.clone(),
        ClassificationSettings::default(),
        domain.clone(),
        batch(0, 100)?,
        (&y[..100], &labels),
        &[],
        &run,
    )?;
    for start in (100..600).step_by(50) {
        let proba = forest.predict_proba(rows(start, start + 50)?, &run)?;
        let right = proba.chunks(2).zip(&y[start..]).filter(|(p, y)| u32::from(p[1] > p[0]) == **y).count();
        println!("{} rows seen, {right} of the next 50 right", forest.n_rows());
        forest.partial_fit(batch(start, start + 50)?, (&y[start..start + 50], &labels))?;
    }

    let last: Vec<u64> = (300..600).collect();
    forest.forget(&last)?;
    let never = MondrianClassifier::fit(
        settings,
        ClassificationSettings::default(),
        domain,
        batch(0, 300)?,
        (&y[..300], &labels),
        &[],
        &run,
    )?;
    println!("digest after forgetting   {}", forest.digest());
    println!("digest of one that never saw them {}", never.digest());
    assert_eq!(forest.digest(), never.digest());
    Ok(())
}
