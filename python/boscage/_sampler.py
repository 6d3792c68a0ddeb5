"""What all samplers of trees share: fitting, and the parameters in a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from boscage import _validation
from boscage._estimator import KeptModel
from boscage._progress import progress_bar
from boscage._types import AnyArray, Rows

Self = TypeVar("Self", bound="SampledModel")


class SampledModel(KeptModel):
    """Base of estimators whose model holds draws of a posterior; not for direct use."""

    random_state: Any
    verbose: int | bool

    # -- what the subclasses say ------------------------------------------------------------------

    @abstractmethod
    def _settings(self, seed: int) -> Any:
        """Checked settings of the sampler, compiled."""

    @abstractmethod
    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        """``y`` as a checked vector."""

    @abstractmethod
    def _sample(self, rows: Rows, target: AnyArray, settings: Any, options: dict[str, Any]) -> Any:
        """A compiled model of the rows; `options` are those of `_fit`, threads and progress."""

    @classmethod
    def _params_of(cls, model: Any) -> dict[str, Any]:
        """Those parameters that a model tells."""
        return {}

    # -- learning ---------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, **more: Any) -> None:
        settings = self._settings(_validation.draw_seed(self.random_state))
        n_threads = _validation.n_threads(self.n_jobs)
        with self._unchanged_on_error():
            # A fit that goes on must be of the same features.
            rows = _validation.check_rows(self, X, reset=more.get("start") is None)
            target = self._check_target(y, len(rows))
            with progress_bar("sampling", self.verbose) as progress:
                options = {"n_threads": n_threads, "progress": progress} | more
                self._model = self._sample(rows, target, settings, options)

    # -- access to the model ----------------------------------------------------------------------

    def _query(self, X: Any) -> tuple[Any, Rows, int]:
        """The model, checked rows to predict for, and the threads to do it with."""
        model = self._require_model()
        rows = _validation.check_rows(self, X, reset=False)
        return model, rows, _validation.n_threads(self.n_jobs)

    def _to_arviz(self, groups: dict[str, dict[str, AnyArray]], by_feature: Sequence[str]) -> Any:
        """Groups of draws, of shape (n_chains, n_draws), as ArviZ's data tree.

        Those called as in `by_feature` have a third dimension, of features.
        """
        try:
            import arviz_base
        except ImportError as error:
            raise ImportError(
                'to_arviz needs arviz-base, which is not installed: pip install "boscage[arviz]"'
            ) from error
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        dims = {name: ["feature"] for name in by_feature}
        return arviz_base.from_dict(groups, dims=dims, coords={"feature": list(names)})

    # -- files ------------------------------------------------------------------------------------

    def _notes(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        return {"params": {name: _plain(value) for name, value in params.items()}}

    @classmethod
    def _around(cls: type[Self], model: Any, notes: dict[str, Any], n_jobs: int | None) -> Self:
        noted = notes.get("params")
        names = cls._get_param_names()
        params = cls._params_of(model)
        if isinstance(noted, dict) and set(names) <= set(noted):
            params |= {name: _with_tuples(noted[name]) for name in names}
        return cls(**(params | {"n_jobs": n_jobs}))


def _plain(value: Any) -> Any:
    """A parameter as JSON knows it; None for what it does not know."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value if isinstance(value, (bool, int, float, str)) else None


def _with_tuples(value: Any) -> Any:
    """A list of JSON as the tuple that it was."""
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
