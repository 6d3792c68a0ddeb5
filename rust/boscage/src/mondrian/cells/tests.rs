//! A forest whose cells are shared out is that of one fit, for any plan: digest and predictions, to the bit.

use super::counts::CellCount;
use super::plan::{CellPlan, RowExtent};
use super::share::CellShare;
use super::statistics::CellPosterior;
use super::test_data::{self, Data, FEATURES, classification, domain, settings};
use crate::control::Run;
use crate::data::Label;
use crate::error::{Error, Result};
use crate::mondrian::classification::calibration::CalibrationLink;
use crate::mondrian::classification::cell_votes::ClassifierCells;
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::classification::settings::{Calibration, ClassPosterior, ClassificationSettings};
use crate::mondrian::forest::rows_by_contents::Copies;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::regression::cells::RegressorCells;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hyperparameters::choice::TargetMoments;
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::regression::settings::{HyperparameterRule, Noise, Posterior, RegressionSettings};
use crate::random::keyed::Stream;

/// A plan whose cells have owners by chance.
fn plan(
    stream: &mut Stream,
    settings: MondrianSettings,
    (data, one_less): (&Data, bool),
    n_owners: usize,
) -> CellPlan {
    let plan = test_data::plan(stream, settings, data, one_less);
    let owners = (0..plan.n_cells()).map(|_| stream.below(n_owners) as u32).collect();
    plan.owned(owners).unwrap()
}

fn shares(plan: &CellPlan, data: &Data, n_owners: usize) -> Vec<ClassifierCells> {
    let mut n_rows_of = vec![0; data.labels.len()];
    data.codes.iter().for_each(|&code| n_rows_of[code as usize] += 1);
    let grow = |(owner, rows): (usize, Vec<u32>)| {
        let own = data.some(&rows);
        let targets = ((&own.codes[..], &own.labels[..]), &n_rows_of[..]);
        let new =
            ClassifierCells::new(plan.clone(), owner as u32, classification(), own.batch(), targets, &[]);
        new.and_then(grown)
    };
    let by_owner = plan.rows_by_owner(data.rows(), n_owners, &Run::default()).unwrap();
    for (owner, rows) in (0..).zip(&by_owner) {
        assert_eq!(plan.rows_of(data.rows(), owner, &Run::default()).unwrap(), *rows);
    }
    by_owner.into_iter().enumerate().map(grow).collect::<Result<_>>().unwrap()
}

fn grown<P: CellPosterior>(mut share: CellShare<P>) -> Result<CellShare<P>> {
    share.grow(&Run::default())?;
    Ok(share)
}

fn join<P: CellPosterior>(shares: &mut [CellShare<P>]) {
    let summaries: Vec<Vec<u64>> = shares.iter().map(CellShare::summaries).collect();
    let summaries: Vec<&[u64]> = summaries.iter().map(|words| &words[..]).collect();
    for share in shares {
        share.join(&summaries).unwrap();
    }
}

fn digest<P: CellPosterior>(plan: &CellPlan, shares: &[CellShare<P>]) -> String {
    let (cells, rows): (Vec<_>, Vec<_>) = shares.iter().map(CellShare::hashes).unzip();
    let mut cells: Vec<_> = cells.into_iter().map(Vec::into_iter).collect();
    let of_cells: Vec<_> = plan.owners().iter().map(|&own| cells[own as usize].next().unwrap()).collect();
    shares[0].digest(rows.concat(), &plan.tree_hashes(&of_cells).unwrap())
}

fn proba(plan: &CellPlan, shares: &[ClassifierCells], test: &Data) -> Vec<f64> {
    let run = Run::default();
    let by_owner = plan.rows_by_owner(test.rows(), shares.len(), &run).unwrap();
    let votes: Vec<Vec<u64>> = (shares.iter().zip(by_owner))
        .map(
            |(share, rows)| {
                if rows.is_empty() { vec![] } else { share.votes(test.some(&rows).rows(), &run).unwrap() }
            },
        )
        .collect();
    let votes: Vec<&[u64]> = votes.iter().map(|words| &words[..]).collect();
    shares[0].proba_of_votes(test.rows(), &votes, &CalibrationLink::NONE, &run).unwrap()
}

