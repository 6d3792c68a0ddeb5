"""
One row at a time, or all at once
=================================

``fit`` learns from all rows at once, ``partial_fit`` from rows as they come. Most libraries give
two different models. Here they are the same forest, bit for bit: a forest is a function of the set
of its rows, where the ranges and weights of the features are given.
"""

# %%
# A tree that grows
# -----------------
# A forest learns rows from two moons. The panels show its predictions and the cuts of its first
# tree. New rows add cuts where they need them; the cuts that are there stay.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.datasets import load_digits, make_moons

from boscage import MondrianForestClassifier

X, y = make_moons(240, noise=0.2, random_state=1)
low, high = [-1.8, -1.3], [2.8, 1.8]  # the range of each feature, known in advance


def new_forest():
    given = {"feature_range": (low, high), "feature_weights": None}
    return MondrianForestClassifier(50, random_state=0, **given)


def cuts(tree):
    """Each cut of a tree on two features, as a line across the box of the rows it separates."""
    for node in np.flatnonzero(~tree.is_leaf):
        ends = np.array([tree.lower[node], tree.upper[node]])
        ends[:, tree.feature[node]] = tree.threshold[node]
        yield ends


across, up = np.meshgrid(np.linspace(low[0], high[0], 150), np.linspace(low[1], high[1], 110))
grid = np.column_stack([across.ravel(), up.ravel()])


def draw(forest, n_rows, title, panel):
    proba = forest.predict_proba(grid)[:, 1].reshape(across.shape)
    mesh = panel.pcolormesh(across, up, proba, cmap="RdBu_r", vmin=0, vmax=1, rasterized=True)
    panel.add_collection(LineCollection(list(cuts(forest.trees_[0])), colors="black", lw=0.7))
    for k, colour in enumerate(("#a9cdf2", "#f9b9a8")):
        panel.scatter(*X[:n_rows][y[:n_rows] == k].T, s=11, color=colour, ec="black", lw=0.3)
    panel.set_title(title)
    panel.set_xlabel("first feature")
    return mesh


figure, panels = plt.subplots(1, 4, figsize=(12.5, 3.1), sharex=True, sharey=True)
stream = new_forest()
for panel, (start, stop) in zip(panels, [(0, 10), (10, 50), (50, 240)], strict=False):
    stream.partial_fit(X[start:stop], y[start:stop])
    draw(stream, stop, f"stream, {stop} rows", panel)
batch = new_forest().fit(X, y)
mesh = draw(batch, 240, "one fit, 240 rows", panels[3])
panels[0].set_ylabel("second feature")
figure.colorbar(mesh, ax=panels, label="probability of class 1", pad=0.01)

# %%
# The last two panels are equal, to the last bit. The digest is a hash of everything that
# predictions depend on, so equal digests mean equal forests.

print("stream", stream.digest())
print("batch ", batch.digest())
assert stream.digest() == batch.digest()

# %%
# Any order will do
# -----------------
# Three streams bring the same 1,200 handwritten digits in different orders: as they were written,
# shuffled, and all zeros first, then all ones, and so on. Their accuracies differ on the way,
# since they have seen different rows. When all rows have come they agree, with each other and with
# ``fit``.

X, y = load_digits(return_X_y=True)
X, y, X_test, y_test = X[:1200], y[:1200], X[1200:], y[1200:]
orders = {
    "as written": np.arange(1200),
    "shuffled": np.random.default_rng(0).permutation(1200),
    "sorted by class": np.argsort(y, kind="stable"),
}

given = {"feature_range": (0, 16), "feature_weights": None, "random_state": 0}
figure, axes = plt.subplots()
digests = set()
for name, order in orders.items():
    forest = MondrianForestClassifier(50, **given)
    seen, accuracy = [], []
    for part in np.array_split(order, 24):
        forest.partial_fit(X[part], y[part], ids=part)
        seen.append(forest.n_rows_)
        accuracy.append(forest.score(X_test, y_test))
    axes.plot(seen, accuracy, marker=".", label=f"stream, {name}")
    digests.add(forest.digest())
forest = MondrianForestClassifier(50, **given).fit(X, y)
digests.add(forest.digest())
axes.plot(1200, forest.score(X_test, y_test), "*", color="black", markersize=13, label="one fit")
axes.set(xlabel="rows seen", ylabel="accuracy on 597 other digits", ylim=(0, 1))
axes.legend(loc="lower right")
assert len(digests) == 1
