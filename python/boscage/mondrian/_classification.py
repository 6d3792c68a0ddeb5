"""How classification forests grow: settings, labels, and what is chosen before the first cut."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from boscage import _core, _validation
from boscage._input.columns import sort_labels
from boscage._input.labels import check_classes, conform, encode
from boscage._types import AnyArray, BoolArray, FloatArray, Rows
from boscage.mondrian._discount import DISCOUNTS, best_discount, judging_rows
from boscage.mondrian._forest.base import MondrianForest
from boscage.mondrian._min_samples_split import choose_min_samples_split
from boscage.mondrian.feature_rates._samples import Sample
from boscage.mondrian.feature_rates._shared import LearnedRates
from boscage.mondrian.feature_rates.classification import learn_rates_and_maps

DEFAULT_DISCOUNT = 10.0

__all__: list[str] = []


class ClassificationForest(MondrianForest):
    """A Mondrian forest whose targets are classes, without its predictions."""

    discount: float | Literal["loo"]
    posterior: Literal["kneser-ney", "joint"]
    calibration: Literal["loo"] | None
    joint_kernel: Literal["auto", "trees", "limit"]
    trend: Literal["auto"] | None

    def _settings(self) -> dict[str, Any]:
        discount = self.discount
        if isinstance(discount, str):
            _validation.check_choice("discount, unless a number,", discount, ("loo",))
        else:
            discount = _validation.check_positive("discount", discount)
        posterior = _validation.check_choice("posterior", self.posterior, ("kneser-ney", "joint"))
        calibration = self.calibration
        if calibration is not None:
            _validation.check_choice("calibration, unless None,", calibration, ("loo",))
        elif posterior == "joint":
            raise ValueError("posterior='joint' needs calibration='loo', found None")
        if not (self.trend is None or _validation.is_word(self.trend, "auto")):
            raise ValueError(f"trend must be 'auto' or None for classes, found {self.trend!r}")
        return {
            **self._tree_settings(),
            "discount": DEFAULT_DISCOUNT if isinstance(discount, str) else discount,
            "posterior": posterior,
            "calibration": calibration,
            "trend": self._has_trend(calibration),
        }

    def _choose_settings(
        self,
        sample: Sample,
        learned: LearnedRates,
        is_number: BoolArray,
        *,
        settings: dict[str, Any],
        **options: Any,
    ) -> dict[str, Any]:
        # The joint posterior knows of noise itself, and predictions that are not calibrated are the
        # thesis'.
        may_choose = settings["posterior"] == "kneser-ney" and settings["calibration"] is not None
        if not (self._chooses_leaves and may_choose):
            return settings
        chosen = choose_min_samples_split(sample, learned, settings=settings, **options)
        return settings | {"min_samples_split": chosen}

    def _has_trend(self, calibration: str | None) -> bool:
        """Whether there may be a trend: it is a part of the calibration."""
        return self.trend is not None and calibration is not None

    def _new_model(self, settings: dict[str, Any], seed: int) -> _core.MondrianClassifier:
        return _core.MondrianClassifier(**settings, seed=seed)

    @classmethod
    def _params_of(
        cls, model: _core.MondrianClassifier, metadata: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "discount": model.discount,
            "posterior": model.posterior,
            "calibration": None if model.calibration is None else "loo",
            # Only the joint posterior has one, and others take the default.
            "joint_kernel": model.joint_kernel if model.posterior == "joint" else "auto",
            # Only with a calibration.
            "trend": "auto" if model.trend or model.calibration is None else None,
        }

    def _check_labels_of(self, model: _core.MondrianClassifier) -> None:
        conform(np.asarray(model.classes()), self._model.classes(), "the other forest")

    def _encode(
        self, y: AnyArray, classes: Any, model: _core.MondrianClassifier | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        known = [] if model is None else model.classes()
        declared = None
        if classes is not None:
            declared = check_classes(classes, known)
            if model is not None and not set(declared) <= set(known):
                new = [label for label in declared if label not in known]
                raise ValueError(
                    f"classes holds {new}, which were not declared at the first call; labels "
                    "may appear in y at any call, but can be declared only at the first one"
                )
        return encode(y, known or declared or []), {"declared": declared}

    def _stored(self, model: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (model.targets(), model.classes()), {"declared": model.declared() or None}

    def _with_stored(self, model: Any, encoded: tuple[Any, ...]) -> AnyArray:
        targets: AnyArray = model.targets()
        if not encoded:
            return targets
        codes, labels = encoded
        known = model.classes()
        # In an order that does not depend on when a label came.
        numbers = {label: number for number, label in enumerate(sort_labels({*known, *labels}))}
        before, own = (
            np.array([numbers[label] for label in some], dtype=targets.dtype)
            for some in (known, labels)
        )
        return np.concatenate([before[targets], own[codes]])

    def _learn_rates(
        self, sample: Sample, *, settings: dict[str, Any], **options: Any
    ) -> LearnedRates:
        return learn_rates_and_maps(sample, settings=settings, **options)

    def _sample(self, X: Rows, y: AnyArray, weights: FloatArray | None, seed: int) -> Sample:
        # Declared classes that no row has do not count.
        _, codes = np.unique(y, return_inverse=True)
        return super()._sample(X, codes, weights, seed)

    def _learns(self) -> bool:
        return super()._learns() or isinstance(self.discount, str)

    def _select_discount(self, model: _core.MondrianClassifier, n_threads: int) -> None:
        """Choose the candidate with the least leave-one-out log loss if ``discount="loo"``."""
        if not self._selects_discount(model):
            return
        ids, columns, weights = judging_rows(model)
        with self._progress("choosing the discount") as progress:
            proba = model.loo_proba(
                ids,
                list(DISCOUNTS),
                calibration=model.calibration,
                n_threads=n_threads,
                progress=progress,
            )
        model.set_discount(best_discount(proba, columns, weights))

    def _selects_discount(self, model: _core.MondrianClassifier) -> bool:
        return isinstance(self.discount, str) and model.n_rows > 1

    def _apply_changes(self, model: _core.MondrianClassifier) -> None:
        super()._apply_changes(model)
        if not isinstance(self.discount, str) and model.discount != self.discount:
            model.set_discount(self.discount)
        # Forests in older files keep the calibration that they had.
        keeps = None not in (self.calibration, model.calibration)
        calibration = model.calibration if keeps else self.calibration
        own = self.posterior, calibration, self.joint_kernel, self._has_trend(calibration)
        if (model.posterior, model.calibration, model.joint_kernel, model.trend) != own:
            model.set_posterior(*own)

    def _changed(self) -> bool:
        changed = super()._changed()
        if isinstance(self.discount, str) and not isinstance(self._grown_with["discount"], str):
            raise ValueError(
                "discount='loo' chooses when the forest is grown; call fit, or give a number"
            )
        return changed
