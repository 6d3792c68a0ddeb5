//! Exact answers on small data, for tests: a recursion over sets of rows, and the enumeration of all trees.
//!
//! Given the rows of a node, the subtrees on both sides of a cut are independent. With `V` the features that
//! vary among the rows, the marginal likelihood of a subtree is therefore
//!
//! `Z(rows, depth) = P(stop) l(rows) + P(split) sum_d sum_gap gap / (|V| extent) Z(left) Z(right)`,
//!
//! with `d` in `V`. Where values of `d` are missing in the table, they go left or right with probability 1/2
//! each. Where `d` has categories, its rules weigh as much as one feature together, and a rule that divides no rows of the
//! node leaves its weight to all others. Where numbers are missing among the rows, a third of the cuts, or all if no other is possible, part them
//! from the present values, and gaps are those between present values. Only sets of rows that cuts can make are
//! visited. A set of rows is an integer with one bit for each row.

use std::collections::HashMap;

use crate::bayes::cuts::extents;
use crate::bayes::leaf::model::{ConjugateLeaf, MovingCut};
use crate::bayes::target::TargetPosterior;
use crate::bayes::tree::PreorderTree;
use crate::data::sorted::column::Span;
use crate::data::sorted::columns::SortedColumns;

pub(crate) struct Exact<'a, L: ConjugateLeaf> {
    target: &'a TargetPosterior<'a, L>,
    known: HashMap<(u64, u32), f64>,
}

/// A cut of a set of rows: its prior probability given that the node is split, and the rows on both sides.
pub(crate) struct WeightedCut {
    pub(crate) feature: u32,
    pub(crate) rank: u32,
    pub(crate) probability: f64,
    pub(crate) sides: [u64; 2],
}

impl<'a, L: ConjugateLeaf> Exact<'a, L> {
    pub(crate) fn new(target: &'a TargetPosterior<'a, L>) -> Self {
        Self { target, known: HashMap::new() }
    }

    pub(crate) fn all_rows(&self) -> u64 {
        (1 << self.target.table.n_rows()) - 1
    }

    /// `P(split)`, 0 if no cut is possible, and the cuts, one for each gap.
    pub(crate) fn cuts(&self, set: u64, depth: u32) -> (f64, Vec<WeightedCut>) {
        let rows = rows_of(set);
        let table = self.target.table;
        let valid = extents(table, &rows, 0..table.n_columns() as u32);
        let p = if valid.is_empty() { 0.0 } else { self.target.prior.split_probability(depth) };
        let mut cuts = Vec::new();
        let weight =
            |feature: u32| self.target.prior.log_weights().map_or(1.0, |logs| logs[feature as usize].exp());
        // The columns of a feature have equal weights: two sides of missing numbers, or the rules of its categories.
        let sides = |column: u32| {
            let feature = table.feature_of(column);
            let n = (0..table.n_columns() as u32).filter(|&other| table.feature_of(other) == feature).count();
            1.0 / n as f64
        };
        let total: f64 =
            valid.iter().map(|extent| weight(table.feature_of(extent.feature)) * sides(extent.feature)).sum();
        for extent in &valid {
            let column = table.column(extent.feature);
            let mut ranks: Vec<u32> = rows.iter().map(|&row| column.rank(row)).collect();
            ranks.sort_unstable();
            ranks.dedup();
            let present = Span { has_missing: false, ..extent.span };
            let apart = match (extent.span.has_missing, present.low < present.high) {
                (false, _) => 0.0,
                (true, true) => 1.0 / 3.0,
                (true, false) => 1.0,
            };
            for pair in ranks.windows(2) {
                let is_apart = pair.iter().any(|&rank| column.is_missing(rank));
                let place =
                    if is_apart { apart } else { (1.0 - apart) * column.share((pair[0], pair[1]), present) };
                let side = sides(extent.feature);
                let left =
                    rows.iter().filter(|&&row| column.rank(row) <= pair[0]).map(|row| 1u64 << row).sum();
                cuts.push(WeightedCut {
                    feature: extent.feature,
                    rank: pair[0],
                    probability: place * side * weight(table.feature_of(extent.feature)) / total,
                    sides: [left, set & !left],
                });
            }
        }
        (p, cuts)
    }

    pub(crate) fn likelihood(&self, set: u64) -> f64 {
        self.target.leaf.log_likelihood(&self.target.leaf.of_rows(rows_of(set))).exp()
    }

    /// `Z(rows, depth)`, the marginal likelihood of a subtree.
    pub(crate) fn evidence(&mut self, set: u64, depth: u32) -> f64 {
        if let Some(&known) = self.known.get(&(set, depth)) {
            return known;
        }
        let (p, cuts) = self.cuts(set, depth);
        let mut split = 0.0;
        for cut in &cuts {
            split += cut.probability
                * self.evidence(cut.sides[0], depth + 1)
                * self.evidence(cut.sides[1], depth + 1);
        }
        let z = (1.0 - p) * self.likelihood(set) + p * split;
        self.known.insert((set, depth), z);
        z
    }

