//! The weights of all that the optimal proposal chooses among, against cuts that are weighed one by one.

use crate::bayes::cuts::RankCut;
use crate::bayes::leaf::dirichlet::Dirichlet;
use crate::bayes::smc::nodes::{Keep, SharedNodes, Weighing};
use crate::bayes::smc::shared_node::SharedNodeId;
use crate::bayes::smc::tests::{CLASSES, prior, table};
use crate::bayes::smc::*;
use crate::bayes::testing::enumerate::{Exact, WeightedCut};
use crate::bayes::testing::{categories, missing_values};
use crate::data::sorted::columns::SortedColumns;

/// At the root and on both sides of each of its cuts, on data with ties, equal rows and constant features.
#[test]
fn the_optimal_choices_agree_with_a_scan_of_all_cuts() {
    choices_agree_with_a_scan(&table(), 3);
    // Two columns of the features with missing values.
    choices_agree_with_a_scan(&missing_values::wide_table(), 5);
    choices_agree_with_a_scan(&categories::wide_table(), 21);
}

fn choices_agree_with_a_scan(table: &SortedColumns, n_extents: usize) {
    let prior = prior();
    let leaf = Dirichlet::new(&CLASSES, 3, 1.3).unwrap();
    let target = TargetPosterior { table, prior: &prior, leaf: &leaf };
    let exact = Exact::new(&target);
    let (threads, control) = (Threads::new(1), Control::new());
    let mut nodes = SharedNodes::new(&target, &threads, &control, SubtreeRoot::of_all(table));
    nodes.open(&[0]).unwrap();
    assert_eq!(nodes.get(0).extents().len(), n_extents, "the constant column cannot be cut");
    check_choices(&mut nodes, &exact, 0);
    let root = exact.cuts(exact.all_rows(), 0).1;
    let cuts: Vec<RankCut> =
        root.iter().map(|cut| RankCut { feature: cut.feature, rank: cut.rank }).collect();
    nodes.split(cuts.iter().map(|&cut| (0, cut)).collect()).unwrap();
    let mut unsplittable = 0;
    for cut in cuts {
        let (left, right) = nodes.get(0).children(cut);
        nodes.open(&[left, right]).unwrap();
        for id in [left, right] {
            check_choices(&mut nodes, &exact, id);
            unsplittable += u32::from(nodes.get(id).extents().is_empty());
        }
    }
    assert!(unsplittable > 0, "a single row, and two equal ones, are left alone");
}

/// Compares the weights of stopping, of every feature and of each gap with those of all cuts weighed one by
/// one.
fn check_choices(
    nodes: &mut SharedNodes<'_, Dirichlet<'_>>,
    exact: &Exact<'_, Dirichlet<'_>>,
    id: SharedNodeId,
) {
    let extents = nodes.get(id).extents().to_vec();
    nodes.weigh((0..extents.len()).map(|i| (id, i)).collect(), Weighing::Likely, Keep::Gaps).unwrap();
    let set = nodes.get(id).rows().map(|row| 1u64 << row).sum();
    let (p, cuts) = exact.cuts(set, nodes.get(id).depth);
    let logs = nodes.choice_logs(id, 0..extents.len());
    assert!((logs[0] - ((1.0 - p) * exact.likelihood(set)).ln()).abs() < 1e-12 || extents.is_empty());
    let mut n_cuts = 0;
    for (i, (extent, log)) in extents.iter().zip(&logs[1..]).enumerate() {
        let along: Vec<_> = cuts.iter().filter(|cut| cut.feature == extent.feature).collect();
        let weight = |cut: &WeightedCut| -> f64 {
            p * cut.probability * cut.sides.map(|side| exact.likelihood(side)).iter().product::<f64>()
        };
        let sum: f64 = along.iter().map(|cut| weight(cut)).sum();
        assert!((log - sum.ln()).abs() < 1e-12);
        // A gap is drawn with a probability proportional to its weight.
        let mut below = 0.0;
        for cut in along {
            let share = weight(cut) / sum;
            for at in [0.001, 0.999] {
                assert_eq!(nodes.get(id).gaps(i).at(below + at * share).left, cut.rank);
            }
            below += share;
            n_cuts += 1;
        }
    }
    assert_eq!(n_cuts, cuts.len());
}
