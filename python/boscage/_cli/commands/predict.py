"""``boscage predict``: predictions with their uncertainty, for a table's rows."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pyarrow as pa

from boscage._cli import models
from boscage._cli.errors import UserError, blaming
from boscage._cli.outputs import require_writable
from boscage._cli.reading import columns
from boscage._cli.reading.sources import STDIN, Source
from boscage._cli.sinks import Sink
from boscage._cli.terminal import progress

#: Rows that are predicted at a time: a regressor's mixtures have thousands of components a row, and
#: eight times as many if the row lacks values.
SLICE = 256
COVERAGE = 0.9


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    if args.output not in (None, STDIN):
        require_writable(args.output, model=args.model, table=args.table)
    model = models.load_with_rows(args.model, args.n_jobs)
    predictor: Classes | Numbers
    if models.is_classifier(model):
        if args.interval is not None or args.quantiles:
            raise UserError(f"{args.model}: a classifier has no --interval and no --quantiles")
        predictor = Classes(model)
    else:
        predictor = Numbers(model, args.interval or COVERAGE, args.quantiles or [])
    source = Source(args.table, args.delimiter)
    source.require(*args.keep, why="to be copied")
    columns.require_once("--keep", args.keep)
    if both := [name for name in args.keep if name in predictor.columns]:
        raise UserError(f"--keep: {both[0]!r} is the name of a column of predictions")
    features = columns.find(model, source, args.features, {}, left_out=args.keep)
    wanted = list(dict.fromkeys([*args.keep, *features]))
    n_rows = 0
    with Sink(args.output) as sink, progress("predicting", source.n_rows) as bar:
        for chunk in source.chunks(wanted, min(args.chunk_rows, SLICE)):
            copied = {name: chunk.column(name) for name in args.keep}
            X = columns.features(model, chunk, features)
            with blaming(chunk.rows):
                predicted = predictor.predict(X)
            sink.write(pa.table(copied | predicted))
            n_rows += len(chunk)
            bar.update(len(chunk))
        if not n_rows:
            copied = dict.fromkeys(args.keep, pa.array([], pa.string()))
            sink.write(pa.table(copied | predictor.columns))


class Classes:
    """The most probable class, and the probability of each.

    Attributes
    ----------
    columns : dict
        The columns of predictions, of no rows.
    """

    def __init__(self, model: models.Model) -> None:
        self._model = model
        self._classes = np.asarray(model.classes_)
        names = [f"probability_{label}" for label in self._classes]
        self.columns = {"prediction": self._classes[:0]} | dict.fromkeys(names, np.empty(0))

    def predict(self, X: Any) -> dict[str, Any]:
        """The columns for some rows."""
        probabilities = np.asarray(self._model.predict_proba(X))
        found = [self._classes[np.argmax(probabilities, axis=1)], *probabilities.T]
        return dict(zip(self.columns, found, strict=True))


class Numbers:
    """Mean, standard deviation, an interval and quantiles of the predictive distribution.

    Attributes
    ----------
    columns : dict
        The columns of predictions, of no rows.
    """

    def __init__(self, model: models.Model, coverage: float, quantiles: list[float]) -> None:
        self._model = model
        self._coverage = coverage
        self._quantiles = list(dict.fromkeys(quantiles))
        names = ["prediction", "std", "lower", "upper", *(f"quantile_{q}" for q in quantiles)]
        self.columns = dict.fromkeys(names, np.empty(0))

    def predict(self, X: Any) -> dict[str, Any]:
        """The columns for some rows."""
        dist = self._model.predict_dist(X)
        found = [dist.mean, dist.std, *dist.interval(self._coverage)]
        found += [dist.quantile(q) for q in self._quantiles]
        return dict(zip(self.columns, found, strict=True))
