"""``boscage fit --memory-limit``: a forest without rows, grown in passes over a table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boscage import disk
from boscage._cli.errors import UserError
from boscage._cli.estimators import CLASSIFICATION, OPTIONS, REGRESSION, Parameters
from boscage._cli.models import Model
from boscage._cli.reading.sources import Source
from boscage._cli.reading.tables import Chunk
from boscage._cli.wording import in_flags
from boscage.disk._rows import Block, file_stamps

#: The only values of options, which a forest without rows has anyway.
_ONLY = {
    "predictive": "realised",
    "calibration": None,
    "class_weight": None,
    "noise": "global",
    "trend": None,
}
#: The only posterior by task.
_POSTERIORS = {CLASSIFICATION: "kneser-ney", REGRESSION: "exact"}
_FORESTS: dict[str, Any] = {
    CLASSIFICATION: disk.MondrianForestClassifier,
    REGRESSION: disk.MondrianForestRegressor,
}
#: Options that it takes.
_TAKEN = (
    "n_estimators",
    "lifetime",
    "min_samples_split",
    "feature_range",
    "feature_weights",
    "discount",
    "hyperparameters",
    "noise_variance",
    "prior_scale",
)


def check_options(args: argparse.Namespace, given: Parameters) -> None:
    """Refuse what is not offered with a limit."""
    if args.model != "mondrian":
        raise UserError(f"--memory-limit is for --model mondrian, this is {args.model}")
    for name, option in ((args.id_column, "--id-column"), (args.weight, "--weight")):
        if name is not None:
            raise UserError(f"{option}: --memory-limit keeps no rows, and takes all alike")
    for name, value in given.items():
        flag = OPTIONS[name][0].flag
        if name in _ONLY and value != _ONLY[name]:
            only = _ONLY[name] or "none"
            raise UserError(f"{flag} {value}: with --memory-limit only {flag} {only} is offered")
        if name not in (*_ONLY, *_TAKEN, "posterior") or (
            name == "discount" and isinstance(value, str)
        ):
            raise UserError(f"{flag}: not offered with --memory-limit")


def check_table(source: Source, categorical: Sequence[str]) -> None:
    """Refuse tables that cannot be read again, or whose features are not all numbers."""
    if not source.can_reread:
        raise UserError(f"{source.name}: --memory-limit reads a table several times: give a file")
    if categorical:
        raise UserError(
            f"{source.name}: column {categorical[0]!r} holds categories, which --memory-limit does "
            "not take: leave it out by --drop"
        )


def fit(memory_limit: str, task: str, settings: Parameters, rows: TableRows) -> Model:
    """The model of all rows of a table."""
    only = _POSTERIORS[task]
    if (found := settings.get("posterior", only)) != only:
        raise UserError(
            f"--posterior {found}: for {task} with --memory-limit only --posterior {only} is "
            "offered"
        )
    own = {name: value for name, value in settings.items() if name not in (*_ONLY, "posterior")}
    model = _FORESTS[task](memory_limit, **own, verbose=1)
    try:
        return model._fit_source(rows).set_params(verbose=0)
    except (ValueError, MemoryError) as error:
        raise UserError(in_flags(str(error))) from error


class TableRows:
    """The rows of a table, block by block."""

    def __init__(
        self,
        source: Source,
        features: list[str],
        target: str,
        labels_of: Callable[[Chunk], NDArray[Any]],
    ) -> None:
        self._source, self._target, self._labels_of = source, target, labels_of
        self.feature_names = features
        self.n_features = len(features)
        self.n_bytes_to_read = source.n_bytes_to_read

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """All rows, in blocks of at most so many."""
        for chunk in self._source.chunks([*self.feature_names, self._target], n_rows):
            X = np.empty((len(chunk), self.n_features))
            for number, name in enumerate(self.feature_names):
                X[:, number] = chunk.numbers(name).to_numpy(zero_copy_only=False)
            yield Block(chunk.rows, X, self._labels_of(chunk))

    def stamp(self) -> Any:
        """Sizes and times of the files."""
        return file_stamps(self._source.files)
