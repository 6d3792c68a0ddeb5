"""`GaussianMixture` compared with numerical integration, SciPy and plain loops."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from boscage import GaussianMixture
from boscage.distributions._gaussian_crps import (
    finest_scale,
    spread_by_integral,
    spread_by_pairs,
)

Array = np.ndarray[Any, np.dtype[Any]]


def ragged(seed: int, counts: list[int], spread: float = 3.0) -> GaussianMixture:
    """A mixture with given numbers of components and scales over two orders of magnitude."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    total = int(offsets[-1])
    weights = rng.dirichlet(np.ones(total)) if total else np.empty(0)
    for i, j in pairwise(offsets):
        weights[i:j] /= weights[i:j].sum()
    return GaussianMixture(
        offsets, weights, rng.normal(0.0, spread, total), np.exp(rng.uniform(-5.0, 2.0, total))
    )


DIST = ragged(0, [1, 2, 5, 1, 20, 70])


def pdf_of(dist: GaussianMixture, row: int, y: Any) -> Any:
    weights, means, variances = dist.components(row)
    return np.dot(stats.norm.pdf(np.asarray(y)[..., None], means, np.sqrt(variances)), weights)


def breaks_of(dist: GaussianMixture, row: int) -> tuple[float, float, Array]:
    """Bounds that hold all the mass, and points between which the density is smooth."""
    _, means, variances = dist.components(row)
    points = np.unique(means + np.arange(-12, 13)[:, None] * np.sqrt(variances))
    return float(points[0]), float(points[-1]), points


def integral(function: Any, low: float, high: float, points: Array) -> float:
    """Gauss-Legendre between all the points given."""
    inner = points[(points > low) & (points < high)]
    nodes, weights = np.polynomial.legendre.leggauss(12)
    ends = np.concatenate(([low], inner, [high]))
    half = 0.5 * np.diff(ends)[:, None]
    at = ends[:-1, None] + half * (nodes + 1.0)
    return float(np.sum(half * weights * function(at)))


@pytest.mark.parametrize("row", [*range(5), pytest.param(5, marks=pytest.mark.slow)])
def test_density_moments_and_distribution_function_agree_with_integration(row: int) -> None:
    low, high, points = breaks_of(DIST, row)

    def density(y: Any) -> Any:
        return DIST[row].pdf(y[..., None])[..., 0]

    np.testing.assert_allclose(integral(density, low, high, points), 1.0, rtol=1e-9)
    mean = integral(lambda y: y * density(y), low, high, points)
    np.testing.assert_allclose(DIST.mean[row], mean, rtol=1e-8, atol=1e-9)
    var = integral(lambda y: (y - mean) ** 2 * density(y), low, high, points)
    np.testing.assert_allclose(DIST.var[row], var, rtol=1e-8)
    for at in np.linspace(low, high, 7)[1:-1]:
        below = integral(density, low, at, points)
        np.testing.assert_allclose(DIST[row].cdf(at)[0], below, rtol=1e-8, atol=1e-11)


def test_pdf_agrees_with_scipy() -> None:
    y = np.random.default_rng(1).normal(size=(4, 3, len(DIST)))
    expected = np.stack([pdf_of(DIST, row, y[..., row]) for row in range(len(DIST))], axis=-1)
    np.testing.assert_allclose(DIST.pdf(y), expected, rtol=1e-11)
    np.testing.assert_allclose(DIST.logpdf(y), np.log(expected), rtol=1e-9, atol=1e-11)


def test_logpdf_does_not_underflow() -> None:
    dist = GaussianMixture([0, 2], [0.5, 0.5], [0.0, 1.0], [1e-6, 1e-6])
    expected = np.log(0.5) - 0.5 * (99.0**2) / 1e-6 - 0.5 * np.log(2 * np.pi * 1e-6)
    np.testing.assert_allclose(dist.logpdf(100.0), [expected], rtol=1e-12)
    assert dist.logpdf(np.inf)[0] == -np.inf
    assert dist.pdf(1e300)[0] == 0.0


