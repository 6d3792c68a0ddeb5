"""Wide sparse tables, as counts of words give them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array


def words_of_rows(
    n_rows: int, n_features: int, n_words: int, rng: np.random.Generator
) -> csr_array:
    """Return sparse rows of ones at their words, of which the first ones are frequent."""
    frequency = 1.0 / np.arange(1.0, n_features + 1.0)
    shares = frequency / frequency.sum()
    words = [rng.choice(n_features, n_words, replace=False, p=shares) for _ in range(n_rows)]
    starts = np.arange(0, n_words * n_rows + 1, n_words)
    ones = np.ones(n_words * n_rows)
    return csr_array((ones, np.concatenate(words), starts), shape=(n_rows, n_features))
