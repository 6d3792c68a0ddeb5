"""Everything that can be typed: the commands and their arguments.

Nothing heavy is imported here, so that ``--help`` is quick and needs no optional package.
"""

from __future__ import annotations

import argparse
from typing import Any

import boscage

CLASSIFICATION, REGRESSION = "classification", "regression"
#: With --task auto, whole numbers are classes if there are at most so many different ones.
MOST_CLASSES = 50
#: Arguments of ``fit`` that are parameters of one estimator only.
ONLY_FOR = {
    CLASSIFICATION: ["discount"],
    REGRESSION: ["posterior", "hyperparameters", "noise", "noise_variance"],
}


def parser() -> argparse.ArgumentParser:
    """Describe the whole command line."""
    whole = argparse.ArgumentParser(
        prog="boscage",
        description="Mondrian forests on tables: learn, predict with uncertainty, forget.",
    )
    whole.add_argument("--version", action="version", version=f"boscage {boscage.__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in (_fit, _predict, _evaluate, _update, _forget, _info, _demo):
        add(commands)
    return whole


def _fit(commands: Any) -> None:
    fit = commands.add_parser(
        "fit", help="train a model on a table", description="Train a model on a table."
    )
    _table(fit, "the rows to learn")
    fit.add_argument("-t", "--target", required=True, metavar="COLUMN", help="what to predict")
    fit.add_argument("-o", "--output", required=True, metavar="MODEL", help="the model file")
    fit.add_argument(
        "--task",
        choices=["auto", CLASSIFICATION, REGRESSION],
        default="auto",
        help=f"auto: classes if the target is text, true or false, or at most {MOST_CLASSES}"
        " different whole numbers",
    )
    fit.add_argument("--id-column", metavar="COLUMN", help="rows' numbers, to forget them by")
    columns = fit.add_mutually_exclusive_group()
    columns.add_argument(
        "--features", type=_names, metavar="A,B,...", help="columns to learn from (default: all)"
    )
    columns.add_argument("--drop", type=_names, metavar="A,B,...", help="columns to leave out")
    _jobs(fit)

    # Where no default is given here, it is the estimator's own.
    forest = fit.add_argument_group("the forest (the estimators' documentation says more)")
    forest.add_argument("--n-estimators", type=_positive, metavar="N", help="number of trees")
    forest.add_argument("--lifetime", type=float, metavar="TIME", help="no cut after this time")
    forest.add_argument(
        "--min-samples-split", type=_positive, metavar="N", help="rows that a node must have"
    )
    forest.add_argument(
        "--predictive",
        choices=["averaged", "realised"],
        help="average over where a row would branch off, or follow the cuts (less memory)",
    )
    forest.add_argument(
        "--feature-range",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="the reference range of every feature (default: the ranges in the table)",
    )
    forest.add_argument(
        "--feature-weights",
        choices=["learned"],
        help="learn the features' rates from the labels (of the first chunk)",
    )
    forest.add_argument("--window-size", type=_positive, metavar="N", help="keep the newest rows")
    forest.add_argument(
        "--random-state", type=int, default=0, metavar="SEED", help="(default: %(default)s)"
    )
    classes = fit.add_argument_group("classification only")
    classes.add_argument(
        "--discount", type=_discount, metavar="X", help="a number, or loo: chosen by leave-one-out"
    )
    numbers = fit.add_argument_group("regression only")
    numbers.add_argument("--posterior", choices=["exact", "fast", "joint"])
    numbers.add_argument("--hyperparameters", choices=["loo", "ml", "heuristic"])
    numbers.add_argument("--noise", choices=["global", "local"])
    numbers.add_argument("--noise-variance", type=float, metavar="VARIANCE")


def _predict(commands: Any) -> None:
    predict = commands.add_parser(
        "predict",
        help="predict a table's rows, with uncertainty",
        description="Predict a table's rows. A classifier gives the likeliest class and every"
        " class's probability; a regressor the mean, the standard deviation and quantiles of the"
        " predictive distribution.",
    )
    _model(predict)
    _table(predict, "the rows to predict")
    _features(predict)
    predict.add_argument(
        "-o",
        "--output",
        metavar="TABLE",
        help="where to write: Parquet if the name says so, else CSV (default: standard output)",
    )
    predict.add_argument(
        "--keep", type=_names, default=[], metavar="A,B,...", help="columns to copy to the output"
    )
    numbers = predict.add_argument_group("regression only")
    numbers.add_argument(
        "--interval",
        type=_fraction,
        metavar="COVERAGE",
        help="the central interval with this probability (default: 0.9)",
    )
    numbers.add_argument(
        "--quantiles", type=_fractions, metavar="Q,...", help="quantiles to add, such as 0.1,0.5"
    )
    _jobs(predict)


def _evaluate(commands: Any) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="measure a model on a table",
        description="Predict a table's rows and compare with their labels.",
    )
    _model(evaluate)
    _table(evaluate, "rows with labels, which the model has not seen")
    _features(evaluate)
    evaluate.add_argument("-t", "--target", required=True, metavar="COLUMN", help="the labels")
    evaluate.add_argument("--json", action="store_true", help="write JSON")
    _jobs(evaluate)


