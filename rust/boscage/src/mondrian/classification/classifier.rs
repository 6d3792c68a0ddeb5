//! The Mondrian forest classifier (thesis chapter 5).

use crate::data::Label;
use std::collections::BTreeMap;

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::classification::class_counts::{Class, ClassCounts, Held, iter_bits};
use crate::mondrian::classification::kneser_ney::{Predictor, Room};
use crate::mondrian::forest::export::{ExportedTree, NodeValues};
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::forest::{Batch, Forest};
use crate::mondrian::prediction::path::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// A Mondrian forest that predicts class probabilities.
///
/// ```
/// use boscage::{Batch, Domain, Label, MondrianClassifier, MondrianSettings, Rows, Run};
///
/// let rows = Rows::from_f64(&[0.1, 0.2, 0.8, 0.9], 1)?;
/// let labels = [Label::Text("low".into()), Label::Text("high".into())];
/// let forest = MondrianClassifier::fit(
///     MondrianSettings::default(),
///     10.0,
///     Domain::of_rows(rows, None)?,
///     Batch { rows, ids: None },
///     (&[0, 0, 1, 1], &labels),
///     &[],
///     &Run::default(),
/// )?;
/// let proba = forest.predict_proba(Rows::from_f64(&[0.15], 1)?, &Run::default())?;
/// assert_eq!(forest.classes()[1], Label::Text("low".into()));
/// assert!(proba[1] > 0.9);
/// # Ok::<(), boscage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MondrianClassifier {
    pub(crate) forest: Forest<ClassCounts>,
    pub(crate) discount: f64,
    /// Label, rows and declaredness of every class seen, by class.
    pub(crate) classes: ClassTable,
}

/// The classes that a forest has seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassTable {
    labels: Vec<Label>,
    by_label: BTreeMap<Label, Class>,
    n_rows: Vec<usize>,
    declared: Vec<bool>,
    /// Classes whose label is forgotten: they are given to new ones.
    free: Vec<Class>,
    /// Whether some class may have lost its last row.
    has_lost: bool,
}

impl ClassTable {
    /// The class of every label, those that are new added.
    fn admit(&mut self, labels: &[Label]) -> Vec<Class> {
        labels
            .iter()
            .map(|label| {
                *self.by_label.entry(label.clone()).or_insert_with(|| match self.free.pop() {
                    Some(class) => {
                        self.labels[class as usize] = label.clone();
                        class
                    }
                    None => {
                        self.labels.push(label.clone());
                        self.n_rows.push(0);
                        self.declared.push(false);
                        self.labels.len() as Class - 1
                    }
                })
            })
            .collect()
    }

    fn is_live(&self, class: Class) -> bool {
        self.declared[class as usize] || self.n_rows[class as usize] > 0
    }

    /// Classes that are declared or have rows, in order of label.
    fn live(&self) -> Vec<Class> {
        self.by_label.values().copied().filter(|&class| self.is_live(class)).collect()
    }

    /// By class the given numbers, which are those of the live ones in order of label.
    pub(crate) fn renumbered(&self, numbers: impl IntoIterator<Item = Class>) -> Vec<Class> {
        let mut by_class = vec![0; self.labels.len()];
        for (class, number) in self.live().into_iter().zip(numbers) {
            by_class[class as usize] = number;
        }
        by_class
    }

    pub(crate) fn declared(&self) -> Vec<Label> {
        let declared = |(_, class): &(&Label, &Class)| self.declared[**class as usize];
        self.by_label.iter().filter(declared).map(|(label, _)| label.clone()).collect()
    }

    /// The classes of rows from indices into labels.
    fn encode(&mut self, codes: &[u32], labels: &[Label]) -> Vec<Class> {
        let of_code = self.admit(labels);
        codes.iter().map(|&code| of_code[code as usize]).collect()
    }

    /// Forgets the labels of classes without rows; no tree may have any of these either.
    fn retire(&mut self) {
        if std::mem::take(&mut self.has_lost) {
            let dead: Vec<Class> =
                self.by_label.values().copied().filter(|&class| !self.is_live(class)).collect();
            for &class in &dead {
                self.by_label.remove(&self.labels[class as usize]);
            }
            self.free.extend(dead);
        }
    }

    fn declare(&mut self, labels: &[Label]) {
        for class in self.admit(labels) {
            self.declared[class as usize] = true;
        }
    }

