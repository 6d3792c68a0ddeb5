"""An exported tree is a dict of arrays, one entry a node; these walk it in the plainest way.

Keys: ``children_left``, ``children_right``, ``parent``, ``feature`` (-1 where there is none),
``threshold``, ``time`` (a leaf's is the lifetime), ``lower``, ``upper``, ``n_rows``, and what the
posterior adds (``counts``, or ``mean`` and ``variance``). A row goes left when
``x[feature] <= threshold``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Tree = dict[str, Array]

STRUCTURE = ("children_left", "children_right", "parent", "feature", "threshold", "time")
BOXES = ("lower", "upper")
POSTERIOR = ("counts", "mean", "variance")


def as_dict(tree: Any) -> Tree:
    """Return the arrays of a tree that is a dict, or an object with an attribute an array."""
    keys = (*STRUCTURE, *BOXES, "n_rows", *POSTERIOR)
    if isinstance(tree, dict):
        return {key: np.asarray(tree[key]) for key in keys if key in tree}
    found = {key: getattr(tree, key, None) for key in keys}
    return {key: np.asarray(value) for key, value in found.items() if value is not None}


def root(tree: Tree) -> int:
    """Return the one node without a parent."""
    (node,) = np.flatnonzero(tree["parent"] < 0)
    return int(node)


def is_leaf(tree: Tree, node: int) -> bool:
    return bool(tree["children_left"][node] < 0)


def leaves(tree: Tree) -> list[int]:
    return [int(j) for j in np.flatnonzero(tree["children_left"] < 0)]


def parent_time(tree: Tree, node: int) -> float:
    """Return tau of the parent; the root's parent has time 0."""
    parent = int(tree["parent"][node])
    return 0.0 if parent < 0 else float(tree["time"][parent])


def step(tree: Tree, node: int, x: Array) -> int:
    """Return the child of ``node`` on whose side of the cut ``x`` lies."""
    left = x[tree["feature"][node]] <= tree["threshold"][node]
    return int(tree["children_left" if left else "children_right"][node])


def path(tree: Tree, x: Array) -> list[int]:
    """Return the nodes from the root to leaf(x)."""
    node = root(tree)
    nodes = [node]
    while not is_leaf(tree, node):
        node = step(tree, node, x)
        nodes.append(node)
    return nodes


def ancestors(tree: Tree, node: int) -> list[int]:
    """``node`` and all above it, from the root down."""
    nodes = [node]
    while tree["parent"][nodes[-1]] >= 0:
        nodes.append(int(tree["parent"][nodes[-1]]))
    return nodes[::-1]


def rows_of_nodes(tree: Tree, x: Array) -> list[list[int]]:
    """Return for every node the rows of ``x`` that pass it, found by walking each row down."""
    rows: list[list[int]] = [[] for _ in tree["parent"]]
    for i, row in enumerate(np.asarray(x, dtype=np.float64)):
        for node in path(tree, row):
            rows[node].append(i)
    return rows


def depths(tree: Tree) -> Array:
    return np.array([len(ancestors(tree, j)) - 1 for j in range(len(tree["parent"]))])


def shape(tree: Tree, x: Array) -> tuple[tuple[int, ...], ...]:
    """Return the set of the nodes' row sets: the tree without its times and cuts."""
    return tuple(sorted({tuple(rows) for rows in rows_of_nodes(tree, x)}))


def bits(tree: Tree) -> tuple[tuple[str, bytes], ...]:
    """Return all of a tree's arrays as bytes, for equality bit for bit."""
    return tuple((key, np.ascontiguousarray(value).tobytes()) for key, value in tree.items())


def parts_from_a_leaf(tree: Tree, own: int) -> bool:
    """Say whether a row's leaf has a leaf for a sibling: no cut without it parts them."""
    parent = tree["parent"][own]
    left, right = tree["children_left"][parent], tree["children_right"][parent]
    return bool(tree["feature"][right if own == left else left] < 0)
