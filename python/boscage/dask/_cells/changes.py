"""Rows that come to a forest whose cells are shared out, and rows that leave it.

A forest is a function of its set of rows. So a change gathers the rows that the owners hold, in
pieces that stay on the workers, adds and removes some, and grows the forest again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import distributed
import numpy as np
from numpy.typing import ArrayLike

from boscage._input.ids import check_ids, unknown
from boscage._input.labels import check_classes
from boscage._types import AnyArray, Ids, Label
from boscage.dask._cells import rows, tasks
from boscage.dask._cells.categories import (
    extended,
    labels_of,
    learned_tables,
    placed,
    target_counts,
    unplaced,
    with_columns,
)
from boscage.dask._cells.classifier_share import ClassifierCellShare
from boscage.dask._cells.forest import CellForest, Recipe, grow_forest, is_chosen
from boscage.dask._cells.rows import Facts, Filler, sorted_labels
from boscage.dask._cells.samples import Chooser
from boscage.dask._cells.shares import CellShare
from boscage.dask._cluster import checked_parts, wait_for
from boscage.dask._partitions import duplicate_id_error, require_one_type, same_id
from boscage.mondrian._categories import Singles, Tables, check_tables
from boscage.mondrian._forest.base import Given
from boscage.mondrian._forest.growth import GrowthPlan
from boscage.mondrian._forest.warm_up import WarmUp
from boscage.mondrian._missing import Substitutes, check_substitutes
from boscage.mondrian._regression import check_largest_target

_EDGES = 256
"""So many rows are compared with all others at a time, to find the oldest one of a window."""
_ID_END = 2**64
_CHOSEN = ("discount", "min_samples_split")
"""Settings that may be chosen when a forest is new, and are then kept."""


@dataclass(frozen=True)
class NewPieces:
    """Rows of new partitions."""

    pieces: list[Any]
    """As futures; categories are not yet in their places."""
    n_rows: int
    """The number of rows that came, also of those that a window leaves out."""
    feature_names: AnyArray | None
    categories: dict[int, list[Label]]
    """The categories of each feature that has any."""


def fit(
    template: Any,
    share: type[CellShare],
    given: Given,
    client: distributed.Client,
    cluster: tuple[str, ...],
    *,
    seed: int,
    warms_up: bool,
) -> CellForest:
    """A new forest."""
    new = _arrived(client, template, given, None, window=template._window())
    facts = _facts(client, new.pieces, share)
    check_largest_target(max(of.largest for of in facts))
    declared = _declared(template, given, None)
    known, next_id = declared or [], max(of.last_id for of in facts) + 1
    chooser = Chooser(client, new.pieces, len(cluster))
    learned, sample = _learned(
        template, chooser, facts, known, seed, has_categories=bool(new.categories)
    )
    template._tables = learned.tables
    warming = template._new_warm_up(new.n_rows, template._warm_up()) if warms_up else None
    names = new.feature_names
    recipe = Recipe(template, share, learned, known, declared, names, new.n_rows, next_id, warming)
    return grow_forest(client, cluster, recipe, new.pieces, facts, chooses=True, sample=sample)


def add_rows(before: CellForest, template: Any, given: Given) -> CellForest:
    """The forest with more rows."""
    client, recipe = before.client, before.recipe
    template._grown_with = recipe.template.get_params(deep=False)
    template._changed()
    settings, window = template._settings(), template._window()
    kept = [name for name in _CHOSEN if is_chosen(template, name)]
    settings |= {name: recipe.learned.settings[name] for name in kept}
    declared = _declared(template, given, before.growth.names) or recipe.declared
    new = _arrived(client, template, given, before)
    tables = recipe.learned.tables
    if recipe.warming is not None and template.categories is None:
        # Until what is learned is final, new categories get places of their own.
        tables = extended(tables, new.categories)
    template._tables = tables
    pieces = [*before.rows(), *_placed(client, new.pieces, tables)]
    new.pieces.clear()
    facts = _facts(client, pieces, recipe.share)
    check_largest_target(max(of.largest for of in facts))
    next_id = max(recipe.next_id, *(of.last_id + 1 for of in facts))
    learned = replace(recipe.learned, settings=settings, tables=tables)
    known = before.growth.names or []
    chooser = Chooser(client, pieces, len(before.cluster))
    if learned.substitutes is None and any(of.has_missing for of in facts):
        # The first ones; they are learned also from rows that leave the window.
        found = _substitutes(chooser, facts, known, learned.seed)
        learned = replace(learned, substitutes=found)
    n_arrived = recipe.n_arrived + new.n_rows
    if window is not None and sum(of.n_rows for of in facts) > window:
        oldest = _oldest(client, pieces, window, n_arrived)
        pieces[:] = [client.submit(rows.newest, own, oldest, pure=False) for own in pieces]
        facts = _facts(client, pieces, recipe.share)
    warming, is_to_learn = _warming(template, recipe.warming, new.n_rows)
    sample = None
    if is_to_learn:
        if tables:
            pieces[:] = [client.submit(unplaced, own, tables, pure=False) for own in pieces]
        learned, sample = _learned(
            template, chooser, facts, known, learned.seed, has_categories=bool(tables)
        )
    recipe = replace(
        recipe,
        template=template,
        learned=learned,
        known=known,
        declared=declared,
        n_arrived=n_arrived,
        next_id=next_id,
        warming=warming,
    )
    return grow_forest(
        client, before.cluster, recipe, pieces, facts, chooses=is_to_learn, sample=sample
    )


def forget_rows(before: CellForest, ids: ArrayLike) -> CellForest:
    """The forest without some rows."""
    client, numbers = before.client, check_ids(ids)
    if not len(numbers):
        return before
    sent = client.submit(tasks.given, numbers, pure=False)
    pieces = before.rows()
    found = [client.submit(rows.found, own, sent, pure=False) for own in pieces]
    held: Ids = np.concatenate(client.gather(found))
    if len(held) < len(numbers):
        raise KeyError(f"{unknown(ids, held)}; nothing was changed")
    if len(held) == before.facts["n_rows"]:
        raise ValueError(
            "partition='cells' does not forget all rows of a forest: drop the estimator, or call "
            "fit with other rows"
        )
    pieces = [client.submit(rows.without, own, sent, pure=False) for own in pieces]
    facts = _facts(client, pieces, before.recipe.share)
    recipe = replace(before.recipe, known=before.growth.names or [])
    return grow_forest(client, before.cluster, recipe, pieces, facts, chooses=False)


def _arrived(
    client: distributed.Client,
    template: Any,
    given: Given,
    before: CellForest | None,
    window: int | None = None,
) -> NewPieces:
    """The rows of new partitions, checked and numbered; the newest ones if there is a window."""
    parts = client.compute(checked_parts(template, given))
    reader = template if before is None else before.named(template)
    found = [
        client.submit(rows.checked, reader, part, number, before is None, pure=False)
        for number, part in enumerate(parts)
    ]
    told = [client.submit(tasks.pick, each, 1, pure=False) for each in found]
    wait_for(told)
    came = {number: own for number, own in enumerate(client.gather(told)) if own is not None}
    if not came:
        raise ValueError("X has no rows: all partitions are empty")
    require_one_type({number: own.dtype for number, own in came.items()})
    if given.ids is not None:
        _require_new_ids(client, parts, [] if before is None else before.rows())
    recipe = None if before is None else before.recipe
    n_before, next_id = (0, 0) if recipe is None else (recipe.n_arrived, recipe.next_id)
    ends = np.cumsum([n_before, *(own.n_rows for own in came.values())]).tolist()
    n_rows = ends[-1] - n_before
    if given.ids is None and next_id + n_rows > _ID_END:
        raise ValueError("ids must be given, since the count of rows has come to its end")
    oldest = 0 if window is None else max(ends[-1] - window, 0)
    categories, pieces = labels_of([*came.values()]), []
    for number, start in zip(came, ends[:-1], strict=True):
        # Where rows are counted from the first one on, arrivals are ids.
        first_id = None if next_id == n_before else next_id + start - n_before
        own = client.submit(rows.numbered, found[number], start, first_id, oldest, pure=False)
        if categories:
            own = client.submit(with_columns, own, [*categories], pure=False)
        pieces.append(own)
    return NewPieces(pieces, n_rows, next(iter(came.values())).names, categories)


def _require_new_ids(client: distributed.Client, parts: list[Any], held: list[Any]) -> None:
    """Refuse ids that occur twice in partitions, or that rows of the forest have."""
    holders, n_groups = [*held, *parts], max(len(held), len(parts))
    groups = [client.submit(rows.shared_out_ids, own, n_groups, pure=False) for own in holders]
    asked = [
        client.submit(
            same_id,
            [client.submit(tasks.pick, own, number, pure=False) for own in groups],
            pure=False,
        )
        for number in range(n_groups)
    ]
    for places in client.gather(asked):
        if not places:
            continue
        if places[0][1] < len(held):
            raise ValueError(f"id {places[0][0]} is already in the forest; ids must be unique")
        raise duplicate_id_error([(same, holder - len(held), row) for same, holder, row in places])


def _facts(client: distributed.Client, pieces: list[Any], share: type[CellShare]) -> list[Facts]:
    """Facts about pieces, of which those without rows leave the list."""
    has_labels = share is ClassifierCellShare
    told = [client.submit(rows.facts, own, has_labels, pure=False) for own in pieces]
    wait_for(told)
    every: list[Facts] = client.gather(told)
    pieces[:] = [own for own, of in zip(pieces, every, strict=True) if of.n_rows]
    return [of for of in every if of.n_rows]


def _oldest(client: distributed.Client, pieces: list[Any], window: int, n_arrived: int) -> int:
    """How many rows came before the oldest one of the newest, of which there are `window`."""
    low, high = 0, n_arrived
    while high - low > 1:
        step = -(-(high - low) // _EDGES)
        edges = np.arange(low, high, step, dtype=np.uint64)
        asked = [client.submit(rows.n_newest, own, edges, pure=False) for own in pieces]
        n_newest = np.sum(client.gather(asked), axis=0)
        low = int(edges[np.flatnonzero(n_newest >= window)[-1]])
        high = min(low + step, high)
    return low


def _declared(template: Any, given: Given, names: list[Label] | None) -> list[Label] | None:
    """The labels that are declared, given those of a forest or None for a new one."""
    if given.classes is None:
        return None
    if names is None:
        return check_classes(given.classes, [])
    known = SimpleNamespace(classes=lambda: names)
    declared: list[Label] | None
    declared = template._encode(np.array(names), given.classes, known)[1]["declared"]
    return declared


def _learned(
    template: Any,
    chooser: Chooser,
    facts: list[Facts],
    known: list[Label],
    seed: int,
    *,
    has_categories: bool,
) -> tuple[GrowthPlan, Any]:
    """Ranges and places of categories of all rows, and the rates, which some of them teach.

    Also these rows as a future, if there are such. Changes the list of the chooser's pieces:
    categories are in their places afterwards.
    """
    client = chooser.client
    tables: Tables = {}
    singles: Singles = {}
    if has_categories:
        tables, singles = _tables(template, chooser, facts, known)
        chooser.pieces[:] = _placed(client, chooser.pieces, tables)
    ends = rows.ends(facts)
    sample = filler = None
    substitutes = check_substitutes(template.substitutes, ends.shape[1])
    if any(of.has_missing for of in facts):
        if substitutes is None:
            substitutes = _substitutes(chooser, facts, known, seed)
        filler = Filler(substitutes, *template._range(ends, tables))
    if template._learns_rates():
        sample = chooser.learning(facts, known, seed, filler)
    given = (template, ends, sample, substitutes, tables, singles, seed)
    plan: GrowthPlan = client.submit(tasks.learned, *given, pure=False).result()
    return plan, sample


def _placed(client: distributed.Client, pieces: list[Any], tables: Tables) -> list[Any]:
    """Pieces whose rows have the places of their categories."""
    if not tables:
        return pieces
    return [client.submit(placed, own, tables, pure=False) for own in pieces]


def _tables(
    template: Any, chooser: Chooser, facts: list[Facts], known: list[Label]
) -> tuple[Tables, Singles]:
    """The places of categories: those given, or those that the rows of all pieces teach.

    Of the latter also those of categories that only one row has.
    """
    given = check_tables(template.categories, len(facts[0].low))
    if given is not None:
        return given, {}
    client, labels = chooser.client, sorted_labels(facts, known)
    counts = [client.submit(target_counts, own, labels, pure=False) for own in chooser.pieces]
    found: tuple[Tables, Singles] = client.submit(learned_tables, counts, pure=False).result()
    return found


def _substitutes(
    chooser: Chooser, facts: list[Facts], known: list[Label], seed: int
) -> Substitutes:
    """What stands for missing values of rows, some of which lack values."""
    sample = chooser.learning(facts, known, seed)
    found: Substitutes = chooser.client.submit(tasks.substitutes, sample, pure=False).result()
    return found


def _warming(template: Any, before: WarmUp | None, n_rows: int) -> tuple[WarmUp | None, bool]:
    """How far the warm-up has come after more rows, and whether all is to be learned again."""
    warm_up = template._warm_up()
    if before is None:
        return None, False
    template._warming = replace(before, n_rows=before.n_rows + n_rows)
    if template._is_to_learn_again(warm_up):
        return template._new_warm_up(before.n_rows + n_rows, warm_up), True
    return template._warming, False
