"""Mondrian trees from the data's bounding boxes, as the thesis prints them.

Algorithms 5.1, 5.2, 5.9 and 6.1, 6.2 sample a tree; 5.5, 5.6, 5.10 and 6.3, 6.4 extend one. They
differ only in when a block is paused, as given by ``Pausing``. Each dimension has a rate w_d, so a
box's rate is sum_d w_d (u_d - l_d); all rates 1 is the thesis. Plain recursion, one node at a time.

Algorithm 6.4 as printed opens a split above a leaf that is paused for its size. Here every paused
leaf is handled as in Algorithm 5.10, lines 1-9; ``as_printed=True`` keeps the printed one, to show
that it breaks the law.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

import numpy as np

from .arrays import Array, Tree
from .arrays import path as path_of
from .arrays import root as root_of


@dataclass(frozen=True)
class Pausing:
    """When a block is not split: never (5.2), on equal labels (5.9), for its size (6.2)."""

    equal_labels: bool = False
    min_samples_split: int = 0

    def __call__(self, labels: list[Any]) -> bool:
        if len(labels) < self.min_samples_split:
            return True
        return self.equal_labels and all(label == labels[0] for label in labels)


NEVER = Pausing()


@dataclass(eq=False)
class Node:
    """One block: its box, its rows, its split time, and its cut and children if it has any."""

    lower: Array
    upper: Array
    rows: list[int]
    parent: Node | None = None
    time: float = nan
    feature: int = -1
    threshold: float = nan
    left: Node | None = None
    right: Node | None = None

    @property
    def is_leaf(self) -> bool:
        return self.left is None

    @property
    def parent_time(self) -> float:
        return 0.0 if self.parent is None else self.parent.time


@dataclass(eq=False)
class MondrianTree:
    """A tree with the rows it was grown from, which un-pausing needs again."""

    rates: Array
    lifetime: float = inf
    pausing: Pausing = NEVER
    points: list[Array] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    root: Node | None = None

    def paused(self, node: Node) -> bool:
        return self.pausing([self.labels[i] for i in node.rows])


def exponential(rng: np.random.Generator, rate: float) -> float:
    return inf if rate <= 0.0 else rng.exponential() / rate


def sample_mondrian_tree(
    rng: np.random.Generator,
    points: Array,
    labels: list[Any] | Array | None = None,
    *,
    rates: Array | None = None,
    lifetime: float = inf,
    pausing: Pausing = NEVER,
) -> MondrianTree:
    """Algorithms 5.1 and 6.1."""
    points = np.asarray(points, dtype=np.float64)
    n, d = points.shape
    tree = MondrianTree(
        rates=np.ones(d) if rates is None else np.asarray(rates, dtype=np.float64),
        lifetime=lifetime,
        pausing=pausing,
        points=list(points),
        labels=[None] * n if labels is None else list(labels),
    )
    tree.root = sample_mondrian_block(rng, tree, None, list(range(n)))
    return tree


def sample_mondrian_block(
    rng: np.random.Generator, tree: MondrianTree, parent: Node | None, rows: list[int]
) -> Node:
    """Algorithms 5.2, 5.9 and 6.2."""
    block = np.array([tree.points[i] for i in rows])
    node = Node(block.min(axis=0), block.max(axis=0), list(rows), parent)
    if tree.paused(node):
        node.time = tree.lifetime
        return node
    edges = tree.rates * (node.upper - node.lower)
    node.time = node.parent_time + exponential(rng, edges.sum())
    if node.time >= tree.lifetime:
        node.time = tree.lifetime
        return node
    node.feature = int(rng.choice(len(edges), p=edges / edges.sum()))
    node.threshold = rng.uniform(node.lower[node.feature], node.upper[node.feature])
    goes_left = block[:, node.feature] <= node.threshold
    node.left = sample_mondrian_block(
        rng, tree, node, [i for i, side in zip(rows, goes_left, strict=True) if side]
    )
    node.right = sample_mondrian_block(
        rng, tree, node, [i for i, side in zip(rows, goes_left, strict=True) if not side]
    )
    return node


def extend_mondrian_tree(
    rng: np.random.Generator,
    tree: MondrianTree,
    x: Array,
    label: Any = None,
    *,
    as_printed: bool = False,
) -> None:
    """Algorithms 5.5 and 6.3: the tree of one row more, in place."""
    tree.points.append(np.asarray(x, dtype=np.float64))
    tree.labels.append(label)
    row = len(tree.points) - 1
    if tree.root is None:
        tree.root = sample_mondrian_block(rng, tree, None, [row])
    else:
        _extend_block(rng, tree, tree.root, row, as_printed)


def _replace_child(tree: MondrianTree, old: Node, new: Node) -> None:
    if old.parent is None:
        tree.root = new
    elif old.parent.left is old:
        old.parent.left = new
    else:
        old.parent.right = new


def _extend_block(
    rng: np.random.Generator, tree: MondrianTree, node: Node, row: int, as_printed: bool
) -> None:
    """Algorithms 5.6, 5.10 and 6.4."""
    x = tree.points[row]
    if tree.paused(node) and not as_printed:  # Algorithm 5.10, lines 1-9
        node.rows.append(row)
        node.lower, node.upper = np.minimum(node.lower, x), np.maximum(node.upper, x)
        if not tree.paused(node):
            fresh = sample_mondrian_block(rng, tree, node.parent, node.rows)
            _replace_child(tree, node, fresh)
        return
    below, above = np.maximum(node.lower - x, 0.0), np.maximum(x - node.upper, 0.0)
    outside = tree.rates * (below + above)
    time = node.parent_time + exponential(rng, outside.sum())
    if time < node.time:  # a new parent for this node, and a leaf for the row
        new = Node(
            np.minimum(node.lower, x), np.maximum(node.upper, x), [*node.rows, row], node.parent
        )
        new.time = time
        new.feature = d = int(rng.choice(len(outside), p=outside / outside.sum()))
        if x[d] > node.upper[d]:
            new.threshold = rng.uniform(node.upper[d], x[d])
        else:
            new.threshold = rng.uniform(x[d], node.lower[d])
        _replace_child(tree, node, new)
        node.parent = new
        leaf = sample_mondrian_block(rng, tree, new, [row])
        new.left, new.right = (leaf, node) if x[d] <= new.threshold else (node, leaf)
        return
    node.rows.append(row)
    node.lower, node.upper = np.minimum(node.lower, x), np.maximum(node.upper, x)
    if node.is_leaf:
        return
    child = node.left if x[node.feature] <= node.threshold else node.right
    assert child is not None
    _extend_block(rng, tree, child, row, as_printed)


def to_arrays(tree: MondrianTree) -> Tree:
    """Return the tree in the form in which the library exports its own, in preorder."""
    nodes: list[Node] = []

    def visit(node: Node) -> None:
        nodes.append(node)
        if node.left is not None and node.right is not None:
            visit(node.left)
            visit(node.right)

    assert tree.root is not None
    visit(tree.root)
    index = {id(node): i for i, node in enumerate(nodes)}

    def link(node: Node | None) -> int:
        return -1 if node is None else index[id(node)]

    return {
        "children_left": np.array([link(j.left) for j in nodes], dtype=np.int32),
        "children_right": np.array([link(j.right) for j in nodes], dtype=np.int32),
        "parent": np.array([link(j.parent) for j in nodes], dtype=np.int32),
        "feature": np.array([j.feature for j in nodes], dtype=np.int32),
        "threshold": np.array([j.threshold for j in nodes]),
        "time": np.array([j.time for j in nodes]),
        "lower": np.array([j.lower for j in nodes]),
        "upper": np.array([j.upper for j in nodes]),
        "n_rows": np.array([len(j.rows) for j in nodes], dtype=np.int64),
    }


def branch_rate(tree: Tree, node: int, x: Array, rates: Array) -> float:
    """eta_j(x): the rate at which ``x`` branches off above ``node``."""
    below = np.maximum(tree["lower"][node] - x, 0.0)
    above = np.maximum(x - tree["upper"][node], 0.0)
    return float((rates * (below + above)).sum())


def branch_off(tree: Tree, node: int, time: float, lifetime: float) -> tuple[Tree, int]:
    """``tree`` with a new node at ``time`` above ``node``, and a new, empty leaf beside it.

    Returns the tree and the empty leaf. Where the cut lies plays no part in prediction, so the
    new node has none. The new nodes come last.
    """
    n = len(tree["parent"])
    new, leaf = n, n + 1
    parent = int(tree["parent"][node])
    out: Tree = {
        "children_left": np.append(tree["children_left"], [node, -1]),
        "children_right": np.append(tree["children_right"], [leaf, -1]),
        "parent": np.append(tree["parent"], [parent, new]),
        "time": np.append(tree["time"], [time, lifetime]),
    }
    out["parent"][node] = new
    for side in ("children_left", "children_right"):
        if parent >= 0 and out[side][parent] == node:
            out[side][parent] = new
    return out, leaf


def extend_at_random(
    rng: np.random.Generator, tree: Tree, x: Array, rates: Array, lifetime: float = inf
) -> tuple[Tree, int, float]:
    """Algorithms 5.5 and 5.6 on an exported tree: add a test point, which has no label, at random.

    Returns the extended tree, the leaf in which the point then lies, and the time at which it
    branched off (the lifetime if it did not).
    """
    node = root_of(tree)
    for node in path_of(tree, x):
        parent = int(tree["parent"][node])
        before = 0.0 if parent < 0 else float(tree["time"][parent])
        time = before + exponential(rng, branch_rate(tree, node, x, rates))
        if time < tree["time"][node]:
            extended, leaf = branch_off(tree, node, time, lifetime)
            return extended, leaf, time
    return tree, node, lifetime
