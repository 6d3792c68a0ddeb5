"""Which features the linear part of a regression forest's mean has: ``trend="auto"``.

A slope must improve predictions beyond the rows, and must not harm those among the rows. So small
forests with and without a slope in one feature predict blocks that they did not see: its upper and
its lower third, from all other rows, and from those of the other third, which is farther. Where a
feature has a tail, few rows lie far from all others, and a slope that is right for thirds may lead
far astray: there they predict the rows of the tail, too. Finally, forests with and without all
slopes that help predict rows that are left out at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from boscage._types import BoolArray, FloatArray
from boscage.mondrian.feature_rates._samples import Sample
from boscage.mondrian.feature_rates._shared import TRIAL_STREAM, LearnedRates
from boscage.mondrian.feature_rates.regression import score_of_unseen

MIN_ROWS = 30
"""With fewer rows than this there is no trend."""
MAX_ROWS = 900
"""The greatest number of rows that are looked at."""
TREES = 10
FEATURES = 6
"""The number of features that may have slopes: the most important ones."""
MIN_GAIN = 0.05
"""By how much the logarithm of the scale of errors in blocks must fall, on average."""
MAX_LOSS = 0.02
"""By how much it may grow on one side of a feature, and for rows left out at random."""
LOSS_SHARE = 0.1
"""The same for rows left out at random, as a share of the average gain in blocks. The small forests
exaggerate what a slope costs there, above all beside a season."""
MIN_SHARE = 0.1
"""The smallest share of the rows in a block. Where fewer lie beyond a third of the way from a
feature's median to its greatest or least value, the feature has a tail."""
TAIL_STEPS = 6
"""How often that way is divided by three."""

__all__: list[str] = []


def choose_trend(
    sample: Sample,
    learned: LearnedRates,
    is_number: BoolArray,
    *,
    settings: Mapping[str, Any],
    low: FloatArray,
    high: FloatArray,
    seed: int,
    n_threads: int,
) -> list[int]:
    """Choose the features of the trend of a forest with these settings and rates.

    Categories have no slope: no category lies beyond the others.
    """
    some = sample.without_repetitions().first(MAX_ROWS)
    if len(some.X) < MIN_ROWS or np.ptp(some.y) == 0.0:
        return []
    domain = {"low": low, "high": high, "weights": learned.weights, "maps": learned.maps}
    trial = _Trial(some, {**settings, "seed": seed ^ TRIAL_STREAM}, domain, n_threads)
    candidates = np.argsort(-learned.importances, kind="stable")[:FEATURES]
    # A feature without a rate has no slope.
    may_have = is_number & (learned.weights > 0.0)
    gains = {int(d): trial.gain_beyond(int(d)) for d in np.sort(candidates) if may_have[d]}
    features = [d for d, gain in gains.items() if gain > 0.0]
    if not features:
        return []
    at_random = np.arange(len(some.X)) < len(some.X) // 3
    most = max(MAX_LOSS, LOSS_SHARE * float(np.mean([gains[d] for d in features])))
    return features if trial.gain(~at_random, at_random, features) >= -most else []


class _Trial:
    """Small forests with slopes and without, which predict blocks of rows that they did not see."""

    def __init__(
        self, sample: Sample, settings: dict[str, Any], domain: dict[str, Any], n_threads: int
    ) -> None:
        self._X, self._row_weights = sample.X, sample.weights
        self._y = np.asarray(sample.y, dtype=np.float64)
        self._domain, self._n_threads = domain, n_threads
        own = {"n_estimators": min(TREES, settings["n_estimators"])}
        if settings.get("hyperparameters") == "loo":
            # Much faster; which of two forests is better hardly changes.
            own["hyperparameters"] = "ml"
        self._settings = {**settings, "noise": "global", "joint_kernel": "trees", **own}

    def gain_beyond(self, feature: int) -> float:
        """How much better a slope predicts rows beyond the others; 0 if too little or harmful."""
        sides: list[float] = []
        x = self._X[:, feature]
        for block, other in _thirds(x):
            # Rows of one value show no slope.
            ways = [rows for rows in (~block, other) if np.ptp(x[rows]) > 0.0]
            sides.append(float(np.mean([self.gain(rows, block, [feature]) for rows in ways])))
            if sides[-1] < -MAX_LOSS:
                return 0.0
        gain = float(np.mean(sides)) if sides else 0.0
        if gain < MIN_GAIN:
            return 0.0
        helps = all(self.gain(~tail, tail, [feature]) >= MIN_GAIN for tail in _tails(x))
        return gain if helps else 0.0

    def gain(self, rows: BoolArray, block: BoolArray, features: list[int]) -> float:
        """How much better a forest of some rows predicts a block if these features have slopes."""
        slopes = {"trend": "linear", "trend_features": features}
        return self._score(rows, block, slopes) - self._score(rows, block, {})

    def _score(self, rows: BoolArray, block: BoolArray, slopes: dict[str, Any]) -> float:
        data = self._X, self._y, self._row_weights
        options = {**self._domain, "n_threads": self._n_threads}
        return score_of_unseen(self._settings | slopes, data, rows, block, **options).score


def _thirds(x: FloatArray) -> list[tuple[BoolArray, BoolArray]]:
    """The rows of the lower and the upper third of a feature, each with the other."""
    lower, upper = _lower_third(x), _lower_third(-x)
    # Where most rows have the same value, a third may have none.
    if min(lower.mean(), upper.mean()) < MIN_SHARE:
        return []
    # Between two values there is no third one to predict.
    if min(np.ptp(x[~lower]), np.ptp(x[~upper])) == 0.0:
        return []
    return [(lower, upper), (upper, lower)]


def _tails(x: FloatArray) -> list[BoolArray]:
    """The rows of each tail, the more the better, so that what predicts them is far from most."""
    return [tail for tail in (_upper_tail(x), _upper_tail(-x)) if tail is not None]


def _upper_tail(x: FloatArray) -> BoolArray | None:
    """The rows beyond a part of the way from the median to the greatest value.

    Of a third, a ninth and so on, it is the least part beyond which there is less than a third of
    the rows. None if there are rows enough beyond a third.
    """
    away = x - np.median(x)
    parts = [away > away.max() / 3.0**k for k in range(1, TAIL_STEPS + 1)]
    if parts[0].mean() >= MIN_SHARE:
        return None
    tail = [part for part in parts if part.mean() < 1.0 / 3.0][-1]
    return tail if tail.any() and np.ptp(x[~tail]) > 0.0 else None


def _lower_third(x: FloatArray) -> BoolArray:
    """The rows with the lowest values: a third of them, or what ties leave nearest to it."""
    end = np.quantile(x, 1.0 / 3.0)
    below, up_to = x < end, x <= end
    return min(below, up_to, key=lambda rows: abs(float(rows.mean()) - 1.0 / 3.0))
