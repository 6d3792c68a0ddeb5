"""`feature_weights="learned"`: which rows teach, what is proposed, what judges it, what is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal, rankdata
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss

from boscage import MondrianForestClassifier, MondrianForestRegressor, _core
from boscage.mondrian.feature_rates import classification, regression
from boscage.mondrian.feature_rates._shared import first_by_contents
from boscage.mondrian.feature_rates.class_kernel_rates import (
    NOISE,
    class_kernel_rates,
    surprise_of,
)
from boscage.mondrian.feature_rates.kernel_rates import LEAST_RATE, kernel_rates
from boscage.mondrian.feature_rates.rank_maps import in_units, rank_maps

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def learned(**params: Any) -> MondrianForestRegressor:
    return MondrianForestRegressor(
        # Local noise changes no mean, and so no choice.
        **(
            {"n_estimators": 20, "feature_weights": "learned", "noise": "global", "random_state": 1}
            | params
        )
    )


def additive(n: int, seed: int) -> tuple[Any, Any]:
    """A smooth sum whose terms matter more and less, and two features that do not matter."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(size=(n, 5))
    noise = 0.1 * rng.normal(size=n)
    return rows, 3.0 * np.sin(3.0 * rows[:, 0]) + 2.0 * rows[:, 1] + rows[:, 2] ** 2 + noise


# -- proposals ------------------------------------------------------------------------------------


def test_kernel_rates_find_what_matters() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(300, 6))
    target = np.sin(6.0 * rows[:, 4]) + 0.5 * rows[:, 1] + 0.05 * rng.normal(size=300)
    rates = kernel_rates(rows, target, np.full(6, 1.0 / 6.0))
    assert rates.argmax() == 4
    assert rates[4] > 2.0 * rates[1]
    assert rates[1] > 5.0 * rates[[0, 2, 3, 5]].max()
    # Shifted and scaled targets have the same rates.
    np.testing.assert_array_equal(rates, kernel_rates(rows, 8.0 * target - 64.0, np.full(6, 1 / 6)))


def test_kernel_rates_are_rounded_so_that_last_bits_do_not_matter() -> None:
    rows, target = additive(200, 0)
    rates = kernel_rates(rows, target, np.full(5, 0.2))
    quarters = 4.0 * np.log2(rates)
    np.testing.assert_allclose(quarters, np.round(quarters), atol=1e-9)
    assert len(np.unique(rates)) > 2
    nudged = kernel_rates(rows, target * (1.0 + 1e-15), np.full(5, 0.2))
    np.testing.assert_array_equal(rates, nudged)


def test_kernel_rates_of_few_important_features_among_many() -> None:
    rng = np.random.default_rng(1)
    rows = rng.uniform(size=(120, 300))
    importances = np.full(300, 1e-4)
    importances[[7, 200]] = 0.5
    rates = kernel_rates(rows, rows[:, 200] - 2.0 * rows[:, 7], importances)
    assert set(np.argsort(-rates)[:2]) == {7, 200}
    # Unimportant features are not learned, and not ignored either.
    assert (rates == LEAST_RATE).sum() >= 260


def test_kernel_rates_of_what_says_nothing_are_equal() -> None:
    rows = np.random.default_rng(2).uniform(size=(30, 3))
    even = np.full(3, 1.0 / 3.0)
    np.testing.assert_array_equal(kernel_rates(rows, np.full(30, 7.0), even), np.ones(3))
    np.testing.assert_array_equal(kernel_rates(np.zeros((30, 3)), rows[:, 0], even), np.ones(3))
    # A constant feature has the smallest rate.
    rows[:, 1] = 0.5
    assert kernel_rates(rows, rows[:, 0], even).argmin() == 1


def codes_of(labels: Any) -> Any:
    members = np.eye(labels.max() + 1)[labels]
    return members - members.mean(axis=0)


def test_the_likelihood_of_codes_is_that_of_independent_gaussian_processes() -> None:
    rng = np.random.default_rng(3)
    first, second = np.triu_indices(12, 1)
    codes = codes_of(np.r_[0, 1, 2, rng.integers(0, 3, size=9)])
    # Two orthonormal contrasts of three classes hold all that the codes do.
    contrasts = codes @ np.linalg.svd(np.ones((1, 3)))[2][1:].T

    def log_likelihood(rows: Any) -> float:
        distances = np.abs(rows[:, np.newaxis] - rows).sum(axis=2)
        covariance = 1.0 / (1.0 + distances) + NOISE * np.eye(12)
        variance = np.sum(contrasts * np.linalg.solve(covariance, contrasts)) / contrasts.size
        law = multivariate_normal(cov=variance * covariance)
        return float(law.logpdf(contrasts.T).sum())

    def surprise(rows: Any) -> float:
        distances = np.abs(rows[first] - rows[second]).sum(axis=1)
        return surprise_of(1.0 / (1.0 + distances), codes, first, second)[0]

    one, other = rng.uniform(size=(2, 12, 3))
    assert surprise(one) - surprise(other) == pytest.approx(
        log_likelihood(other) - log_likelihood(one), rel=1e-9
    )


