"""A folder of Parquet files is a table."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from command_line import EQUAL, FEW, digest, fails, run

FIT = ["-t", "species", "--id-column", "id", *EQUAL, *FEW, "-o", "m"]


@pytest.fixture
def parts(folder: Path) -> Path:
    """The training rows in files whose order by name is not that of letters."""
    table = pacsv.read_csv("iris_train.csv")
    path = Path("parts")
    path.mkdir()
    ends = [0, 7, 7, 40, len(table)]
    for number, (start, end) in zip([0, 2, 9, 10], pairwise(ends), strict=True):
        pq.write_table(table.slice(start, end - start), path / f"part.{number}.parquet")
    (path / "_SUCCESS").write_text("")
    (path / "notes.txt").write_text("not a table")
    return path


@pytest.mark.parametrize("more", [[], ["--chunk-rows", "11"]])
def test_a_folder_is_its_files_in_order(parts: Path, more: list[str]) -> None:
    run("fit", "parts", *FIT, *more)
    whole = pq.read_table("parts/part.0.parquet").schema
    assert whole.names[0] == "id"
    run("fit", "iris_train.csv", *FIT[:-1], "one", *more)
    assert digest("m") == digest("one")
    # Rows without ids are numbered by their order, on which predictions of one row depend.
    without = ["-t", "species", "--drop", "id", *EQUAL, *FEW, "-o"]
    run("fit", "parts/", *without, "m", *more)
    run("fit", "iris_train.csv", *without, "one", *more)
    run("forget", "m", "38", "39", "41")
    run("forget", "one", "38", "39", "41")
    assert digest("m") == digest("one")
    run("predict", "m", "parts", "-o", "a.csv")
    run("predict", "m", "iris_train.csv", "-o", "b.csv")
    assert Path("a.csv").read_text() == Path("b.csv").read_text()


def test_the_model_has_the_name_of_the_folder(parts: Path) -> None:
    run("fit", "parts/", *FIT[:-2])
    assert digest("parts.boscage")


def test_files_that_differ_are_refused(parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last, first = parts / "part.10.parquet", str(parts / "part.0.parquet")
    table = pq.read_table(last)
    name = table.column_names[1]
    pq.write_table(table.set_column(1, name, table.column(1).cast(pa.float32())), last)
    assert fails(capsys, "fit", "parts", *FIT) == (
        f"{last}: column {name!r} is of type float, expected double as in {first}"
    )
    pq.write_table(table.drop_columns([name]), last)
    assert fails(capsys, "fit", "parts", *FIT).startswith(f"{last}: found the columns id, ")
    last.write_bytes(b"PAR1")
    assert fails(capsys, "fit", "parts", *FIT).startswith(f"{last}: the Parquet file is damaged")
    last.unlink()
    (parts / "year=2020").mkdir()
    assert fails(capsys, "fit", "parts", *FIT) == (
        "parts: found the folder 'year=2020' beside Parquet files, expected files alone"
    )
