"""The estimators that ``boscage fit`` offers: the one table of models and of their options.

An option is named as the estimator's parameter is. Where it is not given, the estimator's own
default holds, which ``--help`` shows.
"""

from __future__ import annotations

import argparse
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from boscage import (
    MCMC,
    SMC,
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    Kernels,
    MondrianForestClassifier,
    MondrianForestRegressor,
)
from boscage._cli.errors import UserError
from boscage._cli.reading import readers
from boscage.bart.kernels import KERNELS
from boscage.mondrian._regression import RULES

CLASSIFICATION, REGRESSION = "classification", "regression"
Parameters = dict[str, Any]


@dataclass(frozen=True)
class Option:
    """A parameter of an estimator, as it is typed.

    Attributes
    ----------
    name : str
        The parameter's name; the option is ``--`` and the name with hyphens.
    metavar : str
        What stands for the value in the help.
    help : str
        What the parameter does.
    read : callable
        Makes the value of what was typed.
    n_values : int or None
        How many values follow, if not one.
    only : str or None
        The only task, or the only sampler, that the parameter is for.
    """

    name: str
    metavar: str | tuple[str, ...]
    help: str
    read: Callable[[str], Any]
    n_values: int | None = None
    only: str | None = None

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return "--" + self.name.replace("_", "-")


@dataclass(frozen=True)
class Nested:
    """A parameter that takes an object with settings of its own, chosen by a word.

    Attributes
    ----------
    name : str
        The parameter, which is an option too.
    make : dict
        For each word what makes the object; its arguments are options of the same names.
    """

    name: str
    make: Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class EstimatorPair:
    """A pair of estimators, for classes and for numbers.

    Attributes
    ----------
    what : str
        What the model is, in a few words.
    estimators : dict
        The class for each task.
    options : tuple of Option
        What ``fit`` takes for them.
    nested : Nested or None
        The parameter with settings of its own, if there is one.
    """

    what: str
    estimators: Mapping[str, type[Any]]
    options: tuple[Option, ...]
    nested: Nested | None = None

    @property
    def learns_online(self) -> bool:
        """Whether rows can be added to a fitted model, and removed from it."""
        return all(hasattr(each, "partial_fit") for each in self.estimators.values())

    def new(self, task: str, given: Parameters) -> Any:
        """An estimator with the given values."""
        own = dict(given)
        if self.nested is not None:
            word = own.pop(self.nested.name, self.default(self.nested.name))
            make = self.nested.make[word]
            inner = {name: own.pop(name) for name in _defaults(make) if name in own}
            own[self.nested.name] = make(**inner)
        return self.estimators[task](**own)

    def default(self, name: str) -> Any:
        """The default of an option, by its name."""
        makers = [*self.estimators.values(), *(self.nested.make.values() if self.nested else ())]
        return next(found[name] for found in map(_defaults, makers) if name in found)

    def help(self, option: Option) -> str:
        """The help of an option, with its default and what it is only for."""
        text, default = option.help, self.default(option.name)
        is_number = isinstance(default, (int, float)) and not isinstance(default, bool)
        if isinstance(default, str) or (is_number and math.isfinite(default)):
            text += f" (default: {default})"
        return f"{option.only} only: {text}" if option.only else text

    def sampler(self, given: Parameters) -> str | None:
        """The word that chooses the settings, as given or by default."""
        if self.nested is None:
            return None
        return str(given.get(self.nested.name, self.default(self.nested.name)))


def _defaults(make: Callable[..., Any]) -> Parameters:
    """The parameters of a class or function, with their defaults."""
    return {name: each.default for name, each in inspect.signature(make).parameters.items()}


def _word(name: str, help: str, *choices: str, only: str | None = None) -> Option:
    metavar = "{" + ",".join(choices) + "}"
    return Option(name, metavar, help, readers.word(*choices), only=only)


def _chain(step: str, only: str | None = None) -> tuple[Option, ...]:
    return (
        Option("n_chains", "N", "independent Markov chains", _COUNT, only=only),
        Option("n_burn", "N", f"{step}s of a chain before its first draw", _COUNT_OR_0, only=only),
        Option("n_draws", "N", "draws that are kept of each chain", _COUNT, only=only),
        Option("thin", "N", f"{step}s from one draw to the next", _COUNT, only=only),
    )


_COUNT, _COUNT_OR_0 = readers.whole(1), readers.whole(0)
_POSITIVE = readers.number(above=0.0)
_PROBABILITY = readers.number(above=0.0, below=1.0)
_KERNELS: tuple[Any, ...] = ("auto", *KERNELS)
_CLASS_WEIGHT = _word(
    "class_weight",
    "let all classes count the same in predictions, or by their rows (default: none)",
    *("balanced", "none"),
    only=CLASSIFICATION,
)
_TREE_PRIOR = (
    Option("alpha_s", "P", "prior probability that the root splits", _PROBABILITY),
    Option(
        "beta_s",
        "X",
        "how fast this probability falls with depth",
        readers.number(above=0.0, or_equal=True),
    ),
)

