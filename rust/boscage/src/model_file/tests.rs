use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::*;
use crate::bart::settings::{BartSettings, Sparsity};
use crate::bayes::leaf::normal::NormalPrior;
use crate::bayes::mcmc::McmcSettings;
use crate::bayes::posterior::weighted_trees::Sampler;
use crate::bayes::prior::ChipmanPrior;
use crate::bayes::smc::settings::SmcSettings;
use crate::data::Rows;
use crate::data::labels::Label;
use crate::mondrian::cells::plan::{CellPlan, RowExtent};
use crate::mondrian::classification::frozen::ClassifierFreezer;
use crate::mondrian::classification::settings::ClassificationSettings;
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::process::domain::Domain;
use crate::mondrian::process::feature_map::FeatureMap;
use crate::mondrian::regression::frozen::RegressorFreezer;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::settings::RegressionSettings;

const X: [f64; 4] = [0.0, 1.0, 2.0, 3.0];
const Y: [f64; 4] = [0.0, 0.1, 1.0, 0.9];

/// A small file of every kind, with all optional parts of the kind.
fn files() -> Vec<Vec<u8>> {
    let run = Run::default();
    let rows = Rows::from_f64(&X, 1).unwrap();
    let labels = [Label::Text("no".into()), Label::Int(7)];
    let codes = [0, 0, 1, 1];
    let forest = MondrianSettings { n_estimators: 1, ..MondrianSettings::default() };
    let map = FeatureMap::new(vec![0.0, 1.0, 3.0], vec![0.0, 0.9, 1.0]).unwrap();
    let domain = Domain::of_rows(rows, None).unwrap().with_maps(vec![map]).unwrap();
    let batch = Batch { rows, ids: None, weights: None };
    let prior = ChipmanPrior::new(0.95, 0.5).unwrap();
    let smc = Sampler::Smc(SmcSettings { n_particles: 3, n_islands: 2, ..SmcSettings::default() });
    let mcmc = Sampler::Mcmc(McmcSettings { n_chains: 2, n_draws: 2, ..McmcSettings::default() });
    let leaf = NormalPrior { prior_mean: 0.5, kappa: 1.0, shape: 1.0, scale: 0.1 };
    let bart = BartSettings {
        n_trees: 2,
        n_chains: 2,
        n_burn: 1,
        n_draws: 2,
        sparse: Some(Sparsity::default()),
        ..BartSettings::default()
    };
    let (classification, regression) = (ClassificationSettings::default(), RegressionSettings::default());
    let two: Vec<Label> = codes.iter().map(|&code| labels[code as usize].clone()).collect();
    let targets = (&codes[..], &labels[..]);
    vec![
        MondrianClassifier::fit(
            forest.clone(),
            classification,
            domain.clone(),
            batch,
            targets,
            &labels,
            &run,
        )
        .unwrap()
        .to_bytes(),
        MondrianRegressor::fit(forest, regression, domain, batch, &Y, &run).unwrap().to_bytes(),
        BayesianTreeClassifier::fit(&prior, 5.0, &smc, rows, targets, &run).unwrap().to_bytes(),
        BayesianTreeRegressor::fit(&prior, leaf, &mcmc, rows, &Y, &run).unwrap().to_bytes(),
        BartClassifier::fit(&bart, rows, &two, &run).unwrap().to_bytes(),
        BartRegressor::fit(&bart, rows, &Y, &run).unwrap().to_bytes(),
        frozen_classifier().to_bytes(),
        frozen_regressor().to_bytes(),
    ]
}

/// The plan of one tree with one cell, and without cuts.
fn plan(rows: Rows<'_>) -> CellPlan {
    let map = FeatureMap::new(vec![0.0, 1.0, 3.0], vec![0.0, 0.9, 1.0]).unwrap();
    let domain = Domain::of_rows(rows, None).unwrap().with_maps(vec![map]).unwrap();
    let realised =
        MondrianSettings { n_estimators: 1, predictive: Predictive::Realised, ..MondrianSettings::default() };
    let extent = RowExtent::of(&domain, rows).unwrap();
    CellPlan::new(realised, domain, extent).unwrap()
}

fn frozen_classifier() -> FrozenClassifier {
    let (rows, run) = (Rows::from_f64(&X, 1).unwrap(), Run::default());
    let labels = [Label::Int(7), Label::Text("no".into())];
    let mut freezer = ClassifierFreezer::new(plan(rows), 10.0, &labels, &[1, 3]).unwrap();
    freezer.grow(freezer.next_cells(1).unwrap(), rows, &[1, 1, 0, 1], &run).unwrap();
    freezer.finish(&run).unwrap()
}

