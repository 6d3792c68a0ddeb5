//! Hyperparameters by maximum marginal likelihood, a by-product of belief propagation (section 6.3.2).

use std::borrow::Cow;

use crate::control::Run;
use crate::data::Scalar;
use crate::error::Result;
use crate::math::dual::{Dual, Real};
use crate::mondrian::regression::hierarchy::belief_propagation::{
    CoarsePrior, Hyperparameters, Messages, log_normal, root_term,
};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::trend::Observed;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// Trees that the marginal likelihood is maximised over: the hyperparameters are shared by all trees, and
/// the likelihoods of a few differ little.
pub(crate) const TREES: usize = 4;
const ITERATIONS: usize = 60;

/// The mean over trees of the log marginal likelihood of the targets (section 6.3.2, a by-product of section 6.3.1).
///
/// # Errors
/// An interrupt.
pub(crate) fn log_marginal_likelihood<S: Scalar>(
    trees: &[Tree<S, NodeMoments>],
    observed: Observed<'_>,
    lifetime: f64,
    hyper: &Hyperparameters,
    run: &Run<'_>,
) -> Result<f64> {
    let terms = run.map(trees.len(), |i| {
        let tree = &trees[i];
        let preorder = tree.arena.preorder();
        let Some(&root) = preorder.first() else {
            return Ok(0.0);
        };
        let (messages, log_likelihood) =
            Messages::with_likelihood(tree, &observed.moments(tree), &preorder, lifetime, hyper);
        let (variance, mean) = root_term(&messages, root);
        Ok(log_likelihood + log_normal(mean - hyper.mu, variance))
    })?;
    Ok(terms.iter().sum::<f64>() / trees.len() as f64)
}

/// Maximises the marginal likelihood over `gamma_1`, `gamma_2` and the noise (or what `fixed_noise`
/// leaves of them) from `start`, with `mu_H` at its optimum for the others.
///
/// # Errors
/// An interrupt.
pub(crate) fn maximise<S: Scalar>(
    trees: &[Tree<S, NodeMoments>],
    observed: Observed<'_>,
    lifetime: f64,
    start: Hyperparameters,
    fixed_noise: bool,
    run: &Run<'_>,
) -> Result<Hyperparameters> {
    let trees = &trees[..trees.len().min(TREES)];
    let objective = Objective {
        trees,
        moments: trees.iter().map(|tree| observed.moments(tree)).collect(),
        preorders: trees.iter().map(|tree| tree.arena.preorder()).collect(),
        lifetime,
        fixed_noise,
        run,
    };
    if objective.preorders.iter().any(Vec::is_empty) {
        return Ok(start);
    }
    let at = [start.gamma1.ln(), start.gamma2.ln(), start.noise_variance.ln()];
    // Scale-free: what a row gains in log likelihood.
    let weight = |tree: &Tree<S, NodeMoments>| {
        tree.arena.root().map_or(0.0, |root| tree.statistics.weight(root, tree.arena.n_rows(root)))
    };
    let weight: f64 = trees.iter().map(weight).sum();
    let (theta, mu) = ascend(at, 1e-10 * weight, |theta| objective.evaluate(theta))?;
    let gamma1 = theta[0].exp();
    // Targets that agree exactly where rows coincide would have it that there is no noise at all.
    let noise_variance = if fixed_noise { start.noise_variance } else { theta[2].exp().max(1e-9 * gamma1) };
    Ok(Hyperparameters {
        mu,
        gamma1,
        gamma2: theta[1].exp(),
        noise_variance,
        delay: 0.0,
        coarse: CoarsePrior::NONE,
    })
}

/// Value, gradient and the best `mu_H` at one point.
#[derive(Debug, Clone, Copy)]
struct Evaluation {
    value: f64,
    gradient: [f64; 3],
    mu: f64,
}

struct Objective<'a, S> {
    trees: &'a [Tree<S, NodeMoments>],
    moments: Vec<Cow<'a, NodeMoments>>,
    preorders: Vec<Vec<NodeId>>,
    lifetime: f64,
    fixed_noise: bool,
    run: &'a Run<'a>,
}

