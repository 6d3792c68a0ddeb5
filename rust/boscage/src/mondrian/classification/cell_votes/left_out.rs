//! Left-out predictions by a forest whose cells are shared out.
//!
//! A row that is left out changes a tree along its own path, and the owner of its cell has this whole path. Where the row is
//! alone in its cell, the other side of the split above takes the split's place, and the row goes on to another cell, whose owner
//! needs the row's features, class and weight. So all owners are sent the rows that are left out, which are few.
//!
//! Without a row, a node above cells may have one class, so that it is a leaf. What the leaf holds follows from its number of rows
//! if all weights are 1. Otherwise its rows' weights are needed, so that such a node must be a cell itself
//! ([`CellPlan::condensed`](crate::CellPlan::condensed)).

use crate::control::Run;
use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::cells::share::{CellShare, each_list};
use crate::mondrian::classification::calibration::{Calibrating, CalibrationLink, ChosenRows, Functions};
use crate::mondrian::classification::cell_votes::{add_list, append_list};
use crate::mondrian::classification::classifier::Classification;
use crate::mondrian::classification::kneser_ney::{Buffers, Predictor};
use crate::mondrian::classification::left_out::{self, LeftOutVisitor, WithoutRow};
use crate::mondrian::classification::predictive::{Averages, Gathered};
use crate::mondrian::classification::settings::{Calibration, check_discount};
use crate::mondrian::classification::trend::TrendFit;
use crate::mondrian::forest::rows_by_contents::Copies;
use crate::mondrian::prediction::visitor::Visitor;

impl CellShare<Classification> {
    /// What this owner's trees add to the votes for some of the rows that are here, by their places, each left out of every
    /// tree, and for several discounts. Which trees are this owner's follows from the plan and from where rows are alone.
    ///
    /// # Errors
    /// Trees that are not joined; a discount out of range; a row that is not here; an interrupt.
    pub fn left_out_votes(&self, rows: &[u32], discounts: &[f64], run: &Run<'_>) -> Result<Vec<u64>> {
        discounts.iter().try_for_each(|&discount| check_discount(discount))?;
        let owners = self.owners_without(rows)?;
        let total_weight = self.plan.domain().total_weight();
        let gammas: Vec<f64> = discounts.iter().map(|discount| discount * total_weight).collect();
        let alone = Run { n_threads: 1, control: run.control };
        let parts = run.map_ranges(rows.len(), run.len_by_thread(rows.len()), |range| {
            let first = range.start;
            let gather = GatherLists { owners: &owners, owner: self.owner, first, gammas: &gammas };
            let chunks = left_out::predict(&self.model.forest, &rows[range], &alone, &gather)?;
            Ok(chunks.into_iter().flat_map(|chunk| chunk.of_rows).flatten().collect::<Vec<u64>>())
        })?;
        Ok(parts.concat())
    }

    /// What calibrates, by discount, given the rows that do, the copies of each among all rows of all owners, the rows that a
    /// trend is fitted to, and the [`left_out_votes`](Self::left_out_votes) of all owners for the rows that calibrate.
    ///
    /// # Errors
    /// Trees that are not joined; a row that is not here; votes for other rows.
    pub fn links_of_votes(
        &self,
        (chosen, of_trend): (&[(u32, Copies)], &[u32]),
        discounts: &[f64],
        votes: &[&[u64]],
    ) -> Result<Vec<CalibrationLink>> {
        let (forest, posterior) = (&self.model.forest, &self.model.posterior);
        if posterior.settings.calibration == Calibration::None {
            return Ok(vec![CalibrationLink::NONE; discounts.len()]);
        }
        let rows: Vec<RowId> = chosen.iter().map(|&(row, _)| row).collect();
        let sums = [self.left_out_sums(&rows, discounts, votes)?];
        let gather = self.model.gather(discounts);
        let classes = &posterior.classes;
        let of_discount = |discount: usize| {
            let (all, mut known) = (gather.averages(&sums, discount, None), Averages::default());
            for (average, &row) in all.rows().zip(&rows) {
                if !classes.goes_with_its_row(forest.targets[row as usize]) {
                    known.proba.extend(average.proba);
                    known.of_all.push(average.of_all);
                }
            }
            known
        };
        let averages: Vec<Averages> = (0..discounts.len()).map(of_discount).collect();
        let chosen = ChosenRows::of(chosen.iter().copied(), forest, classes);
        let (calibration, trend) = (posterior.settings.calibration, self.trend(of_trend));
        let calibrating = Calibrating { calibration, chosen: &chosen, joint: None, trend };
        Ok(calibrating.links(forest, classes, &averages))
    }

