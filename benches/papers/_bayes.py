"""What the experiments of chapter 3 share: settings, fits, CART."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from benches._common import Split
from benches.papers._data import cpu_seconds, load, scores
from sklearn.tree import DecisionTreeClassifier

from boscage import MCMC, SMC, BayesianTreeClassifier

#: Section 3.4.1.
PRIOR: dict[str, Any] = {"alpha": 5.0, "alpha_s": 0.95, "beta_s": 0.5}
THESIS: dict[str, Any] = {"ess_threshold": 0.1, "resampling": "multinomial", "max_stages": 5000}
SHARED = {
    "prior": ", ".join(f"{name} = {value:g}" for name, value in PRIOR.items()),
    "SMC": f"resampling below an effective sample size of {THESIS['ess_threshold']:g} C, "
    f"{THESIS['resampling']}, at most {THESIS['max_stages']} stages",
    "data": "pendigits as given; magic04 split at random into 70 % and 30 %",
}


class Fit(NamedTuple):
    """Seconds of a fit, its accuracy and log probability on test rows, and its log evidence."""

    seconds: float
    accuracy: float
    log_p: float
    evidence: float


def sets(names: Iterable[str] = ("pendigits", "magic04")) -> dict[str, Split]:
    """Return data sets, split as in section 3.4."""
    return {name: load(name, test=0.3) for name in names}


def smc(
    data: Split,
    seed: int,
    n_particles: int,
    proposal: Any,
    *,
    n_islands: int = 1,
    expansion: Any = "node",
    prior: dict[str, Any] = PRIOR,
    **changes: Any,
) -> Fit:
    """Fit by sequential Monte Carlo with the settings of the thesis, or some of them changed."""
    sampler = SMC(
        n_particles=n_particles,
        n_islands=n_islands,
        proposal=proposal,
        expansion=expansion,
        **(THESIS | changes),
    )
    return fit(BayesianTreeClassifier(sampler, random_state=seed, **prior), data)


def mcmc(data: Split, seed: int, n_steps: int, *, prior: dict[str, Any] = PRIOR) -> Fit:
    """Fit by one chain of Chipman et al.; predictions average over all of it, every 50th tree."""
    sampler = MCMC(n_chains=1, n_burn=0, n_draws=max(1, n_steps // 50), thin=50)
    return fit(BayesianTreeClassifier(sampler, random_state=seed, **prior), data)


def fit(model: BayesianTreeClassifier, data: Split) -> Fit:
    """Fit and judge."""
    took = cpu_seconds(lambda: model.fit(data.X, data.y))
    accuracy, log_p = scores(model.predict_proba(data.X_test), data.y_test, model.classes_)
    is_smc = isinstance(model.sampler, SMC)
    return Fit(took, accuracy, log_p, float(model.log_marginal_likelihood_) if is_smc else np.nan)


def cart(data: Split, criterion: Any, alpha: float = 5.0) -> Fit:
    """CART as in section 3.4.4: leaves of at least ten rows, smoothed by the same alpha."""
    tree = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=10, random_state=0)
    took = cpu_seconds(lambda: tree.fit(data.X, data.y))
    counts = np.zeros((tree.tree_.node_count, tree.n_classes_))
    np.add.at(counts, (tree.apply(data.X), np.searchsorted(tree.classes_, data.y)), 1.0)
    smooth = counts + alpha / tree.n_classes_
    proba = (smooth / smooth.sum(axis=1, keepdims=True))[tree.apply(data.X_test)]
    return Fit(took, *scores(proba, data.y_test, tree.classes_), np.nan)


def mean(fits: list[Fit], what: str) -> float:
    """Mean of a figure over seeds."""
    return float(np.mean([getattr(fit, what) for fit in fits]))


def values(fits: list[Fit], what: str) -> list[float]:
    """A figure of all seeds."""
    return [getattr(fit, what) for fit in fits]
