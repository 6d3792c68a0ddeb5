"""Studies as dicts that JSON can hold, and as files."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TypeVar

from boscage._bases.lock import writing
from boscage._bases.plain import plain
from boscage.mondrian import MondrianForestRegressor
from boscage.optimize.space import Space
from boscage.optimize.trial import Trial

Self = TypeVar("Self", bound="StudyFile")

_FORMAT, _VERSION = "boscage study", 1
_SETTINGS = ("direction", "acquisition", "kappa", "n_initial", "n_candidates")

# Parameters of the forest that a file keeps; the optimizer sets the others.
_KEPT = (
    "n_estimators",
    "lifetime",
    "min_samples_split",
    "posterior",
    "hyperparameters",
    "noise",
    "noise_variance",
    "prior_scale",
    "predictive",
    "trend",
    "joint_kernel",
)


class StudyFile(ABC):
    """A study that can be saved and loaded. Not for direct use."""

    space: Space
    forest: MondrianForestRegressor
    seed: int
    trials: list[Trial]

    @abstractmethod
    def __init__(self, space: Space, **settings: Any) -> None: ...

    @abstractmethod
    def _new_trial(self, params: dict[str, Any]) -> Trial:
        """Start a trial of these values."""

    @abstractmethod
    def tell(self, trial: Trial, value: float | None, *, constraints: Any = None) -> Trial:
        """Say what came of a trial."""

    @writing
    def to_dict(self) -> dict[str, Any]:
        """Return the study as a dict that JSON can hold: settings, space and trials.

        Returns
        -------
        dict
        """
        settings = {name: getattr(self, name) for name in _SETTINGS}
        params = self.forest.get_params(deep=False)
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "settings": settings | {"seed": self.seed},
            "forest": {name: plain(params[name]) for name in _KEPT},
            "space": self.space.to_dict(),
            "trials": [asdict(trial) for trial in self.trials],
        }

    def save(self, file: str | os.PathLike[str]) -> None:
        """Save the study as JSON.

        Parameters
        ----------
        file : path-like
            An existing file of that name is replaced once the new one is complete; if writing
            fails, it stays as it was.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        path = os.fspath(file)
        text = json.dumps(self.to_dict(), indent=1)
        part = path + ".part"
        try:
            with open(part, "w", encoding="utf-8") as opened:
                opened.write(text)
            os.replace(part, path)
        except BaseException:
            with suppress(OSError):  # the first error is the one to tell
                os.unlink(part)
            raise

    @classmethod
    def load(cls: type[Self], file: str | os.PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Load a study, which goes on exactly as if it had never been saved.

        Parameters
        ----------
        file : path-like
            What `save` wrote.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        MondrianOptimizer

        Raises
        ------
        ValueError
            If the file is not a study, or is damaged.
        OSError
            If the file cannot be read.
        """
        try:
            with open(file, encoding="utf-8") as opened:
                found = json.loads(opened.read())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{os.fspath(file)} is not a study: {error}") from error
        return cls.from_dict(found, n_jobs=n_jobs)

    @classmethod
    def from_dict(cls: type[Self], found: Mapping[str, Any], *, n_jobs: int | None = None) -> Self:
        """Make a study from what `to_dict` returned.

        Parameters
        ----------
        found : dict
            The study.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        MondrianOptimizer

        Raises
        ------
        ValueError
            If it is not a study, or not one that this version can read.
        """
        if not isinstance(found, Mapping) or found.get("format") != _FORMAT:
            raise ValueError(f"not a study: expected the format {_FORMAT!r}")
        if found.get("version") != _VERSION:
            raise ValueError(f"expected version {_VERSION}, found {found.get('version')!r}")
        try:
            settings = {name: found["settings"][name] for name in _SETTINGS}
            study = cls(
                Space.from_dict(found["space"]),
                **settings,
                forest=MondrianForestRegressor(**{n: found["forest"][n] for n in _KEPT}),
                random_state=found["settings"]["seed"],
                n_jobs=n_jobs,
            )
            for number, entry in enumerate(found["trials"]):
                if entry["number"] != number:
                    raise ValueError(f"trial {number} has the number {entry['number']}")
                trial = study._new_trial(dict(entry["params"]))
                if entry["state"] != "pending":
                    study.tell(trial, entry["value"], constraints=entry["constraints"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the study is damaged: {error}") from error
        return study