def test_the_gradient_of_the_likelihood_of_codes() -> None:
    rng = np.random.default_rng(4)
    first, second = np.triu_indices(8, 1)
    codes = codes_of(np.r_[0, 1, 2, rng.integers(0, 3, size=5)])
    covariances = 1.0 / (1.0 + rng.uniform(1.0, 3.0, size=len(first)))
    error = check_grad(
        lambda values: surprise_of(values, codes, first, second)[0],
        lambda values: surprise_of(values, codes, first, second)[1],
        covariances,
    )
    assert error < 1e-5


def test_class_kernel_rates_find_what_matters() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(300, 6))
    labels = np.digitize(np.sin(6.0 * rows[:, 4]) + 0.5 * rows[:, 1], [-0.3, 0.6])
    rates = class_kernel_rates(rows, labels, np.full(6, 1.0 / 6.0))
    assert rates.argmax() == 4
    assert rates[4] > 2.0 * rates[1]
    assert rates[1] > 2.0 * rates[[0, 2, 3, 5]].max()
    # The numbers of classes do not matter, and rates are rounded.
    np.testing.assert_array_equal(
        rates, class_kernel_rates(rows, 7 * (2 - labels), np.full(6, 1.0 / 6.0))
    )
    quarters = 4.0 * np.log2(rates)
    np.testing.assert_allclose(quarters, np.round(quarters), atol=1e-9)


def test_class_kernel_rates_of_what_says_nothing_are_equal() -> None:
    rows = np.random.default_rng(2).uniform(size=(30, 3))
    even = np.full(3, 1.0 / 3.0)
    np.testing.assert_array_equal(class_kernel_rates(rows, np.full(30, 7), even), np.ones(3))
    labels = np.arange(30) % 2
    np.testing.assert_array_equal(class_kernel_rates(np.zeros((30, 3)), labels, even), np.ones(3))


# -- what is chosen -------------------------------------------------------------------------------


@pytest.mark.slow
def test_rates_without_maps_win_where_targets_are_smooth() -> None:
    rows, target = make_friedman1(1700, noise=1.0, random_state=1)
    model = learned(posterior="joint").fit(rows[:1200], target[:1200])
    assert model.feature_maps_ is None
    assert model.feature_weights_[:5].min() > 2.0 * model.feature_weights_[5:].max()
    equal = learned(posterior="joint", feature_weights=None).fit(rows[:1200], target[:1200])
    errors = [np.std(m.predict(rows[1200:]) - target[1200:]) for m in (model, equal)]
    assert errors[0] < 0.85 * errors[1]