    /// Counts rows that came (`by` 1) or went (-1).
    fn count(&mut self, targets: &[Class], by: isize) {
        for &class in targets {
            let n = &mut self.n_rows[class as usize];
            *n = n.checked_add_signed(by).expect("no more rows go than came");
            self.has_lost |= *n == 0;
        }
    }
}

impl MondrianClassifier {
    /// Trains on rows; `targets` are an index into the labels for every row, and the labels. Labels in
    /// `declared` are classes also while no row has them. The discount parameter is `gamma = discount W`,
    /// `W` being the sum of the weights (the thesis: `gamma = 10 D`).
    ///
    /// # Errors
    /// Settings, lengths, ids or values that are not as they should be; an interrupt.
    pub fn fit(
        settings: MondrianSettings,
        discount: f64,
        domain: Domain,
        batch: Batch<'_>,
        targets: (&[u32], &[Label]),
        declared: &[Label],
        run: &Run<'_>,
    ) -> Result<Self> {
        check_discount(discount)?;
        let mut classes = ClassTable::default();
        classes.declare(declared);
        let (codes, labels) = check_codes(batch.rows.n_rows(), targets)?;
        let targets = classes.encode(codes, labels);
        classes.count(&targets, 1);
        let forest = Forest::fit(settings, domain, batch, &targets, run)?;
        Ok(Self { forest, discount, classes })
    }

    /// Adds rows. Any batching and order gives the same forest, bit for bit; so trees take rows in together, when
    /// somebody asks for a prediction, or [`flush`](Self::flush) does.
    ///
    /// # Errors
    /// As for `fit`, but it is not interrupted. After an error nothing has changed.
    pub fn partial_fit(&mut self, batch: Batch<'_>, targets: (&[u32], &[Label])) -> Result<()> {
        let (codes, labels) = check_codes(batch.rows.n_rows(), targets)?;
        self.forget_labels();
        let classes = &mut self.classes;
        self.forest.insert(batch, || {
            let targets = classes.encode(codes, labels);
            classes.count(&targets, 1);
            targets
        })
    }

    /// Lets the trees take in the rows that wait. The first prediction would do it, but then it takes longer.
    ///
    /// # Errors
    /// An interrupt: some rows go on waiting.
    pub fn flush(&self, run: &Run<'_>) -> Result<()> {
        self.forest.flushed(run).map(drop)
    }

