//! Class probabilities: every tree's prediction (eq. 5.6), averaged over the trees of the forest.

use std::collections::BTreeMap;

use crate::data::Scalar;
use crate::mondrian::classification::class_counts::{Class, ClassCounts, iter_bits};
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::kneser_ney::{Buffers, InTree, OfAllRows, PathCounts, Predictor};
use crate::mondrian::forest::export::NodeValues;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// Sums over trees, by row and class.
pub(super) struct Gathered {
    pub(super) n_rows: usize,
    proba: Vec<f64>,
    /// The weights of what has nothing to do with a row.
    of_all: Vec<OfAllRows>,
    /// One a discount.
    buffers: Vec<Buffers>,
}

impl Gathered {
    /// The sums of a row for a discount: by the class's number, and of what has nothing to do with the row.
    pub(super) fn of(&self, row: usize, discount: usize) -> (&[f64], OfAllRows) {
        let (at, n_codes) = self.place(row, discount);
        (&self.proba[at * n_codes..(at + 1) * n_codes], self.of_all[at])
    }

    /// The same, to be set.
    pub(super) fn of_mut(&mut self, row: usize, discount: usize) -> (&mut [f64], &mut OfAllRows) {
        let (at, n_codes) = self.place(row, discount);
        (&mut self.proba[at * n_codes..(at + 1) * n_codes], &mut self.of_all[at])
    }

    fn place(&self, row: usize, discount: usize) -> (usize, usize) {
        (discount * self.n_rows + row, self.proba.len() / self.of_all.len())
    }
}

/// Averages over trees, row after row.
#[derive(Debug, Default)]
pub(super) struct Averages {
    /// The probabilities of the live classes, `n_rows x n_classes`.
    pub(super) proba: Vec<f64>,
    /// The weight in each row's of what trees say of all their rows, wherever the row lies.
    pub(super) of_all: Vec<f64>,
}

impl Averages {
    /// Each row's, in order.
    pub(super) fn rows(&self) -> impl Iterator<Item = Average<'_>> {
        let n_classes = self.proba.len() / self.of_all.len().max(1);
        let probabilities = self.proba.chunks_exact(n_classes.max(1));
        probabilities.zip(&self.of_all).map(|(proba, &of_all)| Average { proba, of_all })
    }
}

/// The average over trees for a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Average<'a> {
    pub(super) proba: &'a [f64],
    pub(super) of_all: f64,
}

/// Sums class probabilities (eq. 5.6) over trees.
pub(super) struct Gather<'a> {
    classes: &'a ClassTable,
    n_trees: usize,
    /// The parameters `gamma`, one a discount.
    gammas: Vec<f64>,
}

impl<'a> Gather<'a> {
    /// For a forest of so many trees and feature weights that sum to `total_weight`, and discounts in units of that sum.
    pub(super) fn new(classes: &'a ClassTable, n_trees: usize, total_weight: f64, discounts: &[f64]) -> Self {
        let gammas = discounts.iter().map(|discount| discount * total_weight).collect();
        Self { classes, n_trees, gammas }
    }

    /// The averages of all rows for a discount; `left_out` are the classes of rows that were left out.
    pub(super) fn averages(
        &self,
        chunks: &[Gathered],
        discount: usize,
        left_out: Option<&[Class]>,
    ) -> Averages {
        let (mut out, mut first) = (Averages::default(), 0);
        for chunk in chunks {
            let own = left_out.map(|targets| &targets[first..first + chunk.n_rows]);
            self.finish(chunk, discount, own, &mut out);
            first += chunk.n_rows;
        }
        out
    }

    /// Appends averages to `out`; `left_out` are the classes of rows that were left out: a class whose only row is left out
    /// gets probability 0.
    pub(super) fn finish(
        &self,
        chunk: &Gathered,
        discount: usize,
        left_out: Option<&[Class]>,
        out: &mut Averages,
    ) {
        let live = self.classes.live();
        let n_trees = self.n_trees as f64;
        let n_codes = self.classes.labels.len();
        out.proba.reserve(chunk.n_rows * live.len());
        for row in 0..chunk.n_rows {
            let gone =
                left_out.map(|targets| targets[row]).filter(|&class| self.classes.goes_with_its_row(class));
            let n_live = live.len() - usize::from(gone.is_some());
            let at = discount * chunk.n_rows + row;
            let OfAllRows { base, all } = chunk.of_all[at];
            let base = base / n_live.max(1) as f64;
            out.of_all.push((all / n_trees).min(1.0));
            let proba = &chunk.proba[at * n_codes..(at + 1) * n_codes];
            out.proba.extend(live.iter().map(|&class| {
                // Sums over trees are rounded; no probability is above 1.
                if Some(class) == gone { 0.0 } else { ((proba[class as usize] + base) / n_trees).min(1.0) }
            }));
        }
    }
}

impl Visitor<ClassCounts> for Gather<'_> {
    type Chunk = Gathered;

    fn start(&self, n_rows: usize) -> Gathered {
        let n = self.gammas.len() * n_rows;
        Gathered {
            n_rows,
            proba: vec![0.0; n * self.classes.labels.len()],
            of_all: vec![OfAllRows::default(); n],
            buffers: self.gammas.iter().map(|_| Buffers::default()).collect(),
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
        self.add(number, InTree { tree, stops }, stops, row, chunk);
    }
}

impl Gather<'_> {
    /// Adds one row's prediction by one tree.
    pub(super) fn add(
        &self,
        number: usize,
        counts: impl PathCounts,
        stops: &[Stop],
        row: usize,
        chunk: &mut Gathered,
    ) {
        let n_codes = self.classes.labels.len();
        for (i, (&gamma, buffers)) in self.gammas.iter().zip(&mut chunk.buffers).enumerate() {
            let predictor = Predictor { number, counts, gamma };
            let at = i * chunk.n_rows + row;
            let proba = &mut chunk.proba[at * n_codes..(at + 1) * n_codes];
            chunk.of_all[at].add(predictor.predict(stops, buffers, proba));
        }
    }
}

/// Shows the customers `c_jk` of every node, by live class.
pub(super) struct Customers {
    pub(super) live: Vec<Class>,
}

impl NodeValues<ClassCounts> for Customers {
    fn n_values(&self) -> usize {
        self.live.len()
    }

    fn of<S: Scalar>(&self, _: usize, tree: &Tree<S, ClassCounts>, order: &[NodeId]) -> Vec<f64> {
        let n = self.live.len();
        let columns: BTreeMap<Class, usize> = self.live.iter().copied().zip(0..).collect();
        let column = |class: Class| columns[&class];
        let mut out = vec![0.0; order.len() * n];
        for (counts, &node) in out.chunks_exact_mut(n.max(1)).zip(order) {
            let classes = &tree.statistics;
            if node.is_leaf() {
                for (class, customers) in classes.held(node).weights(tree.arena.n_rows(node)) {
                    counts[column(class)] = customers.float();
                }
                continue;
            }
            classes.each_part(node, |class, part| counts[column(class)] += (part.table + part.more).float());
            for word in 0..classes.words() {
                let sets = [classes.tables(node, word), classes.both(node, word)];
                for class in sets.into_iter().flat_map(|bits| iter_bits(word, bits)) {
                    counts[column(class)] += 1.0;
                }
            }
        }
        out
    }
}
