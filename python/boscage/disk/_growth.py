"""Growing a forest without rows in passes over files.

The first pass learns what a forest must know before its first cut. Some more count rows by cell,
until the rows of each cell fit in a small part of the memory. Then cells are grown, in the order of
the trees, as many at a time as there is room for: one pass collects their rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from boscage import _core, _validation
from boscage._input.labels import conform
from boscage._types import AnyArray, IntArray, Progress
from boscage.disk._memory import Costs, give_back, in_words
from boscage.disk._rows import Block, RowSource
from boscage.mondrian._forest.cell_plans import (
    ROUNDS,
    Counts,
    RowFacts,
    chosen_apart,
    facts_of,
    first_plan,
    learned_apart,
    summed,
)
from boscage.mondrian._forest.growth import GrowthPlan
from boscage.mondrian._regression import (
    check_largest_target,
    hyperparameters_of,
)
from boscage.mondrian.feature_rates._samples import (
    DistinctRows,
    KeyCounts,
    Places,
    Sample,
    learning_order,
)
from boscage.mondrian.feature_rates._shared import rows_to_learn_from

_SPARE = 3
"""Cuts of the first count beyond those of cells of equal size."""
_MOST_CELLS = 1 << 15
"""Cells are cut as often before the next count as leaves about so many, or a few times."""
_PARTS, _ENOUGH = 16, 4
"""A cell that takes more than such a part of the memory is cut, and so much more is allowed."""


class Passes:
    """Passes over rows that must not change, checked block by block."""

    def __init__(self, estimator: Any, source: RowSource, costs: Costs, n_trees: int) -> None:
        self._estimator, self._source = estimator, source
        self._n_block = costs.block_rows(n_trees)
        self._stamp = source.stamp()

    def __iter__(self) -> Iterator[Block]:
        self.check()
        for block in self._source.blocks(self._n_block):
            with _naming(block.name):
                rows = _as_floats(block.X)
                _validation.require_finite(rows, "X", self._source.feature_names)
                target = self._estimator._check_target(block.y, len(rows))
                if target.dtype.kind == "O":
                    # Labels of text, which are compared much faster so.
                    target = target.astype(str)
            yield Block(block.name, rows, target)
        self.check()

    def check(self) -> None:
        """Refuse rows that have changed."""
        if (stamp := self._source.stamp()) != self._stamp:
            raise ValueError(
                f"the rows have changed during the fit: {_difference(self._stamp, stamp)}"
            )


def _as_floats(X: AnyArray) -> AnyArray:
    """Values as float32 or float64, row after row."""
    dtype = np.float32 if X.dtype in (np.float16, np.float32) else np.float64
    rows: AnyArray = np.require(X, dtype, ["C", "A"])
    return rows


def _difference(before: Any, now: Any) -> str:
    changed = [str(new[0]) for old, new in zip(before, now, strict=True) if old != new]
    return f"{changed[0]} is another file now"


def find_facts(blocks: Passes, *, is_classifier: bool) -> RowFacts:
    """What must be known of all rows."""
    found, kind = None, ""
    for block in blocks:
        if is_classifier and kind and block.y.dtype.kind != kind:
            raise TypeError(
                f"{block.name}: y is of type {block.y.dtype}, unlike in the rows before"
            )
        kind = block.y.dtype.kind
        own = facts_of(block.X, block.y, has_labels=is_classifier)
        found = own if found is None else found.merged(own)
    if found is None:
        raise ValueError("X has no rows")
    check_largest_target(found.largest)
    return found


class Growth:
    """A forest that is grown from rows on disk."""

    def __init__(
        self,
        template: Any,
        blocks: Passes,
        facts: RowFacts,
        costs: Costs,
        seed: int,
        n_threads: int,
    ) -> None:
        self._blocks, self._facts, self._n_threads = blocks, facts, n_threads
        self._costs = costs
        self._template = template
        self.learned: GrowthPlan = self._learned(seed)
        give_back()
        plan = first_plan(self.learned)
        levels, singles = zip(*(self._extent(plan, block) for block in blocks), strict=True)
        self._is_single = all(singles) and self.learned.maps is None
        self._costs = replace(costs, width=4 if self._is_single else 8)
        plan = first_plan(self.learned, (max(levels), all(singles)))
        self._plan, self._n_rows_of_cells = self._with_cells(plan)

    def _learned(self, seed: int) -> GrowthPlan:
        """What a forest must know before its first cut."""
        facts, costs, sample = self._facts, self._costs, None
        if self._template._learns_rates():
            n = min(facts.n_rows, rows_to_learn_from(costs.n_features))
            needed = costs.learning(n, len(facts.labels), self._n_threads)
            if needed > costs.of_learning:
                raise MemoryError(
                    f"memory_limit of {in_words(costs.limit)} is too small: to learn "
                    f"feature_weights from {n} rows of {costs.n_features} features takes about "
                    f"{in_words(needed)}; give more, or feature_weights that are not learned"
                )
            sample = self._sample(learning_order(seed), n, costs.of_forest)
            give_back()
        return learned_apart(self._template, facts.low, facts.high, seed, sample, self._n_threads)

    def _sample(self, order: int, n: int, room: float, features: IntArray | None = None) -> Sample:
        """The first rows in an order, by some features or by all.

        Keys are looked at some at a time, so that their counts fit in the room.
        """
        n_rows = self._facts.n_rows
        n_groups = math.ceil(n_rows * self._costs.key / room)
        groups = []
        for group in range(n_groups):
            each = (
                KeyCounts.of(block.X, order, features).in_group(group, n_groups)
                for block in self._blocks
            )
            groups.append(KeyCounts.sum(list(each)).first_places(n))
            give_back()
        places = Places.first(groups, n)
        parts = [
            DistinctRows.of(places, block.X, self._coded(block), None, order, features)
            for block in self._blocks
        ]
        return places.sample(parts, n_rows, is_weighted=False)

    def _extent(self, plan: _core.CellPlan, block: Block) -> tuple[int, bool]:
        """What a plan must know of rows."""
        with _naming(block.name):
            return plan.extent_of(block.X)

    def _with_cells(self, plan: _core.CellPlan) -> tuple[_core.CellPlan, AnyArray]:
        """The plan with cells of few rows, as far as these differ, and their numbers of rows."""
        n_rows = self._facts.n_rows
        most = self._most_rows()
        if n_rows > most:
            needed = math.ceil(math.log2(n_rows / most)) + _SPARE
            plan = plan.refined(np.ones(plan.n_cells, bool), min(needed, _depth(plan.n_cells)))
        for left in reversed(range(ROUNDS)):
            plan, of_cells, may_be_cut = plan.condensed(self._counts(plan), most)
            if left == 0 or not (may_be_cut & (of_cells > _ENOUGH * most)).any():
                break
            plan = plan.refined(may_be_cut, _depth(int(may_be_cut.sum())))
        return plan, of_cells

    def _most_rows(self) -> int:
        """The most rows of a cell that can be cut."""
        cost = self._costs.row + self._costs.pair(1.0)
        return max(256, int(self._costs.of_forest / _PARTS / cost))

    def _counts(self, plan: _core.CellPlan) -> Counts:
        total: Counts | None = None
        for block in self._blocks:
            targets = self._coded(block).astype(np.float64)
            own = plan.count(block.X, targets, n_threads=self._n_threads)
            total = own if total is None else summed([total, own])
        assert total is not None
        give_back()
        return total

    def _coded(self, block: Block) -> AnyArray:
        """The targets; those of a classifier as numbers of sorted labels."""
        labels = self._facts.labels
        if not len(labels):
            return block.y
        codes = np.searchsorted(labels, block.y)
        if (labels[np.minimum(codes, len(labels) - 1)] != block.y).any():
            raise ValueError(f"{block.name}: the rows have changed during the fit: a new label")
        numbers: AnyArray = codes.astype(np.uint32)
        return numbers

    def new_freezer(self) -> Any:
        """What takes groups of cells."""
        settings = self.learned.settings
        if len(self._facts.labels):
            names = conform(self._facts.labels, [], "y")
            return _core.ClassifierFreezer(
                self._plan, names, self._facts.n_rows_of.tolist(), discount=settings["discount"]
            )
        return _core.RegressorFreezer(self._plan)

    def grow(self, report: Progress | None) -> Any:
        """The forest."""
        freezer, done, leaves = self.new_freezer(), 0, 1.0
        sizes = self._n_rows_of_cells.astype(np.int64)
        all_pairs, at = int(sizes.sum()), 0
        hyperparameters = self._given()
        n_of_first_tree = int(np.searchsorted(np.cumsum(sizes), self._facts.n_rows, side="right"))
        while at < len(sizes):
            n_cells = self._n_that_fit(freezer, sizes[at:], leaves)
            if hyperparameters is None:
                # Other trees would take the memory that the rule needs.
                n_cells = min(n_cells, n_of_first_tree - at)
            part = freezer.next_cells(n_cells)
            n_pairs = int(sizes[at : at + n_cells].sum())
            X, y = self._collected(part, min(n_pairs, self._facts.n_rows))
            before = freezer.n_leaves
            freezer.grow(part, X, y, n_threads=self._n_threads)
            del X, y
            give_back()
            # Somewhat more than in any group so far, and at most one for each row.
            own = min(1.0, 1.25 * (freezer.n_leaves - before) / n_pairs)
            leaves = own if at == 0 else max(leaves, own)
            at, done = at + n_cells, done + n_pairs
            if hyperparameters is None and freezer.n_trees:
                hyperparameters = self._chosen(freezer)
            if report is not None:
                report(done, all_pairs)
        if hyperparameters:
            freezer.set_hyperparameters(hyperparameters)
        return freezer.finish(n_threads=self._n_threads)

    def _given(self) -> dict[str, float] | None:
        """The hyperparameters of a regressor if they are given; none of a classifier."""
        settings = self.learned.settings
        given: dict[str, float] = settings.get("given", {})
        return None if "hyperparameters" in settings else given

    def _chosen(self, freezer: Any) -> dict[str, float]:
        """What a rule chooses, now that the first tree has the moments of all targets."""
        settings = self.learned.settings
        n_rows = min(self._facts.n_rows, _core.RULE_ROWS)
        n_trees = self._template._n_trees_to_choose(settings)
        needed = self._costs.rule(n_rows, n_trees, settings["min_samples_split"])
        room = self._costs.of_forest - freezer.nbytes
        if needed > room:
            raise MemoryError(
                f"memory_limit of {in_words(self._costs.limit)} is too small: beside "
                f"{in_words(freezer.nbytes)} of trees, the forest that chooses hyperparameters "
                f"takes about {in_words(needed)}; give more, or take a greater min_samples_split "
                "or other hyperparameters"
            )
        order = self.learned.seed, _core.RULE_ROWS
        sample = self._sample(*order, room, self.learned.cut_features)
        moments = freezer.target_moments()
        chosen = chosen_apart(self._template, self.learned, sample, moments, self._n_threads)
        give_back()
        return hyperparameters_of(chosen)

    def _n_that_fit(self, freezer: Any, sizes: AnyArray, leaves: float) -> int:
        """The number of the next cells for which there is room."""
        costs, n_trees = self._costs, self.learned.settings["n_estimators"]
        if freezer.n_trees:
            forecast = freezer.nbytes_of_trees / freezer.n_trees * n_trees
            if forecast > costs.of_forest:
                self._refuse(f"{n_trees} trees are going to take about {in_words(forecast)}")
        room = costs.of_forest - freezer.nbytes - freezer.n_open_leaves * costs.leaf
        pairs = np.cumsum(sizes)
        needed = np.minimum(pairs, self._facts.n_rows) * costs.row + pairs * costs.pair(leaves)
        n = int(np.searchsorted(needed, room, side="right"))
        if n == 0:
            self._refuse(
                f"beside {in_words(freezer.nbytes)} of trees, a cell of {sizes[0]} rows takes "
                f"about {in_words(needed[0])}"
            )
        return n

    def _refuse(self, why: str) -> None:
        raise MemoryError(
            f"memory_limit of {in_words(self._costs.limit)} is too small: {why}; give more, or "
            "take fewer trees or a greater min_samples_split"
        )

    def _collected(self, part: _core.CellPlan, n_most: int) -> tuple[AnyArray, AnyArray]:
        """The rows of the next cells, and their targets."""
        X = np.empty(
            (n_most, self._costs.n_features), np.float32 if self._is_single else np.float64
        )
        y = np.empty(n_most, np.uint32 if len(self._facts.labels) else np.float64)
        n = 0
        for block in self._blocks:
            own = part.rows_of(block.X, 0, n_threads=self._n_threads)
            if n + len(own) > n_most:
                raise ValueError("the rows have changed during the fit: a cell has more rows")
            X[n : n + len(own)] = block.X[own]
            y[n : n + len(own)] = self._coded(block)[own]
            n += len(own)
        return X[:n], y[:n]


def _depth(n_cells: int) -> int:
    """How often so many cells are cut before the next count."""
    return min(10, max(2, int(math.log2(_MOST_CELLS / n_cells))))


@contextmanager
def _naming(block: str) -> Iterator[None]:
    """Name the block in refusals of its rows."""
    try:
        yield
    except (TypeError, ValueError) as error:
        text = str(error)
        raise (error if text.startswith(block) else type(error)(f"{block}: {text}")) from error
