"""The reference for classification against itself: prediction, extensions, online counts."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.integrate import quad, quad_vec

from reference import ikn
from reference.arrays import Array, Tree, parent_time, path
from reference.mondrian_boxes import (
    Pausing,
    branch_off,
    branch_rate,
    sample_mondrian_tree,
    to_arrays,
)

N_CLASSES = 3
RATES = np.array([1.0, 2.0])
GAMMA = 3.0


def grow(seed: int, lifetime: float = inf) -> tuple[Tree, Array, Array]:
    """Return a tree, its rows and codes; class 2 is known but has no row."""
    rng = np.random.default_rng(seed)
    points = np.round(rng.uniform(size=(12, 2)), 1)  # duplicates, ties
    codes = rng.integers(0, 2, size=12)
    tree = sample_mondrian_tree(
        rng, points, codes, rates=RATES, lifetime=lifetime, pausing=Pausing(equal_labels=True)
    )
    return to_arrays(tree), points, codes


def test_expected_discount_is_the_integral() -> None:
    for gamma, rate, width in [(2.0, 0.7, 1.3), (30.0, 1e-3, 0.2), (0.1, 50.0, 4.0)]:
        direct = quad(lambda t, s=gamma + rate, h=rate: h * np.exp(-s * t), 0.0, width)[0]
        direct /= -np.expm1(-rate * width)
        assert ikn.expected_discount(gamma, rate, width) == pytest.approx(direct, rel=1e-10)
    assert ikn.expected_discount(2.0, 3.0, inf) == pytest.approx(0.6)


@pytest.mark.parametrize("lifetime", [inf, 1.5])
def test_online_counts_are_batch_counts(lifetime: float) -> None:
    """Algorithm 5.7, one row at a time in any order, ends where Algorithm 5.3 does.

    With its lines 4 and 8 in the printed order it does not.
    """
    printed_agrees = []
    for seed in range(10):
        tree, points, codes = grow(seed, lifetime)
        online = np.zeros((len(tree["parent"]), N_CLASSES), dtype=np.int64)
        printed = online.copy()
        for i in np.random.default_rng(seed).permutation(len(points)):
            leaf = path(tree, points[i])[-1]
            ikn.update_posterior_counts(tree, online, leaf, codes[i])
            ikn.update_posterior_counts(tree, printed, leaf, codes[i], as_printed=True)
        batch = ikn.initialize_posterior_counts(tree, points, codes, N_CLASSES)
        np.testing.assert_array_equal(online, batch)
        printed_agrees.append(np.array_equal(printed, batch))
    assert not all(printed_agrees)


@pytest.mark.parametrize("lifetime", [inf, 1.5])
def test_posterior_means_are_distributions(lifetime: float) -> None:
    for seed in range(10):
        tree, points, codes = grow(seed, lifetime)
        counts = ikn.initialize_posterior_counts(tree, points, codes, N_CLASSES)
        means = ikn.posterior_means(tree, counts, GAMMA)
        assert (means >= 0.0).all()
        np.testing.assert_allclose(means.sum(axis=1), 1.0, rtol=0, atol=1e-13)


@pytest.mark.parametrize("lifetime", [pytest.param(inf, marks=pytest.mark.slow), 1.5])
def test_averaged_prediction_is_the_integral_over_extensions(lifetime: float) -> None:
    """Algorithm 5.8 against the extended tree's own prediction, integrated over the branch time."""
    for seed in range(6):
        tree, points, codes = grow(seed, lifetime)
        where = np.array([path(tree, p)[-1] for p in points])
        counts = ikn.initialize_posterior_counts(tree, points, codes, N_CLASSES)
        x = np.random.default_rng(100 + seed).uniform(-0.5, 1.5, size=2)
        total, stay = np.zeros(N_CLASSES), 1.0
        for j in path(tree, x):
            rate, before = branch_rate(tree, j, x, RATES), parent_time(tree, j)
            width = float(tree["time"][j]) - before
            if rate > 0.0:

                def own_leaf(t: float, tree: Tree = tree, j: int = j) -> Array:
                    extended, leaf = branch_off(tree, j, t, lifetime)
                    return ikn.predict_realised_leaf(
                        extended,
                        where,  # noqa: B023, called before the next turn
                        codes,  # noqa: B023
                        N_CLASSES,
                        leaf,
                        GAMMA,
                    )

                end = -np.expm1(-rate * width)
                total += (
                    stay
                    * quad_vec(
                        lambda u, f=own_leaf, h=rate, s=before: f(s - np.log1p(-u) / h),
                        0.0,
                        end,
                        epsabs=1e-8,
                    )[0]
                )
                stay *= np.exp(-rate * width)
        total += stay * ikn.posterior_means(tree, counts, GAMMA)[path(tree, x)[-1]]
        np.testing.assert_allclose(
            ikn.predict(tree, counts, x, GAMMA, RATES), total, rtol=0, atol=1e-6
        )


@pytest.mark.slow
def test_averaged_prediction_is_the_mean_over_sampled_extensions() -> None:
    """Each difference in units of its standard error: none above 4.5, their square about one."""
    rng = np.random.default_rng(3)
    z = []
    for seed in range(12):
        lifetime = inf if seed % 2 else 1.5
        tree, points, codes = grow(seed, lifetime)
        where = np.array([path(tree, p)[-1] for p in points])
        counts = ikn.initialize_posterior_counts(tree, points, codes, N_CLASSES)
        x = rng.uniform(-0.3, 1.3, size=2)
        draws = np.array(
            [
                ikn.predict_by_extension(
                    rng, tree, where, codes, N_CLASSES, x, GAMMA, RATES, lifetime
                )
                for _ in range(400)
            ]
        )
        exact = ikn.predict(tree, counts, x, GAMMA, RATES)
        error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
        same = error < 1e-12  # x inside its leaf's box: every extension predicts alike
        np.testing.assert_allclose(draws.mean(axis=0)[same], exact[same], atol=1e-12)
        z.append(((draws.mean(axis=0) - exact)[~same] / error[~same])[:2])
    flat = np.concatenate(z)
    assert np.abs(flat).max() < 4.5
    assert 0.2 < (flat**2).mean() < 2.2


def test_far_away_the_prior_returns() -> None:
    for seed in range(5):
        tree, points, codes = grow(seed)
        counts = ikn.initialize_posterior_counts(tree, points, codes, N_CLASSES)
        far = ikn.predict(tree, counts, np.array([1e9, -1e9]), GAMMA, RATES)
        np.testing.assert_allclose(far, 1.0 / N_CLASSES, rtol=0, atol=1e-7)
