"""``boscage update``: add a table's rows to a saved model."""

from __future__ import annotations

import argparse

import numpy as np

from boscage._cli import models
from boscage._cli.errors import blaming
from boscage._cli.notes import Notes
from boscage._cli.outputs import require_writable
from boscage._cli.reading import columns
from boscage._cli.reading.labels import KnownLabels
from boscage._cli.reading.sources import Source
from boscage._cli.terminal import progress, remark


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    output = args.model if args.output is None else args.output
    require_writable(output, table=args.table)
    model = models.load_online(args.model, args.n_jobs, "add")
    notes = Notes.of(model)
    target = notes.check_target(args.model, args.target)
    id_column = notes.check_ids(args.model, args.id_column)
    source = Source(args.table, args.delimiter)
    weight = notes.weight if args.weight is None else args.weight
    others = columns.not_features(source, target, id_column, weight)
    features = columns.find(model, source, args.features, others)
    labels = KnownLabels(model, notes.kind, target)
    before = getattr(model, "classes_", None)
    n_rows = 0
    with progress("training", source.n_rows) as bar:
        for chunk in source.chunks([*features, *others], args.chunk_rows):
            X = columns.features(model, chunk, features)
            y = labels.read(chunk)
            with blaming(chunk.rows):
                columns.learn(model, chunk, X, y, id_column, weight)
            n_rows += len(chunk)
            bar.update(len(chunk))
    labels.finish()
    models.save(model, output)
    if before is not None and len(new := np.setdiff1d(model.classes_, before)):
        remark(f"new classes: {', '.join(map(str, new))}")
    remark(f"{output}: {n_rows} rows added, {model.n_rows_} in all")