def _update(commands: Any) -> None:
    update = commands.add_parser(
        "update",
        help="add rows to a saved model",
        description="Add a table's rows to a saved model; classes may be new.",
    )
    _model(update)
    _table(update, "the rows to add")
    _features(update)
    update.add_argument("-t", "--target", required=True, metavar="COLUMN", help="the labels")
    update.add_argument("--id-column", metavar="COLUMN", help="rows' numbers")
    _output_model(update)
    _jobs(update)


def _forget(commands: Any) -> None:
    forget = commands.add_parser(
        "forget",
        help="remove rows from a saved model",
        description="Remove rows from a saved model, as if it had never seen them. Rows are named"
        " by their ids, or by their order of arrival (from 0) where fit was given none.",
    )
    _model(forget)
    forget.add_argument("ids", nargs="*", metavar="ID", help="numbers of rows")
    forget.add_argument(
        "--ids-from", metavar="FILE", help="a table with more: CSV with a header, or Parquet"
    )
    forget.add_argument(
        "--id-column", metavar="COLUMN", help="the column of that table (default: its only one)"
    )
    _output_model(forget)
    _jobs(forget)


def _info(commands: Any) -> None:
    info = commands.add_parser(
        "info", help="show what a model file holds", description="Show what a model file holds."
    )
    _model(info)
    info.add_argument("--trees", action="store_true", help="measure the trees, too")
    info.add_argument("--json", action="store_true", help="write JSON")
    _jobs(info)


def _demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="show what the forests do, on real data",
        description="Train forests on real data that scikit-learn ships, in batch and as a stream,"
        " beside scikit-learn's own; draw their uncertainty.",
    )
    demo.add_argument(
        "-o",
        "--output",
        default="boscage_demo.png",
        metavar="PNG",
        help="the picture (default: %(default)s)",
    )
    demo.add_argument(
        "--n-estimators",
        type=_positive,
        default=100,
        metavar="N",
        help="number of trees (default: %(default)s)",
    )
    _jobs(demo)


def _table(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument(
        "table", metavar="TABLE", help=f"{what}: CSV or Parquet; - reads CSV from standard input"
    )
    command.add_argument(
        "--delimiter", metavar="CHAR", help="what separates CSV columns (default: a comma)"
    )
    command.add_argument(
        "--chunk-rows",
        type=_positive,
        default=1 << 16,
        metavar="N",
        help="rows that are held in memory at a time (default: %(default)s)",
    )


def _features(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--features",
        type=_names,
        metavar="A,B,...",
        help="columns that are the features, in the model's order (default: found by their names)",
    )


def _model(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="a model file")


def _output_model(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o", "--output", metavar="MODEL", help="where to write the model (default: in its place)"
    )


def _jobs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--n-jobs",
        type=int,
        default=-1,
        metavar="N",
        help="threads; they change no result (default: one for every core)",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"found {text}, expected at least 1")
    return number


def _fraction(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0.0 < number < 1.0:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number between 0 and 1")
    return number


def _fractions(text: str) -> list[float]:
    return [_fraction(part) for part in text.split(",")]


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _discount(text: str) -> float | str:
    return text if text == "loo" else float(text)
