"""Samplers of Bayesian decision trees: sequential Monte Carlo and Markov chain Monte Carlo."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from boscage import _core, _validation
from boscage._bases.settings import Settings

__all__ = ["MCMC", "SMC"]


class Sampler(Settings):
    """Base of the samplers. Not for direct use."""

    @abstractmethod
    def _compile(self, seed: int, n_features: int) -> _core.SmcSettings | _core.McmcSettings:
        """The settings, checked, as the compiled module takes them for so many features."""

    @abstractmethod
    def _parts(self) -> Sequence[int | None]:
        """The numbers of the chains or islands; None alone if they cannot be sampled apart."""


class SMC(Sampler):
    """Sequential Monte Carlo, Algorithm 3.1 of the thesis.

    Particles are trees that grow from the root, one decision at a time. Each stage weights them by
    how well they explain the targets and resamples them. Independent islands of particles
    estimate the marginal likelihood of the data and its error.

    Parameters
    ----------
    n_particles : int, default=10
        Number of particles on each island; at most 1,000,000.
    n_islands : int, default=5
        Number of independent runs, whose results are averaged.
    proposal : {"optimal", "exploring", "prior", "empirical"}, default="optimal"
        How a particle decides about a node. ``"optimal"`` weights every cut by prior times
        likelihood. ``"exploring"`` does so with probability 0.7 and follows the prior otherwise.
        ``"prior"`` follows the prior. ``"empirical"`` follows the prior with the cuts spread evenly
        over the gaps between rows.
    max_features : {"sqrt", "log2"}, int, float or None, default=None
        Number of features to consider at each node, drawn anew each time; None considers all.
        ``"sqrt"`` and ``"log2"`` mean the square root and the binary logarithm of their number, and
        a float above 0, at most 1.0, a share of them, each rounded down, but at least 1. Only for
        the proposals ``"optimal"`` and ``"exploring"``. Fewer features are faster and give more
        diverse trees.
    expansion : {"node", "layer"}, default="node"
        Whether a stage decides about one node or about all open nodes.
    candidate_order : {"breadth_first", "marginal_likelihood"}, default="breadth_first"
        Which open node comes first: the oldest, or the one with the lowest marginal likelihood.
    resampling : {"systematic", "multinomial", "stratified", "residual"}, default="systematic"
        How particles are resampled.
    ess_threshold : float, default=0.5
        Resample when the effective sample size falls below this share of `n_particles`; from 0
        to 1.
    max_stages : int, default=5000
        Number of stages after which unfinished trees stay as they are, with a warning.
    island_weights : {"uniform", "evidence"}, default="uniform"
        Whether islands have equal weights, or weights proportional to their estimates of the
        marginal likelihood.

    See Also
    --------
    MCMC : The other sampler.
    BayesianTreeClassifier : Takes a sampler as its parameter ``sampler``.

    Examples
    --------
    >>> from boscage import SMC, BayesianTreeClassifier
    >>> model = BayesianTreeClassifier(SMC(n_particles=100))
    >>> model.set_params(sampler__n_islands=3).sampler
    SMC(n_islands=3, n_particles=100)
    """

    def __init__(
        self,
        *,
        n_particles: int = 10,
        n_islands: int = 5,
        proposal: Literal["optimal", "exploring", "prior", "empirical"] = "optimal",
        max_features: Literal["sqrt", "log2"] | int | float | None = None,
        expansion: Literal["node", "layer"] = "node",
        candidate_order: Literal["breadth_first", "marginal_likelihood"] = "breadth_first",
        resampling: Literal["systematic", "multinomial", "stratified", "residual"] = "systematic",
        ess_threshold: float = 0.5,
        max_stages: int = 5000,
        island_weights: Literal["uniform", "evidence"] = "uniform",
    ) -> None:
        self.n_particles = n_particles
        self.n_islands = n_islands
        self.proposal = proposal
        self.max_features = max_features
        self.expansion = expansion
        self.candidate_order = candidate_order
        self.resampling = resampling
        self.ess_threshold = ess_threshold
        self.max_stages = max_stages
        self.island_weights = island_weights

    def _compile(self, seed: int, n_features: int) -> _core.SmcSettings:
        max_features = _max_features(self.max_features, n_features)
        if max_features is not None and self.proposal in ("prior", "empirical"):
            raise ValueError(
                "max_features needs proposal='optimal' or proposal='exploring', "
                f"found {self.proposal!r}"
            )
        return _core.SmcSettings(
            n_particles=_validation.check_count("n_particles", self.n_particles, 1),
            n_islands=_validation.check_count("n_islands", self.n_islands, 1),
            proposal=_validation.check_word("proposal", self.proposal),
            max_features=max_features,
            expansion=_validation.check_word("expansion", self.expansion),
            candidate_order=_validation.check_word("candidate_order", self.candidate_order),
            resampling=_validation.check_word("resampling", self.resampling),
            ess_threshold=_validation.check_positive(
                "ess_threshold", self.ess_threshold, zero=True
            ),
            max_stages=_validation.check_count("max_stages", self.max_stages, 1),
            island_weights=_validation.check_word("island_weights", self.island_weights),
            seed=seed,
        )

    def _parts(self) -> Sequence[int | None]:
        # The order in which particles draw for the nodes of a layer depends on the other islands.
        return [None] if self.expansion == "layer" else range(self.n_islands)


class MCMC(Sampler):
    """Markov chain Monte Carlo over trees with the moves of Chipman, George and McCulloch (1998).

    Each chain starts from a tree drawn from the prior and proposes to grow, prune, change or swap.

    Parameters
    ----------
    n_chains : int, default=4
        Number of independent chains.
    n_burn : int, default=5000
        Number of steps of a chain before its first draw.
    n_draws : int, default=250
        Number of draws of each chain.
    thin : int, default=20
        Number of steps from one draw to the next.
    moves : tuple of four float, default=(0.25, 0.25, 0.25, 0.25)
        Probabilities of proposing to grow, prune, change and swap. They sum to one, and the first
        two are positive.

    See Also
    --------
    SMC : The other sampler, which also estimates the marginal likelihood.
    BayesianTreeClassifier : Takes a sampler as its parameter ``sampler``.

    Examples
    --------
    >>> from boscage import MCMC, BayesianTreeClassifier
    >>> BayesianTreeClassifier(MCMC(n_chains=2, n_draws=1000)).sampler.n_burn
    5000
    """

    def __init__(
        self,
        *,
        n_chains: int = 4,
        n_burn: int = 5000,
        n_draws: int = 250,
        thin: int = 20,
        moves: tuple[float, float, float, float] = (0.25, 0.25, 0.25, 0.25),
    ) -> None:
        self.n_chains = n_chains
        self.n_burn = n_burn
        self.n_draws = n_draws
        self.thin = thin
        self.moves = moves

    def _compile(self, seed: int, n_features: int) -> _core.McmcSettings:
        return _core.McmcSettings(
            n_chains=_validation.check_count("n_chains", self.n_chains, 1),
            n_burn=_validation.check_count("n_burn", self.n_burn, 0),
            n_draws=_validation.check_count("n_draws", self.n_draws, 1),
            thin=_validation.check_count("thin", self.thin, 1),
            moves=_check_moves(self.moves),
            seed=seed,
        )

    def _parts(self) -> Sequence[int | None]:
        return range(self.n_chains)


SAMPLERS: dict[str, type[Sampler]] = {"smc": SMC, "mcmc": MCMC}
"""The names that stand for samplers with their default settings."""


def as_sampler(value: Any) -> Sampler:
    """The sampler that a value of the parameter ``sampler`` stands for."""
    if isinstance(value, Sampler):
        return value
    if isinstance(value, str) and value in SAMPLERS:
        return SAMPLERS[value]()
    raise ValueError(f"sampler must be 'smc', 'mcmc', an SMC or an MCMC object, found {value!r}")


def _max_features(value: Any, n_features: int) -> int | None:
    """The number that ``max_features`` means for so many features, as in scikit-learn."""
    if value is None:
        return None
    if _validation.is_integer(value):
        return _validation.check_count("max_features", value, 1)
    if _validation.is_word(value, "sqrt"):
        return math.isqrt(n_features)
    if _validation.is_word(value, "log2"):
        return max(1, int(math.log2(n_features)))
    if _validation.is_real(value) and 0.0 < value <= 1.0:
        return max(1, int(value * n_features))
    raise ValueError(
        "max_features must be an integer >= 1, a share above 0.0 and at most 1.0, 'sqrt', 'log2' "
        f"or None, found {value!r}"
    )


def _check_moves(moves: Any) -> list[float]:
    try:
        probabilities = [float(p) for p in moves]
    except (TypeError, ValueError) as error:
        raise ValueError(f"moves must be four probabilities, found {moves!r}") from error
    if len(probabilities) != 4:
        raise ValueError(f"moves must be four probabilities, found {moves!r}")
    return probabilities
