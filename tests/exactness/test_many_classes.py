"""With more than 1,024 classes each split has sets of its own; nothing else changes.

A class that is declared and has no rows takes part in the base measure alone, so that forests which
differ in such classes must agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier
from reference.arrays import Array

N_CLASSES = 40
N_DECLARED = 5_000


def data(n: int = 300, n_classes: int = N_CLASSES) -> tuple[Array, Array]:
    """Rows whose classes are spread over all that are declared."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(n, 3))
    y = np.minimum((n_classes * x[:, 0] + 2.0 * rng.normal(size=n)).clip(0), n_classes - 1)
    return x, y.astype(int) * (N_DECLARED // n_classes)


def make(**params: Any) -> MondrianForestClassifier:
    settings: dict[str, Any] = {"n_estimators": 5, "feature_range": (0.0, 1.0), "random_state": 1}
    return MondrianForestClassifier(
        **(settings | {"feature_weights": None, "calibration": None} | params)
    )


def without_base(proba: Array, own: Array, n_classes: int) -> tuple[Array, Array]:
    """What rows add to their classes, and the weight of the base measure.

    A class without rows shows the latter.
    """
    absent = np.setdiff1d(np.arange(proba.shape[1]), own)[0]
    return proba[:, own] - proba[:, [absent]], proba[:, absent] * n_classes


@pytest.mark.parametrize("weights", ["ones", "fractions"])
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_classes_without_rows_change_the_base_measure_alone(weights: str, predictive: str) -> None:
    x, y = data()
    rng = np.random.default_rng(2)
    sample_weight = rng.gamma(0.7, size=len(x)) + 1e-3 if weights == "fractions" else None
    own = np.unique(y)
    few = make(predictive=predictive).partial_fit(
        x, y, classes=[*own, N_DECLARED], sample_weight=sample_weight
    )
    many = make(predictive=predictive).partial_fit(
        x, y, classes=np.arange(N_DECLARED + 1), sample_weight=sample_weight
    )
    at = np.concatenate([x[:40], rng.uniform(-0.5, 1.5, size=(40, 3))])
    left_out = np.arange(60)

    def compare() -> None:
        for one, other in [
            (few.predict_proba(at), many.predict_proba(at)),
            (few.loo_predict_proba(left_out), many.loo_predict_proba(left_out)),
        ]:
            expected = without_base(one, np.arange(len(own)), len(own) + 1)
            found = without_base(other, own, N_DECLARED + 1)
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-13)

    compare()
    # Rows of all classes go, some of them the last of theirs, and others come.
    for model in (few, many):
        model.forget(np.arange(100, 220))
        model.partial_fit(x[100:180] + 0.01, np.roll(y, 7)[100:180])
    compare()


def test_a_stream_passes_from_few_classes_to_many() -> None:
    """Sets are widened, and then made each by itself; the forest is that of one fit."""
    rng = np.random.default_rng(3)
    x, y = rng.uniform(size=(2_400, 3)), rng.permutation(np.repeat(np.arange(1_200), 2))
    batch = make().fit(x, y)
    online = make()
    for rows in np.array_split(np.arange(len(x)), 9):
        online.partial_fit(x[rows], y[rows]).flush()
    at = rng.uniform(size=(20, 3))
    np.testing.assert_array_equal(online.predict_proba(at), batch.predict_proba(at))
    np.testing.assert_array_equal(online.loo_predict_proba([5]), batch.loo_predict_proba([5]))
    for one, other in zip(online.trees_, batch.trees_, strict=True):
        np.testing.assert_array_equal(one.counts, other.counts)
    online.forget(np.arange(600, 2_400))
    few = make().fit(x[:600], y[:600])
    np.testing.assert_array_equal(online.predict_proba(at), few.predict_proba(at))


def test_every_row_may_have_a_class_of_its_own() -> None:
    """Two bits a class take 25 KB at each of 100,000 splits; numbers of customers, 800 KB."""
    n = 100_000
    x = np.random.default_rng(4).uniform(size=(n, 3))
    model = make(n_estimators=4).fit(x, np.arange(n))
    np.testing.assert_array_equal(model.predict(x[:5]), np.arange(5))
    assert model.apply(x[:5]).shape == (5, 4)
    assert model._model.nbytes < 4 * n * 600
