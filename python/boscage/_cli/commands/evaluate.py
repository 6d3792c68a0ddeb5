"""``boscage evaluate``: scores of predictions on a labelled table, summed over its chunks."""

from __future__ import annotations

import argparse
import json
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boscage._cli import models
from boscage._cli.commands.predict import SLICE
from boscage._cli.errors import UserError, blaming
from boscage._cli.notes import Notes
from boscage._cli.reading import columns
from boscage._cli.reading.labels import KnownLabels
from boscage._cli.reading.sources import Source
from boscage._cli.terminal import print_table, progress
from boscage.metrics import expected_calibration_error

#: Central intervals whose coverage is shown.
COVERAGES = (0.5, 0.8, 0.9, 0.95)


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    model = models.load_with_rows(args.model, args.n_jobs)
    notes = Notes.of(model)
    target = notes.check_target(args.model, args.target)
    source = Source(args.table, args.delimiter)
    others = columns.not_features(source, target)
    features = columns.find(model, source, args.features, others)
    labels = KnownLabels(model, notes.kind, target)
    score: Score = ClassScore(model) if models.is_classifier(model) else NumberScore(model)
    with progress("predicting", source.n_rows) as bar:
        for chunk in source.chunks([*features, target], min(args.chunk_rows, SLICE)):
            X = columns.features(model, chunk, features)
            y = labels.read(chunk)
            with blaming(chunk.rows):
                score.add(X, y)
            bar.update(len(chunk))
    labels.finish()
    if not score.n_rows:
        raise UserError(f"{source.name}: the table has no rows")
    result = score.result()
    if args.json:
        print(json.dumps({"rows": score.n_rows} | result))
    else:
        rows = [("rows", str(score.n_rows))]
        print_table(rows + [(name, f"{value:.6g}") for name, value in result.items()])


class Score(ABC):
    """Sums over rows, from which metrics follow."""

    n_rows = 0

    @abstractmethod
    def add(self, X: Any, y: NDArray[Any]) -> None:
        """Take account of rows."""

    @abstractmethod
    def result(self) -> dict[str, float]:
        """The metrics by their names."""


class ClassScore(Score):
    """Accuracy, log loss, Brier score and calibration error."""

    def __init__(self, model: models.Model) -> None:
        self._model = model
        self._classes = np.asarray(model.classes_)
        self._log_loss = 0.0
        self._brier = 0.0
        self._unknown = 0
        self._confidence: list[NDArray[np.float64]] = []
        self._hit: list[NDArray[np.bool_]] = []

    def add(self, X: Any, y: NDArray[Any]) -> None:
        """Take account of rows."""
        probabilities = np.asarray(self._model.predict_proba(X))
        at = np.minimum(np.searchsorted(self._classes, y), len(self._classes) - 1)
        known = self._classes[at] == y
        truth = np.where(known, probabilities[np.arange(len(y)), at], 0.0)
        with np.errstate(divide="ignore"):
            self._log_loss -= float(np.sum(np.log(truth)))
        self._brier += float(np.sum(probabilities**2) - 2.0 * truth.sum() + len(y))
        self._unknown += int(np.sum(~known))
        self._confidence.append(probabilities.max(axis=1))
        self._hit.append(known & (probabilities.argmax(axis=1) == at))
        self.n_rows += len(y)

    def result(self) -> dict[str, float]:
        """The metrics by their names."""
        hit = np.concatenate(self._hit)
        found = {
            "accuracy": float(hit.mean()),
            "log loss": self._log_loss / self.n_rows,
            "Brier score": self._brier / self.n_rows,
            "calibration error": expected_calibration_error(
                hit, np.concatenate(self._confidence), labels=[False, True]
            ),
        }
        if self._unknown:
            # Their probability is 0, which makes the log loss infinite.
            found["rows of classes that the model does not know"] = float(self._unknown)
        return found


class NumberScore(Score):
    """RMSE, MAE, NLPD, CRPS and the coverage of central intervals."""

    def __init__(self, model: models.Model) -> None:
        self._model = model
        self._sums = dict.fromkeys(["squared", "absolute", "nlpd", "crps"], 0.0)
        self._inside = dict.fromkeys(COVERAGES, 0)

    def add(self, X: Any, y: NDArray[Any]) -> None:
        """Take account of rows."""
        dist = self._model.predict_dist(X)
        error = dist.mean - y
        self._sums["squared"] += float(np.sum(error**2))
        self._sums["absolute"] += float(np.sum(np.abs(error)))
        self._sums["nlpd"] -= float(np.sum(dist.logpdf(y)))
        self._sums["crps"] += float(np.sum(dist.crps(y)))
        # A label lies in the central interval if its distribution function is not in the tails.
        below = dist.cdf(y)
        for coverage in COVERAGES:
            self._inside[coverage] += int(np.sum(np.abs(2.0 * below - 1.0) <= coverage))
        self.n_rows += len(y)

    def result(self) -> dict[str, float]:
        """The metrics by their names."""
        mean = {name: total / self.n_rows for name, total in self._sums.items()}
        return {
            "RMSE": float(np.sqrt(mean["squared"])),
            "MAE": mean["absolute"],
            "NLPD": mean["nlpd"],
            "CRPS": mean["crps"],
        } | {
            f"coverage of {coverage:.0%} intervals": inside / self.n_rows
            for coverage, inside in self._inside.items()
        }
