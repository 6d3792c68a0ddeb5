"""How many trials one search suggests.

A search takes time in proportion to the number of trials before it, to which a single one adds
little. So from trial 128 on a search suggests several: a block. Which trials share a block is a
function of their numbers alone, so that a study that is loaded, or kept elsewhere, goes on in the
same way.
"""

from __future__ import annotations

_FIRST = 96
"""Trials that make no block larger."""
_SHARE = 16
"""A block has one trial for so many that came after the first ones."""
_CANDIDATES_PER_TRIAL = 10
"""Candidates of a search (at least) for each trial of a block."""


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
    return max(1, min((start - _FIRST) // _SHARE, n_candidates // _CANDIDATES_PER_TRIAL))


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
    greatest = max(1, n_candidates // _CANDIDATES_PER_TRIAL)
    start = 0
    while (size := block_size(start, n_candidates)) < greatest:
        if start + size > number:
            return start
        start += size
    # All blocks from here on are of one size.
    return number - (number - start) % greatest
