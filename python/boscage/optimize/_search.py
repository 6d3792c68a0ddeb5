"""The search for the place whose trial promises most."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np

from boscage._types import FloatArray, IntArray
from boscage.optimize import _acquisition, _candidates
from boscage.optimize._surrogate import Surrogate
from boscage.optimize.space import Space

_CENTRES = 5
"""Number of best trials around which candidates lie."""
_REFINED = 3
"""Number of best candidates around which more are tried."""
_FINALISTS = 32
"""Number of candidates whose whole predictive distributions are compared."""
_ENUMERABLE = 10**6
"""Number of settings that may be listed."""
_FAR = -40.0
"""Where a smooth positive part is an exponential function, in double precision."""


@dataclass(frozen=True)
class _Variants:
    """What distinguishes the acquisition functions of several suggestions; the first is as given.

    Numbers of standard deviations are drawn from an exponential distribution with the given mean
    (Hutter, Hoos and Leyton-Brown, "Parallel algorithm configuration", 2012). Seeds are for drawn
    functions. Expected improvement has no variants.
    """

    kappas: FloatArray
    seeds: IntArray

    @classmethod
    def draw(cls, n: int, kappa: float, seed: int) -> _Variants:
        rng = np.random.default_rng(seed)
        kappas = kappa * np.concatenate([[1.0], rng.exponential(size=n - 1)])
        return cls(kappas, np.concatenate([[seed], rng.integers(2**63, size=n - 1)]))


@dataclass(frozen=True)
class Search:
    """Candidates for the next trial, and what forests predict of them."""

    space: Space
    surrogate: Surrogate
    acquisition: str
    kappa: float
    n_candidates: int

    def candidates(
        self, known: FloatArray, ranked: list[int], rng: np.random.Generator
    ) -> FloatArray:
        """Places to compare: all that are left, if these are few."""
        if self.space.n_values <= self.n_candidates:
            fresh = self._left(known, rng)
            if len(fresh):
                return fresh
            return _candidates.random_points(self.space, self.n_candidates, rng)
        half = self.n_candidates // 2 + 1
        points = [_candidates.random_points(self.space, half, rng)]
        if ranked:
            points.append(_candidates.neighbours(self.space, known[ranked], half, rng))
        fresh = _candidates.without(np.concatenate(points), known)
        if not len(fresh) and self.space.n_values <= _ENUMERABLE:
            # Few are left, then.
            fresh = self._left(known, rng)
        return fresh if len(fresh) else points[0]

    def _left(self, known: FloatArray, rng: np.random.Generator) -> FloatArray:
        """All places of a finite space that are not known yet, in a random order."""
        left = _candidates.without(self.space.all_positions(), known)
        return np.asarray(rng.permutation(left))

    def best_candidates(
        self,
        known: FloatArray,
        targets: Mapping[int, float],
        feasible: Set[int],
        n: int,
        rng: np.random.Generator,
    ) -> FloatArray:
        """The candidates whose trials promise most, at most `n` of them, the best one first.

        The first is the best by the acquisition function, and each of the others by a variant of it
        that is drawn at random, so that some explore and some refine; without variants they are
        the next best. `known` has the positions of the trials that are known, also of pending ones,
        `targets` the values to be minimised of the complete ones by number, and `feasible` the
        numbers of those that meet all constraints.
        """

        # A trial that breaks constraints is a worse place to look around than any that does not.
        # Positions decide among equal values, so that the order of trials does not matter.
        def rank(number: int) -> tuple[bool, float, bytes]:
            return number not in feasible, targets[number], known[number].tobytes()

        ranked = sorted(targets, key=rank)[:_CENTRES]
        best = targets[ranked[0]] if feasible else None
        spread = float(np.std(sorted(targets.values()))) or 1.0
        variants = _Variants.draw(n, self.kappa, int(rng.integers(2**63)))
        points = self.candidates(known, ranked, rng)
        score = self._score(points, best, spread, variants)
        if self.space.n_values > self.n_candidates:
            top = dict.fromkeys(_pick(score[:1], _REFINED) + _pick(score, n))
            near = _candidates.neighbours(
                self.space, points[list(top)], self.n_candidates // 2, rng
            )
            near = _candidates.without(near, np.concatenate([known, points]))
            if len(near):
                points = np.concatenate([points, near])
                near_score = self._score(near, best, spread, variants)
                score = np.concatenate([score, near_score], axis=1)
        if self.acquisition == "ei" and best is not None:
            # Means and standard deviations choose whom the whole distributions, which take more
            # time, are computed for.
            points = points[_pick(score, max(n, _FINALISTS))]
            score = self._log_improvement(points, best)
        return np.asarray(points[_pick(score, n)])

    def _score(
        self, points: FloatArray, best: float | None, spread: float, variants: _Variants
    ) -> FloatArray:
        """How much a trial is worth at some places, by each of the variants; greater is better.

        `best` is the value to improve on, None if no trial is feasible: only the chance to be
        feasible counts then. `spread` is the standard deviation of the values so far.
        """
        rows = self.space.rows(points)
        chance = self.surrogate.log_feasibility(rows)[None]
        if best is None:
            return chance
        if self.acquisition == "thompson":
            draws = self.surrogate.draws(rows, variants.seeds)
            return chance + _log_gain(draws, best, spread)
        mean, std = self.surrogate.moments(rows)
        if self.acquisition == "ucb":
            bounds = _acquisition.confidence_bound(mean, std, variants.kappas[:, None])
            return chance + _log_gain(bounds, best, spread)
        return chance + _acquisition.log_expected_improvement(mean, std, best)

    def _log_improvement(self, points: FloatArray, best: float) -> FloatArray:
        """The logarithm of the expected improvement that is feasible, by whole distributions."""
        rows = self.space.rows(points)
        improvement = _acquisition.mixture_log_expected_improvement(
            self.surrogate.mixture(rows), best
        )
        return (improvement + self.surrogate.log_feasibility(rows))[None]


def _log_gain(values: FloatArray, best: float, spread: float) -> FloatArray:
    """Values that the objective may have, as an order that chances can be added to.

    It is the logarithm of a smooth positive part of the improvement, so that a chance weighs what
    it does with the expected improvement.
    """
    gain = (best - values) / spread
    smooth = np.log(np.logaddexp(0.0, np.maximum(gain, _FAR)))
    return np.asarray(np.where(gain > _FAR, smooth, gain))


def _pick(score: FloatArray, n: int) -> list[int]:
    """At most `n` places, which rows of scores choose in turn: each the best one that is left."""
    left = score.copy()
    found: list[int] = []
    for turn in range(min(n, score.shape[1])):
        found.append(int(np.argmax(left[turn % len(left)])))
        left[:, found[-1]] = -np.inf
    return found
