"""How much each feature adds to a prediction."""

from boscage.explain.contributions import Contributions

__all__ = ["Contributions"]
