"""A linear part of the mean, near the rows and far from them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import boscage
from boscage import MondrianForestRegressor
from reference.arrays import Array

N = 400
BEYOND = np.r_[0.05, 0.2, 0.5, 1.0, 3.0, 10.0, 1e3, 1e6, 1e9]


def data(kind: str, n: int = N) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(n, 2))
    t, noise = x[:, 0], rng.normal(size=n)
    y = {
        "line": 3.0 * t - 1.0,
        "noisy line": 3.0 * t - 1.0 + 0.3 * noise,
        "sine": np.sin(6.0 * t) + 0.1 * noise,
        "step": (t > 0.5) + 0.1 * noise,
        "noise": noise,
    }[kind]
    return x, y


def fit(kind: str, trend: Any = "linear", **params: Any) -> MondrianForestRegressor:
    x, y = data(kind)
    settings = {"feature_weights": None, "random_state": 0, **params}
    return MondrianForestRegressor(20, trend=trend, **settings).fit(x, y)


def ray() -> Array:
    return np.column_stack([1.0 + BEYOND, np.full(len(BEYOND), 0.5)])


@pytest.mark.parametrize("kind", ["line", "noisy line"])
def test_the_mean_continues_a_line(kind: str) -> None:
    mean, std = fit(kind).predict(ray(), return_std=True)
    truth = 3.0 * (1.0 + BEYOND) - 1.0
    near = BEYOND <= 3.0
    tolerance = 0.02 if kind == "line" else 0.15
    np.testing.assert_allclose(mean[near], truth[near], rtol=tolerance)
    np.testing.assert_allclose(mean[~near], truth[~near], rtol=tolerance)
    assert (np.abs(mean - truth) < 4.0 * std).all()


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_a_tail_has_to_confirm_a_slope(seed: int) -> None:
    """Few rows lie far out, and those to come lie farther: a curve goes on as no line does."""
    rng = np.random.default_rng(seed)
    x, noise = rng.lognormal(0.0, 2.0, size=(100, 3)), rng.normal(size=100)
    curved = np.log(x[:, 0]) + np.log1p(x[:, 1]) + 0.3 * noise
    straight = x[:, 0] + 0.3 * noise
    forest = MondrianForestRegressor(10, random_state=0)
    assert forest.fit(x, curved).trend_ is None
    assert 0 in forest.fit(x, straight).trend_


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["line", "noisy line", "sine", "step", "noise"])
def test_far_away_the_deviation_is_the_targets_and_grows(kind: str) -> None:
    std = fit(kind).predict(ray(), return_std=True)[1] / data(kind)[1].std()
    assert std[-1] > 0.85
    assert (np.maximum.accumulate(std) - std).max() < 0.03
    if kind not in ("line", "noise"):  # a slope that is known, or as good as none
        # In the end all uncertainty is that of the slopes, which grows like the distance.
        assert std[-1] / std[-2] == pytest.approx(1e3, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["noisy line", "sine", "step", "noise"])
def test_near_rows_little_changes(kind: str) -> None:
    rng = np.random.default_rng(7)
    at = rng.uniform(0.05, 0.95, size=(300, 2))
    truth = {
        "noisy line": 3.0 * at[:, 0] - 1.0,
        "sine": np.sin(6.0 * at[:, 0]),
        "step": 1.0 * (at[:, 0] > 0.5),
        "noise": np.zeros(300),
    }[kind]
    noise = {"noisy line": 0.3, "sine": 0.1, "step": 0.1, "noise": 1.0}[kind]
    means = [fit(kind, trend).predict(at) for trend in ("linear", None)]
    # Of new targets, whose noise no forest can predict.
    error, before = (np.sqrt(np.mean((mean - truth) ** 2) + noise**2) for mean in means)
    assert error < 1.02 * before


def test_the_coverage_beyond_a_noisy_line() -> None:
    rng = np.random.default_rng(3)
    at = np.column_stack([rng.uniform(1.0, 2.0, size=500), rng.uniform(size=500)])
    targets = 3.0 * at[:, 0] - 1.0 + 0.3 * rng.normal(size=500)
    low, high = fit("noisy line").predict_dist(at).interval(0.9)
    assert np.mean((low <= targets) & (targets <= high)) > 0.85


@pytest.mark.parametrize("rule", ["loo", "ml", "heuristic"])
@pytest.mark.parametrize("noise", ["local", "global"])
def test_histories_and_files(rule: Any, noise: Any) -> None:
    x, y = data("sine", 150)
    options = {"hyperparameters": rule, "noise": noise, "feature_range": (0.0, 1.0)}

    def empty() -> MondrianForestRegressor:
        return MondrianForestRegressor(
            7, trend="linear", feature_weights=None, random_state=3, **options
        )

    once = empty().fit(x, y)
    order = np.random.default_rng(0).permutation(150)
    stream = empty()
    for rows in np.array_split(order, 7):
        stream.partial_fit(x[rows], y[rows], ids=rows)
    stream.partial_fit(x[:5] + 3.0, y[:5], ids=np.arange(500, 505)).flush()
    stream.forget(np.arange(500, 505))
    halves = [empty().fit(x[rows], y[rows], ids=rows) for rows in (order[:80], order[80:])]
    file = io.BytesIO()
    once.save(file)
    loaded = boscage.load(io.BytesIO(file.getvalue()))
    threads = empty().set_params(n_jobs=2).fit(x[order], y[order])
    at = np.concatenate([x[:20], 5.0 * x[:20]])
    for other in (stream, halves[0] + halves[1], loaded, threads):
        assert other.digest() == once.digest()
        assert other.trend_ == "linear"
        for a, b in zip(
            once.predict(at, return_std=True), other.predict(at, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(
            once.predict_dist(at).variances, other.predict_dist(at).variances
        )
    assert once.hyperparameters_ == loaded.hyperparameters_
    plain = empty().set_params(trend=None).fit(x, y)
    assert plain.digest() != once.digest()
    with pytest.raises(ValueError, match="settings"):
        empty().set_params(trend=None).fit(x[:9], y[:9], ids=range(900, 909)).merge(once)


def test_hyperparameters_can_be_given_again() -> None:
    x, y = data("noisy line")
    one = fit("noisy line", hyperparameters="ml", noise="global")
    given = one.hyperparameters_
    assert "trend_variance" in given
    again = MondrianForestRegressor(
        20,
        trend="linear",
        hyperparameters=given,
        noise="global",
        feature_weights=None,
        random_state=0,
    ).fit(x, y)
    assert again.hyperparameters_ == given
    file = io.BytesIO()
    again.save(file)
    loaded = boscage.load(io.BytesIO(file.getvalue()))
    assert loaded.hyperparameters_ == given
    assert loaded.digest() == again.digest()
    assert loaded.get_params()["hyperparameters"] == given
    np.testing.assert_allclose(again.predict(ray()), one.predict(ray()), rtol=1e-3)


def test_features_that_are_not_cut_have_no_slope() -> None:
    x, y = data("noisy line")
    x = np.column_stack([x, x[:, 0], np.full(N, 7.0)])
    model = MondrianForestRegressor(
        5, trend="linear", feature_weights=[1.0, 1.0, 0.0, 1.0], random_state=0
    ).fit(x, y)
    slopes = model.trend_slopes_
    assert slopes is not None
    np.testing.assert_array_equal(slopes[2:], 0.0)
    assert slopes[0] == pytest.approx(3.0, abs=0.4)


@pytest.mark.slow
def test_chosen_features_have_slopes() -> None:
    x, _ = data("noisy line")
    one = fit("noisy line", [1])
    slopes = one.trend_slopes_
    assert slopes is not None
    assert slopes[0] == 0.0
    assert slopes[1] != 0.0
    assert one.trend_ == [1]
    file = io.BytesIO()
    one.save(file)
    loaded = boscage.load(io.BytesIO(file.getvalue()))
    assert (loaded.trend, loaded.digest()) == ([1], one.digest())
    assert fit("noisy line", [0, 1]).digest() != one.digest()
    # All features by their numbers are all features.
    np.testing.assert_array_equal(
        fit("noisy line", (1, 0)).predict(x), fit("noisy line").predict(x)
    )


def test_many_features_cost_a_bounded_number_of_slopes() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(200, 40))
    y = x @ np.linspace(0.0, 1.0, 40)
    weights = np.linspace(0.1, 1.0, 40)
    model = MondrianForestRegressor(5, trend="linear", feature_weights=weights, random_state=0).fit(
        x, y
    )
    slopes = model.trend_slopes_
    assert slopes is not None
    np.testing.assert_array_equal(np.flatnonzero(slopes), np.arange(26, 40))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows(n: int) -> None:
    x, y = data("noisy line")
    model = MondrianForestRegressor(
        5, trend="linear", feature_range=(0.0, 1.0), feature_weights=None, random_state=0
    ).fit(x[:n], y[:n])
    mean, std = model.predict(ray(), return_std=True)
    assert np.isfinite([mean, std]).all()
    assert (std > 0.0).all()
    model.forget(model.ids_).partial_fit(x[:n], y[:n])
    np.testing.assert_array_equal(model.predict(ray()), mean)


@pytest.mark.parametrize("trend", ["linear", list(range(18))], ids=["linear", "list"])
def test_at_most_14_features_of_a_trend_have_slopes(trend: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 20))
    x[:, 5] = 0.0  # a feature without a range
    weights = rng.permutation(20).astype(float)
    y = x @ rng.normal(size=20)
    model = MondrianForestRegressor(3, trend=trend, feature_weights=weights, random_state=0)
    assert model.fit(x, y).trend_ == trend
    named = range(20) if trend == "linear" else trend
    may_have = [d for d in named if weights[d] > 0.0 and d != 5]
    greatest = sorted(may_have, key=lambda d: -weights[d])[:14]
    slopes = model.trend_slopes_
    assert slopes is not None
    np.testing.assert_array_equal(np.flatnonzero(slopes), np.sort(greatest))


@pytest.mark.filterwarnings("ignore:y has no other value than:UserWarning")
def test_targets_without_spread() -> None:
    x, _ = data("noise", 30)
    model = MondrianForestRegressor(5, trend="linear", random_state=0).fit(x, np.full(30, 4.5))
    np.testing.assert_allclose(model.predict(x), 4.5)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"trend": "linear", "posterior": "exact"}, "posterior='joint'"),
        ({"trend": "linear", "posterior": "fast"}, "posterior='joint'"),
        ({"trend": "quadratic"}, "trend must be"),
        ({"trend": []}, "at least one"),
        ({"trend": [0, 0]}, "each once"),
        ({"trend": [-1]}, "none negative"),
        ({"trend": [2]}, "trend"),
        (
            {
                "trend": "linear",
                "hyperparameters": {"mu": 0.0, "gamma1": 1.0, "gamma2": 1.0, "noise_variance": 1.0},
            },
            r"need trend_variance if trend='linear': give it, or trend=None",
        ),
        (
            {
                "hyperparameters": {
                    "mu": 0.0,
                    "gamma1": 1.0,
                    "gamma2": 1.0,
                    "noise_variance": 1.0,
                    "trend_variance": 1.0,
                },
                "trend": None,
            },
            r"trend=None has none: leave it out, or give the features with slopes",
        ),
    ],
)
def test_refusals(params: dict[str, Any], match: str) -> None:
    x, y = data("noise", 20)
    with pytest.raises(ValueError, match=match):
        MondrianForestRegressor(2, feature_weights=None, **params).fit(x, y)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_features_of_a_trend_may_be_given_by_name(library: str) -> None:
    tables = pytest.importorskip(library)
    x, y = data("noisy line", 60)
    make = tables.table if library == "pyarrow" else tables.DataFrame
    table = make({"b": x[:, 0], "a": x[:, 1]})
    settings: dict[str, Any] = {"feature_weights": None, "random_state": 0}
    by_number = MondrianForestRegressor(3, trend=[0], **settings).fit(table, y)
    names: Any
    for names in (["b"], ("b",), {"b"}, np.array(["b"])):
        forest = MondrianForestRegressor(3, trend=names, **settings).fit(table, y)
        assert (forest.trend_, forest.digest()) == ([0], by_number.digest())
        assert forest.trend is names
    both = MondrianForestRegressor(3, trend=["a", "b"], **settings).fit(table, y)
    assert both.trend_ == [0, 1]


def test_a_trend_by_name_follows_a_stream_and_other_tables() -> None:
    pd = pytest.importorskip("pandas")
    x, y = data("noisy line", 60)
    table = pd.DataFrame(x, columns=["b", "a"])
    forests = [
        MondrianForestRegressor(3, trend=trend, random_state=0, warm_up=50)
        for trend in (["a"], [1])
    ]
    for forest in forests:
        for start in range(0, 60, 20):
            forest.partial_fit(table[start : start + 20], y[start : start + 20])
        forest.set_params(noise="global").partial_fit(table[:1], y[:1])
        forest.merge(forest.copy().forget(range(61)))
    assert forests[0].trend_ == [1]
    assert forests[0].digest() == forests[1].digest()
    file = io.BytesIO()
    forests[0].save(file)
    loaded = boscage.load(io.BytesIO(file.getvalue()))
    assert (loaded.trend, loaded.digest()) == (["a"], forests[0].digest())
    loaded.set_params(trend=["a"]).partial_fit(table[1:2], y[1:2])
    # Names are looked up in the table of each fit, not in that of the one before.
    assert forests[0].fit(table[["a", "b"]], y).trend_ == [0]
    with pytest.raises(ValueError, match=r"trend holds names \('a'\), but X has no names"):
        forests[0].fit(x, y)
    assert forests[0].trend_ == [0]
    with pytest.raises(ValueError, match="trend holds 'c', which is no column of X"):
        forests[0].set_params(trend=["a", "c"]).fit(table, y)
    for wrong, error in (({"a": 1}, TypeError), (["a", 0], TypeError), (["a", "a"], ValueError)):
        with pytest.raises(error, match=r"trend must be .* the numbers, or of the names"):
            forests[0].set_params(trend=wrong).fit(table, y)


def test_the_hyperparameters_of_a_chosen_trend_ask_for_its_features() -> None:
    x, y = data("noisy line")
    one = MondrianForestRegressor(5, hyperparameters="ml", random_state=0).fit(x, y)
    given = one.hyperparameters_
    assert one.trend_ == [0]
    again = MondrianForestRegressor(5, hyperparameters=given, random_state=0)
    with pytest.raises(ValueError, match=r"trend='auto' chooses .* then: .*, trend=other\.trend_$"):
        again.fit(x, y)
    again.set_params(trend=one.trend_).fit(x, y)
    assert again.hyperparameters_ == given
    assert again.trend_ == [0]


@pytest.mark.slow
def test_slopes_are_chosen_one_by_one() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(800, 3))
    y = 4.0 * x[:, 0] + 3.0 * np.exp(-8.0 * x[:, 1]) + 0.1 * rng.normal(size=800)
    assert MondrianForestRegressor(5, trend="auto", random_state=0).fit(x, y).trend_ == [0]


def chosen(kind: str) -> MondrianForestRegressor:
    return MondrianForestRegressor(5, random_state=0).fit(*data(kind))


@pytest.mark.slow
def test_a_feature_with_few_values_may_have_a_slope() -> None:
    """Half of the rows have the highest value."""
    rng = np.random.default_rng(0)
    x = rng.choice([0.0, 0.1, 0.3, 0.5, 1.0], size=(400, 1), p=[0.1, 0.1, 0.1, 0.2, 0.5])
    y = 3.0 * x[:, 0] + 0.1 * rng.normal(size=400)
    assert MondrianForestRegressor(5, random_state=0).fit(x, y).trend_ == [0]


@pytest.mark.slow
def test_defaults_go_on_with_a_line_and_not_with_noise() -> None:
    assert chosen("noisy line").trend_ == [0]
    assert chosen("noise").trend_ is None
    given = MondrianForestRegressor(5, feature_weights=None, random_state=0)
    assert given.fit(*data("line")).trend_ is None


@pytest.mark.slow
def test_the_choice_is_a_function_of_the_rows_and_is_kept() -> None:
    x, y = data("noisy line")
    model = MondrianForestRegressor(5, random_state=0, n_jobs=2).fit(x, y)
    assert model.trend_ == [0]
    order = np.random.default_rng(0).permutation(N)
    assert MondrianForestRegressor(5, random_state=0).fit(x[order], y[order]).trend_ == [0]
    stream = MondrianForestRegressor(5, random_state=0)
    for rows in np.array_split(np.arange(N), 5):
        stream.partial_fit(x[rows], y[rows])
    assert stream.warm_up_left_ == 600
    more = np.random.default_rng(1).uniform(size=(600, 2))
    stream.partial_fit(more, 3.0 * more[:, 0] - 1.0)
    assert stream.trend_ == [0]
    file = io.BytesIO()
    model.save(file)
    loaded = boscage.load(io.BytesIO(file.getvalue()))
    assert (loaded.trend, loaded.trend_) == ("auto", [0])
    assert loaded.digest() == model.digest()


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("rule", ["ml", "loo", "heuristic"])
def test_few_rows_leave_slopes_uncertain(n: int, rule: Any) -> None:
    """A plane goes through all of them, and says nothing about the noise."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(size=(n, 3)), rng.normal(size=n)
        model = MondrianForestRegressor(
            8, trend="linear", hyperparameters=rule, feature_weights=None, random_state=0
        )
        mean, std = model.fit(x, y).predict(np.full((1, 3), 1e5), return_std=True)
        assert abs(mean[0]) < 10.0 * std[0]


@pytest.mark.slow
def test_leaving_rows_out_of_an_exact_line() -> None:
    x, _ = data("line", 120)
    model = MondrianForestRegressor(8, trend="linear", feature_weights=None, random_state=0).fit(
        x, 2.0 * x[:, 0] + 1.0
    )
    assert (model.loo_predict_dist().std > 0.0).all()
