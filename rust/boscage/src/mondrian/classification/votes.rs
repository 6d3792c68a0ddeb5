//! Predictions by a forest whose trees are shared out: sums over trees that go on from one share to the next.
//!
//! The trees of a share ([`MondrianSettings::share`](crate::MondrianSettings)) add their votes to those of the trees before
//! them, row by row in the order of the trees. So the sums, and all that follows from them, are those of the whole forest to
//! the last bit. What the whole forest fits to its sums, which is the calibration and may be the discount, is fitted to the
//! sums of rows that are left out.
//!
//! Votes are numbers: for every row and discount those for each class that is live, the weight of the base measure, and that of
//! what trees say of all their rows.

use crate::control::Run;
use crate::data::{RowId, Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::classification::calibration::{Calibrating, CalibrationLink, Functions};
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::classification::kneser_ney::OfAllRows;
use crate::mondrian::classification::left_out::{self, LeftOutVisitor, WithoutRow};
use crate::mondrian::classification::predictive::{Averages, Gather, Gathered};
use crate::mondrian::classification::settings::{
    Calibration, ClassPosterior, ClassificationSettings, check_discount,
};
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::tree::Tree;

/// Numbers beside those of the classes.
const OF_ALL: usize = 2;
/// Rows that are taken through all trees of a share at a time.
const CHUNK: usize = 1024;

impl ClassificationSettings {
    /// Of so many trees, the number of those, the first ones, that must be together.
    #[must_use]
    pub fn n_trees_to_choose(&self, n_estimators: usize) -> usize {
        match self.posterior {
            ClassPosterior::KneserNey => 1,
            ClassPosterior::Joint => n_estimators,
        }
    }
}

impl MondrianClassifier {
    /// Adds the votes of these trees for the classes of rows to those of the trees before, if there are any.
    ///
    /// # Errors
    /// The joint posterior, which is no sum of votes; votes for other rows; a number of features other than in `fit`; an
    /// interrupt.
    pub fn add_votes(&self, rows: Rows<'_>, before: Option<&[f64]>, run: &Run<'_>) -> Result<Vec<f64>> {
        let gather = self.gather(&[self.discount()]);
        let columns = self.columns();
        let n = rows.n_rows();
        let before = self.checked(before, n, 1)?;
        self.forest.flushed(run)?;
        let alone = Run { n_threads: 1, control: run.control };
        let parts = run.map_ranges(n, CHUNK, |range| {
            let continued = Continued::new(&gather, &columns, before, range.clone(), 1);
            let chunks = walk::predict(&self.forest, rows.slice(range.start, range.end), &alone, &continued)?;
            Ok(continued.votes(&chunks))
        })?;
        Ok(parts.concat())
    }

    /// The probabilities of the classes of rows, `n_rows x n_classes`, given the votes of all trees and what calibrates them.
    ///
    /// # Errors
    /// Votes for other rows; a trend of other features or classes; a number of features other than in `fit`; an interrupt.
    pub fn proba_of_votes(
        &self,
        rows: Rows<'_>,
        votes: &[f64],
        link: &CalibrationLink,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        let trend = link.trend_values(self.forest.domain_to_predict(), rows, self.columns().len(), run)?;
        let gather = self.gather(&[self.discount()]);
        let sums = self.sums(&gather, votes, rows.n_rows(), 1)?;
        let averages = gather.averages(&[sums], 0, None);
        Ok(link.of_rows(&averages, &Functions { joint: None, trend }, |_| None))
    }

    /// The ids of the rows that calibrate, each predicted without itself.
    #[must_use]
    pub fn calibrating_ids(&self) -> Vec<u64> {
        if self.calibration() == Calibration::None {
            return Vec::new();
        }
        let chosen = self.posterior.calibrating(&self.forest);
        chosen.rows.into_iter().map(|row| self.forest.row_index.id(row)).collect()
    }

    /// As [`add_votes`](Self::add_votes), for rows of the forest, each left out of every tree, and for several discounts.
    ///
    /// # Errors
    /// As there; [`Error::UnknownId`].
    pub fn add_left_out_votes(
        &self,
        ids: &[u64],
        discounts: &[f64],
        before: Option<&[f64]>,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        discounts.iter().try_for_each(|&discount| check_discount(discount))?;
        let rows = self.forest.row_index.find(ids)?;
        let gather = self.gather(discounts);
        let columns = self.columns();
        let before = self.checked(before, rows.len(), discounts.len())?;
        self.forest.flushed(run)?;
        let alone = Run { n_threads: 1, control: run.control };
        let parts = run.map_ranges(rows.len(), run.len_by_thread(rows.len()), |range| {
            let continued = Continued::new(&gather, &columns, before, range.clone(), discounts.len());
            Ok(continued.votes(&left_out::predict(&self.forest, &rows[range], &alone, &continued)?))
        })?;
        Ok(parts.concat())
    }

    /// What calibrates, by discount, given the votes of all trees for the rows of [`calibrating_ids`](Self::calibrating_ids).
    ///
    /// # Errors
    /// A number of votes that is none of these rows.
    pub fn links_of_votes(&self, discounts: &[f64], votes: &[f64]) -> Result<Vec<CalibrationLink>> {
        if self.calibration() == Calibration::None {
            return Ok(vec![CalibrationLink::NONE; discounts.len()]);
        }
        let classes = &self.posterior.classes;
        let chosen = self.posterior.calibrating(&self.forest);
        let gather = self.gather(discounts);
        let sums = [self.sums(&gather, votes, chosen.rows.len(), discounts.len())?];
        let averages: Vec<Averages> =
            (0..discounts.len()).map(|discount| gather.averages(&sums, discount, None)).collect();
        let (calibration, trend) = (self.calibration(), self.posterior.trend(&self.forest));
        let calibrating = Calibrating { calibration, chosen: &chosen, joint: None, trend };
        Ok(calibrating.links(&self.forest, classes, &averages))
    }

    /// The probabilities of rows that are left out, `n_discounts x n_rows x n_classes`, given the sums over trees, and what
    /// calibrates each discount.
    pub(super) fn proba_left_out(
        &self,
        (gather, chunks): (&Gather<'_>, &[Gathered]),
        rows: &[RowId],
        links: &[CalibrationLink],
        functions: &Functions,
    ) -> Vec<f64> {
        let targets: Vec<Class> = rows.iter().map(|&row| self.forest.targets[row as usize]).collect();
        let unknown = |row: usize| self.posterior.classes.unknown_without(targets[row]);
        let of_discount = |(discount, link): (usize, &CalibrationLink)| {
            let averages = gather.averages(chunks, discount, Some(&targets));
            link.of_rows(&averages, functions, unknown)
        };
        links.iter().enumerate().flat_map(of_discount).collect()
    }

    /// The probabilities of the classes of rows that are left out, `n_discounts x n_rows x n_classes`, given the votes of all
    /// trees and what calibrates each discount.
    ///
    /// # Errors
    /// As [`add_left_out_votes`](Self::add_left_out_votes).
    pub fn proba_of_left_out_votes(
        &self,
        ids: &[u64],
        votes: &[f64],
        links: &[CalibrationLink],
    ) -> Result<Vec<f64>> {
        let rows = self.forest.row_index.find(ids)?;
        let trend = self.posterior.trend_left_out(&self.forest, &rows, links);
        let functions = Functions { joint: None, trend };
        // The discounts' values play no part here.
        let gather = self.gather(&vec![self.discount(); links.len()]);
        let sums = self.sums(&gather, votes, rows.len(), links.len())?;
        Ok(self.proba_left_out((&gather, &[sums]), &rows, links, &functions))
    }

    /// The numbers of the live classes.
    fn columns(&self) -> Vec<usize> {
        self.posterior.classes.live().into_iter().map(|class| class as usize).collect()
    }

    fn checked<'a>(
        &self,
        before: Option<&'a [f64]>,
        n_rows: usize,
        n_discounts: usize,
    ) -> Result<Option<&'a [f64]>> {
        if self.posterior() == ClassPosterior::Joint {
            self.forest.settings.check_whole()?;
        }
        if let Some(votes) = before {
            check_votes(votes, n_rows * n_discounts * (self.columns().len() + OF_ALL))?;
        }
        Ok(before)
    }

    /// The sums over all trees, given their votes.
    fn sums(
        &self,
        gather: &Gather<'_>,
        votes: &[f64],
        n_rows: usize,
        n_discounts: usize,
    ) -> Result<Gathered> {
        let columns = self.columns();
        check_votes(votes, n_rows * n_discounts * (columns.len() + OF_ALL))?;
        Ok(Continued::new(gather, &columns, Some(votes), 0..n_rows, n_discounts).gathered(n_rows))
    }
}

