"""Functions to optimise: ten standard ones, and those of Table 6.3 of the thesis on regular grids.

Few optima are in the middle of the ranges. Least values on the cube are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from benches._common import Array
from benches.papers._data import grid

SHIFT = np.array([0.37, 0.62, 0.28, 0.71, 0.44, 0.55, 0.33, 0.66])
#: Defaults of `MondrianOptimizer` were chosen by 70 trials of these.
CHOSEN_BY = ["branin", "ackley5", "rosenbrock4", "styblinski5"]


@dataclass(frozen=True)
class Task:
    """A function on the unit cube, or on a grid of the given numbers of levels."""

    name: str
    n_parameters: int
    function: Callable[[Array], float]
    levels: tuple[int, ...] | None = None

    def __call__(self, values: list[float]) -> float:
        return self.function(np.asarray(values, dtype=float))


def branin(u: Array) -> float:
    x, y = 15 * u[0] - 5, 15 * u[1]
    square = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return square + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.397887


def hartmann6(u: Array) -> float:
    a = np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    )
    p = np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    inner = (a * (u - 1e-4 * p) ** 2).sum(axis=1)
    return 3.32237 - float(np.array([1, 1.2, 3, 3.2]) @ np.exp(-inner))


def ackley(u: Array) -> float:
    x = 40 * (u - SHIFT[: len(u)])
    ripples = np.exp(np.cos(2 * math.pi * x).mean())
    return float(20 + math.e - 20 * np.exp(-0.2 * np.sqrt((x * x).mean())) - ripples)


def rosenbrock(u: Array) -> float:
    x = 4 * u - 2
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def levy(u: Array) -> float:
    w = 1 + (20 * u - 11) / 4
    inner = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)).sum()
    last = (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return float(math.sin(math.pi * w[0]) ** 2 + inner + last)


def styblinski(u: Array) -> float:
    x = 10 * u - 5
    return float(0.5 * (x**4 - 16 * x**2 + 5 * x).sum() + 39.16617 * len(u))


def rastrigin(u: Array) -> float:
    x = 10 * (u - SHIFT[: len(u)])
    return float((x * x - 10 * np.cos(2 * math.pi * x) + 10).sum())


def griewank(u: Array) -> float:
    x = 1200 * (u - SHIFT[: len(u)])
    product = np.prod(np.cos(x / np.sqrt(np.arange(1, len(u) + 1))))
    return float(1 + (x * x).sum() / 4000 - product)


def goldstein_price(u: Array) -> float:
    x, y = 4 * u - 2
    first = 19 - 14 * x + 3 * x * x - 14 * y + 6 * x * y + 3 * y * y
    second = 18 - 32 * x + 12 * x * x + 48 * y - 36 * x * y + 27 * y * y
    return (1 + (x + y + 1) ** 2 * first) * (30 + (2 * x - 3 * y) ** 2 * second) - 3


def michalewicz(u: Array) -> float:
    x = math.pi * u
    waves = np.sin(x) * np.sin(np.arange(1, len(u) + 1) * x * x / math.pi) ** 20
    return float(4.687658 - waves.sum())


FUNCTIONS = [
    Task("branin", 2, branin),
    Task("ackley5", 5, ackley),
    Task("rosenbrock4", 4, rosenbrock),
    Task("styblinski5", 5, styblinski),
    Task("hartmann6", 6, hartmann6),
    Task("levy6", 6, levy),
    Task("rastrigin4", 4, rastrigin),
    Task("griewank6", 6, griewank),
    Task("goldstein", 2, goldstein_price),
    Task("michalewicz5", 5, michalewicz),
]


def on_grid(name: str, function: Callable[[Array], float], levels: tuple[int, ...]) -> Task:
    """A function of the unit cube, at the points of a regular grid."""
    scale = np.array(levels) - 1
    return Task(name, len(levels), lambda index: function(index / scale), levels)


def tabulated(name: str) -> Task:
    """One of the two grids of measured values."""
    index, _, y = grid(name)
    table = dict(zip(map(tuple, index.tolist()), y - y.min(), strict=True))
    levels = tuple((index.max(axis=0) + 1).tolist())
    return Task(name, len(levels), lambda values: table[tuple(map(int, values))], levels)


def grids() -> list[Task]:
    """The four of Table 6.3, two of them on regular grids."""
    return [
        on_grid("branin grid", branin, (500, 500)),
        on_grid("hartmann grid", hartmann6, (8,) * 6),
        tabulated("svm_grid"),
        tabulated("lda_grid"),
    ]
