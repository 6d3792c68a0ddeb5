"""The format of a file, recognised by its first bytes, for messages about wrong files."""

from __future__ import annotations

import re

#: How many bytes are enough to tell.
ENOUGH = 4096

MODEL = "a boscage model"
PARQUET = "a Parquet table"
#: What holds other files, of which one may be a table.
PACKED = (XZ, ZIP, SEVEN_ZIP) = "an xz-compressed file", "a zip archive", "a 7-Zip archive"
#: Compressed files that are read as they are, and the names of their formats.
COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
#: How files begin that are neither text nor compressed text.
_BINARY = {
    b"BOSCAGE\0": MODEL,
    b"PAR1": PARQUET,
    b"ARROW1": "a Feather (Arrow) table",
    b"FEA1": "a Feather table",
    b"ORC": "an ORC table",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls)",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3\0": "an SQLite database",
    b"\x93NUMPY": "a NumPy array",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"\xfd7zXZ\0": XZ,
    b"7z\xbc\xaf\x27\x1c": SEVEN_ZIP,
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_ZIP, _EXCEL = b"PK\x03\x04", (b"[Content_Types].xml", b"xl/")
#: No header of a CSV file looks like these.
_TEXT = {
    "JSON": re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[{])"),
    "HTML or XML": re.compile(rb"\s*<(\?xml|!doctype|html)", re.IGNORECASE),
}


def compression(start: bytes) -> str | None:
    """The format of a compressed file that is read as it is; None for all others."""
    return next((name for magic, name in COMPRESSED.items() if start.startswith(magic)), None)


def not_csv(start: bytes) -> str | None:
    """What a file holds that begins so, in words; None if it may be CSV."""
    for magic, words in _BINARY.items():
        if start.startswith(magic):
            return words
    if start.startswith(_ZIP):
        is_excel = any(part in start for part in _EXCEL)
        return "an Excel workbook (.xlsx)" if is_excel else ZIP
    if b"\0" in start:
        return "binary data"
    for words, pattern in _TEXT.items():
        if pattern.match(start):
            return words
    return None


def words(start: bytes) -> str:
    """What a file holds that begins so, in words."""
    if not start:
        return "an empty file"
    if name := compression(start):
        return f"a {name}-compressed file"
    return not_csv(start) or "text, perhaps a CSV table"
