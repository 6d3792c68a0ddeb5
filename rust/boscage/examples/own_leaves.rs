//! A user's leaf model: exponential waiting times, whose rate is a product over trees.
//!
//! `cargo run --release --example own_leaves`

use std::ops::{Add, Sub};

use boscage::{BartSettings, Kernel, Kernels, LeafModel, Result, Rows, Run, Stream, SumOfTrees};

/// `t ~ Exponential(exp(f(x)))`. If the other trees sum to `r`, a leaf with value `mu` has the likelihood
/// `prod exp(mu + r - t exp(mu + r))`. The sufficient statistics are the number of rows and the sum of
/// `t exp(r)`.
#[derive(Clone)]
struct WaitingTimes {
    times: Vec<f64>,
    /// The prior is `exp(mu) ~ Gamma(shape, shape)`. An integer shape makes draws simple.
    shape: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Waited {
    rows: f64,
    time: f64,
}

impl Add for Waited {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, time: self.time + other.time }
    }
}

impl Sub for Waited {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { rows: self.rows - other.rows, time: (self.time - other.time).max(0.0) }
    }
}

impl LeafModel for WaitingTimes {
    type Stats = Waited;

    fn n_rows(&self) -> usize {
        self.times.len()
    }

    fn stats(&self, row: usize, others: f64) -> Waited {
        Waited { rows: 1.0, time: self.times[row] * others.exp() }
    }

    /// `shape^shape / Gamma(shape) Gamma(shape + rows) / (shape + time)^(shape + rows)`.
    fn log_marginal(&self, stats: Waited) -> f64 {
        let shape = f64::from(self.shape);
        let rising: f64 = (0..stats.rows as u32).map(|i| (shape + f64::from(i)).ln()).sum();
        shape * shape.ln() + rising - (shape + stats.rows) * (shape + stats.time).ln()
    }

    fn draw(&self, stats: Waited, stream: &mut Stream) -> f64 {
        let shape = f64::from(self.shape);
        stream.log_gamma(shape + stats.rows) - (shape + stats.time).ln()
    }

    fn log_likelihood(&self, sums: &[f64]) -> f64 {
        sums.iter().zip(&self.times).map(|(f, t)| f - t * f.exp()).sum()
    }
}

fn main() -> Result<()> {
    let mut stream = Stream::new(1, 0);
    let x: Vec<f64> = (0..600).map(|_| stream.unit()).collect();
    let rate = |x: &[f64]| if x[0] > 0.5 && x[1] > 0.5 { 5.0 } else { 1.0 };
    let times = x.chunks(2).map(|x| -(1.0 - stream.unit()).ln() / rate(x)).collect();

    // Any kernels can be used: here local steps, and occasionally a whole tree by Particle Gibbs.
    let kernels = Kernels::new(&[(Kernel::Local, 0.9), (Kernel::ParticleGibbs, 0.1)]);
    let settings = BartSettings { n_trees: 20, n_chains: 2, kernels, ..BartSettings::default() };
    let model = WaitingTimes { times, shape: 20 };
    let rows = Rows::from_f64(&x, 2)?;
    let posterior = SumOfTrees::fit(&settings, rows, &model, None, &Run::default())?;

    let at = [0.2, 0.8, 0.8, 0.8];
    let f = posterior.predict(Rows::from_f64(&at, 2)?, &Run::default())?;
    for (x, f) in at.chunks(2).zip(f) {
        println!("rate at {x:?}: about {:.1}, in truth {:.1}", f.exp(), rate(x));
    }
    Ok(())
}
