"""What several plots share: axes, the choice of two features, and checks of what is plotted."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from boscage._input.columns import is_missing, take
from boscage._types import AnyArray, FloatArray
from boscage._validation import check_count, check_feature, check_positive, or_names
from boscage.mondrian._categories import put
from boscage.trees._names import Names, feature_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# What draws which classes, theirs and their bases'.
_DRAWN_BY = {
    "MondrianTree": "plot_tree",
    "PosteriorTree": "plot_posterior_tree",
    "MondrianForest": "plot_partition and plot_uncertainty, and plot_tree for one of its trees_",
    "BayesianTree": "plot_disagreement, and plot_posterior_tree for one of its trees_",
    "Bart": "plot_effect",
}


def new_axes(ax: Axes | None) -> Axes:
    """The given axes, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'plots need Matplotlib, which is not installed: pip install "boscage[plot]"'
        ) from error
    return plt.subplots()[1]


def require(function: str, thing: Any, *names: str) -> None:
    """Refuse what is not an instance of one of the classes with these names.

    Names instead of classes: the classes themselves have methods that call the plots.
    """
    found = [kind.__name__ for kind in type(thing).__mro__]
    if any(name in names for name in found):
        return
    other = next((f"; see {_DRAWN_BY[name]}" for name in found if name in _DRAWN_BY), "")
    raise TypeError(f"{function} draws {' and '.join(names)}, found {found[0]}{other}")


def check_grid(margin: float, resolution: int) -> None:
    """Refuse a margin that is negative or not finite, and less than two values on an axis."""
    check_positive("margin", margin, zero=True)
    check_count("resolution", resolution, 2)


def two_features(
    features: tuple[int | str, int | str], names: AnyArray | None, n_features: int
) -> tuple[int, int]:
    """The numbers of two features that are given by number or name, checked."""
    try:
        a, b = (check_feature("features", feature, names, n_features) for feature in features)
        if a != b:
            return a, b
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"features must be two different numbers below {n_features}{or_names(names)}, found "
        f"{features!r}"
    )


def draw_shade(
    ax: Axes | None,
    shade: FloatArray,
    ends: tuple[FloatArray, FloatArray],
    features: tuple[int, int],
    *,
    names: Names | None,
    label: str,
    cmap: str,
) -> Axes:
    """Axes with a shade over the grid of two features' values, `ends`, and what it means."""
    ax = new_axes(ax)
    across, up = ends
    mesh = ax.pcolormesh(
        across, up, shade.reshape(len(up), len(across)), cmap=cmap, shading="nearest"
    )
    ax.figure.colorbar(mesh, ax=ax, label=label)
    ax.set(
        xlabel=feature_name(names, features[0]),
        ylabel=feature_name(names, features[1]),
        xlim=(across[0], across[-1]),
        ylim=(up[0], up[-1]),
    )
    return ax


def other_values(forest: Any, at: Any, middle: FloatArray) -> FloatArray:
    """A row with the values of features that are not on an axis, and the places of categories.

    Without values it has the middle of each range, and a missing value of each category.
    """
    tables = forest._tables
    if at is None:
        row = np.array(middle, dtype=np.float64)
        for feature, table in tables.items():
            row[feature] = table[None]
        return row
    given = np.asarray(at, dtype=object)
    if given.shape != middle.shape:
        raise ValueError(f"at has shape {given.shape}, expected {middle.shape}")
    columns, rows = take(given[np.newaxis], sorted(tables))
    numbers = [_number(value, feature) for feature, value in enumerate(rows[0])]
    found: FloatArray = put(np.array([numbers]), columns, tables)[0]
    return found


def _number(value: Any, feature: int) -> float:
    """A value of `at`: a finite number, or NaN for a missing one."""
    try:
        number = np.nan if is_missing(value) else float(value)
    except (OverflowError, TypeError, ValueError):
        number = np.inf
    if np.isinf(number):
        raise ValueError(
            f"at holds {value!r} for feature {feature}; expected a finite number, or NaN for a "
            "missing value"
        )
    return number


def require_numeric(
    features: tuple[int, int], categorical: Collection[int], names: Names | None
) -> None:
    """Refuse features of categories on the axes."""
    for feature in features:
        if feature in categorical:
            raise ValueError(
                f"feature {feature_name(names, feature)} is categorical; expected two numeric "
                "features for the axes"
            )


def grid_over(
    features: tuple[int, int],
    low: FloatArray,
    high: FloatArray,
    base: FloatArray,
    margin: float,
    resolution: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values of two features, and the rows of their grid; other features are those of `base`."""
    check_grid(margin, resolution)
    a, b = features
    span = np.where(high > low, high - low, 1.0)
    across, up = (
        np.linspace(low[d] - margin * span[d], high[d] + margin * span[d], resolution)
        for d in (a, b)
    )
    grid = np.tile(base, (resolution * resolution, 1))
    grid[:, a], grid[:, b] = (part.ravel() for part in np.meshgrid(across, up))
    return across, up, grid
