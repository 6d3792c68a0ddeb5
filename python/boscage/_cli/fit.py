"""``boscage fit``: train a model on a table.

A table that fits into one chunk is one `fit`. A larger one is read twice: first for the features'
ranges and the kind of labels, so that the model is the one that a single `fit` on all rows gives
and a bad value is found before any training; then chunk by chunk into the model. Standard input
can be read once, so its first chunk decides.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from boscage import MondrianForestClassifier, MondrianForestRegressor
from boscage._cli import models
from boscage._cli.arguments import CLASSIFICATION, MOST_CLASSES, ONLY_FOR, REGRESSION
from boscage._cli.errors import UserError, require_folder
from boscage._cli.labels import Kind
from boscage._cli.sources import Source
from boscage._cli.tables import Chunk
from boscage._cli.terminal import progress, remark


@dataclass
class Survey:
    """What the rows have shown so far."""

    features: list[str]
    target: str
    n_rows: int = 0
    kind: Kind = Kind.BOOLEAN
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    values: set[Any] = field(default_factory=set)

    def add(self, chunk: Chunk) -> None:
        """Take account of a chunk."""
        ranges = [pc.min_max(column) for column in chunk.features(self.features).columns]
        low = np.array([each["min"].as_py() for each in ranges])
        high = np.array([each["max"].as_py() for each in ranges])
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)
        self.kind = max(self.kind, Kind.of_column(chunk, self.target))
        if len(self.values) <= MOST_CLASSES:
            self.values.update(pc.unique(chunk.column(self.target)).to_pylist())
        self.n_rows += len(chunk)

    def task(self) -> str:
        """Which task the target suggests."""
        few = len(self.values) <= MOST_CLASSES
        return {
            Kind.BOOLEAN: CLASSIFICATION,
            Kind.INTEGER: CLASSIFICATION if few else REGRESSION,
            Kind.NUMBER: REGRESSION,
            Kind.TEXT: CLASSIFICATION,
        }[self.kind]


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    require_folder(args.output)
    source = Source(args.table, args.delimiter)
    features = _features(source, args)
    wanted = [*features, args.target, *([args.id_column] if args.id_column else [])]

    survey = Survey(features, args.target)
    chunks = source.chunks(wanted, args.chunk_rows)
    first = next(chunks, None)
    if first is None:
        raise UserError(f"{source.name}: the table has no rows")
    survey.add(first)
    second = next(chunks, None)
    rest: Iterable[Chunk] = () if second is None else chain([second], chunks)
    total = source.n_rows
    if second is not None and source.can_reread:
        with progress("looking", total) as bar:
            bar.update(len(first))
            for chunk in rest:
                survey.add(chunk)
                bar.update(len(chunk))
        chunks = source.chunks(wanted, args.chunk_rows)
        next(chunks)
        rest, total = chunks, survey.n_rows
    elif second is None:
        total = survey.n_rows

    task = survey.task() if args.task == "auto" else args.task
    settings = _settings(args, task)
    if second is not None and "feature_range" not in settings:
        if source.can_reread:
            settings["feature_range"] = (survey.low, survey.high)
        else:
            remark("the first chunk fixes the features' ranges (or give --feature-range)")
    kind = survey.kind if task == CLASSIFICATION else Kind.NUMBER
    if args.task == "auto":
        remark(f"task: {task} (--task decides otherwise)")

    kinds = {CLASSIFICATION: MondrianForestClassifier, REGRESSION: MondrianForestRegressor}
    model: Any = kinds[task](**settings)
    with progress("training", total) as bar:
        for chunk in chain([first], rest):
            X, y = chunk.features(features), kind.labels(chunk, args.target)
            models.learn(model, chunk, X, y, args.id_column)
            bar.update(len(chunk))
    model.save(args.output)
    remark(f"{args.output}: {task}, {model.n_rows_} rows, {len(features)} features")


def _features(source: Source, args: argparse.Namespace) -> list[str]:
    source.require(args.target, why="the target")
    others = [args.target]
    if args.id_column:
        source.require(args.id_column, why="the rows' numbers")
        others.append(args.id_column)
    if args.features:
        source.require(*args.features, why="a feature")
        if both := [name for name in args.features if name in others]:
            raise UserError(f"--features: {both[0]!r} cannot be a feature, it has another role")
        return list(args.features)
    if args.drop:
        source.require(*args.drop, why="to be left out")
        others += args.drop
    features = [column for column in source.columns if column not in others]
    if not features:
        raise UserError(f"{source.name}: no column is left to learn from")
    return features


def _settings(args: argparse.Namespace, task: str) -> dict[str, Any]:
    known = inspect.signature(MondrianForestClassifier).parameters.keys() | set(
        inspect.signature(MondrianForestRegressor).parameters
    )
    given = {name: value for name, value in vars(args).items() if name in known}
    settings = {name: value for name, value in given.items() if value is not None}
    for other, only in ONLY_FOR.items():
        for name in only:
            if other != task and name in settings:
                raise UserError(f"--{name.replace('_', '-')} is for {other}, this is {task}")
    if "feature_range" in settings:
        settings["feature_range"] = tuple(settings["feature_range"])
    return settings
