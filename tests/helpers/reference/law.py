"""Statistics of Mondrian trees with exactly known distributions, and tests of them.

Given a node that is not paused, with box edges e_d = w_d (u_d - l_d):

* the wait until its split is exponential with rate sum e_d, truncated at the lifetime;
* its dimension is d with probability e_d / sum e_d;
* its location is uniform on [l_d, u_d];

all independent of each other and of everything above and beside the node. Each is turned into a
number that is uniform on [0, 1] under the law (randomised where the law is discrete or cut off), so
the nodes of all trees, whatever their boxes, are one sample from one uniform distribution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import expm1, inf
from typing import Any

import numpy as np
from scipy import stats

from .arrays import Array, Tree, depths, is_leaf, leaves, parent_time, rows_of_nodes
from .mondrian_boxes import Pausing


@dataclass(frozen=True)
class Uniforms:
    """One entry a node that was not paused; ``location`` is nan where the lifetime ended."""

    tree: Array
    node: Array
    parent: Array
    is_left: Array
    wait: Array
    dimension: Array
    location: Array

    @property
    def split(self) -> Array:
        return ~np.isnan(self.location)


def uniforms(
    rng: np.random.Generator,
    trees: Sequence[Tree],
    points: Array,
    labels: Sequence[Any] | Array,
    *,
    rates: Array,
    lifetime: float = inf,
    pausing: Pausing,
) -> Uniforms:
    """Compute the uniform numbers of all nodes of all trees that were not paused.

    Boxes are recomputed from the rows, not taken from the trees. A leaf that should not have been
    paused and still has not split before an infinite lifetime is an error in the tree.
    """
    points = np.asarray(points, dtype=np.float64)
    found: list[tuple[float, ...]] = []
    for m, tree in enumerate(trees):
        for j, rows in enumerate(rows_of_nodes(tree, points)):
            block = points[rows]
            edges = rates * (block.max(axis=0) - block.min(axis=0))
            total = float(edges.sum())
            paused = pausing([labels[i] for i in rows])
            if paused or total == 0.0:
                if not is_leaf(tree, j):
                    raise AssertionError(f"tree {m} splits node {j}, which should be paused")
                continue
            before = parent_time(tree, j)
            parent = int(tree["parent"][j])
            left = float(parent >= 0 and tree["children_left"][parent] == j)
            if is_leaf(tree, j):
                if lifetime == inf:
                    raise AssertionError(f"tree {m} has not split node {j}")
                survived = -expm1(-total * (lifetime - before))
                wait, dimension, location = rng.uniform(survived, 1.0), np.nan, np.nan
            else:
                wait = -expm1(-total * (float(tree["time"][j]) - before))
                d = int(tree["feature"][j])
                below = float(edges[:d].sum()) / total
                dimension = below + rng.uniform() * float(edges[d]) / total
                low, high = block[:, d].min(), block[:, d].max()
                location = (float(tree["threshold"][j]) - low) / (high - low)
            found.append((m, j, parent, left, wait, dimension, location))
    table = np.array(found, dtype=np.float64).reshape(-1, 7)
    whole = table[:, :4].astype(int)
    return Uniforms(
        whole[:, 0], whole[:, 1], whole[:, 2], whole[:, 3], table[:, 4], table[:, 5], table[:, 6]
    )


def uniform_p(sample: Array) -> float:
    """Test that the sample is uniform on [0, 1]: the least of three p-values, times three.

    KS sees a shift anywhere, a chi-square sees a gap, the mean is the sharpest for a wrong rate.
    """
    sample = np.asarray(sample)
    bins = max(4, min(50, len(sample) // 20))
    counts = np.bincount(np.minimum((sample * bins).astype(int), bins - 1), minlength=bins)
    z = (sample.mean() - 0.5) * np.sqrt(12 * len(sample))
    p = (stats.kstest(sample, "uniform").pvalue, stats.chisquare(counts).pvalue)
    return float(min(1.0, 3 * min(*p, 2 * stats.norm.sf(abs(z)))))


def independent_p(a: Array, b: Array, bins: int = 6) -> float:
    """Test that ``a`` and ``b`` are independent: the lesser p-value of two tests, doubled.

    The margins need not be uniform: a parent's location is not, among parents whose child splits.
    """
    a, b = np.asarray(a), np.asarray(b)
    z = np.sqrt(len(a)) * np.corrcoef(a, b)[0, 1]
    grid = np.histogram2d(a, b, bins=bins, range=[[0, 1], [0, 1]])[0]
    grid = grid[grid.sum(axis=1) > 0][:, grid.sum(axis=0) > 0]
    p_grid = stats.chi2_contingency(grid, correction=False).pvalue
    return float(min(1.0, 2 * min(2 * stats.norm.sf(abs(z)), p_grid)))


def law_p_values(u: Uniforms) -> dict[str, float]:
    """Test each property of the law of one node and of neighbouring nodes: p-values."""
    split = u.split
    p = {
        "wait": uniform_p(u.wait),
        "dimension": uniform_p(u.dimension[split]),
        "location": uniform_p(u.location[split]),
        "wait, dimension": independent_p(u.wait[split], u.dimension[split]),
        "wait, location": independent_p(u.wait[split], u.location[split]),
        "dimension, location": independent_p(u.dimension[split], u.location[split]),
    }
    at = {(m, j): i for i, (m, j) in enumerate(zip(u.tree, u.node, strict=True))}
    pairs = [(at[m, q], i) for i, (m, q) in enumerate(zip(u.tree, u.parent, strict=True)) if q >= 0]
    if len(pairs) > 300:
        up, down = np.array(pairs).T
        p["wait, parent's wait"] = independent_p(u.wait[down], u.wait[up])
        both = split[down]
        p["location, parent's location"] = independent_p(
            u.location[down][both], u.location[up][both]
        )
        p["wait, parent's location"] = independent_p(u.wait[down], u.location[up])
    children: dict[tuple[int, int], list[int]] = {}
    for i, (m, q) in enumerate(zip(u.tree, u.parent, strict=True)):
        if q >= 0:
            children.setdefault((m, q), []).append(i)
    twins = [sorted(pair, key=lambda i: -u.is_left[i]) for pair in children.values()]
    twins = [pair for pair in twins if len(pair) == 2]
    if len(twins) > 300:
        a, b = np.array(twins).T
        p["sibling waits"] = independent_p(u.wait[a], u.wait[b])
    roots = np.flatnonzero(u.parent < 0)
    for lag in (1, 2, 8):
        if len(roots) > 300:
            p[f"root waits, trees {lag} apart"] = independent_p(
                u.wait[roots[lag:]], u.wait[roots[:-lag]]
            )
    return p


def two_sample_p(a: Sequence[Hashable] | Array, b: Sequence[Hashable] | Array) -> float:
    """Do two samples of categories have one distribution? Rare categories are pooled."""
    ca, cb = Counter(a), Counter(b)
    common = [k for k in set(ca) | set(cb) if ca[k] + cb[k] >= 20]
    rows = [[ca[k] for k in common], [cb[k] for k in common]]
    rest = [len(a) - sum(rows[0]), len(b) - sum(rows[1])]
    if sum(rest):
        rows = [[*rows[0], rest[0]], [*rows[1], rest[1]]]
    table = np.array(rows)
    if table.shape[1] < 2:
        return 1.0
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def ks_p(a: Sequence[float] | Array, b: Sequence[float] | Array) -> float:
    return float(stats.ks_2samp(a, b).pvalue)


def mean_p(a: Sequence[float] | Array, b: Sequence[float] | Array) -> float:
    """Welch's test: sharper than KS for a shift of a mean."""
    if np.ptp(a) == 0.0 and np.ptp(b) == 0.0:
        return 1.0 if a[0] == b[0] else 0.0
    return float(stats.ttest_ind(a, b, equal_var=False).pvalue)


