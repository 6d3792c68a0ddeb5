"""Generated problems of many kinds: functions, noise, features and classes that users meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from _common import Array, Split

Problem: TypeAlias = Callable[[np.random.Generator, int], tuple[Array, Array]]

N_TEST = 2000


def _indicators(rng: np.random.Generator, n: int, d: int) -> Array:
    return (rng.uniform(size=(n, d)) < 0.1).astype(float)


def _low_rank(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Thirty features that two hidden ones explain."""
    hidden = rng.normal(size=(n, 2))
    return hidden, hidden @ rng.normal(size=(2, 30)) + 0.1 * rng.normal(size=(n, 30))


def _codes(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Rows whose first feature numbers thirty categories in no order, and their effects."""
    category = rng.integers(0, 30, size=n)
    return np.c_[category, rng.normal(size=(n, 4))].astype(float), rng.normal(size=30)[category]


def _season(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Rows of twenty seasons, not in order, and their times."""
    time = rng.permutation(np.arange(n) / n * 20.0)
    return np.c_[time, rng.normal(size=(n, 2))], time


def _linear(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 5))
    return x, x @ [1.0, 2.0, 0.0, 0.0, -1.0] + 0.05 * rng.normal(size=n)


def _noisy_linear(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 20))
    return x, x @ rng.normal(size=20) + 2.0 * rng.normal(size=n)


def _waves(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 2))
    return x, np.sin(6.0 * x[:, 0]) * np.cos(5.0 * x[:, 1]) + 0.05 * rng.normal(size=n)


def _steps(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 10))
    both = (x[:, 1] > 0.3) & (x[:, 2] > 0.7)
    return x, 3.0 * (x[:, 0] > 0.5) + 4.0 * both + 0.3 * rng.normal(size=n)


def _signs(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(-1.0, 1.0, size=(n, 4))
    return x, np.sign(x[:, 0] * x[:, 1]) + 0.2 * rng.normal(size=n)


def _counts(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 6))
    return x, rng.poisson(np.exp(1.5 * x[:, 0] + x[:, 1] - 1.0)).astype(float)


def _mostly_zero(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 6))
    amount = np.exp(2.0 * x[:, 0] + 0.5 * rng.normal(size=n))
    return x, np.where(rng.uniform(size=n) < 0.6, 0.0, amount)


def _prices(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 6))
    return x, np.exp(3.0 * x[:, 0] + x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=n))


def _outliers(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 5))
    return x, 3.0 * x[:, 0] + np.sin(6.0 * x[:, 1]) + 0.3 * rng.standard_t(2.0, size=n)


def _unequal_noise(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 3))
    return x, 2.0 * x[:, 0] + x[:, 1] * rng.normal(size=n)


def _heavy_features(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.lognormal(0.0, 2.0, size=(n, 5))
    return x, np.log(x[:, 0]) + np.log1p(x[:, 1]) + 0.3 * rng.normal(size=n)


def _category_effects(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x, effect = _codes(rng, n)
    return x, 2.0 * effect + x[:, 1] + 0.3 * rng.normal(size=n)


def _indicator_effects(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = _indicators(rng, n, 40)
    return x, x[:, :4] @ [3.0, 2.0, -2.0, 1.0] + 4.0 * x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=n)


def _few_of_many(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 100))
    return x, x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * rng.normal(size=n)


def _hidden(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    hidden, x = _low_rank(rng, n)
    return x, np.sin(2.0 * hidden[:, 0]) + hidden[:, 1] + 0.1 * rng.normal(size=n)


def _nothing(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    return rng.uniform(size=(n, 5)), rng.normal(size=n)


def _coarse(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = np.round(5.0 * rng.uniform(size=(n, 4)))
    return x, x[:, 0] * x[:, 1] + rng.normal(size=n)


def _bump(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 3))
    away = np.square(x[:, :2] - 0.5).sum(axis=1)
    return x, 5.0 * np.exp(-30.0 * away) + 0.1 * rng.normal(size=n)


def _ratio(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 8))
    return x, x[:, 0] / (0.1 + x[:, 1]) + 0.1 * rng.normal(size=n)


def _trend_and_season(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x, time = _season(rng, n)
    wave = np.sin(2.0 * np.pi * time)
    return x, 0.5 * time + wave + 0.3 * x[:, 1] + 0.1 * rng.normal(size=n)


NUMBERS: dict[str, Problem] = {
    "linear, little noise": _linear,
    "linear, 20 features": _noisy_linear,
    "product of waves": _waves,
    "steps": _steps,
    "product of signs": _signs,
    "counts": _counts,
    "mostly zero": _mostly_zero,
    "prices": _prices,
    "outliers": _outliers,
    "unequal noise": _unequal_noise,
    "heavy-tailed features": _heavy_features,
    "category numbers": _category_effects,
    "40 indicators": _indicator_effects,
    "3 of 100 features": _few_of_many,
    "2 hidden features": _hidden,
    "nothing to learn": _nothing,
    "coarse features": _coarse,
    "bump": _bump,
    "ratio": _ratio,
    "trend and season": _trend_and_season,
}


def _drawn(rng: np.random.Generator, log_odds: Array) -> Array:
    return (rng.uniform(size=len(log_odds)) < 1.0 / (1.0 + np.exp(-log_odds))).astype(int)


def _line(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 5))
    return x, _drawn(rng, 4.0 * (x @ [1.0, 2.0, 0.0, 0.0, -1.0]))


def _noisy_line(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 20))
    return x, _drawn(rng, x @ rng.normal(size=20))


def _checkerboard(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 2))
    return x, (4.0 * x).astype(int).sum(axis=1) % 2


