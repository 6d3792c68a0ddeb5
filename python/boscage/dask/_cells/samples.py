"""Some rows of a forest whose cells are apart, chosen among those that all workers hold.

They are the first ones in an order that the rows' contents determine, so that they are those of one
machine. What travels is 16 bytes for each distinct row of features, and all rows that have the
features of a chosen one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import distributed
import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._types import Ids, IntArray, Label
from boscage.dask._cells import rows, tasks
from boscage.dask._cells.rows import Facts, Filler, Labels, LeftOut, sorted_labels
from boscage.mondrian._discount import judging_arrivals
from boscage.mondrian._forest.growth import GrowthPlan
from boscage.mondrian.feature_rates._samples import DistinctRows, Places, learning_order
from boscage.mondrian.feature_rates._shared import rows_to_learn_from


@dataclass(frozen=True)
class Chooser:
    """What chooses rows among those of some pieces, which are futures."""

    client: distributed.Client
    pieces: list[Any]
    n_workers: int

    def learning(
        self, facts: list[Facts], known: list[Label], seed: int, filler: Filler | None = None
    ) -> Any:
        """The `Sample` that rates or substitutes are learned from, as a future.

        Missing values are filled if there is a filler.
        """
        labels, n = sorted_labels(facts, known), rows_to_learn_from(len(facts[0].low))
        places, found = self._first(labels, learning_order(seed), n, filler, None)
        return self._sample(facts, places, found)

    def choosing(self, facts: list[Facts], plan: GrowthPlan) -> Any:
        """The `Sample` that chooses the hyperparameters of a forest, as a future."""
        places, found = self._first(None, plan.seed, _core.RULE_ROWS, None, plan.cut_features)
        return self._sample(facts, places, found)

    def calibrating(self, counts: dict[Label, int], plan: GrowthPlan) -> tuple[LeftOut, Ids]:
        """The rows that calibrate a forest, in the order of its seed, given its rows by label.

        With them the arrivals of the rows that a trend is fitted to, of which they are the first.
        """
        has_trend, n = plan.settings["trend"], _core.calibrating_rows(list(counts.values()))
        order = plan.seed, _core.TREND_ROWS if has_trend else n
        places, found = self._first(np.array(list(counts)), *order, None, plan.cut_features)
        arrivals = [
            self.client.submit(rows.arrivals_of, own, each, pure=False)
            for own, each in zip(self.pieces, found, strict=True)
        ]
        chosen: LeftOut = self.client.submit(
            _left_out, places, found, arrivals, pure=False
        ).result()
        of_trend = chosen.arrivals if has_trend else chosen.arrivals[:0]
        return LeftOut(chosen.arrivals[:n], chosen.copies[:n]), of_trend

    def judging(self, facts: list[Facts]) -> Ids:
        """The rows that judge discounts, by their arrivals."""
        n_rows = sum(of.n_rows for of in facts)
        first = min(of.arrivals[0] for of in facts)
        chosen = judging_arrivals(n_rows).astype(np.uint64)
        if max(of.arrivals[1] for of in facts) - first + 1 == n_rows:
            arrivals: Ids = chosen + np.uint64(first)
            return arrivals
        # Some have left, which the warm-up sees alone.
        asked = [self.client.submit(rows.arrivals, own, pure=False) for own in self.pieces]
        judging: Ids = np.sort(np.concatenate(self.client.gather(asked)))[chosen]
        return judging

    def _sample(self, facts: list[Facts], places: Any, found: list[Any]) -> Any:
        n_rows, is_weighted = sum(of.n_rows for of in facts), any(of.is_weighted for of in facts)
        options = {"is_weighted": is_weighted, "pure": False}
        return self.client.submit(Places.sample, places, found, n_rows, **options)

    def _first(
        self,
        labels: Labels,
        order: int,
        n: int,
        filler: Filler | None,
        features: IntArray | None,
    ) -> tuple[Any, list[Any]]:
        """The places of the first rows in the order of a seed, and all rows of their keys."""
        client, n_groups = self.client, min(len(self.pieces), self.n_workers)
        counted = [
            client.submit(rows.key_counts, own, filler, order, features, n_groups, pure=False)
            for own in self.pieces
        ]
        groups = [
            client.submit(
                rows.first_places,
                [client.submit(tasks.pick, own, group, pure=False) for own in counted],
                n,
                pure=False,
            )
            for group in range(n_groups)
        ]
        places = client.submit(Places.first, groups, n, pure=False)
        return places, [
            client.submit(
                rows.distinct_rows, own, filler, labels, places, order, features, pure=False
            )
            for own in self.pieces
        ]


def _left_out(places: Places, found: list[DistinctRows], arrivals: list[Ids]) -> LeftOut:
    """The rows at some places as rows that are left out, given all rows of their keys.

    Also given is how many rows came before each of these.
    """
    every = DistinctRows.join(found)
    return LeftOut(np.concatenate(arrivals)[places.among(every)], _have_copies(places, every))


def _have_copies(places: Places, found: DistinctRows) -> NDArray[np.uint8]:
    """Of each place, as `LeftOut.copies`, given all rows of the keys."""
    keys, of_row = np.unique(found.keys, return_inverse=True)
    n_rows = np.bincount(of_row, found.n_equal)
    low, high = np.full(len(keys), found.y.max()), np.full(len(keys), found.y.min())
    np.minimum.at(low, of_row, found.y)
    np.maximum.at(high, of_row, found.y)
    kinds = np.where(n_rows == 1, 0, np.where(low == high, 1, 2)).astype(np.uint8)
    own: NDArray[np.uint8] = kinds[np.searchsorted(keys, places.keys)]
    return own
