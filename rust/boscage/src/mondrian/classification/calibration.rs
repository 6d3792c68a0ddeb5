//! Calibration: the average over trees, raised to a power and normalised.
//!
//! A tree that predicts well is sure of itself, but different trees put their mass on different classes where data are few,
//! so that their average is far less sure than its accuracy would allow (or, with much noise, a little too sure). One number
//! repairs most of that: `p_k^a / sum_l p_l^a`. The power `a` minimises the log loss of rows of the forest, each predicted by
//! the forest without it. The thesis' predictive has `a = 1`. With the joint posterior a second number is fitted beside it: the
//! weight of what all trees explain together.
//!
//! *What stays.* The order of classes. The prior: the base measure `H` of the hierarchy gives all classes the same
//! probability, and so does every power of it, so that far from all rows the prediction is still the prior. And that a
//! forest is a function of its set of rows: the rows that are left out are chosen by their contents, and summed in an order
//! which these determine.
//!
//! *How many rows.* The expected log loss with a power fitted to `n` rows exceeds the least one by about `1 / (2 n)`: for
//! [`ROWS`] rows, by two thousandths. Where few rows are predicted badly, half as many rows would often miss the power by a
//! third. To leave out a row costs somewhat more than to predict one, so that the work does not grow with the forest, but a
//! stream which predicts 500 rows and then learns them works about half as much again.
//!
//! *Copies.* A row with a copy in the forest is predicted by that copy, which says nothing about new rows if rows were
//! duplicated on purpose, and everything if all rows have few different values. So the power is fitted to all chosen rows
//! and to those without copies, and the one nearer to 1 is used; it is 1 if one is above 1 and the other below. Of two weights
//! the smaller one is used.

use crate::control::Run;
use crate::data::RowId;
use crate::error::Result;
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::left_out;
use crate::mondrian::classification::predictive::Gather;
use crate::mondrian::forest::Forest;

/// Rows that are left out (at most).
pub(crate) const ROWS: usize = 300;
/// Bounds of the power.
const LEAST: f64 = 1.0 / 16.0;
const MOST: f64 = 16.0;
/// A prior on the power, `(a exp(1 - a))^PRIOR`, which is greatest at 1: about as strong as this many rows. Without it, rows
/// that are all predicted well would ask for the greatest power.
const PRIOR: f64 = 1.0;
/// The bound of the joint function's weight, and the mean of its exponential prior, which counts as much as the power's.
const MOST_WEIGHT: f64 = 64.0;
const USUAL_WEIGHT: f64 = 10.0;
/// Smaller probabilities of a row's own class count as this one, so that no row outweighs all others.
const SMALLEST: f64 = 1e-18;

/// How the average over trees becomes a prediction: `p_k^power exp(weight f_k)`, normalised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link {
    pub(super) power: f64,
    /// The weight of what all trees explain together; 0 without it.
    pub(super) weight: f64,
}

impl Link {
    /// The average itself.
    pub(super) const NONE: Self = Self { power: 1.0, weight: 0.0 };

    /// Calibrates a row's probabilities, given the joint function's values.
    pub(super) fn apply(self, proba: &mut [f64], values: Option<&[f64]>) {
        let Some(values) = values.filter(|_| self.weight > 0.0) else {
            return raise(proba, self.power);
        };
        let mut most = f64::NEG_INFINITY;
        for (p, value) in proba.iter_mut().zip(values) {
            *p = self.power * p.ln() + self.weight * value;
            most = most.max(*p);
        }
        let mut sum = 0.0;
        for p in &mut *proba {
            *p = (*p - most).exp();
            sum += *p;
        }
        for p in proba {
            *p /= sum;
        }
    }
}

/// Raises a row's probabilities to a power, and normalises them.
fn raise(proba: &mut [f64], power: f64) {
    let most = proba.iter().copied().fold(0.0, f64::max);
    if power == 1.0 || most <= 0.0 {
        return;
    }
    let mut sum = 0.0;
    for p in &mut *proba {
        *p = (power * (*p / most).ln()).exp();
        sum += *p;
    }
    for p in proba {
        *p /= sum;
    }
}