fn check_votes(votes: &[f64], expected: usize) -> Result<()> {
    if votes.len() == expected {
        return Ok(());
    }
    let why = "one for each row, discount and class, and two for what has nothing to do with the row";
    Err(Error::Length { what: "votes", found: votes.len(), expected, why })
}

/// Gathers votes, beginning with those of the trees before.
struct Continued<'a> {
    gather: &'a Gather<'a>,
    columns: &'a [usize],
    before: Option<&'a [f64]>,
    n_discounts: usize,
}

impl<'a> Continued<'a> {
    /// For a range of the rows that `before` is about.
    fn new(
        gather: &'a Gather<'a>,
        columns: &'a [usize],
        before: Option<&'a [f64]>,
        rows: std::ops::Range<usize>,
        n_discounts: usize,
    ) -> Self {
        let width = n_discounts * (columns.len() + OF_ALL);
        let before = before.map(|votes| &votes[rows.start * width..rows.end * width]);
        Self { gather, columns, before, n_discounts }
    }

    fn gathered(&self, n_rows: usize) -> Gathered {
        let mut gathered = Visitor::start(self.gather, n_rows);
        for (i, votes) in
            self.before.unwrap_or_default().chunks_exact(self.columns.len() + OF_ALL).enumerate()
        {
            let (row, discount) = (i / self.n_discounts, i % self.n_discounts);
            let (proba, of_all) = gathered.of_mut(row, discount);
            for (&column, vote) in self.columns.iter().zip(votes) {
                proba[column] = *vote;
            }
            *of_all = OfAllRows { base: votes[self.columns.len()], all: votes[self.columns.len() + 1] };
        }
        gathered
    }

