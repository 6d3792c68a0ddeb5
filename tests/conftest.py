"""What holds for all tests: one thread for linear algebra."""

from __future__ import annotations

import os

# OpenBLAS starts as many threads as there are cores, and they wait for each other in busy loops. On
# matrices as small as those of the tests, and beside other processes (`pytest -n`), this takes up
# to ten times as long. Read when NumPy is imported; the processes that tests start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
