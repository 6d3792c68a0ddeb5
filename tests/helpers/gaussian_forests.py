"""Small regression forests of the lower level, to which hyperparameters can be given."""

from __future__ import annotations

from typing import Any

import numpy as np

from boscage import _core
from reference import gaussian_bp as bp
from reference.arrays import Array

HYPER = bp.Hyperparameters(mu=0.4, gamma1=5.0, gamma2=0.6, noise=0.2)
N_TREES = 3


def data(seed: int, n: int = 45, d: int = 2) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(size=(n, d)), 2)
    x[: n // 8] = x[n // 8 : 2 * (n // 8)]  # duplicates with different y
    return x, 2.0 * np.sin(4.0 * x[:, 0]) + 0.4 * rng.normal(size=n)


def queries(seed: int, x: Array, n: int = 6) -> Array:
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [
            rng.uniform(size=(n, x.shape[1])),
            x[:3],
            rng.uniform(-2.0, 3.0, size=(n, x.shape[1])),
            rng.choice([-1e6, 1e3, 0.5], size=(3, x.shape[1])),
        ]
    )


def fit(x: Array, y: Array, hyper: bp.Hyperparameters | None = HYPER, **settings: Any) -> Any:
    """Fit the lower level's model, to which all four hyperparameters can be given."""
    low, high = settings.pop("low", 0.0), settings.pop("high", 1.0)
    given = {
        "n_estimators": N_TREES,
        "min_samples_split": 4,
        "seed": 1,
        "posterior": "exact",
        "noise": "global",
    }
    if hyper is not None:
        given["given"] = {
            "mu": hyper.mu,
            "gamma1": hyper.gamma1,
            "gamma2": hyper.gamma2,
            "noise_variance": hyper.noise,
            "delay": hyper.delay,
            "coarse_variance": hyper.coarse_variance,
            "coarse_rate": hyper.coarse_rate,
        }
    model = _core.MondrianRegressor(**(given | settings))
    d = x.shape[1]
    model.fit(x, y, low=np.full(d, low), high=np.full(d, high))
    return model
