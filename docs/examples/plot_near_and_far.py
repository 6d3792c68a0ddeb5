"""
Uncertainty near and far from the data
======================================

The predictions of a Mondrian forest depend on how far a new row is from the training rows. Among
many rows that agree they are certain. Far from all rows they return to the prior: one wide
distribution of targets, or equal probabilities of all classes.
"""

# %%
# Numbers
# -------
# There are no rows in a gap and beyond both ends. A random forest continues with the value of the
# last row. The Mondrian forest's intervals widen, and its mean returns to the middle. (Where a
# slope predicts better beyond the rows, ``trend="auto"`` continues it; here it finds none.)

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestRegressor

from boscage import MondrianForestClassifier, MondrianForestRegressor

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(0.0, 3.5, 150), rng.uniform(6.5, 10.0, 150)])
y = 2.0 * np.sin(x) + 0.3 * rng.normal(size=300)
X = x[:, None]
grid = np.linspace(-6.0, 16.0, 600)[:, None]

forest = MondrianForestRegressor(200, random_state=0).fit(X, y)
dist = forest.predict_dist(grid)
rival = RandomForestRegressor(200, min_samples_leaf=5, random_state=0).fit(X, y)

figure, axes = plt.subplots(figsize=(8.4, 4.2))
for level, alpha in ((0.9, 0.18), (0.5, 0.32)):
    low, high = dist.interval(level)
    axes.fill_between(
        grid[:, 0], low, high, color="C0", alpha=alpha, lw=0, label=f"{level:.0%} interval"
    )
axes.plot(grid[:, 0], dist.mean, label="Mondrian forest, mean")
axes.plot(grid[:, 0], rival.predict(grid), lw=1.0, label="random forest")
axes.plot(x, y, ".", color="0.25", ms=3, alpha=0.6, label="rows")
axes.set(xlabel="feature", ylabel="target", xlim=(-6, 16), ylim=(-2.6, 3.9))
axes.legend(loc="upper center", ncols=5, columnspacing=1.2, handlelength=1.5)

# %%
# Whole distributions
# -------------------
# The prediction for a row is a whole distribution, here at three places.

places = {"among the rows": 2.0, "at the edge of the gap": 3.8, "far away": 14.0}
target = np.linspace(-3.0, 4.0, 400)
figure, axes = plt.subplots()
for name, place in places.items():
    at = forest.predict_dist(np.full((len(target), 1), place))
    density = at.pdf(target)
    (line,) = axes.plot(target, density, label=f"{name} (feature = {place:g})")
    axes.fill_between(target, density, color=line.get_color(), alpha=0.12, lw=0)
axes.set(xlabel="target", ylabel="predicted density", ylim=(0, None), xlim=(-3, 4))
axes.legend(loc="upper left")

# %%
# Classes
# -------
# The same holds for classes. The picture shows the probability of the most probable of three
# classes. It is near one among the rows of a class, and falls to a third away from them.

X, y = make_blobs(240, centers=[[-4, 0], [3, 4], [4, -4]], cluster_std=1.1, random_state=0)
classifier = MondrianForestClassifier(200, random_state=0).fit(X, y)
across, up = np.meshgrid(np.linspace(-22, 22, 160), np.linspace(-20, 20, 140))
best = classifier.predict_proba(np.column_stack([across.ravel(), up.ravel()])).max(axis=1)

figure, axes = plt.subplots(figsize=(6.4, 4.6))
mesh = axes.pcolormesh(across, up, best.reshape(across.shape), vmin=1 / 3, vmax=1, rasterized=True)
colours = ("#ffffff", "#f2a65a", "#e05a4e")
for k, colour in enumerate(colours):
    axes.scatter(*X[y == k].T, s=9, color=colour, edgecolors="black", lw=0.3, label=f"class {k}")
axes.set(xlabel="first feature", ylabel="second feature")
axes.legend(loc="upper left", frameon=True, framealpha=0.9)
figure.colorbar(mesh, ax=axes, label="probability of the likeliest class")

# %%
# Where would more rows help?
# ---------------------------
# The uncertainty has two parts. Where classes overlap it is aleatoric: more rows would not help. In
# the gap of the numbers above, and beyond their ends, it is epistemic: more rows would help. The
# score says how usual a row is; it is 1 among the training rows.

from boscage.plots import plot_uncertainty

figure, axes = plt.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
plot_uncertainty(forest, margin=0.6, ax=axes[0])
plot_uncertainty(classifier, at=[0.0, 2.0], margin=2.0, ax=axes[1])
