"""Forests whose cells are shared out: what the client does.

Rows go to the owners of their cells, by a plan that the client makes from counts. No process holds
all rows.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any

import dask
import distributed
import numpy as np

from boscage import _core
from boscage._types import AnyArray, Ids, Label
from boscage.dask._cells import tasks
from boscage.dask._cells.classifier_share import ClassifierCellShare
from boscage.dask._cells.regressor_share import RegressorCellShare
from boscage.dask._cells.rows import (
    Facts,
    LeftOut,
    coded,
    joined_pieces,
    label_counts,
    label_weights,
)
from boscage.dask._cells.samples import Chooser
from boscage.dask._cells.shares import CellShare, Growth
from boscage.dask._cluster import Fitted, wait_for
from boscage.dask._shares import VERSION, new_forest
from boscage.mondrian._categories import by_feature
from boscage.mondrian._discount import DISCOUNTS
from boscage.mondrian._forest.cell_plans import ROUNDS, first_plan, summed
from boscage.mondrian._forest.growth import GrowthPlan, NewRows
from boscage.mondrian._forest.warm_up import WarmUp
from boscage.mondrian._regression import hyperparameters_of

_PER_OWNER = 4
"""Cells of a tree have at most so many to one of the rows that an owner has of the tree."""
_FIRST_CUTS, _MORE_CUTS = 6, 4
"""How often cells are cut before rows are counted for the first time, and each time after that."""
_JUDGED_AT_A_TIME = 100
"""So many rows judge discounts at a time."""


@dataclass(frozen=True)
class Recipe:
    """All that determines a forest whose cells are shared out, beside its rows."""

    template: Any
    """An unfitted one-machine forest."""
    share: type[CellShare]
    learned: GrowthPlan
    known: list[Label]
    """Labels whose type those of the rows take; none if any will do."""
    declared: list[Label] | None
    """Labels that are classes also while no row has them."""
    feature_names: AnyArray | None
    n_arrived: int
    """The number of rows that came so far."""
    next_id: int
    """The number of the next row that comes without an id."""
    warming: WarmUp | None

    @property
    def has_labels(self) -> bool:
        """Whether targets are labels."""
        return self.share is ClassifierCellShare

    def class_counts(self, facts: list[Facts]) -> dict[Label, int]:
        """The number of rows of each class, sorted by label; none of a regressor."""
        declared = dict.fromkeys(self.declared or (), 0)
        return dict(sorted((declared | label_counts(facts, self.known)).items()))


@dataclass(frozen=True)
class CellForest(Fitted):
    """A forest whose cells are shared out among owners, each of which has a share."""

    cluster: tuple[str, ...]
    """The addresses of all workers that may own cells."""
    plan: _core.CellPlan
    sent: Any
    """The plan as a future."""
    growth: Growth
    recipe: Recipe
    sample: Any = None
    """Rows from which substitutes for missing values of test rows are learned, as a future; None if
    the forest has substitutes."""
    link: Any = None
    """What calibrates predictions, as a future; None if nothing does."""

    def digest(self) -> str:
        """The digest of the one-machine forest."""
        hashes = self.each(CellShare.hashes)
        return str(self.ask(0, tasks.digest, self.sent, hashes).result())

    def prediction(self, part: Any, number: int, n_outputs: int) -> Any:
        """The predictions of a partition, as a delayed array."""
        n_owners = len(self.shares)
        route = dask.delayed(tasks.route_queries, pure=False)
        reader = self.named(new_forest(self.growth.template))
        learned = self.recipe.learned
        routed = route(reader, self.sent, learned, self.sample, part, number, n_owners)
        tell, finish = (dask.delayed(task, pure=False) for task in (tasks.lists, tasks.finished))
        lists = [tell(share, routed, owner) for owner, share in enumerate(self.shares)]
        last = self.shares[number % n_owners]
        return finish(last, routed, lists, self.link, n_outputs)

    def named(self, forest: Any) -> Any:
        """A forest that knows the features: number, categories, and names if they have any."""
        forest._tables = self.recipe.learned.tables
        forest.n_features_in_ = self.facts["n_features_in"]
        if self.facts["feature_names_in"] is not None:
            forest.feature_names_in_ = self.facts["feature_names_in"]
        return forest

    def rows(self) -> list[Any]:
        """All rows in pieces, as futures."""
        return self.each(CellShare.own_rows)

    def one_machine(self, forest: Any) -> Any:
        """The one-machine forest: an unfitted one, with the rows of all owners."""
        own = joined_pieces(self.client.gather(self.rows()), self.growth.is_weighted)
        own = own.of(np.argsort(own.arrivals))
        own = replace(own, target=coded(own, self.growth.labels))
        extra = {} if self.growth.names is None else {"declared": self.recipe.declared}
        new = NewRows(own.rows, {}, self.growth.encoded(own), extra, own.numbers, own.weights)
        learned = self.recipe.learned
        model = self.named(forest)._draw(learned, new, n_threads=forest._n_threads())
        forest._adopt(model, learned)
        forest._grown_with = self.recipe.template.get_params(deep=False)
        forest._warming = self.recipe.warming
        return forest


_ONLY_OF: dict[type[CellShare], dict[str, tuple[Any, str]]] = {
    ClassifierCellShare: {
        "posterior": ("kneser-ney", "it needs all trees in one place"),
    },
    RegressorCellShare: {
        "posterior": ("exact", "messages go through trees that are apart for this one alone"),
    },
}
"""The only values of parameters where cells are apart, and why."""


def refuse(template: Any, share: type[CellShare]) -> None:
    """Refuse by name what is not offered where cells are apart."""
    offers = "partition='cells' does not offer"
    for name, (only, why) in _ONLY_OF[share].items():
        found = getattr(template, name)
        if found is not only and found != only:
            raise ValueError(
                f"{offers} {name}={found!r}: {why}; set {name}={only!r}, or choose "
                "partition='trees'"
            )


def is_chosen(template: Any, name: str) -> bool:
    """Whether a word stands for a number that left-out rows choose."""
    return isinstance(getattr(template, name, None), str)


def grow_forest(
    client: distributed.Client,
    cluster: tuple[str, ...],
    recipe: Recipe,
    pieces: list[Any],
    facts: list[Facts],
    *,
    chooses: bool,
    sample: Any = None,
) -> CellForest:
    """Grow a forest from rows in pieces, which are futures; clears the list of them.

    `chooses` says whether a discount is chosen if it is to be; `sample` has the rows that taught
    rates, as a future, if some did.
    """
    seed, chooser = recipe.learned.seed, Chooser(client, pieces, len(cluster))
    growth = _growth(recipe, chooser, facts, chooses=chooses)
    if recipe.learned.substitutes is not None:
        sample = None
    elif sample is None:
        sample = chooser.learning(facts, recipe.known, seed)
    choosing = (
        chooser.choosing(facts, recipe.learned) if "hyperparameters" in growth.settings else None
    )
    known = _known(recipe, growth.names, facts)
    plan = first_plan(recipe.learned)
    plan = first_plan(recipe.learned, _extent(plan, client, pieces))
    plan = _with_cells(plan, client, pieces, growth, known["n_rows"], len(cluster))
    n_owners = int(plan.owners.max()) + 1
    sent, owners = client.submit(tasks.given, plan, pure=False), cluster[:n_owners]
    routed = [client.submit(tasks.route, sent, own, growth, n_owners, pure=False) for own in pieces]
    pieces.clear()
    forest = CellForest(client, owners, (), known, cluster, plan, sent, growth, recipe, sample)
    forest = _joined(forest, routed)
    return _calibrated(forest) if recipe.has_labels else _with_messages(forest, choosing)


def _growth(recipe: Recipe, chooser: Chooser, facts: list[Facts], *, chooses: bool) -> Growth:
    """What all owners must know."""
    counts, settings = recipe.class_counts(facts), recipe.learned.settings
    names = list(counts) if recipe.has_labels else None
    left_out = LeftOut.none()
    of_trend = judging = np.empty(0, np.uint64)
    if settings.get("calibration") is not None:
        left_out, of_trend = chooser.calibrating(counts, recipe.learned)
    n_rows = sum(of.n_rows for of in facts)
    if chooses and n_rows > 1 and is_chosen(recipe.template, "discount"):
        judging = chooser.judging(facts)
    return Growth(
        recipe.share,
        recipe.template,
        settings,
        names,
        recipe.declared,
        list(counts.values()),
        any(of.is_weighted for of in facts),
        left_out,
        of_trend,
        judging,
        VERSION,
    )


def _extent(
    plan: _core.CellPlan, client: distributed.Client, pieces: list[Any]
) -> tuple[int, bool]:
    """What a plan must know of all rows."""
    asked = [client.submit(tasks.extent, plan, own, pure=False) for own in pieces]
    wait_for(asked)
    levels, singles = zip(*client.gather(asked), strict=True)
    return max(levels), all(singles)


def _known(recipe: Recipe, names: list[Label] | None, facts: list[Facts]) -> dict[str, Any]:
    """What the client knows of a forest."""
    learned = recipe.learned
    n_features = len(learned.low)
    weights = label_weights(facts, recipe.known)
    return {
        "n_rows": sum(of.n_rows for of in facts),
        "n_features_in": n_features,
        "feature_names_in": recipe.feature_names,
        "classes": np.array(names),
        "class_counts": np.array([float(weights.get(name, 0)) for name in names or ()]),
        "discount_": learned.settings.get("discount"),
        "min_samples_split_": learned.settings["min_samples_split"],
        "hyperparameters": {},
        "feature_weights_": np.ones(n_features) if learned.weights is None else learned.weights,
        "feature_importances_": None if learned.learned is None else learned.learned.importances,
        "categories_": by_feature(learned.tables, n_features),
    }


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
    grown = [forest.submit(owner, CellShare.grow, held[owner]) for owner in owners]
    told = [forest.submit(owner, CellShare.summaries, grown[owner]) for owner in owners]
    shares = [forest.submit(owner, CellShare.join, grown[owner], told) for owner in owners]
    wait_for(shares)
    return replace(forest, shares=tuple(shares))


def _with_messages(forest: CellForest, sample: Any) -> CellForest:
    """The regressor with what its rule chooses from a sample of rows, and what follows from it."""
    chosen = forest.ask(0, RegressorCellShare.choose, forest.recipe.learned, sample)
    messages = forest.each(RegressorCellShare.messages, chosen)
    shares = forest.each(RegressorCellShare.set_messages, chosen, messages)
    forest = replace(forest, shares=tuple(shares))
    if forest.growth.settings["noise"] == "local":
        sizes = forest.each(RegressorCellShare.sizes)
        shares = forest.each(RegressorCellShare.set_sizes, sizes)
    wait_for(shares)
    facts = forest.facts | {"hyperparameters": hyperparameters_of(chosen.result())}
    return replace(forest, shares=tuple(shares), facts=facts)


def _calibrated(forest: CellForest) -> CellForest:
    """The forest with all that is learned from left-out predictions."""
    if len(forest.growth.judging):
        forest = _with_discount(forest, forest.growth.judging)
    if not len(forest.growth.left_out.arrivals):
        return forest
    link = forest.client.submit(tasks.pick, _links(forest, None), 0, pure=False)
    wait_for([link])
    return replace(forest, link=link)


def _votes(forest: CellForest, arrivals: Any, discounts: list[float] | None) -> list[Any]:
    """What all owners say of left-out rows, as futures."""
    return forest.each(ClassifierCellShare.left_out_votes, arrivals, discounts)


def _links(forest: CellForest, discounts: list[float] | None) -> Any:
    """What calibrates by discount, as a future."""
    arrivals = forest.growth.left_out.arrivals
    votes = _votes(forest, arrivals, discounts) if len(arrivals) else []
    return forest.ask(0, ClassifierCellShare.links, discounts, votes)


def _with_discount(forest: CellForest, judging: Ids) -> CellForest:
    """The forest with the discount that its left-out predictions choose."""
    discounts = list(DISCOUNTS)
    links, proba = _links(forest, discounts), []
    for start in range(0, len(judging), _JUDGED_AT_A_TIME):
        some = judging[start : start + _JUDGED_AT_A_TIME]
        votes = _votes(forest, some, discounts)
        proba.append(forest.ask(0, ClassifierCellShare.judged, some, discounts, links, votes))
        # Votes are as long as what many predictions add, and are not needed any more.
        wait_for(proba[-1:])
    chosen = forest.ask(0, ClassifierCellShare.choose_discount, proba).result()
    shares = forest.each(ClassifierCellShare.set_discount, chosen)
    wait_for(shares)
    learned = forest.recipe.learned
    learned = replace(learned, settings=learned.settings | {"discount": chosen})
    return replace(
        forest,
        shares=tuple(shares),
        recipe=replace(forest.recipe, learned=learned),
        facts=forest.facts | {"discount_": chosen},
    )


def _with_cells(
    plan: _core.CellPlan,
    client: distributed.Client,
    pieces: list[Any],
    growth: Growth,
    n_rows: int,
    n_owners: int,
) -> _core.CellPlan:
    """The plan with cells that can be shared out evenly, and with their owners."""
    if n_owners == 1:
        return plan
    most = -(-n_rows // (_PER_OWNER * n_owners))
    one_less = growth.is_weighted and len(growth.left_out_of_all()) > 0
    plan = plan.refined(np.ones(plan.n_cells, bool), _FIRST_CUTS)
    for left in reversed(range(ROUNDS)):
        sent = client.submit(tasks.given, plan, pure=False)
        counts = client.gather(
            [client.submit(tasks.count, sent, own, growth.labels, pure=False) for own in pieces]
        )
        plan, of_cells, may_be_cut = plan.condensed(summed(counts), most, one_less=one_less)
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