def summary(tree: Tree, points: Array) -> dict[str, Any]:
    """Describe one tree from many sides, for the two-sample tests to compare."""
    r = int(np.flatnonzero(tree["parent"] < 0)[0])
    inner = [j for j in range(len(tree["parent"])) if not is_leaf(tree, j)]
    depth = depths(tree)
    bottom = leaves(tree)
    n_rows = tree["n_rows"][bottom]
    rows = rows_of_nodes(tree, points)
    last = max((float(tree["time"][j]) for j in inner), default=0.0)
    return {
        "shape": tuple(sorted({tuple(block) for block in rows})),
        "root feature": int(tree["feature"][r]),
        "root side": tuple(rows[int(tree["children_left"][r])]) if inner else (),
        "root time": float(tree["time"][r]),
        "root threshold": float(tree["threshold"][r]) if inner else 0.0,
        "last time": last,
        "nodes": len(tree["parent"]),
        "mean depth": float((depth[bottom] * n_rows).sum() / n_rows.sum()),
        "features": tuple(np.bincount(tree["feature"][inner], minlength=points.shape[1]).tolist()),
    }


def compare(ours: Sequence[Tree], reference: Sequence[Tree], points: Array) -> dict[str, float]:
    """Two-sample p-values between two lots of trees on the same rows."""
    a = [summary(tree, points) for tree in ours]
    b = [summary(tree, points) for tree in reference]
    p = {}
    for key in a[0]:
        of_a, of_b = [s[key] for s in a], [s[key] for s in b]
        if key in {"shape", "root feature", "root side", "nodes", "features"}:
            p[key] = two_sample_p(of_a, of_b)
        else:
            finite = [v for v in of_a if v != inf], [v for v in of_b if v != inf]
            p[f"{key}: finite"] = two_sample_p([v != inf for v in of_a], [v != inf for v in of_b])
            if min(map(len, finite)) > 20:
                p[key] = ks_p(*finite)
                p[f"{key}: mean"] = mean_p(*finite)
    return p


def assert_all_above(p_values: dict[str, float], level: float = 1e-3) -> None:
    """No p-value below ``level``, shared among all of them (Bonferroni)."""
    threshold = level / len(p_values)
    low = {key: p for key, p in p_values.items() if not p >= threshold}
    assert not low, f"p-values below {threshold:.1e}: {low}"
