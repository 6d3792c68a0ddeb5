"""
A window on data that drift
===========================

With ``window_size`` a forest keeps the newest rows and forgets the others as new ones come. So it
adapts to data that drift, and its memory is bounded.
"""

# %%
# The rule that divides two classes turns slowly: after 6,000 rows it has gone halfway round. Rows
# come in batches of 100. Each batch is predicted first and learned then.

import matplotlib.pyplot as plt
import numpy as np

from boscage import MondrianForestClassifier

rng = np.random.default_rng(0)
n, size = 6000, 100
X = rng.uniform(-1.0, 1.0, size=(n, 2))
angle = np.pi * np.arange(n) / n
y = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) > 0.0


def new_forest(window_size=None):
    return MondrianForestClassifier(
        30,
        feature_range=(-1, 1),
        feature_weights=None,  # what matters changes
        window_size=window_size,
        random_state=0,
    )


forests = {"newest 800 rows": new_forest(window_size=800), "all rows": new_forest()}
hits = {name: [] for name in forests}
for start in range(0, n, size):
    rows = slice(start, start + size)
    for name, forest in forests.items():
        if start:
            hits[name].append(forest.score(X[rows], y[rows]))
        forest.partial_fit(X[rows], y[rows])

# %%
# The forest of all rows averages over rules that no longer hold. The forest with a window follows
# the current rule.

figure, axes = plt.subplots()
for name, score in hits.items():
    smooth = np.convolve(score, np.full(5, 0.2), mode="valid")
    axes.plot(size * (np.arange(len(smooth)) + 3), smooth, label=f"{name}: {np.mean(score):.2f}")
axes.set(xlabel="rows seen", ylabel="accuracy before learning, mean of 5 batches", ylim=(0.4, 1.01))
axes.legend(loc="lower left", title="kept rows, and mean accuracy")

# %%
# The window leaves no trace of what it dropped: the forest is the one that ``fit`` gives on the
# rows that are in it.

newest = new_forest().fit(X[-800:], y[-800:])
assert (forests["newest 800 rows"].predict_proba(X) == newest.predict_proba(X)).all()
