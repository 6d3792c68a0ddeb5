"""Write the address of the repository into all that is published: metadata and the README's links.

The argument is the address, https://HOST/OWNER/NAME. An address that is already there, as Source in
pyproject.toml, is replaced in all files. All files are checked before one is written.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# For each file: a line of it, and what is written below. No workflow publishes the documentation,
# so its address is that of the folder in the repository.
LINES = {
    "pyproject.toml": (
        'boscage = "boscage.__main__:main"',
        "",
        "[project.urls]",
        'Homepage = "{address}"',
        'Source = "{address}"',
        'Documentation = "{address}/tree/main/docs"',
        'Issues = "{address}/issues"',
        'Changelog = "{address}/blob/main/CHANGELOG.md"',
    ),
    "rust/boscage/Cargo.toml": (
        "description.workspace = true",
        'repository = "{address}"',
        'documentation = "https://docs.rs/boscage"',
    ),
    "CITATION.cff": ("type: software", 'url: "{address}"', 'repository-code: "{address}"'),
    "conda/recipe.yaml": (
        "about:",
        "  homepage: {address}",
        "  repository: {address}",
        "  documentation: {address}/tree/main/docs",
    ),
}
# PyPI knows no file beside the README: its relative links lead to the repository instead.
PICTURE = re.compile(r"(!\[[^\]]*\]\()(?!https?:)")
LINK = re.compile(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)")


def named(name: str, text: str, address: str) -> str:
    """Give the text of a file of ``LINES`` with its lines, if it does not name the address yet."""
    above, *lines = (line.format(address=address) for line in LINES[name])
    rows = text.splitlines()
    if any(address in line and line in rows for line in lines):
        return text
    for key in (re.match(r"\s*[^\s=:]+", line)[0] for line in lines if line):
        for row in rows:
            if re.match(rf"{re.escape(key)}(?![\w-])", row):
                raise SystemExit(
                    f"{name} has {row.strip()!r}: expected no such line, or the address of Source"
                    " in pyproject.toml"
                )
    if rows.count(above) != 1:
        raise SystemExit(f"{name}: expected one line {above!r}, found {rows.count(above)}")
    below = rows.index(above) + 1
    return "\n".join([*rows[:below], *lines, *rows[below:]]) + "\n"


def linked(text: str, address: str) -> str:
    """Give the text of the README with links into the repository in place of relative ones."""
    text = PICTURE.sub(rf"\1{address}/raw/main/", text)
    return LINK.sub(rf"\1{address}/blob/main/", text)


def main() -> None:
    address = " ".join(sys.argv[1:])
    if not re.fullmatch(r"https://[\w.-]+/[\w.-]+/[\w.-]+(?<!\.git)", address):
        raise SystemExit(f"expected an address https://HOST/OWNER/NAME, found {address!r}")
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in [*LINES, "README.md"]}
    if old := re.search(r'^Source = "(.+)"$', texts["pyproject.toml"], re.MULTILINE):
        former = re.compile(rf"{re.escape(old[1])}(?![\w.-])")
        texts = {name: former.sub(address, text) for name, text in texts.items()}
    texts["README.md"] = linked(texts["README.md"], address)
    for name in LINES:
        texts[name] = named(name, texts[name], address)
    for name, text in texts.items():
        (ROOT / name).write_text(text, encoding="utf-8")
    print(f"{', '.join(texts)}: {address}")


if __name__ == "__main__":
    main()
