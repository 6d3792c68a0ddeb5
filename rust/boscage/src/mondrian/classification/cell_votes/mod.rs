//! Predictions by a forest whose cells are shared out.
//!
//! The owner of a test row's cell in a tree has the row's whole path, and so the tree's votes. A tree's votes for a class are
//! several amounts, which are added one after the other to those of the trees before. Another order would round them
//! differently. So an owner gives a list of these amounts, and whoever has the lists of all owners adds them in the order of
//! the trees: the sums of one machine, to the last bit.
//!
//! Lists are words: for each row, and for each of its trees that is the owner's, the weights of the base measure and of what the tree
//! says of all its rows, the number of amounts, and of each amount the word and the bits of the classes that it is added to. Rows that are left out have the same
//! lists (`left_out`).

mod left_out;

use crate::control::Run;
use crate::data::{Label, Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::cells::plan::CellPlan;
use crate::mondrian::cells::share::{CellShare, each_list};
use crate::mondrian::cells::summary::{Words, wrong};
use crate::mondrian::classification::calibration::{CalibrationLink, Functions};
use crate::mondrian::classification::class_counts::{Class, ClassCounts, WORD};
use crate::mondrian::classification::class_table::{ClassTable, check_codes};
use crate::mondrian::classification::classifier::Classification;
use crate::mondrian::classification::kneser_ney::{Buffers, InTree, OfAllRows, PathCounts, Predictor, Votes};
use crate::mondrian::classification::settings::{ClassPosterior, ClassificationSettings};
use crate::mondrian::forest::Batch;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::tree::Tree;

/// The cells of one owner of a classifier's cells.
///
/// ```
/// use boscage::{Batch, CellPlan, ClassificationSettings, ClassifierCells, Calibration, Domain, Label};
/// use boscage::{MondrianSettings, RowExtent, Rows, Run};
///
/// let x: Vec<f64> = (0..100).map(|i| f64::from(i) / 99.0).collect();
/// let codes: Vec<u32> = (0..100).map(|i| u32::from(i % 7 < 3)).collect();
/// let (rows, run) = (Rows::from_f64(&x, 1)?, Run::default());
/// let targets: Vec<f64> = codes.iter().map(|&code| f64::from(code)).collect();
/// // Cells of more than 30 rows are cut; two owners have the cells of both sides of the last cuts.
/// let domain = Domain::new(vec![0.0], vec![1.0], None)?;
/// let extent = RowExtent::of(&domain, rows)?;
/// let plan = CellPlan::new(MondrianSettings { n_estimators: 5, ..Default::default() }, domain, extent)?;
/// let plan = plan.refined(&vec![true; plan.n_cells()], 4)?;
/// let (plan, _, _) = plan.condensed(&plan.count(rows, &targets, &run)?, 30, true)?;
/// let plan = plan.owned((0..plan.n_cells()).map(|cell| cell as u32 % 2).collect())?;
/// let (labels, n_rows_of) = ([Label::Int(0), Label::Int(1)], [56, 44]);
/// let settings = ClassificationSettings { calibration: Calibration::None, ..Default::default() };
/// let mut shares = Vec::new();
/// for (owner, own) in (0..).zip(plan.rows_by_owner(rows, 2, &run)?) {
///     let x: Vec<f64> = own.iter().map(|&row| x[row as usize]).collect();
///     let codes: Vec<u32> = own.iter().map(|&row| codes[row as usize]).collect();
///     let batch = Batch { rows: Rows::from_f64(&x, 1)?, ids: None, weights: None };
///     let targets = ((&codes[..], &labels[..]), &n_rows_of[..]);
///     let mut own = ClassifierCells::new(plan.clone(), owner, settings.clone(), batch, targets, &[])?;
///     own.grow(&run)?;
///     shares.push(own);
/// }
/// assert_eq!(shares[0].n_pairs() + shares[1].n_pairs(), 500);
/// # Ok::<(), boscage::Error>(())
/// ```
pub type ClassifierCells = CellShare<Classification>;

impl CellShare<Classification> {
    /// The rows of an owner's cells; `batch` has those that [`CellPlan::rows_by_owner`] sends to it. `targets` are
    /// an index into the labels for every row and the labels of all rows of all owners, `n_rows_of` how many rows each label
    /// has there, and labels in `declared` are classes also while no row has them.
    ///
    /// # Errors
    /// A joint posterior, which needs all trees in one place; lengths or values that are not as they should be.
    pub fn new(
        plan: CellPlan,
        owner: u32,
        classification: ClassificationSettings,
        batch: Batch<'_>,
        (targets, n_rows_of): ((&[u32], &[Label]), &[u64]),
        declared: &[Label],
    ) -> Result<Self> {
        classification.check()?;
        if classification.posterior != ClassPosterior::KneserNey {
            let (expected, found) = ("'kneser-ney' where cells are shared out", "'joint'".into());
            return Err(Error::InvalidSetting { name: "posterior", expected, found });
        }
        let (codes, labels) = check_codes(batch.rows.n_rows(), targets, declared)?;
        let mut classes = ClassTable::default();
        classes.declare(declared);
        let targets = classes.encode(codes, labels);
        classes.set_counts(labels, n_rows_of)?;
        Self::of_rows(plan, owner, Classification::new(classification, classes), batch, &targets)
    }

    /// What this owner's trees add to the votes for test rows, which are those that [`CellPlan::rows_by_owner`] sends to it.
    ///
    /// # Errors
    /// Trees that are not joined; rows that are not of the domain; an interrupt.
    pub fn votes(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<u64>> {
        let gamma = self.model.discount() * self.plan.domain().total_weight();
        let gather = |owners| GatherLists { owners, owner: self.owner, gamma };
        self.lists(rows, run, gather, |chunk| chunk.of_rows)
    }

    /// The probabilities of the classes, `n_rows x n_classes`, given the votes of all owners for the rows of theirs, and what
    /// calibrates them.
    ///
    /// # Errors
    /// Votes for other rows; a trend of other features or classes; rows that are not of the domain; an interrupt.
    pub fn proba_of_votes(
        &self,
        rows: Rows<'_>,
        votes: &[&[u64]],
        link: &CalibrationLink,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        let gather = self.model.gather(&[self.model.discount()]);
        let mut sums = gather.start(rows.n_rows());
        let owners = self.plan.owners_of(rows, run)?;
        each_list(&owners, votes, |row, words| add_list(words, sums.of_mut(row, 0)))?;
        let averages = gather.averages(&[sums], 0, None);
        let trend = link.trend_values(self.plan.domain(), rows, self.model.classes().len(), run)?;
        Ok(link.of_rows(&averages, &Functions { joint: None, trend }, |_| None))
    }

    /// Sets the discount. Trees and what owners tell each other do not depend on it.
    ///
    /// # Errors
    /// A discount that is not positive and finite.
    pub fn set_discount(&mut self, discount: f64) -> Result<()> {
        self.model.set_discount(discount)
    }

    /// The classes that are declared or have rows of some owner, sorted.
    #[must_use]
    pub fn classes(&self) -> Vec<Label> {
        self.model.classes()
    }

    /// The classes of the rows that are here, as indices into [`classes`](Self::classes).
    #[must_use]
    pub fn targets(&self) -> Vec<u32> {
        self.model.targets()
    }
}

/// Gathers lists of amounts for the rows that are the owner's, by tree.
struct GatherLists {
    owners: Vec<Vec<u32>>,
    owner: u32,
    gamma: f64,
}

/// Lists of amounts by row.
struct Lists {
    of_rows: Vec<Vec<u64>>,
    buffers: Buffers,
}

impl Visitor<ClassCounts> for GatherLists {
    type Chunk = Lists;

    fn start(&self, n_rows: usize) -> Lists {
        Lists { of_rows: vec![Vec::new(); n_rows], buffers: Buffers::default() }
    }

    fn visit<S: Scalar>(
        &self,
        number: usize,
        tree: &Tree<S, ClassCounts>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Lists,
    ) {
        if self.owners[number][row] != self.owner {
            return;
        }
        let predictor = Predictor { number, counts: InTree { tree, stops }, gamma: self.gamma };
        append_list(predictor, stops, &mut chunk.buffers, &mut chunk.of_rows[row]);
    }
}

/// Appends the list of what a tree adds for a row.
pub(super) fn append_list<C: PathCounts>(
    predictor: Predictor<C>,
    stops: &[Stop],
    buffers: &mut Buffers,
    words: &mut Vec<u64>,
) {
    let start = words.len();
    words.extend([0, 0, 0]);
    let OfAllRows { base, all } = predictor.predict(stops, buffers, &mut List { words });
    let n_amounts = (words.len() - start - 3) / 3;
    words[start..start + 3].copy_from_slice(&[base.to_bits(), all.to_bits(), n_amounts as u64]);
}

/// Reads a list and adds it to a row's sums.
///
/// # Errors
/// Words that end early, or classes that there are not.
pub(super) fn add_list(words: &mut Words<'_>, (proba, of_all): (&mut [f64], &mut OfAllRows)) -> Result<()> {
    of_all.add(OfAllRows { base: words.number()?, all: words.number()? });
    for _ in 0..words.next()? {
        let (word, bits, amount) = (words.next()? as usize, words.next()?, words.number()?);
        let end = word.saturating_mul(WORD).saturating_add((u64::BITS - bits.leading_zeros()) as usize);
        if bits == 0 || end > proba.len() {
            return Err(wrong("classes that there are not"));
        }
        proba.spread(word, bits, amount);
    }
    Ok(())
}

/// A list of amounts.
struct List<'a> {
    words: &'a mut Vec<u64>,
}

impl Votes for List<'_> {
    fn spread(&mut self, word: usize, bits: u64, amount: f64) {
        if bits != 0 {
            self.words.extend([word as u64, bits, amount.to_bits()]);
        }
    }

    fn one(&mut self, class: Class, amount: f64) {
        self.spread(class as usize / WORD, 1 << (class as usize % WORD), amount);
    }
}
