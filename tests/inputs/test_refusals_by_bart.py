"""BART refuses settings and targets by name, and keeps the draws that it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boscage import BARTClassifier, BARTRegressor, Kernels
from signals import THREE, N, X, Y

KINDS = [(BARTClassifier, Y), (BARTClassifier, THREE), (BARTRegressor, N)]


SHORT = {"n_trees": 20, "n_chains": 2, "n_burn": 50, "n_draws": 30, "random_state": 5}


@pytest.mark.parametrize("kernels", ["gibbs", {}, {"pg": 0.0}, {"pg": -1.0}, {"all": 1.0}, None])
def test_kernels_are_checked(kernels: Any) -> None:
    for value in (kernels, Kernels(kernels)):
        with pytest.raises((TypeError, ValueError), match="kernels"):
            BARTRegressor(kernels=value).fit(X, N)


@pytest.mark.parametrize(
    "bad",
    [{"q": 1.0}, {"k": 0.0}, {"nu": -1.0}, {"sigma": 0.0}, {"n_trees": 0}, {"alpha_s": 1.0}],
)
def test_settings_are_checked_and_a_refused_fit_changes_nothing(bad: dict[str, Any]) -> None:
    model = BARTRegressor(**SHORT).fit(X, N)
    before = model._model
    with pytest.raises(ValueError, match=next(iter(bad))):
        model.set_params(**bad).fit(X, N)
    assert model._model is before


def test_bad_arguments_and_targets_are_refused_by_name() -> None:
    model = BARTRegressor(**SHORT)
    with pytest.raises(TypeError, match="callback must be callable, found 5"):
        model.fit(X, N, callback=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sparse"):
        model.set_params(sparse=1e200).fit(X, N)
    with pytest.raises(TypeError, match="k must be a number"):
        model.set_params(sparse=False, k=np.array([1.0, 2.0])).fit(X, N)
    with pytest.raises(ValueError, match="at least 1e-140"):
        model.set_params(k=2.0).fit(X, N * 1e-200)
    with pytest.raises(IndexError, match="there are 60 draws, and no draw 60"):
        model.fit(X, N).trees_[60]


@pytest.mark.parametrize("sparse", [0.0, -1.0, float("nan")])
def test_concentrations_are_checked(sparse: float) -> None:
    with pytest.raises(ValueError, match="sparse"):
        BARTRegressor(**SHORT, sparse=sparse).fit(X, N)


def test_learned_shrinkage_of_many_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="k must be a number if there are more than two"):
        BARTClassifier(**SHORT, k="learned").fit(X, THREE)
    with pytest.raises(ValueError, match="k must be a positive number or 'learned', found 'big'"):
        BARTRegressor(**SHORT, k="big").fit(X, N)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_trees": 2**62}, "n_trees must be from 1 to 100000"),
        ({"n_chains": 2**62}, "n_chains must be"),
        ({"n_draws": 2**62}, "n_draws must be"),
        ({"n_burn": 2**64 - 1}, "n_burn must be at most"),
        ({"thin": 2**63}, "thin must be"),
        ({"n_chains": 10**4, "n_draws": 10**4}, r"n_chains \* n_draws must be"),
        ({"n_draws": 10**5, "n_trees": 10**5}, r"n_chains \* n_draws \* n_trees must be"),
        ({"n_draws": 10**5, "thin": 10**6}, r"n_chains \* n_draws \* thin must be"),
        ({"kernels": Kernels(n_particles=10**14)}, "n_particles must be"),
    ],
)
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_settings_too_large_are_refused_by_name(
    kind: Any, y: Any, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**params).fit(X, y)


def test_targets_whose_squares_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 1e140"):
        BARTRegressor(**SHORT).fit(X, 1e154 * N)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernels": {"local": 0.0}}, "kernels' shares are all zero"),
        ({"kernels": Kernels("pg", n_particles=1)}, "n_particles must be at least 2"),
        ({"kernels": Kernels(n_particles=1)}, "n_particles must be at least 2"),
        ({"kernels": Kernels(n_particles=0)}, "n_particles must be >= 1"),
        ({"kernels": Kernels(proposal="best")}, "proposal must be one of"),
        ({"k": 1e-200}, "k must be from"),
        ({"sigma": 1e200}, "sigma must be from 1e-9 to 1e9 times the range of y"),
        ({"sigma_estimate": 1e-160}, "sigma_estimate must be from"),
    ],
)
def test_settings_without_effect_are_refused_by_name(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BARTRegressor(**params).fit(X, N)


def test_a_single_class_is_refused_by_its_name() -> None:
    message = "at least two classes in rows whose weight is not 0, found one class, 'a'; Mondrian"
    with pytest.raises(ValueError, match=message):
        BARTClassifier(**SHORT).fit(X, ["a"] * len(X))
    labels = np.where(Y[0] == Y, "a", "b")
    with pytest.raises(ValueError, match=message):
        BARTClassifier(**SHORT).fit(X, labels, sample_weight=(labels == "a").astype(float))