#[test]
fn owners_of_cells_have_together_the_forest_of_one_fit() {
    let (mut n_cells, mut n_stubs) = (0, 0);
    for seed in 0..400 {
        let mut stream = Stream::new(seed, 0);
        let n_rows = 2 + stream.below(300);
        let data = Data::random(&mut stream, n_rows);
        let test = Data::random(&mut stream, 60);
        let settings = settings(&mut stream, seed);
        let run = Run::default();
        let targets = (&data.codes[..], &data.labels[..]);
        let one = MondrianClassifier::fit(
            settings.clone(),
            classification(),
            domain(),
            data.batch(),
            targets,
            &[],
            &run,
        );
        let one = one.unwrap();
        let n_owners = 1 + stream.below(5);
        let plan = plan(&mut stream, settings.clone(), (&data, false), n_owners);
        let steps = plan.steps();
        let again =
            CellPlan::of_steps(settings.clone(), domain(), plan.extent(), &steps, plan.owners().to_vec());
        let plan = again.unwrap();
        // An owner without rows grows nothing.
        let by_owner = plan.rows_by_owner(data.rows(), n_owners, &run).unwrap();
        if by_owner.iter().any(Vec::is_empty) {
            continue;
        }
        let mut shares = shares(&plan, &data, n_owners);
        assert_eq!(digest(&plan, &shares), one.digest(), "seed {seed}");
        assert_eq!(
            shares.iter().map(CellShare::n_pairs).sum::<usize>(),
            n_rows * settings.n_estimators,
            "each row once in each tree"
        );
        join(&mut shares);
        assert_eq!(digest(&plan, &shares), one.digest(), "seed {seed}, joined");
        assert_eq!(shares[0].classes(), one.classes());
        let expected = one.predict_proba(test.rows(), &run).unwrap();
        let found = proba(&plan, &shares, &test);
        assert_eq!(bits(&found), bits(&expected), "seed {seed}");
        n_cells += plan.n_cells();
        n_stubs += (n_owners - 1) * plan.n_cells();
    }
    assert!(n_cells > 2000 && n_stubs > 3000, "{n_cells} {n_stubs}");
}

