"""Bayesian trees refuse settings and targets by name."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from boscage import MCMC, SMC, BayesianTreeClassifier, BayesianTreeRegressor
from signals import N, X, Y

KINDS = [(BayesianTreeClassifier, Y), (BayesianTreeRegressor, N)]


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_bad_parameters_are_named(kind: Any, y: Any) -> None:
    bad: dict[str, Any] = {
        "sampler": "nuts",
        "sampler__n_particles": 0,
        "sampler__proposal": "best",
        "sampler__max_features": 0,
        "sampler__expansion": "all",
        "sampler__resampling": "none",
        "sampler__ess_threshold": 1.5,
        "alpha_s": 1.0,
        "beta_s": -1.0,
        "sampler__island_weights": "none",
    }
    for name, value in bad.items():
        model = kind().set_params(**{name: value})
        with pytest.raises(ValueError, match=name.removeprefix("sampler__")):
            model.fit(X, y)
        assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="max_features needs proposal='optimal'"):
        kind(SMC(proposal="prior", max_features=2)).fit(X, y)
    # Without grow and prune, a chain does not reach trees of all sizes.
    for moves in ((0.5, 0.5, 0.5, 0.5), (0.0, 0.0, 0.5, 0.5), (0.5, 0.0, 0.5, 0.0)):
        with pytest.raises(ValueError, match="moves"):
            kind(MCMC(moves=moves)).fit(X, y)
    with pytest.raises(NotFittedError):
        _ = kind().weights_


@pytest.mark.parametrize(
    "params",
    [
        {"sampler": None},
        {"sampler": SMC},
        {"sampler__proposal": None},
        {"sampler__expansion": 1},
        {"sampler__candidate_order": b"breadth_first"},
        {"sampler__resampling": ["residual"]},
        {"sampler__island_weights": True},
        {"n_jobs": "a"},
        {"n_jobs": 1.0},
        {"sampler": "mcmc", "sampler__moves": None},
        {"sampler": "mcmc", "sampler__n_burn": 1.0},
    ],
)
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_parameters_of_a_wrong_type_are_named_and_shown(
    kind: Any, y: Any, params: dict[str, Any]
) -> None:
    name, value = list(params.items())[-1]
    name = name.removeprefix("sampler__")
    with pytest.raises(
        (TypeError, ValueError), match=f"{name} must be .*found {re.escape(repr(value))}"
    ):
        kind().set_params(**params).fit(X, y)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (SMC(n_particles=10**14), "n_particles must be from 1 to 1000000"),
        (SMC(n_islands=2**62), "n_islands must be"),
        (SMC(max_stages=2**64), r"max_stages must be below 2\*\*64"),
        (SMC(n_particles=10**6, n_islands=1000), r"n_particles \* n_islands must be"),
        (MCMC(n_chains=2**62), "n_chains must be"),
        (MCMC(n_draws=2**62), "n_draws must be"),
        (MCMC(n_chains=10**4, n_draws=10**4), r"n_chains \* n_draws must be"),
        (MCMC(thin=2**63), "thin must be"),
        (MCMC(n_burn=2**64 - 1), "n_burn.* must be at most"),
    ],
)
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_settings_too_large_are_refused_by_name(
    kind: Any, y: Any, sampler: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(sampler).fit(X, y)


@pytest.mark.parametrize("params", [{}, {"prior_mean": 0.0, "scale": 1.0}])
def test_targets_whose_squares_overflow_are_refused(params: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="at most 1e140"):
        BayesianTreeRegressor(random_state=0, **params).fit(X, 1e154 * N)
    model = BayesianTreeRegressor(random_state=0).fit(X, 1e139 * np.sign(N))
    assert np.isfinite(model.log_marginal_likelihood_)
    assert np.isfinite(pickle.loads(pickle.dumps(model)).predict(X)).all()


@pytest.mark.filterwarnings("ignore:y has no other value")
def test_targets_whose_squares_underflow_are_refused() -> None:
    for params in ({}, {"prior_mean": 0.0, "scale": 1.0}):
        with pytest.raises(
            ValueError, match=r"y must be zero .* at least 1e-140 .*found .* of .*e-160"
        ):
            BayesianTreeRegressor(random_state=0, **params).fit(X, 1e-160 * N)
    BayesianTreeRegressor(random_state=0).fit(X, 0.0 * N)


@pytest.mark.parametrize(
    ("kind", "y", "name", "ends"),
    [
        (BayesianTreeClassifier, Y, "alpha", ("1e-100", "1e100")),
        (BayesianTreeRegressor, N, "kappa", ("1e-100", "1e100")),
        (BayesianTreeRegressor, N, "shape", ("1e-9", "1e9")),
        (BayesianTreeRegressor, N, "noise_share", ("1e-9", "1e9")),
        (BayesianTreeRegressor, N, "scale", ("1e-290", "1e290")),
    ],
)
@pytest.mark.parametrize("sampler", ["smc", "mcmc"])
def test_priors_too_extreme_for_arithmetic_are_refused_by_name(
    kind: Any, y: Any, name: str, ends: tuple[str, str], sampler: str
) -> None:
    own = MCMC(n_draws=5, n_burn=100) if sampler == "mcmc" else sampler
    params = {"sampler": own, "random_state": 0}
    low, high = (float(end) for end in ends)
    for end in (low, high):
        model = kind(**params, **{name: end}).fit(X, y)
        assert np.isfinite(model.log_posterior_).all()
        again = pickle.loads(pickle.dumps(model))
        if kind is BayesianTreeRegressor:
            mean, std = again.predict(X, return_std=True)
            assert np.isfinite(mean).all()
            assert (std > 0.0).all()
        else:
            np.testing.assert_allclose(again.predict_proba(X).sum(axis=1), 1.0)
    for value in (5e-324, 0.5 * low, 2.0 * high, 1.7e308):
        with pytest.raises(
            ValueError, match=f"{name}.* must be from {ends[0]} to {ends[1]}, found"
        ):
            kind(**params, **{name: value}).fit(X, y)
