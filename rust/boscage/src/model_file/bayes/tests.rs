//! What readers of trees and of reports refuse.

use super::*;

fn is_read(report: &Report, n_trees: usize) -> bool {
    let mut writer = Writer::default();
    write_report(&mut writer, report);
    read_report(&mut Reader::new(writer.bytes()), &vec![(1, 0); n_trees]).is_ok()
}

#[test]
fn nodes_have_the_rows_of_their_children() {
    let split = || Some(PreorderSplit::new(0, 0.5));
    let is_read = |stats: [ClassTotals; 3]| {
        let mut writer = Writer::default();
        let [root, left, right] = stats;
        let nodes = [(split(), root), (None, left), (None, right)];
        let tree = PreorderTree {
            nodes: nodes.map(|(split, stats)| PreorderNode { split, stats: stats.into() }).into(),
        };
        write_tree(&mut writer, &tree, true, &|writer: &mut Writer, totals: &ClassTotals| {
            totals.by_class.iter().for_each(|&count| writer.u32(count as u32));
        });
        let read = |reader: &mut Reader<'_>| read_counts(reader, 2);
        let kinds = FeatureKinds { has_missing: true, has_sides: true, ..FeatureKinds::default() };
        let features = Features { ranges: &[(0.0, 1.0)], kinds: &kinds };
        read_tree(&mut Reader::new(writer.bytes()), features, read).is_ok()
    };
    let counts =
        |a: u32, b: u32| ClassTotals { n_rows: a.wrapping_add(b), by_class: Box::new([a, b].map(f64::from)) };
    assert!(is_read([counts(3, 4), counts(3, 1), counts(0, 3)]));
    assert!(!is_read([counts(3, 4), counts(3, 4), counts(0, 0)]));
    assert!(!is_read([counts(4, 3), counts(3, 1), counts(0, 3)]));
    assert!(!is_read([counts(3, 4), counts(3, 1), counts(0, 4)]));
    assert!(!is_read([counts(0, 4), counts(u32::MAX, 1), counts(1, 3)]));
}

#[test]
fn sums_agree_with_those_of_children_but_for_rounding() {
    let moments = |n, sum, squares| NormalTotals { n_rows: n, weight: f64::from(n), sum, squares };
    let root = moments(5, 1e3, 1e6);
    let (left, right) = (moments(2, 1e3 - 1e-5, 1e6 - 1e-3), moments(3, 1e-5, -1e-9));
    assert!(root.is_sum([&left, &right], &root));
    assert!(!root.is_sum([&left, &moments(4, 1e-5, 1e-3)], &root));
    assert!(!root.is_sum([&left, &moments(3, 1.0, 1e-3)], &root));
    assert!(!root.is_sum([&left, &moments(3, 1e-5, 10.0)], &root));
    assert!(!root.is_sum([&moments(2, f64::NAN, 0.0), &right], &root));
}

#[test]
fn reports_of_islands_agree_with_themselves() {
    let island = |n_particles, ancestors| IslandReport {
        n_particles,
        log_evidence: -1.0,
        n_unfinished: 0,
        stages: vec![Stage { ess: 1.0, log_evidence: -1.0, ancestors }],
    };
    let is_read = |islands: &[IslandReport], n_trees| is_read(&Report::Smc(islands.to_vec()), n_trees);
    assert!(is_read(&[island(2, None), island(2, Some(vec![1, 1]))], 4));
    assert!(!is_read(&[island(2, None)], 3));
    assert!(!is_read(&[], 1));
    assert!(!is_read(&[island(0, None), island(2, None)], 1));
    assert!(!is_read(&[island(u32::MAX, None)], 1));
    assert!(!is_read(&vec![island(1_000_000, None); 11], 1));
    assert!(!is_read(&[island(2, Some(vec![0]))], 1));
    assert!(!is_read(&[island(2, Some(vec![0, 2]))], 1));
    assert!(!is_read(&[IslandReport { n_unfinished: 3, ..island(2, None) }], 1));
    assert!(!is_read(&[IslandReport { log_evidence: f64::NAN, ..island(2, None) }], 1));
    for ess in [f64::NAN, 0.0, 2.1] {
        let stages = vec![Stage { ess, log_evidence: -1.0, ancestors: None }];
        assert!(!is_read(&[IslandReport { stages, ..island(2, None) }], 1));
    }
}

#[test]
fn reports_of_chains_agree_with_themselves() {
    let draw = Draw { log_prior: -1.0, log_likelihood: -1.0, n_leaves: 1, depth: 0 };
    let is_read_of = |draw, lengths: &[usize], n_trees| {
        let chain = |&n: &usize| ChainReport { draws: vec![draw; n], acceptance: Default::default() };
        is_read(&Report::Mcmc(lengths.iter().map(chain).collect()), n_trees)
    };
    let is_read = |lengths: &[usize], n_trees| is_read_of(draw, lengths, n_trees);
    assert!(is_read(&[2, 2], 4));
    assert!(!is_read(&[2, 2], 3));
    assert!(!is_read(&[1, 3], 4));
    assert!(!is_read(&[], 1));
    assert!(!is_read_of(Draw { n_leaves: 2, ..draw }, &[1], 1));
    assert!(!is_read_of(Draw { depth: 1, ..draw }, &[1], 1));
    assert!(!is_read_of(Draw { log_prior: f64::NAN, ..draw }, &[1], 1));
}
