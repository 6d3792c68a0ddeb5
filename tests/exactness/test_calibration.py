"""Calibration by leave-one-out: power and noise, what they are fitted to, and what they leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import log_loss

from boscage import MondrianForestClassifier
from of_all_rows import weight_of_all, weight_of_all_left_out
from reference.arrays import Array

N_CHOSEN = 300
"""Rows that are left out at most."""


def data(n: int, d: int = 4, n_classes: int = 3, seed: int = 0) -> tuple[Array, Array]:
    """Return classes that two features predict, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, d))
    score = n_classes * (0.8 * x[:, 0] + 0.2 * x[:, 1]) + 0.3 * rng.normal(size=n)
    return x, np.clip(score.astype(int), 0, n_classes - 1)


def make(**params: Any) -> MondrianForestClassifier:
    settings: dict[str, Any] = {"n_estimators": 20, "feature_range": (0.0, 1.0), "random_state": 3}
    settings |= {"feature_weights": None, "trend": None}
    return MondrianForestClassifier(**(settings | params))


def sharpened(proba: Array, power: Any, noise: Any) -> Array:
    raised = proba**power
    raised = raised / raised.sum(axis=-1, keepdims=True)
    return np.asarray((1.0 - noise) * raised + noise / proba.shape[-1])


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "n_classes"), [(60, 2), (N_CHOSEN, 5)])
def test_power_and_noise_are_the_best_for_rows_left_out(
    predictive: Any, n: int, n_classes: int, weighted: bool
) -> None:
    """With their priors: about one row's worth of a power of 1, a tenth of a row's of noise.

    Of the weights of rows, only the shares matter.
    """
    rng = np.random.default_rng(12)
    x, y = data(n, n_classes=n_classes)
    y[: n // 8] = rng.integers(n_classes, size=n // 8)
    weights = rng.gamma(0.7, size=n) + 0.01 if weighted else np.ones(n)
    model = make(predictive=predictive).fit(x, y, weights)
    left_out = model.loo_predict_proba(calibrated=False)

    def loss(power: float, noise: Array) -> Array:
        own = sharpened(left_out, power, 0.0)[np.arange(n), y]
        mixed = (1.0 - noise[:, None]) * own + noise[:, None] / n_classes
        prior = power - 1.0 - np.log(power) - 0.1 * np.log(noise)
        return np.asarray(prior - (weights / weights.mean() * np.log(mixed)).sum(axis=1))

    def best(powers: Array, noises: Array) -> tuple[float, float, float]:
        losses = np.array([loss(power, noises) for power in powers])
        at_power, at_noise = np.unravel_index(losses.argmin(), losses.shape)
        return powers[at_power], noises[at_noise], losses.min()

    # Everywhere, and then finely around the best of these.
    power, noise, _ = best(np.geomspace(1.0 / 16.0, 16.0, 121), np.geomspace(1e-5, 0.99, 120))
    around = np.geomspace(1.0 / 1.2, 1.2, 101)
    best_power, best_noise, least = best(power * around, np.minimum(noise * around, 0.99))
    assert abs(best_power - 1.0) > 0.05
    assert 0.02 < best_noise < 0.5
    power, noise = model.calibration_power_, model.calibration_noise_
    assert power == pytest.approx(best_power, rel=2e-2)
    assert noise == pytest.approx(best_noise, rel=5e-2)
    assert loss(power, np.array([noise]))[0] <= least + 1e-9
    plain = make(predictive=predictive, calibration=None).fit(x, y, weights)
    assert (plain.calibration_power_, plain.calibration_noise_) == (1.0, 0.0)
    for calibrated, raw in (
        (model.predict_proba(3.0 * x - 1.0), plain.predict_proba(3.0 * x - 1.0)),
        (model.loo_predict_proba(), plain.loo_predict_proba()),
    ):
        np.testing.assert_allclose(calibrated, sharpened(raw, power, noise), rtol=1e-9)
    np.testing.assert_array_equal(plain.loo_predict_proba(), left_out)


def drawn_to(proba: Array, of_all: Array, power: float, noise: float, shares: Array) -> Array:
    """Probabilities, calibrated by a power below 1."""
    raised = proba**power * shares ** ((1.0 - power) * (1.0 - of_all) ** 4)
    raised = raised / raised.sum(axis=-1, keepdims=True)
    return np.asarray((1.0 - noise) * raised + noise / proba.shape[-1])


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("weighted", [False, True])
def test_where_features_tell_little_probabilities_are_drawn_to_the_shares(
    predictive: Any, weighted: bool
) -> None:
    """Not to even ones; and far away from all rows the prior stays."""
    rng = np.random.default_rng(20)
    n = N_CHOSEN
    x = rng.uniform(size=(n, 3))
    told, even = (3.0 * x[:, 0]).astype(int), rng.choice(3, size=n, p=[0.8, 0.15, 0.05])
    y = np.where(rng.uniform(size=n) < 0.3, told, even)
    weights = rng.gamma(0.7, size=n) + 0.01 if weighted else np.ones(n)
    options: Any = {"classes": [0, 1, 2, 3], "sample_weight": weights if weighted else None}
    model = make(predictive=predictive).partial_fit(x, y, **options)
    plain = make(predictive=predictive, calibration=None).partial_fit(x, y, **options)
    relative = weights / weights.mean()
    sizes = np.bincount(y, weights=relative, minlength=4) + 0.5
    # Each row's own class without the row.
    without = np.tile(sizes, (n, 1))
    without[np.arange(n), y] = np.maximum(without[np.arange(n), y] - relative, 0.5)
    left_out = plain.loo_predict_proba()
    of_all = weight_of_all_left_out(plain, plain.ids_)

    def loss(power: float, noise: float) -> float:
        own = drawn_to(left_out, of_all, power, noise, without)[np.arange(n), y]
        prior = power - 1.0 - np.log(power) - 0.1 * np.log(noise)
        return float(prior - (relative * np.log(own)).sum())

    power, noise = model.calibration_power_, model.calibration_noise_
    assert 0.1 < power < 0.7
    least = loss(power, noise)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 1.9):
        assert loss(power * factor, noise) > least
        assert loss(power, min(noise * factor, 0.99)) > least
    at = np.concatenate([x[:20], rng.uniform(size=(20, 3)), 3.0 * x[:20] - 1.0])
    shares = sizes / sizes.sum()
    for found, raw, weight in (
        (model.predict_proba(at), plain.predict_proba(at), weight_of_all(plain, at)),
        (model.loo_predict_proba(), left_out, of_all),
    ):
        np.testing.assert_allclose(found, drawn_to(raw, weight, power, noise, shares), rtol=1e-9)
    far = model.predict_proba(np.full((1, 3), 1e4))
    np.testing.assert_allclose(far, 0.25, atol=0.01)


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"min_samples_split": 9}, {"lifetime": 1.5}, {"feature_weights": [1.0, 0.0] * 6}],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_left_out_rows_meet_the_forest_that_forgot_them(
    predictive: Any, settings: Any, weighted: bool
) -> None:
    """To the bit, in large leaves and small ones, with copies, ties and a class of one row."""
    rng = np.random.default_rng(12)
    x, y = data(160, d=12, n_classes=2)
    y = (x[:, 0] > 0.5).astype(int) + (x[:, 1] > 0.95)
    x = np.where(rng.uniform(size=x.shape) < 0.3, np.round(x, 1), x)
    x[20:30] = x[20]
    x[60:110], y[60:110] = 0.1 * x[60:110], 0
    y[50] = 7
    model = make(n_estimators=3, predictive=predictive, calibration=None, **settings)
    model.fit(x, y, rng.gamma(0.7, size=160) + 0.01 if weighted else None)
    leaves = [tree.n_rows[tree.feature < 0].max() for tree in model.trees_]
    assert max(leaves) > 16
    found = model.loo_predict_proba()
    for row in range(160):
        without = model.copy().forget(row)
        columns = np.searchsorted(model.classes_, without.classes_)
        np.testing.assert_array_equal(found[row][columns], without.predict_proba(x[[row]])[0])


