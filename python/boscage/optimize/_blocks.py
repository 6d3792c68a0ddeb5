"""How many trials one search suggests.

A search takes time in proportion to the number of trials before it, to which a single one adds
little. So one search suggests the more trials, the more there were: from the 128th on, about a
sixteenth as many as came after the first 96. Trials of such a block know nothing of each other.
Which they are is a function of their numbers alone, so that a study which is loaded, or kept
elsewhere, goes on in the same way.
"""

from __future__ import annotations

_ALONE = 96
_PART = 16
_CANDIDATES = 10
"""Candidates (at least) for each trial that a search suggests."""


def block_size(start: int, n_candidates: int) -> int:
    """The number of trials in the block that starts with this one.

    Parameters
    ----------
    start : int
        Number of the block's first trial.
    n_candidates : int
        Number of places that a search compares.

    Returns
    -------
    int
    """
    return max(1, min((start - _ALONE) // _PART, n_candidates // _CANDIDATES))


def block_start(number: int, n_candidates: int) -> int:
    """The number of the first trial of a trial's block.

    Parameters
    ----------
    number : int
        Number of the trial.
    n_candidates : int
        Number of places that a search compares.

    Returns
    -------
    int
    """
    start = 0
    while (end := start + block_size(start, n_candidates)) <= number:
        start = end
    return start
