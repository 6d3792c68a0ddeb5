"""Samplers and kernels as objects with scikit-learn's parameters; the registry of model kinds."""

from __future__ import annotations

import ast
import inspect
import io
import json
import pickle
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import boscage
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
    _core,
    disk,
    evidence,
)
from boscage.bart.kernels import KernelName
from boscage.persistence import MODEL_KINDS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = (X[:, 0] > 0.0).astype(int)
ESTIMATORS = [
    MondrianForestClassifier,
    MondrianForestRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    BARTClassifier,
    BARTRegressor,
]


@pytest.mark.parametrize("settings", [SMC, MCMC, Kernels])
def test_settings_have_parameters_and_are_compared_by_them(settings: Any) -> None:
    default = settings()
    names = list(inspect.signature(settings).parameters)
    assert sorted(default.get_params()) == sorted(names)
    assert default == settings()
    assert clone(default) == default
    assert pickle.loads(pickle.dumps(default)) == default
    assert repr(default) == f"{settings.__name__}()"
    changed = clone(default).set_params(**{names[-1]: 7})
    assert changed != default
    assert default != "smc"
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        default.set_params(nothing=1)


def test_a_name_stands_for_the_sampler_with_its_defaults() -> None:
    for name, sampler in (("smc", SMC()), ("mcmc", MCMC())):
        one, two = (BayesianTreeClassifier(s, random_state=0).fit(X, Y) for s in (name, sampler))
        assert one._model.to_bytes() == two._model.to_bytes()
    one, two = (
        BARTRegressor(5, kernels=kernels, n_chains=1, n_burn=5, n_draws=5, random_state=0).fit(X, Y)
        for kernels in ("pg", Kernels({"pg": 3.0}))
    )
    assert one._model.to_bytes() == two._model.to_bytes()


def test_every_list_of_kernels_is_that_of_the_compiled_table() -> None:
    table = list(_core.bart_kernels(1))
    assert list(get_args(KernelName)) == ["auto", *table]
    for model in (BARTRegressor, BARTClassifier):
        assert "KernelName" in str(inspect.signature(model).parameters["kernels"].annotation)
    documented = inspect.getdoc(Kernels) or ""
    assert re.findall(r"^ *- ``\"(\w+)\"``", documented, re.MULTILINE) == table
    mixed = [name for name, share in _core.bart_kernels(10).items() if share > 0.0]
    in_words = ", ".join(f'``"{name}"``' for name in mixed[:-1]) + f' and ``"{mixed[-1]}"``'
    assert f'``"auto"`` mixes {in_words}' in documented
    guide = Path(__file__).parents[2] / "docs/guides/bart.md"
    rows = guide.read_text(encoding="utf-8").split("| kernel | step | cost |")[1].split("\n\n")[0]
    assert re.findall(r'^\| `"(\w+)"`', rows, re.MULTILINE) == table


def test_nested_parameters() -> None:
    model = BayesianTreeClassifier(SMC(n_particles=3))
    assert model.get_params()["sampler__n_particles"] == 3
    twin = clone(model)
    assert twin.sampler is not model.sampler
    twin.set_params(sampler__n_particles=9)
    assert (model.sampler, twin.sampler) == (SMC(n_particles=3), SMC(n_particles=9))
    # A name is replaced by the object that it stands for.
    assert BayesianTreeClassifier().set_params(sampler__n_islands=2).sampler == SMC(n_islands=2)
    both = BayesianTreeRegressor().set_params(sampler="mcmc", sampler__n_burn=7)
    assert both.sampler == MCMC(n_burn=7)
    for shares in ("auto", {"pg": 1.0}):
        bart = BARTClassifier(kernels=shares).set_params(kernels__n_particles=4)
        assert bart.kernels == Kernels(shares, n_particles=4)
    with pytest.raises(ValueError, match="Invalid parameter 'n_draws'"):
        model.set_params(sampler__n_draws=3)
    with pytest.raises(ValueError, match="sampler must be 'smc', 'mcmc'"):
        BayesianTreeClassifier("nuts").set_params(sampler__n_draws=3)


