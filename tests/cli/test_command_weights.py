"""``--weight``: a column of weights of rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pytest

import boscage
from boscage import BARTClassifier, BARTRegressor, BayesianTreeClassifier, MondrianForestClassifier
from command_line import EQUAL, FEW, digest, fails, flowers, patients, run

WEIGHTS = np.random.default_rng(0).gamma(2.0, 0.5, size=150).round(3) + 0.01


@pytest.fixture
def weighted(folder: Path) -> Path:
    """A folder with tables of weighted flowers and patients."""
    table = flowers().append_column("w", [WEIGHTS])
    pacsv.write_csv(table[:120], "train.csv")
    pacsv.write_csv(table[120:], "test.csv")
    patients_ = patients()[:150].append_column("w", [WEIGHTS])
    pacsv.write_csv(patients_, "patients.csv")
    return folder


def features() -> np.ndarray:
    return np.column_stack([flowers()[f"x{d}"] for d in range(4)])


@pytest.mark.parametrize("chunk", ["7", "1000"])
def test_weights_are_those_of_the_estimator(
    weighted: Path, capsys: pytest.CaptureFixture[str], chunk: str
) -> None:
    how = ["-t", "species", "--id-column", "id", *EQUAL, *FEW, "--chunk-rows", chunk]
    run("fit", "train.csv", *how, "--weight", "w", "-o", "new.model")
    X, y = features(), np.array(flowers()["species"].to_pylist())
    ranges = features()[:120].min(axis=0), features()[:120].max(axis=0)
    one = MondrianForestClassifier(5, random_state=0, feature_weights=None, feature_range=ranges)
    one.fit(X[:120], y[:120], WEIGHTS[:120], ids=np.arange(100, 220))
    assert digest("new.model") == one.digest()
    model = boscage.load("new.model")
    assert list(model.feature_names_in_) == ["x0", "x1", "x2", "x3"]
    # The file knows the column.
    run("update", "new.model", "test.csv", "--id-column", "id")
    one.partial_fit(X[120:], y[120:], sample_weight=WEIGHTS[120:], ids=np.arange(220, 250))
    assert digest("new.model") == one.digest()
    run("evaluate", "new.model", "test.csv")
    capsys.readouterr()
    run("info", "new.model", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["weight_column"] == "w"
    assert facts["sum_of_weights"] == pytest.approx(WEIGHTS.sum(), rel=1e-12)
    run("forget", "new.model", "100")
    run("info", "new.model")
    shown = f"sum of weights  {WEIGHTS[1:].sum():.6g}"
    assert shown in re.sub("  +", "  ", capsys.readouterr().out)


def test_other_models_take_weights(weighted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--random-state", "3", "-t"]
    trees = ["--drop", "id", "--model", "bayes-tree"]
    run("fit", "train.csv", *trees, *short, "species", "--weight", "w", "-o", "trees.model")
    model = boscage.load("trees.model")
    assert isinstance(model, BayesianTreeClassifier)
    X, y = features()[:120], np.array(flowers()["species"].to_pylist())[:120]
    expected = BayesianTreeClassifier(model.sampler, random_state=3).fit(X, y, WEIGHTS[:120])
    np.testing.assert_array_equal(model.weights_, expected.weights_)
    np.testing.assert_array_equal(model.log_posterior_, expected.log_posterior_)
    bart = ["--model", "bart", "--n-trees", "5", "--n-burn", "20", "--n-draws", "20"]
    run("fit", "patients.csv", *bart, *short, "progression", "--weight", "w", "-o", "sum.model")
    assert isinstance(boscage.load("sum.model"), BARTRegressor)
    run(
        "fit",
        "train.csv",
        *bart,
        "--drop",
        "id",
        *short,
        "species",
        "--weight",
        "w",
        "-o",
        "c.model",
    )
    classes = BARTClassifier(5, n_burn=20, n_draws=20, random_state=3).fit(X, y, WEIGHTS[:120])
    found = boscage.load("c.model").trace_["log_likelihood"]
    np.testing.assert_array_equal(found, classes.trace_["log_likelihood"])


def test_wrong_weights_are_refused(weighted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ["fit", "train.csv", "-t", "species", *FEW, "-o", "new.model"]
    assert "'species' is the target, it cannot hold the weights too" in fails(
        capsys, *fit, "--weight", "species"
    )
    both = [*fit, "--id-column", "id", "--weight", "id"]
    assert "'id' is the column of ids, it cannot hold the weights too" in fails(capsys, *both)
    assert "'no'" in fails(capsys, *fit, "--weight", "no")
    features = [*fit, "--features", "x0,w", "--weight", "w"]
    assert "'w' is the column of weights, it cannot be a feature too" in fails(capsys, *features)
    lines = Path("train.csv").read_text().splitlines()
    for cell, found in (("0", "0.0"), ("-2", "-2.0")):
        row = ",".join([*lines[8].split(",")[:-1], cell])
        Path("bad.csv").write_text("\n".join([*lines[:8], row, *lines[9:]]) + "\n")
        said = fails(capsys, "fit", "bad.csv", *fit[2:], "--weight", "w")
        assert said == f"bad.csv: row 8, column 'w': found {found}, expected a number above 0"
    row = ",".join([*lines[8].split(",")[:-1], "1e12"])
    Path("bad.csv").write_text("\n".join([*lines[:8], row, *lines[9:]]) + "\n")
    assert "expected 0, or from 1e-12 to 1e9" in fails(
        capsys, "fit", "bad.csv", *fit[2:], "--weight", "w"
    )
    assert not Path("new.model").exists()
