"""Fixtures: folders with tables and models in which commands run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from command_line import EQUAL, FEW, flowers, patients, run


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables of flowers and of patients, and a model of each."""
    folder = tmp_path_factory.mktemp("prepared")
    before = Path.cwd()
    os.chdir(folder)
    try:
        for name, table, n in (("iris", flowers(), 120), ("diabetes", patients(), 342)):
            for part, rows in (("", table), ("_train", table[:n]), ("_test", table[n:])):
                pacsv.write_csv(rows, f"{name}{part}.csv")
                pq.write_table(rows, f"{name}{part}.parquet")
        run("fit", "iris_train.csv", "-t", "species", "--id-column", "id", "-o", "iris.model", *FEW)
        how = [*EQUAL, *FEW]
        run("fit", "diabetes_train.csv", "-t", "progression", "-o", "diabetes.model", *how)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a copy of the tables and models."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def iris_model(folder: Path) -> str:
    return "iris.model"


@pytest.fixture
def diabetes_model(folder: Path) -> str:
    return "diabetes.model"