/// The link for every one of some discounts; `joint` are the joint function's values for the rows of [`choose`], each
/// without the row, if there is one.
///
/// # Errors
/// An interrupt.
pub(super) fn fit(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    discounts: &[f64],
    joint: Option<&[f64]>,
    run: &Run<'_>,
) -> Result<Vec<Link>> {
    let live = classes.live();
    let (rows, are_single) = choose(forest, classes);
    if live.len() < 2 || rows.is_empty() {
        return Ok(vec![Link::NONE; discounts.len()]);
    }
    let gather = Gather::new(classes, forest.settings.n_estimators, forest.domain.total_weight(), discounts);
    let chunks = left_out::predict(forest, &rows, run, &gather)?;
    let targets: Vec<Class> = rows.iter().map(|&row| forest.targets[row as usize]).collect();
    let columns: Vec<usize> = targets
        .iter()
        .map(|&class| live.iter().position(|&other| other == class).expect("classes with rows are live"))
        .collect();
    let link = |discount: usize| {
        let mut proba = Vec::with_capacity(rows.len() * live.len());
        for chunk in &chunks {
            // The class of a chosen row has other rows, or is declared.
            gather.finish(chunk, discount, None, &mut proba);
        }
        let each: Vec<Odds> = proba
            .chunks_exact(live.len())
            .enumerate()
            .map(|(i, proba)| {
                let values = joint.map(|joint| &joint[i * live.len()..(i + 1) * live.len()]);
                odds(proba, values, columns[i])
            })
            .collect();
        let single: Vec<&Odds> =
            each.iter().zip(&are_single).filter(|(_, is_single)| **is_single).map(|(row, _)| row).collect();
        let all: Vec<&Odds> = each.iter().collect();
        let weight = match joint {
            Some(_) => best_weight(&all).min(best_weight(&single)),
            None => 0.0,
        };
        let (all, single) = (best_power(&all, weight), best_power(&single, weight));
        Link { power: 1.0f64.clamp(all.min(single), all.max(single)), weight }
    };
    Ok((0..discounts.len()).map(link).collect())
}

/// For every other class of a row that is not impossible: the logarithm of its probability over that of the row's own, and
/// what the joint function has more.
type Odds = Vec<(f64, f64)>;

fn odds(proba: &[f64], values: Option<&[f64]>, own: usize) -> Odds {
    let log_own = libm::log(proba[own].max(SMALLEST));
    let others = proba.iter().enumerate().filter(|&(k, &p)| k != own && p > 0.0);
    let more = |k: usize| values.map_or(0.0, |values| values[k] - values[own]);
    others.map(|(k, &p)| (libm::log(p) - log_own, more(k))).collect()
}

/// Rows to be left out, and whether each is without a copy. The only row of a class that is not declared is not among them:
/// without it nobody knows of the class.
pub(super) fn choose(forest: &Forest<ClassCounts>, classes: &ClassTable) -> (Vec<RowId>, Vec<bool>) {
    let live = classes.live();
    let place = |row: RowId| {
        let class = forest.targets[row as usize];
        live.iter().position(|&other| other == class)
    };
    let is_known = |row: RowId| {
        let class = forest.targets[row as usize] as usize;
        classes.n_rows[class] > 1 || classes.declared[class]
    };
    let chosen = forest.rows_by_contents().first(ROWS, place);
    chosen.into_iter().filter(|&(row, _)| is_known(row)).unzip()
}

/// The power under which rows are most likely, given the weight.
///
/// The negative log likelihood `sum_i log(1 + sum_k exp(a z_ik + b f_ik))` is convex in `a` and `b`, and so is that of the
/// priors.
fn best_power(rows: &[&Odds], weight: f64) -> f64 {
    let derivatives = |power: f64| {
        let sums = slopes(rows, Link { power, weight });
        (sums.power, sums.power_twice)
    };
    // On a logarithmic scale, if a parabola leads beyond the bounds.
    minimise((LEAST, MOST), 1.0, |low, high| (low * high).sqrt(), derivatives)
}

/// The weight under which rows are most likely, each weight with its own best power.
fn best_weight(rows: &[&Odds]) -> f64 {
    let derivatives = |weight: f64| {
        let power = best_power(rows, weight);
        let sums = slopes(rows, Link { power, weight });
        // Where the power is at its bound it does not follow the weight.
        let follows =
            if power > LEAST && power < MOST { sums.both * sums.both / sums.power_twice } else { 0.0 };
        (sums.weight, sums.weight_twice - follows)
    };
    if derivatives(0.0).0 >= 0.0 {
        return 0.0;
    }
    minimise((0.0, MOST_WEIGHT), 1.0, |low, high| 0.5 * (low + high), derivatives)
}

