"""What tests of joint classifiers share, whichever trees are added up."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import numpy as np

import boscage
from boscage import MondrianForestClassifier
from reference.arrays import Array


def averaging(model: MondrianForestClassifier) -> MondrianForestClassifier:
    """Return the same forest that averages its trees."""
    other = model.copy().set_params(posterior="kneser-ney", calibration=None, joint_kernel="auto")
    other._apply_changes(other._model)
    return other


def with_power_alone(model: MondrianForestClassifier) -> MondrianForestClassifier:
    """Return a fitted forest with the calibration of older files, which draws to no shares.

    Without shares, its probabilities show the joint function.
    """
    model._model.set_posterior(model.posterior, "loo-power", model.joint_kernel, False)
    return model


def fit_in_any_history(
    make: Callable[..., MondrianForestClassifier],
    x: Array,
    labels: Array,
    switched: Sequence[MondrianForestClassifier],
) -> MondrianForestClassifier:
    """Return the forest of one fit, once others have the same bits.

    They saw the rows in another order, beside rows that they forgot, in shards, or come from a
    file. Those of `switched` have changed their settings.
    """
    whole, n = make().fit(x, labels), len(x)
    order = np.random.default_rng(21).permutation(n)
    other = make(n_jobs=2).partial_fit(x[order[:100]], labels[order[:100]])
    other.partial_fit(2.0 * x[:100], np.full(100, "e"), ids=np.arange(5000, 5100))
    other.predict(x[:3])
    other.partial_fit(x[order[100:]], labels[order[100:]])
    other.predict(x[:3])
    other.forget(np.arange(5000, 5100))
    shards = [
        make().partial_fit(x[part], labels[part], ids=part)
        for part in np.split(order, [2 * n // 3])
    ]
    merged = shards[0].merge(shards[1])
    file = io.BytesIO()
    other.save(file)
    file.seek(0)
    for model in (other, merged, merged.copy(), boscage.load(file), *switched):
        assert (model.posterior, model.joint_kernel) == (whole.posterior, whole.joint_kernel)
        assert model.digest() == whole.digest()
        assert model.joint_weight_ == whole.joint_weight_ > 0.0
        np.testing.assert_array_equal(model.predict_proba(x[::9]), whole.predict_proba(x[::9]))
    numbers = np.argsort(merged.ids_)[:40]
    np.testing.assert_array_equal(
        merged.loo_predict_proba(merged.ids_[numbers]), whole.loo_predict_proba(np.arange(40))
    )
    return whole