    fn votes(&self, chunks: &[Gathered]) -> Vec<f64> {
        let mut votes = Vec::new();
        for chunk in chunks {
            for i in 0..chunk.n_rows * self.n_discounts {
                let (proba, of_all) = chunk.of(i / self.n_discounts, i % self.n_discounts);
                votes.extend(self.columns.iter().map(|&column| proba[column]));
                votes.extend([of_all.base, of_all.all]);
            }
        }
        votes
    }
}

impl Visitor<ClassCounts> for Continued<'_> {
    type Chunk = Gathered;

    fn start(&self, n_rows: usize) -> Gathered {
        self.gathered(n_rows)
    }

    fn visit<S: Scalar>(
        &self,
        number: usize,
        tree: &Tree<S, ClassCounts>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Gathered,
    ) {
        Visitor::visit(self.gather, number, tree, row, stops, chunk);
    }
}

impl LeftOutVisitor for Continued<'_> {
    type Chunk = Gathered;

    fn start(&self, n_rows: usize) -> Gathered {
        self.gathered(n_rows)
    }

    fn visit<S: Scalar>(&self, number: usize, without: WithoutRow<'_, S>, row: usize, chunk: &mut Gathered) {
        LeftOutVisitor::visit(self.gather, number, without, row, chunk);
    }
}
