"""Check what is inside wheels and source distributions (arguments: their paths).

With ``--address`` they must name this address of the repository, too, and have no relative links.
"""

from __future__ import annotations

import argparse
import re
import tarfile
import zipfile
from pathlib import Path

WHEEL = ["boscage/__init__.py", "boscage/py.typed", "boscage/_core.pyi", "boscage/_core."]
SOURCE = ["pyproject.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.lock"]
# For the stable ABI, or for a free-threaded Python, which has none.
TAGS = ["-cp310-abi3-", "-cp314-cp314t-"]


def check_metadata(name: str, metadata: str, address: str | None) -> None:
    if address is None:
        return
    for label in ("Source", "Documentation", "Issues", "Changelog"):
        if not re.search(
            rf"^Project-URL: {label}, {re.escape(address)}(/|$)", metadata, re.MULTILINE
        ):
            raise SystemExit(f"{name}: expected a Project-URL {label} below {address}, found none")
    if link := re.search(r"\]\((?!https?:|#)[^)]*\)", metadata):
        raise SystemExit(f"{name}: expected links with an address, found {link[0]!r}")


def check_wheel(path: Path, address: str | None) -> None:
    if not any(tag in path.name for tag in TAGS):
        raise SystemExit(f"{path.name}: expected a wheel with one of the tags {TAGS}")
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        check_metadata(path.name, file.read(metadata).decode(), address)
    for wanted in WHEEL:
        if not any(name.startswith(wanted) for name in names):
            raise SystemExit(f"{path.name}: {wanted} is missing")
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        if not any(name.endswith(licence) for name in names):
            raise SystemExit(f"{path.name}: {licence} is missing")
    if stray := [name for name in names if not name.startswith("boscage")]:
        raise SystemExit(f"{path.name}: files outside the package: {stray}")


def check_source(path: Path, address: str | None) -> None:
    with tarfile.open(path) as file:
        names = [name.partition("/")[2] for name in file.getnames()]
        metadata = file.extractfile(f"{file.getnames()[0].partition('/')[0]}/PKG-INFO")
        check_metadata(path.name, metadata.read().decode(), address)
    for wanted in SOURCE:
        if wanted not in names:
            raise SystemExit(f"{path.name}: {wanted} is missing")
    if stray := [name for name in names if name.startswith(("target/", ".venv/"))]:
        raise SystemExit(f"{path.name}: build outputs inside: {stray[:5]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", help="https://HOST/OWNER/NAME")
    parser.add_argument("paths", nargs="+", type=Path, metavar="path")
    args = parser.parse_args()
    for path in args.paths:
        (check_wheel if path.suffix == ".whl" else check_source)(path, args.address)
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, contents as expected")


if __name__ == "__main__":
    main()