    /// Whether trees have all rows and no others, and the boxes that predictions need: if not, the first prediction sees
    /// to it.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.forest.is_flushed()
    }

    /// How many rows the trees have to take in or let go before they predict: those that came or left since they last
    /// did, or all if these are so many, or so far away, that trees are drawn anew, or if trees build or drop boxes.
    #[must_use]
    pub fn n_pending(&self) -> usize {
        self.forest.n_pending()
    }

    /// Removes rows by id: the forest becomes, bit for bit, the one that never saw them. Trees let them go when they
    /// take rows in.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; then nothing has changed.
    pub fn forget(&mut self, ids: &[u64]) -> Result<()> {
        self.forget_labels();
        let gone = self.forest.forget(ids)?;
        self.classes.count(&gone, -1);
        Ok(())
    }

    /// Removes all rows but the `n` that arrived last, as [`forget`](Self::forget) does.
    pub fn keep_newest(&mut self, n: usize) {
        self.forget_labels();
        let gone = self.forest.keep_newest(n);
        self.classes.count(&gone, -1);
    }

    /// Forgets the labels that no row has any more, if no tree has a row that left.
    fn forget_labels(&mut self) {
        if self.forest.has_let_go() {
            self.classes.retire();
        }
    }

    /// Adds the rows of another shard: the forest of the union, bit for bit.
    ///
    /// # Errors
    /// [`Error::NotMergeable`] or [`Error::DuplicateId`]: nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.discount != other.discount {
            return Err(Error::NotMergeable { what: "discounts" });
        }
        self.forest.check_mergeable(&other.forest)?;
        let of_class = other.classes.renumbered(self.classes.admit(&other.classes()));
        self.classes.declare(&other.classes.declared());
        let own = |class: Class| of_class[class as usize];
        self.forest.merge(&other.forest, own)?;
        let came = other.forest.row_index.rows().map(|row| own(other.forest.targets[row as usize]));
        self.classes.count(&came.collect::<Vec<_>>(), 1);
        Ok(())
    }

    /// Class probabilities, `n_rows x n_classes` in order of [`MondrianClassifier::classes`].
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict_proba(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        let gather = Gather::new(self, &[self.discount]);
        let chunks = self.forest.predict(rows, run, &gather)?;
        let mut out = Vec::new();
        for chunk in chunks {
            self.finish(&chunk, 0, None, &mut out);
        }
        Ok(out)
    }

    /// Class probabilities of rows of the forest, each predicted by the forest without it, for several
    /// discounts: `n_discounts x n_rows x n_classes`. The forest is as before.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; an interrupt.
    pub fn loo_proba(&self, ids: &[u64], discounts: &[f64], run: &Run<'_>) -> Result<Vec<f64>> {
        discounts.iter().try_for_each(|&discount| check_discount(discount))?;
        let rows = self.forest.row_index.find(ids)?;
        let gather = Gather::new(self, discounts);
        let chunks = self.forest.predict_left_out(&rows, run, &gather)?;
        let mut out = Vec::new();
        for i in 0..discounts.len() {
            let mut first = 0;
            for chunk in &chunks {
                let own = &rows[first..first + chunk.n_rows];
                let targets: Vec<Class> = own.iter().map(|&row| self.forest.targets[row as usize]).collect();
                self.finish(chunk, i, Some(&targets), &mut out);
                first += chunk.n_rows;
            }
        }
        Ok(out)
    }

    /// The classes that are declared or have rows, sorted.
    #[must_use]
    pub fn classes(&self) -> Vec<Label> {
        self.classes.live().into_iter().map(|class| self.classes.labels[class as usize].clone()).collect()
    }

    /// The discount: `gamma` over the sum of the weights.
    #[must_use]
    pub fn discount(&self) -> f64 {
        self.discount
    }

    /// Sets the discount; trees do not depend on it.
    ///
    /// # Errors
    /// A discount that is not positive and finite.
    pub fn set_discount(&mut self, discount: f64) -> Result<()> {
        check_discount(discount)?;
        self.discount = discount;
        Ok(())
    }

    /// Sets how test points are placed. Trees follow when they are next asked for.
    pub fn set_predictive(&mut self, predictive: Predictive) {
        self.forest.set_predictive(predictive);
    }

    /// Checks every invariant of the trees.
    ///
    /// # Errors
    /// The first one that does not hold, in words: a bug in this crate.
    pub fn check(&self) -> std::result::Result<(), String> {
        self.forest.check()
    }

    /// Bytes that trees and rows hold.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.forest.bytes()
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.forest.n_rows()
    }

    /// Ids of the rows in order of arrival.
    #[must_use]
    pub fn ids(&self) -> Vec<u64> {
        self.forest.ids()
    }

    /// Reference ranges and weights.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.forest.domain
    }

    /// Settings of the trees.
    #[must_use]
    pub fn settings(&self) -> &MondrianSettings {
        &self.forest.settings
    }

    /// Text kept with the model and in its file, such as names of features; empty unless set. Neither
    /// predictions nor the digest depend on it.
    #[must_use]
    pub fn annotation(&self) -> &str {
        &self.forest.annotation
    }

    /// Sets the text of [`annotation`](Self::annotation).
    pub fn set_annotation(&mut self, text: impl Into<String>) {
        self.forest.annotation = text.into();
    }

    /// A hash of settings, rows' contents and trees: equal exactly when two forests predict alike
    /// everywhere and will go on to.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut model = b"classifier".to_vec();
        model.extend(self.discount.to_le_bytes());
        for label in self.classes.declared() {
            let bytes = label.to_bytes();
            model.extend((bytes.len() as u64).to_le_bytes());
            model.extend(bytes);
        }
        self.forest.digest(&model, |class| self.classes.labels[class as usize].to_bytes())
    }

    /// Every tree as arrays; its values are the customers `c_jk` by class.
    #[must_use]
    pub fn trees(&self) -> Vec<ExportedTree> {
        self.forest.export(&Customers { live: self.classes.live() })
    }

    /// Puts probabilities of the live classes, from what the trees gave, at the end of `out`; `left_out` are the
    /// classes of rows that were left out, of which a class may have been the only one.
    fn finish(&self, chunk: &Gathered, discount: usize, left_out: Option<&[Class]>, out: &mut Vec<f64>) {
        let live = self.classes.live();
        let n_trees = self.forest.settings.n_estimators as f64;
        let n_codes = self.classes.labels.len();
        out.reserve(chunk.n_rows * live.len());
        for row in 0..chunk.n_rows {
            let gone = left_out.map(|targets| targets[row]).filter(|&class| {
                let class = class as usize;
                self.classes.n_rows[class] == 1 && !self.classes.declared[class]
            });
            let n_live = live.len() - usize::from(gone.is_some());
            let at = discount * chunk.n_rows + row;
            let base = chunk.base[at] / n_live.max(1) as f64;
            let proba = &chunk.proba[at * n_codes..(at + 1) * n_codes];
            out.extend(live.iter().map(|&class| {
                // Sums over trees are rounded; a probability is none above 1.
                if Some(class) == gone { 0.0 } else { ((proba[class as usize] + base) / n_trees).min(1.0) }
            }));
        }
    }
}