MODELS: dict[str, EstimatorPair] = {
    "mondrian": EstimatorPair(
        "a Mondrian forest, to which rows can be added and from which they can be removed",
        {CLASSIFICATION: MondrianForestClassifier, REGRESSION: MondrianForestRegressor},
        (
            Option("n_estimators", "N", "number of trees", _COUNT),
            Option(
                "lifetime", "TIME", "make no cut after this time (default: inf)", readers.lifetime
            ),
            Option(
                "min_samples_split",
                "N",
                "split no node with fewer rows; auto: for classes as left-out rows choose, for"
                " numbers 5 with many rows, else 2",
                readers.or_word(readers.whole(2), "auto"),
            ),
            _word(
                "predictive",
                "average over where a row would branch off, or follow each tree's cuts, which"
                " takes less memory",
                "averaged",
                "realised",
            ),
            Option(
                "feature_range",
                ("LOW", "HIGH"),
                "the reference range of every feature (default: the ranges in the table)",
                readers.number(),
                n_values=2,
            ),
            _word(
                "feature_weights",
                "learn the features' rates from the labels, or let them be equal",
                *("learned", "none"),
            ),
            Option(
                "warm_up",
                "N",
                "learn ranges and rates anew until so many rows came, if the table has several"
                " chunks",
                readers.whole(0),
            ),
            Option(
                "window_size",
                "N",
                "keep this many newest rows and forget the others (default: keep all)",
                _COUNT,
            ),
            Option(
                "discount",
                "X",
                "how fast a node's class probabilities leave its parent's; loo chooses it by"
                " leave-one-out",
                readers.number_or("loo"),
                only=CLASSIFICATION,
            ),
            _CLASS_WEIGHT,
            _word(
                "calibration",
                "sharpen probabilities, and mix them with noise, so that they predict left-out"
                " rows best, or do not",
                *("loo", "none"),
                only=CLASSIFICATION,
            ),
            _word(
                "posterior",
                "how nodes are inferred: exact, fast or joint for numbers, kneser-ney or joint for"
                " classes; joint is what all trees explain together",
                *("exact", "fast", "joint", "kneser-ney"),
            ),
            _word(
                "hyperparameters",
                "how they are chosen: by leave-one-out, by marginal likelihood, or by a rule",
                *RULES,
                only=REGRESSION,
            ),
            _word(
                "noise", "the same noise everywhere, or local", "global", "local", only=REGRESSION
            ),
            _word(
                "trend",
                "a linear function beside the trees: of the mean for joint, of class probabilities"
                " (auto or none); auto has slopes where they help",
                *("auto", "linear", "none"),
            ),
            Option(
                "noise_variance",
                "VARIANCE",
                "the variance of the noise, if it is known (default: estimated)",
                _POSITIVE,
                only=REGRESSION,
            ),
            _word(
                "joint_kernel",
                "joint adds up the forest's trees, or infinitely many (auto: up to 5,000 rows,"
                " 10,000 for classes)",
                *("auto", "trees", "limit"),
            ),
            Option(
                "prior_scale",
                "SCALE",
                "standard deviation far from all rows, in units of the targets' (default: 1)",
                _POSITIVE,
                only=REGRESSION,
            ),
        ),
    ),
    "bayes-tree": EstimatorPair(
        "the posterior over single decision trees",
        {CLASSIFICATION: BayesianTreeClassifier, REGRESSION: BayesianTreeRegressor},
        (
            _word("sampler", "sequential Monte Carlo, or Markov chains", "smc", "mcmc"),
            Option("n_particles", "N", "particles of an island", _COUNT, only="smc"),
            Option("n_islands", "N", "independent runs, averaged", _COUNT, only="smc"),
            _word(
                "proposal",
                "how particles decide at a node",
                *("optimal", "exploring", "prior", "empirical"),
                only="smc",
            ),
            Option(
                "max_features",
                "N",
                "features that a particle considers at a node, drawn anew each time: so many, or"
                " the sqrt or log2 of their number (default: all); for the proposals optimal and"
                " exploring",
                readers.or_word(_COUNT, "sqrt", "log2"),
                only="smc",
            ),
            Option(
                "max_stages",
                "N",
                "decisions after which unfinished trees stay as they are",
                _COUNT,
                only="smc",
            ),
            *_chain("step", only="mcmc"),
            *_TREE_PRIOR,
            _CLASS_WEIGHT,
            Option(
                "alpha",
                "X",
                "concentration of the Dirichlet prior of a leaf's classes",
                _POSITIVE,
                only=CLASSIFICATION,
            ),
            Option(
                "kappa",
                "X",
                "how many rows the prior of a leaf's mean is worth",
                _POSITIVE,
                only=REGRESSION,
            ),
            Option(
                "shape",
                "X",
                "shape of the inverse gamma prior of a leaf's variance",
                _POSITIVE,
                only=REGRESSION,
            ),
            Option(
                "noise_share",
                "X",
                "share of the targets' variance that is expected to remain within leaves",
                _POSITIVE,
                only=REGRESSION,
            ),
        ),
        Nested("sampler", {"smc": SMC, "mcmc": MCMC}),
    ),
    "bart": EstimatorPair(
        "the posterior over sums of trees (BART)",
        {CLASSIFICATION: BARTClassifier, REGRESSION: BARTRegressor},
        (
            Option("n_trees", "N", "trees of the sum", _COUNT),
            _word("kernels", "how a tree is changed given the others", *_KERNELS),
            *_chain("sweep"),
            Option("n_particles", "N", "particles of the kernels pg and regrow", _COUNT),
            _word(
                "proposal", "how particles of pg decide at a node", "prior", "empirical", "optimal"
            ),
            *_TREE_PRIOR,
            _CLASS_WEIGHT,
            Option(
                "k",
                "X",
                "shrinkage, greater values keep predictions nearer to the middle of the targets'"
                " range; or learned",
                readers.number_or("learned"),
            ),
            Option(
                "sparse",
                "ALPHA",
                "expect that few features matter: yes, or the concentration of their prior"
                " (default: no)",
                readers.concentration,
            ),
            Option(
                "nu",
                "X",
                "degrees of freedom of the prior of the noise variance",
                _POSITIVE,
                only=REGRESSION,
            ),
            Option(
                "q",
                "P",
                "prior probability that the noise is below its over-estimate",
                _PROBABILITY,
                only=REGRESSION,
            ),
            Option(
                "sigma",
                "X",
                "standard deviation of the noise, if it is known (default: sampled)",
                _POSITIVE,
                only=REGRESSION,
            ),
            Option(
                "sigma_estimate",
                "X",
                "over-estimate of it (default: that of a least squares fit)",
                _POSITIVE,
                only=REGRESSION,
            ),
        ),
        Nested("kernels", {word: partial(Kernels, word) for word in _KERNELS}),
    ),
}
#: All options by their names, those of the same name together.
OPTIONS: dict[str, list[Option]] = {}
for _each in (option for model in MODELS.values() for option in model.options):
    OPTIONS.setdefault(_each.name, []).append(_each)


