"""Parameters of a search space: real numbers, integers and choices.

Each has a scale of positions from 0 to 1, on which all of its values lie.
"""

from __future__ import annotations

import math
import reprlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boscage import _validation
from boscage._types import FloatArray

Choice: TypeAlias = "bool | int | float | str | None"


@dataclass(frozen=True)
class Parameter(ABC):
    """Base of the kinds of parameters."""

    @property
    @abstractmethod
    def n_values(self) -> float:
        """Number of values; infinite if the parameter is continuous."""

    @abstractmethod
    def snap(self, positions: FloatArray) -> FloatArray:
        """The positions of the values nearest to any positions in [0, 1]."""

    @abstractmethod
    def value(self, position: float) -> Any:
        """The value at a position."""

    @abstractmethod
    def position(self, value: Any) -> float:
        """The position of a value.

        Raises
        ------
        ValueError
            If the parameter cannot take this value.
        """

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """The arguments that make the parameter, without its condition."""

    when: Mapping[str, Iterable[Choice]] | None = field(default=None, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """The kind and the arguments of the parameter, as JSON can hold them."""
        condition = None
        if self.when is not None:
            condition = {parent: list(values) for parent, values in self.when.items()}
        return {"kind": type(self).__name__, **self._settings(), "when": condition}

    def _check_condition(self) -> None:
        if self.when is None:
            return
        if not isinstance(self.when, Mapping) or not self.when:
            raise TypeError(
                "when must be a dict from names of parameters to values that they may have, "
                f"found {self.when!r}"
            )
        condition = {}
        for parent, values in self.when.items():
            single = isinstance(values, str) or not isinstance(values, Iterable)
            condition[parent] = tuple(map(_python, [values] if single else values))
            if not condition[parent]:
                raise ValueError(f"when[{parent!r}] allows no value")
        object.__setattr__(self, "when", condition)


@dataclass(frozen=True)
class _Numeric(Parameter):
    """What real and integer parameters share."""

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self._check_condition()
        if not self.low < self.high:
            raise ValueError(f"low must be less than high, found {self.low!r} and {self.high!r}")
        if self.log and self.low <= 0:
            raise ValueError(f"low must be positive if log=True, found {self.low!r}")
        try:
            is_finite = math.isfinite(float(self.high - self.low))
        except OverflowError:  # of integers
            is_finite = False
        if not is_finite:
            raise ValueError(
                f"high - low must be at most {sys.float_info.max:.1e}, found "
                f"{reprlib.repr(self.low)} and {reprlib.repr(self.high)}"
            )

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("low", "high", "log", "step")}

    def _check_step(self, step: float) -> None:
        """Refuse a step that is given although it has no use, or that is too wide."""
        if self.log:
            raise ValueError("step cannot be given if log=True")
        if self.low + step > self.high:
            raise ValueError(f"step must be at most high - low, found {step!r}")

    def _ends(self) -> tuple[float, float]:
        """The ends of the range on the scale of positions, logarithmic or not."""
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def _refuse(self, value: Any) -> ValueError:
        return ValueError(f"expected a value of {self!r}, found {value!r}")


