//! Whole runs: continued chains equal longer ones, and callbacks see every sweep.

use crate::bart::posterior::classifier::BartClassifier;
use crate::bart::posterior::regressor::BartRegressor;
use crate::bart::settings::{BartSettings, Sparsity};
use crate::bart::tests::setting::{GROWPRUNE, MIXED, settings, some_rows};
use crate::control::{Control, Run};
use crate::data::Rows;
use crate::data::labels::Label;
use crate::error::Error;
use crate::model_file::AnyModel;
use crate::random::keyed::Stream;

fn all_settings() -> Vec<BartSettings> {
    let short = |kernels| BartSettings {
        n_chains: 2,
        n_burn: 10,
        n_draws: 4,
        thin: 3,
        seed: 4,
        ..settings(kernels, 5)
    };
    vec![short(GROWPRUNE), short(MIXED), BartSettings { sparse: Some(Sparsity::default()), ..short(MIXED) }]
}

/// A continued chain, also from a file, equals an uninterrupted one bit for bit.
#[test]
fn continued_chains_equal_longer_ones() {
    let (x, y) = some_rows(60, &mut Stream::new(5, 0));
    let rows = Rows::from_f64(&x, 4).unwrap();
    let run = Run::default();
    for settings in all_settings() {
        let more = BartSettings { n_draws: 9, ..settings.clone() };
        let short = BartRegressor::fit(&settings, rows, &y, &run).unwrap();
        let once = BartRegressor::fit(&more, rows, &y, &run).unwrap();
        let AnyModel::BartRegressor(read) = AnyModel::from_bytes(&short.to_bytes(), &run).unwrap() else {
            panic!("a regressor was written");
        };
        let twice = BartRegressor::fit_from(Some(&read), None, (&more, rows, &y, None), &run).unwrap();
        assert_eq!(twice.to_bytes(), once.to_bytes());
        let other = BartSettings { k: 1.0, ..more.clone() };
        assert!(BartRegressor::fit_from(Some(&short), None, (&other, rows, &y, None), &run).is_err());
        let fewer = BartSettings { n_draws: 3, ..more.clone() };
        assert!(BartRegressor::fit_from(Some(&short), None, (&fewer, rows, &y, None), &run).is_err());
        for n_classes in [2, 3] {
            let label = |y: &f64| Label::Int(((y + 2.0) * 1.5) as i64 % n_classes);
            let labels: Vec<Label> = y.iter().map(label).collect();
            let short = BartClassifier::fit(&settings, rows, &labels, &run).unwrap();
            let once = BartClassifier::fit(&more, rows, &labels, &run).unwrap();
            let twice =
                BartClassifier::fit_from(Some(&short), None, (&more, rows, &labels, None), &run).unwrap();
            assert_eq!(twice.to_bytes(), once.to_bytes());
            let AnyModel::BartClassifier(read) = AnyModel::from_bytes(&once.to_bytes(), &run).unwrap() else {
                panic!("a classifier was written");
            };
            assert_eq!(read.predict_draws(rows, &run).unwrap(), once.predict_draws(rows, &run).unwrap());
        }
    }
}

/// Fits of single chains, joined, equal the fit of all chains bit for bit, and so do those that continue it.
#[test]
fn joined_chains_equal_one_fit() {
    let (x, y) = some_rows(60, &mut Stream::new(5, 0));
    let rows = Rows::from_f64(&x, 4).unwrap();
    let (run, n_chains) = (Run::default(), 3);
    let labels: Vec<Label> = y.iter().map(|y| Label::Int(((y + 2.0) * 1.5) as i64 % 3)).collect();
    for settings in all_settings() {
        let settings = BartSettings { n_chains, ..settings };
        let more = BartSettings { n_draws: 9, ..settings.clone() };
        let only = |settings: &BartSettings, chain| BartSettings { chain: Some(chain), ..settings.clone() };
        let of_chain = |settings: &BartSettings, from: Option<&BartRegressor>, chain| {
            let settings = only(settings, chain);
            BartRegressor::fit_from(from, None, (&settings, rows, &y, None), &run).unwrap()
        };
        let chains: Vec<BartRegressor> = (0..n_chains).map(|i| of_chain(&settings, None, i)).collect();
        let joined = BartRegressor::join(chains.clone()).unwrap();
        assert_eq!(joined.to_bytes(), BartRegressor::fit(&settings, rows, &y, &run).unwrap().to_bytes());
        let longer = (0..n_chains).map(|i| of_chain(&more, Some(&joined), i)).collect();
        let once = BartRegressor::fit(&more, rows, &y, &run).unwrap();
        assert_eq!(BartRegressor::join(longer).unwrap().to_bytes(), once.to_bytes());

        let of_chain = |i| BartClassifier::fit(&only(&settings, i), rows, &labels, &run).unwrap();
        let joined = BartClassifier::join((0..n_chains).map(of_chain).collect()).unwrap();
        assert_eq!(
            joined.to_bytes(),
            BartClassifier::fit(&settings, rows, &labels, &run).unwrap().to_bytes()
        );

        let other =
            BartRegressor::fit(&BartSettings { seed: 9, ..only(&settings, 1) }, rows, &y, &run).unwrap();
        let refused = BartRegressor::join(vec![chains[0].clone(), other]).unwrap_err();
        assert_eq!(refused, Error::NotJoinable { what: "X, y and settings" });
        let twice = [0, 1, 0].map(|i| chains[i].clone()).to_vec();
        let refused = BartRegressor::join(twice).unwrap_err().to_string();
        assert!(refused.ends_with("found the same draws in fits 0 and 2"), "{refused}");
        assert!(only(&settings, n_chains).check().is_err());
    }
    assert!(BartRegressor::join(Vec::new()).is_err() && BartClassifier::join(Vec::new()).is_err());
}

/// The callback is called once for every sweep, and an error of it ends all chains.
#[test]
fn every_sweep_is_reported() {
    let (x, y) = some_rows(30, &mut Stream::new(6, 0));
    let rows = Rows::from_f64(&x, 4).unwrap();
    let settings = &all_settings()[0];
    let seen = std::sync::Mutex::new(Vec::new());
    let watch = |sweep: &crate::bart::chain::Sweep| {
        seen.lock().unwrap().push(*sweep);
        Ok(())
    };
    let run = Run { n_threads: 2, ..Run::default() };
    let model = BartRegressor::fit_from(None, Some(&watch), (settings, rows, &y, None), &run).unwrap();
    let seen = seen.into_inner().unwrap();
    for (chain, trace) in model.traces().iter().enumerate() {
        let own: Vec<_> = seen.iter().filter(|sweep| sweep.chain == chain).collect();
        assert!(own.iter().map(|sweep| sweep.iteration).eq(1..=22));
        let kept = (0..4).map(|draw| own[10 + 3 * draw + 2]);
        assert!(
            kept.map(|sweep| (sweep.sigma, sweep.log_likelihood)).eq(trace
                .sigma
                .iter()
                .copied()
                .zip(trace.log_likelihood.iter().copied()))
        );
    }
    let stop = |sweep: &crate::bart::chain::Sweep| {
        if sweep.iteration < 5 { Ok(()) } else { Err(Error::Interrupted) }
    };
    let control = Control::new();
    let run = Run { control: &control, ..run };
    let ended = BartRegressor::fit_from(None, Some(&stop), (settings, rows, &y, None), &run);
    assert_eq!(ended.unwrap_err(), Error::Interrupted);
}