def test_grid_search_over_nested_parameters() -> None:
    grid = {"sampler__n_particles": [1, 4], "alpha": [1.0]}
    search = GridSearchCV(BayesianTreeClassifier(random_state=0), grid, cv=2).fit(X, Y)
    assert search.best_estimator_.sampler.n_particles in (1, 4)
    table = evidence.compare_parameters(
        BayesianTreeClassifier(random_state=0), X, Y, {"sampler__n_particles": [1, 4]}
    )
    assert {params["sampler__n_particles"] for params in table.models} == {1, 4}
    names = {"sampler": [SMC(n_particles=1), SMC(n_particles=4)]}
    assert GridSearchCV(BayesianTreeRegressor(), names, cv=2).fit(X, X[:, 0]).best_score_ > 0.0
    with pytest.raises(ValueError, match="smc"):
        evidence.compare_parameters(BayesianTreeClassifier(MCMC()), X, Y, grid)


@pytest.mark.parametrize(
    ("given", "n_features", "number"),
    [
        ("sqrt", 12, 3),
        ("log2", 12, 3),
        ("log2", 17, 4),
        ("log2", 1, 1),
        (0.5, 12, 6),
        (0.01, 12, 1),
        (1.0, 12, 12),
        (1, 12, 1),
        (None, 12, None),
    ],
)
def test_max_features_means_what_it_does_in_scikit_learn(
    given: Any, n_features: int, number: int | None
) -> None:
    rows = np.random.default_rng(0).uniform(size=(40, n_features))
    if n_features > 1:
        forest = RandomForestRegressor(1, max_features=1.0 if given is None else given)
        assert forest.fit(rows, rows[:, 0]).estimators_[0].max_features_ == (number or n_features)
    models = [
        BayesianTreeRegressor(SMC(n_particles=4, max_features=value), random_state=0)
        for value in (given, number)
    ]
    one, two = (model.fit(rows, rows[:, 0])._model.to_bytes() for model in models)
    assert one == two
    # Islands that were sampled apart are joined with the settings of the whole.
    parts = [clone(models[0]) for _ in range(2)]
    for part, own in enumerate(parts):
        own._fit_part(rows, rows[:, 0], part, sample_weight=None)
    models[0]._adopt(parts)
    assert models[0].n_features_in_ == n_features


def test_max_features_that_mean_nothing_are_refused() -> None:
    for value in ("auto", 0.0, -0.5, 1.5, np.nan, True, ["sqrt"]):
        with pytest.raises(ValueError, match=r"max_features must be an integer >= 1, a share"):
            BayesianTreeClassifier(SMC(max_features=value)).fit(X, Y)
    with pytest.raises(ValueError, match="max_features needs proposal='optimal'"):
        BayesianTreeClassifier(SMC(proposal="prior", max_features="sqrt")).fit(X, Y)


def test_a_word_for_max_features_is_kept_in_files(tmp_path: Path) -> None:
    model = BayesianTreeClassifier(SMC(max_features="log2")).fit(X, Y)
    model.save(tmp_path / "model")
    assert BayesianTreeClassifier.load(tmp_path / "model").sampler == SMC(max_features="log2")


def test_fit_does_not_change_its_sampler() -> None:
    sampler = SMC(n_particles=2)
    BayesianTreeClassifier(sampler).fit(X, Y)
    assert sampler == SMC(n_particles=2)
    assert sampler.n_particles == 2


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (BayesianTreeClassifier(SMC(n_particles=3, max_features=2)), "sampler"),
        (BayesianTreeRegressor(MCMC(n_draws=5, n_burn=5, n_chains=2)), "sampler"),
        (BARTRegressor(3, n_chains=1, n_burn=2, n_draws=3, kernels=Kernels("pg")), "kernels"),
        (
            BARTClassifier(
                3, n_chains=1, n_burn=2, n_draws=3, kernels=Kernels({"pg": 1, "cgm": 2})
            ),
            "kernels",
        ),
    ],
)
def test_files_keep_settings(model: Any, name: str, tmp_path: Path) -> None:
    model.set_params(random_state=1).fit(X, Y)
    model.save(tmp_path / "model")
    again: Any = boscage.load(tmp_path / "model")
    assert getattr(again, name) == getattr(model, name)
    assert again.get_params() == model.get_params()
    assert again.fit(X, Y)._model.to_bytes(annotation="") == model._model.to_bytes(annotation="")


@pytest.mark.parametrize(
    "saved",
    [
        {"class": "SMC", "params": {"n_particles": 4, "evil": 1}},
        {"class": "SMC", "params": {"n_particles": [], "n_islands": {"a": None}}},
        {"class": ["SMC"], "params": {}},
        {"class": "MCMC", "params": 3},
        {"class": "os.system", "params": {}},
        {"SMC": {}},
        [1, 2],
        None,
    ],
)
def test_metadata_of_files_is_not_trusted(saved: Any) -> None:
    """With any metadata the model loads and predicts."""
    model = BayesianTreeClassifier(random_state=0).fit(X, Y)
    params = dict.fromkeys(model.get_params(deep=False)) | {"sampler": saved}
    note = json.dumps({"boscage-python": {"params": params}})
    again: Any = boscage.load(io.BytesIO(model._model.to_bytes(annotation=note)))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.sampler is None or not isinstance(again.sampler, type)


