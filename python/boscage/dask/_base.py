"""Base of the Mondrian forests on a Dask cluster: growing, updates and access to the forest."""

from __future__ import annotations

import copy
import inspect
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, ClassVar, TypeVar

import dask
import dask.array as da
import distributed
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from boscage import _validation
from boscage._input.ids import check_ids
from boscage._types import AnyArray
from boscage.dask import _shares
from boscage.dask._cells import changes
from boscage.dask._cells.forest import CellForest, refuse
from boscage.dask._cells.shares import CellShare
from boscage.dask._cluster import (
    Fitted,
    TreeForest,
    open_cluster,
    require_open,
    table_of,
    tree_ranges,
    wait_for,
)
from boscage.dask._partitions import partitions
from boscage.dask._shares import Share
from boscage.mondrian._forest.base import Given

Self = TypeVar("Self", bound="DaskForest")


class DaskForest(BaseEstimator):  # type: ignore[misc]
    """Base of the Mondrian forests on a Dask cluster. Not for direct use."""

    _one_machine: ClassVar[type[Any]]
    _share: ClassVar[type[Share]]
    _cell_share: ClassVar[type[CellShare]]

    _fitted: TreeForest | CellForest

    partition: str
    client: distributed.Client | None
    n_jobs: int | None
    random_state: Any

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the estimator the parameters of the one-machine estimator, and two more."""
        super().__init_subclass__(**options)
        own = list(inspect.signature(cls._one_machine.__init__).parameters.values())
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in (("partition", "trees"), ("client", None))
        ]
        signature = inspect.Signature([*own, *more])

        def __init__(self: Any, *args: Any, **params: Any) -> None:
            bound = signature.bind(self, *args, **params)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[method-assign]

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _with_common(self, fitted: TreeForest, *, is_new: bool) -> TreeForest:
        """The same forest with `TreeForest.common`; `is_new` if its trees were grown just now."""

    def _check_whole(self, fitted: Fitted) -> None:
        """Refuse parameters that do not fit the rows of a whole `fit`."""

    # -- learning ---------------------------------------------------------------------------------

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None, *, ids: Any = None) -> Self:
        """Grow a new forest on the workers of the cluster.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
            Training rows; finite numbers, or NaN for missing values.
        y : dask.array.Array, dask.dataframe.Series or DataFrame of shape (n_samples,)
            Targets, in partitions of the same lengths as those of `X`.
        sample_weight : dask.array.Array or dask.dataframe.Series, default=None
            As how many rows each row counts: 0, or from 1e-12 to 1e9; of shape (n_samples,). None
            means 1.
        ids : the same as `y`, default=None
            Names of rows, which `forget` takes. None numbers the rows from 0, over the partitions
            in their order.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range or not offered with ``partition="cells"``, there is no
            client or no worker, or a partition is refused: it has other columns than the others,
            holds infinity, or an id that occurs twice. The message names the partition, counted
            from 0, and the row.
        TypeError
            If `X` or `y` is not a Dask collection, or a partition is of another type.
        RuntimeError
            If a worker has another version of the library, or none, or the client is closed.
        """
        fitted = self._grown(Given(X, y, ids, sample_weight), warms_up=False)
        self._check_whole(fitted)
        self._fitted = fitted
        return self

    def forget(self: Self, ids: ArrayLike) -> Self:
        """Remove rows from the forest, as if it had never seen them.

        Parameters
        ----------
        ids : int, str, UUID or array-like of them
            The rows, by the ids that were given or by number.

        Returns
        -------
        self

        Raises
        ------
        KeyError
            If there is no row of that number. No row is removed then.
        TypeError
            If an id is neither an integer, nor text, nor a UUID.
        ValueError
            If an id occurs twice, or no row would be left and the cells of the forest are apart.
        sklearn.exceptions.NotFittedError
            If the forest is not fitted.
        RuntimeError
            If the client is closed.
        """
        before = self._require_fitted()
        check_ids(ids)
        if isinstance(before, CellForest):
            self._fitted = changes.forget_rows(before, ids)
        else:
            self._fitted = self._updated(before, self._share.without, ids)
        return self

    def _partial_fit(self, given: Given) -> None:
        template = self._template()
        template._warm_up()  # checks it
        if not hasattr(self, "_fitted"):
            self._fitted = self._grown(given, warms_up=True)
            return
        before = self._require_fitted()
        self._require_same_partition(before)
        if isinstance(before, CellForest):
            refuse(template, self._cell_share)
            self._fitted = changes.add_rows(before, template, given)
            return
        self._check_still_shared_out(template, before)
        table = table_of(before.client, template, given)
        params = template.get_params(deep=False)
        after = self._updated(before, self._share.updated, params, table, given.classes)
        if after.facts["is_to_learn_again"]:
            plan = after.ask(0, self._share.plan_again)
            after = self._updated(after, self._share.grown_again, plan, is_new=True)
        self._fitted = after

    def _grown(self, given: Given, *, warms_up: bool) -> TreeForest | CellForest:
        _validation.check_choice("partition", self.partition, ("trees", "cells"))
        template = self._template()
        settings = template._settings()
        template._window()
        template._n_threads()
        if self.partition == "cells":
            refuse(template, self._cell_share)
        client, workers = open_cluster(self.client)
        if self.partition == "cells":
            seed, own = _validation.draw_seed(self.random_state), self._cell_share
            return changes.fit(
                template, own, given, client, tuple(workers), seed=seed, warms_up=warms_up
            )
        n_first = template._n_trees_to_choose(settings)
        trees = tree_ranges(settings["n_estimators"], len(workers), n_first)
        workers = workers[: len(trees)]
        table = table_of(client, template, given)
        classes = given.classes
        seed = _validation.draw_seed(self.random_state)
        where = [
            {"workers": [worker], "allow_other_workers": True, "pure": False} for worker in workers
        ]
        plan = client.submit(_shares.plan, template, table, classes, seed, **where[0])
        rest = {"warms_up": warms_up, "version": _shares.VERSION}
        shares = [
            client.submit(
                self._share.grow, template, plan, table, classes, trees=own, **rest, **place
            )
            for own, place in zip(trees, where, strict=True)
        ]
        return self._completed(client, workers, shares, is_new=True)

    def _updated(
        self, before: TreeForest, change: Callable[..., Share], *args: Any, is_new: bool = False
    ) -> TreeForest:
        """The forest whose shares are those of another one after a change."""
        shares = before.each(change, *args)
        return self._completed(before.client, before.workers, shares, is_new=is_new)

    def _completed(
        self,
        client: distributed.Client,
        workers: Sequence[str],
        shares: Sequence[Any],
        *,
        is_new: bool,
    ) -> TreeForest:
        """The forest of new shares, once all are there; raises the first error of a share."""
        wait_for(shares)
        fitted = TreeForest(client, tuple(workers), tuple(shares), {})
        facts = fitted.ask(0, self._share.facts).result()
        fitted = replace(fitted, facts=facts)
        if facts["is_to_learn_again"]:  # its trees will be replaced
            return fitted
        if len(shares) > 1 and facts["n_rows"] > 0:
            fitted = self._with_common(fitted, is_new=is_new)
        wait_for(fitted.each(self._share.complete, fitted.common))
        return fitted

    def _template(self) -> Any:
        """An unfitted one-machine forest with the same parameters."""
        params = self.get_params(deep=False)
        del params["partition"], params["client"]
        return self._one_machine(**params | {"verbose": 0})

    def _check_still_shared_out(self, template: Any, before: TreeForest) -> None:
        """Refuse parameters for which one worker needs more of the trees than it has."""
        needed = template._n_trees_to_choose(template._settings())
        found = before.facts["n_trees"]
        if found < needed:
            names = ("posterior", "hyperparameters")
            own = [
                f"{name}={getattr(template, name)!r}" for name in names if hasattr(template, name)
            ]
            raise ValueError(
                f"with {' and '.join(own)} one worker needs the first {needed} trees, and it has "
                f"{found}: call fit to grow them anew"
            )

    # -- the cluster ------------------------------------------------------------------------------

    def _require_fitted(self) -> TreeForest | CellForest:
        if not hasattr(self, "_fitted"):
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet; call fit or partial_fit first"
            )
        require_open(self._fitted.client)
        return self._fitted

    def _require_same_partition(self, fitted: TreeForest | CellForest) -> None:
        """Refuse to add rows to a forest that is shared out in another way."""
        before = "cells" if isinstance(fitted, CellForest) else "trees"
        if self.partition != before:
            raise ValueError(
                f"partition was {before!r} when the forest was grown and is {self.partition!r} "
                "now; call fit to grow a new forest, or set it back to continue with this one"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_clone__(self: Self) -> Self:
        """An unfitted estimator with the same parameters and the same client."""
        params = self.get_params(deep=False)
        client = params.pop("client")
        return type(self)(**copy.deepcopy(params), client=client)

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_fitted"):
            raise TypeError(
                "a forest on a cluster cannot be pickled or copied: collect() makes one that can"
            )
        state = dict(super().__getstate__())
        state["client"] = None
        return state

    # -- prediction -------------------------------------------------------------------------------

    def _by_partition(self, X: Any, n_columns: int) -> da.Array:
        """Predictions as a Dask array, which computes them when it is computed."""
        fitted = self._require_fitted()
        if fitted.facts["n_rows"] == 0:
            raise NotFittedError(f"This {type(self).__name__} has forgotten all its rows")
        parts, lengths = partitions(X, "X")
        blocks = []
        for number, (part, length) in enumerate(zip(parts, lengths, strict=True)):
            shape = (length if np.isnan(length) else int(length), n_columns)
            blocks.append(
                da.from_delayed(
                    self._prediction(fitted, part, number, n_columns),
                    shape=shape,
                    meta=np.empty((0, n_columns)),
                )
            )
        return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)

    def _prediction(
        self, fitted: TreeForest | CellForest, part: Any, number: int, n_columns: int
    ) -> Any:
        if isinstance(fitted, CellForest):
            return fitted.prediction(part, number, n_columns)
        predicted, add, finish = (
            dask.delayed(task, pure=False)
            for task in (self._share.predicted, self._share.add, self._share.finish)
        )
        *others, last = fitted.shares
        if not others:
            return predicted(last, part, number)
        sums = None
        for share in others:
            sums = add(share, fitted.common, part, sums, number)
        return finish(last, fitted.common, part, sums, number)

    # -- the forest -------------------------------------------------------------------------------

    def digest(self) -> str:
        """Return the hash of the settings, the rows' contents and the trees.

        It equals that of the one-machine forest on the same rows.

        Returns
        -------
        str
            Hexadecimal digits.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted.
        RuntimeError
            If the client is closed.
        """
        fitted = self._require_fitted()
        if isinstance(fitted, CellForest):
            return fitted.digest()
        hashes = fitted.each(self._share.tree_hashes)
        return str(fitted.ask(0, self._share.digest, hashes).result())

    def collect(self) -> Any:
        """Return the one-machine forest: the same trees, rows and predictions in this process.

        Its rows travel here, and its trees are grown again from them, with ``n_jobs`` threads.

        Returns
        -------
        boscage.MondrianForestClassifier or boscage.MondrianForestRegressor

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted.
        RuntimeError
            If the client is closed.
        """
        forest, fitted = self._template(), self._require_fitted()
        if isinstance(fitted, CellForest):
            return fitted.one_machine(forest)
        data, attributes = self._ask_share(self._share.one_machine)
        own = {name: value for name, value in attributes.items() if name.startswith("_")}
        forest.__dict__.update(own)
        for name in ("n_features_in_", "feature_names_in_"):
            if name in attributes:
                setattr(forest, name, attributes[name])
        forest._model = forest._kind.model.from_bytes(data, n_threads=forest._n_threads())
        return forest

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Save the one-machine forest to a file, which `boscage.load` reads on any machine.

        Parameters
        ----------
        file : path-like or binary file
            See the one-machine forest's ``save``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted.
        RuntimeError
            If the client is closed.
        OSError
            If the file cannot be written.
        """
        self.collect().save(file)

    def _ask_share(self, task: Any, *args: Any) -> Any:
        """What the first share answers."""
        fitted = self._require_fitted()
        if isinstance(fitted, CellForest):
            return fitted.facts[args[0]]
        return fitted.ask(0, task, *args).result()

    @property
    def n_rows_(self) -> int:
        """The number of training rows in the forest."""
        return int(self._require_fitted().facts["n_rows"])

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return int(self._require_fitted().facts["n_features_in"])

    @property
    def feature_names_in_(self) -> AnyArray:
        """The names of the features, if `X` was a data frame whose column names are strings."""
        names: AnyArray | None = self._require_fitted().facts["feature_names_in"]
        if names is None:
            raise AttributeError("feature_names_in_ exists for data frames only")
        return names

    @property
    def min_samples_split_(self) -> int:
        """The least number of rows of a split."""
        return int(self._ask_share(self._share.ask, "min_samples_split_"))

    @property
    def feature_weights_(self) -> AnyArray:
        """The rate of cuts in each feature, in units of one over its reference range."""
        weights: AnyArray = self._ask_share(self._share.ask, "feature_weights_")
        return weights

    @property
    def feature_importances_(self) -> AnyArray:
        """Importance of each feature; they sum to one. With ``feature_weights="learned"`` only."""
        if not isinstance(self.feature_weights, str):
            raise AttributeError(
                "on a cluster feature_importances_ exists for feature_weights='learned' only; the "
                "forest that collect() returns has them always"
            )
        importances: AnyArray = self._ask_share(self._share.ask, "feature_importances_")
        return importances

    @property
    def categories_(self) -> list[dict[Any, float] | None] | None:
        """The place of each category of each feature; None if no feature is categorical."""
        categories: list[dict[Any, float] | None] | None = self._ask_share(
            self._share.ask, "categories_"
        )
        return categories

    @property
    def workers_(self) -> list[str]:
        """The addresses of the workers that were given a share of the trees, in their order."""
        return list(self._require_fitted().workers)
