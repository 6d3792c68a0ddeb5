"""The law of our trees, drawn from a keyed process on cells, compared with the papers' boxes.

Two kinds of test. Where the law of a single node is known given its box, all nodes of all trees are
one sample from it (`reference.law`). And two-sample tests against trees sampled directly by
Algorithms 5.1, 5.2, 5.9, 6.1 and 6.2. Seeds are fixed; a test fails when the least of its p-values
is below 0.001 divided by their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier, MondrianForestRegressor, _core
from forests import rates_of, trees_of
from reference import law
from reference.arrays import Array, Tree, is_leaf, rows_of_nodes
from reference.mondrian_boxes import Pausing, sample_mondrian_tree, to_arrays

N_TREES = 2000


@dataclass(frozen=True)
class Case:
    """Rows, labels, reference range and settings of one law to be tested."""

    points: Array
    labels: Array
    low: float = 0.0
    high: float = 1.0
    weights: tuple[float, ...] | None = None
    lifetime: float = inf
    min_samples_split: int = 2
    regression: bool = False

    @property
    def rates(self) -> Array:
        return rates_of(self.low, self.high, self.points.shape[1], self.weights)

    @property
    def pausing(self) -> Pausing:
        return Pausing(equal_labels=True, min_samples_split=self.min_samples_split)

    def fit(self, random_state: int = 0, n_estimators: int = N_TREES, rows: Any = ...) -> Any:
        kind = MondrianForestRegressor if self.regression else MondrianForestClassifier
        model = kind(
            n_estimators,
            lifetime=self.lifetime,
            min_samples_split=self.min_samples_split,
            feature_range=(self.low, self.high),
            feature_weights=None if self.weights is None else np.array(self.weights),
            random_state=random_state,
            **({"hyperparameters": "heuristic"} if self.regression else {}),
        )
        return model.fit(self.points[rows], self.labels[rows])

    def sample(self, rng: np.random.Generator) -> Tree:
        return to_arrays(
            sample_mondrian_tree(
                rng,
                self.points,
                self.labels,
                rates=self.rates,
                lifetime=self.lifetime,
                pausing=self.pausing,
            )
        )


def _points(seed: int, n: int, d: int) -> Array:
    return np.random.default_rng(seed).uniform(size=(n, d))


def _nasty() -> Array:
    """Duplicates, ties, a constant feature and one that is switched off."""
    x = np.round(_points(3, 8, 4), 1)
    x[:, 1] = 0.4
    x[5] = x[2]
    x[6, 0] = x[1, 0]
    return x


def _one_far() -> Array:
    x = _points(4, 7, 2)
    x[3] = [40.0, 0.5]
    x[5] = [-3.0, -900.0]
    return x


DISTINCT = np.arange(20)
BINARY = np.array([0, 1, 1, 0, 0, 0, 1, 0, 1, 1])
NUMBERS = np.random.default_rng(9).normal(size=20)

CASES = {
    "line": Case(_points(1, 7, 1), DISTINCT[:7]),
    "plane": Case(_points(2, 7, 2), DISTINCT[:7], weights=(1.0, 2.5)),
    "nasty": Case(_nasty(), DISTINCT[:8], weights=(1.0, 1.0, 3.0, 0.0)),
    "equal labels": Case(_points(5, 10, 3), BINARY),
    "small nodes": Case(_points(6, 12, 2), NUMBERS[:12], min_samples_split=4, regression=True),
    "lifetime": Case(_points(7, 8, 2), DISTINCT[:8], lifetime=1.5),
    "lifetime, labels, size": Case(
        _points(8, 10, 3), BINARY, weights=(0.5, 1.0, 2.0), lifetime=2.0, min_samples_split=3
    ),
    # rows outside the reference range: the same law, with shells of doubled boxes
    "range is a speck": Case(_points(2, 7, 2), DISTINCT[:7], 0.47, 0.53, weights=(1.0, 2.5)),
    "range is elsewhere": Case(_points(5, 8, 3), BINARY[:8], -3.0, -2.5),
    "range is a grain": Case(_points(1, 6, 1), DISTINCT[:6], 0.3, 0.3 + 1e-6),
    "rows far away": Case(_one_far(), DISTINCT[:7]),
    "far, paused": Case(_one_far(), NUMBERS[:7], min_samples_split=3, regression=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_each_nodes_wait_dimension_and_location(name: str) -> None:
    case = CASES[name]
    u = law.uniforms(
        np.random.default_rng(0),
        trees_of(case.fit()),
        case.points,
        case.labels,
        rates=case.rates,
        lifetime=case.lifetime,
        pausing=case.pausing,
    )
    p = law.law_p_values(u)
    if case.points.shape[1] == 1:  # one dimension leaves nothing to choose; the number is noise
        p = {key: value for key, value in p.items() if "dimension" not in key}
    law.assert_all_above(p)


LONG = ("range is a speck", "range is a grain", "rows far away", "far, paused")
# Both kinds of pausing, and an end, are in "lifetime, labels, size", too.
LONG += ("equal labels", "small nodes", "lifetime")
# Rows in a plane are in "lifetime, labels, size", too; ties are in the tests of histories.
LONG += ("line", "plane", "nasty")
# Rows outside the reference range are in `test_depth_and_size_of_larger_trees`, too.
LONG += ("range is elsewhere",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in CASES]
)
def test_whole_trees_against_direct_simulation_by_boxes(name: str) -> None:
    """Shape, root split, times, number of nodes, mean depth and features used: two samples."""
    case = CASES[name]
    rng = np.random.default_rng(1)
    theirs = [case.sample(rng) for _ in range(1000)]
    ours = trees_of(case.fit(random_state=1, n_estimators=1500))
    law.assert_all_above(law.compare(ours, theirs, case.points))


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.45, 0.5)])
def test_depth_and_size_of_larger_trees(low: float, high: float) -> None:
    """Mean depth, number of nodes and features used over 60 rows in 3 dimensions."""
    rng = np.random.default_rng(2)
    points = rng.normal(0.5, 0.2, size=(60, 3))
    labels = (points[:, 0] + 0.1 * rng.normal(size=60) > 0.5).astype(int)
    case = Case(points, labels, low, high, weights=(1.0, 1.0, 0.3))
    theirs = [law.summary(case.sample(rng), points) for _ in range(250)]
    ours = [law.summary(tree, points) for tree in trees_of(case.fit(3, 400))]
    p = {}
    for key in ("mean depth", "nodes", "root time", "last time"):
        a, b = [s[key] for s in ours], [s[key] for s in theirs]
        p[key] = law.ks_p(a, b)
        p[f"{key}, mean"] = law.mean_p(a, b)
    for d in range(3):
        a, b = ([s["features"][d] for s in lot] for lot in (ours, theirs))
        p[f"cuts of feature {d}"] = law.mean_p(a, b)
    law.assert_all_above(p)


@pytest.mark.slow
def test_seeds_and_trees_are_independent_of_each_other() -> None:
    """The first splits of neighbouring seeds and of neighbouring trees are independent."""
    points, n_seeds, n_trees = _points(10, 5, 2), 600, 3
    labels = np.arange(5, dtype=np.uint32)
    pausing = Pausing(equal_labels=True, min_samples_split=2)
    rng = np.random.default_rng(0)
    wait = np.empty((n_seeds, n_trees, 2))
    location = np.empty((n_seeds, n_trees))
    for seed in range(n_seeds):
        model = _core.MondrianClassifier(n_estimators=n_trees, seed=seed)
        model.fit(points, labels, list(range(5)), declared=None, low=np.zeros(2), high=np.ones(2))
        u = law.uniforms(rng, trees_of(model), points, labels, rates=np.ones(2), pausing=pausing)
        for m in range(n_trees):
            own = u.tree == m
            (root,) = np.flatnonzero(own & (u.parent < 0))
            below = np.flatnonzero(own & (u.parent == u.node[root]))
            wait[seed, m] = u.wait[root], u.wait[below[0]]
            location[seed, m] = u.location[root]
    p = {
        "first waits": law.uniform_p(wait[:, :, 0].ravel()),
        "second waits": law.uniform_p(wait[:, :, 1].ravel()),
        "locations": law.uniform_p(location.ravel()),
        "trees": law.independent_p(wait[:, 0, 0], wait[:, 1, 0]),
        "trees but one": law.independent_p(wait[:, 0, 0], wait[:, 2, 0]),
        "seeds": law.independent_p(wait[1:, 0, 0], wait[:-1, 0, 0]),
        "seeds but one": law.independent_p(wait[2:, 0, 0], wait[:-2, 0, 0]),
        "seed and tree": law.independent_p(wait[1:, 0, 0], wait[:-1, 1, 0]),
        "location, next tree": law.independent_p(location[:, 1], location[:, 0]),
        "location, next seed": law.independent_p(location[1:, 1], location[:-1, 1]),
        "wait, next tree's second": law.independent_p(wait[:, 0, 0], wait[:, 1, 1]),
    }
    law.assert_all_above(p)


@pytest.mark.parametrize("name", ["plane", "nasty", "range is a speck", "rows far away"])
def test_a_tree_of_fewer_rows_is_the_restriction_of_the_tree_of_all(name: str) -> None:
    """Each split of the smaller tree is a split of the larger: same time, feature and threshold."""
    case = CASES[name]
    whole = case.fit(5, 40)
    n = len(case.points)
    for keep in ([0, 1, 2], [4, 2, 6, 0], list(range(1, n))):
        part = case.fit(5, 40, keep)
        for large, small in zip(trees_of(whole), trees_of(part), strict=True):
            blocks = {
                frozenset(rows) & frozenset(keep): j
                for j, rows in enumerate(rows_of_nodes(large, case.points))
                if not is_leaf(large, j)  # preorder: the deepest node with these rows stays
            }
            for j, rows in enumerate(rows_of_nodes(small, case.points[keep])):
                if is_leaf(small, j):
                    continue
                same = blocks[frozenset(keep[i] for i in rows)]
                for key in ("time", "feature", "threshold"):
                    assert small[key][j] == large[key][same], (key, rows)


@pytest.mark.parametrize("name", ["plane", "nasty", "range is a speck", "rows far away"])
def test_the_rows_of_a_cell_alone_grow_the_subtree_of_the_cell(name: str) -> None:
    """Whoever holds the rows below a node needs no others to draw what lies there."""
    case = CASES[name]
    whole = case.fit(7, 5)
    n_checked = 0
    for number, tree in enumerate(trees_of(whole)):
        below = rows_of_nodes(tree, case.points)
        for node, rows in enumerate(below):
            if is_leaf(tree, node):
                continue
            # Nodes are in preorder, so that a subtree is a range of them.
            n_nodes = sum(set(other) <= set(rows) for other in below[node:])
            alone = trees_of(case.fit(7, 5, sorted(rows)))[number]
            own = slice(node, node + n_nodes)
            for key in ("time", "feature", "threshold", "n_rows"):
                np.testing.assert_array_equal(alone[key], tree[key][own], err_msg=key)
            n_checked += 1
    assert n_checked > 5


def test_a_reference_range_moves_and_scales_the_process() -> None:
    """Data and range scaled by 2^k: the same cuts, scaled; the times do not change."""
    case = CASES["plane"]
    scaled = Case(case.points * 8.0, case.labels, 0.0, 8.0, weights=case.weights)
    for a, b in zip(trees_of(case.fit(0, 50)), trees_of(scaled.fit(0, 50)), strict=True):
        np.testing.assert_array_equal(a["feature"], b["feature"])
        np.testing.assert_allclose(a["time"], b["time"], rtol=1e-12)
        np.testing.assert_allclose(8.0 * a["threshold"], b["threshold"], rtol=1e-12)
