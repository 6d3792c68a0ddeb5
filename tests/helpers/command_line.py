"""Runs the command line in tests, and makes tables for it."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_diabetes, load_iris

import boscage
from boscage._cli.main import main

COMMAND = [sys.executable, "-m", "boscage"]
FEW = ["--n-estimators", "5", "--n-jobs", "1"]
EQUAL = ["--feature-weights", "none"]


def flowers() -> pa.Table:
    """Iris in a random order, with row numbers and the species' names."""
    data = load_iris()
    order = np.random.default_rng(0).permutation(len(data.target))
    columns = {"id": np.arange(100, 250)}
    columns |= {f"x{d}": data.data[order, d] for d in range(4)}
    columns["species"] = data.target_names[data.target[order]].astype(str)
    return pa.table(columns)


def patients() -> pa.Table:
    """The diabetes data, a number to predict."""
    data = load_diabetes()
    columns = {name: data.data[:, d] for d, name in enumerate(data.feature_names)}
    return pa.table(columns | {"progression": data.target})


def run(*args: str) -> None:
    """Run a command in this process, which must succeed."""
    assert main(list(args)) == 0


def fails(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """Run a command that must fail with a message, and return the message."""
    capsys.readouterr()
    assert main(list(args)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"boscage {args[0]}: error: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix(f"boscage {args[0]}: error: ").strip()


def read(path: str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def digest(path: str) -> str:
    return boscage.load(path).digest()