def test_shapes_of_y_broadcast() -> None:
    n = len(DIST)
    assert DIST.cdf(0.0).shape == (n,)
    assert DIST.cdf(np.zeros(n)).shape == (n,)
    grid = np.linspace(-1, 1, 5)[:, None]
    assert DIST.cdf(grid).shape == (5, n)
    np.testing.assert_array_equal(DIST.cdf(grid)[2], DIST.cdf(0.0))
    with pytest.raises(ValueError, match=r"last axis must have one entry for each of the 6 rows"):
        DIST.cdf(np.zeros(4))


@pytest.mark.parametrize("row", range(len(DIST)))
@pytest.mark.parametrize("q", [1e-200, 1e-9, 0.003, 0.25, 0.5, 0.9, 0.9999])
def test_quantile_inverts_the_distribution_function(row: int, q: float) -> None:
    x = DIST.quantile(q)
    np.testing.assert_allclose(DIST.cdf(x)[row], q, rtol=1e-9)


def test_quantile_of_one_component_is_the_normal_quantile() -> None:
    dist = GaussianMixture.from_normal([0.0, 5.0], [1.0, 0.1])
    np.testing.assert_allclose(
        dist.quantile([0.1, 0.975]),
        stats.norm.ppf([[0.1], [0.975]], [0.0, 5.0], [1.0, 0.1]),
        rtol=1e-13,
        atol=1e-13,
    )


def test_quantile_between_distant_modes() -> None:
    dist = GaussianMixture([0, 2], [0.5, 0.5], [-1e6, 1e6], [1e-8, 1e-8])
    np.testing.assert_allclose(dist.quantile(0.25), [-1e6], rtol=1e-9)
    np.testing.assert_allclose(dist.quantile(0.75), [1e6], rtol=1e-9)
    assert -1e6 <= dist.quantile(0.5)[0] <= 1e6
    np.testing.assert_allclose(
        GaussianMixture([0, 2], [0.3, 0.7], [-1e6, 1e6], [1e-8, 1.0]).quantile([0.2, 0.4]),
        [[-1e6 + 1e-4 * stats.norm.ppf(0.2 / 0.3)], [1e6 + stats.norm.ppf(0.1 / 0.7)]],
        rtol=1e-14,
    )


def test_quantile_at_the_ends_and_outside() -> None:
    assert (DIST.quantile(0.0) == -np.inf).all()
    assert (DIST.quantile(1.0) == np.inf).all()
    for wrong in (-0.1, 1.1, np.nan, [0.5, 2.0]):
        with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
            DIST.quantile(wrong)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.floats(0.0, 1e6),
    st.floats(1e-12, 1.0 - 1e-12),
)
def test_quantile_inverts_the_distribution_function_of_any_mixture(
    seed: int, counts: list[int], spread: float, q: float
) -> None:
    dist = ragged(seed, counts, spread)
    x = dist.quantile(q)
    # A bracket of a few units in the last place around x holds the root.
    away = 16 * np.finfo(float).eps * np.maximum(np.abs(x), np.sqrt(dist.variances.min()))
    assert (dist.cdf(x - away) <= q * (1 + 1e-12)).all()
    assert (dist.cdf(x + away) >= q * (1 - 1e-12)).all()


def test_interval_has_its_coverage() -> None:
    lower, upper = DIST.interval(0.8)
    np.testing.assert_allclose(DIST.cdf(upper) - DIST.cdf(lower), 0.8, rtol=1e-10)
    np.testing.assert_allclose(DIST.cdf(lower), 0.1, rtol=1e-10)
    lower, upper = DIST.interval([0.5, 0.9])
    assert lower.shape == upper.shape == (2, len(DIST))
    with pytest.raises(ValueError, match="coverage"):
        DIST.interval(90)