def _quadrants(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(-1.0, 1.0, size=(n, 6))
    return x, (x[:, 0] * x[:, 1] > 0.0).astype(int)


def _rings(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 2))
    return x, (8.0 * np.hypot(x[:, 0] - 0.5, x[:, 1] - 0.5)).astype(int)


def _rare(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 5))
    return x, _drawn(rng, 2.0 * x[:, 0] + x[:, 1] - 5.0)


def _clouds(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    centres, y = 2.0 * rng.normal(size=(50, 8)), rng.integers(0, 50, size=n)
    return centres[y] + rng.normal(size=(n, 8)), y


def _wrong_labels(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 5))
    return x, (x[:, 0] + x[:, 1] > 0.0) ^ (rng.uniform(size=n) < 0.2)


def _heavy_ratio(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.lognormal(0.0, 2.0, size=(n, 6))
    return x, _drawn(rng, 3.0 * np.log(x[:, 0] / x[:, 1]))


def _category_odds(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x, effect = _codes(rng, n)
    return x, _drawn(rng, 3.0 * effect + x[:, 1])


def _indicator_odds(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = _indicators(rng, n, 60)
    return x, _drawn(rng, x[:, :4] @ [6.0, 5.0, -4.0, 3.0] - 1.0)


def _few_of_many_odds(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 100))
    return x, _drawn(rng, 3.0 * x[:, 0] + 3.0 * x[:, 1] * x[:, 2])


def _hidden_bands(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    hidden, x = _low_rank(rng, n)
    return x, np.digitize(np.sin(2.0 * hidden[:, 0]) + hidden[:, 1], [-1.0, 0.0, 1.0])


def _no_classes(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    return rng.uniform(size=(n, 5)), rng.integers(0, 3, size=n)


def _coarse_classes(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = np.round(5.0 * rng.uniform(size=(n, 4)))
    return x, (x[:, 0] * x[:, 1] % 4).astype(int)


def _spiral(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 3))
    across, along = x[:, 0] - 0.5, x[:, 1] - 0.5
    turns = np.arctan2(along, across) * 2.0 / np.pi + 6.0 * np.hypot(across, along)
    return x, (turns % 2.0).astype(int)


def _season_odds(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x, time = _season(rng, n)
    return x, _drawn(rng, 4.0 * np.sin(2.0 * np.pi * time) + x[:, 1])


def _trunk(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two Gaussians whose means come closer from feature to feature (Trunk 1979)."""
    y = rng.integers(0, 2, size=n)
    return rng.normal(size=(n, 50)) + (2.0 * y[:, None] - 1.0) / np.sqrt(np.arange(1, 51)), y


CLASSES: dict[str, Problem] = {
    "line": _line,
    "line, 20 features": _noisy_line,
    "checkerboard": _checkerboard,
    "quadrants": _quadrants,
    "rings": _rings,
    "3 % of one class": _rare,
    "50 clouds": _clouds,
    "20 % wrong labels": _wrong_labels,
    "heavy-tailed features": _heavy_ratio,
    "category numbers": _category_odds,
    "60 indicators": _indicator_odds,
    "3 of 100 features": _few_of_many_odds,
    "2 hidden features": _hidden_bands,
    "nothing to learn": _no_classes,
    "coarse features": _coarse_classes,
    "spiral": _spiral,
    "season": _season_odds,
    "50 weak features": _trunk,
}


def generated(problems: dict[str, Problem], n_rows: int, seed: int) -> Iterator[Split]:
    """Yield a data set of each problem with so many training rows, in which all labels occur."""
    for name, problem in problems.items():
        # A problem's rows do not depend on which others there are.
        rng = np.random.default_rng([seed, *name.encode()])
        x, y = problem(rng, n_rows + N_TEST)
        x, x_test, y, y_test = x[:n_rows], x[n_rows:], y[:n_rows], y[n_rows:]
        known = slice(None) if y.dtype == float else np.isin(y_test, y)
        yield Split(name, x, y, x_test[known], y_test[known])