@dataclass(frozen=True)
class Real(_Numeric):
    """A parameter that is a real number.

    Parameters
    ----------
    low, high : float
        The range, both ends included.
    log : bool, default=False
        Whether the logarithm of the value is what matters, as for a learning rate.
    step : float, default=None
        Distance of neighbouring values, counted from `low`; None allows all values. Not possible
        together with `log`.
    when : dict, default=None
        A condition: the parameter is active only if each parameter that is named has one of the
        values given for it. See `Space`. None makes it active always.

    Raises
    ------
    ValueError
        If `low` is not less than `high`, the range is not finite, or so wide that ``high - low`` is
        infinite, or the arguments contradict each other.
    TypeError
        If an argument is of a wrong type.

    Examples
    --------
    >>> from boscage.optimize import Real
    >>> Real(1e-5, 1e-1, log=True)
    Real(1e-05, 0.1, log=True)
    """

    step: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, _validation.check_real(name, getattr(self, name)))
        super().__post_init__()
        if self.step is None:
            return
        object.__setattr__(self, "step", _validation.check_positive("step", self.step))
        self._check_step(self.step)
        if not math.isfinite((self.high - self.low) / self.step):
            raise ValueError(f"step is too small for the range, found {self.step!r}")

    def __repr__(self) -> str:
        return _repr(self, (self.low, self.high), log=self.log, step=self.step, when=self.when)

    @property
    def n_values(self) -> float:
        """Number of values; infinite if the parameter is continuous."""
        return math.inf if self.step is None else self._last + 1

    @property
    def _last(self) -> int:
        """Number of steps to the greatest value; rounding must not lose one."""
        assert self.step is not None
        return math.floor((self.high - self.low) / self.step * (1 + 1e-12) + 1e-9)

    def snap(self, positions: FloatArray) -> FloatArray:
        """The positions of the values nearest to any positions in [0, 1]."""
        if self.step is None:
            return positions
        count = self._last + 1
        return (np.minimum(np.floor(positions * count), count - 1) + 0.5) / count

    def value(self, position: float) -> float:
        """The value at a position."""
        if self.step is not None:
            count = self._last + 1
            return float(
                min(self.low + min(int(position * count), count - 1) * self.step, self.high)
            )
        low, high = self._ends()
        value = low + position * (high - low)
        return float(min(max(math.exp(value) if self.log else value, self.low), self.high))

    def position(self, value: Any) -> float:
        """The position of a value."""
        if not _validation.is_real(value):
            raise self._refuse(value)
        value = float(value)
        if not self.low <= value <= self.high:
            raise self._refuse(value)
        if self.step is not None:
            steps = (value - self.low) / self.step
            if abs(steps - round(steps)) > 1e-6:
                raise self._refuse(value)
            return float((round(steps) + 0.5) / (self._last + 1))
        low, high = self._ends()
        return min(max(((math.log(value) if self.log else value) - low) / (high - low), 0.0), 1.0)


@dataclass(frozen=True)
class Integer(_Numeric):
    """A parameter that is an integer.

    Parameters
    ----------
    low, high : int
        The range, both ends included.
    log : bool, default=False
        Whether the logarithm of the value is what matters, as for a number of units.
    step : int, default=1
        Distance of neighbouring values, counted from `low`; 1 if `log`.
    when : dict, default=None
        A condition; see `Real`.

    Raises
    ------
    ValueError
        If `low` is not less than `high`, the range is wider than the greatest float, or the
        arguments contradict each other.
    TypeError
        If an argument is of a wrong type.

    Examples
    --------
    >>> from boscage.optimize import Integer
    >>> Integer(1, 8)
    Integer(1, 8)
    """

    low: int
    high: int
    step: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = _validation.check_integer(name, getattr(self, name))
            object.__setattr__(self, name, value)
        super().__post_init__()
        object.__setattr__(self, "step", _validation.check_count("step", self.step, 1))
        if self.step != 1:
            self._check_step(self.step)

    def __repr__(self) -> str:
        step = None if self.step == 1 else self.step
        return _repr(self, (self.low, self.high), log=self.log, step=step, when=self.when)

    @property
    def n_values(self) -> float:
        """Number of values."""
        return (self.high - self.low) // self.step + 1

    def _log_ends(self) -> tuple[float, float]:
        # Each integer has the positions that round to it, so that the first and the last one are
        # as wide as the others.
        return math.log(self.low - 0.5), math.log(self.high + 0.5)

    def _index(self, positions: FloatArray) -> FloatArray:
        """How many steps above `low` the values at some positions are."""
        if self.log:
            low, high = self._log_ends()
            steps = np.floor(np.exp(low + positions * (high - low)) + 0.5) - self.low
        else:
            steps = np.floor(positions * self.n_values)
        return np.asarray(np.clip(steps, 0, self.n_values - 1))

    def _place(self, steps: FloatArray) -> FloatArray:
        if self.log:
            low, high = self._log_ends()
            return np.asarray((np.log(self.low + steps) - low) / (high - low))
        return np.asarray((steps + 0.5) / self.n_values)

    def snap(self, positions: FloatArray) -> FloatArray:
        """The positions of the values nearest to any positions in [0, 1]."""
        return self._place(self._index(positions))

    def value(self, position: float) -> int:
        """The value at a position."""
        # Floats round numbers of steps from 2**53 on.
        steps = min(int(self._index(np.asarray(position))), int(self.n_values) - 1)
        return self.low + steps * self.step

    def position(self, value: Any) -> float:
        """The position of a value."""
        is_whole = _validation.is_integer(value) or (
            _validation.is_real(value) and float(value).is_integer()
        )
        if not is_whole:
            raise self._refuse(value)
        steps, rest = divmod(int(value) - self.low, self.step)
        if rest or not self.low <= int(value) <= self.high:
            raise self._refuse(value)
        return float(self._place(np.asarray(float(steps))))