    /// The probabilities of the classes of left-out rows, `n_discounts x n_rows x n_classes`, given the rows that a trend is
    /// fitted to, [`left_out_votes`](Self::left_out_votes) of all owners, and what calibrates each discount.
    ///
    /// # Errors
    /// As [`links_of_votes`](Self::links_of_votes).
    pub fn proba_of_left_out_votes(
        &self,
        (rows, of_trend): (&[u32], &[u32]),
        discounts: &[f64],
        votes: &[&[u64]],
        links: &[CalibrationLink],
    ) -> Result<Vec<f64>> {
        let sums = self.left_out_sums(rows, discounts, votes)?;
        let has_trend = links.iter().any(|link| link.trend.is_some());
        let trend = if has_trend { self.trend(of_trend) } else { None };
        let trend = trend.map(|trend| trend.left_out(&self.model.forest, rows));
        let functions = Functions { joint: None, trend };
        let gather = self.model.gather(discounts);
        Ok(self.model.proba_left_out((&gather, &[sums]), rows, links, &functions))
    }

    /// The trend, if there is to be one, given the rows that it is fitted to.
    fn trend(&self, rows: &[RowId]) -> Option<&TrendFit> {
        let (forest, posterior) = (&self.model.forest, &self.model.posterior);
        // Whether they have copies does not matter.
        let all = rows.iter().map(|&row| (row, Copies::None));
        posterior.trend_of(forest, || ChosenRows::of(all.clone(), forest, &posterior.classes))
    }

    /// The sums of the votes of all owners.
    fn left_out_sums(&self, rows: &[RowId], discounts: &[f64], votes: &[&[u64]]) -> Result<Gathered> {
        let owners = self.owners_without(rows)?;
        let mut sums = Visitor::start(&self.model.gather(discounts), rows.len());
        each_list(&owners, votes, |row, words| {
            (0..discounts.len()).try_for_each(|discount| add_list(words, sums.of_mut(row, discount)))
        })?;
        Ok(sums)
    }
}

/// Gathers lists of amounts for the rows that are the owner's, by tree.
struct GatherLists<'a> {
    owners: &'a [Vec<u32>],
    owner: u32,
    /// The number of the first of the rows among those that `owners` are about.
    first: usize,
    gammas: &'a [f64],
}

/// Lists of amounts by row, tree and discount.
struct Lists {
    of_rows: Vec<Vec<u64>>,
    /// One a discount.
    buffers: Vec<Buffers>,
}

impl LeftOutVisitor for GatherLists<'_> {
    type Chunk = Lists;

    fn start(&self, n_rows: usize) -> Lists {
        let buffers = self.gammas.iter().map(|_| Buffers::default()).collect();
        Lists { of_rows: vec![Vec::new(); n_rows], buffers }
    }

    fn visits(&self, number: usize, row: usize) -> bool {
        self.owners[number][self.first + row] == self.owner
    }

    fn visit<S: Scalar>(&self, number: usize, without: WithoutRow<'_, S>, row: usize, chunk: &mut Lists) {
        for (&gamma, buffers) in self.gammas.iter().zip(&mut chunk.buffers) {
            let predictor = Predictor { number, counts: without, gamma };
            append_list(predictor, without.stops(), buffers, &mut chunk.of_rows[row]);
        }
    }
}
