"""The stubs of the compiled module agree with the module."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_stubs_agree_with_the_compiled_module() -> None:
    pytest.importorskip("mypy.stubtest")
    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "boscage._core"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
