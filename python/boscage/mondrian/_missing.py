"""What stands for missing values in a Mondrian forest.

A forest is a function of its rows, so a missing value must lie where its row alone says. Each
feature has a substitute: a number, or a linear function of the features that the row has. It is
learned when the first missing values come, and then fixed.

Values may be missing at random; then the other features say best where they lie. Or they are
missing because of what they are; then the targets may say it: where high values are missing, rows
without a value have the targets of rows with high ones. So a feature's substitute is a linear
function of others, or the median if it depends on none, unless the targets of the rows without a
value are more likely among the rows of one tenth of its values.

Or they are missing for another reason that says something of the target, such as where tables of
two studies were joined: targets of rows without a value are then like those of no part of the
others. Substitutes beyond the values, where a cut can part these rows from all others, are tried on
small forests, and taken if rows that are left out are predicted better with them.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse

from boscage import _core
from boscage._input.columns import dense
from boscage._input.per_feature import MAX_END
from boscage._types import AnyArray, BoolArray, FloatArray, IntArray, Rows
from boscage.mondrian.feature_rates._shared import (
    LEARNING_ROWS,
    MOST_FEATURES,
    TrialResult,
    first_by_contents,
)
from boscage.mondrian.feature_rates.classification import by_power_alone, score_of_left_out
from boscage.mondrian.feature_rates.regression import score_of_unseen

Substitute: TypeAlias = tuple[float, list[tuple[int, float, float]]]
"""A number and the terms of a linear function: another feature, the slope, and the other feature's
value at which the term is 0."""
Substitutes: TypeAlias = list[Substitute]
"""Those of all features."""

MAX_TERMS = 8
"""The greatest number of other features in a linear function."""
MIN_ROWS = 10
"""With fewer rows that have, or lack, a value, targets do not choose its place."""
MIN_LINEAR_ROWS = 30
"""With fewer rows that have a value, it is not a function of the others; nor in a table of more
than 1,024 features."""
LEAST_SHARE = 0.02
"""The least share of a feature's variance that a linear function explains."""
RIDGE = 0.01
"""Penalty of squared slopes, in units of the features' variances."""
N_PLACES = 10
"""Into how many parts of equal size the values of a feature are divided."""
N_TARGET_CLASSES = 8
"""Into how many classes of equal size numeric targets are divided."""
PILOT_ROWS, PILOT_HELD, PILOT_TREES = 1600, 600, 15
"""Of the small forests that say whether missing values are to lie apart."""
APART = 0.25
"""How far beyond the values of a feature a place apart is, in units of their range."""
STANDARD_ERRORS = 1.0
"""By how many the targets, or rows that are left out, must speak for another place."""
DOUBT = 0.001
"""The share of equal probabilities in those that are scored."""
PRIOR_ROWS = 5.0
"""For how many rows the targets of all rows count among those of one part."""

__all__: list[str] = []


def has_missing(X: Rows) -> bool:
    """Whether values of ``X``, which are finite or NaN, are missing."""
    if issparse(X):
        return False  # those with missing values are made dense
    # One pass without a temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum())) and bool(np.isnan(X).any())


def reference_range(X: Rows) -> tuple[FloatArray, FloatArray]:
    """The least and the greatest value of each feature; 0 for one without any."""
    if issparse(X):
        ends = X.min(axis=0), X.max(axis=0)
        low, high = (end.toarray().ravel().astype(np.float64) for end in ends)
        return low, high
    low, high = ends_of(X)
    none = low > high
    return np.where(none, 0.0, low), np.where(none, 0.0, high)


def ends_of(X: AnyArray) -> tuple[FloatArray, FloatArray]:
    """The same of dense rows, but infinity and minus infinity for a feature without any value."""
    if has_missing(X):
        missing = np.isnan(X)
        # Minima of NaN and numbers are the numbers, but not of the NaN that R writes for NA.
        low = np.where(missing, np.inf, X).min(axis=0, initial=np.inf)
        high = np.where(missing, -np.inf, X).max(axis=0, initial=-np.inf)
    else:
        low, high = X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)
    return low.astype(np.float64), high.astype(np.float64)


