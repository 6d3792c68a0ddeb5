"""Search spaces: named parameters, and the rows of numbers that stand for their values.

A setting of all parameters is first a vector of positions, one number in [0, 1] for each parameter,
and then a row of features for a forest. A numeric parameter is one feature, its position. A
categorical one is a feature for each choice, 1 for the one that is taken and 0 for the others, and
each of them is cut at half the rate: two different choices are then as likely to be separated as
the two ends of a numeric parameter, whatever their number. Nothing here looks at objective values,
so that rows never change.

A parameter with a condition that is not met is inactive. It then takes a place of its own,
`INACTIVE`, outside the range of its values, so that all rows have the same features.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from numbers import Real as RealNumber
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boscage import _validation
from boscage._types import FloatArray

Choice: TypeAlias = "bool | int | float | str | None"

INACTIVE = -0.25
"""The feature of an inactive numeric parameter. Its active values lie in [0, 1]."""


@dataclass(frozen=True)
class _Parameter(ABC):
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
            condition[parent] = (values,) if single else tuple(values)
            if not condition[parent]:
                raise ValueError(f"when[{parent!r}] allows no value")
        object.__setattr__(self, "when", condition)


@dataclass(frozen=True)
class _Numeric(_Parameter):
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
        If the range is empty or not finite, or the arguments contradict each other.
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
        if self.log:
            raise ValueError("step cannot be given if log=True")
        if self.low + self.step > self.high:
            raise ValueError(f"step must be at most high - low, found {self.step!r}")

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
        if isinstance(value, bool) or not isinstance(value, RealNumber):
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

    def _settings(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "log": self.log, "step": self.step}


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
        If the range is empty, or the arguments contradict each other.
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
            value = getattr(self, name)
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
                raise TypeError(f"{name} must be an integer, found {value!r}")
            object.__setattr__(self, name, int(value))
        super().__post_init__()
        object.__setattr__(self, "step", _validation.check_count("step", self.step, 1))
        if self.log and self.step != 1:
            raise ValueError("step cannot be given if log=True")
        if self.low + self.step > self.high:
            raise ValueError(f"step must be at most high - low, found {self.step!r}")

    def __repr__(self) -> str:
        step = None if self.step == 1 else self.step
        return _repr(self, (self.low, self.high), log=self.log, step=step, when=self.when)

    @property
    def n_values(self) -> float:
        """Number of values; infinite if the parameter is continuous."""
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
        return self.low + int(self._index(np.asarray(position))) * self.step

    def position(self, value: Any) -> float:
        """The position of a value."""
        whole = isinstance(value, Integral) or (
            isinstance(value, RealNumber) and float(value).is_integer()
        )
        if isinstance(value, (bool, np.bool_)) or not whole:
            raise self._refuse(value)
        steps, rest = divmod(int(value) - self.low, self.step)
        if rest or not self.low <= int(value) <= self.high:
            raise self._refuse(value)
        return float(self._place(np.asarray(float(steps))))

    def _settings(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "log": self.log, "step": self.step}


@dataclass(frozen=True)
class Categorical(_Parameter):
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
        If a choice is of another type.

    Examples
    --------
    >>> from boscage.optimize import Categorical
    >>> Categorical(["relu", "tanh"])
    Categorical(['relu', 'tanh'])
    """

    choices: Sequence[Choice]

    def __post_init__(self) -> None:
        self._check_condition()
        if isinstance(self.choices, str):
            raise TypeError(f"choices must be a sequence of choices, found {self.choices!r}")
        choices = tuple(self.choices)
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
        """Number of values; infinite if the parameter is continuous."""
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


_KINDS: dict[str, type[Real] | type[Integer] | type[Categorical]] = {
    kind.__name__: kind for kind in (Real, Integer, Categorical)
}