fn frozen_regressor() -> FrozenRegressor {
    let (rows, run) = (Rows::from_f64(&X, 1).unwrap(), Run::default());
    let hyper = Hyperparameters {
        mu: 0.5,
        gamma1: 1.0,
        gamma2: 2.0,
        noise_variance: 0.1,
        delay: 0.0,
        coarse: CoarsePrior::NONE,
    };
    let mut freezer = RegressorFreezer::new(plan(rows)).unwrap();
    freezer.grow(freezer.next_cells(1).unwrap(), rows, &Y, &run).unwrap();
    freezer.set_hyperparameters(hyper).unwrap();
    freezer.finish(&run).unwrap()
}

#[test]
fn forests_without_rows_predict_as_before_they_were_saved() {
    let (rows, run) = (Rows::from_f64(&[-1.0, 0.3, 1.7, 9.0], 1).unwrap(), Run::default());
    let classifier = frozen_classifier();
    let again = FrozenClassifier::from_bytes(&classifier.to_bytes_annotated("a note"), &run).unwrap();
    assert_eq!(again.predict_proba(rows, &run).unwrap(), classifier.predict_proba(rows, &run).unwrap());
    assert_eq!((again.classes(), again.annotation(), again.n_rows()), (classifier.classes(), "a note", 4));
    let regressor = frozen_regressor();
    let again = FrozenRegressor::from_bytes(&regressor.to_bytes(), &run).unwrap();
    assert_eq!(again.predict(rows, &run).unwrap(), regressor.predict(rows, &run).unwrap());
    assert_eq!(again.hyperparameters(), regressor.hyperparameters());
}

/// Replaces some bytes, and recomputes the checksum.
fn changed(file: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut content = file[..file.len() - CHECKSUM].to_vec();
    content[at..at + with.len()].copy_from_slice(with);
    let sum = Sha256::digest(&content);
    content.extend_from_slice(&sum);
    content
}

/// Every field of a file, with its path and first byte.
fn fields(file: &[u8]) -> Vec<(String, usize)> {
    let mut fields = Vec::new();
    read_model(file, |kind, reader| {
        reader.fields.clear();
        let run = Run::default();
        match kind {
            ModelKind::MondrianClassifier => mondrian::read_classifier(reader, &run).map(drop),
            ModelKind::MondrianRegressor => mondrian::read_regressor(reader, &run).map(drop),
            ModelKind::BayesianTreeClassifier => bayes::read_classifier(reader, &run).map(drop),
            ModelKind::BayesianTreeRegressor => bayes::read_regressor(reader, &run).map(drop),
            ModelKind::BartClassifier => bart::read_classifier(reader, &run).map(drop),
            ModelKind::BartRegressor => bart::read_regressor(reader, &run).map(drop),
            ModelKind::FrozenClassifier => frozen::read_classifier(reader, &run).map(drop),
            ModelKind::FrozenRegressor => frozen::read_regressor(reader, &run).map(drop),
        }?;
        fields.clone_from(&reader.fields);
        Ok(())
    })
    .unwrap();
    // A text is read as a length and its bytes: errors name the first byte of both.
    fields.dedup_by(|next, first| next.0 == first.0);
    fields
}

fn message(file: &[u8]) -> Option<String> {
    match AnyModel::from_bytes(file, &Run::default()) {
        Ok(_) => None,
        Err(Error::ModelFile(message)) => Some(message),
        Err(other) => panic!("another error: {other}"),
    }
}

/// The byte, the path and the rest of an error message.
fn parts(message: &str) -> Option<(usize, &str, &str)> {
    let (byte, rest) = message.strip_prefix("byte ")?.split_once(", ")?;
    let (path, what) = rest.split_once(": ")?;
    let is_path = !path.is_empty() && !path.contains(' ');
    Some((byte.replace(',', "").parse().ok()?, path, what)).filter(|_| is_path)
}

/// The path without indices.
fn plain(path: &str) -> String {
    path.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect()
}

/// Fields that may have any value, and fields whose errors are reported for the group or list that contains
/// them.
const NEVER_REFUSED: [&str; 22] = [
    "ends.sweeps",
    "ends.trees.nodes.feature",
    "ends.trees.nodes.rank",
    "fingerprint",
    "leaf_prior.kappa",
    "leaf_prior.prior_mean",
    "leaf_prior.scale",
    "leaf_prior.shape",
    "n_features",
    "next_id",
    "report.chains.draws.depth",
    "report.chains.draws.n_leaves",
    "report.chains.moves.tried",
    "seed",
    "settings.lifetime",
    "settings.min_samples_split",
    "settings.n_estimators",
    "settings.seed",
    "traces.steps.accepted",
    "traces.steps.tried",
    "trees.nodes.counts",
    "trees.nodes.n_rows",
];

