"""Every invariant of an exported tree, one statement each."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .arrays import Array, Tree, is_leaf, leaves, rows_of_nodes
from .ikn import initialize_posterior_counts
from .mondrian_boxes import Pausing


def check_links(tree: Tree) -> None:
    """One root; two children or none; parent and children agree; all nodes are reached."""
    left, right, parent = tree["children_left"], tree["children_right"], tree["parent"]
    n = len(parent)
    for key, value in tree.items():
        assert len(value) == n, f"{key} has {len(value)} entries, there are {n} nodes"
    for key in ("children_left", "children_right", "parent", "feature"):
        assert tree[key].dtype == np.int32, f"{key} is {tree[key].dtype}"
    assert n % 2 == 1, "a binary tree has an odd number of nodes"
    assert (parent < 0).sum() == 1, "one root"
    assert ((left < 0) == (right < 0)).all(), "two children or none"
    assert ((left < 0) == (tree["feature"] < 0)).all(), "a leaf has no feature, a split has one"
    for key in ("children_left", "children_right", "parent"):
        assert ((tree[key] >= -1) & (tree[key] < n)).all(), key
    inner = np.flatnonzero(left >= 0)
    assert (parent[left[inner]] == inner).all()
    assert (parent[right[inner]] == inner).all()
    children = np.concatenate([left[inner], right[inner]])
    assert len(np.unique(children)) == n - 1, "each node but the root is a child once"
    seen, stack = 0, [int(np.flatnonzero(parent < 0)[0])]
    while stack:
        j = stack.pop()
        seen += 1
        if left[j] >= 0:
            stack += [int(left[j]), int(right[j])]
    assert seen == n, "all nodes hang from the root"


def check_times(tree: Tree, lifetime: float) -> None:
    """Split times are positive, increase downwards, stay below the lifetime; a leaf's is it."""
    for j in range(len(tree["parent"])):
        time, parent = tree["time"][j], int(tree["parent"][j])
        if is_leaf(tree, j):
            assert time == lifetime, f"leaf {j} has time {time}"
        else:
            assert 0.0 < time < lifetime, f"node {j} splits at {time}"
        if parent >= 0:
            assert time > tree["time"][parent], f"node {j} does not come after its parent"


def check_boxes(tree: Tree, points: Array) -> None:
    """Boxes are tight about the node's rows, nested, and on their own sides of each cut."""
    points = np.asarray(points, dtype=np.float64)
    n_features = points.shape[1]
    assert tree["lower"].shape == tree["upper"].shape == (len(tree["parent"]), n_features)
    for j, rows in enumerate(rows_of_nodes(tree, points)):
        assert len(rows) == tree["n_rows"][j], f"node {j} has {len(rows)} rows"
        assert rows, f"node {j} is empty"
        np.testing.assert_array_equal(tree["lower"][j], points[rows].min(axis=0))
        np.testing.assert_array_equal(tree["upper"][j], points[rows].max(axis=0))
        parent = int(tree["parent"][j])
        if parent >= 0:
            assert (tree["lower"][j] >= tree["lower"][parent]).all()
            assert (tree["upper"][j] <= tree["upper"][parent]).all()
        if not is_leaf(tree, j):
            d, cut = int(tree["feature"][j]), float(tree["threshold"][j])
            left, right = int(tree["children_left"][j]), int(tree["children_right"][j])
            assert 0 <= d < n_features
            assert tree["upper"][left, d] <= cut < tree["lower"][right, d], f"cut of node {j}"
            assert tree["n_rows"][left] + tree["n_rows"][right] == tree["n_rows"][j]


def check_pausing(
    tree: Tree, points: Array, labels: Any, pausing: Pausing, lifetime: float, rates: Array
) -> None:
    """No paused node is split; without a lifetime no other node is left whole."""
    points = np.asarray(points, dtype=np.float64)
    for j, rows in enumerate(rows_of_nodes(tree, points)):
        spread = points[rows].max(axis=0) - points[rows].min(axis=0)
        still = pausing([labels[i] for i in rows]) or not (spread[rates > 0.0] > 0.0).any()
        if still:
            assert is_leaf(tree, j), f"node {j} should be paused"
        elif lifetime == inf:
            assert not is_leaf(tree, j), f"node {j} should be split"


def check_counts(tree: Tree, points: Array, codes: Array) -> None:
    """c_jk counts rows in leaves and is tab_left + tab_right elsewhere, tab = min(c, 1)."""
    c = tree["counts"]
    assert c.ndim == 2
    tables = np.minimum(c, 1)
    inner = np.flatnonzero(tree["children_left"] >= 0)
    np.testing.assert_array_equal(
        c[inner], tables[tree["children_left"][inner]] + tables[tree["children_right"][inner]]
    )
    bottom = leaves(tree)
    np.testing.assert_array_equal(c[bottom].sum(axis=1), tree["n_rows"][bottom])
    np.testing.assert_array_equal(
        c, initialize_posterior_counts(tree, points, codes, c.shape[1]), "Algorithm 5.3"
    )


def check_moments(tree: Tree) -> None:
    """Posterior means are finite and variances positive."""
    assert np.isfinite(tree["mean"]).all()
    assert np.isfinite(tree["variance"]).all()
    assert (tree["variance"] > 0.0).all()


def check(
    tree: Tree,
    points: Array,
    labels: Any,
    *,
    rates: Array,
    pausing: Pausing,
    lifetime: float = inf,
) -> None:
    """All of it. ``labels`` are class codes where the tree has counts, numbers otherwise."""
    check_links(tree)
    check_times(tree, lifetime)
    check_boxes(tree, points)
    check_pausing(tree, points, labels, pausing, lifetime, rates)
    if "counts" in tree:
        check_counts(tree, points, labels)
    if "mean" in tree:
        check_moments(tree)
