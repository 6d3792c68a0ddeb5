"""Hyperparameters that an update keeps, or chooses again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import boscage
from boscage import MondrianForestRegressor
from command_line import EQUAL, FEW, digest, fails, patients, run

UPDATE = ["update", "diabetes.model", "diabetes_test.csv", "-o", "new.model"]


def forest(path: str) -> MondrianForestRegressor:
    model = boscage.load(path)
    assert isinstance(model, MondrianForestRegressor)
    return model


def updated(path: str, **params: Any) -> MondrianForestRegressor:
    """What Python makes of a model and the table of other patients."""
    return forest(path).set_params(**params).partial_fit(*_test_rows())


def test_what_a_forest_has_chosen_is_kept(
    diabetes_model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = forest(diabetes_model).hyperparameters_
    run(*UPDATE, "--hyperparameters", "keep", "--chunk-rows", "30")
    assert forest("new.model").hyperparameters_ == chosen
    assert digest("new.model") == updated(diabetes_model, hyperparameters=chosen).digest()
    # So do later updates, whether they say so or not.
    run("forget", "new.model", *map(str, range(100, 442)), "-o", "few.model")
    run("forget", "few.model", *map(str, range(100)))
    run("update", "few.model", "diabetes_test.csv", "--hyperparameters", "keep")
    assert forest("few.model").hyperparameters_ == chosen
    for more in ([], ["--hyperparameters", "keep"]):
        run("update", "new.model", "diabetes_test.csv", *more)
        assert forest("new.model").hyperparameters_ == chosen
    assert forest("new.model").n_rows_ == 442 + 2 * 100
    capsys.readouterr()
    run("info", "new.model", "--json")
    assert json.loads(capsys.readouterr().out)["hyperparameters"] == chosen


@pytest.mark.parametrize("rule", ["loo", "ml", "heuristic"])
def test_a_rule_chooses_again(diabetes_model: str, rule: str) -> None:
    run(*UPDATE, "--hyperparameters", "keep")
    run("update", "new.model", "diabetes_test.csv", "--hyperparameters", rule)
    assert forest("new.model").hyperparameters == rule
    assert forest("new.model").hyperparameters_ != forest(diabetes_model).hyperparameters_
    run(*UPDATE, "--hyperparameters", rule)
    assert digest("new.model") == updated(diabetes_model, hyperparameters=rule).digest()


def test_the_scale_of_the_prior_stays_beside_kept_ones(folder: Path) -> None:
    fit = ["fit", "diabetes_train.csv", "-t", "progression", *EQUAL, *FEW, "-o", "diabetes.model"]
    run(*fit, "--prior-scale", "3")
    run(*UPDATE, "--hyperparameters", "keep")
    assert forest("new.model").prior_scale == 3.0
    run("update", "new.model", "diabetes_test.csv", "--hyperparameters", "loo")
    chosen = updated("diabetes.model").partial_fit(*_test_rows())
    assert forest("new.model").hyperparameters_ == chosen.hyperparameters_


def _test_rows() -> tuple[Any, Any]:
    test = patients().to_pandas()[342:]
    return test.iloc[:, :-1], test["progression"]


def test_a_chosen_trend_stays_with_its_hyperparameters(folder: Path) -> None:
    fit = ["fit", "diabetes_train.csv", "-t", "progression", *FEW, "-o", "diabetes.model"]
    run(*fit, "--hyperparameters", "ml")
    before = forest("diabetes.model")
    assert before.trend_ is not None
    run(*UPDATE, "--hyperparameters", "keep")
    after = forest("new.model")
    assert (after.trend_, after.hyperparameters_) == (before.trend_, before.hyperparameters_)


def test_models_without_any_to_keep_are_named(
    iris_model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", "diabetes_train.csv", "-t", "progression", *EQUAL, *FEW, "-o", "diabetes.model"]
    keep = [*UPDATE, "--hyperparameters", "keep"]
    iris = ["update", iris_model, "iris_test.csv", "--id-column", "id", "--hyperparameters", "ml"]
    assert fails(capsys, *iris) == (
        "iris.model: --hyperparameters ml: a MondrianForestClassifier has none"
    )
    run(*fit, "--posterior", "fast")
    for how in ("keep", "ml"):
        said = fails(capsys, *UPDATE, "--hyperparameters", how)
        assert said == f"diabetes.model: --hyperparameters {how}: the fast posterior has none"
    run(*fit, "--noise-variance", "3000")
    assert "its noise variance was given, and none are kept beside it" in fails(capsys, *keep)
    run(*fit)
    run("forget", "diabetes.model", *map(str, range(342)))
    assert "no rows left that could have chosen them" in fails(capsys, *keep)
    said = fails(capsys, *UPDATE, "--hyperparameters", "all")
    assert "invalid choice: 'all'" in said
