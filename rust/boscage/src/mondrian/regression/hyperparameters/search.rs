//! Searches for the best hyperparameters: along directions on a grid, and for the best factor on all variances.

use crate::error::Result;
use crate::math::golden_section::golden_section;

/// Powers of two (at most) from the start of a search to where it ends.
pub(super) const FARTHEST: i32 = 8;
/// Steps are taken as long as the mean log density grows by this.
pub(super) const WORTHWHILE: f64 = 1e-3;

/// The best point that is found by going in every direction as far as it leads, until none does; its score,
/// and what belongs to it. No point is evaluated twice.
pub(super) fn climb<const N: usize, T>(
    start: [i32; N],
    directions: &[[i32; N]],
    mut evaluate: impl FnMut([i32; N]) -> Result<(f64, T)>,
) -> Result<(f64, T)> {
    let mut at = start;
    let mut best = evaluate(at)?;
    let mut seen = vec![at];
    let (mut vain, mut next) = (0, 0);
    while vain < directions.len() {
        let direction = directions[next % directions.len()];
        next += 1;
        vain += 1;
        loop {
            let there = std::array::from_fn(|i| at[i] + direction[i]);
            // What was seen before was no better than the best of that time, nor than that of now.
            if there.iter().zip(&start).any(|(there, start)| (there - start).abs() > FARTHEST)
                || seen.contains(&there)
            {
                break;
            }
            seen.push(there);
            let found = evaluate(there)?;
            // Never a density that is no number.
            let better = found.0 > best.0 + WORTHWHILE;
            if !better {
                break;
            }
            (at, best, vain) = (there, found, 1);
        }
    }
    Ok(best)
}

/// The logarithms of factors on variances that are tried, and how close they come to the best one.
const RANGE: f64 = 10.0;
const NEAR: f64 = 0.005;

/// The factor on all variances, of `most` at most, under which the rows are most likely, and their mean log density.
pub(super) fn best_scale(rows: &[Vec<(f64, f64)>], weights: &[f64], most: f64) -> (f64, f64) {
    let loss = |log_scale: f64| -score(rows, weights, log_scale.exp());
    let high = most.ln().min(2.0);
    let (log_scale, least) = golden_section(loss, (high - RANGE, high), NEAR);
    (-least, log_scale.exp())
}

/// Mean log density of the rows, whose weights have the mean 1, with a factor on all variances, but for a constant. `rows` are
/// squares of distances over variances, with the signs of the distances, and the variances' logarithms, by row and tree.
pub(super) fn score(rows: &[Vec<(f64, f64)>], weights: &[f64], scale: f64) -> f64 {
    let of_row = |row: &Vec<(f64, f64)>| {
        let each = row.iter().map(|(square, log_variance)| -0.5 * (square.abs() / scale + log_variance));
        let most = each.clone().fold(f64::NEG_INFINITY, f64::max);
        most + (each.map(|term| (term - most).exp()).sum::<f64>() / row.len() as f64).ln()
    };
    let all = rows.iter().zip(weights).map(|(row, weight)| weight * of_row(row)).sum::<f64>();
    all / rows.len() as f64 - 0.5 * scale.ln()
}
