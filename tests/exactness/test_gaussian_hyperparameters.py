"""Hyperparameters of regression: by the rule of section 6.3.2, by evidence, by leave-one-out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from forests import trees_of
from gaussian_forests import data, fit
from reference import gaussian_bp as bp
from reference.arrays import (
    Array,
    Tree,
)


def test_heuristic_hyperparameters_are_those_of_section_6_3_2() -> None:
    """gamma_1 (1/2 + 1/K) is y's variance, K = min(2000, 2N); gamma_2 = D / (20 log2 N)."""
    for n, d in ((45, 2), (1500, 3)):
        x, y = data(8, n=n, d=d)
        model = fit(x, y, hyper=None, hyperparameters="heuristic", min_samples_split=10)
        found = model.hyperparameters()
        k = min(2000, 2 * n)
        gamma1 = y.var() / (0.5 + 1.0 / k)
        assert found["mu"] == pytest.approx(y.mean(), rel=1e-9)
        assert found["gamma1"] == pytest.approx(gamma1, rel=1e-9)
        assert found["noise_variance"] == pytest.approx(gamma1 / k, rel=1e-9)
        assert found["gamma2"] == pytest.approx(d / (20.0 * np.log2(n)), rel=1e-9)


def dense_evidence(trees: list[Tree], x: Array, y: Array, h: dict[str, float]) -> float:
    hyper = bp.Hyperparameters(h["mu"], h["gamma1"], h["gamma2"], h["noise_variance"])
    return float(np.mean([bp.posterior(tree, x, y, hyper)[2] for tree in trees]))


def test_ml_hyperparameters_maximise_the_dense_evidence() -> None:
    """Against dense algebra: no small or large step in any hyperparameter does better.

    With the prior left to the rule.

    A step of 2 % may gain what a maximum found to a relative 1e-4 leaves: below 1e-3 nats.
    """
    x, y = data(9, n=60)
    model = fit(x, y, hyper=None, hyperparameters="ml", prior_scale=None)
    heuristic = fit(x, y, hyper=None, hyperparameters="heuristic")
    trees, best = trees_of(model), model.hyperparameters()
    top = dense_evidence(trees, x, y, best)
    assert model.log_marginal_likelihood() == pytest.approx(top, rel=1e-9)
    assert top > dense_evidence(trees, x, y, heuristic.hyperparameters())
    for key in ("gamma1", "gamma2", "noise_variance"):
        for factor in (0.5, 0.9, 0.98, 1.02, 1.1, 2.0):
            assert dense_evidence(trees, x, y, best | {key: best[key] * factor}) < top + 1e-3
    for shift in (-0.5, -0.02, 0.02, 0.5):
        moved = best | {"mu": best["mu"] + shift * y.std()}
        assert dense_evidence(trees, x, y, moved) < top + 1e-3


def test_loo_hyperparameters_predict_rows_that_are_left_out_best() -> None:
    """No step by a factor of two or four in any scale does better, nor do the other rules.

    The search goes by factors of two, so that a little may be gained beside them, and it knows of a
    row that shares its leaf only roughly when it would branch off: below 5e-3 nats a row.
    """
    x, y = data(9, n=60)

    def score(**settings: Any) -> tuple[float, dict[str, float]]:
        model = fit(x, y, **settings)
        offsets, weight, mean, variance = model.loo_dist(None)
        density = weight * norm.pdf(np.repeat(y, np.diff(offsets)), mean, np.sqrt(variance))
        rows = np.add.reduceat(density, offsets[:-1])
        return float(np.log(rows).mean()), model.hyperparameters()

    top, best = score(hyper=None, hyperparameters="loo")
    for rule in ("ml", "heuristic"):
        assert score(hyper=None, hyperparameters=rule)[0] < top - 0.02
    for key in ("gamma1", "gamma2", "noise_variance"):
        for factor in (0.25, 0.5, 2.0, 4.0):
            h = best | {key: best[key] * factor}
            moved = bp.Hyperparameters(h["mu"], h["gamma1"], h["gamma2"], h["noise_variance"])
            assert score(hyper=moved)[0] < top + 5e-3