def test_sample_follows_the_distribution() -> None:
    draws = DIST.sample(4000, random_state=0)
    assert draws.shape == (4000, len(DIST))
    for row in range(len(DIST)):
        one = DIST[row]
        test = stats.kstest(draws[:, row], lambda y, one=one: one.cdf(y[:, None])[:, 0])
        assert test.pvalue > 1e-3
    np.testing.assert_array_equal(draws, DIST.sample(4000, random_state=0))
    assert abs(np.corrcoef(draws[:, 1], draws[:, 2])[0, 1]) < 0.1
    assert DIST.sample(0).shape == (0, len(DIST))
    assert DIST.sample(2, np.random.default_rng(0)).shape == (2, len(DIST))
    with pytest.raises(ValueError, match="n must be an integer"):
        DIST.sample(-1)


def test_results_do_not_depend_on_blocks_of_rows() -> None:
    """Results do not depend on how rows are grouped into blocks."""
    one = ragged(3, [1000, 1, 77])
    copies = 300
    many = one[np.tile(np.arange(3), copies)]
    np.testing.assert_array_equal(many.quantile(0.3), np.tile(one.quantile(0.3), copies))
    np.testing.assert_allclose(many.logpdf(0.1), np.tile(one.logpdf(0.1), copies), rtol=1e-13)
    draws = many.sample(5, random_state=1)
    centred = (draws.reshape(5, copies, 3) - one.mean) / one.std
    assert np.abs(centred.mean(axis=(0, 1))).max() < 5 / np.sqrt(5 * copies)


def test_indexing_selects_rows() -> None:
    part = DIST[[4, 0, 4]]
    assert len(part) == 3
    np.testing.assert_array_equal(part.mean, DIST.mean[[4, 0, 4]])
    np.testing.assert_array_equal(DIST[-1].var, DIST.var[-1:])
    np.testing.assert_array_equal(DIST[1:3].mean, DIST.mean[1:3])
    np.testing.assert_array_equal(DIST[DIST.mean > 0].mean, DIST.mean[DIST.mean > 0])
    assert len(DIST[:0]) == 0
    assert DIST[:0].mean.shape == DIST[:0].quantile(0.5).shape == (0,)
    with pytest.raises(IndexError):
        DIST[6]
    with pytest.raises(IndexError):
        DIST.components(6)


def test_arrays_cannot_be_changed_and_pickle_keeps_them() -> None:
    with pytest.raises(ValueError, match="read-only"):
        DIST.weights[0] = 2.0
    again = pickle.loads(pickle.dumps(DIST))
    assert again == DIST
    assert again != DIST[:2]
    assert repr(DIST) == "GaussianMixture(n_rows=6, n_components=99)"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([], [], [], []), "offsets must be"),
        (([0.0, 1.0], [1], [0], [1]), "offsets must be"),
        (([1, 2], [1, 1], [0, 0], [1, 1]), "offsets must begin with 0"),
        (([0, 1, 1], [1], [0], [1]), "rise by at least one"),
        (([0, 2], [1], [0, 0], [1, 1]), r"weights has shape \(1,\), expected \(2,\)"),
        (([0, 1], [1], [np.nan], [1]), "means must be finite"),
        (([0, 1], [1], [0], [0.0]), "variances must be positive"),
        (([0, 2], [1.5, -0.5], [0, 0], [1, 1]), "weights must not be negative"),
        (([0, 1, 2], [1, 0.5], [0, 0], [1, 1]), "weights of row 1 sum to 0.5"),
    ],
)
def test_bad_arrays_are_refused(arrays: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GaussianMixture(*arrays)


@pytest.mark.slow
@pytest.mark.parametrize("row", range(len(DIST)))
def test_crps_agrees_with_its_definition(row: int) -> None:
    low, high, points = breaks_of(DIST, row)
    one = DIST[row]
    for y in (float(one.mean[0]), low - 1.0, float(one.quantile(0.9)[0])):

        def squared(t: Any, y: float = y) -> Any:
            return (one.cdf(t[..., None])[..., 0] - (t >= y)) ** 2

        expected = integral(squared, min(low, y), max(high, y), np.unique(np.append(points, y)))
        np.testing.assert_allclose(one.crps([y]), [expected], rtol=1e-7)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 60), st.floats(0.0, 30.0))
