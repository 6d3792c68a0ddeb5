"""The papers' experiments run, on generated data, and their report says what they found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import boscage

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benches.papers", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=dict(os.environ))


def python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_all_experiments_run_and_are_reported(tmp_path: Path) -> None:
    done = run("--quick", "--generated", "--seeds", "1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    names = sorted(path.stem for path in (ROOT / "benches" / "papers").glob("ch*_*.py"))
    page, html = ((tmp_path / f"report.{kind}").read_text() for kind in ("md", "html"))
    claims = 0
    for name in names:
        section = json.loads((tmp_path / f"{name}.json").read_text())
        assert f"## {section['title']}" in page
        claims += page.count(f"(`{name}`, quick sizes")
        tables = [block for block in section["blocks"] if block["kind"] == "table"]
        assert tables
        for block in tables:
            assert all(len(row) == len(block["columns"]) for row in block["rows"])
    assert claims == len(names)
    assert "generated stand-ins" in page
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert {"ch3_madelon_curves.png", "ch6_optimizers_curves.png"} < pictures
    for picture in pictures:
        assert f"]({picture})" in page
        assert (tmp_path / picture).stat().st_size < 60_000
    assert html.count('src="data:image/png;base64,') == len(pictures)
    assert html.count("<table>") >= len(names)

    # A section can be renewed alone; the others stay.
    (tmp_path / "ch5_depth.json").unlink()
    assert run("ch5_depth", "--quick", "--generated", "--out", str(tmp_path)).returncode == 0
    assert (tmp_path / "report.md").read_text().count("\n## ") == len(names)


@pytest.mark.slow
def test_an_interrupted_comparison_goes_on(tmp_path: Path) -> None:
    kept = tmp_path / "ch6_optimizers.studies.jsonl"
    mine, random = (["branin", name, 0, 50] for name in ("boscage", "random search"))
    now = boscage.__version__
    lines = [
        json.dumps([[now, False], mine, [123.0] * 50, [1.0] * 50]),  # not of generated sets
        json.dumps([["0.0.1", True], mine, [123.0] * 50, [1.0] * 50]),
        json.dumps([[now, True], mine, [456.0] * 50, [10.0] * 50]),
        json.dumps([[now, True], random, [789.0] * 50, [0.0] * 50])[:-9],
    ]
    kept.write_text("\n".join(lines))
    # A study that is kept now is on a line of its own.
    python(
        "import numpy as np, pathlib; from benches.papers._studies import Studies; "
        f"kept = Studies(pathlib.Path({str(kept)!r}), True); "
        "kept.keep(('branin', 'optuna TPE', 0, 50), np.full(50, 654.0), np.ones(50))"
    )
    done = run("ch6_optimizers", "--quick", "--generated", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "2 studies are those of an earlier run" in done.stdout
    section = json.loads((tmp_path / "ch6_optimizers.json").read_text())
    table = next(block for block in section["blocks"] if block["kind"] == "table")
    branin = dict(zip(table["columns"], table["rows"][0], strict=True))
    assert branin["boscage"] == "456"
    assert branin["optuna TPE"] == "654"
    assert branin["random search"] not in ("123", "789")
    assert "2 of 6 studies; their optimisers took 550 s" in str(section["settings"])
    assert not kept.exists()


@pytest.mark.slow
def test_unknown_names_are_refused() -> None:
    done = run("ch7_nothing")
    assert done.returncode == 2
    assert "no such experiment: ch7_nothing; there are ch3_evidence," in done.stderr


@pytest.mark.slow
def test_flights_of_2008_are_read(tmp_path: Path) -> None:
    flights, planes = tmp_path / "2008.csv", tmp_path / "plane-data.csv"
    flights.write_text(
        "Year,Month,DayofMonth,DayOfWeek,DepTime,ArrTime,TailNum,AirTime,ArrDelay,Distance\n"
        "2008,2,1,5,700,815,N1,60,-4,500\n"
        "2008,1,3,4,2003,2211,N1,116,14,810\n"
        "2008,1,3,4,754,1002,N2,113,2,810\n"
        "2008,1,3,4,755,1003,N3,113,2,810\n"  # an aircraft of unknown age
        "2008,1,2,3,755,,N1,,,810\n"  # cancelled
    )
    planes.write_text("tailnum,type,year\nN1,x,1998\nN2,x,2000\nN3,x,None\n")
    code = (
        "import json, pathlib; from benches.papers._data import read_flights; "
        f"X, y = read_flights(pathlib.Path({str(flights)!r}), pathlib.Path({str(planes)!r})); "
        "print(json.dumps([X.tolist(), y.tolist()]))"
    )
    X, y = json.loads(python(code))
    # Age, distance, time in the air, departure, arrival, day of the week and of the month, month.
    assert X == [
        [8, 810, 113, 474, 602, 4, 3, 1],
        [10, 810, 116, 1203, 1331, 4, 3, 1],
        [10, 500, 60, 420, 495, 5, 1, 2],
    ]
    assert y == [2, 14, -4]


MODELS = {
    "OnlineForest": "_online_forest import OnlineForest; "
    "model = OnlineForest(X.min(axis=0), X.max(axis=0), 3, n_trees=20, split_after=30.0)",
    "DynamicTrees": "_dynamic_trees import DynamicTrees; model = DynamicTrees(3, n_particles=20)",
}


@pytest.mark.slow
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_comparators_learn_row_by_row(make: str) -> None:
    code = f"""
import numpy as np
rng = np.random.default_rng(0)
X = rng.uniform(size=(1000, 3))
y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.7)
from benches.papers.{make}
for rows in (slice(0, 10), slice(10, 600)):
    model.partial_fit(X[rows], y[rows])
    proba = model.predict_proba(X[600:])
    assert np.allclose(proba.sum(axis=1), 1.0)
    print((proba.argmax(axis=1) == y[600:]).mean())
"""
    first, last = map(float, python(code).split())
    assert last > 0.9
    assert last > first + 0.05
