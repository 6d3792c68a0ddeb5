"""
Did the chains mix?
===================

BART's draws come from Markov chains. Before you draw conclusions from them, compare the chains:
they start from different trees, and should end up in the same place.
"""

# %%
# Two fits of the same data: one that is far too short, and one that is long enough.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from boscage import BARTRegressor

X, y = make_friedman1(300, 5, noise=1.0, random_state=0)
long = BARTRegressor(n_burn=600, n_draws=300, thin=3, random_state=0).fit(X, y)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns that the chains disagree, and rightly so
    short = BARTRegressor(n_burn=0, n_draws=150, random_state=0).fit(X, y)

figure, panels = plt.subplots(1, 2, figsize=(10.5, 3.6), sharey=True)
for panel, model, title in zip(
    panels, (short, long), ("no burn-in", "600 sweeps of burn-in"), strict=True
):
    for chain, values in enumerate(model.trace_["log_likelihood"]):
        panel.plot(values, lw=0.9, label=f"chain {chain}")
    r_hat = model.summary()["log_likelihood"].r_hat
    panel.set(xlabel="draw", title=f"{title}: R-hat {r_hat:.2f}")
panels[0].set_ylabel("log likelihood")
panels[0].legend(loc="lower right", ncols=2)

# %%
# R-hat compares the chains with each other. It is near 1 where they agree. The effective sample
# size (``ess``) is the number of independent draws that would estimate a mean equally well; it is
# meaningful only where R-hat is near 1.

print(long.summary())

# %%
# Predictions often agree before trees do. So compare what you need: here, the predicted mean of
# three new rows, by chain.

draws = long.predict_draws(X[:3]).reshape(4, 300, 3)
figure, axes = plt.subplots(figsize=(7.2, 3.4))
for chain in range(4):
    low, middle, high = np.quantile(draws[chain], [0.05, 0.5, 0.95], axis=0)
    at = np.arange(3) + 0.12 * (chain - 1.5)
    axes.errorbar(at, middle, [middle - low, high - middle], fmt="o", label=f"chain {chain}")
axes.set(xticks=range(3), xticklabels=["row 0", "row 1", "row 2"], ylabel="prediction (90 %)")
axes.legend(loc="upper left", ncols=2)
