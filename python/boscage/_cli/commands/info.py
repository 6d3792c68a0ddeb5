"""``boscage info``: what a model file holds."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
from typing import Any

import numpy as np

import boscage
from boscage._cli import models
from boscage._cli.notes import Notes
from boscage._cli.terminal import print_table
from boscage.mondrian._forest.base import MondrianForest

# Text that cannot be taken for a number, a truth value, or more than one entry of a list.
_PLAIN = re.compile(
    r"(?!(true|false|none|nan|inf)$)[^\W\d]([^,;:\"\n\t]*[^,;:\"\s])?", re.IGNORECASE
)


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    model = models.load(args.model, args.n_jobs)
    notes = Notes.of(model)
    facts: dict[str, Any] = {
        "model": models.kind_of(model),
        "file_size": os.path.getsize(args.model),
        "rows": getattr(model, "n_rows_", None),
        "sum_of_weights": _sum_of_weights(model),
        "features": int(model.n_features_in_),
        "feature_names": _listed(getattr(model, "feature_names_in_", None)),
        "target": notes.target,
        "labels": None if notes.kind is None else notes.kind.words,
        "id_column": notes.id_column,
        "weight_column": notes.weight,
        "classes": _listed(getattr(model, "classes_", None)),
    }
    for name, value in model.get_params(deep=True).items():
        if name not in {"n_jobs", "verbose", "categories"}:
            facts[name] = _plain(value)
    if facts["feature_names"] and isinstance(facts.get("categorical_features"), list):
        numbers = facts["categorical_features"]
        facts["categorical_features"] = [facts["feature_names"][number] for number in numbers]
    facts |= _fitted(model)
    if args.trees:
        facts |= _measure(model)
    if hasattr(model, "digest"):
        facts["digest"] = model.digest()
    facts["version"] = boscage.__version__
    facts = {name: value for name, value in facts.items() if value is not None}
    if args.json:
        print(json.dumps(_finite(facts), allow_nan=False))
    else:
        print_table(
            [
                (name.replace("__", " ").replace("_", " "), _in_words(name, value))
                for name, value in facts.items()
            ]
        )


def _sum_of_weights(model: models.Model) -> float | None:
    """The sum of the weights of a forest's rows; None if all are 1. Other models keep no rows."""
    weights = model._model.sample_weight() if isinstance(model, MondrianForest) else None
    return None if weights is None else float(weights.sum())


def _fitted(model: models.Model) -> dict[str, Any]:
    """What the fit has found."""
    facts: dict[str, Any] = {}
    if (tables := getattr(model, "categories_", None)) is not None:
        names = getattr(model, "feature_names_in_", range(len(tables)))
        facts["categories"] = {
            str(name): [label for label in table if label is not None]
            for name, table in zip(names, tables, strict=True)
            if table is not None
        }
    if hasattr(model, "min_samples_split_"):
        facts["min_samples_split"] = model.min_samples_split_
    if hasattr(model, "discount_"):
        facts["discount"] = model.discount_
        facts["calibration_power"] = model.calibration_power_
        facts["calibration_noise"] = model.calibration_noise_
        if model.posterior == "joint":
            facts["joint_weight"] = model.joint_weight_
    if hasattr(model, "hyperparameters_") and model.n_rows_ > 0:
        facts |= {f"fitted_{name}": value for name, value in model.hyperparameters_.items()}
    if hasattr(model, "log_marginal_likelihood_"):
        facts["log_marginal_likelihood"] = model.log_marginal_likelihood_
    if hasattr(model, "trace_"):  # not after SMC
        for name, row in model.summary().items():
            facts[f"mean_{name}"], facts[f"R-hat_of_{name}"] = row.mean, row.r_hat
    return facts


def _measure(model: models.Model) -> dict[str, Any]:
    """How large the trees are."""
    if hasattr(model, "n_trees"):
        # Of sums of trees the chains have counted the leaves; there may be millions of trees.
        trees, leaves = len(model.trees_[0]), np.mean(model.trace_["n_leaves"])
        return {"nodes_per_tree": float(2.0 * leaves / trees - 1.0)}
    nodes, depths = [], []
    for tree in model.trees_:
        depth, rows = tree.depth[tree.is_leaf], tree.n_rows[tree.is_leaf]
        nodes.append(tree.n_nodes)
        depths.append(np.average(depth, weights=rows) if rows.sum() else 0.0)
    # Those of a posterior count by their weights.
    weights = getattr(model, "weights_", None)
    return {
        "nodes_per_tree": float(np.average(nodes, weights=weights)),
        "mean_depth_of_a_row": float(np.average(depths, weights=weights)),
    }


def _listed(values: Any) -> Any:
    return None if values is None else np.asarray(values).tolist()


def _plain(value: Any) -> Any:
    """A parameter as JSON knows it; of one that is an estimator's own object, its text."""
    if isinstance(value, (str, dict)) or value is None:
        return value
    if isinstance(value, (list, tuple)):  # of feature maps, which have different lengths, say
        return [_plain(each) for each in value]
    array = np.asarray(value)
    return str(value) if array.dtype == object else array.tolist()


def _finite(value: Any) -> Any:
    """Make text of the numbers that JSON lacks, such as an infinite lifetime."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _in_words(name: str, value: Any) -> str:
    """A fact as a person reads it."""
    if name == "categorical_features" and value == "from_dtype":
        return "the columns of text or of a categorical type"
    return value if isinstance(value, str) else _short(value)


def _short(value: Any) -> str:
    """A value, or a list or dict of which only the beginning is shown."""
    if isinstance(value, dict):
        return "; ".join(f"{_short(name)}: {_short(each)}" for name, each in value.items())
    if isinstance(value, list):
        between = "; " if any(isinstance(each, list) for each in value) else ", "
        shown = between.join(_short(each) for each in value[:8])
        return f"{shown}, ... ({len(value)})" if len(value) > 8 else shown
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