def test_every_compiled_model_has_one_estimator() -> None:
    assert [kind.estimator for kind in MODEL_KINDS.values()] != []
    without_rows = {disk.MondrianForestClassifier, disk.MondrianForestRegressor}
    assert {kind.estimator for kind in MODEL_KINDS.values()} == {*ESTIMATORS, *without_rows}
    models = {
        thing
        for thing in vars(_core).values()
        if inspect.isclass(thing) and hasattr(thing, "from_bytes")
    }
    assert {kind.model for kind in MODEL_KINDS.values()} == models
    for name, kind in MODEL_KINDS.items():
        assert kind.name == name
        assert kind.estimator._kind is kind
    with pytest.raises(TypeError):
        MODEL_KINDS["other"] = None  # type: ignore[index]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_subclass_of_a_user_pickles_and_stays_out_of_the_registry(kind: Any) -> None:
    own = type("Own", (kind,), {"__init__": kind.__init__, "__module__": __name__})
    globals()["Own"] = own
    model = own()
    if "n_draws" in model.get_params():
        model.set_params(n_trees=2, n_chains=1, n_burn=1, n_draws=2)
    model.fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is own
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert own not in {row.estimator for row in MODEL_KINDS.values()}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_public_method_has_a_whole_docstring(kind: Any) -> None:
    """Including inherited methods: each documents parameters, results and errors."""
    fitting = {"fit", "partial_fit", "forget", "merge", "flush"}
    predicting = {"predict", "predict_proba", "predict_log_proba", "predict_dist", "predict_draws"}
    for name in fitting | predicting:
        if not hasattr(kind, name):
            continue
        doc = inspect.getdoc(getattr(kind, name)) or ""
        assert "\nReturns\n---" in doc, name
        assert "\nRaises\n---" in doc, name
        for parameter in list(inspect.signature(getattr(kind, name)).parameters)[1:]:
            assert f"\n{parameter} : " in doc, (name, parameter)
    with pytest.raises(NotFittedError):
        kind().predict(X)


def test_modules_import_in_one_direction() -> None:
    """There is no circle of imports at run time, also not of imports within functions."""
    root = Path(boscage.__file__).parent
    files = {
        ".".join(("boscage", *path.relative_to(root).with_suffix("").parts)): path
        for path in root.rglob("*.py")
        if "_cli" not in path.parts and path.name != "__main__.py"
    }
    graph = {
        name.removesuffix(".__init__"): imports(path, set(files)) for name, path in files.items()
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above, name))
        if name not in done:
            for other in graph[name]:
                visit(other, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def imports(path: Path, modules: set[str]) -> set[str]:
    """The package's modules that a file imports at run time; packages stand for their __init__."""
    found: set[str] = set()

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("boscage"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = inner in modules or f"{inner}.__init__" in modules
                is_module |= inner == "boscage._core"  # compiled; it imports none of ours
                found.add(inner if is_module else str(node.module))
        for child in ast.iter_child_nodes(node):
            walk(child)

    walk(ast.parse(path.read_text(encoding="utf-8")))
    return {name for name in found if name in modules or f"{name}.__init__" in modules}


class OwnSMC(SMC):
    """A user's sampler."""


def test_a_subclass_of_a_sampler_comes_back_as_the_sampler() -> None:
    x, y = np.arange(20.0)[:, None], np.arange(20) % 2
    model = BayesianTreeClassifier(OwnSMC(n_particles=3), random_state=0).fit(x, y)
    file = io.BytesIO()
    model.save(file)
    assert boscage.load(io.BytesIO(file.getvalue())).sampler == SMC(n_particles=3)


def test_nested_parameters_that_do_not_exist_change_nothing() -> None:
    model = BayesianTreeClassifier("smc")
    with pytest.raises(ValueError, match="nope"):
        model.set_params(sampler__nope=5)
    assert model.sampler == "smc"


def test_load_says_what_it_takes() -> None:
    for wrong in (b"BOSCAGE", io.StringIO("BOSCAGE")):
        with pytest.raises(TypeError, match="opened in binary mode, found"):
            boscage.load(wrong)  # type: ignore[arg-type]
