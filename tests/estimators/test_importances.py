"""Importances of features without learned rates: what splits explain of the targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_selection import RFE, SelectFromModel

from boscage import MondrianForestClassifier
from small_forests import X, Y, both, make


def gain(y: Any) -> Any:
    """The sum of squares about the mean."""
    return ((y - y.mean(axis=0)) ** 2).sum()


@both
def test_gains_are_those_of_the_splits(kind: Any) -> None:
    model = make(kind, feature_weights=None, min_samples_split=4).fit(X, Y)
    targets = np.eye(Y.max() + 1)[Y] if kind is MondrianForestClassifier else Y[:, None] * 1.0
    expected = np.zeros(3)
    for tree in model.trees_:
        path = tree.decision_path(X).toarray().astype(bool)
        for node in np.flatnonzero(~tree.is_leaf):
            sides = [path[:, child[node]] for child in (tree.children_left, tree.children_right)]
            within = sum(gain(targets[side]) for side in sides)
            n = path[:, node].sum()
            if n > 2:
                removed = gain(targets[path[:, node]]) - within
                expected[tree.feature[node]] += removed - within / (n - 2)
    found = model._model.split_gains()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    positive = expected.clip(0.0)
    np.testing.assert_allclose(model.feature_importances_, positive / positive.sum())
    batches = make(kind, feature_weights=None, min_samples_split=4).partial_fit(X[50:], Y[50:])
    batches.partial_fit(X[:50], Y[:50])
    np.testing.assert_array_equal(batches._model.split_gains(), found)


@both
def test_gains_of_features_without_effect_are_0_on_average(kind: Any) -> None:
    """Over data sets: a test of the mean with its standard error."""
    rng = np.random.default_rng(0)
    gains = []
    for i in range(60):
        rows = rng.uniform(size=(60, 3))
        target = (rows[:, 0] + 0.3 * rng.normal(size=60) > 0.5).astype(int)
        model = make(kind, n_estimators=2, feature_weights=None, random_state=i).fit(rows, target)
        gains.append(model._model.split_gains())
    mean, error = np.mean(gains, axis=0), np.std(gains, axis=0) / np.sqrt(60.0)
    assert (np.abs(mean[1:]) < 3.0 * error[1:]).all()
    assert mean[0] > 6.0 * error[0]


@both
def test_selectors_of_scikit_learn_find_what_matters(kind: Any) -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(size=(150, 5))
    target = (rows[:, 4] > 0.5).astype(int)
    model = make(kind, n_estimators=10, feature_weights=None)
    for selector in (SelectFromModel(model), RFE(model, n_features_to_select=1)):
        np.testing.assert_array_equal(selector.fit(rows, target).get_support(), np.eye(5)[4] > 0)
