"""Fitted models as ONNX graphs and Treelite ensembles, to predict without Boscage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from boscage import _validation
from boscage.export._ensemble import ensemble_of

if TYPE_CHECKING:
    import onnx
    import treelite

__all__ = ["to_onnx", "to_treelite"]


def to_onnx(
    model: Any, *, dtype: Literal["float32", "float64"] = "float32", approximate: bool = False
) -> onnx.ModelProto:
    """Convert a fitted model to an ONNX graph that predicts its posterior means.

    Needs the package ``onnx`` (``pip install "boscage[onnx]"``).

    The graph consists of a ``TreeEnsembleRegressor`` (``ai.onnx.ml`` version 3) and of standard
    operators (version 17), which ONNX Runtime and other runtimes evaluate. Its input ``X`` has
    shape (n_samples, n_features). A regressor's graph has the output ``prediction`` of shape
    (n_samples,), a classifier's the outputs ``label`` of shape (n_samples,) and ``probabilities``
    of shape (n_samples, n_classes).

    Parameters
    ----------
    model : fitted estimator
        BART and Bayesian trees are exported as they predict. Of Mondrian forests there is only an
        approximation.
    dtype : {"float32", "float64"}, default="float32"
        The type of ``X``, and that of the predictions. Numbers in leaves have single precision
        anyway. With "float64" each row takes the sides of splits that it takes in the model. So
        does a row whose values are exact in single precision with "float32". Any other value is
        rounded to single precision before it is compared, and takes another side if a threshold
        lies between the value and its rounding.
    approximate : bool, default=False
        Whether to export a Mondrian forest. Its predictions change smoothly with the distance
        between a row and the training rows of its leaf, but those of an exported one do not: each
        row gets what the leaf that it reaches predicts for its own training rows. The two are the
        same for rows that lie within the boxes of their leaves, which training rows do.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ImportError
        If onnx is not installed.
    TypeError
        If `model` is not an estimator of Boscage.
    ValueError
        If `model` is a Mondrian forest and `approximate` is False; if it has categories or a
        ``class_weight``, or fills missing values with functions of other features.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    A missing value goes to the side that a Bayesian tree or BART has for it, or that of the number
    that stands for it in a Mondrian forest. A forest that was fitted without missing values fills
    them in, but its graph does not: they go to either side.

    All draws of BART are exported, and trees with the same splits as one. A graph of 2,000 draws of
    200 trees has a quarter of a million trees; fewer draws make a smaller one.

    Examples
    --------
    >>> from boscage import BayesianTreeRegressor
    >>> from boscage.export import to_onnx
    >>> model = BayesianTreeRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 0.1, 3.0])
    >>> [output.name for output in to_onnx(model).graph.output]
    ['prediction']
    """
    _validation.check_choice("dtype", dtype, ("float32", "float64"))
    try:
        from boscage.export._onnx import graph_of
    except ImportError as error:
        raise ImportError(
            'to_onnx needs onnx, which is not installed: pip install "boscage[onnx]"'
        ) from error
    return graph_of(ensemble_of(model, approximate=approximate), dtype)


def to_treelite(model: Any, *, approximate: bool = False) -> treelite.Model:
    """Convert a fitted model to a Treelite ensemble that predicts its posterior means.

    Needs the package ``treelite`` (``pip install "boscage[treelite]"``).

    Treelite predicts with the ensemble itself (``treelite.gtil``), serialises it, and hands it to
    TL2cgen, which compiles it, or to FIL, which predicts on GPUs. Thresholds and leaves are in
    double precision, and so are the predictions for rows in double precision.

    Parameters
    ----------
    model : fitted estimator
        A regressor without a trend, a Bayesian tree, or a Mondrian classifier with
        ``calibration=None``: models whose predictions are sums over trees.
    approximate : bool, default=False
        Whether to export a Mondrian forest; see `to_onnx`.

    Returns
    -------
    treelite.Model

    Raises
    ------
    ImportError
        If treelite is not installed.
    TypeError
        If `model` is not an estimator of Boscage.
    ValueError
        If the predictions of `model` are no sum over trees; if `to_onnx` would refuse it.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from boscage import BayesianTreeRegressor
    >>> from boscage.export import to_treelite
    >>> model = BayesianTreeRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 0.1, 3.0])
    >>> to_treelite(model).num_feature
    1
    """
    try:
        from boscage.export._treelite import trees_of
    except ImportError as error:
        raise ImportError(
            'to_treelite needs treelite, which is not installed: pip install "boscage[treelite]"'
        ) from error
    return trees_of(ensemble_of(model, approximate=approximate))
