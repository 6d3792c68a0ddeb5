"""A forest's place on a cluster: its client, its workers, and which trees each of them has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import distributed

from boscage._bases.sampler import PosteriorSampler
from boscage.dask import _shares
from boscage.dask._partitions import assemble, check_part, layout_of, same_partitions
from boscage.mondrian._forest.base import Given, MondrianForest


@dataclass(frozen=True)
class Fitted:
    """A forest on a cluster. Never changed; an update makes another one."""

    client: distributed.Client
    workers: tuple[str, ...]
    """The address of the worker that is asked to hold each share."""
    shares: tuple[Any, ...]
    """What each of these workers holds, as futures."""
    facts: dict[str, Any]
    """What the client knows of the forest."""

    def submit(self, number: int, task: Any, *args: Any) -> Any:
        """A task on the worker of a share, or on another one if that one is gone; as a future."""
        where = {"workers": [self.workers[number]], "allow_other_workers": True, "pure": False}
        return self.client.submit(task, *args, **where)

    def ask(self, number: int, task: Any, *args: Any) -> Any:
        """A task whose first argument is a share, where that is; as a future."""
        return self.submit(number, task, self.shares[number], *args)

    def each(self, task: Any, *args: Any) -> list[Any]:
        """A task on each share, as futures."""
        return [self.ask(number, task, *args) for number in range(len(self.shares))]


@dataclass(frozen=True)
class TreeForest(Fitted):
    """A forest whose trees are shared out, in the order of the shares; see `Share.facts`."""

    common: Any = None
    """Parameters that follow from all trees together, such as hyperparameters, as a future.

    None if one share has all trees."""

    def chained(self, add: Any, *args: Any) -> Any:
        """Sums over all trees, which go from share to share, as a future."""
        sums = None
        for number in range(len(self.shares)):
            sums = self.ask(number, add, *args, sums)
        return sums


def require_open(client: distributed.Client) -> None:
    """Refuse a client whose futures are gone, and with them its forests."""
    if client.status in ("closing", "closed"):
        raise RuntimeError(
            "the Dask client is closed, and the forests that were grown with it are gone; make "
            "another one, and fit again. Save or collect a forest before its client is closed"
        )


def open_cluster(client: distributed.Client | None) -> tuple[distributed.Client, list[str]]:
    """A client or the default one, and the addresses of its workers, all of this version."""
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError as error:
            raise ValueError(
                "there is no Dask client; make one by dask.distributed.Client(...) first, or "
                "give client="
            ) from error
    require_open(client)
    # All workers are asked: the client's own list of them is empty now and then.
    found = client.run(_shares.installed_version, on_error="return")
    # A worker that has just died is Dask's to replace; the others go on without it.
    found = {worker: said for worker, said in found.items() if not isinstance(said, OSError)}
    for worker, said in sorted(found.items()):
        if isinstance(said, Exception):
            raise RuntimeError(
                f"worker {worker} cannot import boscage ({said}); install version "
                f"{_shares.VERSION} there"
            )
        if said != _shares.VERSION:
            raise RuntimeError(
                f"worker {worker} has boscage {said}, and this process has "
                f"{_shares.VERSION}; install the same version everywhere"
            )
    workers = sorted(found)
    if not workers:
        raise ValueError("the cluster has no workers; wait for them by client.wait_for_workers(1)")
    return client, workers


def wait_for(futures: Sequence[Any]) -> None:
    """Wait for all of some tasks, and raise the first error of one."""
    distributed.wait(futures)
    for future in futures:
        if future.status != "finished":
            future.result()


def table_of(
    client: distributed.Client, estimator: MondrianForest | PosteriorSampler, given: Given
) -> Any:
    """All rows as one table on the cluster, after every partition was checked.

    The estimator is an unfitted one, since it goes with every partition.
    """
    checked = checked_parts(estimator, given)
    table = client.compute(dask.delayed(assemble, pure=False)(checked))
    wait_for([table])
    return table


def checked_parts(estimator: MondrianForest | PosteriorSampler, given: Given) -> list[Any]:
    """The checked partitions as delayed values."""
    named = {"y": given.y, "ids": given.ids, "sample_weight": given.sample_weight}
    parts, others = same_partitions(given.X, named)
    layout = layout_of(given.X)
    check = dask.delayed(check_part, pure=False)
    none = [None] * len(parts)
    targets, ids = others["y"], others["ids"] or none
    weights = others["sample_weight"] or none
    if targets is None:
        raise ValueError("y is None; expected a Dask collection of targets")
    return [
        check(estimator, layout, part, target, (ids[number], weights[number]), number)
        for number, (part, target) in enumerate(zip(parts, targets, strict=True))
    ]


def tree_ranges(n_trees: int, n_workers: int, n_first: int) -> list[tuple[int, int]]:
    """The trees of each worker: the first one has `n_first` at least, the others equal shares."""
    first = min(max(-(-n_trees // n_workers), n_first), n_trees)
    n_others = min(n_workers - 1, n_trees - first)
    ends = [first + (n_trees - first) * i // max(n_others, 1) for i in range(n_others + 1)]
    return list(zip([0, *ends[:-1]], ends, strict=True))