def fill(X: Rows, substitutes: Substitutes, low: FloatArray, high: FloatArray) -> FloatArray:
    """Rows in which substitutes stand for missing values."""
    filled = _core.fill_missing(X, substitutes, low, high)
    return np.asarray(X, dtype=np.float64) if filled is None else filled


def check_substitutes(given: Sequence[Any] | None, n_features: int) -> Substitutes | None:
    """The parameter ``substitutes``."""
    if given is None:
        return None
    try:
        substitutes = [_substitute(value) for value in given]
    except (TypeError, ValueError) as error:
        raise ValueError(
            "substitutes must hold for each feature a number, or a number and a list of terms "
            f"(feature, slope, origin); found {given!r}"
        ) from error
    if len(substitutes) != n_features:
        raise ValueError(
            f"substitutes must hold one value for each of the {n_features} features, "
            f"found {len(substitutes)}"
        )
    for feature, (centre, terms) in enumerate(substitutes):
        if not _is_possible((centre, terms), feature, n_features):
            found = (centre, terms) if terms else centre
            raise ValueError(
                f"substitutes must be numbers within +-{MAX_END:g}, with terms of other features "
                f"(0 to {n_features - 1}) if any, found {found} for feature {feature}"
            )
    return substitutes


def _is_possible(substitute: Substitute, feature: int, n_features: int) -> bool:
    """Whether a substitute may stand for missing values of a feature."""
    centre, terms = substitute
    numbers = [centre, *(number for _, *pair in terms for number in pair)]
    are_others = all(0 <= other < n_features and other != feature for other, *_ in terms)
    return are_others and all(abs(number) <= MAX_END for number in numbers)  # NaN is not


def _substitute(value: Any) -> Substitute:
    if isinstance(value, Real):
        return float(value), []
    centre, terms = value
    return float(centre), [(operator.index(k), float(a), float(b)) for k, a, b in terms]


def learn_substitutes(X: Rows, y: AnyArray, *, seed: int) -> Substitutes:
    """Substitutes for missing values of ``X``; ``y`` holds class codes or numbers.

    Looks at 3,000 rows at most, chosen by their contents, so that the substitutes are a function of
    the set of rows.
    """
    rows = first_by_contents(X, y, LEARNING_ROWS, seed)
    return substitutes_of(dense(X[rows]).astype(np.float64), y[rows])


def substitutes_of(X: FloatArray, y: AnyArray) -> Substitutes:
    """The same of rows that were chosen, in random order."""
    table = _Table(X, _target_classes(y))
    ways = [table.substitutes(feature) for feature in range(X.shape[1])]
    within, apart = [found for found, _ in ways], [other or found for found, other in ways]
    if apart == within:
        return within
    before, after = (_tried(X, y, substitutes) for substitutes in (within, apart))
    return apart if after.certain_gain(before, STANDARD_ERRORS) > 0.0 else within


