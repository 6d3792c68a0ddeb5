"""``boscage info``: what a model file holds."""

from __future__ import annotations

import argparse
import json
import math
import os
from typing import Any

import numpy as np

import boscage
from boscage import MondrianForestClassifier
from boscage._cli import models
from boscage._cli.terminal import print_table


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    model = models.load(args.model, args.n_jobs)
    facts: dict[str, Any] = {
        "model": type(model).__name__,
        "file_size": os.path.getsize(args.model),
        "rows": int(model.n_rows_),
        "features": int(model.n_features_in_),
    }
    if (names := getattr(model, "feature_names_in_", None)) is not None:
        facts["feature_names"] = [str(name) for name in names]
    if isinstance(model, MondrianForestClassifier):
        facts["classes"] = np.asarray(model.classes_).tolist()
    for name, value in model.get_params(deep=False).items():
        if name not in {"n_jobs", "verbose"} and value is not None:
            facts[name] = np.asarray(value).tolist() if not isinstance(value, str) else value
    if isinstance(model, MondrianForestClassifier):
        facts["discount"] = model.discount_
    else:
        facts |= {f"fitted_{name}": value for name, value in model.hyperparameters_.items()}
    if args.trees:
        facts |= _measure(model)
    facts["digest"] = model.digest()
    facts["version"] = boscage.__version__
    if args.json:
        print(json.dumps(_plain(facts), allow_nan=False))
    else:
        print_table([(name.replace("_", " "), _short(value)) for name, value in facts.items()])


def _measure(model: models.Model) -> dict[str, Any]:
    nodes, depths = [], []
    for tree in model.trees_:
        parent = np.asarray(tree.parent)
        depth = np.zeros(len(parent), dtype=np.int64)
        # A level at a time: a node's depth is known one step after its parent's.
        level = parent
        while np.any(level >= 0):
            depth += level >= 0
            level = np.where(level >= 0, parent[level], -1)
        leaf = np.asarray(tree.children_left) < 0
        rows = np.asarray(tree.n_rows)[leaf]
        nodes.append(len(parent))
        depths.append(np.average(depth[leaf], weights=rows) if rows.sum() else 0.0)
    return {
        "nodes_per_tree": float(np.mean(nodes)),
        "mean_depth_of_a_row": float(np.mean(depths)),
    }


def _plain(value: Any) -> Any:
    """Make text of the numbers that JSON lacks, such as an infinite lifetime."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _short(value: Any) -> str:
    if isinstance(value, list):
        between = "; " if any(isinstance(each, list) for each in value) else ", "
        shown = between.join(_short(each) for each in value[:8])
        return f"{shown}, ... ({len(value)})" if len(value) > 8 else shown
    return f"{value:.6g}" if isinstance(value, float) else str(value)
