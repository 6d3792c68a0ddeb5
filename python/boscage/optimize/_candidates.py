"""Candidates for the next trial: places all over the space, and around the best ones so far."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from boscage._types import FloatArray
from boscage.optimize._parameters import Categorical
from boscage.optimize.space import Space

# Steps have a size drawn log-uniformly between these, in units of a parameter's range: great ones
# explore, small ones refine.
_LEAST_STEP, _GREATEST_STEP = 1e-3, 0.3


def design_point(space: Space, number: int, size: int, seed: int) -> FloatArray:
    """One point of a sequence that fills the space evenly.

    Each `size` points are a Latin hypercube: of as many equal parts of a parameter's range, each
    has one of them.

    Parameters
    ----------
    space : Space
        The space.
    number : int
        Number of the point.
    size : int
        Number of points of a hypercube.
    seed : int
        Seed.

    Returns
    -------
    ndarray of shape (1, n_parameters)
        Positions of values.
    """
    block, place = divmod(number, size)
    rng = np.random.default_rng([seed, block, 1])
    parts = rng.permuted(np.tile(np.arange(size), (len(space.names), 1)), axis=1)
    away = rng.random(parts.shape)
    return space.snap((parts[:, place] + away[:, place])[None] / size)


def random_points(space: Space, n: int, rng: np.random.Generator) -> FloatArray:
    """Settings drawn independently, each parameter uniformly on its scale.

    Parameters
    ----------
    space : Space
        The space.
    n : int
        Number of settings.
    rng : numpy.random.Generator
        Generator.

    Returns
    -------
    ndarray of shape (n, n_parameters)
        Positions of values.
    """
    return space.snap(rng.random((n, len(space.names))))


def neighbours(space: Space, centres: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Settings near others: some parameters take a step each, the others stay.

    Parameters
    ----------
    space : Space
        The space.
    centres : ndarray of shape (n_centres, n_parameters)
        Positions of values; each neighbour is one of a centre drawn at random.
    n : int
        Number of settings.
    rng : numpy.random.Generator
        Generator.

    Returns
    -------
    ndarray of shape (n, n_parameters)
        Positions of values.
    """
    width = len(space.names)
    base = centres[rng.integers(len(centres), size=n)]
    anywhere = rng.random((n, width))
    # What was inactive may become active: it then has no place to start from.
    base = np.where(np.isnan(base), anywhere, base)
    # A single parameter, half of them, or all.
    share = rng.choice([1.0 / width, 0.5, 1.0], size=(n, 1))
    moves = rng.random((n, width)) < share
    moves[np.arange(n), rng.integers(width, size=n)] = True
    size = np.exp(rng.uniform(math.log(_LEAST_STEP), math.log(_GREATEST_STEP), size=(n, 1)))
    # A step of an integer must reach the next one.
    spacing = np.array([1.0 / parameter.n_values for parameter in space.parameters.values()])
    stepped = base + (size + spacing) * rng.standard_normal((n, width))
    stepped = np.abs(stepped)  # reflected at the ends of the range
    stepped = np.clip(1.0 - np.abs(1.0 - stepped), 0.0, 1.0)
    unordered = [isinstance(parameter, Categorical) for parameter in space.parameters.values()]
    moved = np.where(np.array(unordered), anywhere, stepped)
    return space.snap(np.where(moves, moved, base))


def without(positions: FloatArray, known: FloatArray) -> FloatArray:
    """Those positions that are not known yet, each once.

    Parameters
    ----------
    positions : ndarray of shape (n, n_parameters)
        Positions of values.
    known : ndarray of shape (n_known, n_parameters)
        Positions of values.

    Returns
    -------
    ndarray of shape (n_left, n_parameters)
        In the order of `positions`.
    """
    both = np.concatenate([known, positions])
    _, first = np.unique(_as_bytes(both), return_index=True)
    return np.asarray(both[np.sort(first[first >= len(known)])])


def _as_bytes(positions: FloatArray) -> NDArray[np.void]:
    """Each row as one value that can be compared; inactive parameters are equal to each other."""
    plain = np.ascontiguousarray(np.where(np.isnan(positions), -1.0, positions))
    return plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1]))).ravel()
