"""
Delete rows, and prove it
=========================

``forget`` takes rows out of a fitted forest. What is left is exactly the forest that never saw
them. Anyone who has the remaining rows can check this: fit them, and compare digests.
"""

# %%
# Some rows should not have been learned
# --------------------------------------
# Two classes lie in two moons. Forty rows came from a faulty source that labels everything in a
# corner wrongly. Each row has an id, so that it can be named later.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from boscage import MondrianForestClassifier

X, y = make_moons(400, noise=0.15, random_state=3)
rng = np.random.default_rng(0)
X_faulty = rng.uniform([1.3, -0.6], [2.2, 0.3], size=(40, 2))
y_faulty = np.zeros(40, dtype=int)

ids = np.arange(400)
faulty_ids = np.arange(9000, 9040)
square = ([-2.0, -1.5], [3.0, 2.0])


def new_forest():
    given = {"feature_range": square, "feature_weights": None}
    return MondrianForestClassifier(100, random_state=0, **given)


forest = new_forest().fit(
    np.vstack([X, X_faulty]), np.append(y, y_faulty), ids=np.append(ids, faulty_ids)
)
before = forest.digest()
across, up = np.meshgrid(np.linspace(-1.6, 2.6, 140), np.linspace(-1.1, 1.6, 110))
grid = np.column_stack([across.ravel(), up.ravel()])
learned = forest.predict_proba(grid)[:, 1]

# %%
# Forget them
# -----------
# One call with the ids. Nothing else is retrained.

forest.forget(faulty_ids)
after = forest.digest()
forgotten = forest.predict_proba(grid)[:, 1]

# %%
# The audit
# ---------
# An auditor fits a new forest on the rows that should be left. The digests agree, so the two
# forests make the same predictions everywhere, now and after any further updates.

clean = new_forest().fit(X, y, ids=ids)
print("before          ", before)
print("after forgetting", after)
print("never saw them  ", clean.digest())
assert after == clean.digest() != before
assert (forgotten == clean.predict_proba(grid)[:, 1]).all()

# %%

figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.5), sharex=True, sharey=True)
shown = [
    ("with the faulty rows", learned, before),
    ("after forgetting them", forgotten, after),
    ("never saw them", clean.predict_proba(grid)[:, 1], clean.digest()),
]
for panel, (title, proba, digest) in zip(panels, shown, strict=True):
    mesh = panel.pcolormesh(
        across, up, proba.reshape(across.shape), cmap="RdBu_r", vmin=0, vmax=1, rasterized=True
    )
    for k, colour in enumerate(("#a9cdf2", "#f9b9a8")):
        panel.scatter(*X[y == k].T, s=9, color=colour, ec="black", lw=0.25)
    if panel is panels[0]:
        panel.scatter(*X_faulty.T, s=22, marker="x", color="black", linewidths=1, label="faulty")
        panel.legend(loc="upper right")
    panel.set_title(f"{title}\ndigest {digest[:12]}…")
    panel.set_xlabel("first feature")
panels[0].set_ylabel("second feature")
bar = figure.colorbar(mesh, ax=panels, pad=0.01)
bar.set_label("probability of class 1")

# %%
# Note two things. Reference ranges and feature weights that were learned depend on the deleted
# rows, so give ``feature_range`` and ``feature_weights``, as here. And backups of model files
# hold the rows that were in the forest when they were saved.
