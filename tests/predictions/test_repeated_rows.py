"""Tables whose rows were repeated: what left-out rows choose is what each row once would choose."""

from __future__ import annotations

import numpy as np
import pytest

from boscage import MondrianForestRegressor


@pytest.fixture(scope="module", params=range(2))
def rows(request):
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(900, 5))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=900)
    return X[:300], y[:300], X[300:], y[300:]


def _covered(forest, X, y):
    low, high = forest.predict_dist(X).interval(0.9)
    return np.mean((low <= y) & (y <= high))


@pytest.mark.parametrize("settings", [{}, {"posterior": "exact"}], ids=["joint", "exact"])
@pytest.mark.parametrize("how", ["twice", "five times", "most", "resampled"])
def test_intervals_are_as_wide_as_for_each_row_once(rows, how, settings):
    X, y, new_X, new_y = rows
    rng = np.random.default_rng(7)
    number = {
        "twice": np.tile(np.arange(len(X)), 2),
        "five times": np.repeat(np.arange(len(X)), 5),
        "most": np.r_[np.arange(len(X)), np.arange(int(0.95 * len(X)))],
        "resampled": rng.integers(len(X), size=len(X)),
    }[how]
    forest = MondrianForestRegressor(30, random_state=0, **settings).fit(X[number], y[number])
    once = MondrianForestRegressor(30, random_state=0, **settings)
    once.fit(X[np.unique(number)], y[np.unique(number)])
    assert _covered(forest, new_X, new_y) > _covered(once, new_X, new_y) - 0.04
    errors = [np.sqrt(np.mean((each.predict(new_X) - new_y) ** 2)) for each in (forest, once)]
    assert errors[0] < 1.25 * errors[1]


def test_equal_rows_of_few_values_are_no_copies():
    """Four cells, and targets of five values: most rows have an equal one, by chance."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(300, 2)).astype(float)
    y = np.clip(np.round(2.0 + X[:, 0] + rng.normal(size=300)), 0, 4)
    forest = MondrianForestRegressor(20, random_state=0).fit(X, y)
    mean, std = forest.predict(X, return_std=True)
    for cell in np.unique(X, axis=0):
        own = (cell == X).all(axis=1)
        assert mean[own][0] == pytest.approx(y[own].mean(), abs=0.15)
        assert std[own][0] == pytest.approx(y[own].std(), rel=0.2)


@pytest.mark.parametrize(("n_values", "n_features"), [(2, 2), (3, 3), (10, 2)])
def test_equal_rows_without_noise_are_no_copies(n_values, n_features):
    """New rows will equal them, too, and have their targets."""
    rng = np.random.default_rng(0)
    X = rng.integers(n_values, size=(300, n_features)).astype(float)
    y = rng.normal(size=(n_values,) * n_features)[tuple(X.astype(int).T)]
    mean, std = MondrianForestRegressor(20, random_state=0).fit(X, y).predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.1 * y.std()
    assert std.mean() < 0.3 * y.std()
