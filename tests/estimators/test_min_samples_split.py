"""`min_samples_split="auto"`: larger leaves for noisy labels, and for many rows in regression."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

from boscage import MondrianForestClassifier, MondrianForestRegressor, load
from reference.arrays import Array

CHOICES = {2, 5, 10, 20, 50, 100}


def data(n: int, *, noise: float, d: int = 2, levels: int = 0, seed: int = 0) -> tuple[Any, ...]:
    """Return rows, labels, and the true probabilities of the labels."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, d))
    if levels:
        x = np.floor(levels * x)
    told = np.sin(7.0 * x[:, 0] / (levels or 1.0)) + x[:, -1] / (levels or 1.0) > 0.5
    one = np.where(told, 1.0 - noise, noise)
    y = (rng.uniform(size=n) < one).astype(int)
    return x, y, np.stack([1.0 - one, one], axis=1)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_forest_is_that_with_the_number_that_was_chosen(noise: float) -> None:
    x, y, _ = data(600, noise=noise)
    auto = MondrianForestClassifier(20, random_state=0).fit(x, y)
    chosen = auto.min_samples_split_
    assert chosen in CHOICES
    assert (chosen > 2) == (noise > 0.0)
    assert auto.min_samples_split == "auto"
    given = MondrianForestClassifier(20, random_state=0, min_samples_split=chosen).fit(x, y)
    assert given.digest() == auto.digest()
    np.testing.assert_array_equal(given.predict_proba(x), auto.predict_proba(x))
    # Of the set of rows, whatever their order.
    order = np.random.default_rng(1).permutation(len(x))
    other = MondrianForestClassifier(20, random_state=0).fit(x[order], y[order], ids=order)
    assert other.digest() == auto.digest()


@pytest.mark.parametrize(
    "given", [{"feature_weights": None}, {"posterior": "joint"}, {"calibration": None}]
)
def test_other_forests_split_down_to_two_rows(given: dict[str, Any]) -> None:
    x, y, _ = data(200, noise=0.3)
    assert MondrianForestClassifier(5, random_state=0, **given).fit(x, y).min_samples_split_ == 2


@pytest.mark.parametrize("given", ["least", 1, 2.5, None])
def test_other_values_are_refused(given: Any) -> None:
    for forest in (MondrianForestClassifier, MondrianForestRegressor):
        with pytest.raises((ValueError, TypeError), match="min_samples_split"):
            forest(min_samples_split=given).fit([[0.0], [1.0]], [0, 1])


def test_it_is_chosen_during_the_warm_up_and_then_kept(tmp_path: Path) -> None:
    x, y, _ = data(900, noise=0.3)
    forest = MondrianForestClassifier(10, random_state=0, warm_up=300)
    for start in range(0, 300, 50):
        forest.partial_fit(x[start : start + 50], y[start : start + 50])
    at_once = MondrianForestClassifier(10, random_state=0).fit(x[:300], y[:300])
    chosen = at_once.min_samples_split_
    assert forest.min_samples_split_ == chosen > 2
    forest.partial_fit(x[300:600], y[300:600])
    assert forest.min_samples_split_ == chosen
    forest.save(tmp_path / "forest.boscage")
    loaded = load(tmp_path / "forest.boscage")
    assert (loaded.min_samples_split, loaded.min_samples_split_) == ("auto", chosen)
    for each in (forest, loaded):
        each.partial_fit(x[600:], y[600:])
    assert loaded.digest() == forest.digest()


def test_a_forest_in_its_warm_up_takes_over_what_the_other_chose() -> None:
    x, y, _ = data(700, noise=0.3)
    settings: dict[str, Any] = {"n_estimators": 10, "random_state": 0}
    final = MondrianForestClassifier(**settings, warm_up=0).partial_fit(x[:600], y[:600])
    first = MondrianForestClassifier(**settings).partial_fit(
        x[600:620], y[600:620], ids=np.arange(600, 620)
    )
    assert first.min_samples_split_ < final.min_samples_split_
    merged = first + final
    assert merged.min_samples_split_ == final.min_samples_split_
    given = MondrianForestClassifier(**settings, min_samples_split=3)
    given.partial_fit(x[600:620], y[600:620], ids=np.arange(600, 620))
    with pytest.raises(ValueError, match="min_samples_split is"):
        given.merge(final)


def loss(model: Any, train: tuple[Array, Array], test: tuple[Array, Array]) -> float:
    return float(log_loss(test[1], model.fit(*train).predict_proba(test[0])))


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("levels", [0, 3, 10])
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
def test_a_first_call_is_about_as_good_as_the_better_of_two_random_forests(
    noise: float, d: int, levels: int, n: int
) -> None:
    """One with leaves of a row, and one with leaves of ten."""
    x, y, truth = data(n + 2000, noise=noise, d=d, levels=levels, seed=d)
    train, test = (x[:n], y[:n]), (x[n:], y[n:])
    own = loss(MondrianForestClassifier(random_state=0), train, test)
    others = [
        loss(RandomForestClassifier(100, min_samples_leaf=k, random_state=0), train, test)
        for k in (1, 10)
    ]
    assert own < min(others) + 0.02
    # A number for each combination of values costs 1 / (2 n); elsewhere classes have borders.
    if levels and n == 3000:
        assert own < log_loss(y[n:], truth[n:]) + 0.02 + levels**d / (2.0 * n)


def numbers(n: int) -> tuple[Array, Array]:
    """Return rows and targets."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(n, 3))
    return x, np.sin(6.0 * x[:, 0]) + x[:, 1] + 0.3 * rng.normal(size=n)


def test_joint_regression_of_many_rows_has_larger_leaves(tmp_path: Path) -> None:
    n = 20_001
    x, y = numbers(n + 100)
    forest = MondrianForestRegressor(2, random_state=0).fit(x[:n], y[:n])
    assert (forest.min_samples_split, forest.min_samples_split_) == ("auto", 5)
    given = MondrianForestRegressor(2, random_state=0, min_samples_split=5).fit(x[:n], y[:n])
    assert given.digest() == forest.digest()
    np.testing.assert_array_equal(given.predict(x), forest.predict(x))
    forest.save(tmp_path / "forest.boscage")
    loaded = load(tmp_path / "forest.boscage")
    assert (loaded.min_samples_split, loaded.min_samples_split_) == ("auto", 5)
    # It is kept, whatever rows come and go.
    for each in (given, loaded):
        each.partial_fit(x[n:], y[n:])
        each.forget(each.ids_[:200])
    assert loaded.min_samples_split_ == 5
    assert loaded.digest() == given.digest()


@pytest.mark.parametrize(
    "given", [{"feature_weights": None}, {"posterior": "exact"}, {"posterior": "fast"}]
)
def test_other_regression_splits_down_to_two_rows(given: dict[str, Any]) -> None:
    forest = MondrianForestRegressor(2, random_state=0, **given).fit(*numbers(20_001))
    assert forest.min_samples_split_ == 2


@pytest.mark.parametrize(("n", "least"), [(20_000, -np.inf), (20_001, 0.7)])
def test_few_rows_and_targets_that_are_often_equal_split_down_to_two(n: int, least: float) -> None:
    x, y = numbers(n)
    forest = MondrianForestRegressor(1, random_state=0).fit(x, np.maximum(y, least))
    assert forest.min_samples_split_ == 2
