"""Tables are read in chunks, of any type and size."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import boscage
from boscage._cli.reading import readers
from boscage._cli.reading.sources import Source
from command_line import FEW, fails, read, run


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_large_table_is_never_held_whole(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / f"large.{kind}")
    rng = np.random.default_rng(0)
    columns = {f"x{d}": rng.random(400_000) for d in range(10)}
    if kind == "csv":
        pacsv.write_csv(pa.table(columns), path)
    else:
        pq.write_table(pa.table(columns), path, row_group_size=50_000)
    del columns
    size = os.path.getsize(path)
    before, most, rows, total = pa.total_allocated_bytes(), 0, 0, 0.0
    for chunk in Source(path).chunks(["x0", "x5"], 10_000):
        assert chunk.first_row == rows + 1
        rows += len(chunk)
        total += chunk.numbers("x5").to_numpy().sum()
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == 400_000
    assert total == pytest.approx(200_000, rel=0.01)
    assert most < 0.6 * size  # about 35 MB, whatever the size


def test_chunks_have_the_size_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "".join(f"{i}\n" for i in range(1000)))
    for size in (1, 7, 999, 1000, 1001):
        chunks = list(Source(str(path)).chunks(["a"], size))
        assert [len(c) for c in chunks[:-1]] == [size] * (len(chunks) - 1)
        values = np.concatenate([c.numbers("a").to_numpy() for c in chunks])
        np.testing.assert_array_equal(values, np.arange(1000))


def test_headers_and_cells_may_be_quoted_and_padded(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    text = '\ufeff"a, b","c\nd"\n" 1.5 ","x\ny"\n2, z\n'
    path.write_text(text, encoding="utf-8", newline="")
    source = Source(str(path))
    assert source.columns == ["a, b", "c\nd"]
    (chunk,) = source.chunks(source.columns, 10)
    assert chunk.numbers("a, b").to_pylist() == [1.5, 2.0]
    assert chunk.column("c\nd").to_pylist() == ["x\ny", "z"]


def test_parquet_types(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    table = pa.table(
        {
            "flag": [True, False],
            "small": pa.array([1, 2], pa.uint8()),
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "text": pa.array(["1", "2.5"], pa.large_string()),
        }
    )
    pq.write_table(table, path)
    (chunk,) = Source(path).chunks(table.column_names, 10)
    assert chunk.numbers("flag").to_pylist() == [1.0, 0.0]
    assert chunk.numbers("small").to_pylist() == [1.0, 2.0]
    assert chunk.numbers("text").to_pylist() == [1.0, 2.5]
    assert chunk.column("word").to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a, b ,c", ["a", "b", "c"]),
        ('"b,c",d', ["b,c", "d"]),
        ('d, "b,c"', ["d", "b,c"]),
        ('"say ""b, c""",5" pipe', ['say "b, c"', '5" pipe']),
    ],
)
def test_names_of_columns_are_quoted_as_in_csv(text: str, names: list[str]) -> None:
    assert readers.names(text) == names


def test_a_column_whose_name_holds_a_comma_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},{i % 3},{i % 2},{i % 2}\n" for i in range(20))
    Path("t.csv").write_text(f'a,"b,c",d,y\n{rows}')
    fit = ["fit", "t.csv", "-t", "y", *FEW]
    for how, features in (
        (["--drop", '"b,c",d'], ["a"]),
        (["--features", '"b,c",a'], ["b,c", "a"]),
        (["--categorical", 'd,"b,c"'], ["a", "b,c", "d"]),
    ):
        run(*fit, *how)
        assert boscage.load("t.boscage").feature_names_in_.tolist() == features
    assert [bool(table) for table in boscage.load("t.boscage").categories_] == [False, True, True]
    run("predict", "t.boscage", "t.csv", "--keep", '"b,c"', "-o", "p.csv")
    assert [row["b,c"] for row in read("p.csv")] == [str(i % 3) for i in range(20)]
    said = fails(capsys, *fit, "--drop", "b,c")
    assert said.startswith("t.csv: there is no column 'b' (to be left out); its columns are a, ")
    assert said.endswith('are a, "b,c", d, y')


def test_fit_says_which_columns_are_categories_in_a_log_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f'"{i + 1},001.73",{i}.5%,{"uv"[i % 2]},{i},{i % 2}\n' for i in range(30))
    Path("t.csv").write_text(f"price,share,kind,x,y\n{rows}")
    said = "categories: {}; all other features are numbers (--categorical adds some)\n"
    doubt = (
        "boscage fit: warning: column '{}' is taken for categories, 30 different ones in 30 rows, "
        "since it is text; numbers must have neither thousands separators nor per cent signs "
        "(--categorical {} takes it so without this warning)\n"
    )
    fit = ["fit", "t.csv", "-t", "y", *FEW]
    for chunk in ("7", "1000"):
        run(*fit, "--categorical", "share", "--chunk-rows", chunk)
        found = said.format("price (30), share (30), kind (2)")
        assert capsys.readouterr().err == doubt.format("price", "price") + found
    run(*fit, "--drop", "price,share")
    assert capsys.readouterr().err == said.format("kind (2)")
    run(*fit, "--features", "x")
    assert capsys.readouterr().err == ""
    run(*fit, "--drop", "price,share")
    run("info", "t.boscage")
    assert re.search("^categories +kind: u, v$", capsys.readouterr().out, re.MULTILINE)
