"""``boscage predict``: predictions with their uncertainty, for a table's rows."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from boscage import MondrianForestClassifier, MondrianForestRegressor
from boscage._cli import models
from boscage._cli.errors import UserError, blaming
from boscage._cli.sinks import Sink
from boscage._cli.sources import Source
from boscage._cli.terminal import progress

#: Rows that are predicted at a time: a regressor's mixtures have thousands of components a row.
SLICE = 2048


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    model = models.load(args.model, args.n_jobs)
    predict: Callable[[Any], dict[str, Any]]
    if isinstance(model, MondrianForestClassifier):
        if args.interval is not None or args.quantiles:
            raise UserError(f"{args.model}: a classifier has no --interval and no --quantiles")
        predict = _classes(model)
    else:
        predict = _numbers(model, args.interval or 0.9, args.quantiles or [])
    source = Source(args.table, args.delimiter)
    source.require(*args.keep, why="to be copied")
    features = models.feature_columns(model, source, args.features, args.keep)
    wanted = list(dict.fromkeys([*args.keep, *features]))
    with Sink(args.output) as sink, progress("predicting", source.n_rows) as bar:
        for chunk in source.chunks(wanted, min(args.chunk_rows, SLICE)):
            kept = {name: chunk.column(name) for name in args.keep}
            X = models.features(model, chunk, features)
            with blaming(chunk.rows):
                columns = kept | predict(X)
            sink.write(pa.table(columns))
            bar.update(len(chunk))


def _classes(model: MondrianForestClassifier) -> Callable[[Any], dict[str, Any]]:
    classes = np.asarray(model.classes_)

    def predict(X: Any) -> dict[str, Any]:
        probabilities = np.asarray(model.predict_proba(X))
        columns = {"prediction": classes[np.argmax(probabilities, axis=1)]}
        for k, label in enumerate(classes):
            columns[f"probability_{label}"] = probabilities[:, k]
        return columns

    return predict


def _numbers(
    model: MondrianForestRegressor, coverage: float, quantiles: list[float]
) -> Callable[[Any], dict[str, Any]]:
    def predict(X: Any) -> dict[str, Any]:
        mixture = model.predict_dist(X)
        lower, upper = mixture.interval(coverage)
        columns = {
            "prediction": mixture.mean,
            "std": mixture.std,
            "lower": lower,
            "upper": upper,
        }
        for q in quantiles:
            columns[f"quantile_{q:g}"] = mixture.quantile(q)
        return columns

    return predict
