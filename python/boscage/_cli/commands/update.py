"""``boscage update``: add a table's rows to a saved model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np

from boscage import MondrianForestRegressor
from boscage._cli import models
from boscage._cli.errors import UserError, blaming
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
    if args.hyperparameters is not None:
        _set_hyperparameters(model, args.model, args.hyperparameters)
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


def _set_hyperparameters(model: models.Model, path: str, how: str) -> None:
    """Keep the hyperparameters that a forest has chosen, or choose them by a rule from now on."""
    if not isinstance(model, MondrianForestRegressor):
        why = f"a {models.kind_of(model)} has none"
    elif model.posterior == "fast":
        why = "the fast posterior has none"
    elif how != "keep":
        model.set_params(hyperparameters=how)
        return
    elif isinstance(model.hyperparameters, Mapping):
        return
    elif model.noise_variance is not None:
        why = "its noise variance was given, and none are kept beside it"
    elif model.n_rows_ == 0:
        why = "the forest has no rows left that could have chosen them"
    else:
        model.set_params(hyperparameters=model.hyperparameters_)
        return
    raise UserError(f"{path}: --hyperparameters {how}: {why}")
