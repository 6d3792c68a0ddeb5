"""Targets: which cells have none, which numbers are whole, and when text is doubted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor
from boscage._cli.reading.tables import MISSING
from command_line import FEW, digest, fails, read, run

HOW = ["-t", "y", *FEW]


def write(name: str, labels: Sequence[object]) -> str:
    Path(name).write_text("x,y\n" + "".join(f"{i / 7},{y}\n" for i, y in enumerate(labels)))
    return name


@pytest.fixture
def numbers(folder: Path) -> None:
    run("fit", write("whole.csv", np.arange(12) / 8), *HOW, "-o", "numbers.model")


@pytest.fixture
def words(folder: Path) -> None:
    run("fit", write("whole.csv", ["no", "yes"] * 6), *HOW, "-o", "words.model")


@pytest.mark.parametrize("word", ["NA", "N/A", "NaN", "null", "None", "?", " ? "])
@pytest.mark.parametrize("labels", [np.arange(12) / 8, range(12), ["no", "yes"] * 6])
@pytest.mark.parametrize("how", [[], ["--chunk-rows", "4"], ["--model", "bart"]])
def test_a_fit_refuses_what_stands_for_a_missing_target(
    folder: Path,
    word: str,
    labels: Sequence[object],
    how: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("t.csv", [*labels[:6], word, *labels[7:]])
    files = set(os.listdir())
    how = [*how, "-t", "y", "-o", "m", "--n-jobs", "1"]
    expected = (
        f"t.csv: row 7, column 'y': found {word.strip()!r}, which stands for a missing value, "
        "expected a target (leave such rows out; a class needs another name)"
    )
    assert word.strip().lower() in MISSING
    assert fails(capsys, "fit", "t.csv", *how) == expected
    task = "classification" if labels[0] == "no" else "regression"
    assert fails(capsys, "fit", "t.csv", *how, "--task", task) == expected
    assert set(os.listdir()) == files


@pytest.mark.usefixtures("numbers", "words")
@pytest.mark.parametrize("command", ["update", "evaluate"])
@pytest.mark.parametrize(("model", "label"), [("numbers.model", 1.5), ("words.model", "no")])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_missing_targets_are_refused_by_a_model(
    command: str, model: str, label: object, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = [str(label), "na", str(label)]
    write("t.csv", labels)
    pq.write_table(pa.table({"x": [0.0, 1.0, 2.0], "y": labels}), "t.parquet")
    before = Path(model).read_bytes()
    said = fails(capsys, command, model, f"t.{kind}")
    assert said.startswith(f"t.{kind}: row 2, column 'y': found 'na', which stands for a missing")
    assert Path(model).read_bytes() == before


def test_missing_targets_are_refused_in_passes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("t.csv", [1.5, 2.5, "null"])
    said = fails(capsys, "fit", "t.csv", "-t", "y", "-o", "m", "--memory-limit", "1GB")
    assert said.startswith("t.csv: row 3, column 'y': found 'null', which stands for a missing")


def test_a_class_that_a_model_knows_is_a_label_whatever_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = np.arange(12.0)[:, None] / 7
    MondrianForestClassifier(3, random_state=0).fit(X, ["none", "some"] * 6).save("m")
    run("update", "m", write("t.csv", ["none", "some"]), "-t", "y")
    assert list(boscage.load("m").classes_) == ["none", "some"]
    said = fails(capsys, "update", "m", write("t.csv", ["none", "null"]), "-t", "y")
    assert said.startswith("t.csv: row 2, column 'y': found 'null'")


@pytest.mark.parametrize("written", [("1.0", "0.0"), ("+1", "0"), ("1e0", "0."), ("1", "-0.0")])
@pytest.mark.parametrize("chunk", ["1", "100"])
def test_whole_numbers_are_classes_however_they_are_written(
    folder: Path, written: tuple[str, str], chunk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, other = write("plain.csv", ["1", "0"] * 6), write("other.csv", written * 6)
    run("fit", plain, *HOW, "-o", "plain.model", "--chunk-rows", chunk)
    run("fit", other, *HOW, "-o", "other.model", "--chunk-rows", chunk)
    model = boscage.load("other.model")
    assert isinstance(model, MondrianForestClassifier)
    assert model.classes_.tolist() == [0, 1]
    assert model.classes_.dtype.kind == "i"
    assert digest("other.model") == digest("plain.model")
    # The labels of later files are the same ones, too.
    said = []
    for name in (plain, other):
        run("evaluate", "plain.model", name, "--json")
        said.append(capsys.readouterr().out)
        run("update", "other.model", name, "-o", f"{name}.model")
    assert said[0] == said[1]
    assert "does not know" not in said[0]
    assert digest("plain.csv.model") == digest("other.csv.model")
    assert boscage.load("other.csv.model").classes_.tolist() == [0, 1]
    run("predict", "other.model", other, "-o", "p.csv")
    assert {row["prediction"] for row in read("p.csv")} <= {"0", "1"}


def test_whole_numbers_of_parquet_are_those_of_csv(folder: Path) -> None:
    for name, kind in (("double", pa.float64()), ("int", pa.int32())):
        table = pa.table({"x": np.arange(12.0) / 7, "y": pa.array([1, 0] * 6).cast(kind)})
        pq.write_table(table, f"{name}.parquet")
        run("fit", f"{name}.parquet", *HOW, "-o", f"{name}.model")
    run("fit", write("t.csv", [1, 0] * 6), *HOW, "-o", "csv.model")
    assert digest("double.model") == digest("int.model")
    assert list(boscage.load("double.model").classes_) == [0, 1]
    run("update", "csv.model", "double.parquet")
    assert list(boscage.load("csv.model").classes_) == [0, 1]


def test_labels_are_counted_and_not_their_spellings(folder: Path) -> None:
    thirty = [f"{i % 30}{end}" for end in ("", ".0") for i in range(60)]
    for labels, kind in (
        (thirty, MondrianForestClassifier),
        ([f"{i % 51}.0" for i in range(120)], MondrianForestRegressor),
        ([*thirty, "0.5"], MondrianForestRegressor),
        (["1e30", "2e30"] * 9, MondrianForestRegressor),
        (["9007199254740993", "1.0"] * 9, MondrianForestRegressor),
    ):
        run("fit", write("t.csv", labels), *HOW, "-o", "m")
        assert type(boscage.load("m")) is kind


def test_numbers_that_are_not_whole_are_named_in_later_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("fit", write("t.csv", ["1.0", "0.0"]), *HOW, "-o", "m")
    for bad in ("0.5", "1e300", "9007199254740993.0"):
        said = fails(capsys, "update", "m", write("t.csv", ["1.0", bad]))
        assert said == (
            f"t.csv: row 2, column 'y': found {bad!r}, expected a whole number, as the other labels"
        )


@pytest.mark.parametrize(
    ("labels", "count", "odd"),
    [
        ([f"${i}.50" for i in range(20)], 20, "row 1 holds '$0.50'"),
        ([*range(15), "err", *range(15)], 16, "row 16 holds 'err'"),
        ([f"{i}.5" for i in range(15)] + ["12,5 kg"], 16, "row 16 holds '12,5 kg'"),
    ],
)
@pytest.mark.parametrize("chunk", ["7", "1000"])
def test_text_that_may_be_no_classes_is_doubted_in_a_log_too(
    folder: Path,
    labels: list[object],
    count: int,
    odd: str,
    chunk: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fit = ["fit", write("t.csv", [f'"{y}"' for y in labels]), *HOW, "--chunk-rows", chunk]
    run(*fit)
    assert isinstance(boscage.load("t.boscage"), MondrianForestClassifier)
    assert capsys.readouterr().err == (
        f"boscage fit: warning: t.csv: column 'y' is taken for classes, {count} different ones in "
        f"the first {len(labels)} rows, since {odd}, which is no number (--task classification "
        "takes it so without this warning)\n"
    )
    run(*fit, "--task", "classification")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes", "perhaps"] * 7,
        ["true", "false"] * 10,
        ["1", "2", "3+", "unknown"] * 5,
        [*range(20)],
        ["a", "b", "1"],
    ],
)
def test_other_targets_are_not_doubted(
    folder: Path, labels: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    run("fit", write("t.csv", labels), *HOW)
    assert capsys.readouterr().err == ""