/// Rows that are left out, and what calibrates: every owner holds all rows, as it holds those that are left out.
#[test]
fn rows_that_are_left_out_have_the_votes_of_one_fit() {
    let (run, none) = (Run::default(), Calibration::None);
    let (mut n_alone, mut n_nearly, mut n_trends) = (0, 0, 0);
    for seed in 0..400 {
        let mut stream = Stream::new(seed, 2);
        let n_rows = 2 + stream.below(200);
        let mut data = Data::random(&mut stream, n_rows);
        if stream.below(3) == 0 {
            // Some large nodes have one class without one of their rows.
            data.codes.iter_mut().for_each(|code| *code = u32::from(stream.below(40) == 0));
        }
        let settings = settings(&mut stream, seed);
        let calibration = ClassificationSettings::default();
        let targets = (&data.codes[..], &data.labels[..]);
        let declared = &data.labels[..stream.below(2)];
        let fitted = MondrianClassifier::fit(
            settings.clone(),
            calibration.clone(),
            domain(),
            data.batch(),
            targets,
            declared,
            &run,
        );
        let one = fitted.unwrap();
        let n_owners = 1 + stream.below(5);
        let plan = plan(&mut stream, settings, (&data, data.weights.is_some()), n_owners);
        let mut n_rows_of = vec![0; data.labels.len()];
        data.codes.iter().for_each(|&code| n_rows_of[code as usize] += 1);
        let mut shares: Vec<ClassifierCells> = (0..n_owners as u32)
            .map(|owner| {
                let (plan, of_rows) = (plan.clone(), (targets, &n_rows_of[..]));
                let own = (calibration.clone(), data.batch());
                ClassifierCells::new(plan, owner, own.0, own.1, of_rows, declared).and_then(grown).unwrap()
            })
            .collect();
        let rows: Vec<u32> = (0..n_rows as u32).collect();
        assert!(shares[0].left_out_votes(&rows, &[1.0], &run).is_err());
        join(&mut shares);
        let discounts = [0.3, 10.0];
        let asked = |rows: &[u32], discounts: &[f64]| -> Vec<Vec<u64>> {
            let own = |share: &ClassifierCells| share.left_out_votes(rows, discounts, &run).unwrap();
            shares.iter().map(own).collect()
        };
        let votes = asked(&rows, &discounts);
        let votes: Vec<&[u64]> = votes.iter().map(|words| &words[..]).collect();
        let share = &shares[stream.below(n_owners)];
        let plain = [CalibrationLink::NONE, CalibrationLink::NONE];
        let found = share.proba_of_left_out_votes((&rows, &[]), &discounts, &votes, &plain).unwrap();
        let expected = one.loo_proba(&one.ids(), &discounts, none, &run).unwrap();
        assert_eq!(bits(&found), bits(&expected), "seed {seed}");
        let copies = |row: u32| {
            let same = |other: u32| data.row(row) == data.row(other);
            let codes: Vec<u32> =
                rows.iter().filter(|&&other| same(other)).map(|&other| data.codes[other as usize]).collect();
            match codes[..] {
                [_] => Copies::None,
                _ if codes.iter().all(|code| *code == codes[0]) => Copies::Agree,
                _ => Copies::Disagree,
            }
        };
        let chosen: Vec<(u32, Copies)> =
            one.calibrating_ids().into_iter().map(|id| (id as u32, copies(id as u32))).collect();
        let own: Vec<u32> = chosen.iter().map(|&(row, _)| row).collect();
        let votes = asked(&own, &[10.0]);
        let votes: Vec<&[u64]> = votes.iter().map(|words| &words[..]).collect();
        let links = share.links_of_votes((&chosen, &own), &[10.0], &votes).unwrap();
        assert_eq!(links, [one.calibration_link(&run).unwrap()], "seed {seed}");
        n_trends += usize::from(links[0].trend.is_some());
        let found = share.proba_of_left_out_votes((&own, &own), &[10.0], &votes, &links).unwrap();
        let ids: Vec<u64> = own.iter().map(|&row| row.into()).collect();
        let expected = one.loo_proba(&ids, &[10.0], calibration.calibration, &run).unwrap();
        assert_eq!(bits(&found), bits(&expected), "seed {seed}");
        assert!(share.left_out_votes(&[n_rows as u32], &[1.0], &run).is_err());
        let counts = plan.count(data.rows(), &data.numbers(), &run).unwrap();
        n_alone += counts.iter().filter(|count| count.n_rows == 1).count() * usize::from(n_owners > 1);
        n_nearly += counts.iter().filter(|count| count.n_rows > 40 && count.least < count.greatest).count();
    }
    assert!(n_alone > 100 && n_nearly > 100 && n_trends > 5, "{n_alone} {n_nearly} {n_trends}");
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

const RULES: [HyperparameterRule; 3] =
    [HyperparameterRule::Heuristic, HyperparameterRule::MarginalLikelihood, HyperparameterRule::LeaveOneOut];

/// What is chosen for a forest by its first trees alone.
fn chosen(one: &MondrianRegressor, data: &Data, all: TargetMoments) -> Vec<f64> {
    let (settings, run) = (one.settings().clone(), Run::default());
    let regression = one.regression_settings().clone();
    let share = Some(0..regression.n_trees_to_choose(settings.n_estimators));
    let trees = MondrianSettings { share, ..settings };
    let first = MondrianRegressor::fit(trees, regression, domain(), data.batch(), &data.numbers(), &run);
    first.unwrap().choose_for(all, &run).unwrap()
}

#[test]
fn owners_of_cells_have_together_the_regressor_of_one_fit() {
    let (mut n_cells, mut n_stubs) = (0, 0);
    for seed in 0..400 {
        let mut stream = Stream::new(seed, 1);
        let n_rows = 2 + stream.below(300);
        let data = Data::random(&mut stream, n_rows);
        let test = Data::random(&mut stream, 60);
        let (settings, run) = (settings(&mut stream, seed), Run::default());
        let coarse = [CoarsePrior::NONE, CoarsePrior { variance: 0.4, rate: 0.1 }][stream.below(2)];
        let hyper =
            Hyperparameters { mu: 0.5, gamma1: 2.0, gamma2: 0.7, noise_variance: 0.1, delay: 0.0, coarse };
        let noise = [Noise::Global, Noise::Local][stream.below(2)];
        let regression = RegressionSettings {
            posterior: Posterior::Exact,
            rule: RULES[stream.below(RULES.len())],
            noise,
            hyperparameters: (stream.below(2) == 0).then_some(hyper),
            ..RegressionSettings::default()
        };
        let targets = data.numbers();
        let fitted = MondrianRegressor::fit(
            settings.clone(),
            regression.clone(),
            domain(),
            data.batch(),
            &targets,
            &run,
        );
        let one = fitted.unwrap();
        let n_owners = 1 + stream.below(5);
        let plan = plan(&mut stream, settings, (&data, false), n_owners);
        let by_owner = plan.rows_by_owner(data.rows(), n_owners, &run).unwrap();
        if by_owner.iter().any(Vec::is_empty) {
            continue;
        }
        let grow = |(owner, rows): (usize, Vec<u32>)| {
            let own = data.some(&rows);
            let (plan, numbers) = (plan.clone(), own.numbers());
            let new = RegressorCells::new(plan, owner as u32, regression.clone(), own.batch(), &numbers);
            new.and_then(grown)
        };
        let mut shares: Vec<RegressorCells> =
            by_owner.into_iter().enumerate().map(grow).collect::<Result<_>>().unwrap();
        join(&mut shares);
        assert_eq!(digest(&plan, &shares), one.digest(), "seed {seed}");
        let chosen = chosen(&one, &data, shares[0].target_moments().unwrap());
        assert_eq!(bits(&chosen), bits(&one.choose(&run).unwrap()), "seed {seed}");
        assert!(shares[0].sizes(&run).is_err());
        let messages: Vec<Vec<u64>> =
            shares.iter().map(|share| share.messages(&chosen, &run).unwrap()).collect();
        let messages: Vec<&[u64]> = messages.iter().map(|words| &words[..]).collect();
        assert!(shares[0].set_messages(&chosen, &[&messages.concat(), &[0]], &run).is_err());
        for share in &mut shares {
            share.set_messages(&chosen, &messages, &run).unwrap();
        }
        if noise == Noise::Local {
            assert!(shares[0].components(test.rows(), &run).is_err());
            let sizes: Vec<Vec<u64>> = shares.iter().map(|share| share.sizes(&run).unwrap()).collect();
            let sizes: Vec<&[u64]> = sizes.iter().map(|words| &words[..]).collect();
            assert!(shares[0].set_sizes(&chosen, &[&sizes.concat(), &[0]], &run).is_err());
            for share in &mut shares {
                share.set_sizes(&chosen, &sizes, &run).unwrap();
            }
        }
        let of_test = plan.rows_by_owner(test.rows(), n_owners, &run).unwrap();
        let of_share = |(share, rows): (&RegressorCells, Vec<u32>)| match rows[..] {
            [] => vec![],
            _ => share.components(test.some(&rows).rows(), &run).unwrap(),
        };
        let lists: Vec<Vec<u64>> = shares.iter().zip(of_test).map(of_share).collect();
        let lists: Vec<&[u64]> = lists.iter().map(|words| &words[..]).collect();
        let (mean, variance) = shares[0].moments_of_components(test.rows(), &lists, &run).unwrap();
        let expected = one.predict(test.rows(), &run).unwrap();
        assert_eq!((bits(&mean), bits(&variance)), (bits(&expected.0), bits(&expected.1)), "seed {seed}");
        n_cells += plan.n_cells();
        n_stubs += (n_owners - 1) * plan.n_cells();
    }
    assert!(n_cells > 1500 && n_stubs > 2500, "{n_cells} {n_stubs}");
}

#[test]
fn what_is_not_of_the_plan_is_refused() {
    let mut stream = Stream::new(1, 0);
    let data = Data::random(&mut stream, 200);
    let settings = MondrianSettings { n_estimators: 2, ..MondrianSettings::default() };
    let run = Run::default();
    let extent = RowExtent::of(&domain(), data.rows()).unwrap();
    let plan = CellPlan::new(settings.clone(), domain(), extent).unwrap();
    let is_wrong =
        |result: Result<CellPlan>| matches!(result, Err(Error::InvalidSetting { .. } | Error::Length { .. }));
    for steps in [&[1][..], &[0, 0], &[1, 0], &[7], &[]] {
        let both = [steps.to_vec(), vec![0]];
        assert!(is_wrong(CellPlan::of_steps(settings.clone(), domain(), extent, &both, vec![0; 2])));
    }
    assert!(is_wrong(plan.owned(vec![0])));
    let of_rows = |n_rows| vec![CellCount { n_rows, greatest: 1.0, least: 0.0, ..CellCount::NONE }; 2];
    assert!(matches!(plan.condensed(&of_rows(1 << 31), 0, false), Err(Error::TooManyRows { .. })));
    assert!(matches!(plan.condensed(&of_rows(0), 0, true), Err(Error::Empty { .. })));
    let near = RowExtent { level: 0, ..extent };
    let far = Data { x: vec![30.0; FEATURES], codes: vec![0], labels: vec![Label::Int(0)], weights: None };
    let small = CellPlan::new(settings, domain(), near).unwrap();
    let new = |plan: &CellPlan, settings, data: &Data| {
        let targets = ((&data.codes[..], &data.labels[..]), &vec![1; data.labels.len()][..]);
        ClassifierCells::new(plan.clone(), 0, settings, data.batch(), targets, &[])
    };
    assert!(matches!(new(&small, classification(), &far), Err(Error::InvalidSetting { .. })));
    let joint = ClassificationSettings {
        posterior: ClassPosterior::Joint,
        calibration: Calibration::LeaveOneOut,
        ..classification()
    };
    assert!(matches!(new(&plan, joint, &data), Err(Error::InvalidSetting { .. })));
    let mut share = new(&plan, classification(), &data).unwrap();
    assert!(share.join(&[]).is_err());
    assert!(share.first_rows().is_empty() && share.summaries().is_empty());
    share = grown(share).unwrap();
    assert!(share.grow(&run).is_err());
    assert!(share.votes(data.rows(), &run).is_err());
    let words = share.summaries();
    for wrong in [&words[1..], &words[..words.len() - 1], &[&words[..], &[0]].concat()] {
        assert!(share.join(&[wrong]).is_err());
    }
    share.join(&[&words]).unwrap();
    assert!(share.join(&[&words]).is_err());
    assert_eq!(share.summaries(), words);
    let votes = share.votes(data.rows(), &run).unwrap();
    let link = &CalibrationLink::NONE;
    assert!(share.proba_of_votes(data.rows(), &[&votes[1..]], link, &run).is_err());
    assert!(share.proba_of_votes(data.rows(), &[&votes], link, &run).is_ok());
}