/// Sums over trees, by row and class.
struct Gathered {
    n_rows: usize,
    proba: Vec<f64>,
    /// Weight of the base measure.
    base: Vec<f64>,
    /// One a discount.
    rooms: Vec<Room>,
}

struct Gather<'a> {
    model: &'a MondrianClassifier,
    /// The parameters `gamma`, one a discount.
    gammas: Vec<f64>,
}

impl<'a> Gather<'a> {
    fn new(model: &'a MondrianClassifier, discounts: &[f64]) -> Self {
        let total_weight = model.forest.domain.total_weight();
        Self { model, gammas: discounts.iter().map(|discount| discount * total_weight).collect() }
    }
}

impl Visitor<ClassCounts> for Gather<'_> {
    type Chunk = Gathered;

    fn start(&self, n_rows: usize) -> Gathered {
        let n = self.gammas.len() * n_rows;
        Gathered {
            n_rows,
            proba: vec![0.0; n * self.model.classes.labels.len()],
            base: vec![0.0; n],
            rooms: self.gammas.iter().map(|_| Room::default()).collect(),
        }
    }

    fn visit<S: Scalar>(
        &self,
        number: usize,
        tree: &Tree<S, ClassCounts>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Gathered,
    ) {
        let n_codes = self.model.classes.labels.len();
        for (i, (&gamma, room)) in self.gammas.iter().zip(&mut chunk.rooms).enumerate() {
            let predictor = Predictor { number, tree, gamma };
            let at = i * chunk.n_rows + row;
            let proba = &mut chunk.proba[at * n_codes..(at + 1) * n_codes];
            chunk.base[at] += predictor.predict(stops, room, proba);
        }
    }

    fn restored<S: Scalar>(
        &self,
        _: usize,
        _: &Tree<S, ClassCounts>,
        _: &[NodeId],
        Gathered { rooms, .. }: &mut Gathered,
    ) {
        rooms.iter_mut().for_each(Room::clear);
    }
}

struct Customers {
    live: Vec<Class>,
}

impl NodeValues<ClassCounts> for Customers {
    fn of<S: Scalar>(&self, _: usize, tree: &Tree<S, ClassCounts>, order: &[NodeId]) -> (usize, Vec<f64>) {
        let n = self.live.len();
        let column = |class: Class| self.live.iter().position(|&live| live == class).expect("it has rows");
        let mut out = vec![0.0; order.len() * n];
        for (counts, &node) in out.chunks_exact_mut(n.max(1)).zip(order) {
            let classes = &tree.statistics;
            if node.is_leaf() {
                match classes.held(node) {
                    Held::One(class) => counts[column(class)] = tree.arena.n_rows(node) as f64,
                    Held::Several(own) => {
                        for &(class, n) in own {
                            counts[column(class)] = f64::from(n);
                        }
                    }
                }
                continue;
            }
            for word in 0..classes.words() {
                let sets = [classes.tables(node, word), classes.both(node, word)];
                for class in sets.into_iter().flat_map(|bits| iter_bits(word, bits)) {
                    counts[column(class)] += 1.0;
                }
            }
        }
        (n, out)
    }
}

fn check_discount(discount: f64) -> Result<()> {
    if discount > 0.0 && discount.is_finite() {
        return Ok(());
    }
    Err(Error::InvalidSetting {
        name: "discount",
        expected: "positive and finite",
        found: discount.to_string(),
    })
}

/// Indices into labels, one a row.
fn check_codes<'a>(
    n_rows: usize,
    (codes, labels): (&'a [u32], &'a [Label]),
) -> Result<(&'a [u32], &'a [Label])> {
    if codes.len() != n_rows {
        return Err(Error::Length { what: "y", found: codes.len(), expected: n_rows, why: "one a row of X" });
    }
    if let Some(code) = codes.iter().find(|&&code| code as usize >= labels.len()) {
        return Err(Error::InvalidSetting {
            name: "class codes",
            expected: "an index into the labels",
            found: format!("{code} for {} labels", labels.len()),
        });
    }
    Ok((codes, labels))
}
