//! The function's values for rows of the forest, each by the model without it.

use crate::control::Run;
use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::joint::by_trees::{LANES, Systems};
use crate::mondrian::classification::left_out::{self, LeftOutVisitor, WithoutRow};
use crate::mondrian::forest::Forest;
use crate::mondrian::joint::{LeftOut, MergedNode, PathShare};
use crate::mondrian::prediction::clock::Clock;

impl Systems {
    /// The values for rows of the forest, `n_rows x n_classes`, given the solutions of all rows.
    pub(super) fn left_out(
        &self,
        forest: &Forest<ClassCounts>,
        rows: &[RowId],
        (solutions, tolerance): (&[f64], f64),
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        let n_classes = self.codes.n_classes();
        let system = self.system(run)?;
        let mut values = Vec::with_capacity(rows.len() * n_classes);
        for rows in rows.chunks(LANES) {
            let (problems, shares) = self.problems(forest, rows, run)?;
            let [of_values, rest] = system.weights_of_values(&problems, &shares, tolerance)?;
            for (lane, &row) in rows.iter().enumerate() {
                let mut by_class = vec![0.0; n_classes];
                for (place, of_value) in of_values.iter().enumerate() {
                    by_class[self.codes.class(place)] += of_value[lane];
                }
                let shares = self.codes.shares_without(self.codes.place(row));
                let total: f64 = by_class.iter().sum();
                let start = values.len();
                // Codes of the other rows, among which the class has another share.
                values.extend(by_class.iter().zip(shares).map(|(sum, share)| sum - share * total));
                for (rest, columns) in rest.iter().zip(solutions.chunks_exact(n_classes - 1)) {
                    for (k, solution) in columns.iter().enumerate() {
                        values[start + k] += rest[lane] * solution;
                        values[start + n_classes - 1] -= rest[lane] * solution;
                    }
                }
            }
        }
        Ok(values)
    }

    /// The problems of a few rows, and by tree what these rows share with others.
    fn problems(
        &self,
        forest: &Forest<ClassCounts>,
        rows: &[RowId],
        run: &Run<'_>,
    ) -> Result<(LeftOut<LANES>, Vec<Vec<PathShare>>)> {
        let n_trees = forest.settings.n_estimators;
        let place = |lane: usize| rows.get(lane).map(|&row| self.codes.place(row));
        let mut problems = LeftOut { places: std::array::from_fn(place), merged: vec![Vec::new(); n_trees] };
        let mut shares = vec![Vec::new(); n_trees];
        let visitor = Paths { clock: self.clock };
        let mut first = 0;
        for chunk in left_out::predict(forest, rows, run, &visitor)? {
            for (tree, share) in chunk.shares {
                shares[tree].push(PathShare { lane: first + share.lane, ..share });
            }
            for (tree, merged) in chunk.merged {
                problems.merged[tree].push(MergedNode { lane: first + merged.lane, ..merged });
            }
            first += chunk.n_rows;
        }
        Ok((problems, shares))
    }
}

/// Collects what rows share with others in trees without them.
struct Paths {
    clock: Clock,
}

/// By tree, with lanes that count the chunk's rows.
struct Chunk {
    n_rows: usize,
    shares: Vec<(usize, PathShare)>,
    merged: Vec<(usize, MergedNode)>,
}

impl LeftOutVisitor for Paths {
    type Chunk = Chunk;

    fn start(&self, n_rows: usize) -> Chunk {
        Chunk { n_rows, shares: Vec::new(), merged: Vec::new() }
    }

    fn visit<S: Scalar>(&self, tree_index: usize, without: WithoutRow<'_, S>, row: usize, chunk: &mut Chunk) {
        let stops = without.stops();
        for (stop, part) in stops.iter().zip(self.clock.parts(stops)) {
            let share = part * self.clock.span(stop);
            chunk.shares.push((tree_index, PathShare { lane: row, node: stop.node.index(), share }));
        }
        if let Some(depth) = without.merged() {
            let merged = MergedNode {
                lane: row,
                node: stops[depth].node.index(),
                parent: depth.checked_sub(1).map(|above| stops[above].node.index()),
                span: self.clock.span(&stops[depth]),
                below: without.below(depth),
            };
            chunk.merged.push((tree_index, merged));
        }
    }
}
