"""Classes that count more, or less, than their share of the training rows says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from boscage._input.labels import listed
from boscage._types import AnyArray, FloatArray, Label


def check_class_weight(class_weight: Any) -> None:
    """Refuse what is neither None, nor "balanced", nor a dictionary of weights."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            'class_weight must be None, "balanced" or a dictionary of weights by label, found '
            f"{class_weight!r}"
        )
    for label, weight in class_weight.items():
        if isinstance(weight, (bool, np.bool_)) or not isinstance(weight, Real):
            raise TypeError(
                f"class_weight of {label!r} must be a number, found {type(weight).__name__}"
            )
        if not math.isfinite(weight) or weight < 0.0:
            raise ValueError(
                f"class_weight of {label!r} must be finite and not negative, found {weight}"
            )


def require_a_class(class_weight: Any, y: AnyArray) -> None:
    """Refuse a checked dictionary of weights that says nothing of the labels of all rows."""
    if not isinstance(class_weight, Mapping) or not class_weight:
        return
    known = np.unique(y)
    if not any(label in class_weight for label in known.tolist()):
        raise ValueError(
            f"class_weight has weights for {listed(class_weight)}, but y has the labels "
            f"{listed(known.tolist())} in rows whose weight is not 0; expected one of these"
        )
    _given(class_weight, known)  # checks that a class has a weight above 0


def weights_of(
    class_weight: Any, classes: AnyArray, counts: Callable[[], AnyArray]
) -> FloatArray | None:
    """The weight of each class, given what finds their numbers of training rows; None for none."""
    check_class_weight(class_weight)
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        return _balancing(counts())
    return _given(class_weight, classes)


def _balancing(counts: AnyArray) -> FloatArray:
    """Weights that bring all classes with rows to the same number of rows.

    A class without rows has the weight of the most frequent one: its probability comes from
    smoothing alone, and a greater weight would multiply that.
    """
    weights: FloatArray = 1.0 / np.where(counts > 0, counts, counts.max() or 1.0)
    return weights


def _given(class_weight: Mapping[Label, float], classes: AnyArray) -> FloatArray:
    """The weight of each class; 1 where none is given. Labels that are no classes do not count.

    In a stream they may be classes of rows that are to come, or that have gone.
    """
    given = [class_weight.get(label, 1.0) for label in classes.tolist()]
    weights: FloatArray = np.asarray(given, dtype=np.float64)
    if len(weights) == 1:
        return np.ones(1)  # all there is, whatever its weight
    if not weights.any():
        raise ValueError(
            f"class_weight is zero for all classes, {classes.tolist()}; expected one above zero"
        )
    return weights


def reweighted(proba: FloatArray, weights: FloatArray) -> FloatArray:
    """Probabilities in a population where each class is so many times as frequent: Bayes' rule."""
    weights = weights / weights.max()
    found = proba * weights
    total = found.sum(axis=-1, keepdims=True)
    # Nothing is known of a row for which all classes that count are impossible.
    possible = total > 0.0
    return np.where(possible, found / np.where(possible, total, 1.0), weights / weights.sum())


def to_json(class_weight: Any) -> Any:
    """A checked class weight as JSON holds it: with labels as values, since they may be numbers."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    return [
        [label.item() if isinstance(label, np.generic) else label, float(weight)]
        for label, weight in class_weight.items()
    ]


def from_json(saved: Any) -> Any:
    """What `to_json` wrote, which is not to be trusted; None for anything else."""
    try:
        class_weight = saved if isinstance(saved, str) else dict(saved)
        check_class_weight(class_weight)
    except (TypeError, ValueError):
        return None
    return class_weight