@pytest.mark.slow
@pytest.mark.parametrize("posterior", ["exact", "fast", "joint"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rates_stay_equal_where_targets_are_noise(seed: int, posterior: str) -> None:
    rng = np.random.default_rng(seed)
    model = learned(posterior=posterior, random_state=seed)
    model.fit(rng.uniform(size=(250, 4)), rng.normal(size=250))
    np.testing.assert_array_equal(model.feature_weights_, np.ones(4))
    assert model.feature_maps_ is None
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_rates_stay_equal_where_all_features_matter_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.uniform(size=(300, 4))
    target = np.sin(3.0 * rows).sum(axis=1) + 0.5 * rng.normal(size=300)
    model = learned(posterior="joint", random_state=seed).fit(rows, target)
    np.testing.assert_array_equal(model.feature_weights_, np.ones(4))


# -- what judges ----------------------------------------------------------------------------------


class Spy:
    """Compiled forests that record what they are made of, fitted to, and asked."""

    def __init__(self, **settings: Any) -> None:
        self.made.append(settings)
        self.forest = _core.MondrianRegressor(**settings)

    made: list[dict[str, Any]]
    asked: list[tuple[str, Any, Any]]

    def fit(self, X: Any, y: Any, **options: Any) -> None:
        self.rows = X
        self.forest.fit(X, y, **options)

    def takes_limit(self, n_rows: int) -> bool:
        return self.forest.takes_limit(n_rows)

    def predict_mean(self, X: Any, **options: Any) -> Any:
        self.asked.append(("predict_mean", self.rows, X))
        return self.forest.predict_mean(X, **options)

    def loo_dist(self, ids: Any, **options: Any) -> Any:
        self.asked.append(("loo_dist", self.rows, self.rows[ids]))
        return self.forest.loo_dist(ids, **options)


@pytest.mark.parametrize(
    ("params", "by"),
    [
        ({"posterior": "joint", "noise": "local"}, "predict_mean"),
        ({"posterior": "joint", "predictive": "realised", "min_samples_split": 5}, "predict_mean"),
        ({"posterior": "fast", "lifetime": 3.0}, "loo_dist"),
        ({"hyperparameters": "ml", "prior_scale": None, "n_estimators": 3}, "predict_mean"),
        ({"posterior": "exact", "hyperparameters": "ml", "n_estimators": 3}, "loo_dist"),
    ],
)
def test_the_judge_has_the_settings_of_the_forest(monkeypatch: Any, params: Any, by: str) -> None:
    class Core:
        MondrianRegressor = type("Recorded", (Spy,), {"made": [], "asked": []})

        def __getattr__(self, name: str) -> Any:
            return getattr(_core, name)

    monkeypatch.setattr(regression, "_core", Core())
    rows, target = additive(90, 3)
    learned(trend=None, **params).fit(rows, target)  # forests that choose a trend are none of these
    made, asked = Core.MondrianRegressor.made, Core.MondrianRegressor.asked
    # The first one is asked whether the forest has the limit of infinitely many trees.
    is_limit = _core.MondrianRegressor(**made.pop(0)).takes_limit(90)
    most = regression.BY_LIMIT.trees if is_limit else regression.STAGE.trees
    assert len(made) == len(asked) >= len(regression.CANDIDATES) + 1
    for settings in made:
        # Local noise changes no mean; the number of trees is only limited.
        assert settings["n_estimators"] <= params.get("n_estimators", most)
        assert settings["joint_kernel"] == ("limit" if is_limit else "trees")
        for name in {*params} - {"noise", "n_estimators"}:
            assert settings[name] == params[name]
    for method, fitted, judged in asked:
        assert method == by
        # All judging rows are left out: of the fit, or one at a time.
        inside = [any((row == other).all() for other in fitted) for row in judged]
        assert all(inside) if by == "loo_dist" else not any(inside)
        assert len(judged) == 30


# -- the whole ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_few_rows_have_equal_rates(n: int) -> None:
    rows, target = additive(n, 4)
    model = learned(posterior="joint").fit(rows, target)
    np.testing.assert_array_equal(model.feature_weights_, np.ones(5))


@pytest.mark.parametrize("posterior", ["exact", "joint"])
@pytest.mark.parametrize("n", [10, 11, 30])
def test_rates_of_little_are_rates(n: int, posterior: str) -> None:
    """Ties, a constant feature, single precision, more features than rows, far rows."""
    rows, target = additive(n, 5)
    rows = np.hstack((np.round(rows), np.ones((n, 1)), np.tile(rows, 8))).astype(np.float32)
    rows[0] *= 1e6
    model = learned(posterior=posterior, n_estimators=5).fit(rows, 1e3 * np.round(target))
    weights = model.feature_weights_
    assert np.isfinite(weights).all()
    assert (weights >= 0.0).all()
    assert weights.sum() == pytest.approx(rows.shape[1])
    assert np.isfinite(model.predict(rows)).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_choice_is_a_function_of_rows_and_seed(dtype: Any) -> None:
    rows, target = additive(150, 6)
    rows = rows.astype(dtype)
    one, other = (learned(posterior="joint", n_jobs=jobs).fit(rows, target) for jobs in (1, 2))
    assert one.digest() == other.digest()
    np.testing.assert_array_equal(one.feature_importances_, other.feature_importances_)
    assert not np.array_equal(one.feature_weights_, np.ones(5))


# -- which rows -----------------------------------------------------------------------------------


def test_the_rows_are_chosen_by_their_contents() -> None:
    rng = np.random.default_rng(0)
    rows, target = np.round(rng.uniform(size=(500, 2)), 1), np.round(rng.normal(size=500), 1)
    shuffled = rng.permutation(500)
    found = first_by_contents(rows, target, 60, 3)
    again = first_by_contents(rows[shuffled], target[shuffled], 60, 3)
    for values in (rows, target):
        np.testing.assert_array_equal(values[found], values[shuffled][again])
    # Shifted and scaled targets, single precision and the sign of zero do not matter.
    np.testing.assert_array_equal(found, first_by_contents(rows, 8.0 * target - 3.0, 60, 3))
    rows = np.where(rows == 0.0, -0.0, rows)
    np.testing.assert_array_equal(found, first_by_contents(rows, target, 60, 3))
    assert set(found) != set(first_by_contents(rows, target, 60, 4))


def test_copies_are_chosen_as_often_as_other_rows() -> None:
    rows = np.zeros((2000, 1))
    rows[1000:, 0] = 1.0 + np.arange(1000)
    found = first_by_contents(rows, np.arange(2000.0), 400, 0)
    assert len(set(found)) == 400
    assert 150 < (found < 1000).sum() < 250
    # In random order, too.
    assert 70 < (found[:200] < 1000).sum() < 130


@pytest.mark.parametrize("kind", [MondrianForestClassifier, MondrianForestRegressor])
def test_the_order_of_rows_does_not_matter(kind: Any) -> None:
    rows, target = additive(150, 1)
    if kind is MondrianForestClassifier:
        target = (target > 2.5).astype(int)
    shuffled = np.random.default_rng(0).permutation(150)
    one = kind(5, random_state=0).fit(rows, target)
    other = kind(5, random_state=0).fit(rows[shuffled], target[shuffled])
    assert one.digest() == other.digest()
    assert not np.array_equal(one.feature_weights_, np.ones(5))


# -- classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2, 5))
def test_rates_stay_equal_where_labels_are_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = MondrianForestClassifier(20, random_state=seed)
    model.fit(rng.uniform(size=(250, 4)), rng.integers(0, 3, size=250))
    np.testing.assert_array_equal(model.feature_weights_, np.ones(4))
    assert model.feature_maps_ is None


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_few_labels_have_equal_rates(n: int) -> None:
    rows, target = additive(n, 4)
    model = MondrianForestClassifier(5, random_state=0).fit(rows, (target > 2.5).astype(int))
    np.testing.assert_array_equal(model.feature_weights_, np.ones(5))


@pytest.fixture
def judges(monkeypatch: Any) -> list[dict[str, Any]]:
    """The settings of the forests that are made where rates of classes are learned."""
    made: list[dict[str, Any]] = []

    def recorded(**settings: Any) -> Any:
        made.append(settings)
        return _core.MondrianClassifier(**settings)

    class Core:
        MondrianClassifier = staticmethod(recorded)

        def __getattr__(self, name: str) -> Any:
            return getattr(_core, name)

    monkeypatch.setattr(classification, "_core", Core())
    return made


def test_the_classifiers_judge_has_the_settings_of_the_forest(judges: list[dict[str, Any]]) -> None:
    params: dict[str, Any] = {
        "calibration": None,
        "min_samples_split": 4,
        "lifetime": 9.0,
        "n_estimators": 3,
    }
    rows, target = additive(90, 3)
    MondrianForestClassifier(random_state=0, **params).fit(rows, (target > 2.5).astype(int))
    first = {*classification.FOR_MAPS, *classification.CANDIDATES}
    # One is only asked about its posterior.
    assert len(judges) <= 1 + len(first) + classification.N_LAST + 1
    assert len(judges) >= 1 + len(classification.CANDIDATES) + classification.N_LAST
    for settings in judges:
        assert settings.items() >= params.items()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["auto", "limit", "trees"])
def test_the_limit_of_joint_classes_judges_the_last_candidates(
    judges: list[dict[str, Any]], kernel: str
) -> None:
    rows, target = additive(60, 3)
    params = {"posterior": "joint", "joint_kernel": kernel}
    model = MondrianForestClassifier(3, random_state=0, **params)
    model.fit(rows, (target > 2.5).astype(int))
    posteriors = [settings["posterior"] for settings in judges[1:]]
    n_joint = posteriors.count("joint")
    assert posteriors == ["kneser-ney"] * (len(posteriors) - n_joint) + ["joint"] * n_joint
    assert n_joint in (
        [0] if kernel == "trees" else [classification.N_LAST, classification.N_LAST + 1]
    )


def test_no_single_row_decides_about_rates_of_classes() -> None:
    """A small forest may be so certain of a wrong label that its log probability is -700."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, size=(300, 3)).astype(float)
    codes = rows[:, 0].astype(int)
    codes[:5] = 1 - codes[:5]
    settings = MondrianForestClassifier(5, discount=100.0)._settings()
    options: dict[str, Any] = {"low": np.zeros(3), "high": np.ones(3), "n_threads": 1}
    trial = classification._Trial(rows, codes, 150, settings, options)
    by_row = trial.run(np.ones(3), None, classification.LAST_STAGE).by_row
    assert by_row[:5].max() < -2.0
    assert by_row.min() > np.log(0.5 * classification.DOUBT) - 1e-9


# -- maps by rank ---------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_rank_maps_bring_rows_to_their_ranks(share: float) -> None:
    rng = np.random.default_rng(1)
    rows = np.stack(
        (
            rng.standard_cauchy(900),
            np.exp(1e2 * rng.normal(size=900)),
            rng.integers(0, 5, size=900),
            np.where(rng.uniform(size=900) < 0.8, 0.0, rng.uniform(size=900)),
            1e305 * rng.uniform(-1.0, 1.0, size=900),
        ),
        axis=1,
    )
    low, high = rows.min(axis=0), rows.max(axis=0)
    maps = rank_maps(rows, low, high, share)
    ranks = np.stack([rankdata(feature) for feature in rows.T], axis=1)
    ranks = (ranks - ranks.min(axis=0)) / np.ptp(ranks, axis=0)
    expected = share * ranks + (1.0 - share) * in_units(rows, low, high, None)
    np.testing.assert_allclose(in_units(rows, low, high, maps), expected, atol=0.02)
    # The forest takes them.
    MondrianForestClassifier(2, feature_weights=None, feature_maps=maps).fit(rows, rows[:, 2])


def test_rank_maps_of_ranges_that_are_not_those_of_the_rows() -> None:
    rows = np.random.default_rng(2).uniform(size=(400, 1))
    one = np.ones(1)
    # Rows fill a tenth of the range, or lie beyond it.
    ((knots, shares),) = rank_maps(rows, -4.0 * one, 6.0 * one, 1.0)
    assert (knots[0], knots[-1], shares[0], shares[-1]) == (-4.0, 6.0, 0.0, 1.0)
    assert np.interp([0.0, 1.0], knots, shares) == pytest.approx([0.0, 1.0], abs=0.01)
    ((knots, shares),) = rank_maps(rows, 0.4 * one, 0.5 * one, 1.0)
    assert (knots[0], knots[-1]) == (0.4, 0.5)
    assert np.interp(0.45, knots, shares) == pytest.approx(0.5, abs=0.1)
    # Nothing inside: no knots.
    for low, high in ((3.0, 4.0), (0.5, 0.5)):
        assert [len(part) for part in rank_maps(rows, low * one, high * one, 1.0)[0]] == [0, 0]
    assert [len(part) for part in rank_maps(np.eye(2), 0 * np.ones(2), np.ones(2), 1.0)[0]] == [
        0,
        0,
    ]


def heavy(n: int, tails: float, seed: int = 0) -> tuple[Any, Any]:
    """Three classes, by features with tails that are the heavier the greater `tails` is."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4))
    score = rows[:, 0] * rows[:, 1] + np.sin(2.0 * rows[:, 2]) + 0.2 * rng.normal(size=n)
    return np.exp(tails * rows) if tails > 0.0 else rows, np.digitize(score, [-0.7, 0.7])


@pytest.mark.slow
def test_heavy_tails_do_not_cost_accuracy() -> None:
    losses = {}
    for tails in (0.0, 2.0):
        rows, labels = heavy(1600, tails)
        for weights in ("learned", None):
            model = MondrianForestClassifier(30, feature_weights=weights, random_state=0)
            proba = model.fit(rows[:1000], labels[:1000]).predict_proba(rows[1000:])
            losses[tails, weights] = log_loss(labels[1000:], proba)
            # Without tails, too, maps may help: there are fewer rows at the ends of a range.
            if tails > 0.0 or weights is None:
                assert (model.feature_maps_ is not None) == (weights == "learned")
    assert losses[2.0, None] > 1.5 * losses[0.0, None]
    assert losses[2.0, "learned"] < 1.15 * losses[0.0, "learned"]


@pytest.mark.slow
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_far_from_rows_with_heavy_tails_the_prior_returns(predictive: Any) -> None:
    rows, labels = heavy(600, 2.0)
    model = MondrianForestClassifier(20, predictive=predictive, random_state=0).fit(rows, labels)
    assert model.feature_maps_ is not None
    far = rows[:50] + 100.0 * np.ptp(rows, axis=0)
    np.testing.assert_allclose(model.predict_proba(far), 1.0 / 3.0, atol=0.02)