#[test]
fn every_error_names_byte_and_field() {
    for (file, kind) in files().iter().zip(ModelKind::ALL) {
        let fields = fields(file);
        assert!(fields.len() > 15, "{kind:?}");
        let mut refused = BTreeSet::new();
        for (path, at) in &fields {
            // Numbers too large, too small, or NaN; and lengths of texts and lists.
            for with in
                [&[0xff_u8; 1][..], &[0xff; 4], &[0xff; 8], &[0; 8], &[7; 1], &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f]]
            {
                if at + with.len() > file.len() - CHECKSUM {
                    continue;
                }
                if let Some(message) = message(&changed(file, *at, with)) {
                    let (byte, found, what) =
                        parts(&message).unwrap_or_else(|| panic!("{kind:?}: {message}"));
                    assert!(byte <= file.len() && !what.is_empty(), "{message}");
                    assert!(what.contains("expected") || what.contains("must be"), "{kind:?}: {message}");
                    if found == path {
                        assert!(byte >= *at, "{message}");
                        refused.insert(plain(path));
                    }
                }
            }
        }
        let names: BTreeSet<String> = fields.iter().map(|(path, _)| plain(path)).collect();
        let never: Vec<&str> = names
            .difference(&refused)
            .map(String::as_str)
            .filter(|name| !NEVER_REFUSED.contains(name))
            .collect();
        assert!(never.is_empty(), "{kind:?}: no value is refused of {never:?}");
    }
}

#[test]
fn messages_say_what_was_expected_and_found() {
    use ModelKind::{BartRegressor as Bart, BayesianTreeClassifier as Smc, BayesianTreeRegressor as Mcmc};
    use ModelKind::{MondrianClassifier as Classifier, MondrianRegressor as Regressor};
    let files = files();
    let nan = f64::NAN.to_le_bytes();
    let check = |kind: ModelKind, path: &str, with: &[u8], expected: &str| {
        let file = &files[kind as usize - 1];
        let fields = fields(file);
        let (_, at) = fields.iter().find(|(found, _)| found == path).unwrap_or_else(|| {
            panic!("{path} is not among {:?}", fields.iter().map(|(path, _)| path).collect::<Vec<_>>())
        });
        let message = message(&changed(file, *at, with)).expect(path);
        let (byte, found, what) = parts(&message).unwrap();
        assert_eq!((byte, found, what), (*at, path, expected), "{message}");
    };
    check(Classifier, "discount", &(-1.0f64).to_le_bytes(), "expected positive and finite, found -1");
    check(Classifier, "calibration", &[3], "expected 0 (None) or 1 (PowerAlone) or 2 (LeaveOneOut), found 3");
    check(Classifier, "settings.predictive", &[7], "expected 0 (Averaged) or 1 (Realised), found 7");
    check(Classifier, "value_width", &[5], "expected 4 or 8 bytes, found 5");
    check(Classifier, "targets[2]", &[9], "expected the number of a class, below 2, found 9");
    check(
        Classifier,
        "values",
        &[0, 0, 0xc0, 0x7f],
        "row 0, feature 0 of X is missing (NaN); expected a number, since the model has not learned from missing values",
    );
    check(
        Classifier,
        "annotation",
        &[0xff; 8],
        "expected a length of at most 205, for which there are bytes left, found 18446744073709551615",
    );
    check(Regressor, "targets[3]", &nan, "expected a finite number, found NaN");
    check(
        Regressor,
        "regression.hyperparameters",
        &[1],
        "expected no number, four (mu, gamma1, gamma2 and the noise variance) or seven (and the delay and the coarse variance and rate), found 1",
    );
    check(Smc, "trees[0].nodes[0].is_split", &[7], "expected a flag (0 or 1), found 7");
    check(
        Smc,
        "report.islands[0].n_unfinished",
        &[9],
        "expected at most 3, the number of particles, found 9",
    );
    check(Mcmc, "ranges[0].high", &(-1.0f64).to_le_bytes(), "expected at least 0, found -1");
    check(Bart, "n_trees", &[0], "expected at least 1, found 0");
    check(
        Bart,
        "drawn_nodes[0].feature",
        &[1, 0, 0, 0],
        "expected a feature below 1, or 4294967295 for a leaf, found 1",
    );
    check(Bart, "ends[0].trees[0].nodes[0].kind", &[7], "expected 0 (free), 1 (leaf) or 2 (split), found 7");
}

