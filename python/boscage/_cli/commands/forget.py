"""``boscage forget``: remove rows from a saved model, as if it had never seen them."""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from boscage._cli import models
from boscage._cli.errors import UserError, blaming
from boscage._cli.outputs import require_writable
from boscage._cli.terminal import remark


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    output = args.model if args.output is None else args.output
    require_writable(output, table=args.ids_from)
    model = models.load_online(args.model, args.n_jobs, "forget")
    if args.id_column and not args.ids_from:
        raise UserError("--id-column names a column of a table: give the table with --ids-from")
    ids = np.array(args.ids, dtype=object)
    if args.ids_from:
        ids = np.concatenate([ids, _listed(args.ids_from, args.id_column)])
    if not len(ids):
        raise UserError("no row is named: give ids, or a file of them with --ids-from")
    with blaming(args.model):
        model.forget(ids)
    models.save(model, output)
    remark(f"{output}: {len(ids)} rows forgotten, {model.n_rows_} left")


def _listed(path: str, column: str | None) -> NDArray[np.uint64]:
    from boscage._cli.reading.sources import (
        Source,  # needs pyarrow, which ids that are typed do not
    )

    source = Source(path)
    if column is None:
        if len(source.columns) != 1:
            raise UserError(f"{source.name}: found {len(source.columns)} columns: give --id-column")
        column = source.columns[0]
    source.require(column, why="the ids")
    parts = [chunk.ids(column) for chunk in source.chunks([column], 1 << 20)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
