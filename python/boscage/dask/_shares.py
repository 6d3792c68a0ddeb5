"""What runs on workers: shares of a forest, and how their sums become predictions.

A share is a one-machine estimator whose model draws only some of the trees, on all rows. Tasks
never change a share that another task may read: an update makes a new one. Predictions are sums
over all trees, in their order; they go from one share to the next, so that they are those of one
machine.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeAlias, TypeVar, overload

import distributed
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from boscage import _core
from boscage._bases.lock import without_lock
from boscage._input.columns import dense
from boscage._types import AnyArray, FloatArray, Ids, Rows
from boscage.dask._partitions import Part, naming_partition
from boscage.mondrian._completions import Completions
from boscage.mondrian._discount import DISCOUNTS, best_discount, judging_rows
from boscage.mondrian._forest.base import Given, MondrianForest
from boscage.mondrian._forest.growth import GrowthPlan, NewRows
from boscage.mondrian.classifier import MondrianForestClassifier
from boscage.mondrian.regressor import MondrianForestRegressor

Self = TypeVar("Self", bound="Share")
Link: TypeAlias = tuple[Any, ...]
"""The numbers of a calibration, as the compiled module gives and takes them."""

VERSION = _core.__version__
"""The version of this process; those of all workers must be the same."""


def installed_version() -> str:
    """The version of the library in this process."""
    return VERSION


def check_version(expected: str) -> None:
    """Refuse to work for a client of another version, whose trees might be others."""
    if expected != VERSION:
        worker = distributed.get_worker().address
        raise RuntimeError(
            f"worker {worker} has boscage {VERSION}, and the client has {expected}; "
            "install the same version everywhere"
        )


def worker_threads(asked: int | None) -> int | None:
    """The ``n_jobs`` of a forest on this worker: its threads unless a number was asked for."""
    if asked is not None:
        return asked
    try:
        return int(distributed.get_worker().state.nthreads)
    except ValueError:  # outside of a worker
        return None


def new_forest(template: MondrianForest) -> MondrianForest:
    """An unfitted forest on this worker."""
    forest: MondrianForest = clone(template)
    forest.n_jobs = worker_threads(template.n_jobs)
    return forest


def plan(template: MondrianForest, table: Part, classes: Any, seed: int) -> GrowthPlan:
    """Learn what the one-machine forest learns before the first cut."""
    forest = new_forest(template)
    new, _ = forest._new_rows(_received(table, classes))
    settings = forest._settings()
    return forest._plan(new, settings=settings, seed=seed, n_threads=forest._n_threads())


@overload
def aligned(array: AnyArray) -> AnyArray: ...
@overload
def aligned(array: None) -> None: ...
def aligned(array: AnyArray | None) -> AnyArray | None:
    """An array whose numbers are where the processor wants them.

    One that came from another worker lies where its message happened to be.
    """
    return None if array is None else np.require(array, requirements="A")


def _received(table: Part, classes: Any) -> Given:
    X, y, ids, weights = table
    return Given(X, aligned(y), aligned(ids), aligned(weights), classes)


class Share:
    """Some trees of a forest on all of its rows."""

    def __init__(self, forest: MondrianForest, n_jobs: int | None) -> None:
        self._forest, self._n_jobs = forest, n_jobs

    def _with_threads(self) -> MondrianForest:
        """The forest, with the threads of this worker."""
        self._forest.n_jobs = worker_threads(self._n_jobs)
        return self._forest

    def _copy(self: Self) -> Self:
        return type(self)(self._forest.copy(), self._n_jobs)

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _n_outputs(self) -> int:
        """The number of columns of predictions."""

    @abstractmethod
    def _predicted(self, X: Any) -> FloatArray:
        """Predictions of rows by all trees, which are in this share."""

    @abstractmethod
    def _sums(
        self, model: Any, rows: Rows, common: Any, before: FloatArray | None, n_threads: int
    ) -> FloatArray:
        """Sums over these trees and those before, of checked rows."""

    @abstractmethod
    def _of_sums(
        self, model: Any, completions: Completions, common: Any, sums: FloatArray, n_threads: int
    ) -> FloatArray:
        """Predictions of checked rows, given the sums over all trees for their completions."""

    @abstractmethod
    def complete(self, common: Any) -> None:
        """Compute what the first prediction needs."""

    # -- prediction -------------------------------------------------------------------------------

    # A filter may have left a partition without rows, which one-machine forests refuse.

    def predicted(self, X: Any, number: int) -> FloatArray:
        """Predictions of a partition by a share that has all trees."""
        X = dense(X)
        if not len(X):
            return np.empty((0, self._n_outputs()))
        with naming_partition(number):
            return self._predicted(X)

    def add(self, common: Any, X: Any, before: FloatArray | None, number: int) -> FloatArray:
        """The sums of a partition over these trees and those before."""
        X = dense(X)
        if not len(X):
            return np.empty((0, self._n_outputs()))
        model, completions, n_threads = self._query(X, number)
        return self._sums(model, completions.rows, common, aligned(before), n_threads)

    def finish(self, common: Any, X: Any, before: FloatArray, number: int) -> FloatArray:
        """Predictions of a partition by these trees, the last ones, and those before."""
        X = dense(X)
        if not len(X):
            return np.empty((0, self._n_outputs()))
        model, completions, n_threads = self._query(X, number)
        sums = self._sums(model, completions.rows, common, aligned(before), n_threads)
        return self._of_sums(model, completions, common, sums, n_threads)

    def _query(self, X: Any, number: int) -> tuple[Any, Completions, int]:
        """The model, the completed rows of a partition, and the number of threads."""
        with naming_partition(number):
            model, rows, n_threads = self._with_threads()._query(X)
        return model, Completions.of(model, rows, n_threads), n_threads

    # -- growing and updates ----------------------------------------------------------------------

    @classmethod
    def grow(
        cls: type[Self],
        template: MondrianForest,
        growth: GrowthPlan,
        table: Part,
        classes: Any,
        *,
        trees: tuple[int, int],
        warms_up: bool,
        version: str,
    ) -> Self:
        """Draw some trees of a new forest."""
        check_version(version)
        forest = new_forest(template)
        new, n_rows = forest._new_rows(_received(table, classes))
        share = cls(forest, template.n_jobs)
        share._draw(growth, new, trees)
        forest._warming = forest._new_warm_up(n_rows, forest._warm_up()) if warms_up else None
        return share

    def _draw(self, growth: GrowthPlan, new: NewRows, trees: tuple[int, int]) -> None:
        """Draw new trees."""
        forest = self._with_threads()
        n_threads = forest._n_threads()
        model = forest._draw(growth, new, n_threads=n_threads, share=trees)
        if trees == (0, model.n_estimators):
            forest._select_discount(model, n_threads)
        forest._adopt(model, growth)

    def updated(self: Self, params: dict[str, Any], table: Part, classes: Any) -> Self:
        """A share with more rows."""
        share = self._copy()
        share._n_jobs = params["n_jobs"]
        share._forest.set_params(**params)
        forest = share._with_threads()
        forest._warm_up()  # checks it
        forest._update(_received(table, classes))
        return share

    def without(self: Self, ids: ArrayLike) -> Self:
        """A share without some rows."""
        share = self._copy()
        share._forest.forget(aligned(ids) if isinstance(ids, np.ndarray) else ids)
        return share

    def plan_again(self) -> GrowthPlan:
        """Learn anew from the rows of a forest that is in its warm-up."""
        forest = self._with_threads()
        return forest._plan(
            forest._stored_rows(),
            settings=forest._settings(),
            seed=forest._model.seed,
            n_threads=forest._n_threads(),
        )

    def grown_again(self: Self, growth: GrowthPlan) -> Self:
        """The share that has learned anew."""
        share = self._copy()
        forest = share._with_threads()
        before, warming = forest._model, forest._warming
        share._draw(growth, forest._stored_rows(), before.share)
        forest._model.set_annotation(before.annotation)
        if warming is not None:
            forest._warming = forest._new_warm_up(warming.n_rows, forest._warm_up())
        return share

    # -- reading ----------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """What the client knows of the forest."""
        forest = self._forest
        first, end = forest._model.share
        return {
            "n_trees": end - first,
            "n_rows": forest.n_rows_,
            "n_features_in": forest.n_features_in_,
            "feature_names_in": getattr(forest, "feature_names_in_", None),
            "is_to_learn_again": forest._is_to_learn_again(forest._warm_up()),
        }

    def ask(self, name: str) -> Any:
        """An attribute of the forest that no tree plays a part in."""
        return getattr(self._forest, name)

    def tree_hashes(self) -> bytes:
        """The hashes of these trees."""
        forest = self._with_threads()
        forest._model.flush(n_threads=forest._n_threads())
        return bytes(forest._model.tree_hashes())

    def digest(self, hashes: list[bytes]) -> str:
        """The digest of the whole forest."""
        return str(self._forest._model.digest_of(b"".join(hashes)))

    def one_machine(self) -> tuple[bytes, dict[str, Any]]:
        """The file of the whole forest, and what its estimator knows beside it."""
        state = without_lock(self._forest.__dict__)
        return state.pop("_model").to_bytes(), state

    # -- between workers --------------------------------------------------------------------------

    def __sizeof__(self) -> int:
        return int(self._forest._model.nbytes)

    def __getstate__(self) -> dict[str, Any]:
        data, attributes = self.one_machine()
        return {
            "class": type(self._forest),
            "attributes": attributes,
            "data": data,
            "share": self._forest._model.share,
            "n_jobs": self._n_jobs,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        forest: MondrianForest = object.__new__(state["class"])
        forest.__dict__.update(state["attributes"])
        self._forest, self._n_jobs = forest, state["n_jobs"]
        forest._model = forest._kind.model.share_from_bytes(
            state["data"], state["share"], n_threads=self._with_threads()._n_threads()
        )


class ClassifierShare(Share):
    """Trees that vote for classes."""

    _forest: MondrianForestClassifier

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "classes": self._forest.classes_,
            "class_counts": self._forest._class_counts(),
            "selects_discount": self._forest._selects_discount(self._forest._model),
        }

    def _n_outputs(self) -> int:
        return len(self._forest.classes_)

    def _predicted(self, X: Any) -> FloatArray:
        proba: FloatArray = self._with_threads()._predict_proba(X)
        return proba

    def _sums(
        self, model: Any, rows: Rows, common: Any, before: FloatArray | None, n_threads: int
    ) -> FloatArray:
        votes: FloatArray = model.add_votes(rows, before, n_threads=n_threads)
        return votes

    def _of_sums(
        self, model: Any, completions: Completions, common: Link, sums: FloatArray, n_threads: int
    ) -> FloatArray:
        rows = completions.rows
        return completions.mean(model.proba_of_votes(rows, sums, common, n_threads=n_threads))

    def complete(self, common: Any) -> None:
        self._forest._flushed()

    # What calibrates, and the discount, are fitted to rows that are left out.

    def calibrating(self) -> Ids:
        """The rows that calibrate."""
        ids: Ids = self._forest._model.calibrating_ids()
        return ids

    def judging(self) -> Ids:
        """The rows that judge discounts."""
        return judging_rows(self._forest._model)[0]

    def add_left_out(
        self, ids: Ids, discounts: list[float] | None, before: FloatArray | None
    ) -> FloatArray:
        """The votes for rows that are left out; for the forest's own discount by default."""
        forest = self._with_threads()
        model = forest._model
        forest._flush(model)
        votes: FloatArray = model.add_left_out_votes(
            aligned(ids),
            discounts or [model.discount],
            aligned(before),
            n_threads=forest._n_threads(),
        )
        return votes

    def link(self, votes: FloatArray) -> Link:
        """What calibrates, given all votes for the rows that do."""
        model = self._forest._model
        link: Link = model.links_of_votes([model.discount], aligned(votes))[0]
        return link

    def choose_discount(self, calibrating: FloatArray, judging: FloatArray) -> float:
        """The best discount, given all votes for the rows that calibrate and that judge."""
        model = self._forest._model
        links = model.links_of_votes(list(DISCOUNTS), aligned(calibrating))
        ids, columns, weights = judging_rows(model)
        proba = model.proba_of_left_out_votes(ids, aligned(judging), links)
        return best_discount(proba, columns, weights)

    def with_discount(self, discount: float) -> ClassifierShare:
        """A share with the discount that was chosen."""
        share = self._copy()
        share._forest._model.set_discount(discount)
        return share


