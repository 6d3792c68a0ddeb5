"""Equations of the joint posterior that take too many steps to solve."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from boscage import MondrianForestRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(2000, 2))
Y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=2000)
WEIGHTS = 10.0 ** RNG.uniform(0.0, 9.0, size=2000)


def fit(
    noise_variance: float, weights: Any = None, kernel: Any = "trees"
) -> MondrianForestRegressor:
    given = {"mu": Y.mean(), "gamma1": 1.0, "gamma2": 1.0, "noise_variance": noise_variance}
    model = MondrianForestRegressor(
        30, joint_kernel=kernel, hyperparameters=given, feature_weights=None, random_state=0
    )
    return model.fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize(("noise_variance", "weights"), [(1e-9, None), (0.1, WEIGHTS)])
def test_what_cannot_be_solved_is_told_and_bounded(noise_variance: float, weights: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="could not be solved") as told:
        model = fit(noise_variance, weights)
    predictions = model.predict(X)
    own = np.ones_like(Y) if weights is None else weights
    # Of such noise, exact predictions go through the targets, above all where rows weigh much.
    left = np.sqrt(np.average((predictions - Y) ** 2, weights=own))
    spread = np.sqrt(np.average((Y - Y.mean()) ** 2, weights=own))
    assert left < 0.3 * spread
    percent = float(str(told[0].message).split("about ")[1].split(" %")[0])
    assert 100.0 * left / spread == pytest.approx(percent, rel=0.1)


@pytest.mark.parametrize(("noise_variance", "kernel"), [(1e-4, "trees"), (1e-9, "limit")])
def test_what_is_solved_is_not_told(noise_variance: float, kernel: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(noise_variance, kernel=kernel)
        predictions = model.predict(X)
    assert np.corrcoef(predictions, Y)[0, 1] > 0.95
