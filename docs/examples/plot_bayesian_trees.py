"""
Bayesian trees and their evidence
=================================

A Bayesian tree model samples many trees from their posterior, instead of the one tree that a
greedy search finds. It also estimates the evidence: the probability of the labels with trees and
leaves integrated out. Evidence compares models without a test set.
"""

# %%
# Where the trees disagree
# ------------------------
# The tumours of the breast cancer data on two of their features. Each panel shows something that a
# single tree cannot say: probabilities averaged over the posterior, and how far its trees disagree.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from boscage import BayesianTreeClassifier
from boscage.bayes.evidence import compare_features, compare_parameters
from boscage.plots import plot_disagreement

data = load_breast_cancer()
columns = {name: i for i, name in enumerate(data.feature_names)}
pair = [columns["worst concave points"], columns["worst texture"]]
X, y = data.data[:, pair], data.target_names[data.target]

model = BayesianTreeClassifier(random_state=0).fit(X, y)
low, high = X.min(axis=0), X.max(axis=0)
across, up = np.meshgrid(np.linspace(low[0], high[0], 150), np.linspace(low[1], high[1], 150))
malignant = model.predict_proba(np.column_stack([across.ravel(), up.ravel()]))[:, 1]

figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.2))
malignant = malignant.reshape(across.shape)
mesh = left.pcolormesh(across, up, malignant, cmap="RdBu_r", vmin=0, vmax=1, rasterized=True)
for name, colour in (("benign", "#a9cdf2"), ("malignant", "#f9b9a8")):
    left.scatter(*X[y == name].T, s=11, color=colour, ec="black", lw=0.3, label=name)
left.legend(loc="upper left", frameon=True, framealpha=0.9)
figure.colorbar(mesh, ax=left, label="probability of malignant")
left.set_title("mean over the posterior")
plot_disagreement(model, X, margin=0.0, ax=right)
right.set_title("where its trees disagree")
for panel in (left, right):
    panel.set(xlabel="worst concave points", ylabel="worst texture")

# %%
# The white lines are the root cuts of the trees. The trees disagree in strips between rows, where
# the data do not say on which side a cut should leave them, and in corners that hold few rows.
#
# Which features, which prior?
# ----------------------------
# The evidence answers such questions. A Bayes factor is the ratio of two evidences. The tables show
# its logarithm for each model against the best one, with a standard error. A difference of 3 is
# already strong.

subsets = {
    "concave points, texture": pair,
    "concave points, area": [columns["worst concave points"], columns["worst area"]],
    "area, texture": [columns["worst area"], columns["worst texture"]],
    "all 30 features": list(range(30)),
}
by_features = compare_features(BayesianTreeClassifier(random_state=0), data.data, y, subsets)
print(by_features)

# %%
# The prior says that a node at depth ``d`` splits with probability ``alpha_s / (1 + d) ** beta_s``.

values = {"alpha_s": [0.3, 0.6, 0.95], "beta_s": [0.0, 0.5, 1.0, 2.0]}
by_prior = compare_parameters(BayesianTreeClassifier(random_state=0), X, y, values)
table = np.empty((3, 4))
for found, factor in zip(by_prior.models, by_prior.log_bayes_factor, strict=True):
    place = [values[name].index(found[name]) for name in ("alpha_s", "beta_s")]
    table[tuple(place)] = factor

figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 3.6), width_ratios=(1.25, 1))
at = np.arange(len(subsets))[::-1]
factors, errors = by_features.log_bayes_factor, by_features.bayes_factor_error
left.barh(at, factors, xerr=errors, height=0.55, error_kw={"capsize": 3, "lw": 1})
for place, factor, error in zip(at, factors, errors, strict=True):
    left.text(factor - error - 0.8, place, f"{factor:.1f}", ha="right", va="center")
left.set_yticks(at, by_features.models)
left.set(xlabel="log Bayes factor against the best", title="sets of features", xlim=(-46, 2))
image = right.imshow(table, cmap="viridis", aspect="auto")
for (row, column), factor in np.ndenumerate(table):
    dark = factor < table.mean()
    right.text(column, row, f"{factor:.1f}", ha="center", va="center", color="w" if dark else "k")
right.set_xticks(range(4), values["beta_s"])
right.set_yticks(range(3), values["alpha_s"])
right.set(xlabel="beta_s", ylabel="alpha_s", title="priors of trees")
figure.colorbar(image, ax=right, label="log Bayes factor")
