"""Bayesian decision trees and CART: time, accuracy, log probability; SMC and MCMC.

One thread; alpha = 5, alpha_s = 0.95, beta_s = 0.5. CART as in section 3.4.4 of the thesis: leaves
of at least ten rows, smoothed by the same alpha. Figures are means over three seeds, since single
chains and small numbers of particles differ more than samplers do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from _common import Split, Table, arguments, load, seconds, verdict
from boscage import MCMC, SMC, BayesianTreeClassifier

ALPHA = 5.0
# The figures of section 3.4.4 and of dynaTree, and the goal for one second.
LOG_PROBABILITY = {"pendigits": -0.36, "magic04": -0.385}


class Cart:
    """scikit-learn's tree with Laplace smoothing."""

    def __init__(self, criterion: str) -> None:
        self.tree = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=10)

    def set_params(self, random_state: int) -> None:
        self.tree.set_params(random_state=random_state)

    def fit(self, X: Any, y: Any) -> Cart:
        self.tree.fit(X, y)
        return self

    def smooth(self, X: Any, y: Any) -> None:
        """The predictions of the leaves; not part of the timed fit."""
        counts = np.zeros((self.tree.tree_.node_count, self.tree.n_classes_))
        np.add.at(counts, (self.tree.apply(X), y), 1.0)
        smooth = counts + ALPHA / self.tree.n_classes_
        self.proba = smooth / smooth.sum(axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> Any:
        return self.proba[self.tree.apply(X)]


SEEDS = range(3)


def smc(n_particles: int, n_islands: int, **options: Any) -> BayesianTreeClassifier:
    sampler = SMC(n_particles=n_particles, n_islands=n_islands, **options)
    return BayesianTreeClassifier(sampler, alpha=ALPHA)


def mcmc(n_steps: int) -> BayesianTreeClassifier:
    thin = max(1, n_steps // 200)
    sampler = MCMC(n_chains=1, n_burn=n_steps // 2, n_draws=100, thin=thin)
    return BayesianTreeClassifier(sampler, alpha=ALPHA)


def models(name: str, quick: bool) -> dict[str, Any]:
    few = 10 if name == "madelon" else 1
    found: dict[str, Any] = {
        "CART gini": Cart("gini"),
        "CART entropy": Cart("entropy"),
        "subset of 4, 1 x 3": smc(1, 3, max_features=4),
        "optimal, 1 x 5": smc(1, 5),
        "prior, 100 x 5": smc(100, 5, proposal="prior"),
    }
    if not quick:
        found |= {
            f"subset of 4, {10 * few} x 5": smc(10 * few, 5, max_features=4),
            f"subset of 4, {10 * few} x 20": smc(10 * few, 20, max_features=4),
            "optimal, 10 x 1": smc(10, 1),
            "optimal, 10 x 5": smc(10, 5),
            "MCMC, 20,000 steps": mcmc(20_000),
            "MCMC, 200,000 steps": mcmc(200_000),
        }
    return found


def fit(model: Any, data: Split, seed: int) -> tuple[float, float, float]:
    """Seconds, accuracy and log probability."""
    model.set_params(random_state=seed)
    took = seconds({"fit": lambda: model.fit(data.X, data.y)}, 1)["fit"]
    if isinstance(model, Cart):
        model.smooth(data.X, data.y)
    proba = model.predict_proba(data.X_test)
    accuracy = float((proba.argmax(axis=1) == data.y_test).mean())
    log_p = float(np.log(proba[np.arange(len(proba)), data.y_test]).mean())
    return took, accuracy, log_p


def compare(data: Split, quick: bool) -> None:
    table = Table(data.name, ["model", "seconds", "over CART", "accuracy", "log p"])
    cart = seconds({"cart": lambda: Cart("gini").fit(data.X, data.y)})["cart"]
    found: dict[str, tuple[float, float, float]] = {}
    for name, model in models(data.name, quick).items():
        fits = [fit(model, data, seed) for seed in SEEDS]
        took, accuracy, log_p = (float(figures) for figures in np.mean(fits, axis=0))
        found[name] = (took, accuracy, log_p)
        table.add(name, took, took / cart, accuracy, log_p)
    print()
    own = {name: figures for name, figures in found.items() if not name.startswith("CART")}
    best = max(accuracy for name, (_, accuracy, _) in found.items() if name not in own)
    reached = [took / cart for took, accuracy, _ in own.values() if accuracy >= best]
    verdict("time to CART's accuracy, over CART's", min(reached, default=np.inf), 3.0)
    if data.name in LOG_PROBABILITY:
        bound = LOG_PROBABILITY[data.name]
        reached = [took for took, _, log_p in own.values() if log_p > bound]
        verdict(f"seconds to a log probability of {bound}", min(reached, default=np.inf), 1.0)
    else:
        gain = found["optimal, 1 x 5"][2] - found["prior, 100 x 5"][2]
        verdict("log probability, optimal over prior proposal", gain, 0.0, most=False)
    chains = {name: figures for name, figures in own.items() if "MCMC" in name}
    for name, (took, _, log_p) in chains.items():
        as_good = [own[key][0] for key in own if key not in chains and own[key][2] >= log_p]
        verdict(f"times faster than {name}", took / min(as_good, default=np.inf), 10.0, most=False)


def main() -> None:
    args = arguments(__doc__)
    for name in ["pendigits", "magic04", "madelon"]:
        compare(load(name), args.quick)


if __name__ == "__main__":
    main()
