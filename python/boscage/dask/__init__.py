"""Models on a Dask cluster: the same as on one machine, bit for bit.

Each worker grows a share of a Mondrian forest's trees from all rows, or the parts of trees below
its cells from the rows in these cells. A tree is a function of the seed, its number and the rows,
so nothing depends on the number of workers, on partitions or on their order. `fit_posterior`
samples chains of BART and islands of Bayesian trees on workers.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        'boscage.dask needs Dask, which is not installed: pip install "boscage[dask]"'
    ) from error

from boscage.dask._posteriors import fit_posterior
from boscage.dask.classifier import MondrianForestClassifier
from boscage.dask.regressor import MondrianForestRegressor

__all__ = ["MondrianForestClassifier", "MondrianForestRegressor", "fit_posterior"]
