"""The scores compared with their definitions, by hand and by plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from boscage import GaussianMixture
from boscage.metrics import (
    calibration_table,
    crps,
    expected_calibration_error,
    interval_coverage,
    nlpd,
    reliability_bins,
)

RNG = np.random.default_rng(0)
MEAN, STD = RNG.normal(size=500), RNG.uniform(0.5, 2.0, size=500)
Y = RNG.normal(MEAN, STD)


def test_nlpd_of_gaussians() -> None:
    expected = -stats.norm.logpdf(Y, MEAN, STD).mean()
    np.testing.assert_allclose(nlpd(Y, (MEAN, STD)), expected, rtol=1e-12)
    np.testing.assert_allclose(nlpd(Y, GaussianMixture.from_normal(MEAN, STD)), expected)
    np.testing.assert_allclose(nlpd(Y, (MEAN, 2.0)), -stats.norm.logpdf(Y, MEAN, 2.0).mean())


def test_crps_of_gaussians() -> None:
    z = (Y - MEAN) / STD
    expected = STD * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5)
    np.testing.assert_allclose(crps(Y, (MEAN, STD)), expected.mean(), rtol=1e-12)
    # Without spread it is the absolute error.
    np.testing.assert_allclose(crps(Y, (MEAN, 1e-9)), np.abs(Y - MEAN).mean(), rtol=1e-6)
    for std in (0.0, -0.0, np.zeros(500), [0] * 500, 1e-200):
        assert crps(Y, (MEAN, std)) == np.abs(Y - MEAN).mean()
    first = np.where(np.arange(500) < 200, 0.0, STD)
    parts = [crps(Y[:200], (MEAN[:200], 0.0)), crps(Y[200:], (MEAN[200:], STD[200:]))]
    np.testing.assert_allclose(crps(Y, (MEAN, first)), 0.4 * parts[0] + 0.6 * parts[1])


def test_the_true_distribution_scores_best() -> None:
    for score in (nlpd, crps):
        best = score(Y, (MEAN, STD))
        assert best < score(Y, (MEAN + 0.5, STD))
        assert best < score(Y, (MEAN, 2 * STD))
        assert best < score(Y, (MEAN, STD / 2))


def test_interval_coverage() -> None:
    assert interval_coverage([1, 2, 3, 4], 1, 2) == 0.5
    dist = GaussianMixture.from_normal(MEAN, STD)
    assert abs(interval_coverage(Y, *dist.interval(0.9)) - 0.9) < 0.04
    with pytest.raises(ValueError, match=r"row 1 has 3\.0 and 2\.0"):
        interval_coverage([1, 2], [0, 3], [2, 2])


@pytest.mark.parametrize("quantiles", ["gaussian", "exact"])
def test_calibration_table_of_gaussians(quantiles: Any) -> None:
    table = calibration_table(Y, (MEAN, STD), quantiles=quantiles)
    np.testing.assert_allclose(table.level, np.arange(1, 10) / 10)
    for level, observed in zip(table.level, table.observed, strict=True):
        half = stats.norm.ppf(0.5 + level / 2) * STD
        np.testing.assert_allclose(observed, np.mean(np.abs(Y - MEAN) <= half))
    np.testing.assert_allclose(table.difference, table.observed - table.level)
    assert np.abs(table.difference).max() < 0.08
    # Half the spread is overconfidence, twice the spread its opposite.
    assert (calibration_table(Y, (MEAN, STD / 2)).difference < 0).all()
    assert (calibration_table(Y, (MEAN, STD * 2)).difference > 0).all()
    assert str(table).splitlines()[0].split()[1:] == [f"{p}%" for p in range(10, 100, 10)]


@pytest.mark.parametrize("quantiles", ["gaussian", "exact"])
def test_an_interval_without_spread_holds_its_mean_alone(quantiles: Any) -> None:
    mean = np.array([1.0, 2.0, 3.0, 4.0])
    for std in (0.0, np.zeros(4), 1e-200):
        table = calibration_table([1.0, 2.5, 3.0, 4.0], (mean, std), quantiles=quantiles)
        assert (table.observed == 0.75).all()
    some = calibration_table(
        [1.1, 2.0], ([1.0, 1.0], [1.0, 0.0]), levels=[0.5], quantiles=quantiles
    )
    assert some.observed.tolist() == [0.5]


def test_exact_table_counts_what_intervals_hold() -> None:
    rng = np.random.default_rng(1)
    dist = GaussianMixture(
        3 * np.arange(501),
        np.tile([0.2, 0.5, 0.3], 500),
        rng.normal(size=1500),
        rng.uniform(0.1, 2.0, 1500),
    )
    levels = [0.25, 0.5, 0.95]
    table = calibration_table(Y, dist, levels=levels, quantiles="exact")
    expected = [interval_coverage(Y, *dist.interval(level)) for level in levels]
    np.testing.assert_array_equal(table.observed, expected)
    gaussian = calibration_table(Y, dist, levels=levels)
    matched = calibration_table(Y, (dist.mean, dist.std), levels=levels)
    np.testing.assert_array_equal(gaussian.observed, matched.observed)


def test_reliability_bins_by_hand() -> None:
    prob = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.45, 0.55], [0.0, 1.0]]
    truth = ["a", "b", "b", "b", "b"]
    bins = reliability_bins(truth, prob, n_bins=2)
    np.testing.assert_allclose(bins.predicted, [np.mean([0.9, 0.8, 0.7, 0.55, 1.0])])
    np.testing.assert_allclose(bins.observed, [0.8])
    bins = reliability_bins(truth, prob, n_bins=4)
    assert bins.counts.tolist() == [2, 3]  # (0.5, 0.75] and (0.75, 1]
    np.testing.assert_allclose(bins.predicted, [0.625, 0.9])
    np.testing.assert_allclose(bins.observed, [1.0, 2 / 3])
    ece = expected_calibration_error(truth, prob, n_bins=4)
    np.testing.assert_allclose(ece, (2 * 0.375 + 3 * abs(0.9 - 2 / 3)) / 5)


def test_probabilities_of_one_class() -> None:
    bins = reliability_bins([0, 1, 1], [0.1, 0.2, 0.9], n_bins=2)
    np.testing.assert_allclose(bins.predicted, [0.15, 0.9])
    np.testing.assert_allclose(bins.observed, [0.5, 1.0])
    quantile = reliability_bins([0, 1, 1, 0], [0.1, 0.2, 0.9, 0.8], n_bins=2, strategy="quantile")
    assert quantile.counts.tolist() == [2, 2]


def test_calibrated_probabilities_have_a_small_error() -> None:
    rng = np.random.default_rng(2)
    prob = rng.dirichlet(np.ones(4), size=20000)
    truth = (prob.cumsum(axis=1) < rng.uniform(size=(20000, 1))).sum(axis=1)
    assert expected_calibration_error(truth, prob) < 0.02
    sharpened = prob**3 / (prob**3).sum(axis=1, keepdims=True)
    assert expected_calibration_error(truth, sharpened) > 0.1
    assert expected_calibration_error(truth, sharpened, strategy="quantile") > 0.1


def test_labels_absent_from_the_truth_can_be_given() -> None:
    prob = [[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]]
    assert reliability_bins([1, 0], prob, labels=[0, 1, 2], n_bins=1).observed.tolist() == [1.0]
    with pytest.raises(ValueError, match=r"3 columns but there are 2 labels \(0, 1\)"):
        reliability_bins([1, 0], prob)


@pytest.mark.parametrize(
    ("truth", "labels", "message"),
    [
        (["0", "1"], [0, 1], "label '0', expected labels among 0, 1$"),
        ([0, 1], ["0", "1"], "label 0, expected labels among '0', '1'$"),
        ([1, 2], [0, 1], "label 2, expected labels among 0, 1$"),
        ([1.0, np.nan], [0, 1], "label nan, "),
    ],
)
@pytest.mark.parametrize("prob", [[[0.5, 0.5], [0.1, 0.9]], [0.5, 0.9]])
def test_true_labels_that_are_not_among_the_labels_are_refused(
    truth: Any, labels: Any, message: str, prob: Any
) -> None:
    for score in (reliability_bins, expected_calibration_error):
        with pytest.raises(ValueError, match="y_true holds the " + message):
            score(truth, prob, labels=labels)


def test_equal_labels_of_other_types_are_the_same_labels() -> None:
    prob = [[0.1, 0.9], [0.2, 0.8]]
    for truth in ([1, 0], [1.0, 0.0], [True, False], np.array([1, 0], dtype=object)):
        assert reliability_bins(truth, prob, labels=[0, 1], n_bins=1).observed.tolist() == [0.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nlpd([1.0, np.nan], ([0, 0], [1, 1])), "y_true contains nan in row 1"),
        (lambda: nlpd([[1.0]], ([0], [1])), r"y_true has shape \(1, 1\)"),
        (lambda: crps([1.0], ([0, 0], [1, 1])), "y_true has 1 rows, y_pred has 2"),
        (lambda: nlpd([1.0], ([0], [0])), "std must be positive"),
        (lambda: crps([1.0, 1.0], ([0, 0], [0, -1])), "std must be positive"),
        (lambda: crps([1.0], ([0], [np.nan])), "std must be positive"),
        (lambda: crps([0.0], ([0.0], [1e200])), "from 1e-161 to 1e154.*found 1e\\+200"),
        (lambda: nlpd([0.0], ([0.0], [np.inf])), "from 1e-161 to 1e154.*found inf"),
        (lambda: nlpd([0.0], ([0.0], [1e-200])), "from 1e-161 to 1e154.*found 1e-200"),
        (lambda: crps([1, 2], ([0, 0], [1, 1, 1])), r"std has shape \(3,\), expected \(2,\)"),
        (lambda: calibration_table([1.0], ([0], [-1])), "std must be positive"),
        (lambda: interval_coverage([1, 2], [0, 0, 0], 1), "has 2 rows, lower has 3; expected as"),
        (lambda: interval_coverage([1, 2], 0, [[1], [2]]), r"upper has the shape \(2, 1\); exp"),
        (lambda: calibration_table(Y, (MEAN, STD), levels=[10, 20]), "levels must be"),
        (lambda: calibration_table(Y, (MEAN, STD), quantiles="x"), "quantiles must be"),
        (lambda: reliability_bins([0, 1], [[0.5, 0.4], [0.5, 0.5]]), "row 0 of y_prob sums to 0.9"),
        (lambda: reliability_bins([0, 1], [[0.5, 0.5], [1.5, -0.5]]), "1.5 in row 1"),
        (lambda: reliability_bins([0, 1, 2], [0.5, 0.5, 0.5]), "takes two labels"),
        (lambda: reliability_bins([0], [[0.5, 0.5], [1, 0]]), r"y_true has shape \(1,\)"),
        (lambda: reliability_bins([0, 1], [0.5, 0.5], n_bins=0), "n_bins"),
        (lambda: reliability_bins([0, 1], [0.5, 0.5], strategy="x"), "strategy"),
    ],
)
def test_bad_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_prediction_of_another_type_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"PredictiveDistribution or a pair \(mean, std\), found ndarray"
    ):
        nlpd(Y, MEAN)  # type: ignore[arg-type]
