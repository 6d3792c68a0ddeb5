"""Parameters of samplers and kernels, in one dictionary with those of the estimator."""

from __future__ import annotations

from typing import Any

from boscage import MCMC, SMC, Kernels


def settings_class(kind: Any, params: dict[str, Any]) -> tuple[str, type[Any]] | None:
    """Return the parameter that takes a settings object, and its class; None if there is none."""
    if kind.__name__.startswith("Bayesian"):
        return "sampler", MCMC if params.get("sampler") == "mcmc" else SMC
    return ("kernels", Kernels) if kind.__name__.startswith("BART") else None


def nested(kind: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as the estimator takes them: those of a settings object inside it."""
    found = settings_class(kind, params)
    if found is None:
        return params
    parameter, settings = found
    names = settings().get_params(deep=False)
    own = {name: value for name, value in params.items() if name in names}
    if parameter == "kernels" and "kernels" in params:
        own["shares"] = params["kernels"]
    rest = {n: v for n, v in params.items() if n not in own and n != parameter}
    return {parameter: settings(**own)} | rest


def flat(model: Any) -> dict[str, Any]:
    """Return a model's parameters, those of its settings object beside the others."""
    params = dict(model.get_params(deep=False))
    found = settings_class(type(model), params)
    if found is None:
        return params
    parameter, _ = found
    settings = model._as_settings(params[parameter])
    own = dict(settings.get_params(deep=False))
    name = type(settings).__name__.lower()
    return params | own | {parameter: own.pop("shares", name)}
