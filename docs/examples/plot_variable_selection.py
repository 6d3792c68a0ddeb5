"""
Which features matter?
======================

Of 40 features only the first five have an effect. Two models find them in two ways. BART with
``sparse=True`` gives a posterior over the share of cuts along each feature. A Mondrian forest
learns how often to cut along each feature, unless ``feature_weights=None``.
"""

import matplotlib.pyplot as plt
import numpy as np

from boscage import BARTRegressor, MondrianForestRegressor

rng = np.random.default_rng(1)
X = rng.uniform(size=(400, 40))


def friedman(X):
    wave = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    return wave + 10.0 * X[:, 3] + 5.0 * X[:, 4]


y = friedman(X) + 2.0 * rng.normal(size=400)
X_test = rng.uniform(size=(1000, 40))
truth = friedman(X_test)


def error(model):
    return np.sqrt(np.mean((model.predict(X_test) - truth) ** 2))


# %%
# BART
# ----
# ``inclusion_proportions_`` holds, for every draw, the share of cuts along each feature. Bars are
# means, lines hold 90 % of the draws.

settings = {"n_chains": 2, "n_burn": 1500, "n_draws": 400, "thin": 5, "random_state": 0}
barts = {
    "BART": BARTRegressor(50, **settings).fit(X, y),
    "BART, sparse=True": BARTRegressor(50, sparse=True, **settings).fit(X, y),
}

figure, panels = plt.subplots(2, 1, figsize=(8.6, 4.8), sharex=True, sharey=True)
colours = np.where(np.arange(40) < 5, "C1", "C0")
for panel, (name, model) in zip(panels, barts.items(), strict=True):
    shares = model.inclusion_proportions_
    panel.bar(range(40), shares.mean(axis=0), color=colours)
    panel.vlines(range(40), *np.quantile(shares, [0.05, 0.95], axis=0), color="0.3", lw=0.8)
    panel.set(ylabel="share of cuts", title=f"{name}: error {error(model):.2f}", xlim=(-1, 40))
panels[1].set_xlabel("feature (the first five matter)")

# %%
# Mondrian forests
# ----------------
# The cuts of a Mondrian forest do not depend on targets, so irrelevant features harm it. Weights
# that are learned once, from the first rows and their targets, reduce this harm.

forests = {
    "Mondrian forest, feature_weights=None": MondrianForestRegressor(
        feature_weights=None, random_state=0
    ).fit(X, y),
    "Mondrian forest": MondrianForestRegressor(random_state=0).fit(X, y),
}

figure, panels = plt.subplots(2, 1, figsize=(8.6, 4.8), sharex=True, sharey=True)
for panel, (name, model) in zip(panels, forests.items(), strict=True):
    rates = model.feature_weights_ * np.ptp(X, axis=0)
    panel.bar(range(40), rates / rates.sum(), color=colours)
    panel.set(ylabel="share of rates", title=f"{name}: error {error(model):.2f}", xlim=(-1, 40))
panels[1].set_xlabel("feature (the first five matter)")

# %%
# Both find the five features. The forest gives little weight to the third, whose effect is a
# parabola: few cuts along it separate high from low targets. BART predicts better here; the forest
# can continue to learn from a stream.
#
# A small share is no proof that a feature has no effect: features that carry the same information
# share their cuts.
