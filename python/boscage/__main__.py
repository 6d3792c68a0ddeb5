"""``python -m boscage`` and the console script ``boscage``."""

from __future__ import annotations

import sys

from boscage._cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