class Space:
    """A search space: parameters by name.

    Parameters
    ----------
    parameters : dict of str to Real, Integer or Categorical
        The parameters. One with a condition (``when``) is active only if all parameters that the
        condition names are active and have one of the values given there, as ``b`` here:
        ``{"a": Categorical(["x", "y"]), "b": Real(0, 1, when={"a": "y"})}``.

    Attributes
    ----------
    parameters : dict
        As given.
    names : list of str
        The names, in order.
    n_values : float
        Number of different settings; infinite if a parameter is continuous.

    Raises
    ------
    ValueError
        If there is no parameter, or a condition names an unknown parameter, a value that it does
        not have, or the parameter itself, directly or by way of others.
    TypeError
        If something is not a parameter, or a name is not a string.
    """

    def __init__(self, parameters: Mapping[str, Real | Integer | Categorical]) -> None:
        if not isinstance(parameters, Mapping):
            raise TypeError(f"a space is a dict of parameters by name, found {parameters!r}")
        if not parameters:
            raise ValueError("a space needs at least one parameter")
        for name, parameter in parameters.items():
            if not isinstance(name, str):
                raise TypeError(f"the name of a parameter must be a string, found {name!r}")
            if not isinstance(parameter, _Parameter):
                raise TypeError(
                    f"{name} must be a Real, an Integer or a Categorical, found {parameter!r}"
                )
        self.parameters = dict(parameters)
        self.names = list(self.parameters)
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._conditions = {
            name: self._check_condition(name, parameter.when)
            for name, parameter in self.parameters.items()
            if parameter.when is not None
        }
        self._order = self._parents_first()
        self._columns = self._place_columns()

    def __repr__(self) -> str:
        return f"Space({self.parameters!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """The space as a dict that JSON can hold."""
        return {name: parameter.to_dict() for name, parameter in self.parameters.items()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Space:
        """Make a space from what `to_dict` returned.

        Parameters
        ----------
        given : dict
            The parameters.

        Returns
        -------
        Space

        Raises
        ------
        ValueError
            If a parameter is of an unknown kind, or its arguments are not those of its kind.
        """
        parameters = {}
        for name, entry in given.items():
            arguments = dict(entry)
            kind = _KINDS.get(arguments.pop("kind", ""))
            if kind is None:
                raise ValueError(f"{name}: expected one of the kinds {[*_KINDS]}, found {entry!r}")
            try:
                parameters[name] = kind(**arguments)
            except TypeError as error:
                raise ValueError(f"{name}: {error}") from error
        return cls(parameters)

    # -- conditions -------------------------------------------------------------------------------

    def _check_condition(
        self, name: str, when: Mapping[str, Iterable[Choice]]
    ) -> dict[str, FloatArray]:
        """The condition of a parameter, as the positions that each of its parents may have."""
        condition = {}
        for parent, values in when.items():
            if parent not in self.parameters:
                raise ValueError(
                    f"{name} depends on {parent!r}, which is no parameter of the space"
                )
            if self.parameters[parent].n_values == math.inf:
                raise ValueError(f"{name} cannot depend on {parent}, which is continuous")
            try:
                allowed = [self.parameters[parent].position(value) for value in values]
            except ValueError as error:
                raise ValueError(f"{name} depends on {parent}: {error}") from error
            condition[parent] = np.asarray(allowed)
        return condition

    def _parents_first(self) -> list[str]:
        """The conditional parameters in an order in which each follows those it depends on."""
        order: list[str] = []
        left = list(self._conditions)
        while left:
            ready = [name for name in left if not any(p in left for p in self._conditions[name])]
            if not ready:
                raise ValueError(f"the conditions of {', '.join(left)} depend on each other")
            order += ready
            left = [name for name in left if name not in ready]
        return order

    # -- settings, positions and rows -------------------------------------------------------------

    @property
    def n_values(self) -> float:
        """Number of different settings, those that differ in inactive parameters included."""
        return math.prod(parameter.n_values for parameter in self.parameters.values())

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self._columns[-1].stop)

    def snap(self, positions: FloatArray) -> FloatArray:
        """Move positions to those of values, and those of inactive parameters to NaN.

        Parameters
        ----------
        positions : ndarray of shape (n, n_parameters)
            Numbers in [0, 1].

        Returns
        -------
        ndarray of shape (n, n_parameters)
        """
        out = np.empty_like(positions)
        for number, parameter in enumerate(self.parameters.values()):
            out[:, number] = parameter.snap(positions[:, number])
        for name in self._order:
            active = np.ones(len(out), dtype=np.bool_)
            for parent, allowed in self._conditions[name].items():
                # The distance of neighbouring positions is far greater; NaN is near nothing.
                away = np.abs(out[:, self._numbers[parent], None] - allowed)
                active &= (away < 1e-9).any(axis=1)
            out[~active, self._numbers[name]] = np.nan
        return out

    def rows(self, positions: FloatArray) -> FloatArray:
        """The rows of features that stand for positions.

        Parameters
        ----------
        positions : ndarray of shape (n, n_parameters)
            What `snap` returned.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        out = np.zeros((len(positions), self.n_features))
        for number, parameter in enumerate(self.parameters.values()):
            columns, own = self._columns[number], positions[:, number]
            active = ~np.isnan(own)
            if isinstance(parameter, Categorical):
                places = columns.start + parameter.codes(own[active])
                out[np.flatnonzero(active), places] = 1.0
            else:
                out[:, columns.start] = np.where(active, own, INACTIVE)
        return out

    def params(self, positions: FloatArray) -> dict[str, Any]:
        """The values of active parameters at the positions of one setting.

        Parameters
        ----------
        positions : ndarray of shape (n_parameters,)
            A row of what `snap` returned.

        Returns
        -------
        dict
            Values by name.
        """
        return {
            name: parameter.value(float(position))
            for (name, parameter), position in zip(self.parameters.items(), positions, strict=True)
            if not np.isnan(position)
        }

    def positions(self, params: Mapping[str, Any]) -> FloatArray:
        """The positions of a setting.

        Parameters
        ----------
        params : dict
            A value for each active parameter. Values of inactive ones are ignored.

        Returns
        -------
        ndarray of shape (n_parameters,)
            NaN for inactive parameters.

        Raises
        ------
        ValueError
            If a value is missing, is not one of its parameter, or a name is unknown.
        """
        unknown = [name for name in params if name not in self.parameters]
        if unknown:
            raise ValueError(f"unknown parameters: {', '.join(map(repr, unknown))}")
        out = np.full(len(self.names), np.nan)
        for name in [n for n in self.names if n not in self._conditions] + self._order:
            number, condition = self._numbers[name], self._conditions.get(name, {})
            if not all(
                (np.abs(out[self._numbers[parent]] - allowed) < 1e-9).any()
                for parent, allowed in condition.items()
            ):
                continue
            if name not in params:
                raise ValueError(f"no value for {name}")
            try:
                out[number] = self.parameters[name].position(params[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return out

    def all_positions(self) -> FloatArray:
        """The positions of all settings of a finite space.

        Returns
        -------
        ndarray of shape (n, n_parameters)
            Settings that differ only in inactive parameters occur once.
        """
        axes = [
            (np.arange(int(parameter.n_values)) + 0.5) / parameter.n_values
            if not (isinstance(parameter, Integer) and parameter.log)
            else parameter._place(np.arange(parameter.n_values))
            for parameter in self.parameters.values()
        ]
        mesh = np.meshgrid(*axes, indexing="ij")
        snapped = self.snap(np.stack([axis.ravel() for axis in mesh], axis=1))
        # NaN is not equal to itself.
        _, first = np.unique(np.nan_to_num(snapped, nan=-1.0), axis=0, return_index=True)
        return np.asarray(snapped[np.sort(first)])

    # -- what a forest needs to know --------------------------------------------------------------

    def _place_columns(self) -> list[slice]:
        columns, start = [], 0
        for parameter in self.parameters.values():
            width = len(parameter.choices) if isinstance(parameter, Categorical) else 1
            columns.append(slice(start, start + width))
            start += width
        return columns

    @property
    def feature_range(self) -> tuple[FloatArray, FloatArray]:
        """The reference ranges (low, high) of the features."""
        low = np.zeros(self.n_features)
        for name in self._conditions:
            number = self._numbers[name]
            if not isinstance(self.parameters[name], Categorical):
                low[self._columns[number]] = INACTIVE
        return low, np.ones(self.n_features)

    @property
    def feature_weights(self) -> FloatArray:
        """The rates of cuts in the features, in units of one over their ranges.

        Rates are one for the distance between the ends of a numeric parameter, and for that of any
        two choices of a categorical one, which differ in two features.
        """
        low, high = self.feature_range
        weights = high - low
        for columns, parameter in zip(self._columns, self.parameters.values(), strict=True):
            if isinstance(parameter, Categorical):
                weights[columns] = 0.5
        return weights


def _key(choice: Any) -> tuple[str, Any]:
    """What tells choices apart: True is not 1, and NaN is NaN."""
    if isinstance(choice, float) and math.isnan(choice):
        return ("float", "nan")
    if isinstance(choice, np.generic):
        choice = choice.item()
    return (type(choice).__name__, choice)


def _repr(parameter: _Parameter, values: tuple[Any, ...], **options: Any) -> str:
    words = [repr(value) for value in values]
    words += [f"{name}={value!r}" for name, value in options.items() if value not in (None, False)]
    return f"{type(parameter).__name__}({', '.join(words)})"
