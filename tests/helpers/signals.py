"""Rows of three features, of which the first says most about the targets."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.array(["no", "yes"])[(X[:, 0] + 0.5 * X[:, 1] > 0.0).astype(int)]
N = X[:, 0] + 0.1 * RNG.normal(size=150)
THREE = np.array(["no", "perhaps", "yes"])[np.digitize(N, [-0.5, 0.5])]