    /// The posterior probability that the root is a leaf (first), and of each cut of the root.
    pub(crate) fn root(&mut self) -> (f64, Vec<(WeightedCut, f64)>) {
        let all = self.all_rows();
        let z = self.evidence(all, 0);
        let (p, cuts) = self.cuts(all, 0);
        let stop = (1.0 - p) * self.likelihood(all) / z;
        let cuts = cuts.into_iter().map(|cut| {
            let sides = self.evidence(cut.sides[0], 1) * self.evidence(cut.sides[1], 1);
            let probability = p * cut.probability * sides / z;
            (cut, probability)
        });
        (stop, cuts.collect())
    }

    /// The posterior mean of the number of leaves.
    pub(crate) fn n_leaves(&mut self, set: u64, depth: u32) -> f64 {
        let z = self.evidence(set, depth);
        let (p, cuts) = self.cuts(set, depth);
        let mut sum = (1.0 - p) * self.likelihood(set);
        for cut in &cuts {
            let sides =
                cut.sides.map(|side| (self.evidence(side, depth + 1), self.n_leaves(side, depth + 1)));
            sum += p * cut.probability * sides[0].0 * sides[1].0 * (sides[0].1 + sides[1].1);
        }
        sum / z
    }

    /// The part of `Z(rows, depth)` of the subtrees with at most this many layers of cuts.
    pub(crate) fn shallow(&self, set: u64, depth: u32, n_layers: u32) -> f64 {
        let (p, cuts) = self.cuts(set, depth);
        let mut z = (1.0 - p) * self.likelihood(set);
        if n_layers > 0 {
            let side = |set: u64| self.shallow(set, depth + 1, n_layers - 1);
            z += p * cuts
                .iter()
                .map(|cut| cut.probability * side(cut.sides[0]) * side(cut.sides[1]))
                .sum::<f64>();
        }
        z
    }

    /// All trees over a set of rows: prior probability times likelihood, and the partition as a name.
    pub(crate) fn trees(&self, set: u64, depth: u32) -> Vec<(String, f64)> {
        let (p, cuts) = self.cuts(set, depth);
        let mut trees = vec![("*".to_owned(), (1.0 - p) * self.likelihood(set))];
        for cut in &cuts {
            let right = self.trees(cut.sides[1], depth + 1);
            for (left, a) in self.trees(cut.sides[0], depth + 1) {
                for (right, b) in &right {
                    let name = format!("({}<{} {left} {right})", cut.feature, cut.rank);
                    trees.push((name, p * cut.probability * a * b));
                }
            }
        }
        trees
    }
}

fn rows_of(set: u64) -> Vec<u32> {
    (0..64).filter(|row| set >> row & 1 == 1).collect()
}

/// The partition of a tree, named as in `Exact::trees`; the rank of a cut is that of the row below it.
pub(crate) fn name_of<S>(tree: &PreorderTree<S>, table: &SortedColumns) -> String {
    fn name<S>(tree: &PreorderTree<S>, table: &SortedColumns, at: usize, rows: &[u32]) -> String {
        let Some(split) = tree.nodes[at].split else {
            return "*".to_owned();
        };
        let column = table.column(split.rule.feature);
        let rank = column.last_rank_below(split.rule.threshold);
        let (left, right): (Vec<u32>, Vec<u32>) = rows.iter().partition(|&&row| column.rank(row) <= rank);
        assert!(!left.is_empty() && !right.is_empty(), "a cut divides the rows");
        let rank = left.iter().map(|&row| column.rank(row)).max().unwrap();
        let [left, right] =
            [(at + 1, left), (split.right as usize, right)].map(|(at, rows)| name(tree, table, at, &rows));
        format!("({}<{rank} {left} {right})", split.rule.feature)
    }
    name(tree, table, 0, &(0..table.n_rows() as u32).collect::<Vec<_>>())
}

/// A leaf model without information: every likelihood is one.
#[derive(Debug)]
pub(crate) struct Flat;

impl ConjugateLeaf for Flat {
    type Stats = ();
    type MovingCut<'a> = Flat;

    fn empty(&self) {}
    fn add(&self, (): &mut (), _: u32) {}
    fn rest(&self, (): &(), (): &()) {}
    fn log_likelihood(&self, (): &()) -> f64 {
        0.0
    }
    fn moving_cut(&self, (): &()) -> Flat {
        Flat
    }
}

impl MovingCut for Flat {
    fn shift(&mut self, _: u32) {}
    fn shift_all_but(&mut self, _: impl Iterator<Item = u32>) {}
    fn log_likelihood(&self) -> f64 {
        0.0
    }
}

/// A mean with its standard error.
#[derive(Debug)]
pub(crate) struct Mean {
    pub(crate) n: f64,
    pub(crate) sum: f64,
    pub(crate) squares: f64,
}

impl Mean {
    pub(crate) fn new() -> Self {
        Self { n: 0.0, sum: 0.0, squares: 0.0 }
    }

    pub(crate) fn add(&mut self, x: f64) {
        self.n += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    /// Whether the mean is within `k` standard errors of a value.
    pub(crate) fn check(&self, expected: f64, k: f64, what: &str) {
        let mean = self.sum / self.n;
        let error = ((self.squares / self.n - mean * mean) / (self.n - 1.0)).sqrt();
        let off = (mean - expected).abs();
        assert!(off <= k * error + 1e-9 * expected, "{what}: {mean} +- {error} for {expected}");
    }
}
