"""Which slopes the default regressor takes, as its predictions beyond the rows show."""

from __future__ import annotations

import numpy as np
import pytest

from boscage import MondrianForestRegressor
from boscage.metrics import interval_coverage


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_season_does_not_hide_a_trend(seed: int) -> None:
    """Small forests say that a slope costs something among such rows, and gains much beyond."""
    rng = np.random.default_rng(seed)
    t = np.arange(330.0)
    y = 0.05 * t + np.sin(2.0 * np.pi * t / 25.0) + 0.1 * rng.normal(size=330)
    known, later = t[:300, np.newaxis], t[300:, np.newaxis]
    model = MondrianForestRegressor(random_state=seed).fit(known, y[:300])
    assert model.trend_ == [0]
    dist = model.predict_dist(later)
    assert np.sqrt(np.mean((dist.mean - y[300:]) ** 2)) < 1.2  # once 2 to 5
    assert interval_coverage(y[300:], *dist.interval(0.9)) > 0.8


def test_a_season_alone_has_no_trend() -> None:
    rng = np.random.default_rng(0)
    t = np.arange(300.0)
    y = np.sin(2.0 * np.pi * t / 25.0) + 0.1 * rng.normal(size=300)
    assert MondrianForestRegressor(random_state=0).fit(t[:, np.newaxis], y).trend_ is None