def test_power_and_noise_depend_on_the_set_of_rows_alone() -> None:
    rng = np.random.default_rng(12)
    x, y = data(900, n_classes=4)
    # Copies too, with the same label and with other ones.
    x[700:800], x[800:] = x[:100], x[:100]
    y[700:800] = y[:100]
    whole = make(n_estimators=5).fit(x, y)
    order = rng.permutation(900)
    other = make(n_estimators=5, n_jobs=2).partial_fit(x[order[:300]], y[order[:300]])
    other.partial_fit(2.0 * x, y, ids=np.arange(5000, 5900))
    other.predict(x[:3])
    other.partial_fit(x[order[300:]], y[order[300:]])
    other.predict(x[:3])
    other.forget(np.arange(5000, 5900))
    shards = [
        make(n_estimators=5).partial_fit(x[part], y[part], ids=part)
        for part in (order[:400], order[400:])
    ]
    merged = shards[0].merge(shards[1])
    for model in (other, merged, merged.copy(), whole.copy().flush()):
        assert model.calibration_power_ == whole.calibration_power_
        assert model.calibration_noise_ == whole.calibration_noise_
        np.testing.assert_array_equal(model.predict_proba(x[::9]), whole.predict_proba(x[::9]))
    assert whole.calibration_power_ != make(n_estimators=5).fit(x[50:], y[50:]).calibration_power_


