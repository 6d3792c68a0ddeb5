"""The data of stored model files, and the updates that continue the models in them."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from flat import flat
from generated import as_labels, rows_and_numbers
from golden import describe, exact
from reference.arrays import Array

N_FEATURES = 3

# The names in `expected.json` of parameters that have been renamed.
RECORDED_AS = {
    "max_features": "n_dimensions",
    "n_burn": "n_burn_in",
    "noise_share": "noise",
}


@dataclass(frozen=True)
class Data:
    """The data to which a stored model was fitted."""

    labels: str | None = None
    dtype: str = "float32"
    n: int = 32
    n_classes: int = 3
    named: bool = False
    seed: int = 11
    missing: bool = False
    categories: bool = False

    @property
    def x(self) -> Any:
        return self._table(self._rows(self.n, self.seed))

    @property
    def y(self) -> Array:
        return self._targets(self.n, self.seed)

    def more(self) -> tuple[Any, Array]:
        """Return rows that come later, one of them far away."""
        x = self._rows(5, self.seed + 100)
        x[4] *= 30.0
        return self._table(x), self._targets(5, self.seed + 100)

    def at(self) -> Any:
        """Return rows to predict: of the data, elsewhere, on both sides and far away."""
        own, others = self._rows(1, self.seed), self._rows(3, self.seed + 200)
        far = np.array([[1.5, 0.25, -0.5], [-40.0, 100.0, 0.5]], dtype=self.dtype)
        return self._table(np.concatenate([own, others, far]))

    def _rows(self, n: int, seed: int) -> Array:
        x = np.asarray(rows_and_numbers(n, N_FEATURES, seed, self.dtype)[0])
        if self.missing:
            x[np.random.default_rng(seed).random(x.shape) < 0.3] = np.nan
        return x

    def _table(self, x: Array) -> Any:
        if not (self.named or self.categories):
            return x
        import pandas as pd

        table = pd.DataFrame(x, columns=["a", "größe", "c"])
        if self.categories:
            # Those of later rows that lie far away are unknown.
            names = [None if np.isnan(value) else f"né {value // 0.25:.0f}" for value in x[:, 1]]
            table["größe"] = pd.Series(names, dtype=object)
        return table

    def _targets(self, n: int, seed: int) -> Array:
        _, y = rows_and_numbers(n, N_FEATURES, seed, self.dtype)
        if self.labels is None:
            return np.asarray(y)
        if self.n_classes == 2:
            y = np.where(y > 0.75, 2.0, 0.0)
        return as_labels(y, self.labels)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def settings_of(model: Any) -> dict[str, Any]:
    """Return the parameters of a model, under the names in `expected.json`.

    Parameters that have been renamed since are translated back here.
    """
    params = {name: _plain(value) for name, value in flat(model).items()}
    if type(model).__name__.startswith("Bayesian"):
        return {RECORDED_AS.get(name, name): value for name, value in params.items()}
    if "kernels" in params:
        params = {"sampler": params.pop("kernels")} | params
    return {name: value for name, value in params.items() if name not in ("shares", "warm_up")}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return exact(value)
    return exact(value) if isinstance(value, float) else value


def continued(model: Any, data: Data) -> dict[str, Any] | None:
    """Continue a model, if its kind allows this, and return its results then; else None."""
    if hasattr(model, "partial_fit"):
        if model.n_rows_:
            model.forget(model.ids_[[1, 5]])
        model.partial_fit(*data.more())
        return describe(model, data.at())
    if isinstance(model.random_state, int):  # else the parameters are not in the file
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return _longer(model, data)
    return None


def _longer(model: Any, data: Data) -> dict[str, Any]:
    if hasattr(model, "warm_start"):
        model.set_params(warm_start=True, n_draws=model.n_draws + 2).fit(data.x, data.y)
    else:
        model = clone(model).fit(data.x, data.y)
    return describe(model, data.at())
