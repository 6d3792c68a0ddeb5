"""Leaves, paths and kernels of forests are those of their exported trees."""

from __future__ import annotations

import numpy as np
import pytest

from boscage import BayesianTreeRegressor, MondrianForestRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)
NEW = RNG.uniform(-0.5, 1.5, size=(15, 2))


def test_leaves_and_paths_are_those_of_the_trees() -> None:
    forest = MondrianForestRegressor(4, feature_weights=None, random_state=0).fit(X, Y)
    leaves = forest.apply(NEW)
    indicator, ends = forest.decision_path(NEW)
    assert indicator.shape == (15, ends[-1])
    for i, tree in enumerate(forest.trees_):
        np.testing.assert_array_equal(leaves[:, i], tree.apply(NEW))
        passed = indicator[:, ends[i] : ends[i + 1]].toarray()
        for row, leaf in zip(passed, leaves[:, i], strict=True):
            nodes = np.flatnonzero(row)
            # In preorder, from the root to the leaf, each one's parent before it.
            assert nodes[0] == 0
            assert nodes[-1] == leaf
            np.testing.assert_array_equal(tree.parent[nodes[1:]], nodes[:-1])


def test_the_kernel_is_the_share_of_trees_with_both_rows_in_a_cell() -> None:
    forest = MondrianForestRegressor(30, feature_weights=None, random_state=0).fit(X, Y)
    leaves = [forest.apply(rows) for rows in (NEW, X)]
    same = (leaves[0][:, np.newaxis] == leaves[1]).mean(axis=2)
    np.testing.assert_allclose(forest.kernel(NEW, X), same, atol=1e-15)
    np.testing.assert_allclose(forest.kernel(X), np.eye(60), atol=1e-15)
    assert (forest.kernel(X, lifetime=1e-9) == 1.0).all()
    with pytest.raises(ValueError, match="lifetime"):
        forest.kernel(X, lifetime=-1.0)


@pytest.mark.slow
def test_the_kernel_of_many_trees_is_the_mondrian_kernel() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 1.0]])
    rows = np.concatenate([corners, X[:30]])
    forest = MondrianForestRegressor(n_estimators=1500, feature_weights=None, random_state=0)
    forest.fit(rows, rows[:, 0])
    found = forest.kernel(rows, lifetime=1.0)
    distance = np.abs(rows[:, np.newaxis] - rows).sum(axis=2)
    # Five standard errors of a share of 1,500 trees.
    np.testing.assert_allclose(found, np.exp(-distance), atol=5 * 0.5 / np.sqrt(1500))


def test_the_kernel_of_bayesian_trees_weighs_trees() -> None:
    model = BayesianTreeRegressor(random_state=0).fit(X, Y)
    leaves = [model.apply(rows) for rows in (NEW, X)]
    same = (leaves[0][:, np.newaxis] == leaves[1]) @ model.weights_
    np.testing.assert_allclose(model.kernel(NEW, X), same, atol=1e-12)
    indicator, ends = model.decision_path(NEW)
    assert indicator.shape == (15, ends[-1])
    assert len(ends) == len(model.weights_) + 1