def shared_reader(name: str) -> Callable[[str], Any]:
    """What reads an option's value; where models differ, the text is kept for `given`."""
    readers = {option.read for option in OPTIONS[name]}
    return readers.pop() if len(readers) == 1 else str


def given(args: argparse.Namespace) -> Parameters:
    """The parameters that were typed for the chosen model; options of other models are refused."""
    own = {option.name: option for option in MODELS[args.model].options}
    found: Parameters = {}
    for name, options in OPTIONS.items():
        if (value := getattr(args, name)) is None:
            continue
        flag = options[0].flag
        if name not in own:
            takers = [
                model
                for model, each in MODELS.items()
                if any(option.name == name for option in each.options)
            ]
            raise UserError(
                f"--model {args.model} has no option {flag}, which is for {' and '.join(takers)}"
            )
        if shared_reader(name) is str:
            try:
                value = own[name].read(value)
            except argparse.ArgumentTypeError as error:
                raise UserError(f"{flag}: {error} of --model {args.model}") from error
        found[name] = value
    sampler = MODELS[args.model].sampler(found)
    for name in found:
        if own[name].only not in (None, sampler, CLASSIFICATION, REGRESSION):
            raise UserError(
                f"{own[name].flag} is for --sampler {own[name].only}, this is {sampler}"
            )
    if (pair := found.get("feature_range")) is not None:
        low, high = pair
        if low > high:
            raise UserError(
                f"--feature-range: found {low:g} {high:g}, expected LOW and HIGH, with LOW at"
                " most HIGH"
            )
        found["feature_range"] = (low, high)
    for name in ("calibration", "class_weight", "feature_weights", "trend"):
        if found.get(name) == "none":
            found[name] = None
    return found


def check_task(model: str, task: str, found: Parameters) -> None:
    """Refuse options that are for the other task."""
    for option in MODELS[model].options:
        is_for_other = option.only in (CLASSIFICATION, REGRESSION) and option.only != task
        if is_for_other and option.name in found:
            raise UserError(f"{option.flag} is for {option.only}, this is {task}")