def test_both_ways_to_the_pairwise_term_agree(seed: int, count: int, spread: float) -> None:
    dist = ragged(seed, [count], spread)
    scales = np.sqrt(dist.variances)
    by_pairs = spread_by_pairs(dist.weights, dist.means, scales)
    by_integral = spread_by_integral(
        dist.weights, dist.means, scales, finest_scale(dist.weights, scales)
    )
    np.testing.assert_allclose(by_integral, by_pairs, rtol=1e-8)


@pytest.mark.slow  # to import the library takes seconds
def test_crps_agrees_with_scoringrules() -> None:
    scoringrules = pytest.importorskip("scoringrules")
    dist = ragged(8, [30] * 20)
    y = np.random.default_rng(0).normal(size=20)
    expected = scoringrules.crps_mixnorm(
        y,
        dist.means.reshape(20, 30),
        np.sqrt(dist.variances).reshape(20, 30),
        dist.weights.reshape(20, 30),
    )
    np.testing.assert_allclose(dist.crps(y), expected, rtol=1e-8)


def test_crps_of_a_big_mixture_with_very_unequal_scales() -> None:
    """Negligible components must neither stop the integral nor spoil it."""
    rng = np.random.default_rng(4)
    weights = np.append(rng.dirichlet(np.ones(999)), 1e-14)
    weights /= weights.sum()
    means = rng.normal(size=1000)
    scales = np.append(rng.uniform(0.5, 2.0, 999), 1e-7)
    np.testing.assert_allclose(
        spread_by_integral(weights, means, scales, finest_scale(weights, scales)),
        spread_by_pairs(weights, means, scales),
        rtol=1e-9,
    )


@pytest.mark.parametrize("octaves", [0.5, 1.0, 6.3, 13.0])
def test_crps_of_scales_over_many_octaves(octaves: float) -> None:
    """Each octave has a grid of its own, and the wide ones are interpolated."""
    rng = np.random.default_rng(5)
    weights = rng.dirichlet(np.full(700, 0.3))
    scales = 2.0 ** rng.uniform(-octaves, 0.0, 700)
    means = rng.normal(size=700)
    np.testing.assert_allclose(
        spread_by_integral(weights, means, scales, finest_scale(weights, scales)),
        spread_by_pairs(weights, means, scales),
        rtol=1e-12,
    )


def test_results_shift_and_scale_with_the_mixture() -> None:
    moved = GaussianMixture(
        DIST.offsets, DIST.weights, 1e5 - 3.0 * DIST.means, 9.0 * DIST.variances
    )
    y = np.linspace(-2, 2, len(DIST))
    np.testing.assert_allclose(moved.mean, 1e5 - 3.0 * DIST.mean, rtol=1e-13)
    np.testing.assert_allclose(moved.std, 3.0 * DIST.std, rtol=1e-9)
    np.testing.assert_allclose(moved.crps(1e5 - 3.0 * y), 3.0 * DIST.crps(y), rtol=1e-7)
    np.testing.assert_allclose(moved.quantile(0.2), 1e5 - 3.0 * DIST.quantile(0.8), rtol=1e-12)


def test_empirical_crps_of_draws_approaches_the_closed_form() -> None:
    one = DIST[2]
    draws = one.sample(20000, random_state=0).ravel()
    y = 1.0
    empirical = np.abs(draws - y).mean() - 0.5 * np.abs(draws - draws[::-1]).mean()
    np.testing.assert_allclose(one.crps([y]), [empirical], rtol=0.03)