impl<S: Scalar> Objective<'_, S> {
    /// The mean log marginal likelihood at the logarithms of the hyperparameters.
    fn evaluate(&self, theta: [f64; 3]) -> Result<Evaluation> {
        let exp = |i: usize| {
            let value = theta[i].exp();
            Dual::<3>::variable(theta[i], i).chain(value, value)
        };
        let noise_variance = if self.fixed_noise { Dual::constant(theta[2].exp()) } else { exp(2) };
        let hyper = Hyperparameters {
            mu: 0.0,
            gamma1: exp(0),
            gamma2: exp(1),
            noise_variance,
            delay: 0.0,
            coarse: CoarsePrior::NONE,
        };
        let terms = self.run.map(self.trees.len(), |i| {
            let (tree, moments, preorder) = (&self.trees[i], &self.moments[i], &self.preorders[i]);
            let (messages, log_likelihood) =
                Messages::with_likelihood(tree, moments, preorder, self.lifetime, &hyper);
            let (variance, mean) = root_term(&messages, preorder[0]);
            Ok((log_likelihood, variance, mean))
        })?;
        // mu_H only enters through the roots: its optimum is their mean, weighted by precision. By the
        // envelope theorem it counts as a constant in the gradient.
        let weights = terms.iter().map(|(_, variance, _)| 1.0 / variance.value);
        let total: f64 = weights.clone().sum();
        let mu = weights.zip(&terms).map(|(w, (_, _, mean))| w / total * mean.value).sum();
        let sum = terms.iter().fold(Dual::constant(0.0), |sum, &(log_likelihood, variance, mean)| {
            sum + log_likelihood + log_normal(mean - Dual::constant(mu), variance)
        });
        let n = terms.len() as f64;
        Ok(Evaluation { value: sum.value / n, gradient: sum.slope.map(|s| s / n), mu })
    }
}