def test_settings_that_change_predictions_change_the_power() -> None:
    x, y = data(300)
    model = make().fit(x, y)
    powers = {model.calibration_power_}
    for changed in ({"predictive": "realised"}, {"discount": 0.5}):
        model.set_params(**changed).partial_fit(x[:1], y[:1], ids=[1000])
        model.forget(1000)
        fresh = make(**{name: getattr(model, name) for name in ("predictive", "discount")})
        assert model.calibration_power_ == fresh.fit(x, y).calibration_power_
        powers.add(model.calibration_power_)
    assert len(powers) == 3
    model.set_params(calibration=None).partial_fit(x[:1], y[:1], ids=[1000])
    assert model.calibration_power_ == 1.0
    model.set_params(calibration="loo").partial_fit(x[:1], y[:1], ids=[1001])
    assert model.calibration_power_ > 1.0
    with pytest.raises(ValueError, match="calibration"):
        make(calibration="isotonic").fit(x, y)
    with pytest.raises(ValueError, match="calibrations"):
        make().fit(x, y).merge(make(calibration=None).fit(x, y, ids=np.arange(300, 600)))


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_far_away_the_prior_returns(predictive: Any) -> None:
    rng = np.random.default_rng(12)
    x, y = data(300, n_classes=5)
    model = make(predictive=predictive).fit(x, y)
    assert model.calibration_power_ > 1.2
    far = x[:20] + 1e9 * rng.normal(size=(20, 4))
    np.testing.assert_allclose(model.predict_proba(far), 0.2, atol=1e-6)


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_few_rows_do_no_harm(predictive: Any) -> None:
    x, y = data(30)
    cases: list[tuple[Array, Array, float | None]] = [
        (x[:1], y[:1], 1.0),
        (x, np.zeros(30), 1.0),
        # Nobody knows of a class whose only row is left out.
        (x, np.arange(30), 1.0),
        (x[:2], np.array([0, 1]), 1.0),
        (x[:3], np.array([0, 0, 1]), None),
        (np.full((30, 4), 0.5), y, None),
    ]
    for rows, labels, power in cases:
        model = make(predictive=predictive).fit(rows, labels)
        assert 1.0 / 16.0 <= model.calibration_power_ <= 16.0
        if power is not None:
            assert model.calibration_power_ == power
        proba = model.predict_proba(x)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
        plain = make(predictive=predictive, calibration=None).fit(rows, labels)
        np.testing.assert_array_equal(proba.argmax(axis=1), plain.predict_proba(x).argmax(axis=1))
    model = make(predictive=predictive).partial_fit(x, y, classes=[0, 1, 2, 9])
    assert model.predict_proba(x)[:, 3].max() < 0.25
    model.forget(np.arange(30))
    model.partial_fit(x[:20], 9 - y[:20])
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("levels", [2, 5, 10])
def test_features_of_few_values_make_no_class_impossible(levels: int) -> None:
    """Rows with the same features have different labels, and test rows are copies of them."""
    rng = np.random.default_rng(levels)
    x = rng.integers(levels, size=(1600, 3)).astype(float)
    y = (x.sum(axis=1) > 1.5 * (levels - 1)) ^ (rng.uniform(size=1600) < 0.15)
    train, test = slice(0, 800), slice(800, 1600)

    def losses(calibration: Any) -> Array:
        model = make(calibration=calibration, feature_range=None).fit(x[train], y[train])
        own = model.predict_proba(x[test])[np.arange(800), y[test].astype(int)]
        return -np.log(np.maximum(own, 1e-15))

    calibrated = losses("loo")
    truth = np.where((x[test].sum(axis=1) > 1.5 * (levels - 1)) == y[test], 0.85, 0.15)
    assert calibrated.max() < 5.0
    assert calibrated.mean() < -np.log(truth).mean() + 0.15
    assert calibrated.mean() < losses(None).mean() + 0.01


def test_copies_of_rows_do_not_make_the_forest_too_sure() -> None:
    rng = np.random.default_rng(12)
    x, y = data(800, n_classes=4)
    noisy = np.where(rng.uniform(size=800) < 0.2, rng.integers(4, size=800), y)
    train, test = slice(0, 400), slice(400, 800)
    rows = np.arange(400)

    def loss(chosen: Array, calibration: Any) -> float:
        model = make(calibration=calibration).fit(x[chosen], noisy[chosen])
        return float(log_loss(noisy[test], model.predict_proba(x[test])))

    # All rows twice: no row is without a copy, and nothing is learned from copies.
    twice = make().fit(np.tile(x[train], (2, 1)), np.tile(noisy[train], 2))
    assert twice.calibration_power_ == 1.0
    assert twice.calibration_noise_ == pytest.approx(0.1 / 800.1 / 0.75)
    for chosen in (rows, np.tile(rows, 2), np.concatenate([rows, np.repeat(rows[:150], 4)])):
        assert loss(chosen, "loo") <= 1.01 * loss(chosen, None)


