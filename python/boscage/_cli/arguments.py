"""Everything that can be typed: the commands and their arguments.

No optional package is imported here, so that ``--help`` is quick and needs none.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import boscage
from boscage._cli import estimators
from boscage._cli.errors import WrongUsage
from boscage._cli.estimators import CLASSIFICATION, MODELS, OPTIONS, REGRESSION
from boscage._cli.reading import readers
from boscage.mondrian._regression import RULES

#: How options name several columns.
NAMES = "A,B,..."
QUOTES = "as in CSV, a name that holds a comma is in double quotes"
#: With --task auto, whole numbers are classes if there are at most so many different ones.
MAX_CLASSES = 50
DEFAULT_MODEL = "mondrian"


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong.

    Its help may go on, below the options that it knows itself.
    """

    more_help: Callable[[], str] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # By itself argparse takes -1e3 for an option, as it does all but the plainest numbers.
        self._negative_number_matcher = re.compile(
            r"-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$", re.IGNORECASE
        )

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse unknown arguments here, where the command is known whose help lists the others."""
        found, unknown = super().parse_known_args(*args, **kwargs)
        if unknown:
            self.error(f"unknown arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where to read more, in one line whatever the message."""
        raise WrongUsage(self.prog, f"{' '.join(message.splitlines())}; see {self.prog} --help")

    def format_help(self) -> str:
        """Return the help."""
        text = super().format_help()
        return text if self.more_help is None else f"{text}\n{self.more_help()}"

    def _print_message(self, message: str, file: Any = None) -> None:
        # By itself argparse says nothing of a write that fails.
        print(message, end="", file=file or sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """Describe the whole command line."""
    whole = Parser(
        prog="boscage",
        description="Probabilistic trees and forests on tables: fit a model, predict with"
        " uncertainty, update the model, make it forget rows.",
    )
    whole.add_argument("--version", action="version", version=f"boscage {boscage.__version__}")
    commands = whole.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=Parser
    )
    for add in (_fit, _predict, _evaluate, _update, _forget, _info, _demo):
        add(commands)
    return whole


def _fit(commands: Any) -> None:
    fit = commands.add_parser(
        "fit",
        help="train a model on a table",
        usage="boscage fit TABLE -t COLUMN [-o MODEL] [--model NAME] [options]",
        description="Train a model on a table and write it to a file.",
    )
    _table(fit, "the rows to learn from")
    fit.add_argument(
        "-t", "--target", required=True, metavar="COLUMN", help="the column to predict"
    )
    fit.add_argument(
        "-o",
        "--output",
        metavar="MODEL",
        help="the model file (default: the table's name with the ending .boscage, in the current"
        " folder)",
    )
    fit.add_argument(
        "--model",
        choices=list(MODELS),
        default=DEFAULT_MODEL,
        help="the kind of model; the options of each are listed below (default: %(default)s)",
    )
    fit.add_argument(
        "--task",
        choices=["auto", CLASSIFICATION, REGRESSION],
        default="auto",
        help="what the target is; auto takes it for classes if it is text, true or false, or at"
        f" most {MAX_CLASSES} different whole numbers (1, +1 and 1.0 are the same), and else for"
        " numbers (default: auto)",
    )
    _columns(fit)
    fit.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="read the table in passes and take at most so much memory (such as 2GB) to grow a"
        " forest that keeps no rows; for --model mondrian",
    )
    fit.add_argument(
        "--random-state",
        type=readers.whole(0),
        default=0,
        metavar="SEED",
        help="seed of the random numbers (default: %(default)s)",
    )
    _jobs(fit)
    for name, options in OPTIONS.items():
        fit.add_argument(
            options[0].flag,
            type=estimators.shared_reader(name),
            nargs=options[0].n_values,
            metavar=options[0].metavar,
            help=argparse.SUPPRESS,  # models differ, so `_model_options` tells
        )
    fit.more_help = _model_options


def _columns(fit: argparse.ArgumentParser) -> None:
    """Add the arguments that say what columns are, but for the target."""
    fit.add_argument(
        "--id-column",
        metavar="COLUMN",
        help="a column of whole numbers or text by which rows can be forgotten (default: rows are"
        " numbered from 0 in their order); for --model mondrian",
    )
    fit.add_argument(
        "--weight",
        metavar="COLUMN",
        help="a column of numbers above 0: as how many rows each row counts (in BART for numbers:"
        " how precise its target is)",
    )
    features = fit.add_mutually_exclusive_group()
    features.add_argument(
        "--features",
        type=readers.names,
        metavar=NAMES,
        help="columns to learn from (default: all but the target, the ids and the weight);"
        f" {QUOTES}",
    )
    features.add_argument(
        "--drop",
        type=readers.names,
        metavar=NAMES,
        help=f"columns to leave out, such as 'a,\"b,c\"'; {QUOTES}",
    )
    fit.add_argument(
        "--categorical",
        type=readers.names,
        default=[],
        metavar=NAMES,
        help="columns that are categories though they look like numbers (columns of text are found"
        f" by themselves); {QUOTES}",
    )


def _model_options() -> str:
    """List each model's options with their defaults, laid out as argparse does it."""
    sections = []
    for name, model in MODELS.items():
        default = ", the default" if name == DEFAULT_MODEL else ""
        listing = argparse.ArgumentParser(add_help=False, usage=argparse.SUPPRESS)
        group = listing.add_argument_group(f"options of --model {name}{default}", model.what)
        for option in model.options:
            group.add_argument(
                option.flag,
                nargs=option.n_values,
                metavar=option.metavar,
                help=model.help(option).replace("%", "%%"),
            )
        sections.append(listing.format_help())
    return "\n".join(sections)