class RegressorShare(Share):
    """Trees that predict mixtures of Gaussians."""

    _forest: MondrianForestRegressor

    def _n_outputs(self) -> int:
        return 2

    def _predicted(self, X: Any) -> FloatArray:
        return np.column_stack(self._with_threads().predict(X, return_std=True))

    def _sums(
        self, model: Any, rows: Rows, common: Any, before: FloatArray | None, n_threads: int
    ) -> FloatArray:
        model.complete(common, n_threads=n_threads)
        components: FloatArray = model.add_components(rows, before, n_threads=n_threads)
        return components

    def _of_sums(
        self, model: Any, completions: Completions, common: Any, sums: FloatArray, n_threads: int
    ) -> FloatArray:
        mean, variance = completions.mixed(*model.moments_of_components(sums))
        return np.column_stack([mean, np.sqrt(variance)])

    def complete(self, common: list[float] | None) -> None:
        forest = self._with_threads()
        forest._flushed()
        if common is not None:
            forest._model.complete(common, n_threads=forest._n_threads())

    def choose(self) -> list[float]:
        """What all trees are to know, chosen by the first of them."""
        forest = self._with_threads()
        forest._flushed()
        chosen: list[float] = forest._model.choose(n_threads=forest._n_threads())
        return chosen

    def hyperparameters(self) -> dict[str, float]:
        """The hyperparameters of a share that has all trees."""
        return self._with_threads().hyperparameters_  # type: ignore[no-any-return]
