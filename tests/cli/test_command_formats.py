"""Other formats, separators and quotes are read, or refused with a message that says what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pyarrow.feather as feather
import pytest

from boscage._cli.main import main
from boscage._cli.reading.quotes import Quotes
from boscage._cli.reading.sources import Source
from command_line import COMMAND, FEW, digest, fails, flowers, run

FIT = ["-t", "species", "--id-column", "id", *FEW, "-o", "m"]


@pytest.mark.parametrize(
    ("separator", "typed"), [("\t", "\\t"), ("\t", "\t"), (";", ";"), ("|", "|"), (" ", " ")]
)
def test_separators(folder: Path, separator: str, typed: str) -> None:
    Path("t.txt").write_text(Path("iris_train.csv").read_text().replace(",", separator))
    run("fit", "t.txt", *FIT, "--delimiter", typed)
    assert digest("m") == digest("iris.model")


def test_a_wrong_separator_is_guessed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for separator, shown in (("\t", "'\\t'"), (";", "';'")):
        Path("t.csv").write_text(Path("iris.csv").read_text().replace(",", separator))
        assert fails(capsys, "fit", "t.csv", *FIT) == (
            f"t.csv: there is no column {FIT[1]!r} (the target); columns seem to be separated by"
            f" {shown}: give --delimiter {shown}"
        )


def test_spaces_around_names_in_the_header(folder: Path) -> None:
    header, rest = Path("iris_train.csv").read_text().split("\n", 1)
    Path("t.csv").write_text(header.replace('"', "").replace(",", " , ") + "\n" + rest)
    run("fit", "t.csv", *FIT)
    assert digest("m") == digest("iris.model")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.bz2", "t"])
def test_compression_is_told_by_the_content(folder: Path, name: str) -> None:
    for compress in (gzip.compress, bz2.compress, bytes):
        Path(name).write_bytes(compress(Path("iris_train.csv").read_bytes()))
        run("fit", name, *FIT)
        assert digest("m") == digest("iris.model")


@pytest.mark.parametrize("wrong_row", [False, True])
def test_no_time_is_lost_at_the_end_of_a_table(folder: Path, wrong_row: bool) -> None:
    if wrong_row:
        with open("iris_train.csv", "a") as file:
            file.write("1,2\n")
    took = []
    for _ in range(5):
        start = time.monotonic()
        assert main(["fit", "iris_train.csv", *FIT]) == 2 * wrong_row
        took.append(time.monotonic() - start)
    assert min(took) < 0.5


@pytest.mark.slow
def test_a_pipe_with_a_name_is_read_once(folder: Path) -> None:
    fit = f"{sys.executable} -m boscage fit <(cat iris_train.csv) {' '.join(FIT)}"
    subprocess.run(["bash", "-c", fit], check=True)
    assert digest("m") == digest("iris.model")


FOREIGN = {
    "t.xlsx": "an Excel workbook (.xlsx)",
    "t.feather": "a Feather (Arrow) table",
    "t.json": "JSON",
    "lines.json": "JSON",
    "t.html": "HTML or XML",
    "t.npy": "a NumPy array",
    "t.bin": "binary data",
}


def write_foreign() -> None:
    feather.write_feather(flowers(), "t.feather", compression="uncompressed")
    with zipfile.ZipFile("t.xlsx", "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
    Path("t.json").write_text(json.dumps(flowers().to_pylist()))
    Path("lines.json").write_text("\n".join(map(json.dumps, flowers().to_pylist())))
    Path("t.html").write_text("<!DOCTYPE html><html></html>")
    Path("t.npy").write_bytes(b"\x93NUMPY\x01\x00")
    Path("t.bin").write_bytes(bytes(range(256)))


def test_foreign_formats_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_foreign()
    for name, found in FOREIGN.items():
        assert fails(capsys, "fit", name, *FIT) == (
            f"{name}: found {found}, expected a table in CSV or Parquet: save it as one of these"
        )
        assert fails(capsys, "info", name) == (
            f"{name}: found {found}, expected a model file, such as boscage fit writes"
        )
    assert not Path("m").exists()


def test_packed_files_are_to_be_unpacked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile("t.zip", "w") as archive:
        archive.write("iris.csv")
    Path("t.csv.xz").write_bytes(lzma.compress(Path("iris.csv").read_bytes()))
    for name, found in (("t.zip", "a zip archive"), ("t.csv.xz", "an xz-compressed file")):
        assert fails(capsys, "fit", name, *FIT) == (
            f"{name}: found {found}, expected a table: unpack it first"
            " (gzip, bz2, zstd, lz4 are read)"
        )


def test_model_and_table_in_each_others_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = "expected a model file, such as boscage fit writes"
    for name, found in (
        ("iris.csv", "text, perhaps a CSV table"),
        ("iris.parquet", "a Parquet table"),
    ):
        assert fails(capsys, "predict", name, "iris.model") == f"{name}: found {found}, {expected}"
    said = fails(capsys, "predict", "iris.model", "diabetes.model")
    assert said == "diabetes.model: found a boscage model, expected a table"
    Path("empty").write_text("")
    assert fails(capsys, "info", "empty") == f"empty: found an empty file, {expected}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("utf-16", "found UTF-16 text, expected UTF-8 text: save the table as CSV in UTF-8"),
        ("cut", "the gzip-compressed file is damaged or cut off (Truncated compressed stream)"),
        (
            "parquet.gz",
            "found a Parquet table in a gzip-compressed file, expected it as it is: decompress it"
            " first",
        ),
    ],
)
def test_files_that_are_nearly_tables(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    Path("t").write_bytes(
        {
            "utf-16": Path("iris.csv").read_text().encode("utf-16"),
            "cut": gzip.compress(Path("iris.csv").read_bytes())[:-100],
            "parquet.gz": gzip.compress(Path("iris.parquet").read_bytes()),
        }[content]
    )
    assert fails(capsys, "fit", "t", *FIT) == f"t: {said}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("iris.parquet", "found a Parquet table, expected CSV: give Parquet by the name of its"),
        ("t.gz", "found a gzip-compressed file, expected plain CSV: decompress it first"),
    ],
)
def test_what_standard_input_cannot_be(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    said: str,
) -> None:
    Path("t.gz").write_bytes(gzip.compress(Path("iris.csv").read_bytes()))
    stdin = io.TextIOWrapper(io.BytesIO(Path(name).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert fails(capsys, "predict", "iris.model", "-").startswith(f"standard input: {said}")


# -- quotes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('x,y\n1,a\n2,"b\n3,c\n', 3),
        ('x,y\n1,a\n"2,b\n3,c\n', 3),
        ('x,"y\n1,a\n', 1),
        ('x,y\n1,"a\nb"\n2,"c""\n', 4),
        ('x,y\n1,"a\nb",\n2,"c', 4),
        ("x,y\n1,a\n" + '2,"b\n' + "3,c\n" * 400_000, 3),
        ('x,y\n"' + "1,a\n" * 400_000, 2),
    ],
)
def test_a_quote_that_is_not_closed_is_named_by_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, line: int
) -> None:
    Path("t.csv").write_text(text)
    said = fails(capsys, "fit", "t.csv", "-t", "y", "-o", "m", *FEW)
    assert said == f't.csv: line {line}: a quote (") opens here and is not closed'
    assert not Path("m").exists()


@pytest.mark.parametrize(
    "text",
    [
        'x,y\n1,"a\nb"\n',
        'x,y\n1,"a ""b"" c"\n',
        'x,y\n1,""\n',
        'x,y\n1,5" pipe\n',
        'x,y\n1,a"\n2,b\n',
        '\ufeff"x,1","y"\n1,""""\n',
        'x,y\r\n1,"a\r\nb"\r\n',
    ],
)
def test_quotes_that_are_right(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    source = Source(str(path))
    (chunk,) = source.chunks(source.columns, 10)
    assert len(chunk) == text.count("\n2,") + 1


def test_quotes_are_followed_through_pieces_of_any_size() -> None:
    text = b'x,y\n1,"a""\n"",b"\n2,5" c\n3,"d\n4,e\n'
    for size in range(1, len(text) + 1):
        quotes = Quotes(",")
        for start in range(0, len(text), size):
            quotes.feed(text[start : start + size])
        quotes.finish()
        assert quotes.opened == 5
        quotes.feed(b'"\n5,f\n')
        quotes.finish()
        assert quotes.opened is None


def test_a_value_longer_than_a_row_may_be(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text('x,y\n1,a\n2,"' + "b\n" * 2_000_000 + '"\n3,c\n')
    said = fails(capsys, "fit", "t.csv", "-t", "y", "-o", "m", *FEW)
    assert said == (
        't.csv: line 3: a quote (") opens here that is not closed within 1 MB, which no row may'
        " exceed"
    )


@pytest.mark.slow
def test_a_refused_table_is_one_line_of_a_process(folder: Path) -> None:
    """A leftover thread of the reader would abort the process."""
    Path("t.csv").write_text('x,y\n1,a\n2,"b\n')
    fit = [*COMMAND, "fit", "t.csv", "-t", "y", "-o", "m"]
    done = subprocess.run(fit, capture_output=True, text=True, check=False)
    said = 't.csv: line 3: a quote (") opens here and is not closed'
    assert (done.returncode, done.stderr) == (2, f"boscage fit: error: {said}\n")
    assert "m" not in os.listdir()
