"""docs/thesis-map.md has a row for every algorithm and equation of chapters 3 to 6.

What a row names exists, what it calls a test is one, and the code cites the row's number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAP = ROOT / "docs" / "thesis-map.md"

NUMBERS = {
    "Algorithm": {3: 1, 4: 2, 5: 10, 6: 5},
    "Equation": {3: 8, 4: 10, 5: 7, 6: 5},
}
"""How many there are in each chapter of the thesis, numbered from 1."""

ALL = [
    f"{kind} {chapter}.{i}"
    for kind, chapters in NUMBERS.items()
    for chapter, n in chapters.items()
    for i in range(1, n + 1)
]

DEFINITION = r"\b(?:fn|struct|enum|trait|type|const|static|def|class|macro_rules!)\s+"
LIST = r"\d\.\d+(?:(?:, and|,| and| or| to)?[\s/!*]+\d\.\d+\b|(?:, and|,| and| or| to)[\s/!*]+)*"
CITATION = re.compile(rf"\b(Algorithms?|[Ee]quations?|eqs?\.)[\s/!*]+({LIST})")


@dataclass(frozen=True)
class Row:
    """A row of the map: what it is about, where it is computed, what tests it."""

    what: str
    code: str
    tests: str


@dataclass(frozen=True)
class Reference:
    """A file, and the names of an item in it from the outermost type to the function."""

    path: Path
    names: tuple[str, ...]

    def text(self) -> str:
        assert self.path.is_file(), f"{self.path.relative_to(ROOT)} is no file"
        return self.path.read_text(encoding="utf-8")


def rows() -> list[Row]:
    lines = MAP.read_text(encoding="utf-8").splitlines()
    cells = [line.strip("|").split(" | ") for line in lines if line.startswith("|")]
    assert all(len(row) == 4 for row in cells), [row[0] for row in cells if len(row) != 4]
    body = [row for row in cells if not set(row[0]) <= set("- ") and row[1] != "Code"]
    return [Row(*(cell.strip() for cell in row[:3])) for row in body]


def references(cell: str) -> list[Reference]:
    found = []
    for reference in re.findall(r"`([^`]+)`", cell):
        path, *names = reference.split("::")
        found.append(Reference(ROOT / path, tuple(names)))
    assert found, "names nothing"
    return found


def is_defined(text: str, name: str) -> bool:
    return re.search(DEFINITION + re.escape(name) + r"\b", text) is not None


def is_method(text: str, owner: str, name: str) -> bool:
    """Whether an ``impl``, ``trait`` or ``class`` block of ``owner`` defines ``name``."""
    head = rf"^(?:pub(?:\([a-z]+\))? )?(?:impl|trait|class)\b[^\n]*\b{re.escape(owner)}\b"
    ends = r"^(?:\}|\S[^\n]*:$)"
    for start in re.finditer(head, text, re.MULTILINE):
        end = re.compile(ends, re.MULTILINE).search(text, text.index("\n", start.start()))
        if is_defined(text[start.start() : end.start() if end else len(text)], name):
            return True
    return False


def is_test(reference: Reference) -> bool:
    (name,) = reference.names
    if reference.path.suffix == ".py":
        return name.startswith("test_") and is_defined(reference.text(), name)
    marked = rf"#\[test\]\n(?:\s*(?:///|#\[)[^\n]*\n)*\s*fn {re.escape(name)}\("
    return re.search(marked, reference.text()) is not None


def citations(text: str) -> set[str]:
    """Numbers that comments cite, as "Algorithm 5.8" or "Equation 4.9", lists taken apart."""
    return {
        f"{'Algorithm' if kind.startswith('A') else 'Equation'} {number}"
        for kind, numbers in CITATION.findall(text)
        for number in re.findall(r"\d\.\d+", numbers)
    }


def name(row: Row) -> str:
    return row.what


def test_every_algorithm_and_equation_has_one_row() -> None:
    numbered = [row.what for row in rows() if re.search(r"\b(?:Algorithm|Equation)", row.what)]
    for what in numbered:
        assert re.fullmatch(r"(?:Algorithm|Equation) \d\.\d+: \S.*", what), what
        assert len(re.findall(r"\b(?:Algorithm|Equation)", what)) == 1, what
    assert sorted(what.split(":")[0] for what in numbered) == sorted(ALL)


def test_no_two_rows_are_about_the_same() -> None:
    about = [row.what for row in rows()]
    assert len(about) == len(set(about))


@pytest.mark.parametrize("row", rows(), ids=name)
def test_the_code_that_a_row_names_exists(row: Row) -> None:
    for reference in references(row.code):
        text = reference.text()
        where = f"{reference.path.name} does not define {'::'.join(reference.names)}"
        if len(reference.names) == 2:
            assert is_method(text, *reference.names), where
        else:
            assert all(is_defined(text, item) for item in reference.names), where


@pytest.mark.parametrize("row", rows(), ids=name)
def test_the_tests_that_a_row_names_are_tests(row: Row) -> None:
    for reference in references(row.tests):
        assert is_test(reference), f"{reference.path.name} has no test {reference.names}"


def definitions(text: str, name: str) -> list[str]:
    """All that define a name: the comments above, and what is indented below."""
    lines, found = text.splitlines(), []
    for start, line in enumerate(lines):
        if not re.match(r"\s*(?:pub(?:\([a-z]+\))? )?" + DEFINITION[2:] + rf"{name}\b", line):
            continue
        indent = len(line) - len(line.lstrip())
        first, end = start, start + 1
        while re.match(r"\s*(?:///|#\[|@)", lines[first - 1]):
            first -= 1
        while end < len(lines) and not re.match(rf"\s{{,{indent}}}[^\s)\]]", lines[end]):
            end += 1
        found.append("\n".join(lines[first:end]))
    return found


@pytest.mark.parametrize("row", [row for row in rows() if row.what.split(":")[0] in ALL], ids=name)
def test_every_definition_that_a_row_names_cites_the_number(row: Row) -> None:
    number = row.what.split(":")[0]
    as_written = number.replace("Equation", "eq.")
    for reference in references(row.code):
        text, names = reference.text(), reference.names
        found = definitions(text, names[-1]) if names else [text]
        where = "::".join([reference.path.name, *names])
        assert any(number in citations(one) for one in found), f"{where} does not cite it"
        assert as_written in text, f"{where}: git grep {as_written!r} does not find it"


def test_the_code_cites_no_number_that_the_thesis_lacks() -> None:
    source = ROOT / "rust" / "boscage" / "src"
    cited = {one: file for file in source.rglob("*.rs") for one in citations(file.read_text())}
    known = {*ALL, "Equation 2.1", "Equation 2.2"}
    assert {one: file.name for one, file in cited.items() if one not in known} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/// the weight (eq. 4.10).", {"Equation 4.10"}),
        ("//! (eqs. 3.6 and\n    //! 3.7), and", {"Equation 3.6", "Equation 3.7"}),
        ("Algorithms 5.5 and 5.6, and 5.10", {"Algorithm 5.5", "Algorithm 5.6", "Algorithm 5.10"}),
        ("(Algorithm 5.2, lines 6-7; 9.9)", {"Algorithm 5.2"}),
        ("(eq. 6.3, Algorithm 6.5)", {"Equation 6.3", "Algorithm 6.5"}),
        ("section 5.5.3 and Kingma's Algorithm 1", set()),
    ],
)
def test_citations_are_read_in_lists_and_across_lines(text: str, found: set[str]) -> None:
    assert citations(text) == found
