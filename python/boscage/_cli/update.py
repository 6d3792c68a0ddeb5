"""``boscage update``: add a table's rows to a saved model."""

from __future__ import annotations

import argparse

from boscage import MondrianForestClassifier
from boscage._cli import models
from boscage._cli.errors import require_folder
from boscage._cli.labels import Kind
from boscage._cli.sources import Source
from boscage._cli.terminal import progress, remark


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    output = args.output or args.model
    require_folder(output)
    model = models.load(args.model, args.n_jobs)
    source = Source(args.table, args.delimiter)
    source.require(args.target, why="the labels")
    others = [args.target]
    if args.id_column:
        source.require(args.id_column, why="the rows' numbers")
        others.append(args.id_column)
    features = models.feature_columns(model, source, args.features, others)
    kind = Kind.NUMBER
    if isinstance(model, MondrianForestClassifier):
        kind = Kind.of_classes(model.classes_)
    n_rows = 0
    with progress("training", source.n_rows) as bar:
        for chunk in source.chunks([*features, *others], args.chunk_rows):
            X = models.features(model, chunk, features)
            y = kind.labels(chunk, args.target)
            models.learn(model, chunk, X, y, args.id_column)
            n_rows += len(chunk)
            bar.update(len(chunk))
    model.save(output)
    remark(f"{output}: {n_rows} rows added, {model.n_rows_} in all")
