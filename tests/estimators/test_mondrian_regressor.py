"""`MondrianForestRegressor`: predictions and targets."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from boscage import GaussianMixture, MondrianForestRegressor
from boscage.metrics import interval_coverage, nlpd

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(200, 2))
Y = np.sin(6.0 * X[:, 0]) + 0.2 * RNG.normal(size=200)

GIVEN = {"mu": 0.0, "gamma1": 1.0, "gamma2": 1.0, "noise_variance": 0.1}
# Unless a test is about that, no rates or slopes are learned, and nothing from the first rows.
EQUAL: dict[str, Any] = {"feature_weights": None, "trend": None, "warm_up": 0}


def make(**params: Any) -> MondrianForestRegressor:
    return MondrianForestRegressor(
        **({"n_estimators": 8, "feature_range": (0.0, 1.0), "random_state": 1} | EQUAL | params)
    )


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize(
    ("posterior", "noise"),
    [
        ("exact", "global"),
        ("exact", "local"),
        ("fast", "global"),
        ("joint", "global"),
        ("joint", "local"),
    ],
)
def test_the_ways_to_predict_agree(predictive: Any, posterior: Any, noise: Any) -> None:
    model = make(predictive=predictive, posterior=posterior, noise=noise).fit(X, Y)
    rows = np.vstack((X[:20], [[2.0, -1.0]]))
    mean, std = model.predict(rows, return_std=True)
    np.testing.assert_array_equal(model.predict(rows), mean)
    dist = model.predict_dist(rows)
    assert isinstance(dist, GaussianMixture)
    assert len(dist) == 21
    np.testing.assert_allclose(dist.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(dist.std, std, rtol=1e-10)
    assert (std > 0.0).all()
    lower, upper = dist.interval(0.9)
    np.testing.assert_allclose(dist.cdf(upper) - dist.cdf(lower), 0.9, rtol=1e-9)


def test_uncertainty_is_of_the_right_size() -> None:
    rng = np.random.default_rng(1)
    model = make(n_estimators=30).fit(X, Y)
    test = rng.uniform(size=(300, 2))
    truth = np.sin(6.0 * test[:, 0]) + 0.2 * rng.normal(size=300)
    dist = model.predict_dist(test)
    assert 0.8 < interval_coverage(truth, *dist.interval(0.9)) <= 1.0
    assert nlpd(truth, dist) < nlpd(truth, (np.full(300, Y.mean()), Y.std()))
    assert model.score(test, truth) > 0.5
    # Away from the data it grows.
    assert model.predict([[5.0, 5.0]], return_std=True)[1][0] > np.median(dist.std)


def test_local_noise_is_larger_where_the_targets_scatter_more() -> None:
    rng = np.random.default_rng(1)
    rows = rng.uniform(size=(400, 2))
    target = (0.05 + rows[:, 1]) * rng.normal(size=400)
    quiet, loud = [[0.5, 0.1]], [[0.5, 0.9]]
    ratios = {}
    for noise in ("global", "local"):
        model = make(noise=noise, n_estimators=20).fit(rows, target)
        ratios[noise] = (
            model.predict(loud, return_std=True)[1] / (model.predict(quiet, return_std=True)[1])
        )
    assert ratios["local"] > 1.5 > 1.2 > ratios["global"]


def test_the_fast_posterior_has_one_noise() -> None:
    local, fast = (make(posterior="fast", noise=noise).fit(X, Y) for noise in ("local", "global"))
    assert local.digest() == fast.digest()
    for ours, theirs in zip(
        local.predict(X, return_std=True), fast.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("posterior", ["exact", "fast"])
def test_leave_one_out_is_a_forest_without_the_row(posterior: Any) -> None:
    model = make(posterior=posterior, noise_variance=0.04).fit(X[:60], Y[:60])
    before = model.digest()
    left_out = model.loo_predict_dist()
    assert len(left_out) == 60
    assert model.digest() == before
    some = model.loo_predict_dist([17, 0])
    np.testing.assert_array_equal(some.mean, left_out.mean[[17, 0]])
    assert len(model.loo_predict_dist([])) == 0
    with pytest.raises(KeyError, match="500"):
        model.loo_predict_dist([500])
    # They are worse than predictions of training rows, and better than the mean.
    seen = nlpd(Y[:60], model.predict_dist(X[:60]))
    unseen = nlpd(Y[:60], left_out)
    assert seen < unseen < nlpd(Y[:60], (np.full(60, Y.mean()), Y.std()))


def test_hyperparameters_and_marginal_likelihood() -> None:
    thesis = {"posterior": "exact", "noise": "global"}
    model = make(**thesis).fit(X, Y)
    chosen = model.hyperparameters_
    assert set(chosen) == {
        *("mu", "gamma1", "gamma2", "noise_variance", "delay", "coarse_variance", "coarse_rate")
    }
    assert all(isinstance(value, float) for value in chosen.values())
    assert 0.01 < chosen["noise_variance"] < 0.5
    heuristic = make(hyperparameters="heuristic", **thesis).fit(X, Y)
    np.testing.assert_allclose(heuristic.hyperparameters_["mu"], Y.mean())
    assert model.log_marginal_likelihood() >= heuristic.log_marginal_likelihood()
    known = make(noise_variance=0.04, **thesis).fit(X, Y)
    assert known.hyperparameters_["noise_variance"] == 0.04


def test_a_file_keeps_every_setting(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "posterior": "joint",
        "hyperparameters": "heuristic",
        "noise": "global",
        "noise_variance": 0.25,
        "prior_scale": 1.5,
    }
    make(**settings).fit(X, Y).save(tmp_path / "m")
    params = MondrianForestRegressor.load(tmp_path / "m").get_params()
    assert {name: params[name] for name in settings} == settings


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"posterior": "slow"}, "'exact', 'fast', 'joint', found 'slow'"),
        ({"hyperparameters": {}}, "needs mu, gamma1, gamma2 and noise_variance"),
        ({"hyperparameters": "aic"}, "'ml', 'heuristic'"),
        ({"hyperparameters": {"mu": 0.0, "nu": 1.0}}, r"missing: \['gamma1'.*unknown: \['nu'\]"),
        ({"hyperparameters": GIVEN | {"coarse_variance": -1.0}}, "coarse_variance"),
        ({"hyperparameters": GIVEN | {"coarse_rate": 0.0}}, "coarse_rate"),
        ({"hyperparameters": GIVEN | {"delay": -1.0}}, "delay"),
        ({"hyperparameters": GIVEN | {"delay": 1.0, "coarse_variance": 1.0}}, "coarse part"),
        ({"hyperparameters": GIVEN, "noise_variance": 1.0}, "noise_variance cannot be given"),
        ({"prior_scale": 0.5}, "prior_scale must be at least 1"),
        ({"prior_scale": np.inf}, "prior_scale must be finite"),
        ({"posterior": "fast", "hyperparameters": "ml"}, "does not use hyperparameters="),
        ({"posterior": "fast", "hyperparameters": GIVEN}, "does not use hyperparameters="),
        ({"posterior": "fast", "prior_scale": 2.0}, "does not use prior_scale="),
        ({"posterior": "fast", "prior_scale": None}, "does not use prior_scale="),
        ({"noise": None}, "'global', 'local'"),
        ({"noise_variance": 0.0}, "noise_variance must be finite and > 0"),
        ({"noise_variance": np.inf}, "noise_variance must be finite and > 0"),
    ],
)
def test_bad_parameters_are_refused(params: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**params).fit(X, Y)


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ([1.0, np.nan, 2.0], ValueError, "Input y contains NaN in row 1"),
        ([1.0, 2.0, -np.inf], ValueError, "Input y contains -infinity in row 2"),
        ([1.0, 2.0, None], ValueError, "NaN in row 2"),
        (["1.0", "2.0", "3.0"], ValueError, "y must be numeric"),
        (np.array(["a", 1, 2], dtype=object), ValueError, "y must be numeric"),
        ([1j, 2.0, 3.0], ValueError, "Complex data not supported"),
        (np.array(["2020", "2021", "2022"], dtype="datetime64[Y]"), ValueError, "numeric"),
        ([[1.0, 2.0]] * 3, ValueError, "shape"),
        ([1.0, 2.0], ValueError, "X has 3 rows, y has 2"),
        (None, ValueError, "requires y to be passed"),
    ],
)
def test_bad_targets_are_refused_and_change_nothing(target: Any, error: Any, message: str) -> None:
    model = make().fit(X, Y)
    before = model.digest()
    with pytest.raises(error, match=message):
        model.partial_fit(X[:3], target)
    assert model.digest() == before


@pytest.mark.parametrize(
    "convert",
    [
        lambda y: y.astype(np.float32).astype(float),
        lambda y: np.round(y * 10).astype(np.int16),
        lambda y: (y > 0).tolist(),
        lambda y: y[::-1][::-1],
        lambda y: y.astype(object),
    ],
)
def test_targets_of_every_numeric_type(convert: Any) -> None:
    target = convert(Y)
    expected = make().fit(X, np.asarray(target, dtype=float)).digest()
    assert make().fit(X, target).digest() == expected


def test_a_column_of_targets_is_taken_with_a_warning() -> None:
    from sklearn.exceptions import DataConversionWarning

    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = make().fit(X, Y[:, None])
    assert model.digest() == make().fit(X, Y).digest()


def test_a_distant_row_gets_a_wide_distribution() -> None:
    model = make(n_estimators=20).fit(X, Y)
    dist = model.predict_dist([[1e6, 1e6]])
    assert dist.std[0] > 0.5 * Y.std()
    assert stats.norm.cdf(2.0) - 0.2 < dist.cdf(Y.mean() + 2.0 * dist.std[0])[0] <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("posterior", ["exact", "joint"])
def test_local_noise_has_the_tails_of_the_data(posterior: str) -> None:
    """A Gaussian with the variance of heavy-tailed noise has too wide intervals.

    The fitted distribution is that of the noise: its variance is that of `predict`, and its central
    intervals have their nominal coverage.
    """
    rng = np.random.default_rng(8)
    rows, test = rng.uniform(size=(1500, 1)), rng.uniform(size=(1500, 1))
    draw = stats.t(2.5, scale=0.3).rvs
    y, y_test = (np.sin(6.0 * x[:, 0]) + draw(len(x), random_state=rng) for x in (rows, test))
    forest = make(posterior=posterior, noise="local", n_estimators=20, min_samples_split=10)
    forest.fit(rows, y)
    dist = forest.predict_dist(test)
    mean, std = forest.predict(test, return_std=True)
    np.testing.assert_allclose(dist.mean, mean, atol=1e-9)
    np.testing.assert_allclose(dist.std, std, rtol=1e-9)
    gaussian = GaussianMixture.from_normal(mean, std)
    for level in (0.5, 0.8, 0.9, 0.95):
        inside = interval_coverage(y_test, *dist.interval(level))
        # three standard errors: 1500 test rows, and about 1000 rows to which the noise was fitted
        error = np.sqrt(level * (1.0 - level) * (1 / 1500 + 1 / 1000))
        assert inside == pytest.approx(level, abs=3.0 * error)
    assert interval_coverage(y_test, *gaussian.interval(0.5)) > 0.6
    assert nlpd(y_test, dist) < nlpd(y_test, gaussian) - 0.05


@pytest.mark.slow
@pytest.mark.parametrize("posterior", ["exact", "joint"])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_local_noise_leans_as_the_data_do(posterior: str, side: float) -> None:
    """Waiting times: the noise is exponential, to the right or, with its sign changed, to the left.

    Mean and variance are still those of `predict`.
    """
    rng = np.random.default_rng(9)
    rows, test = rng.uniform(size=(1500, 1)), rng.uniform(size=(1500, 1))
    y, y_test = (
        side * (np.sin(6.0 * x[:, 0]) + rng.exponential(0.5, len(x)) - 0.5) for x in (rows, test)
    )
    forest = make(posterior=posterior, noise="local", n_estimators=20, min_samples_split=10)
    dist = forest.fit(rows, y).predict_dist(test)
    mean, std = forest.predict(test, return_std=True)
    np.testing.assert_allclose(dist.mean, mean, atol=1e-9)
    np.testing.assert_allclose(dist.std, std, rtol=1e-9)
    gaussian = GaussianMixture.from_normal(mean, std)
    assert nlpd(y_test, dist) < nlpd(y_test, gaussian) - 0.1
    # Each fifth of the distribution, from the short tail to the long one, has a fifth of the rows.
    fifths = (
        np.histogram(0.5 + side * (d.cdf(y_test) - 0.5), 5, (0.0, 1.0))[0] / len(y_test)
        for d in (dist, gaussian)
    )
    away, of_gaussian = (np.abs(shares - 0.2).max() for shares in fifths)
    assert away < 0.07
    assert of_gaussian > 0.15


def test_noise_has_no_heavy_tails_without_leave_one_out() -> None:
    """Hyperparameters that are given, or found by another rule, come with Gaussian noise."""
    for params in ({"noise_variance": 0.1}, {"hyperparameters": "ml"}):
        one, local = (make(noise=noise, **params).fit(X, Y) for noise in ("global", "local"))
        np.testing.assert_array_equal(
            one.predict_dist(X[:5]).offsets, local.predict_dist(X[:5]).offsets
        )


# -- all trees together ---------------------------------------------------------------------------


def test_joint_posterior_is_more_accurate() -> None:
    """On a smooth target a mixture of trees is too smooth, and their sum is not."""
    test = np.random.default_rng(6).uniform(size=(400, 2))
    truth = np.sin(6.0 * test[:, 0])
    error = {
        posterior: np.sqrt(
            np.mean((make(posterior=posterior).fit(X, Y).predict(test) - truth) ** 2)
        )
        for posterior in ("exact", "joint")
    }
    assert error["joint"] < 0.9 * error["exact"]


def test_joint_posterior_is_a_function_of_the_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    whole = make(posterior="joint", noise="local").fit(X, Y)
    parts = make(posterior="joint", noise="local")
    for part in np.array_split(rng.permutation(200), 4):
        parts.partial_fit(X[part], Y[part], ids=part)
    parts.partial_fit([[0.5, 0.5]], [9.0], ids=[999]).forget([999])
    whole.save(tmp_path / "m")
    rows = rng.uniform(size=(30, 2))
    for other in (
        parts,
        MondrianForestRegressor.load(tmp_path / "m"),
        pickle.loads(pickle.dumps(whole)),
    ):
        assert other.posterior == "joint"
        assert other.digest() == whole.digest()
        for own, expected in zip(
            other.predict(rows, return_std=True), whole.predict(rows, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(own, expected)


def test_joint_leave_one_out_does_not_depend_on_the_order_of_rows() -> None:
    """Leaves have several rows, whose weights may be summed in any order."""
    rng = np.random.default_rng(1)
    rows = np.round(5.0 * X) / 5.0
    whole = make(posterior="joint").fit(rows, Y)
    order = rng.permutation(200)
    other = make(posterior="joint").fit(rows[order], Y[order], ids=order)
    for name in ("offsets", "weights", "means", "variances"):
        np.testing.assert_array_equal(
            getattr(whole.loo_predict_dist(range(20)), name),
            getattr(other.loo_predict_dist(range(20)), name),
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "params"),
    [
        (X, {}),
        (X, {"noise": "local", "min_samples_split": 10}),
        (X, {"lifetime": 5.0}),
        (np.round(8.0 * X) / 8.0, {"noise": "local"}),
    ],
)
def test_joint_predictions_shift_and_scale_with_the_targets(rows: Any, params: Any) -> None:
    """The choice is the same although equations are solved only to a relative 0.01."""
    rng = np.random.default_rng(1)
    test = rng.uniform(size=(30, 2))
    whole = make(posterior="joint", **params).fit(rows, Y)
    mean, std = whole.predict(test, return_std=True)
    for scale, shift in ((1e130, 0.0), (-3.0, 50.0), (0.37, -1e4)):
        moved = make(posterior="joint", **params).fit(rows, scale * Y + shift)
        other_mean, other_std = moved.predict(test, return_std=True)
        np.testing.assert_allclose((other_mean - shift) / scale, mean, atol=1e-8)
        np.testing.assert_allclose(other_std / abs(scale), std, rtol=1e-8)
        levels = [0.01, 0.1, 0.9, 0.99]
        expected = np.sort(scale * whole.predict_dist(test).quantile(levels) + shift, axis=0)
        found = np.sort(moved.predict_dist(test).quantile(levels), axis=0)
        np.testing.assert_allclose((found - expected) / scale, 0.0, atol=1e-7)


@pytest.mark.parametrize("noise_variance", [1e-12, 1e-30, 1e-300])
def test_joint_posterior_with_tiny_noise_is_finite(noise_variance: float) -> None:
    """Equal rows with different targets: the prediction is between them, and all is finite."""
    rows, targets = np.repeat(X[:40], 2, axis=0), np.repeat(Y[:40], 2) + np.tile([0.1, -0.1], 40)
    model = make(posterior="joint", noise_variance=noise_variance).fit(rows, targets)
    mean, std = model.predict(X[:40], return_std=True)
    assert np.isfinite(std).all()
    assert np.abs(mean).max() < np.abs(targets).max()


def test_joint_predictions_return_to_the_prior_far_away() -> None:
    model = make(posterior="joint").fit(X, Y)
    prior = model.hyperparameters_
    mean, std = model.predict([[1e6, 1e6]], return_std=True)
    assert mean[0] == pytest.approx(prior["mu"], abs=1e-3)
    spent = prior["gamma1"] / (1.0 + np.exp(-prior["gamma2"] * prior["delay"]))
    variance = spent + prior["coarse_variance"] + prior["noise_variance"]
    assert std[0] ** 2 == pytest.approx(variance, rel=1e-3)


# -- learned maps ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_learned_maps_cut_most_where_targets_vary(tmp_path: Path) -> None:
    """Labels that vary only at the low end of one feature: most of its cuts are there."""
    rng = np.random.default_rng(4)
    rows = rng.uniform(size=(900, 3))
    waves = np.where(rows[:, 2] < 0.25, np.sin(80.0 * rows[:, 2]), 0.0)
    target = waves + 0.5 * rows[:, 0] + 0.05 * rng.normal(size=900)
    exact: dict[str, Any] = {"n_estimators": 50, "posterior": "exact", "noise": "global"}
    model = make(feature_weights="learned", **exact).fit(rows[:600], target[:600])
    assert model.feature_weights_.argmin() == model.feature_importances_.argmin() == 1
    maps = model.feature_maps_
    assert maps is not None
    for knots, shares in maps:
        assert (np.diff(knots) > 0.0).all()
        assert (np.diff(shares) > 0.0).all()
        assert (knots[0], knots[-1], shares[0], shares[-1]) == (0.0, 1.0, 0.0, 1.0)
    knots, shares = maps[2]
    assert np.interp(0.25, knots, shares) > 0.6
    model.save(tmp_path / "m")
    loaded = MondrianForestRegressor.load(tmp_path / "m")
    for other, own in zip(loaded.feature_maps_ or [], maps, strict=True):
        np.testing.assert_array_equal(other, own)
    # Rates alone, at the same weights, are not enough, on average over what is learned and grown.
    by_maps, by_rates = [], []
    for learning in range(8):
        learned = make(feature_weights="learned", random_state=learning, **exact)
        own = learned.fit(rows[:600], target[:600]).feature_maps_
        if own is None:
            continue
        for growing, (scores, used) in itertools.product(
            range(4), ((by_maps, own), (by_rates, None))
        ):
            weights = {"feature_weights": learned.feature_weights_, "feature_maps": used}
            forest = make(random_state=growing, **exact, **weights).fit(rows[:600], target[:600])
            scores.append(forest.score(rows[600:], target[600:]))
    assert len(by_maps) >= 20
    assert np.mean(by_maps) > np.mean(by_rates) + 0.01


def test_maps_must_be_those_of_one_forest_to_merge() -> None:
    exact: dict[str, Any] = {"posterior": "exact", "noise": "global"}
    plain = make(**exact).fit(X[:100], Y[:100], ids=np.arange(100))
    rows = np.random.default_rng(4).uniform(size=(250, 2))
    waves = np.where(rows[:, 1] < 0.25, np.sin(50.0 * rows[:, 1]), 0.0) + 0.5 * rows[:, 0]
    learned = make(feature_weights="learned", **exact).fit(rows, waves, ids=np.arange(100, 350))
    assert learned.feature_maps_ is not None
    with pytest.raises(ValueError, match=r"feature (weights|maps) are equal"):
        plain.merge(learned)


def test_shards_share_frozen_maps() -> None:
    first = make(feature_weights="learned").fit(X, Y)
    frozen = {
        "feature_weights": first.feature_weights_,
        "feature_maps": first.feature_maps_,
        "feature_range": first.feature_range_,
    }
    whole = make(**frozen).fit(X, Y, ids=np.arange(200))
    shard = make(**frozen).fit(X[:80], Y[:80], ids=np.arange(80))
    shard.merge(make(**frozen).fit(X[80:], Y[80:], ids=np.arange(80, 200)))
    assert shard.digest() == whole.digest() == first.digest()
    np.testing.assert_array_equal(clone(shard).fit(X, Y).predict(X), whole.predict(X))


@pytest.mark.parametrize("posterior", ["exact", "fast", "joint"])
@pytest.mark.parametrize(("n_rows", "target"), [(1, 5.0), (20, 5.0), (20, -3e-8), (20, 0.0)])
@pytest.mark.filterwarnings("ignore:y has no other value than:UserWarning")
def test_equal_targets_show_no_scale(posterior: Any, n_rows: int, target: float) -> None:
    """The variance is that of rounding, unless the noise is given."""
    rng = np.random.default_rng(0)
    rows, y = rng.uniform(size=(n_rows, 2)), np.full(n_rows, target)
    at = np.array([rows[0], [50.0, -50.0]])
    forest = MondrianForestRegressor(5, random_state=0, posterior=posterior).fit(rows, y)
    found = forest.predict_dist(at)
    np.testing.assert_allclose(found.mean, target, rtol=1e-12, atol=1e-140)
    assert (found.std > 0.0).all()
    assert (found.std < 1e-14 * abs(target) + 1e-140).all()
    assert np.isfinite(found.logpdf([target, target])).all()
    given = clone(forest).set_params(noise_variance=0.25).fit(rows, y).predict_dist(at)
    np.testing.assert_allclose(given.mean, target, rtol=1e-12, atol=1e-140)
    np.testing.assert_allclose(given.var, 0.25, rtol=1e-6)
    # Nothing of this lasts: with other rows the forest is that of all rows.
    more, z = rng.uniform(size=(3, 2)), np.array([1.0, 2.0, 4.0])
    streamed = clone(forest).partial_fit(rows, y).partial_fit(more, z)
    whole = clone(forest).fit(np.concatenate([rows, more]), np.concatenate([y, z]))
    assert streamed.digest() == whole.digest()


@pytest.mark.filterwarnings("ignore:y has no other value than:UserWarning")
def test_targets_whose_squares_vanish_are_refused() -> None:
    """Unless other targets of the forest are greater, or all are zero."""
    rows = np.random.default_rng(0).uniform(size=(20, 2))
    tiny, message = 1e-160 * rows[:, 0], r"y must be zero .* at least 1e-140 .*found .* of .*e-161"
    forest = MondrianForestRegressor(3, random_state=0)
    for learn in (forest.fit, forest.partial_fit):
        with pytest.raises(ValueError, match=message):
            learn(rows, tiny)
        assert not hasattr(forest, "_model")
    forest.fit(rows, 0.0 * tiny)
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(rows, tiny)
    assert forest.n_rows_ == 20
    forest.partial_fit(rows, 1e-130 * rows[:, 1]).partial_fit(rows, tiny)
    assert np.isfinite(forest.predict(rows)).all()
