"""Draw the picture of the README: ``python docs/make_readme_picture.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from sklearn.datasets import load_diabetes, make_moons

from boscage import BARTRegressor, MondrianForestClassifier, MondrianForestRegressor

STATIC = Path(__file__).with_name("_static")


def main() -> None:
    """Draw three panels: a stream, uncertainty away from the data, an effect with its band."""
    plt.style.use(STATIC / "figures.mplstyle")
    figure, panels = plt.subplots(1, 3, figsize=(12.6, 3.7), width_ratios=(1.2, 1.0, 1.0))
    figure.get_layout_engine().set(wspace=0.06)  # between a scale and the next panel's label
    draw_stream(panels[0])
    draw_uncertainty(panels[1])
    draw_effect(panels[2])
    figure.savefig(STATIC / "overview.png", dpi=110, pil_kwargs={"optimize": True})


def draw_stream(axes: Axes) -> None:
    """A forest that learned row after row, with the cuts of one tree."""
    X, y = make_moons(240, noise=0.2, random_state=1)
    low, high = [-1.8, -1.3], [2.8, 1.8]
    given = {"feature_range": (low, high), "feature_weights": None}
    batch = MondrianForestClassifier(50, random_state=0, **given).fit(X, y)
    forest = MondrianForestClassifier(50, random_state=0, **given)
    for row in range(len(X)):
        forest.partial_fit(X[row : row + 1], y[row : row + 1])
    assert forest.digest() == batch.digest()

    across, up = np.meshgrid(np.linspace(low[0], high[0], 120), np.linspace(low[1], high[1], 90))
    proba = forest.predict_proba(np.column_stack([across.ravel(), up.ravel()]))[:, 1]
    mesh = axes.pcolormesh(
        across, up, proba.reshape(across.shape), cmap="RdBu_r", vmin=0, vmax=1, rasterized=True
    )
    tree, cuts = forest.trees_[0], []
    for node in np.flatnonzero(~tree.is_leaf):
        ends = np.array([tree.lower[node], tree.upper[node]])
        ends[:, tree.feature[node]] = tree.threshold[node]
        cuts.append(ends)
    axes.add_collection(LineCollection(cuts, colors="black", lw=0.7))
    for k, colour in enumerate(("#a9cdf2", "#f9b9a8")):
        axes.scatter(*X[y == k].T, s=10, color=colour, ec="black", lw=0.3)
    axes.set_title("Row by row is the same as all at once")
    axes.set_xlabel("first feature")
    axes.set_ylabel("second feature")
    axes.figure.colorbar(mesh, ax=axes, pad=0.01, label="probability of a class", ticks=[0, 1])


def draw_uncertainty(axes: Axes) -> None:
    """Intervals that open in a gap and beyond the rows."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0.0, 3.5, 150), rng.uniform(6.5, 10.0, 150)])
    y = 2.0 * np.sin(x) + 0.3 * rng.normal(size=300)
    grid = np.linspace(-4.0, 14.0, 500)[:, None]
    dist = MondrianForestRegressor(200, random_state=0).fit(x[:, None], y).predict_dist(grid)
    for level, alpha in ((0.9, 0.18), (0.5, 0.32)):
        low, high = dist.interval(level)
        label = f"{level:.0%} interval"
        axes.fill_between(grid[:, 0], low, high, color="C0", alpha=alpha, lw=0, label=label)
    axes.plot(grid[:, 0], dist.mean, label="mean")
    axes.plot(x, y, ".", color="0.25", ms=3, alpha=0.6)
    axes.set(xlim=(-4, 14), ylim=(-2.4, 4.2), xlabel="feature", ylabel="target")
    axes.set_title("A forest says where it knows nothing")
    compact = {"columnspacing": 0.8, "handlelength": 1.1, "handletextpad": 0.5, "borderpad": 0.0}
    axes.legend(loc="upper center", ncols=3, **compact)


def draw_effect(axes: Axes) -> None:
    """The effect of a feature in BART, with its credible band."""
    data = load_diabetes(scaled=False, as_frame=True)
    model = BARTRegressor(100, n_chains=2, n_burn=500, n_draws=300, thin=2, random_state=0)
    grid, draws = model.fit(data.data, data.target).effect(data.data[:150], "bmi")
    mean = draws.mean(axis=2)
    for level, alpha in ((0.9, 0.18), (0.5, 0.32)):
        low, high = np.quantile(mean, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        axes.fill_between(grid, low, high, color="C1", alpha=alpha, lw=0, label=f"{level:.0%} band")
    axes.plot(grid, mean.mean(axis=0), color="C1", label="mean")
    axes.set(xlabel="body mass index", ylabel="progression of diabetes")
    axes.set_title("BART: effects with credible bands")
    axes.legend(loc="upper left")


if __name__ == "__main__":
    main()
