"""The command as a process: pipes, terminals, missing packages."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import boscage
from command_line import COMMAND, FEW, run


@pytest.mark.slow
def test_silence_in_a_pipe(folder: Path) -> None:
    fit = [*COMMAND, "fit", "iris.csv", "-t", "species", "-o", "m", *FEW, "--chunk-rows", "50"]
    done = subprocess.run(fit, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.slow
def test_progress_and_remarks_on_a_terminal(folder: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 80, 0, 0))
    fit = [*COMMAND, "fit", "iris.csv", "-t", "species", "-o", "m", *FEW, "--chunk-rows", "50"]
    with subprocess.Popen(fit, stderr=theirs, stdout=subprocess.DEVNULL) as process:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 4096):
                said += piece
        except OSError:  # Linux raises this if the other end is closed
            pass
        finally:
            os.close(ours)
    assert process.returncode == 0
    assert b"training" in said
    assert b"150" in said
    assert b"task: classification" in said


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(iris_model: str) -> None:
    features = ["--features", "x0,x1,x2,x3"]
    predict = [*COMMAND, "predict", iris_model, "-", "--chunk-rows", "1", *features]
    with subprocess.Popen(
        predict, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        header, *lines = Path("iris.csv").read_bytes().splitlines(keepends=True)
        process.stdin.write(header)
        for _ in range(30):
            process.stdin.writelines(lines)
        process.stdin.flush()
        process.stdin.close()
        assert process.stdout.readline().startswith(b"prediction,")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.slow
def test_without_pyarrow_the_rest_works() -> None:
    code = "import sys; sys.modules['pyarrow'] = None; from boscage.__main__ import main; "
    done = subprocess.run(
        [sys.executable, "-c", code + "sys.exit(main(['fit', 'a', '-t', 'b', '-o', 'c']))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "boscage fit: error: this command needs pyarrow: pip install 'boscage[cli]'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + "main(['--version'])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"boscage {boscage.__version__}\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs one processor")
def test_the_reader_has_ended_when_the_process_does(tmp_path: Path) -> None:
    """A leftover thread would abort the process; on one processor it nearly always does."""
    paths = {name: str(tmp_path / name) for name in ("train.csv", "header.csv", "model")}
    Path(paths["train.csv"]).write_text("a,b\n1,2\n2,3\n3,5\n4,4\n")
    Path(paths["header.csv"]).write_text("a\n")
    run("fit", paths["train.csv"], "--target", "b", "-o", paths["model"], *FEW)
    for _ in range(4):
        done = subprocess.run(
            [*COMMAND, "predict", paths["model"], paths["header.csv"]],
            capture_output=True,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
        )
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_without_pyarrow_models_can_be_looked_at_and_forget(iris_model: str) -> None:
    code = "import sys; sys.modules['pyarrow'] = None; from boscage.__main__ import main; "
    for args in (["info", iris_model, "--trees"], ["forget", iris_model, "100"]):
        done = subprocess.run(
            [sys.executable, "-c", code + f"sys.exit(main({args!r}))"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert boscage.load(iris_model).n_rows_ == 119
