//! The means at the nodes of a tree, given several columns of the rows' weights.

use crate::mondrian::joint::System;

/// Columns whose means are found at the same time.
const LANES: usize = 8;

/// Weights, from which the means in each tree follow.
pub(crate) struct ColumnMeans<'a> {
    system: &'a System<'a>,
    n_columns: usize,
    /// Some columns side by side, divided by the number of trees, and the number of the first.
    columns: Vec<(usize, Vec<[f64; LANES]>)>,
}

impl<'a> ColumnMeans<'a> {
    /// `weights` are `n_rows x n_columns`.
    pub(crate) fn new(system: &'a System<'a>, weights: &[f64], n_columns: usize) -> Self {
        let share = 1.0 / system.n_trees() as f64;
        let some = |row: &[f64]| {
            let mut lanes = [0.0; LANES];
            lanes.iter_mut().zip(row).for_each(|(lane, weight)| *lane = share * weight);
            lanes
        };
        let columns = (0..n_columns).step_by(LANES);
        let columns = columns
            .map(|first| (first, weights.chunks_exact(n_columns).map(|row| some(&row[first..])).collect()));
        Self { system, n_columns, columns: columns.collect() }
    }

    /// A tree's share of the means at its nodes: `n_columns` numbers for each index of the arena.
    pub(crate) fn of_tree(&self, tree: usize) -> Vec<f32> {
        let System { trees, spans, .. } = self.system;
        let mut means = Vec::new();
        for (first, weights) in &self.columns {
            let found = trees.passes[tree].means(&spans[tree], weights);
            means.resize(found.len() * self.n_columns, 0.0);
            for (all, found) in means.chunks_exact_mut(self.n_columns).zip(&found) {
                all[*first..].iter_mut().zip(found).for_each(|(mean, &found)| *mean = found as f32);
            }
        }
        means
    }
}
