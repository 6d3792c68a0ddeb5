"""Base of the estimators that hold draws from a posterior: fitting, diagnostics and files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from boscage import _validation
from boscage._bases.chains import Chains
from boscage._bases.progress import progress_bar
from boscage._bases.settings import Settings
from boscage._input import codes
from boscage._input.columns import dense
from boscage._input.row_weights import check_sample_weight
from boscage._types import AnyArray, FloatArray, Label, Rows

Self = TypeVar("Self", bound="PosteriorSampler")


class PosteriorSampler(Chains):
    """Base of estimators whose model holds draws from a posterior. Not for direct use."""

    #: The parameter that takes a settings object, and the classes of such objects.
    _settings_param: ClassVar[str]
    _settings_classes: ClassVar[tuple[type[Settings], ...]]

    _check_weights = staticmethod(check_sample_weight)

    # The categories of features, as codes count them.
    _labels: codes.Labels

    random_state: Any
    verbose: int | bool

    # -- to be implemented by subclasses ----------------------------------------------------------

    @classmethod
    @abstractmethod
    def _as_settings(cls, value: Any) -> Settings:
        """The settings object that a value of the parameter `_settings_param` stands for."""

    @abstractmethod
    def _compile_settings(self, seed: int, n_features: int) -> Any:
        """The settings, checked, as the compiled module takes them for so many features."""

    @abstractmethod
    def _parts(self) -> Sequence[int | None]:
        """The numbers of the chains or islands; None alone if they cannot be sampled apart."""

    @abstractmethod
    def _join(self, models: list[Any]) -> Any:
        """The compiled model of all chains or islands, given those of each."""

    @abstractmethod
    def _warn_if_doubtful(self, *, stacklevel: int) -> None:
        """Warn if the sampler itself shows that it should have run longer."""

    @abstractmethod
    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        """``y`` as a checked vector."""

    @abstractmethod
    def _sample(self, rows: Rows, target: AnyArray, settings: Any, options: dict[str, Any]) -> Any:
        """A compiled model fitted to the rows.

        `options` are those passed to `_fit`, with the number of threads and the progress report.
        """

    def _continues(self) -> bool:
        """Whether a fit continues the chains of the one before."""
        return False

    @classmethod
    def _params_of(cls, model: Any) -> dict[str, Any]:
        """The parameters that can be read off a compiled model."""
        return {}

    # -- parameters -------------------------------------------------------------------------------

    def set_params(self: Self, **params: Any) -> Self:
        """Set parameters of the estimator.

        Parameters
        ----------
        **params
            Parameters by name. Nested parameters, such as ``sampler__n_particles``, change the
            settings object; where that parameter holds a name such as ``"smc"``, the object with
            that name's defaults takes its place first.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is no such parameter.
        """
        name = self._settings_param
        if any(key.startswith(f"{name}__") for key in params):
            params[name] = self._as_settings(params.get(name, getattr(self, name)))
        before = getattr(self, name)
        try:
            super().set_params(**params)
        except ValueError:
            setattr(self, name, before)
            raise
        return self

    # -- learning ---------------------------------------------------------------------------------

    def _fit_part(self, X: Any, y: Any, part: int | None, **more: Any) -> None:
        """Sample one chain or island alone, or all of them."""
        self._fit(X, y, part=part, **more)

    def _adopt(self: Self, parts: list[Self]) -> None:
        """Become what one fit of all chains or islands gives, given fits of each."""
        names = self.get_params(deep=False)
        models = [part._model for part in parts]
        model = models[0] if len(models) == 1 else self._join(models)
        own = {name: value for name, value in self.__dict__.items() if name in names}
        learned = {name: value for name, value in parts[0].__dict__.items() if name not in names}
        self.__dict__ = own | learned | {"_model": model}

    def _fit(
        self, X: Any, y: Any, *, sample_weight: Any, part: int | None = None, **more: Any
    ) -> None:
        seed = _validation.draw_seed(self.random_state)
        n_threads = self._n_threads()
        _validation.check_verbose(self.verbose)
        with self._unchanged_on_error():
            # A fit that continues must be of the same features.
            is_new = more.get("start") is None
            rows, columns = self._read(X, reset=is_new)
            settings = self._compile_settings(seed, rows.shape[1])
            if part is not None:
                settings = settings.only(part)
            target = self._check_target(y, rows.shape[0])
            kept, more["weights"] = self._check_weights(sample_weight, rows.shape[0])
            if kept is not None:
                rows, target = rows[kept], target[kept]
                columns = {feature: each.of(kept) for feature, each in columns.items()}
            if is_new:
                self._labels = {feature: each.labels for feature, each in columns.items()}
            self._check_whole_target(target)
            rows = codes.put_codes(rows, columns, self._labels)
            if self._labels:
                more["n_categories"] = codes.counts(self._labels, rows.shape[1])
            with progress_bar("sampling", self.verbose) as progress:
                options = {"n_threads": n_threads, "progress": progress} | more
                self._model = self._sample(rows, target, settings, options)

    # -- rows -------------------------------------------------------------------------------------

    def _known_categories(self) -> Mapping[int, Collection[Label | None]]:
        return self._labels

    def _keeps_sparse(self, X: Any, *, reset: bool) -> bool:
        return self._is_sparse_of_numbers(X, reset=reset)

    def _check_rows(self, X: Any) -> Rows:
        rows, columns = self._read(X, reset=False)
        return codes.put_codes(rows, columns, self._labels)

    def _query(self, X: Any) -> tuple[Any, Rows, int]:
        model, rows, n_threads = super()._query(X)
        self._require_known(rows)
        return model, rows, n_threads

    def _require_known(self, rows: Rows) -> None:
        """Refuse checked rows that lack a number, if the model is from a file without sides."""
        if self._model.takes_missing:
            return
        why = ", since the file of the model does not say to which side missing values go"
        _validation.require_finite(rows, "X", self._names(), why=why)

    def _shown(self, rows: Rows) -> AnyArray:
        """Checked rows with the names of categories; None where one is missing or unknown."""
        return codes.named(np.asarray(dense(rows)), self._labels)

    @property
    def categories_(self) -> list[list[Label] | None] | None:
        """For each feature the categories of its training rows, or None; None if none has any."""
        self._require_model()
        if not self._labels:
            return None
        return [self._labels.get(feature) for feature in range(self.n_features_in_)]

    # -- the posterior ----------------------------------------------------------------------------

    def _cut_shares(self) -> FloatArray:
        """For each tree or draw, the share of splits on each feature; zeros if it has no splits."""
        cuts = self._require_model().cuts()
        shares: FloatArray = cuts / np.maximum(cuts.sum(axis=1, keepdims=True), 1)
        return shares

    # -- files ------------------------------------------------------------------------------------

    def _metadata(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        metadata: dict[str, Any] = {
            "params": {name: _to_json(value) for name, value in params.items()}
        }
        if self._labels:
            metadata["categories"] = codes.to_json(self._labels)
        return metadata

    @classmethod
    def _from_model(
        cls: type[Self], model: Any, metadata: dict[str, Any], n_jobs: int | None
    ) -> Self:
        params = cls._params_of(model)
        saved = metadata.get("params")
        if isinstance(saved, dict):
            saved = cls._nested(_with_tuples(saved))
            params |= {name: saved[name] for name in cls._get_param_names() if name in saved}
            own = cls._settings_param
            if own in params:
                params[own] = _settings_from_json(params[own], cls._settings_classes)
        estimator = cls(**(params | {"n_jobs": n_jobs}))
        estimator._labels = codes.from_json(metadata.get("categories"), model.n_categories)
        return estimator

    @classmethod
    def _nested(cls, saved: dict[str, Any]) -> dict[str, Any]:
        """Saved parameters, with those of settings in an object.

        The first files have them side by side with the other parameters.
        """
        return saved


def _to_json(value: Any) -> Any:
    """A parameter as JSON holds it; None for what JSON cannot hold."""
    if isinstance(value, Settings):
        # Of a user's subclass, what it has in common with ours.
        kind = next(kind for kind in type(value).__mro__ if kind.__module__.startswith("boscage."))
        return {"class": kind.__name__, "params": _to_json(value.get_params(deep=False))}
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _to_json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(part) for part in value]
    return value if isinstance(value, (bool, int, float, str)) else None


def _with_tuples(value: Any) -> Any:
    """A value read from JSON with its lists as tuples."""
    if isinstance(value, dict):
        return {name: _with_tuples(part) for name, part in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _settings_from_json(value: Any, classes: tuple[type[Settings], ...]) -> Any:
    """The settings object that `_to_json` wrote; other values as they are."""
    if not isinstance(value, dict) or set(value) != {"class", "params"}:
        return value
    for kind in classes:
        if kind.__name__ == value["class"] and isinstance(value["params"], dict):
            saved = value["params"]
            return kind(**{name: saved[name] for name in kind._get_param_names() if name in saved})
    return value
