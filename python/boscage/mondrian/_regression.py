"""How regression forests grow: settings, targets, and what is chosen before the first cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from boscage import _core, _validation
from boscage._types import AnyArray, BoolArray
from boscage.mondrian._forest.base import MondrianForest
from boscage.mondrian._min_samples_split import min_samples_split_of_joint
from boscage.mondrian._trend import choose_trend
from boscage.mondrian._trend_features import (
    ANY_NAMES,
    features_of_trend,
    has_names,
    numbers_of_trend,
    stored_features,
)
from boscage.mondrian.feature_rates._samples import Sample
from boscage.mondrian.feature_rates._shared import LearnedRates
from boscage.mondrian.feature_rates.regression import learn_rates_and_maps

# Of targets below, the squares underflow.
_MIN_LARGEST_TARGET = 1e-140
RULES = ("loo", "ml", "heuristic")
"""How hyperparameters are chosen that are not given."""
# Of hyperparameters that are given.
_NEEDED = ("mu", "gamma1", "gamma2", "noise_variance")

# Parameters on which trees do not depend, nor what was chosen before they were grown.
_OF_POSTERIOR = ("hyperparameters", "noise", "noise_variance", "prior_scale", "joint_kernel")
_OF_HIERARCHY = (*_NEEDED, "delay", "coarse_variance", "coarse_rate")
_OF_TREND = ("trend_variance", "trend_scale")
_OF_JOINT = (
    "joint_gamma1",
    "joint_gamma2",
    "joint_noise_variance",
    "joint_share",
    "tree_spread",
    "joint_limit",
)
_OF_NOISE = ("noise_rows", "tail_share", "tail_offset", "tail_variance", "core_variance")


def check_largest_target(largest: float) -> None:
    """Refuse targets of which this is the largest magnitude if squares of all of them vanish."""
    if 0.0 < largest < _MIN_LARGEST_TARGET:
        raise ValueError(
            f"y must be zero everywhere or at least {_MIN_LARGEST_TARGET} by magnitude "
            f"somewhere, so that squares do not vanish; found a largest magnitude of {largest}"
        )


def hyperparameters_of(chosen: Sequence[float]) -> dict[str, float]:
    """What the compiled ``choose`` returns, by name."""
    return dict(zip((*_OF_HIERARCHY, *_OF_NOISE), chosen, strict=False))


class RegressionForest(MondrianForest):
    """A Mondrian forest whose targets are numbers, without its predictions."""

    posterior: Literal["exact", "fast", "joint"]
    hyperparameters: Literal["loo", "ml", "heuristic"] | Mapping[str, float]
    noise: Literal["global", "local"]
    noise_variance: float | None
    prior_scale: float | None
    trend: Literal["auto", "linear"] | Sequence[int] | Sequence[str] | None
    joint_kernel: Literal["auto", "trees", "limit"]

    _FREE: ClassVar[frozenset[str]] = MondrianForest._FREE | {*_OF_POSTERIOR}

    def _settings(self) -> dict[str, Any]:
        return self._settings_with(self._trend())

    def _settings_of(self, model: _core.MondrianRegressor) -> dict[str, Any]:
        if not isinstance(self.hyperparameters, Mapping):
            return self._settings()
        # They belong to the trend that the forest has.
        return self._settings_with(_trend_of(model))

    def _settings_with(self, trend: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a forest with such settings of the trend."""
        noise_variance = self.noise_variance
        if noise_variance is not None:
            noise_variance = _validation.check_positive("noise_variance", noise_variance)
        prior_scale = self.prior_scale
        if prior_scale is not None:
            prior_scale = _validation.check_positive("prior_scale", prior_scale)
            if prior_scale < 1.0:
                raise ValueError(f"prior_scale must be at least 1, found {prior_scale}")
        settings: dict[str, Any] = {
            **self._tree_settings(),
            "posterior": _validation.check_choice(
                "posterior", self.posterior, ("exact", "fast", "joint")
            ),
            "noise": self._noise(),
            "noise_variance": noise_variance,
            "prior_scale": prior_scale,
            **trend,
        }
        if settings["posterior"] == "fast":
            self._refuse_unused()
            # One number is all the noise that it has: equal forests have equal settings.
            settings["noise"] = "global"
        if isinstance(self.hyperparameters, Mapping):
            if noise_variance is not None:
                raise ValueError(
                    "noise_variance cannot be given with a dict of hyperparameters, which holds it"
                )
            settings |= self._given_hyperparameters(self.hyperparameters, settings)
        else:
            settings["hyperparameters"] = _validation.check_choice(
                "hyperparameters", self.hyperparameters, RULES
            )
        return settings

    def _noise(self) -> str:
        noise = _validation.check_choice("noise", self.noise, ("global", "local"))
        # A noise that is known is the same everywhere.
        return noise if self.noise_variance is None else "global"

    def _trend(self) -> dict[str, Any]:
        """Settings of the trend before anything is chosen."""
        trend = self.trend
        if trend is None or _validation.is_word(trend, "auto"):
            return {"trend": None}
        features = [] if isinstance(trend, str) else features_of_trend(trend)
        if self.posterior != "joint":
            raise ValueError(
                f"trend={trend!r} needs posterior='joint', which fits the trees and a linear "
                f"part together (found {self.posterior!r})"
            )
        if isinstance(trend, str):
            return {"trend": _validation.check_choice("trend", trend, ("auto", "linear"))}
        names = self._names() if hasattr(self, "n_features_in_") else ANY_NAMES
        return {"trend": "linear", "trend_features": numbers_of_trend(features, names)}

    def _given_hyperparameters(
        self, given: Mapping[str, float], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Hyperparameters that are all given, which must be those of trend, posterior and noise."""
        has_trend = settings["trend"] is not None
        if "trend_variance" in given and not has_trend:
            is_auto = isinstance(self.trend, str)
            cure = "'auto' chooses none then:" if is_auto else "None has none: leave it out, or"
            raise ValueError(
                "hyperparameters as a dict have trend_variance, which is the scale of a trend, but "
                f"trend={cure} give the features with slopes, by trend='linear' or, beside the "
                "hyperparameters_ of another forest, trend=other.trend_"
            )
        if has_trend and "trend_variance" not in given:
            raise ValueError(
                f"hyperparameters as a dict need trend_variance if trend={self.trend!r}: give it, "
                "or trend=None"
            )
        unused = {
            "posterior='joint'": _OF_JOINT if settings["posterior"] != "joint" else (),
            "noise='local'": _OF_NOISE if settings["noise"] != "local" else (),
        }
        for needed, names in unused.items():
            if found := [name for name in names if name in given]:
                raise ValueError(
                    f"hyperparameters as a dict have {', '.join(found)}, which {needed} alone "
                    "uses: leave them out"
                )
        return {"given": _check_hyperparameters(given)}

    def _choices_of(self, model: _core.MondrianRegressor) -> dict[str, Any]:
        return super()._choices_of(model) | _trend_of(model)

    def _kept(self, model: _core.MondrianRegressor) -> dict[str, Any]:
        return {} if model.prior_scale is None else {"prior_rate": model.prior_rate}

    def _choose_settings(
        self,
        sample: Sample,
        learned: LearnedRates,
        is_number: BoolArray,
        *,
        settings: dict[str, Any],
        **options: Any,
    ) -> dict[str, Any]:
        if self.posterior != "joint":
            return settings
        chosen: dict[str, Any] = {}
        # Hyperparameters that are given come with the trend that they belong to.
        is_given = isinstance(self.hyperparameters, Mapping)
        if _validation.is_word(self.trend, "auto") and not is_given:
            features = choose_trend(sample, learned, is_number, settings=settings, **options)
            if features:
                chosen = {"trend": "linear", "trend_features": features}
        if self._chooses_leaves:
            chosen["min_samples_split"] = min_samples_split_of_joint(sample)
        return settings | chosen

    def _refuse_unused(self) -> None:
        """Refuse what the fast posterior does not use."""
        defaults = {"hyperparameters": "loo", "prior_scale": 1.0}
        for name, default in defaults.items():
            found = getattr(self, name)
            if found != default:
                raise ValueError(
                    "posterior='fast' takes each node's own mean and variance, and does not "
                    f"use {name}={found!r}: leave it at {default!r}, or choose posterior='exact'"
                )

    def _new_model(self, settings: dict[str, Any], seed: int) -> _core.MondrianRegressor:
        return _core.MondrianRegressor(**settings, seed=seed)

    @classmethod
    def _params_of(cls, model: _core.MondrianRegressor, metadata: dict[str, Any]) -> dict[str, Any]:
        given = model.given_hyperparameters
        is_given = given is not None and metadata.get("hyperparameters") == "given"
        # The fast posterior has none, and takes only the default. Numbers that are given use none.
        scale = 1.0 if model.posterior == "fast" else model.prior_scale
        return {
            "posterior": model.posterior,
            "hyperparameters": given if is_given else model.rule,
            "noise": model.noise,
            "noise_variance": model.noise_variance,
            "prior_scale": _stored_scale(metadata) if is_given else scale,
            "trend": model.trend
            if model.trend_features is None
            else stored_features(list(model.trend_features), metadata.get("trend_names")),
            # Only the joint posterior has one, and others take the default.
            "joint_kernel": model.joint_kernel if model.posterior == "joint" else "auto",
        }

    def _metadata(self) -> dict[str, Any]:
        metadata = super()._metadata()
        grown = self._grown_with
        if isinstance(grown.get("hyperparameters"), Mapping):
            scale = grown["prior_scale"]
            metadata["hyperparameters"] = "given"
            metadata["prior_scale"] = None if scale is None else float(scale)
        if has_names(trend := grown.get("trend")):
            metadata["trend_names"] = [str(name) for name in trend]
        return metadata

    def _apply_changes(self, model: _core.MondrianRegressor) -> None:
        super()._apply_changes(model)
        now = {name: getattr(self, name) for name in _OF_POSTERIOR}
        # Forests in older files keep settings that no parameter says.
        if all(value is self._grown_with[name] for name, value in now.items()):
            return
        settings = self._settings_of(model) | self._choices_of(model) | self._kept(model)
        model.set_regression(self._new_model(settings, model.seed))
        # In place, for the model keeps them after an interrupt.
        self._grown_with.update(now)

    def _check_whole_target(self, target: AnyArray) -> None:
        is_noise_known = self.noise_variance is not None or isinstance(
            self.hyperparameters, Mapping
        )
        # A single row begins a stream, or is merged with others.
        if not is_noise_known and len(target) > 1 and (target == target[0]).all():
            self._warn_of_equal_targets(target, "give noise_variance=...")

    def _encode(
        self, y: AnyArray, classes: Any, model: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        largest = np.abs(y).max()
        if 0.0 < largest < _MIN_LARGEST_TARGET and model is not None:
            largest = np.abs(self._with_stored(model, (y,))).max()
        check_largest_target(largest)
        return (y,), {}

    def _stored(self, model: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (model.targets(),), {}

    def _with_stored(self, model: Any, encoded: tuple[Any, ...]) -> AnyArray:
        return np.concatenate([model.targets(), *encoded])

    def _learn_rates(
        self, sample: Sample, *, settings: dict[str, Any], **options: Any
    ) -> LearnedRates:
        return learn_rates_and_maps(sample, settings=settings, **options)

    def _export(self, model: _core.MondrianRegressor) -> list[dict[str, Any]]:
        return model.trees(n_threads=self._n_threads())


def _trend_of(model: _core.MondrianRegressor) -> dict[str, Any]:
    """Settings of the trend that a forest has."""
    return {"trend": model.trend, "trend_features": model.trend_features}


def _stored_scale(metadata: Mapping[str, Any]) -> float | None:
    """The scale of the prior beside stored hyperparameters, which older files do not have."""
    scale = metadata.get("prior_scale", 1.0)
    return scale if scale is None or (_validation.is_real(scale) and scale >= 1.0) else 1.0


def _scalar(value: Any) -> Any:
    """A number as files of arrays hold it, or anything else."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _check_hyperparameters(given: Mapping[str, float]) -> dict[str, float]:
    """Hyperparameters that are all given, as arguments of the compiled model."""
    missing = [name for name in _NEEDED if name not in given]
    optional = (*_OF_HIERARCHY[len(_NEEDED) :], *_OF_TREND, *_OF_JOINT, *_OF_NOISE)
    unknown = sorted({*given} - {*_NEEDED, *optional})
    if missing or unknown:
        raise ValueError(
            "hyperparameters as a dict needs mu, gamma1, gamma2 and noise_variance, and may have "
            f"what else hyperparameters_ of another forest has ({', '.join(optional)}); missing: "
            f"{missing}, unknown: {unknown}"
        )
    return {
        name: _validation.check_real(f"hyperparameters[{name!r}]", _scalar(value))
        for name, value in given.items()
    }
