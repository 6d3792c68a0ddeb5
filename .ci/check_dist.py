"""Check what is inside wheels and source distributions (arguments: their paths)."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

WHEEL = ["boscage/__init__.py", "boscage/py.typed", "boscage/_core.pyi", "boscage/_core."]
SOURCE = ["pyproject.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.lock"]
# For the stable ABI, or for a free-threaded Python, which has none.
TAGS = ["-cp310-abi3-", "-cp314-cp314t-"]


def check_wheel(path: Path) -> None:
    if not any(tag in path.name for tag in TAGS):
        raise SystemExit(f"{path.name}: expected a wheel with one of the tags {TAGS}")
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
    for wanted in WHEEL:
        if not any(name.startswith(wanted) for name in names):
            raise SystemExit(f"{path.name}: {wanted} is missing")
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        if not any(name.endswith(licence) for name in names):
            raise SystemExit(f"{path.name}: {licence} is missing")
    if stray := [name for name in names if not name.startswith("boscage")]:
        raise SystemExit(f"{path.name}: files outside the package: {stray}")


def check_source(path: Path) -> None:
    with tarfile.open(path) as file:
        names = [name.partition("/")[2] for name in file.getnames()]
    for wanted in SOURCE:
        if wanted not in names:
            raise SystemExit(f"{path.name}: {wanted} is missing")
    if stray := [name for name in names if name.startswith(("target/", ".venv/"))]:
        raise SystemExit(f"{path.name}: build outputs inside: {stray[:5]}")


def main() -> None:
    if len(sys.argv) == 1:
        raise SystemExit("expected wheels and source distributions, found none")
    for path in map(Path, sys.argv[1:]):
        (check_wheel if path.suffix == ".whl" else check_source)(path)
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, contents as expected")


if __name__ == "__main__":
    main()