def _tried(X: FloatArray, y: AnyArray, substitutes: Substitutes) -> TrialResult:
    """How well a small forest predicts rows that are left out, with these substitutes."""
    low, high = reference_range(X)
    rows, targets = fill(X, substitutes, low, high)[:PILOT_ROWS], y[:PILOT_ROWS]
    n_held = min(PILOT_HELD, len(rows) // 3)
    options: dict[str, Any] = {"low": low, "high": high, "n_threads": 1}
    if y.dtype.kind == "f":
        model = {"posterior": "joint", "joint_kernel": "trees", "hyperparameters": "ml"}
        settings = {"n_estimators": PILOT_TREES, "noise": "global", "seed": 0, **model}
        unseen = np.arange(len(rows)) < n_held
        return score_of_unseen(settings, (rows, targets, None), ~unseen, unseen, **options)
    settings = by_power_alone({"n_estimators": PILOT_TREES, "calibration": "loo", "seed": 0})
    return score_of_left_out(settings, (rows, targets), n_held, DOUBT, **options)


def _target_classes(y: AnyArray) -> IntArray:
    if y.dtype.kind == "f":
        shares = np.linspace(0.0, 1.0, N_TARGET_CLASSES + 1)[1:-1]
        y = np.searchsorted(np.unique(np.quantile(y, shares)), y)
    codes: IntArray = np.unique(y, return_inverse=True)[1]
    return codes


class _Table:
    """Some rows, and the classes of their targets."""

    def __init__(self, X: FloatArray, codes: IntArray) -> None:
        self._missing: BoolArray = np.isnan(X)
        # One NaN for all: arithmetic with the one that R writes for NA warns.
        self._X, self._codes = np.where(self._missing, np.nan, X), codes
        self._n_present = np.maximum((~self._missing).sum(axis=0), 1)
        # Powers of two are exact, and squares of what is between -2 and 2 do not overflow.
        largest = np.where(self._missing, 0.0, np.abs(self._X)).max(axis=0, initial=0.0)
        self._units = np.ldexp(1.0, np.frexp(largest)[1] - 1)
        scaled = np.where(self._missing, 0.0, self._X / self._units)
        self._means = scaled.sum(axis=0) / self._n_present
        self._centred = np.where(self._missing, 0.0, scaled - self._means)
        self._spreads = np.sqrt((self._centred**2).sum(axis=0) / self._n_present)
        counts = np.bincount(codes) + 0.5
        self._shares = counts / counts.sum()

    def substitutes(self, feature: int) -> tuple[Substitute, Substitute | None]:
        """The substitute of a feature among its values, and one beyond them if that may be right.

        It may be if the targets of rows without a value are most like each other.
        """
        missing = self._missing[:, feature]
        present = self._X[~missing, feature]
        if not present.size:
            return (0.0, []), None
        centre, terms = float(np.median(present)), []
        features, slopes = self._regression(feature)
        if features.size:
            units = self._units[feature]
            centre = float(self._means[feature] * units)
            terms = [
                (int(other), slope, float(self._means[other] * self._units[other]))
                for other, slope in zip(
                    features, self._in_units(feature, features, slopes), strict=True
                )
                if slope != 0.0 and np.isfinite(slope)
            ]
        parts = self._parts(feature, features, slopes)
        if parts is None:
            return (centre, terms), None
        place = parts.place_apart() if parts.are_rows_likelier_apart() else None
        apart: Substitute | None = None if place is None else (place, [])
        if parts.is_best_likelier():
            return (float(np.median(present[parts.numbers == parts.best])), []), apart
        return (centre, terms), apart

    def _in_units(self, feature: int, features: IntArray, slopes: FloatArray) -> list[float]:
        """Slopes in the features' own units; those of extreme features may overflow or vanish."""
        # Rounded, since linear algebra differs in the last bits between machines.
        single = slopes.astype(np.float32).astype(np.float64)
        with np.errstate(over="ignore", under="ignore"):
            found: list[float] = (single * (self._units[feature] / self._units[features])).tolist()
        return found

    def _regression(self, feature: int) -> tuple[IntArray, FloatArray]:
        """Some other features, and the slopes of a linear function of them in scaled units."""
        none = np.empty(0, dtype=np.int64), np.empty(0)
        rows = ~self._missing[:, feature]
        n, y = int(rows.sum()), self._centred[rows, feature]
        varies = self._spreads > 0.0
        if n < MIN_LINEAR_ROWS or not varies[feature] or len(varies) > MOST_FEATURES:
            return none
        others = self._centred[rows] / np.where(varies, self._spreads, 1.0)
        relation = np.abs(others.T @ y)
        relation[feature] = 0.0
        features = np.argsort(-relation, kind="stable")[:MAX_TERMS]
        features = np.sort(features[relation[features] > 0.0])
        chosen = others[:, features]
        system = chosen.T @ chosen / n + RIDGE * np.eye(len(features))
        slopes = np.linalg.solve(system, chosen.T @ y / n)
        left = 1.0 - np.var(y - chosen @ slopes) / np.var(y)
        # The share of new rows' variance, since slopes are fitted to these.
        share = 1.0 - (1.0 - left) * (n - 1) / (n - 1 - len(features))
        if not share > LEAST_SHARE:
            return none
        return features, slopes / self._spreads[features]

    def _linear(self, feature: int, features: IntArray, slopes: FloatArray) -> FloatArray:
        """Each row's value according to its other features."""
        scaled = self._means[feature] + self._centred[:, features] @ slopes
        return np.asarray(scaled * self._units[feature])

    def _parts(self, feature: int, features: IntArray, slopes: FloatArray) -> _Parts | None:
        """The parts of a feature, which is a linear function of others; None with few rows."""
        missing = self._missing[:, feature]
        present, codes = self._X[~missing, feature], self._codes[missing]
        if min(codes.size, present.size) < MIN_ROWS:
            return None
        linear = self._linear(feature, features, slopes)[missing]
        shares = np.linspace(0.0, 1.0, N_PLACES + 1)[1:-1]
        edges = np.unique(np.quantile(present, shares))
        numbers = np.searchsorted(edges, present)
        counts = np.zeros((len(edges) + 1, len(self._shares)))
        np.add.at(counts, (numbers, self._codes[~missing]), 1.0)
        counts += PRIOR_ROWS * self._shares
        log_shares = np.log(counts / counts.sum(axis=1, keepdims=True))
        # Where many rows share a value, parts may be empty.
        is_empty = np.bincount(numbers, minlength=len(counts)) == 0
        best = int(np.argmax(np.where(is_empty, -np.inf, log_shares[:, codes].mean(axis=1))))
        own = np.bincount(codes, minlength=len(self._shares))[codes] - 1.0
        own = (own + PRIOR_ROWS * self._shares[codes]) / (len(codes) - 1.0 + PRIOR_ROWS)
        return _Parts(
            present,
            numbers,
            best,
            in_best=log_shares[best, codes],
            in_linear=log_shares[np.searchsorted(edges, linear), codes],
            in_all=np.log(self._shares[codes]),
            in_own=np.log(own),
        )


@dataclass(frozen=True)
class _Parts:
    """Parts of a feature's values, and the log probabilities of the targets of rows without one."""

    present: FloatArray
    """The values."""
    numbers: IntArray
    """The part of each value."""
    best: int
    """The part among whose rows these targets are most probable."""
    in_best: FloatArray
    in_linear: FloatArray
    """In the part in which the row lies according to its other features."""
    in_all: FloatArray
    in_own: FloatArray
    """Among the rows without a value, but for the row itself."""

    def place_apart(self) -> float | None:
        """A place beyond the values, on the side of the best part; None if there is no room."""
        low, high = float(self.present.min()), float(self.present.max())
        # Halves, whose difference does not overflow.
        away = 2.0 * APART * (0.5 * high - 0.5 * low)
        place = high + away if 2 * self.best >= self.numbers.max() else low - away
        return place if low < high and abs(place) <= MAX_END else None

    def is_best_likelier(self) -> bool:
        """Whether the targets are likelier in one part than in all, or where others say."""
        return all(_is_likelier(self.in_best, other) for other in (self.in_all, self.in_linear))

    def are_rows_likelier_apart(self) -> bool:
        """Whether the targets are likelier among these rows alone than anywhere else."""
        others = (self.in_best, self.in_all, self.in_linear)
        return all(_is_likelier(self.in_own, other) for other in others)


def _is_likelier(found: FloatArray, other: FloatArray) -> bool:
    """Whether log probabilities are greater than others beyond chance."""
    gain = found - other
    return bool(gain.mean() > STANDARD_ERRORS * np.std(gain) / np.sqrt(len(gain)))