/// The minimum of a convex function, given its first two derivatives: Newton's method, kept between bounds that close in.
fn minimise(
    (mut low, mut high): (f64, f64),
    start: f64,
    middle: impl Fn(f64, f64) -> f64,
    derivatives: impl Fn(f64) -> (f64, f64),
) -> f64 {
    /// Steps; far fewer are needed.
    const STEPS: usize = 60;
    const TOLERANCE: f64 = 1e-10;
    let mut at = start;
    for _ in 0..STEPS {
        let (slope, curvature) = derivatives(at);
        if slope == 0.0 {
            break;
        }
        if slope > 0.0 {
            high = at;
        } else {
            low = at;
        }
        let newton = at - slope / curvature;
        let next = if newton > low && newton < high { newton } else { middle(low, high) };
        let step = (next - at).abs();
        at = next;
        if step <= TOLERANCE * at {
            break;
        }
    }
    at
}

/// The derivatives of the negative log likelihood of rows and of the priors.
#[derive(Debug, Clone, Copy)]
struct Slopes {
    power: f64,
    weight: f64,
    power_twice: f64,
    both: f64,
    weight_twice: f64,
}

/// For each row these are means, variances and covariances under the probabilities of the link, the row's own class having
/// odds of 1.
fn slopes(rows: &[&Odds], link: Link) -> Slopes {
    let Link { power, weight } = link;
    let mut slopes = Slopes {
        power: PRIOR * (1.0 - 1.0 / power),
        weight: PRIOR / USUAL_WEIGHT,
        power_twice: PRIOR / (power * power),
        both: 0.0,
        weight_twice: 0.0,
    };
    for row in rows {
        let exponent = |(z, f): (f64, f64)| power * z + weight * f;
        let likelier = |best, &odds: &(f64, f64)| if exponent(odds) > exponent(best) { odds } else { best };
        let most = row.iter().fold((0.0, 0.0), likelier);
        let (mut sum, mut mean, mut mean_f) = (libm::exp(-exponent(most)), 0.0, 0.0);
        let (mut squares, mut products, mut squares_f) = (0.0, 0.0, 0.0);
        for &(z, f) in *row {
            let share = libm::exp(exponent((z - most.0, f - most.1)));
            sum += share;
            mean += share * z;
            mean_f += share * f;
            squares += share * z * z;
            products += share * z * f;
            squares_f += share * f * f;
        }
        (mean, mean_f) = (mean / sum, mean_f / sum);
        slopes.power += mean;
        slopes.weight += mean_f;
        slopes.power_twice += (squares / sum - mean * mean).max(0.0);
        slopes.both += products / sum - mean * mean_f;
        slopes.weight_twice += (squares_f / sum - mean_f * mean_f).max(0.0);
    }
    slopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::keyed::Stream;

    /// Rows of several classes whose probabilities are a power of those that drew them.
    fn rows(n: usize, n_classes: usize, power: f64) -> Vec<Vec<f64>> {
        let mut stream = Stream::new(5, n_classes);
        (0..n)
            .map(|_| {
                let logs: Vec<f64> = (0..n_classes).map(|_| 4.0 * stream.unit()).collect();
                let total: f64 = logs.iter().map(|log| log.exp()).sum();
                let mut rest = stream.unit() * total;
                let own = logs.iter().position(|log| {
                    rest -= log.exp();
                    rest < 0.0
                });
                let own = own.unwrap_or(n_classes - 1);
                let others = logs.iter().enumerate().filter(|(k, _)| *k != own);
                others.map(|(_, log)| (log - logs[own]) / power).collect()
            })
            .collect()
    }

    fn loss(rows: &[Vec<f64>], power: f64) -> f64 {
        let of_row = |row: &Vec<f64>| (1.0 + row.iter().map(|z| (power * z).exp()).sum::<f64>()).ln();
        rows.iter().map(of_row).sum::<f64>() + PRIOR * (power - 1.0 - power.ln())
    }

    fn best(rows: &[Vec<f64>]) -> f64 {
        let odds: Vec<Odds> = rows.iter().map(|row| row.iter().map(|&z| (z, 0.0)).collect()).collect();
        best_power(&odds.iter().collect::<Vec<_>>(), 0.0)
    }

    #[test]
    fn power_and_weight_are_found_together() {
        let mut stream = Stream::new(8, 0);
        for weight in [0.0, 2.0, 7.0] {
            // Rows whose own class is drawn from `p^1.5 exp(weight f)`.
            let odds: Vec<Odds> = (0..4000)
                .map(|_| {
                    let logs: Vec<f64> = (0..3).map(|_| 3.0 * stream.unit()).collect();
                    let values: Vec<f64> = (0..3).map(|_| stream.unit() - 0.5).collect();
                    let link = Link { power: 1.5, weight };
                    let total: f64 = logs.iter().map(|log| log.exp()).sum();
                    let mut proba: Vec<f64> = logs.iter().map(|log| log.exp() / total).collect();
                    let plain = proba.clone();
                    link.apply(&mut proba, Some(&values));
                    let mut rest = stream.unit();
                    let own = proba.iter().position(|p| {
                        rest -= p;
                        rest < 0.0
                    });
                    super::odds(&plain, Some(&values), own.unwrap_or(2))
                })
                .collect();
            let rows: Vec<&Odds> = odds.iter().collect();
            let found = best_weight(&rows);
            let power = best_power(&rows, found);
            assert!((found - weight).abs() < 0.3 && (power - 1.5).abs() < 0.15, "{found} and {power}");
            let loss = |power: f64, weight: f64| {
                let of_row = |row: &&Odds| {
                    (1.0 + row.iter().map(|(z, f)| (power * z + weight * f).exp()).sum::<f64>()).ln()
                };
                let priors = power - 1.0 - power.ln() + weight / USUAL_WEIGHT;
                rows.iter().map(of_row).sum::<f64>() + PRIOR * priors
            };
            let least = loss(power, found);
            for (da, db) in
                [(0.01, 0.0), (-0.01, 0.0), (0.0, 0.02), (0.0, -0.02), (0.01, -0.02), (-0.01, 0.02)]
            {
                if found + db >= 0.0 {
                    assert!(loss(power + da, found + db) > least, "{da} {db}");
                }
            }
        }
        // Rows that the function predicts well, and nothing else: the prior stops the weight.
        let odds = vec![vec![(0.0, -1.0); 2]; 50];
        let found = best_weight(&odds.iter().collect::<Vec<_>>());
        assert!((3.0..20.0).contains(&found), "{found}");
        assert_eq!(best_weight(&[]), 0.0);
    }

    #[test]
    fn the_power_is_found() {
        for (n_classes, power) in [(2, 3.0), (5, 1.0), (26, 0.4)] {
            let rows = rows(4000, n_classes, power);
            let found = best(&rows);
            assert!((found / power - 1.0).abs() < 0.1, "{found} and {power}");
            for other in (1..=160).map(|i| f64::from(i) / 10.0) {
                assert!(loss(&rows, other) >= loss(&rows, found) - 1e-9, "{other} and {found}");
            }
        }
    }

    #[test]
    fn the_power_stays_within_bounds() {
        assert_eq!(best(&[]), 1.0);
        // Without other classes, and with none that is likely.
        assert_eq!(best(&vec![Vec::new(); 9]), 1.0);
        let sure = best(&vec![vec![-20.0; 3]; 500]);
        assert!((1.0..1.2).contains(&sure), "{sure}");
        // Better with every power, and worse with every power.
        assert!((best(&vec![vec![-1e-3; 3]; 1_000_000]) / MOST - 1.0).abs() < 1e-6);
        assert!((best(&vec![vec![5.0; 3]; 500]) / LEAST - 1.0).abs() < 1e-6);
    }

    #[test]
    fn powers_keep_equal_and_vanishing_probabilities() {
        let mut proba = [0.25; 4];
        raise(&mut proba, 7.3);
        assert_eq!(proba, [0.25; 4]);
        let mut proba = [0.0, 0.4, 0.6];
        raise(&mut proba, 2.0);
        assert!(proba[0] == 0.0 && (proba[1] - 0.16 / 0.52).abs() < 1e-15);
        let mut proba = [0.0, 0.0];
        raise(&mut proba, 2.0);
        assert_eq!(proba, [0.0; 2]);
        let mut proba = [1e-300, 1.0];
        raise(&mut proba, 16.0);
        assert_eq!(proba, [0.0, 1.0]);
    }
}