@dataclass(frozen=True)
class Categorical(Parameter):
    """A parameter that is one of several choices without an order.

    Parameters
    ----------
    choices : sequence of None, bool, int, float or str
        The choices, all different. Give an order of choices by an `Integer`, which counts them.
    when : dict, default=None
        A condition; see `Real`.

    Raises
    ------
    ValueError
        If there are fewer than two choices, or two are equal.
    TypeError
        If a choice is of another type, or `choices` has no order, such as a set.

    Examples
    --------
    >>> from boscage.optimize import Categorical
    >>> Categorical(["relu", "tanh"])
    Categorical(['relu', 'tanh'])
    """

    choices: Sequence[Choice]

    def __post_init__(self) -> None:
        self._check_condition()
        # The order of a set may change with every process, and suggestions with it.
        if isinstance(self.choices, (str, bytes)) or not isinstance(
            self.choices, (Sequence, np.ndarray)
        ):
            raise TypeError(f"choices must be a sequence of choices, found {self.choices!r}")
        choices = tuple(map(_python, self.choices))
        for choice in choices:
            if not isinstance(choice, (type(None), bool, int, float, str)):
                raise TypeError(
                    f"a choice must be None, a bool, an int, a float or a str, found {choice!r}"
                )
        if len(choices) < 2:
            raise ValueError(f"expected at least two choices, found {len(choices)}")
        if len({_key(choice) for choice in choices}) < len(choices):
            raise ValueError(f"choices must differ from each other, found {list(choices)!r}")
        object.__setattr__(self, "choices", choices)

    def __repr__(self) -> str:
        return _repr(self, (list(self.choices),), when=self.when)

    @property
    def n_values(self) -> float:
        """Number of choices."""
        return len(self.choices)

    def codes(self, positions: FloatArray) -> NDArray[np.int64]:
        """The numbers of the choices at some positions."""
        count = len(self.choices)
        return np.asarray(np.clip(positions * count, 0, count - 1), dtype=np.int64)

    def snap(self, positions: FloatArray) -> FloatArray:
        """The positions of the values nearest to any positions in [0, 1]."""
        return np.asarray((self.codes(positions) + 0.5) / len(self.choices))

    def value(self, position: float) -> Choice:
        """The value at a position."""
        return self.choices[int(self.codes(np.asarray(position)))]

    def position(self, value: Any) -> float:
        """The position of a value."""
        for code, choice in enumerate(self.choices):
            if _key(choice) == _key(value):
                return (code + 0.5) / len(self.choices)
        raise ValueError(f"expected one of {list(self.choices)!r}, found {value!r}")

    def _settings(self) -> dict[str, Any]:
        return {"choices": list(self.choices)}


KINDS: dict[str, type[Real] | type[Integer] | type[Categorical]] = {
    kind.__name__: kind for kind in (Real, Integer, Categorical)
}


def _key(choice: Any) -> tuple[str, Any]:
    """What tells choices apart: True is not 1, and NaN is NaN."""
    if isinstance(choice, float) and math.isnan(choice):
        return ("float", "nan")
    choice = _python(choice)
    return (type(choice).__name__, choice)


def _python(value: Any) -> Any:
    """A value, with NumPy's numbers as Python's, which JSON knows."""
    return value.item() if isinstance(value, np.generic) else value


def _repr(parameter: Parameter, values: tuple[Any, ...], **options: Any) -> str:
    words = [repr(value) for value in values]
    words += [f"{name}={value!r}" for name, value in options.items() if value not in (None, False)]
    return f"{type(parameter).__name__}({', '.join(words)})"
