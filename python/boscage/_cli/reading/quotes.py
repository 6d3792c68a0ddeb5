"""Unclosed quotes in CSV: finds the line where such a quote opens.

A CSV reader takes everything after the quote for one value: rows are lost in silence, or the error
is about something else.
"""

from __future__ import annotations

import codecs
import re
from collections import deque

QUOTE = b'"'


class Quotes:
    """Follows quotes through the bytes of a CSV file, which come in pieces.

    Parameters
    ----------
    delimiter : str
        What separates columns: a quote opens a value only at its beginning.

    Attributes
    ----------
    opened : int or None
        The line, from 1, where a quote opened that has not been closed so far.
    longest : int or None
        The line where a quoted value opened that holds a whole piece and more.
    """

    def __init__(self, delimiter: str) -> None:
        # A value in quotes, with quotes in it doubled; the last group is its closing quote.
        value = rb'[^"]*(?:""[^"]*)*("?)'
        separators = re.escape(delimiter.encode()) + rb"\r\n"
        self._next = re.compile(rb"(?:^|[" + separators + rb'])("' + value + rb")")
        self._rest_of_value = re.compile(value)
        self._line = 1
        self._is_at_start = True
        self._held = b""
        self.opened: int | None = None
        self.longest: int | None = None

    def feed(self, piece: bytes) -> None:
        """Follow the next bytes."""
        if self._is_at_start and piece:
            piece = piece.removeprefix(codecs.BOM_UTF8)
            self._is_at_start = False
        # Whole lines: then no pair of quotes is torn apart, and a value begins where it seems to.
        cut = piece.rfind(b"\n") + 1
        if cut:
            self._follow(self._held + piece[:cut])
            self._held = piece[cut:]
        else:
            self._held += piece

    def finish(self) -> None:
        """Follow what is left after the last line's end."""
        self._follow(self._held)
        self._held = b""

    def _follow(self, lines: bytes) -> None:
        at = 0
        if QUOTE in lines:
            if self.opened is not None:
                at = self._close(lines)
            if self.opened is None:
                self._open(lines, at)
        elif self.opened is not None:
            self.longest = self.opened
        self._line += lines.count(b"\n")

    def _close(self, lines: bytes) -> int:
        found = self._rest_of_value.match(lines)
        if found is None or not found[1]:
            self.longest = self.opened
            return len(lines)
        self.opened = None
        return found.end()

    def _open(self, lines: bytes, at: int) -> None:
        # Only the last value can go on beyond these lines.
        last = deque(self._next.finditer(lines, at), maxlen=1)
        if last and not last[0][2]:
            self.opened = self._line + lines.count(b"\n", 0, last[0].start(1))
