"""``boscage fit``: train a model on a table.

A table that fits into one chunk is one `fit`. For a Mondrian forest a larger one is read twice:
first for the features' ranges, their categories and the kind of labels, so that the model is the
one that a single `fit` on all rows gives and a bad value is found before any training; then chunk
by chunk into the model. A stream, such as standard input, can be read only once, so its first chunk
sets the ranges, the categories and the kind of labels. The other models need all rows at once.
With ``--memory-limit`` a forest without rows is grown in passes over the table (`_cli.passes`).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boscage._cli import estimators, models, passes
from boscage._cli.arguments import MAX_CLASSES
from boscage._cli.errors import UserError, blaming
from boscage._cli.estimators import CLASSIFICATION, MODELS, REGRESSION
from boscage._cli.notes import Kind, Notes
from boscage._cli.outputs import require_writable
from boscage._cli.reading import columns, labels
from boscage._cli.reading.categories import Categories, check_named, text_columns
from boscage._cli.reading.sources import STDIN, Source
from boscage._cli.reading.tables import Chunk
from boscage._cli.terminal import note, progress, remark, warn
from boscage._cli.wording import naming_options


@dataclass
class Survey:
    """What the rows have shown so far."""

    features: list[str]
    target: labels.TargetSurvey
    categories: Categories
    n_rows: int = 0
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    targets: list[Chunk] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        """Take account of a chunk."""
        numbers = [name for name in self.features if name not in self.categories.columns]
        table = chunk.features(numbers)
        ranges = [pc.min_max(column) for column in table.columns]
        # Of a column without values both are None, which becomes NaN.
        low = np.array([each["min"].as_py() for each in ranges], dtype=np.float64)
        high = np.array([each["max"].as_py() for each in ranges], dtype=np.float64)
        self.low = low if self.low is None else np.fmin(self.low, low)
        self.high = high if self.high is None else np.fmax(self.high, high)
        self.target.add(chunk)
        if self.categories.columns:
            self.categories.add(chunk)
            self.targets.append(replace(chunk, table=chunk.table.select([self.target.name])))
        self.n_rows += len(chunk)

    def table(self, chunk: Chunk) -> pa.Table:
        """A chunk's features."""
        categorical = self.categories.columns
        return chunk.features(self.features, categorical=categorical)

    def ranges(self) -> NDArray[np.float64]:
        """The features' ranges; any for categories, whose places have their own."""
        is_number = ~np.isin(self.features, self.categories.columns)
        found = np.zeros((2, len(self.features)))
        found[:, is_number] = np.nan_to_num([self.low, self.high])
        return found

    def task(self) -> str:
        """Which task the target suggests."""
        return {
            Kind.BOOLEAN: CLASSIFICATION,
            Kind.INTEGER: CLASSIFICATION if self.target.are_few else REGRESSION,
            Kind.NUMBER: REGRESSION,
            Kind.TEXT: CLASSIFICATION,
        }[self.target.kind]


@dataclass
class Plan:
    """What is to be fitted, once the rows have been looked at.

    Attributes
    ----------
    task : str
        Classification or regression.
    settings : dict
        Parameters of the estimator.
    kind : Kind
        How labels are read.
    target : str
        The column that has them.
    """

    task: str
    settings: estimators.Parameters
    kind: Kind
    target: str

    @classmethod
    def of(cls, args: argparse.Namespace, given: estimators.Parameters, survey: Survey) -> Plan:
        """Decide the task, by the arguments or by the target."""
        task = args.task
        if task == "auto":
            task = survey.task()
            estimators.check_task(args.model, task, given)
            remark(f"task: {task} (--task decides otherwise)")
            if (doubt := survey.target.doubt()) is not None:
                warn("fit", doubt)
        for doubt in survey.categories.doubts(args.categorical):
            warn("fit", doubt)
        kind = survey.target.kind if task == CLASSIFICATION else Kind.NUMBER
        settings = given | {"random_state": args.random_state, "n_jobs": args.n_jobs}
        return cls(task, settings, kind, args.target)

    def labels_of(self, chunk: Chunk) -> NDArray[Any]:
        """A chunk's labels; numbers that are classes must be whole."""
        found = labels.read(self.kind, chunk, self.target)
        if self.task == CLASSIFICATION and self.kind is Kind.NUMBER:
            labels.require_whole(chunk, self.target, found)
        return found


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    output = _output(args.table) if args.output is None else args.output
    require_writable(output, table=args.table)
    given = estimators.given(args)
    if args.task != "auto":
        estimators.check_task(args.model, args.task, given)
    is_online = MODELS[args.model].learns_online
    if args.memory_limit is not None:
        passes.check_options(args, given)
    if args.id_column is not None and not is_online:
        raise UserError(
            f"--id-column: --model {args.model} forgets no rows; to leave the column out, give"
            f" --drop {args.id_column}"
        )
    source = Source(args.table, args.delimiter)
    others = columns.not_features(source, args.target, args.id_column, args.weight)
    features = _features(source, args, others)
    check_named(source, args.categorical, features)
    chunks = source.chunks([*features, *others], args.chunk_rows)
    if (first := next(chunks, None)) is None:
        raise UserError(f"{source.name}: the table has no rows")
    found = [*text_columns(first, features), *args.categorical]
    categories = Categories(list(dict.fromkeys(found)))
    survey = Survey(features, labels.TargetSurvey(args.target, MAX_CLASSES), categories)
    survey.add(first)
    learn = _learn_by_chunks if is_online else _learn_at_once
    if args.memory_limit is not None:
        learn = _learn_in_passes
    model, plan = learn(args, given, source, survey, chain([first], chunks))
    notes = Notes(args.target, plan.kind.name.lower(), args.id_column, args.weight)
    models.save(model, output, notes)
    if categories.columns:
        sizes = ", ".join(f"{name} ({size})" for name, size in categories.sizes().items())
        note(f"categories: {sizes}; all other features are numbers (--categorical adds some)")
    remark(f"{output}: {plan.task}, {survey.n_rows} rows, {len(features)} features")


