"""What changes the digest, and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier
from reference.arrays import Array


def test_the_digest_tells_models_apart() -> None:
    """Another row, label, seed or setting is another digest; other ids and orders are not."""
    rng = np.random.default_rng(7)
    x, y = rng.uniform(size=(20, 2)), rng.integers(0, 2, size=20)
    base: dict[str, Any] = {"n_estimators": 3, "feature_range": (0.0, 1.0), "random_state": 7}
    base["feature_weights"] = None

    def digest(x: Array = x, y: Array = y, ids: Any = None, **changed: Any) -> str:
        return str(MondrianForestClassifier(**(base | changed)).fit(x, y, ids=ids).digest())

    moved, flipped = x.copy(), y.copy()
    moved[3, 1] = np.nextafter(moved[3, 1], 2.0)
    flipped[4] = 1 - flipped[4]
    same = digest()
    assert digest(ids=np.arange(100, 120)) == same
    assert digest(x[::-1], y[::-1]) == same
    assert digest(n_jobs=2, verbose=0) == same
    others = [
        digest(moved),
        digest(y=flipped),
        digest(x[1:], y[1:]),
        digest(np.vstack([x, x[:1]]), np.append(y, y[0])),
        digest(random_state=8),
        digest(n_estimators=4),
        digest(lifetime=5.0),
        digest(min_samples_split=3),
        digest(discount=9.0),
        digest(calibration=None),
        digest(predictive="realised"),
        digest(feature_range=(0.0, 2.0)),
        digest(feature_weights=np.array([1.0, 2.0])),
    ]
    assert len({same, *others}) == len(others) + 1


def test_refused_updates_and_merges_change_nothing() -> None:
    """Unknown and repeated ids, foreign seeds, ranges and settings, ids in both models."""
    rng = np.random.default_rng(8)
    x, y = rng.uniform(size=(20, 2)), rng.integers(0, 2, size=20)
    base: dict[str, Any] = {"n_estimators": 3, "feature_range": (0.0, 1.0), "random_state": 8}
    base["feature_weights"] = None

    def fit(ids: Any, **changed: Any) -> Any:
        return MondrianForestClassifier(**(base | changed)).fit(x, y, ids=ids)

    model = fit(np.arange(20))
    before = model.digest(), model.ids_.tolist()
    with pytest.raises(KeyError, match="77"):
        model.forget([3, 77])
    with pytest.raises((KeyError, ValueError)):
        model.forget([3, 3])
    with pytest.raises(ValueError, match="19"):
        model.partial_fit(x[:2], y[:2], ids=[50, 19])
    with pytest.raises(ValueError, match="50"):
        model.partial_fit(x[:2], y[:2], ids=[50, 50])
    for changed in (
        {"random_state": 9},
        {"n_estimators": 4},
        {"lifetime": 3.0},
        {"min_samples_split": 5},
        {"feature_range": (0.0, 1.5)},
        {"feature_weights": np.array([1.0, 0.5])},
    ):
        with pytest.raises(ValueError, match=r".+"):
            model.merge(fit(np.arange(20, 40), **changed))
    with pytest.raises(ValueError, match=r".+"):
        model.merge(fit(np.arange(10, 30)))
    with pytest.raises(ValueError, match=r".+"):
        model.merge(model)
    # another class, declared or seen, in a model that cannot be merged
    other = MondrianForestClassifier(**base).partial_fit(x, 5 * y, classes=[0, 5, 6])
    with pytest.raises(ValueError, match=r".+"):
        model.merge(other)
    with pytest.raises(ValueError, match=r".+"):
        model.partial_fit(x[:2], [7, 8], ids=[50, 50])
    np.testing.assert_array_equal(model.classes_, [0, 1])
    assert (model.digest(), model.ids_.tolist()) == before
