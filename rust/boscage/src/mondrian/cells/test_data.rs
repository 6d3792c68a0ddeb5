//! Rows, settings and plans by chance, for the tests of forests that grow by cells.

use super::counts::CellCount;
use super::plan::{CellPlan, RowExtent};
use crate::control::Run;
use crate::data::{Label, Rows};
use crate::mondrian::classification::settings::{Calibration, ClassificationSettings};
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::process::domain::Domain;
use crate::random::keyed::Stream;

pub(crate) const FEATURES: usize = 3;

/// Rows with classes, and perhaps weights.
pub(crate) struct Data {
    pub(crate) x: Vec<f64>,
    pub(crate) codes: Vec<u32>,
    pub(crate) labels: Vec<Label>,
    pub(crate) weights: Option<Vec<f64>>,
}

impl Data {
    /// Rows of which some coincide, and some lie far outside the ranges; with few classes or with many.
    pub(crate) fn random(stream: &mut Stream, n_rows: usize) -> Self {
        let (far, few, n_classes) = (stream.below(3), stream.below(3), [2, 3, 70][stream.below(3)]);
        let mut x = Vec::new();
        for _ in 0..n_rows {
            let scale = if stream.below(20) < far { 40.0 } else { 1.0 };
            for _ in 0..FEATURES {
                let value = stream.unit();
                let value = if few == 0 { (value * 6.0).floor() / 4.0 } else { value };
                x.push(scale * if few == 1 { f64::from(value as f32) } else { value });
            }
        }
        // Half of the rows have the class of their place, so that some nodes are pure.
        let code = |row: usize, stream: &mut Stream| {
            let own = (x[row * FEATURES] * n_classes as f64).abs() as usize % n_classes;
            (if stream.below(4) == 0 { stream.below(n_classes) } else { own }) as u32
        };
        let codes = (0..n_rows).map(|row| code(row, stream)).collect();
        let labels = (0..n_classes).map(|i| Label::Int(i as i64)).collect();
        let weights = (stream.below(3) == 0)
            .then(|| (0..n_rows).map(|_| [0.25, 1.0, 1.0, 3.5][stream.below(4)]).collect());
        Self { x, codes, labels, weights }
    }

    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows::from_f64(&self.x, FEATURES).unwrap()
    }

    pub(crate) fn row(&self, row: u32) -> &[f64] {
        &self.x[row as usize * FEATURES..][..FEATURES]
    }

    pub(crate) fn some(&self, rows: &[u32]) -> Self {
        Self {
            x: rows.iter().flat_map(|&i| self.row(i)).copied().collect(),
            codes: rows.iter().map(|&i| self.codes[i as usize]).collect(),
            labels: self.labels.clone(),
            weights: self.weights.as_ref().map(|own| rows.iter().map(|&i| own[i as usize]).collect()),
        }
    }

    /// The classes as numbers.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        self.codes.iter().map(|&code| f64::from(code)).collect()
    }

    pub(crate) fn batch(&self) -> Batch<'_> {
        Batch { rows: self.rows(), ids: None, weights: self.weights.as_deref() }
    }
}

pub(crate) fn settings(stream: &mut Stream, seed: u64) -> MondrianSettings {
    MondrianSettings {
        n_estimators: 1 + stream.below(4),
        lifetime: [f64::INFINITY, 3.0][stream.below(2)],
        min_samples_split: [2, 9, 30][stream.below(3)],
        predictive: [Predictive::Averaged, Predictive::Realised][stream.below(2)],
        seed,
        share: None,
    }
}

pub(crate) fn classification() -> ClassificationSettings {
    ClassificationSettings { calibration: Calibration::None, ..ClassificationSettings::default() }
}

pub(crate) fn domain() -> Domain {
    Domain::new(vec![0.0; FEATURES], vec![1.0; FEATURES], Some(vec![1.0, 0.5, 2.0])).unwrap()
}

/// A plan of cells that some number of passes over the rows, in parts, have made.
pub(crate) fn plan(stream: &mut Stream, settings: MondrianSettings, data: &Data, one_less: bool) -> CellPlan {
    let run = Run::default();
    let extent = RowExtent::of(&domain(), data.rows()).unwrap();
    let targets = data.numbers();
    let least = stream.below(40) as u64;
    let mut plan = CellPlan::new(settings, domain(), extent).unwrap();
    for _ in 0..stream.below(4) {
        let is_cut: Vec<bool> = (0..plan.n_cells()).map(|_| stream.below(4) > 0).collect();
        plan = plan.refined(&is_cut, 1 + stream.below(5)).unwrap();
        let middle = stream.below(targets.len());
        let part =
            |start, end| plan.count(data.rows().slice(start, end), &targets[start..end], &run).unwrap();
        let sums: Vec<CellCount> =
            part(0, middle).into_iter().zip(part(middle, targets.len())).map(|(a, b)| a.and(b)).collect();
        let (condensed, counts, _) = plan.condensed(&sums, least, one_less).unwrap();
        assert_eq!(counts.len(), condensed.n_cells());
        assert!(counts.iter().all(|count| count.n_rows > 0));
        assert_eq!(condensed.count(data.rows(), &targets, &run).unwrap(), counts);
        plan = condensed;
    }
    plan
}
