"""
A look inside a tree
====================

Every fitted tree is available as NumPy arrays: cuts, times, boxes, counts. All of it can be drawn.
"""

# %%
# A Mondrian tree
# ---------------
# A Mondrian tree is drawn along time. Cuts come at random times; the larger the box of rows that
# they cut, the sooner. On the left are the cuts in the plane of the two features, on the right
# the same tree with time running downwards, as in Figure 5.1 of the thesis.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from boscage import BayesianTreeClassifier, MondrianForestClassifier
from boscage.plots import plot_partition, plot_tree

iris = load_iris()
chosen = np.arange(0, 150, 10)
X, y = iris.data[chosen][:, 2:], iris.target_names[iris.target[chosen]]
names = ["petal length", "petal width"]

forest = MondrianForestClassifier(200, feature_weights=None, random_state=0).fit(X, y)
tree = forest.trees_[115]  # one of the smaller ones

figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.4), width_ratios=(1, 1.2))
plot_partition(forest, X, y, tree=115, ax=left)
left.set(xlabel="petal length (cm)", ylabel="petal width (cm)", title="cuts in the plane")
left.get_legend().set(frame_on=True)
plot_tree(tree, feature_names=names, class_names=forest.classes_, ax=right)
right.set_title("the same tree in time")

# %%
# The shade is the entropy of the whole forest's prediction. A tree stops where the labels of a node
# are all equal: it is paused there, and goes on when a row with another label arrives.
#
# The arrays
# ----------
# Nodes are numbered from the root, parents before children.

print("node  parent  cut                      time   rows  class counts")
for node in range(tree.n_nodes):
    cut = "leaf"
    if not tree.is_leaf[node]:
        cut = f"{names[tree.feature[node]]} <= {tree.threshold[node]:.2f}"
    print(
        f"{node:4d}  {tree.parent[node]:6d}  {cut:23s}  {tree.time[node]:5.2f}"
        f"  {tree.n_rows[node]:4d}  {tree.counts[node]}"
    )

# %%
# Times increase along every path from the root, as in the process.

inner = np.flatnonzero(~tree.is_leaf & (tree.parent >= 0))
assert (tree.time[inner] > tree.time[tree.parent[inner]]).all()

# %%
# A tree of a posterior
# ---------------------
# The cuts of a Bayesian tree depend on the labels. This is the most probable tree that was found,
# on all 150 flowers; the thicker a line, the more rows go along it.

model = BayesianTreeClassifier(random_state=0).fit(iris.data, iris.target_names[iris.target])
features = ["sepal length", "sepal width", "petal length", "petal width"]
figure, axes = plt.subplots(figsize=(8.6, 4.6))
model.best_tree_.plot(feature_names=features, class_names=model.classes_, ax=axes)

# %%
# The same as text:

print(model.best_tree_.rules(feature_names=features, class_names=model.classes_, decimals=2))