#[test]
fn headers_and_checksums_are_checked_first() {
    let file = &files()[0];
    let about = |file: &[u8]| message(file).unwrap();
    assert_eq!(about(b"a,b\n1,2\n3,4"), r#"byte 0, magic: expected "BOSCAGE\x00", found "a,b\n1,2\n""#);
    assert_eq!(about(b""), r#"byte 0, magic: expected "BOSCAGE\x00", found """#);
    assert_eq!(
        about(&file[..10]),
        "byte 8, format_version: expected 4 bytes, found the end of the file after 2"
    );
    let later = changed(file, 8, &[NEWEST as u8 + 1]);
    let expected = format!(
        "byte 8, format_version: expected 1 to {NEWEST}, the versions that this release of boscage reads, found {}",
        NEWEST + 1
    );
    assert_eq!(about(&later), expected);
    assert_eq!(
        about(&changed(file, 12, &[77])),
        "byte 12, kind: expected the number of a kind of model, 1 to 8, found 77"
    );
    for damaged in [&file[..file.len() - 1], &file[..40], &[&file[..], b"more"].concat()] {
        let (byte, path, what) = parts(&about(damaged))
            .map(|(byte, path, what)| (byte, path.to_owned(), what.to_owned()))
            .unwrap();
        assert_eq!((byte, path.as_str()), (damaged.len() - CHECKSUM, "checksum"));
        assert!(what.ends_with("bytes were changed, or the file was cut off"), "{what}");
    }
}

#[test]
fn kinds_have_numbers_and_names_of_their_own() {
    for (file, kind) in files().iter().zip(ModelKind::ALL) {
        assert_eq!(model_kind(file).unwrap(), *kind);
        let model = AnyModel::from_bytes(file, &Run::default()).unwrap();
        assert_eq!(model.kind(), *kind);
        assert_eq!(file[12], *kind as u8);
    }
    let names: BTreeSet<&str> = ModelKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), ModelKind::ALL.len());
    assert_eq!(
        BartRegressor::from_bytes(&files()[0], &Run::default()).unwrap_err().to_string(),
        "the model is a Mondrian forest classifier, not a BART regressor"
    );
}

/// A separate folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("boscage-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn saves_sweep_up_what_killed_saves_left() {
    let folder = folder("swept");
    let old = SystemTime::now() - Duration::from_secs(3600);
    let make = |name: &str, modified: SystemTime| {
        let file = File::create(folder.join(name)).unwrap();
        file.set_modified(modified).unwrap();
        file
    };
    make("model.4194999.part", old);
    make(&format!("model.{}-3.part", std::process::id()), old);
    // Part files of a writer that has just started, of one at work and of another model, and other files.
    make("model.4194998.part", SystemTime::now());
    let at_work = make("model.17.part", old);
    at_work.lock().unwrap();
    for name in ["other.4194999.part", "model.part", "model.bak.part", "model.-1.part"] {
        make(name, old);
    }
    save::save(&folder.join("model"), b"whole").unwrap();
    let left = [
        "model",
        "model.-1.part",
        "model.17.part",
        "model.4194998.part",
        "model.bak.part",
        "model.part",
        "other.4194999.part",
    ];
    assert_eq!(names(&folder), left);
    drop(at_work);
    save::save(&folder.join("model"), b"again").unwrap();
    assert!(!names(&folder).contains(&"model.17.part".to_owned()));
    assert_eq!(fs::read(folder.join("model")).unwrap(), b"again");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn saves_that_fail_leave_nothing_behind() {
    let folder = folder("failed");
    let model = AnyModel::from_bytes(&files()[1], &Run::default()).unwrap();
    let AnyModel::MondrianRegressor(model) = model else { panic!("the second kind is the regressor") };
    // A folder cannot be replaced by a file.
    fs::create_dir(folder.join("model")).unwrap();
    let error = model.save(folder.join("model")).unwrap_err();
    assert!(matches!(&error, Error::Io { action: "write", code: Some(_), .. }), "{error:?}");
    assert!(error.to_string().starts_with("cannot write "), "{error}");
    assert_eq!(names(&folder), ["model"]);
    let missing = model.save(folder.join("missing").join("model")).unwrap_err();
    assert!(matches!(missing, Error::Io { code: Some(2), .. }), "{missing:?}");
    assert!(model.save("/").is_err());
    let error = load(folder.join("nothing"), &Run::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot read "), "{error}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn threads_that_save_at_once_leave_one_whole_file() {
    let folder = folder("threads");
    let path = folder.join("model");
    std::thread::scope(|scope| {
        for i in 0..8u8 {
            let path = &path;
            scope.spawn(move || save::save(path, &vec![i; 100_000]).unwrap());
        }
    });
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes, vec![bytes[0]; 100_000]);
    assert_eq!(names(&folder), ["model"]);
    fs::remove_dir_all(folder).unwrap();
}