@pytest.mark.parametrize("encoding", ["codes", "text", "one-hot"])
def test_one_row_without_copies_does_not_decide(encoding: str) -> None:
    """Where features of few values tell the class, new rows have copies, which are not made."""
    rng = np.random.default_rng(1)
    sizes = (10, 6, 4)
    cells = np.stack([rng.integers(size, size=2000) for size in sizes], axis=1)
    y = rng.integers(2, size=sizes)[tuple(cells.T)]
    rows: Any = cells.astype(float)
    if encoding == "text":
        rows = rows.astype(str).astype(object)
    elif encoding == "one-hot":
        rows = np.concatenate([np.eye(n)[cells[:, d]] for d, n in enumerate(sizes)], axis=1)
    model = MondrianForestClassifier(20, random_state=0).fit(rows[:1000], y[:1000])
    assert log_loss(y[1000:], model.predict_proba(rows[1000:])) < 0.1


def test_one_wrong_row_without_copies_beside_a_clean_grid() -> None:
    x, y = np.append(np.repeat(np.arange(20.0), 50), 2.5), np.append(np.repeat([0, 1], 500), 1)
    model = MondrianForestClassifier(random_state=0).fit(x[:, None], y)
    assert model.predict_proba(x[:1000, None])[np.arange(1000), y[:1000]].min() > 0.9


@pytest.mark.parametrize("n_repeats", [2, 20])
def test_rounded_rows_that_are_repeated_say_nothing(n_repeats: int) -> None:
    x, y = load_iris(return_X_y=True)
    train, test = slice(0, 150, 2), slice(1, 150, 2)
    once, repeated = (
        MondrianForestClassifier(random_state=0).fit(
            np.tile(x[train], (n, 1)), np.tile(y[train], n)
        )
        for n in (1, n_repeats)
    )
    assert repeated.calibration_power_ == 1.0
    losses = [log_loss(y[test], each.predict_proba(x[test])) for each in (once, repeated)]
    assert losses[1] < losses[0] + 0.1


@pytest.mark.parametrize("n_repeats", [1, 2, 5])
def test_no_class_is_ruled_out_without_rows_to_calibrate(n_repeats: int) -> None:
    """Two rows of two classes, alone or repeated; without a row, the classes that are known."""
    x, y = np.array([[0.0, 1.0], [1.0, 0.3]]), np.array(["a", "b"])
    model = MondrianForestClassifier(random_state=0, feature_weights=None)
    model.fit(np.tile(x, (n_repeats, 1)), np.tile(y, n_repeats))
    n_rows = 2 * n_repeats
    assert model.calibration_noise_ == pytest.approx(0.2 / (n_rows + 0.1))
    proba = model.predict_proba(x)
    assert 0.0 < proba.min() < 0.1
    assert (proba.argmax(axis=1) == [0, 1]).all()
    left_out = model.loo_predict_proba()
    np.testing.assert_allclose(left_out.sum(axis=1), 1.0)
    if n_repeats == 1:
        np.testing.assert_allclose(left_out, [[0.0, 1.0], [1.0, 0.0]])
    else:
        np.testing.assert_array_equal(left_out, proba[[0, 1] * n_repeats])
    again = MondrianForestClassifier(random_state=0, feature_weights=None, calibration=None)
    assert again.fit(x, y).calibration_noise_ == 0.0


def test_rare_classes_keep_their_share() -> None:
    """Of 300 rows, few or none would be of the rare class."""
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(10_000, 3)), np.zeros(10_000, int)
        y[rng.choice(10_000, 100, replace=False)] = 1
        model = MondrianForestClassifier(20, random_state=0, feature_weights=None, trend=None)
        proba = model.fit(x, y).predict_proba(rng.normal(size=(2000, 3)))[:, 1]
        ratios.append(float(proba.mean()) / 0.01)
    assert 1 / 1.5 < np.median(ratios) < 1.5
    assert 1 / 2.0 < min(ratios) < max(ratios) < 2.0, ratios


@pytest.mark.slow
def test_digits_are_predicted_far_better() -> None:
    x, y = load_digits(return_X_y=True)
    losses = []
    for calibration in ("loo", None):
        model = MondrianForestClassifier(50, calibration=calibration, random_state=0)
        losses.append(log_loss(y[1::2], model.fit(x[::2], y[::2]).predict_proba(x[1::2])))
    assert losses[0] < 0.15
    assert losses[1] > 0.4