def _predict(commands: Any) -> None:
    predict = commands.add_parser(
        "predict",
        help="predict a table's rows, with uncertainty",
        usage="boscage predict MODEL TABLE [-o TABLE] [options]",
        description="Predict a table's rows. A classifier gives the most probable class and the"
        " probability of each class; a regressor gives the mean, the standard deviation and"
        " quantiles of the predictive distribution.",
    )
    _model(predict)
    _table(predict, "the rows to predict")
    _features(predict)
    predict.add_argument(
        "-o",
        "--output",
        metavar="TABLE",
        help="where to write: Parquet if the name ends in .parquet or .pq, else CSV (default:"
        " standard output)",
    )
    predict.add_argument(
        "--keep",
        type=readers.names,
        default=[],
        metavar=NAMES,
        help=f"columns to copy to the output; {QUOTES}",
    )
    numbers = predict.add_argument_group("regression only")
    numbers.add_argument(
        "--interval",
        type=readers.number(above=0.0, below=1.0),
        metavar="COVERAGE",
        help="give the central interval with this probability (default: 0.9)",
    )
    numbers.add_argument(
        "--quantiles",
        type=readers.fractions,
        metavar="Q,...",
        help="quantiles to add, such as 0.1,0.5",
    )
    _jobs(predict)


def _evaluate(commands: Any) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="measure a model on a table",
        usage="boscage evaluate MODEL TABLE [-t COLUMN] [options]",
        description="Predict a table's rows and compare the predictions with the labels.",
    )
    _model(evaluate)
    _table(evaluate, "rows with labels, which the model has not seen")
    _features(evaluate)
    _target(evaluate)
    evaluate.add_argument("--json", action="store_true", help="write JSON")
    _jobs(evaluate)


def _update(commands: Any) -> None:
    update = commands.add_parser(
        "update",
        help="add rows to a saved model",
        usage="boscage update MODEL TABLE [-t COLUMN] [options]",
        description="Add a table's rows to a saved Mondrian forest; there may be new classes among"
        " them.",
    )
    _model(update)
    _table(update, "the rows to add")
    _features(update)
    _target(update)
    update.add_argument(
        "--id-column", metavar="COLUMN", help="the column of ids, if fit was given one"
    )
    update.add_argument(
        "--weight",
        metavar="COLUMN",
        help="the column of weights (default: the one that fit was given, if any)",
    )
    update.add_argument(
        "--hyperparameters",
        choices=["keep", *RULES],
        help="of a forest for numbers: keep those chosen so far, which makes predictions after this"
        " and later updates faster, or choose them from now on by leave-one-out, by marginal"
        " likelihood, or by a rule (default: as before)",
    )
    _output_model(update)
    _jobs(update)


def _forget(commands: Any) -> None:
    forget = commands.add_parser(
        "forget",
        help="remove rows from a saved model",
        usage="boscage forget MODEL [ID ...] [--ids-from FILE] [options]",
        description="Remove rows from a saved Mondrian forest, as if it had never seen them. Rows"
        " are named by their ids, or by their order of arrival (from 0) if fit was given none.",
    )
    _model(forget)
    forget.add_argument("ids", nargs="*", default=[], metavar="ID", help="ids of rows")
    forget.add_argument(
        "--ids-from", metavar="FILE", help="a table with further ids: CSV with a header, or Parquet"
    )
    forget.add_argument(
        "--id-column", metavar="COLUMN", help="the column of that table (default: its only one)"
    )
    _output_model(forget)
    _jobs(forget)


def _info(commands: Any) -> None:
    info = commands.add_parser(
        "info",
        help="show what a model file holds",
        usage="boscage info MODEL [--trees] [--json]",
        description="Show what a model file holds.",
    )
    _model(info)
    info.add_argument("--trees", action="store_true", help="measure the trees, too")
    info.add_argument("--json", action="store_true", help="write JSON")
    _jobs(info)


def _demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="show what the forests do, on real data",
        usage="boscage demo [-o PNG] [--n-estimators N]",
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
        type=readers.whole(1),
        default=100,
        metavar="N",
        help="number of trees (default: %(default)s)",
    )
    _jobs(demo)


def _table(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument(
        "table",
        metavar="TABLE",
        help=f"{what}: CSV, which may be compressed, Parquet, or a folder of Parquet files; - reads"
        " CSV from standard input",
    )
    command.add_argument(
        "--delimiter",
        type=readers.delimiter,
        metavar="CHAR",
        help="what separates CSV columns; \\t is a tab (default: a comma, or a tab if the name says"
        " .tsv)",
    )
    command.add_argument(
        "--chunk-rows",
        type=readers.whole(1),
        default=1 << 16,
        metavar="N",
        help="rows that are read at a time (default: %(default)s)",
    )


def _features(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--features",
        type=readers.names,
        metavar=NAMES,
        help="columns that are the features, in the model's order (default: found by their names);"
        f" {QUOTES}",
    )


def _target(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-t",
        "--target",
        metavar="COLUMN",
        help="the labels (default: the column that the model was fitted to)",
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
        type=readers.jobs,
        default=-1,
        metavar="N",
        help="threads, which change no result (default: one for every core)",
    )
