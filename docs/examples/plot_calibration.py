"""
Are the probabilities right?
============================

Predictions are calibrated if events with a predicted probability of 80 % happen in 80 of 100 cases,
and if intervals of 90 % contain 90 of 100 targets. This can be measured on rows that the model has
not seen.
"""

# %%
# Intervals
# ---------
# The noise of these data grows from left to right. With ``noise="global"`` one number describes it
# for all rows. With ``noise="local"`` every node has its own.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from boscage import MondrianForestClassifier, MondrianForestRegressor, metrics
from boscage.plots import plot_calibration, plot_reliability

rng = np.random.default_rng(0)
X = rng.uniform(0.0, 1.0, size=(2000, 1))
y = np.sin(6.0 * X[:, 0]) + (0.05 + 0.9 * X[:, 0] ** 2) * rng.normal(size=2000)
train, test = slice(0, 1000), slice(1000, 2000)
grid = np.linspace(0.0, 1.0, 300)[:, None]

forests = {
    noise: MondrianForestRegressor(100, noise=noise, random_state=0).fit(X[train], y[train])
    for noise in ("global", "local")
}

figure, panels = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True)
for panel, (noise, forest) in zip(panels, forests.items(), strict=True):
    dist = forest.predict_dist(grid)
    panel.plot(X[test, 0], y[test], ".", color="0.4", ms=2.5, alpha=0.6)
    panel.fill_between(grid[:, 0], *dist.interval(0.9), alpha=0.25, lw=0, label="90 % interval")
    panel.plot(grid[:, 0], dist.mean, label="mean")
    panel.set(title=f'noise="{noise}"', xlabel="feature", ylim=(-3.2, 3.2))
panels[0].set_ylabel("target")
panels[0].legend(loc="upper left")

# %%
# One number for all rows is too wide on the left and too narrow on the right. The calibration of
# each half shows it. Points on the diagonal are calibrated; points below it belong to intervals
# that are too narrow.

halves = {"left half": X[test, 0] < 0.5, "right half": X[test, 0] >= 0.5}
# sphinx_gallery_thumbnail_number = 2
figure, panels = plt.subplots(1, 2, figsize=(9.0, 4.3), sharey=True)
for panel, (noise, forest) in zip(panels, forests.items(), strict=True):
    for name, rows in halves.items():
        dist = forest.predict_dist(X[test][rows])
        plot_calibration(y[test][rows], dist, name=name, ax=panel)
    score = metrics.nlpd(y[test], forest.predict_dist(X[test]))
    panel.set_title(f'noise="{noise}", NLPD {score:.2f}')
panels[1].set_ylabel("")

# %%
# NLPD is the negative log predictive density of a row: less is better.
#
# Probabilities of classes
# ------------------------
# On the handwritten digits the average over the trees is too uncertain: it is right far more
# often than its probabilities say. In 64 dimensions every row is far from all others, so the
# prediction of each tree is close to the prior. Therefore the forest raises the average to a
# power by default, and mixes it with equal probabilities of all classes. ``calibration=None``
# leaves the average as it is.
#
# ``loo_predict_proba`` shows the calibration without a validation set: it predicts each training
# row with the forest without it. The power was chosen by such predictions of some rows.

X, y = load_digits(return_X_y=True)
X, y, X_test, y_test = X[:1200], y[:1200], X[1200:], y[1200:]
average = MondrianForestClassifier(100, calibration=None, random_state=0).fit(X, y)
forest = MondrianForestClassifier(100, random_state=0).fit(X, y)

figure, axes = plt.subplots(figsize=(5.8, 5.2))
shown = {
    "average, unseen rows": (y_test, average.predict_proba(X_test)),
    "calibrated, unseen rows": (y_test, forest.predict_proba(X_test)),
    "calibrated, left-out rows": (y, forest.loo_predict_proba()),
}
for name, (labels, predicted) in shown.items():
    plot_reliability(labels, predicted, labels=forest.classes_, n_bins=8, ax=axes)
    error = metrics.expected_calibration_error(labels, predicted, labels=forest.classes_)
    axes.lines[-1].set_label(f"{name}: {error:.2f}")
axes.legend(loc="lower right", title="expected calibration error")
axes.set_title(f"probabilities to the power of {forest.calibration_power_:.1f}")

# %%
# The calibrated probabilities are nearly right, for left-out rows and for unseen ones. (A point's
# area grows with the number of rows; the small ones scatter.)

for name, (labels, predicted) in shown.items():
    print(f"{name:26s} log loss {log_loss(labels, predicted):.3f}")
