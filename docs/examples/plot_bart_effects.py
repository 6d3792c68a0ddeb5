"""
BART's effects, with bands
==========================

BART is a posterior over sums of many small trees. The result is draws of a whole function, so
anything computed from it has a credible band: here, the effect of a feature.
"""

# %%
# Effects that are known
# ----------------------
# Friedman's function has effects that we know. The partial dependence of a feature is the mean
# prediction when the feature is set to one value for all rows. The band holds 90 % of the draws.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from boscage import BARTRegressor
from boscage.plots import plot_effect

rng = np.random.default_rng(0)
X = rng.uniform(size=(400, 5))


def friedman(X):
    wave = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return wave + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3]


y = friedman(X) + rng.normal(size=400)
model = BARTRegressor(100, n_chains=2, n_burn=1000, n_draws=300, thin=3, random_state=0)
model.fit(X, y)

figure, panels = plt.subplots(1, 4, figsize=(12.0, 3.3), sharey=True)
titles = ["half of a wave", "a parabola", "a line", "no effect"]
for panel, feature, title in zip(panels, (0, 2, 3, 4), titles, strict=True):
    grid, draws = model.effect(X[:100], feature)
    mean = draws.mean(axis=2)  # over rows; what is left are draws by points of the grid
    panel.fill_between(grid, *np.quantile(mean, [0.05, 0.95], axis=0), alpha=0.3, lw=0)
    panel.plot(grid, mean.mean(axis=0), label="BART")
    rows = np.repeat(X[None, :100], len(grid), axis=0)  # the same rows at each point of the grid
    rows[:, :, feature] = grid[:, None]
    truth = friedman(rows.reshape(-1, 5)).reshape(len(grid), 100).mean(axis=1)
    panel.plot(grid, truth, color="black", ls="--", lw=1.0, label="truth")
    panel.set(xlabel=f"feature {feature}", title=title)
panels[0].set_ylabel("mean prediction")
panels[0].legend(loc="lower right")

# %%
# Diabetes
# --------
# On real data the truth is not known, and the band is all that we have. Each grey line is one
# patient (individual conditional expectation), with a band of its own.

data = load_diabetes(scaled=False, as_frame=True)
X, y = data.data, data.target
model = BARTRegressor(100, n_chains=2, n_burn=500, n_draws=300, thin=2, random_state=0)
model.fit(X, y)

figure, panels = plt.subplots(1, 3, figsize=(11.0, 3.6), sharey=True)
shown = {"bmi": "body mass index", "bp": "mean blood pressure", "age": "age (years)"}
for panel, (feature, label) in zip(panels, shown.items(), strict=True):
    plot_effect(model, X[:100], feature, ax=panel)
    panel.set(xlabel=label, ylabel="")
panels[0].set_ylabel("progression of diabetes")

# %%
# Body mass index and blood pressure raise the prediction; the effect of age cannot be told from
# zero. Partial dependence averages over rows that may not exist where features depend on each
# other.
