"""Kernels of BART's chains: how one tree is changed given the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from boscage import _core, _validation
from boscage._bases.settings import Settings

__all__ = ["Kernels"]

KERNELS = tuple(_core.bart_kernels(1))
"""The kernels' names, from the compiled module's table."""
KernelName = Literal["auto", "local", "growprune", "cgm", "pg", "regrow", "edit"]
"""The same names for type checkers, which cannot read them from the compiled module."""


class Kernels(Settings):
    """The kernels with which a chain of BART changes one tree given the others.

    All kernels leave the posterior invariant, and so does any mixture of them. They differ in how
    fast a chain explores it.

    Parameters
    ----------
    shares : str or dict, default="auto"
        One kernel by its name, or a mixture as a dictionary from names to shares, such as
        ``{"local": 0.9, "pg": 0.1}``. Shares are relative. The kernels are:

        - ``"local"`` grows or prunes, then shifts cuts a little;
        - ``"growprune"`` grows or prunes;
        - ``"cgm"`` grows, prunes, changes or swaps (Chipman et al. 1998);
        - ``"pg"`` is Particle Gibbs, which draws a whole tree (Algorithm 4.2 of the thesis);
        - ``"regrow"`` draws the subtree below a random node by particles that see the targets;
        - ``"edit"`` inserts, changes and deletes cuts at random nodes and keeps the cuts below
          wherever they still separate rows.

        ``"auto"`` mixes ``"local"``, ``"regrow"`` and ``"edit"`` by the number of trees.
    n_particles : int, default=10
        Number of particles of ``"pg"`` and ``"regrow"``, the retained tree included; at least 2 if
        one of these is used.
    proposal : {"prior", "empirical", "optimal"}, default="prior"
        How the particles of ``"pg"`` decide about a node: by the prior; by the prior with the cuts
        spread evenly over the gaps between rows; or by prior times likelihood.

    See Also
    --------
    BARTRegressor, BARTClassifier : Take kernels as their parameter ``kernels``.

    Examples
    --------
    >>> from boscage import BARTRegressor, Kernels
    >>> model = BARTRegressor(kernels=Kernels({"local": 0.9, "pg": 0.1}, n_particles=20))
    >>> model.set_params(kernels__proposal="optimal").kernels.n_particles
    20
    """

    def __init__(
        self,
        shares: KernelName | Mapping[str, float] = "auto",
        *,
        n_particles: int = 10,
        proposal: Literal["prior", "empirical", "optimal"] = "prior",
    ) -> None:
        self.shares = shares
        self.n_particles = n_particles
        self.proposal = proposal

    def _compile(self) -> dict[str, Any]:
        """The checked arguments of `BartSettings`."""
        return {
            "kernels": _probabilities(self.shares),
            "n_particles": _validation.check_count("n_particles", self.n_particles, 1),
            "proposal": _validation.check_word("proposal", self.proposal),
        }


def as_kernels(value: Any) -> Kernels:
    """The kernels that a value of the parameter ``kernels`` stands for."""
    return value if isinstance(value, Kernels) else Kernels(value)


def _probabilities(shares: Any) -> dict[str, float] | None:
    """The probability of each kernel; None where the number of trees decides."""
    if isinstance(shares, Mapping):
        if not shares or not set(shares) <= set(KERNELS):
            words = ", ".join(map(repr, KERNELS))
            raise ValueError(f"kernels must name some of {words}, found {dict(shares)!r}")
        numbers = {
            name: _validation.check_positive(f"kernels' share of {name!r}", share, zero=True)
            for name, share in shares.items()
        }
        greatest = max(numbers.values())
        if greatest == 0.0:
            raise ValueError("kernels' shares are all zero; expected a positive one")
        # Divide by the greatest first, because the sum itself might overflow. The order of the
        # table makes the sum, and so the draws, those of any order of the mapping.
        ordered = {name: numbers.get(name, 0.0) / greatest for name in KERNELS}
        total = sum(ordered.values())
        return {name: share / total for name, share in ordered.items()}
    name = _validation.check_choice("kernels", shares, ("auto", *KERNELS))
    return None if name == "auto" else {name: 1.0}
