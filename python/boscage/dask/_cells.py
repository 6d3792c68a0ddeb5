"""Forests whose cells are shared out: what the client does.

Rows go to the owners of their cells, by a plan that the client makes from counts. No process holds
all rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask
import distributed
import numpy as np

from boscage import _core, _validation
from boscage._types import AnyArray
from boscage.dask import _cell_tasks as tasks
from boscage.dask._cell_tasks import CellShare, Facts, Growth, Labels
from boscage.dask._cluster import wait_for
from boscage.dask._shares import VERSION, new_forest
from boscage.mondrian._forest.base import Given
from boscage.mondrian._forest.cell_plans import first_plan, learned_of_range, summed
from boscage.mondrian._forest.growth import GrowthPlan, NewRows

_PER_OWNER = 4
"""Cells of a tree have at most so many to one of the rows that an owner has of the tree."""
_FIRST_CUTS, _MORE_CUTS = 6, 4
"""How often cells are cut before rows are counted for the first time, and each time after that."""
_ROUNDS = 12
"""Rows are counted at most so often: those of a cell that hardly differ are never parted."""


@dataclass(frozen=True)
class CellForest:
    """A forest whose cells are shared out. Never changed."""

    client: distributed.Client
    workers: tuple[str, ...]
    """The address of the worker that is asked to hold each share."""
    shares: tuple[Any, ...]
    """What each owner holds, as futures."""
    plan: _core.CellPlan
    sent: Any
    """The plan as a future."""
    growth: Growth
    learned: GrowthPlan
    facts: dict[str, Any]
    """What the client knows of the forest."""

    def submit(self, number: int, task: Any, *args: Any) -> Any:
        """A task on the worker of a share, or on another one if that one is gone."""
        where = {"workers": [self.workers[number]], "allow_other_workers": True, "pure": False}
        return self.client.submit(task, *args, **where)

    def ask(self, task: Any) -> list[Any]:
        """What each share answers to a task."""
        asked = [self.submit(number, task, share) for number, share in enumerate(self.shares)]
        found: list[Any] = self.client.gather(asked)
        return found

    def digest(self) -> str:
        """The digest of the one-machine forest."""
        hashes = [
            self.submit(number, tasks.hashes, share) for number, share in enumerate(self.shares)
        ]
        return str(self.submit(0, tasks.digest, self.shares[0], self.sent, hashes).result())

    def prediction(self, part: Any, number: int, n_outputs: int) -> Any:
        """The predictions of a partition, as a delayed array."""
        n_owners = len(self.shares)
        route = dask.delayed(tasks.route_queries, pure=False)
        reader = self._named(new_forest(self.growth.template))
        routed = route(reader, self.sent, part, number, n_owners)
        tell, finish = (dask.delayed(task, pure=False) for task in (tasks.lists, tasks.finished))
        lists = [tell(share, routed, owner) for owner, share in enumerate(self.shares)]
        return finish(self.shares[number % n_owners], routed, lists, n_outputs)

    def _named(self, forest: Any) -> Any:
        """A forest that knows the number of features, and their names if they have any."""
        forest.n_features_in_ = self.facts["n_features_in"]
        if self.facts["feature_names_in"] is not None:
            forest.feature_names_in_ = self.facts["feature_names_in"]
        return forest

    def one_machine(self, forest: Any) -> Any:
        """The one-machine forest: an unfitted one, with the rows of all owners."""
        rows = tasks.joined_pieces(self.ask(tasks.first), self.growth.is_weighted)
        rows = rows.of(np.argsort(rows.positions).astype(np.uint32))
        extra = {} if self.growth.names is None else {"declared": None}
        new = NewRows(rows.rows, {}, self.growth.encoded(rows), extra, None, rows.weights)
        model = self._named(forest)._draw(self.learned, new, n_threads=forest._n_threads())
        forest._adopt(model, self.learned)
        forest._warming = None
        return forest


_LEFT_OUT = "it is fitted to rows that are left out of all trees"
_ONLY: dict[str, tuple[Any, str]] = {
    "substitutes": (None, "values must not be missing"),
    "categories": (None, "features must be numbers"),
    "window_size": (None, "rows do not leave the forest"),
}
_ONLY_OF: dict[type[CellShare], dict[str, tuple[Any, str]]] = {
    tasks.ClassifierCellShare: {
        "calibration": (None, _LEFT_OUT),
        "posterior": ("kneser-ney", "it needs all trees in one place"),
        "class_weight": (None, "multiply the probabilities by weights instead"),
    },
    tasks.RegressorCellShare: {
        "posterior": ("exact", "messages go through trees that are apart for this one alone"),
        "noise": ("global", "local noise is estimated from all trees"),
    },
}
"""The only values of parameters where cells are apart, and why."""
_GIVEN = {
    "feature_weights": "None or weights, since rates are learned from rows in one place",
    "discount": "a number, since it is chosen by rows that are left out of all trees",
    "hyperparameters": "a dictionary, since rules look at whole trees",
}
"""Parameters that must not be the name of a rule, and what they must be."""


def refuse(template: Any, share: type[CellShare], given: Given) -> None:
    """Refuse by name what is not offered where cells are apart."""
    offers = "partition='cells' does not offer"
    for name, expected in _GIVEN.items():
        found = getattr(template, name, None)
        if isinstance(found, str):
            raise ValueError(
                f"{offers} {name}={found!r}: give {expected}; or choose partition='trees'"
            )
    for name, (only, why) in (_ONLY_OF[share] | _ONLY).items():
        found = getattr(template, name)
        if found is not only and found != only:
            raise ValueError(
                f"{offers} {name}={found!r}: {why}; set {name}={only!r}, or choose "
                "partition='trees'"
            )
    if given.ids is not None:
        raise ValueError(
            f"{offers} ids, since rows cannot be forgotten; leave them out, or choose "
            "partition='trees'"
        )


def grow_forest(
    template: Any,
    share: type[CellShare],
    seed: int,
    client: distributed.Client,
    workers: list[str],
    parts: list[Any],
) -> CellForest:
    """Grow a forest from checked partitions, which are futures; clears the list of them."""
    pieces, of_parts = _pieces(template, client, parts)
    if not of_parts:
        raise ValueError("X has no rows: all partitions are empty")
    labels, n_rows_of = _labels(of_parts) if share is tasks.ClassifierCellShare else (None, _NONE)
    settings = template._settings()
    learned = _learned(template, list(of_parts.values()), settings, seed)
    plan = first_plan(learned, _extent(first_plan(learned), client, pieces))
    n_before = np.cumsum([0, *(of.n_rows for of in of_parts.values())]).tolist()
    plan = _with_cells(plan, client, list(pieces.values()), labels, n_before[-1], len(workers))
    n_owners = int(plan.owners.max()) + 1
    sent = client.submit(tasks.given, plan, pure=False)
    routed = [
        client.submit(tasks.route, sent, own, labels, before, n_owners, pure=False)
        for own, before in zip(pieces.values(), n_before[:-1], strict=True)
    ]
    pieces.clear()
    is_weighted = any(of.is_weighted for of in of_parts.values())
    names = None if labels is None else _validation.conform(labels, [], "y")
    growth = Growth(share, template, settings, names, n_rows_of.tolist(), is_weighted, VERSION)
    known = _known(next(iter(of_parts.values())), names, n_before[-1], learned)
    owners = tuple(workers[:n_owners])
    forest = CellForest(client, owners, (), plan, sent, growth, learned, known)
    return _joined(forest, routed)


def _pieces(
    template: Any, client: distributed.Client, parts: list[Any]
) -> tuple[dict[int, Any], dict[int, Facts]]:
    """The rows of partitions that have any, as futures, and facts about them, by partition."""
    found = [
        client.submit(tasks.checked, template, part, number, pure=False)
        for number, part in enumerate(parts)
    ]
    parts.clear()
    told = [client.submit(tasks.pick, each, 1, pure=False) for each in found]
    wait_for(told)
    facts = {number: of for number, of in enumerate(client.gather(told)) if of is not None}
    pieces = {number: client.submit(tasks.pick, found[number], 0, pure=False) for number in facts}
    wait_for(list(pieces.values()))
    return pieces, facts


def _extent(
    plan: _core.CellPlan, client: distributed.Client, pieces: dict[int, Any]
) -> tuple[int, bool]:
    """What a plan must know of all rows."""
    asked = [
        client.submit(tasks.extent, plan, own, number, pure=False) for number, own in pieces.items()
    ]
    wait_for(asked)
    levels, singles = zip(*client.gather(asked), strict=True)
    return max(levels), all(singles)


def _known(of: Facts, names: list[Any] | None, n_rows: int, learned: GrowthPlan) -> dict[str, Any]:
    """What the client knows of a forest, given facts about one of its partitions."""
    n_features = len(learned.low)
    return {
        "n_rows": n_rows,
        "n_features_in": n_features,
        "feature_names_in": of.names,
        "classes": np.array(names),
        "discount_": learned.settings.get("discount"),
        "hyperparameters": tasks.hyperparameters(learned.settings),
        "feature_weights_": np.ones(n_features) if learned.weights is None else learned.weights,
        "categories_": None,
    }


_NONE: AnyArray = np.empty(0, np.uint64)


def _joined(forest: CellForest, routed: list[Any]) -> CellForest:
    """The forest with the shares of all owners; clears the list of what is sent to them.

    Each step keeps what the next one needs, and no more: workers free what no future means.
    """
    client, owners = forest.client, range(len(forest.workers))
    held = []
    for owner in owners:
        own = [client.submit(tasks.pick, pieces, owner, pure=False) for pieces in routed]
        held.append(forest.submit(owner, tasks.hold, forest.growth, forest.sent, owner, own))
    routed.clear()
    del own
    grown = [forest.submit(owner, tasks.grown, held[owner]) for owner in owners]
    told = [forest.submit(owner, tasks.summaries, grown[owner]) for owner in owners]
    shares = [forest.submit(owner, tasks.joined, grown[owner], told) for owner in owners]
    wait_for(shares)
    return replace(forest, shares=tuple(shares))


def _labels(of_parts: dict[int, Facts]) -> tuple[AnyArray, AnyArray]:
    """All labels, sorted, and the number of rows of each."""
    first = next(iter(of_parts))
    for number, of in of_parts.items():
        if of.kind != of_parts[first].kind:
            raise TypeError(
                f"partition {number}: y is of type {of.labels.dtype}, and of type "
                f"{of_parts[first].labels.dtype} in partition {first}"
            )
    every = np.concatenate([of.labels for of in of_parts.values()])
    labels, codes = np.unique(every, return_inverse=True)
    counts = np.concatenate([of.n_rows_of for of in of_parts.values()])
    return labels, np.bincount(codes, weights=counts).astype(np.uint64)


def _learned(
    template: Any, of_parts: Sequence[Facts], settings: dict[str, Any], seed: int
) -> GrowthPlan:
    """Ranges and weights, which depend on the least and greatest values alone."""
    low = np.min([of.low for of in of_parts], axis=0)
    high = np.max([of.high for of in of_parts], axis=0)
    return learned_of_range(template, low, high, settings, seed)


def _with_cells(
    plan: _core.CellPlan,
    client: distributed.Client,
    pieces: list[Any],
    labels: Labels,
    n_rows: int,
    n_owners: int,
) -> _core.CellPlan:
    """The plan with cells that can be shared out evenly, and with their owners."""
    if n_owners == 1:
        return plan
    most = -(-n_rows // (_PER_OWNER * n_owners))
    plan = plan.refined(np.ones(plan.n_cells, bool), _FIRST_CUTS)
    for left in reversed(range(_ROUNDS)):
        sent = client.submit(tasks.given, plan, pure=False)
        counts = client.gather(
            [client.submit(tasks.count, sent, own, labels, pure=False) for own in pieces]
        )
        plan, of_cells, may_be_cut = plan.condensed(summed(counts), most)
        if not may_be_cut.any() or left == 0:
            break
        plan = plan.refined(may_be_cut, _MORE_CUTS)
    return plan.owned(shared_out(of_cells, n_owners))


def shared_out(n_rows: AnyArray, n_owners: int) -> list[int]:
    """The owner of each cell: large cells first, each to whoever has the fewest rows."""
    n_owners = min(n_owners, len(n_rows))
    loads = [(0, owner) for owner in range(n_owners)]
    owners = [0] * len(n_rows)
    for cell in np.argsort(-n_rows.astype(np.int64), kind="stable").tolist():
        load, owner = heapq.heappop(loads)
        owners[cell] = owner
        heapq.heappush(loads, (load + int(n_rows[cell]), owner))
    return owners
