"""The picture of the demonstration: uncertainty near and far from the data, and calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestRegressor

from boscage import GaussianMixture, MondrianForestClassifier, MondrianForestRegressor
from boscage._cli.errors import blaming
from boscage._cli.outputs import replacing
from boscage.plots import plot_calibration

OURS, THEIRS, DATA = "#1b6e53", "#b4541f", "#555555"


def draw(
    path: str,
    forest: dict[str, Any],
    observed: NDArray[Any],
    ours: GaussianMixture,
    theirs: tuple[NDArray[Any], NDArray[Any]],
) -> None:
    """Draw and write the picture."""
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _line(left, forest)
    _map(figure, middle, forest)
    _calibration(right, observed, ours, theirs)
    kind = Path(path).suffix.removeprefix(".") or "png"
    with replacing(path) as file, blaming(path):
        figure.savefig(file, dpi=110, format=kind)


def _line(axes: Axes, forest: dict[str, Any]) -> None:
    data = load_diabetes(scaled=False)
    X = data.data[:, [data.feature_names.index("bmi")]]
    model = MondrianForestRegressor(**forest).fit(X, data.target)
    grid = np.linspace(X.min() - 25.0, X.max() + 25.0, 400)[:, None]
    dist = model.predict_dist(grid)
    for coverage, shade in ((0.9, 0.18), (0.5, 0.30)):
        lower, upper = dist.interval(coverage)
        axes.fill_between(
            grid[:, 0],
            lower,
            upper,
            color=OURS,
            alpha=shade,
            lw=0,
            label=f"{coverage:.0%} interval",
        )
    axes.plot(grid[:, 0], dist.mean, color=OURS, label="mean")
    rival = RandomForestRegressor(**forest).fit(X, data.target)
    axes.plot(grid[:, 0], rival.predict(grid), color=THEIRS, lw=0.8, label="random forest")
    axes.plot(X[:, 0], data.target, ".", color=DATA, ms=3, alpha=0.6)
    axes.set(xlabel="body mass index", ylabel="progression of diabetes")
    axes.set_title("Beyond the data the prediction returns to the prior")
    axes.legend(loc="upper left", fontsize="small")


def _map(figure: Figure, axes: Axes, forest: dict[str, Any]) -> None:
    data = load_breast_cancer()
    names = list(data.feature_names)
    chosen = [names.index("worst concave points"), names.index("worst texture")]
    X = data.data[:, chosen]
    model = MondrianForestClassifier(**forest).fit(X, data.target)
    margin = 0.4 * np.ptp(X, axis=0)
    low, high = X.min(axis=0) - margin, X.max(axis=0) + margin
    across, up = np.meshgrid(*(np.linspace(a, b, 160) for a, b in zip(low, high, strict=True)))
    p = model.predict_proba(np.column_stack([across.ravel(), up.ravel()]))[:, 0]
    image = axes.imshow(
        p.reshape(across.shape),
        origin="lower",
        extent=(low[0], high[0], low[1], high[1]),
        aspect="auto",
        cmap="RdBu_r",
        vmin=0.0,
        vmax=1.0,
        interpolation="bilinear",
    )
    figure.colorbar(image, ax=axes, label=f"probability of {data.target_names[0]}")
    for k, (marker, name) in enumerate(zip("x.", data.target_names, strict=True)):
        rows = data.target == k
        axes.plot(X[rows, 0], X[rows, 1], marker, color="black", ms=3, alpha=0.5, label=name)
    axes.set(xlabel=names[chosen[0]], ylabel=names[chosen[1]])
    axes.set_title("Breast cancer: pale is uncertain")
    axes.legend(loc="upper left", fontsize="small")


def _calibration(
    axes: Axes,
    observed: NDArray[Any],
    ours: GaussianMixture,
    theirs: tuple[NDArray[Any], NDArray[Any]],
) -> None:
    levels = np.linspace(0.05, 0.95, 19)
    for name, predicted, colour in (
        ("Mondrian forest", ours, OURS),
        ("random forest, trees' spread", theirs, THEIRS),
    ):
        axes.set_prop_cycle(color=[colour])
        plot_calibration(observed, predicted, levels=levels, name=name, ax=axes)
    axes.set_title("Diabetes, unseen rows: intervals held to their word")
