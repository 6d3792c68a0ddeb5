"""Base of the forests from rows on disk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from boscage import _validation
from boscage._bases.estimator import Estimator
from boscage._bases.progress import progress_bar
from boscage._types import AnyArray, FloatArray, Label, Maps, Rows
from boscage.disk._growth import Growth, Passes, find_facts
from boscage.disk._memory import Costs, check_limit, giving_back
from boscage.disk._open import open_rows
from boscage.disk._rows import RowSource
from boscage.mondrian._forest.base import MondrianForest

Self = TypeVar("Self", bound="DiskForest")


class DiskForest(Estimator):
    """A forest without rows. Not for direct use."""

    _SAME: ClassVar[tuple[str, ...]] = (
        *("n_estimators", "lifetime", "min_samples_split", "feature_range", "feature_weights"),
        *("feature_maps", "random_state", "n_jobs", "verbose"),
    )
    """Parameters that mean what they do for the forest with rows."""

    memory_limit: int | str
    n_estimators: int
    lifetime: float
    min_samples_split: int
    feature_range: tuple[ArrayLike, ArrayLike] | None
    feature_weights: ArrayLike | Literal["learned"] | None
    feature_maps: Maps | None
    random_state: Any
    verbose: int | bool

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _template(self) -> MondrianForest:
        """The forest with rows that predicts the same."""

    @classmethod
    @abstractmethod
    def _own_params(cls, model: Any) -> dict[str, Any]:
        """The parameters of a model that not all forests have."""

    @abstractmethod
    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        """``y`` as a checked vector."""

    # -- learning ---------------------------------------------------------------------------------

    def fit(self: Self, X: Any, y: Any) -> Self:
        """Grow the forest in passes over the rows, within ``memory_limit``.

        Parameters
        ----------
        X : path-like or ndarray of shape (n_samples, n_features)
            Training rows, finite numbers: the path of a Parquet file, or of a folder of Parquet
            files of the same columns; the path of a ``.npy`` file; or an array, for example a
            `numpy.memmap`. Row groups of Parquet files should be small beside ``memory_limit``.
        y : str, path-like or ndarray of shape (n_samples,)
            The targets: for Parquet the name of their column, all other columns being features;
            else the path of a ``.npy`` file, or an array.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range; if a value is missing or not finite, a target is
            refused, or a Parquet file has other columns than the first; if the rows change
            during the fit. The message names the file and the row.
        TypeError
            If `X` or `y` is of a wrong type.
        MemoryError
            If the trees, the rows of a cell that cannot be cut, or what chooses feature weights or
            hyperparameters do not fit in ``memory_limit``.
        OSError
            If a file cannot be read.
        KeyboardInterrupt
            If interrupted. After any error the estimator is as it was before the call.
        """
        return self._fit_source(open_rows(X, y))

    def _fit_source(self: Self, source: RowSource) -> Self:
        with self._unchanged_on_error(), giving_back():
            limit, n_threads = check_limit(self.memory_limit), self._n_threads()
            template, seed = self._template(), _validation.draw_seed(self.random_state)
            template._settings()
            self._reset(source)
            costs = Costs(limit, source.n_features, 8, source.n_bytes_to_read)
            blocks = Passes(self, source, costs, template.n_estimators)
            facts = find_facts(blocks, is_classifier=hasattr(self, "predict_proba"))
            growth = Growth(template, blocks, facts, costs, seed, n_threads)
            with progress_bar("growing", self.verbose) as report:
                self._model = growth.grow(report)
            if self._model.n_rows != facts.n_rows:
                raise ValueError("the rows have changed during the fit: others were read last")
        return self

    def _reset(self, source: RowSource) -> None:
        """Take the number and the names of features over."""
        if not source.n_features:
            raise ValueError("X has no features")
        self.n_features_in_ = source.n_features
        self.__dict__.pop("feature_names_in_", None)
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)

    # -- rows to predict --------------------------------------------------------------------------

    def _known_categories(self) -> Mapping[int, Collection[Label | None]]:
        return {}

    def _check_rows(self, X: Any) -> Rows:
        rows, _ = self._read(X, reset=False)
        _validation.require_finite(rows, "X", self._names())
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.sparse = False
        return tags

    # -- what was learned -------------------------------------------------------------------------

    @property
    def n_rows_(self) -> int:
        """Number of training rows."""
        return int(self._require_model().n_rows)

    @property
    def nbytes_(self) -> int:
        """Memory of the trees in bytes."""
        return int(self._require_model().nbytes)

    @property
    def feature_range_(self) -> tuple[FloatArray, FloatArray]:
        """The reference ranges in use."""
        settings = self._require_model().settings
        return settings["low"], settings["high"]

    @property
    def feature_weights_(self) -> FloatArray:
        """The rates of cuts in use."""
        weights: FloatArray = self._require_model().settings["weights"]
        return weights

    @property
    def feature_maps_(self) -> Maps | None:
        """How each feature's rate is distributed along its range; None means evenly."""
        maps: Maps | None = self._require_model().settings["maps"]
        return maps

    # -- files ------------------------------------------------------------------------------------

    def _metadata(self) -> dict[str, Any]:
        return {"memory_limit": self.memory_limit}

    @classmethod
    def _from_model(
        cls: type[Self], model: Any, metadata: dict[str, Any], n_jobs: int | None
    ) -> Self:
        settings = model.settings
        limit = metadata.get("memory_limit")
        return cls(
            limit if isinstance(limit, (int, str)) else 0,
            **cls._own_params(model),
            n_estimators=settings["n_estimators"],
            lifetime=settings["lifetime"],
            min_samples_split=settings["min_samples_split"],
            feature_range=(settings["low"], settings["high"]),
            feature_weights=settings["weights"],
            feature_maps=settings["maps"],
            random_state=settings["seed"],
            n_jobs=n_jobs,
        )
