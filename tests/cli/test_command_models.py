"""The command line serves all six estimators."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boscage
from boscage import (
    SMC,
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    Kernels,
)
from boscage._cli.arguments import parser
from boscage._cli.estimators import CLASSIFICATION, MODELS, REGRESSION, Option
from command_line import COMMAND, fails, flowers, patients, read, run

TASKS = {
    CLASSIFICATION: ["iris_train.csv", "-t", "species", "--drop", "id"],
    REGRESSION: ["diabetes_train.csv", "-t", "progression"],
}
SHORT = {
    "bayes-tree": ["--n-particles", "5", "--n-islands", "2"],
    "bart": ["--n-trees", "5", "--n-chains", "1", "--n-burn", "20", "--n-draws", "30"],
}
EXPECTED: dict[tuple[str, str], Any] = {
    ("bayes-tree", CLASSIFICATION): BayesianTreeClassifier,
    ("bayes-tree", REGRESSION): BayesianTreeRegressor,
    ("bart", CLASSIFICATION): BARTClassifier,
    ("bart", REGRESSION): BARTRegressor,
}


def data(task: str) -> tuple[Any, Any]:
    if task == CLASSIFICATION:
        train = flowers()[:120]
        return train.select([f"x{d}" for d in range(4)]), train["species"].to_pylist()
    train = patients()[:342]
    return train.drop_columns("progression"), train["progression"].to_numpy()


@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION])
@pytest.mark.parametrize("name", ["bayes-tree", "bart"])
def test_fit_is_the_estimators_fit(folder: Path, name: str, task: str) -> None:
    settings: dict[str, Any] = {
        option.removeprefix("--").replace("-", "_"): int(value)
        for option, value in zip(SHORT[name][::2], SHORT[name][1::2], strict=True)
    }
    if name == "bayes-tree":
        settings = {"sampler": SMC(**settings)}
    expected = EXPECTED[name, task](**settings, random_state=0).fit(*data(task))
    how = [*TASKS[task], "--model", name, *SHORT[name]]
    for chunk in ("50", "1000"):
        run("fit", *how, "-o", "m", "--chunk-rows", chunk)
        model = boscage.load("m")
        assert type(model) is type(expected)
        assert list(model.feature_names_in_) == list(expected.feature_names_in_)
        np.testing.assert_array_equal(
            getattr(model, "predict_proba", model.predict)(data(task)[0]),
            getattr(expected, "predict_proba", expected.predict)(data(task)[0]),
        )
        assert model.verbose == 0


@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION])
@pytest.mark.parametrize("name", ["bayes-tree", "bart"])
def test_all_commands_serve_it(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, task: str
) -> None:
    run("fit", *TASKS[task], "-o", "m", "--model", name, *SHORT[name])
    test = TASKS[task][0].replace("train", "test")
    model = boscage.load("m")
    if task == CLASSIFICATION:
        run("predict", "m", test, "-o", "out.csv")
        X = flowers()[120:].select([f"x{d}" for d in range(4)])
        found = [float(row["probability_setosa"]) for row in read("out.csv")]
        np.testing.assert_array_equal(found, model.predict_proba(X)[:, 0])
    else:
        run("predict", "m", test, "--interval", "0.5", "--quantiles", "0.25", "-o", "out.csv")
        dist = model.predict_dist(patients()[342:].drop_columns("progression"))
        rows = read("out.csv")
        np.testing.assert_allclose([float(row["prediction"]) for row in rows], dist.mean)
        assert [row["lower"] for row in rows] == [row["quantile_0.25"] for row in rows]

    capsys.readouterr()
    run("evaluate", "m", test, "--json")
    score = json.loads(capsys.readouterr().out)
    better = score["accuracy"] > 0.8 if task == CLASSIFICATION else score["RMSE"] < 75.0
    assert better, score

    run("info", "m", "--trees", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"] == type(model).__name__
    assert facts["target"] == TASKS[task][2]
    assert facts["nodes_per_tree"] > 1.0

    before = Path("m").read_bytes()
    said = fails(capsys, "update", "m", test)
    assert said.startswith(f"m: a {type(model).__name__} cannot add rows, only a Mondrian forest")
    said = fails(capsys, "forget", "m", "3")
    assert said.startswith(f"m: a {type(model).__name__} cannot forget rows, only a Mondrian")
    said = fails(capsys, "evaluate", "m", test, "-t", "x0")
    assert said == f"--target: found 'x0', but m predicts {TASKS[task][2]!r}"
    assert Path("m").read_bytes() == before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["--model", "bart", "--n-estimators", "5"],
            "--model bart has no option --n-estimators, which is for mondrian",
        ),
        (
            ["--n-chains", "2"],
            "--model mondrian has no option --n-chains, which is for bayes-tree and bart",
        ),
        (
            ["--model", "bart", "--id-column", "id"],
            "--id-column: --model bart forgets no rows; to leave the column out, give --drop id",
        ),
        (
            ["--model", "bart", "--proposal", "exploring"],
            "--proposal: found 'exploring', expected one of prior, empirical, optimal of --model"
            " bart",
        ),
        (
            ["--model", "bayes-tree", "--n-chains", "2"],
            "--n-chains is for --sampler mcmc, this is smc",
        ),
        (
            ["--model", "bayes-tree", "--sampler", "mcmc", "--n-islands", "2"],
            "--n-islands is for --sampler smc, this is mcmc",
        ),
        (["--model", "bart", "--sigma", "2"], "--sigma is for regression, this is classification"),
    ],
)
def test_options_that_a_model_does_not_take_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    assert fails(capsys, "fit", "iris.csv", "-t", "species", "-o", "m", *args) == said
    assert not Path("m").exists()


def test_chains_of_a_bayesian_tree(folder: Path) -> None:
    chains = ["--sampler", "mcmc", "--n-chains", "2", "--n-burn", "30", "--n-draws", "7"]
    how = ["--model", "bayes-tree", *chains, "--thin", "3", "--alpha-s", "0.5", "--beta-s", "0"]
    run("fit", *TASKS[REGRESSION], *how, "-o", "m", "--kappa", "2")
    model = boscage.load("m")
    assert isinstance(model, BayesianTreeRegressor)
    assert model.trace_["depth"].shape == (2, 7)
    assert (model.alpha_s, model.beta_s, model.kappa) == (0.5, 0.0, 2.0)


def test_settings_reach_the_particles_of_a_bayesian_tree(folder: Path) -> None:
    how = ["--max-features", "2", "--max-stages", "900", "--noise-share", "0.4"]
    fit = [*TASKS[REGRESSION], "--model", "bayes-tree", *SHORT["bayes-tree"], *how, "-o", "m"]
    run("fit", *fit)
    model = boscage.load("m")
    assert (model.sampler.max_features, model.sampler.max_stages) == (2, 900)
    assert model.noise_share == 0.4
    run("fit", *fit, "--max-features", "sqrt")
    assert boscage.load("m").sampler.max_features == "sqrt"


def test_settings_reach_bart(folder: Path) -> None:
    how = [
        "--k",
        "learned",
        "--sparse",
        "1.5",
        "--kernels",
        "pg",
        "--n-particles",
        "3",
        "--q",
        "0.8",
        "--sigma-estimate",
        "60",
    ]
    run("fit", *TASKS[REGRESSION], "--model", "bart", *SHORT["bart"], *how, "-o", "m")
    settings = boscage.load("m").get_params()
    found = {name: settings[name] for name in ("k", "sparse", "q", "n_draws")}
    assert found == {"k": "learned", "sparse": 1.5, "q": 0.8, "n_draws": 30}
    assert settings["sigma_estimate"] == 60.0
    assert settings["kernels"] == Kernels("pg", n_particles=3)
    run("fit", *TASKS[REGRESSION], "--model", "bart", *SHORT["bart"], "--sparse", "yes", "-o", "m")
    assert boscage.load("m").sparse is True


@pytest.mark.slow
def test_the_estimators_warnings_are_one_line_in_the_options_words(folder: Path) -> None:
    how = ["--n-trees", "3", "--n-burn", "0", "--n-draws", "100", "--n-chains", "2"]
    fit = [*COMMAND, "fit", *TASKS[REGRESSION], "--model", "bart", *how, "-o", "m"]
    done = subprocess.run(fit, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.startswith("boscage fit: warning: the chains disagree")
    assert "--n-burn" in done.stderr
    assert done.stderr.count("\n") == 1


# -- the table of models --------------------------------------------------------------------------

CASES = [
    pytest.param(name, option, id=f"{name} {option.flag}")
    for name, model in MODELS.items()
    for option in model.options
]


@pytest.mark.parametrize(("name", "option"), CASES)
def test_each_option_has_a_default(name: str, option: Option) -> None:
    model = MODELS[name]
    words = model.help(option)
    assert "(default: " in words, "each option says what holds without it"
    default = model.default(option.name)
    if isinstance(default, str):
        assert option.read(default) == default, "the default can be typed"


# Settings of Python alone: arrays and mappings (the command finds categories in the table), priors
# in the target's units, and schemes of the samplers that hardly matter. A new parameter is an
# option, or is named here.
ONLY_IN_PYTHON = {
    "mondrian": {"categorical_features", "categories", "feature_maps", "substitutes"},
    "bayes-tree": {
        *("expansion", "candidate_order", "resampling", "ess_threshold", "island_weights"),
        *("categorical_features", "moves", "prior_mean", "scale"),
    },
    "bart": {"categorical_features", "shares", "warm_start"},
}
OF_EVERY_FIT = {"n_jobs", "random_state", "verbose"}


@pytest.mark.parametrize("name", MODELS)
def test_each_setting_is_an_option_or_only_in_python(name: str) -> None:
    model = MODELS[name]
    makers = [*model.estimators.values()]
    if model.nested is not None:
        makers += model.nested.make.values()
    settings = {setting for make in makers for setting in make().get_params(deep=False)}
    options = {option.name for option in model.options}
    assert settings == options | ONLY_IN_PYTHON[name] | OF_EVERY_FIT
    assert not options & ONLY_IN_PYTHON[name]


def test_help_has_a_section_for_each_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit):
        parser().parse_args(["fit", "--help"])
    help_ = capsys.readouterr().out
    starts = [help_.index(f"options of --model {name}") for name in MODELS]
    assert starts == sorted(starts)
    for name, start, end in zip(MODELS, starts, [*starts[1:], len(help_)], strict=True):
        section = help_[start:end]
        for option in MODELS[name].options:
            assert f"\n  {option.flag} " in section
            assert MODELS[name].help(option) in section


@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION])
@pytest.mark.parametrize("name", ["bayes-tree", "bart"])
def test_choices_are_the_estimators(name: str, task: str) -> None:
    """The command line accepts exactly the values that the estimator accepts."""
    nested = MODELS[name].nested
    assert nested is not None
    (option,) = (option for option in MODELS[name].options if option.name == nested.name)
    estimator = MODELS[name].estimators[task](**{nested.name: "none such"})
    with pytest.raises(ValueError, match=r"must|expected") as refused:
        estimator.fit(np.arange(8.0)[:, None], np.arange(8) % 2)
    taken = set(re.findall(r"'(\w+)'", str(refused.value)))
    assert {"auto", *taken} == {"auto", *nested.make}
    with pytest.raises(argparse.ArgumentTypeError):
        option.read("none such")
    for word in nested.make:
        assert option.read(word) == word
        MODELS[name].new(task, {nested.name: word})


def test_a_setting_that_the_model_refuses_is_an_error_of_its_option(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bart = ["--model", "bart", "-o", "model.boscage"]
    several = [*TASKS[CLASSIFICATION], *bart, "--k", "learned"]
    assert fails(capsys, "fit", *several).startswith("--k must be a number")
    alone = [*TASKS[REGRESSION], *bart, "--kernels", "pg", "--n-particles", "1"]
    assert fails(capsys, "fit", *alone).startswith("--n-particles must be at least 2")
