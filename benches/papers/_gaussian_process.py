"""Comparator: a Gaussian process for many rows, by stochastic variational inference.

GPyTorch's, with inducing points (Hensman et al. 2013); where GPyTorch is not installed, the exact
process of scikit-learn on some of the rows. Inputs are scaled to [0, 1], and targets
to mean 0 and standard deviation 1.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from benches._common import Array
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

INDUCING, BATCH, STEPS = 200, 1000, 600


def description(exact_rows: int) -> str:
    """Say which process it is; an exact one has so many rows."""
    if find_spec("gpytorch") is None:
        return f"scikit-learn's, RBF with a length for each feature, {exact_rows:,} training rows"
    return (
        f"GPyTorch's stochastic variational one, RBF with a length for each feature, {INDUCING} "
        f"inducing points, {STEPS} steps on batches of {BATCH:,} rows"
    )


class ScaledProcess:
    """A Gaussian process over scaled data."""

    def __init__(self, seed: int, exact_rows: int) -> None:
        self.seed = seed
        # Its import takes seconds, which are not those of learning.
        self.learn = _exact(exact_rows) if find_spec("gpytorch") is None else _variational()

    def fit(self, X: Array, y: Array) -> ScaledProcess:
        """Learn."""
        # The first rows may all be of one month.
        self.low, self.span = X.min(axis=0), np.maximum(np.ptp(X, axis=0), 1e-9)
        self.centre, self.scale = float(y.mean()), float(y.std())
        self.model = self.learn(self._inputs(X), (y - self.centre) / self.scale, self.seed)
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return means and standard deviations of targets."""
        parts = [self.model(self._inputs(part)) for part in np.array_split(X, -(-len(X) // 5_000))]
        mean, std = (np.concatenate(values) * self.scale for values in zip(*parts, strict=True))
        return mean + self.centre, std

    def _inputs(self, X: Array) -> Array:
        return np.asarray((X - self.low) / self.span, dtype=np.float64)


def _exact(n_rows: int) -> Any:
    def learn(X: Array, y: Array, seed: int) -> Any:
        chosen = np.random.default_rng(seed).permutation(len(X))[:n_rows]
        kernel = ConstantKernel(1.0) * RBF(np.ones(X.shape[1])) + WhiteKernel(0.5)
        model = GaussianProcessRegressor(kernel, random_state=seed).fit(X[chosen], y[chosen])
        return lambda at: model.predict(at, return_std=True)

    return learn


def _variational() -> Any:
    import gpytorch
    import torch

    torch.set_num_threads(1)

    class Process(gpytorch.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self, points: Any) -> None:
            law = gpytorch.variational.CholeskyVariationalDistribution(len(points))
            super().__init__(gpytorch.variational.VariationalStrategy(self, points, law))
            self.mean = gpytorch.means.ConstantMean()
            length = gpytorch.kernels.RBFKernel(ard_num_dims=points.shape[1])
            self.covariance = gpytorch.kernels.ScaleKernel(length)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))

    def learn(X: Array, y: Array, seed: int) -> Any:
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        inputs, targets = (torch.tensor(values, dtype=torch.float64) for values in (X, y))
        first = rng.permutation(len(X))[:INDUCING]
        model = Process(inputs[first].clone()).double()
        noise = gpytorch.likelihoods.GaussianLikelihood().double()
        bound = gpytorch.mlls.VariationalELBO(noise, model, num_data=len(y))
        optimiser = torch.optim.Adam([*model.parameters(), *noise.parameters()], lr=0.02)
        for _ in range(STEPS):
            rows = rng.integers(len(X), size=BATCH)
            optimiser.zero_grad()
            loss = -bound(model(inputs[rows]), targets[rows])
            loss.backward()
            optimiser.step()
        model.eval()
        noise.eval()

        def predict(at: Array) -> tuple[Array, Array]:
            with torch.no_grad():
                found = noise(model(torch.tensor(at, dtype=torch.float64)))
            return found.mean.numpy(), found.stddev.numpy()

        return predict

    return learn