/// Climbs by the BFGS method with backtracking; the point reached and `mu_H` there.
fn ascend(
    start: [f64; 3],
    tolerance: f64,
    evaluate: impl Fn([f64; 3]) -> Result<Evaluation>,
) -> Result<([f64; 3], f64)> {
    /// A step in a logarithm is never longer than this.
    const LONGEST: f64 = 2.0;
    let dot = |a: &[f64; 3], b: &[f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut theta = start;
    let mut here = evaluate(theta)?;
    // The inverse of minus the Hessian, as far as the gradients seen tell.
    let identity = |scale: f64| -> [[f64; 3]; 3] {
        std::array::from_fn(|i| std::array::from_fn(|j| if i == j { scale } else { 0.0 }))
    };
    let norm = dot(&here.gradient, &here.gradient).sqrt();
    let mut inverse = identity(1.0 / norm.max(1e-300));
    for _ in 0..ITERATIONS {
        let mut step: [f64; 3] = std::array::from_fn(|i| dot(&inverse[i], &here.gradient));
        let longest = step.iter().fold(0.0f64, |m, s| m.max(s.abs()));
        if longest > LONGEST {
            step = step.map(|s| s * LONGEST / longest);
        }
        let slope = dot(&step, &here.gradient);
        let mut scale = 1.0;
        let next = loop {
            let trial = std::array::from_fn(|i| theta[i] + scale * step[i]);
            let next = evaluate(trial)?;
            if next.value >= here.value + 1e-4 * scale * slope {
                break Some((trial, next));
            }
            scale *= 0.4;
            if scale < 1e-6 {
                break None;
            }
        };
        let Some((trial, next)) = next else { break };
        let moved: [f64; 3] = std::array::from_fn(|i| trial[i] - theta[i]);
        let bent: [f64; 3] = std::array::from_fn(|i| here.gradient[i] - next.gradient[i]);
        let gained = next.value - here.value;
        theta = trial;
        here = next;
        if gained <= tolerance {
            break;
        }
        let curvature = dot(&moved, &bent);
        if curvature > 0.0 {
            inverse = update(&inverse, &moved, &bent, curvature);
        }
    }
    Ok((theta, here.mu))
}

/// The BFGS update of an inverse Hessian.
fn update(h: &[[f64; 3]; 3], s: &[f64; 3], y: &[f64; 3], sy: f64) -> [[f64; 3]; 3] {
    let hy: [f64; 3] = std::array::from_fn(|i| (0..3).map(|j| h[i][j] * y[j]).sum());
    let yhy: f64 = (0..3).map(|i| y[i] * hy[i]).sum();
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            h[i][j] + (1.0 + yhy / sy) * s[i] * s[j] / sy - (hy[i] * s[j] + s[i] * hy[j]) / sy
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::mondrian::forest::settings::MondrianSettings;
    use crate::mondrian::forest::storage::AnyStorage;
    use crate::mondrian::forest::{Batch, Forest};
    use crate::mondrian::process::domain::Domain;
    use crate::mondrian::regression::hyperparameters::heuristic::heuristic;
    use crate::random::keyed::Stream;

    fn forest() -> Forest<NodeMoments> {
        let mut stream = Stream::new(1, 0);
        // Thirds are not exact in f32, so that the forest keeps f64.
        let x: Vec<f64> = (0..120).map(|_| stream.unit() / 3.0).collect();
        let y: Vec<f64> = x.chunks(2).map(|x| (9.0 * x[0]).sin() + x[1] + 0.1 * stream.unit()).collect();
        let rows = Rows::from_f64(&x, 2).unwrap();
        let settings =
            MondrianSettings { n_estimators: 3, min_samples_split: 4, ..MondrianSettings::default() };
        let domain = Domain::of_rows(rows, None).unwrap();
        Forest::fit(settings, domain, Batch { rows, ids: None, weights: None }, &y, &Run::default()).unwrap()
    }

    #[test]
    fn gradient_is_that_of_finite_differences() {
        let forest = forest();
        let AnyStorage::F64(storage) = forest.flushed_alone() else { panic!("thirds are kept as f64") };
        let objective = Objective {
            trees: &storage.trees,
            moments: storage.trees.iter().map(|tree| Cow::Borrowed(&tree.statistics)).collect(),
            preorders: storage.trees.iter().map(|tree| tree.arena.preorder()).collect(),
            lifetime: f64::INFINITY,
            fixed_noise: false,
            run: &Run::default(),
        };
        let theta = [0.3, -1.2, -2.5];
        let here = objective.evaluate(theta).unwrap();
        for i in 0..3 {
            let step = 1e-5;
            let at = |sign: f64| {
                let mut moved = theta;
                moved[i] += sign * step;
                objective.evaluate(moved).unwrap().value
            };
            let slope = (at(1.0) - at(-1.0)) / (2.0 * step);
            assert!((slope - here.gradient[i]).abs() < 1e-6 * slope.abs().max(1.0), "variable {i}");
        }
    }

    #[test]
    fn maximum_has_no_gradient_and_no_better_neighbour() {
        let forest = forest();
        let AnyStorage::F64(storage) = forest.flushed_alone() else { panic!("thirds are kept as f64") };
        let start = heuristic(0.5, 0.4, 60.0, 2.0);
        let observed = Observed::targets_of(&forest);
        let best = maximise(&storage.trees, observed, f64::INFINITY, start, false, &Run::default()).unwrap();
        let value = |hyper: &Hyperparameters| {
            log_marginal_likelihood(&storage.trees, observed, f64::INFINITY, hyper, &Run::default()).unwrap()
        };
        let top = value(&best);
        assert!(top > value(&start));
        for factor in [0.9, 1.1] {
            for worse in [
                Hyperparameters { gamma1: best.gamma1 * factor, ..best },
                Hyperparameters { gamma2: best.gamma2 * factor, ..best },
                Hyperparameters { noise_variance: best.noise_variance * factor, ..best },
                Hyperparameters { mu: best.mu + factor - 1.0, ..best },
            ] {
                assert!(value(&worse) < top, "{worse:?} is better than {best:?}");
            }
        }
    }
}