def _output(table: str) -> str:
    """The model file, if none is named."""
    if table == STDIN:
        raise UserError("give --output MODEL: a table on standard input has no name")
    # The name as it was typed, unless it has none, such as "." and "..": a link keeps its own.
    return os.path.basename(os.path.abspath(table)).partition(".")[0] + ".boscage"


def _learn_by_chunks(
    args: argparse.Namespace,
    given: estimators.Parameters,
    source: Source,
    survey: Survey,
    chunks: Iterable[Chunk],
) -> tuple[models.Model, Plan]:
    chunks = iter(chunks)
    first, second = next(chunks), next(chunks, None)
    rest: Iterable[Chunk] = () if second is None else chain([second], chunks)
    total = source.n_rows
    if second is not None and source.can_reread:
        _survey_rest(survey, rest, total)
        again = source.chunks([*survey.features, *_others(args)], args.chunk_rows)
        next(again)
        rest, total = again, survey.n_rows
    elif second is None:
        total = survey.n_rows

    plan = Plan.of(args, given, survey)
    if second is not None and "feature_range" not in plan.settings:
        if source.can_reread:
            plan.settings["feature_range"] = tuple(survey.ranges())
        else:
            remark("the first rows fix the features' ranges (or give --feature-range)")
    if second is not None and source.can_reread and survey.categories.columns:
        y = np.concatenate([plan.labels_of(each) for each in survey.targets])
        plan.settings["categories"] = survey.categories.tables(y, survey.features)
    model = MODELS[args.model].new(plan.task, plan.settings)
    with progress("training", total) as bar:
        for chunk in chain([first], rest):
            y = plan.labels_of(chunk)
            X = survey.table(chunk)
            by = args.id_column, args.weight
            with blaming(chunk.rows), naming_options():
                columns.learn(model, chunk, X, y, *by, is_all=second is None)
            bar.update(len(chunk))
    survey.n_rows = model.n_rows_
    return model, plan


def _learn_at_once(
    args: argparse.Namespace,
    given: estimators.Parameters,
    source: Source,
    survey: Survey,
    chunks: Iterable[Chunk],
) -> tuple[models.Model, Plan]:
    chunks = iter(chunks)
    held = [next(chunks)]
    with progress("reading", source.n_rows) as bar:
        bar.update(len(held[0]))
        for chunk in chunks:
            survey.add(chunk)
            held.append(chunk)
            bar.update(len(chunk))
    plan = Plan.of(args, given, survey)
    X = pa.concat_tables([survey.table(chunk) for chunk in held]).combine_chunks()
    y = np.concatenate([plan.labels_of(chunk) for chunk in held])
    model = MODELS[args.model].new(plan.task, plan.settings | {"verbose": 1})
    weights = {}
    if args.weight is not None:
        column = [chunk.weights(args.weight) for chunk in held]
        weights["sample_weight"] = np.concatenate(column)
    del held
    with blaming(f"{source.name}: rows 1 to {survey.n_rows}"), naming_options():
        model.fit(X, y, **weights)
    return model.set_params(verbose=0), plan


def _learn_in_passes(
    args: argparse.Namespace,
    given: estimators.Parameters,
    source: Source,
    survey: Survey,
    chunks: Iterable[Chunk],
) -> tuple[models.Model, Plan]:
    passes.check_table(source, survey.categories.columns)
    _survey_rest(survey, islice(chunks, 1, None), source.n_rows)
    plan = Plan.of(args, given, survey)
    rows = passes.TableRows(source, survey.features, args.target, plan.labels_of)
    return passes.fit(args.memory_limit, plan.task, plan.settings, rows), plan


def _survey_rest(survey: Survey, chunks: Iterable[Chunk], total: int | None) -> None:
    """Add all chunks after the first, which the survey has."""
    with progress("reading", total) as bar:
        bar.update(survey.n_rows)
        for chunk in chunks:
            survey.add(chunk)
            bar.update(len(chunk))


def _others(args: argparse.Namespace) -> list[str]:
    return [name for name in (args.target, args.id_column, args.weight) if name is not None]


def _features(source: Source, args: argparse.Namespace, others: dict[str, str]) -> list[str]:
    if args.features:
        columns.require_features(source, args.features, others)
        return list(args.features)
    if args.drop:
        columns.require_left_out(source, args.drop, others)
    left_out = {*others, *(args.drop or [])}
    features = [column for column in source.columns if column not in left_out]
    if "" in features:
        warn(
            "fit",
            f"{source.name}: a column has no name, as an index that was saved with a table; it is"
            " taken for a feature (--features names those to learn from)",
        )
    if not features:
        raise UserError(f"{source.name}: no column is left to learn from")
    return features
