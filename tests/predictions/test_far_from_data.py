"""Far from all data the predictive has the targets' variance, and it does not fall on the way."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import root_mean_squared_error

import boscage
from boscage import MondrianForestRegressor
from reference.arrays import Array

N = 500
# Ranges beyond the end of the data.
DISTANCES = np.r_[0.0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0, 10.0, 100.0, 1e6]
TARGETS = ("line", "sine", "noisy line")
MODELS: list[dict[str, Any]] = [
    {"posterior": posterior, "noise": noise, "hyperparameters": rule}
    for posterior, (noise, rule) in itertools.product(
        ["exact", "joint"], [("global", "loo"), ("global", "ml"), ("local", "loo")]
    )
]
# Trees whose means are far apart add a little near the data, and so do local factors.
FALLING: list[dict[str, Any]] = [
    {"posterior": "fast"},
    {"posterior": "exact", "hyperparameters": "heuristic", "noise": "global"},
    {"posterior": "joint", "hyperparameters": "heuristic", "noise": "global"},
    {"posterior": "exact", "noise": "local", "hyperparameters": "ml"},
    {"posterior": "joint", "noise": "local", "hyperparameters": "ml"},
]


def data(targets: str, d: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(N, d)).astype(np.float32)
    t = x[:, 0].astype(np.float64)
    noise = 0.3 * rng.normal(size=N)
    return x, {"line": t, "sine": np.sin(6.0 * t), "noisy line": t + noise}[targets]


def rays(d: int) -> list[Array]:
    """Return rows on the way out of the data on both sides, in the feature that matters."""
    found = np.full((2, len(DISTANCES), d), 0.5, dtype=np.float32)
    found[0, :, 0], found[1, :, 0] = 1.0 + DISTANCES, -DISTANCES
    return list(found)


def check_rays(model: MondrianForestRegressor, y: Array, fall: float, scale: float = 1.0) -> None:
    for ray in rays(model.n_features_in_):
        std = model.predict(ray, return_std=True)[1] / y.std()
        assert 0.85 * scale < std[-1] < 1.25 * scale
        assert (np.maximum.accumulate(std) - std).max() < fall


def cases(models: list[dict[str, Any]]) -> list[Any]:
    """Every model on all targets, without a trend. Half of those of equal rates are fast."""
    found = []
    fast = [(1, "line"), (3, "sine"), (1, "noisy line")]
    for params, d, targets in itertools.product(models, [1, 3], TARGETS):
        for weights in (None, "learned"):
            name = [*params.values(), weights or "equal", str(d), targets]
            own = params | {"feature_weights": weights, "trend": None}
            marks = () if weights is None and (d, targets) in fast else pytest.mark.slow
            found.append(pytest.param(own, d, targets, id="-".join(name), marks=marks))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("params", "d", "targets"), cases(MODELS))
def test_the_targets_variance_returns(targets: str, d: int, params: dict[str, Any]) -> None:
    x, y = data(targets, d)
    model = MondrianForestRegressor(25, random_state=0, **params).fit(x, y)
    check_rays(model, y, fall=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("targets", TARGETS)
def test_defaults_are_at_least_as_uncertain_as_the_targets(targets: str, d: int) -> None:
    x, y = data(targets, d)
    model = MondrianForestRegressor(25, random_state=0).fit(x, y)
    for ray in rays(d):
        std = model.predict(ray, return_std=True)[1] / y.std()
        assert std[-1] > 0.85
        assert (np.maximum.accumulate(std) - std).max() < 0.03
        # What is not known of a slope grows with the distance.
        assert std[-1] < 1.25 or model.trend_ is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("feature", [0, 1, 3])
def test_intervals_beside_the_rows_cover_what_they_say(feature: int, seed: int) -> None:
    """The upper 30 % of a feature are predicted from the rest."""
    x, y = make_friedman1(1000, noise=1.0, random_state=seed)
    order = np.argsort(x[:, feature])
    rows, beside = np.split(order, [700])
    model = MondrianForestRegressor(50, random_state=seed).fit(x[rows], y[rows])
    forest = RandomForestRegressor(50, random_state=seed).fit(x[rows], y[rows])
    dist = model.predict_dist(x[beside])
    low, high = dist.interval(0.9)
    assert np.mean((low <= y[beside]) & (y[beside] <= high)) > 0.8
    error = root_mean_squared_error(y[beside], dist.mean)
    assert error < 1.25 * root_mean_squared_error(y[beside], forest.predict(x[beside]))


@pytest.mark.parametrize(("params", "d", "targets"), cases(FALLING))
def test_the_variance_falls_little(targets: str, d: int, params: dict[str, Any]) -> None:
    x, y = data(targets, d)
    model = MondrianForestRegressor(25, random_state=0, **params).fit(x, y)
    check_rays(model, y, fall=0.08)


@pytest.mark.parametrize(
    ("rule", "posterior"),
    [
        ("loo", "joint"),
        ("ml", "exact"),
        ("heuristic", "joint"),
        pytest.param("loo", "exact", marks=pytest.mark.slow),
        pytest.param("ml", "joint", marks=pytest.mark.slow),
        pytest.param("heuristic", "exact", marks=pytest.mark.slow),
    ],
)
def test_a_scale_widens_the_prior(posterior: Any, rule: Any) -> None:
    x, y = data("noisy line", 2)
    near = {}
    given: dict[str, Any] = {"posterior": posterior, "hyperparameters": rule}
    for scale in (1.0, 3.0):
        model = MondrianForestRegressor(
            10, prior_scale=scale, feature_weights=None, random_state=0, **given
        ).fit(x, y)
        far = model.predict([[1e7, 0.5]], return_std=True)[1][0] / y.std()
        assert far == pytest.approx(scale, rel=0.02)
        near[scale] = model.predict(x, return_std=True)[1].mean()
    assert near[3.0] == pytest.approx(near[1.0], rel=0.25)


def test_no_scale_leaves_the_prior_to_the_rule() -> None:
    x, y = data("line", 1)
    model = MondrianForestRegressor(10, prior_scale=None, trend=None, random_state=0).fit(x, y)
    chosen = model.hyperparameters_
    assert chosen["coarse_variance"] == 0.0
    far = model.predict([[1e7]], return_std=True)[1][0]
    assert far**2 == pytest.approx(chosen["gamma1"] / 2 + chosen["noise_variance"], rel=1e-3)
    assert far < 0.5 * y.std()


@pytest.mark.parametrize("lifetime", [1.5, 20.0])
@pytest.mark.parametrize("rule", ["loo", "ml"])
def test_the_whole_prior_is_spent_until_the_lifetime(rule: Any, lifetime: float) -> None:
    x, y = data("sine", 1)
    model = MondrianForestRegressor(
        10, hyperparameters=rule, lifetime=lifetime, trend=None, random_state=0
    ).fit(x, y)
    assert model.predict([[1e7]], return_std=True)[1][0] == pytest.approx(y.std(), rel=0.02)


@pytest.mark.parametrize("params", MODELS[:4], ids=lambda p: "-".join(p.values()))
def test_any_history_gives_the_same_prior(params: dict[str, Any]) -> None:
    x, y = data("sine", 2)
    y = y * (1.0 + 3.0 * (np.arange(N) >= 300))

    def fresh() -> MondrianForestRegressor:
        given = {"feature_range": (0.0, 1.0), "feature_weights": None}
        return MondrianForestRegressor(5, random_state=0, **(params | given))

    kept = np.r_[100:N]
    order = np.random.default_rng(1).permutation(kept)
    once = fresh().fit(x[order], y[order], ids=order)
    model = fresh().fit(x[:200], y[:200])
    model.predict(x[:2])
    other = fresh().fit(x[250:], y[250:], ids=np.arange(250, N))
    model.partial_fit(x[200:250], y[200:250], ids=np.arange(200, 250))
    model.merge(other).forget(np.arange(100))
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    ray = np.concatenate(rays(2))
    for found in (model, boscage.load(file)):
        assert found.digest() == once.digest()
        assert found.hyperparameters_ == once.hyperparameters_
        for ours, theirs in zip(
            found.predict(ray, return_std=True), once.predict(ray, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("targets", ["sine", "noisy line"])
@pytest.mark.parametrize("rule", ["loo", "ml", "heuristic"])
def test_hyperparameters_can_be_given_again(rule: Any, targets: str) -> None:
    """Whether the prior has a coarse part or comes late."""
    x, y = data(targets, 2)
    exact: dict[str, Any] = {"posterior": "exact", "noise": "global", "feature_weights": None}
    exact |= {"n_estimators": 10, "random_state": 0}
    model = MondrianForestRegressor(hyperparameters=rule, **exact).fit(x, y)
    ray = np.concatenate(rays(2))
    again = MondrianForestRegressor(hyperparameters=model.hyperparameters_, **exact)
    again.fit(x, y)
    assert again.hyperparameters_ == model.hyperparameters_
    file = io.BytesIO()
    again.save(file)
    file.seek(0)
    loaded = boscage.load(file)
    assert loaded.hyperparameters == model.hyperparameters_
    assert loaded.digest() == again.digest()
    for found in (again, loaded):
        for ours, theirs in zip(
            found.predict(ray, return_std=True), model.predict(ray, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_hyperparameters_without_a_coarse_part_are_the_thesis() -> None:
    x, y = data("sine", 1)
    given = {"mu": 0.5, "gamma1": 2.0, "gamma2": 1.0, "noise_variance": 0.1}
    model = MondrianForestRegressor(10, hyperparameters=given, random_state=0).fit(x, y)
    assert model.hyperparameters_ == given | {
        "delay": 0.0,
        "coarse_variance": 0.0,
        "coarse_rate": 1.0,
    }
    far = model.predict([[1e9]], return_std=True)[1][0]
    assert far**2 == pytest.approx(1.1, rel=1e-4)
    wide = given | {"coarse_variance": 4.0, "coarse_rate": 2.0}
    model = MondrianForestRegressor(10, hyperparameters=wide, random_state=0).fit(x, y)
    assert model.predict([[1e9]], return_std=True)[1][0] ** 2 == pytest.approx(5.1, rel=1e-4)
    late = given | {"delay": np.log(4.0)}
    model = MondrianForestRegressor(10, hyperparameters=late, random_state=0).fit(x, y)
    assert model.predict([[1e9]], return_std=True)[1][0] ** 2 == pytest.approx(1.7, rel=1e-4)
