"""Every example in every docstring runs, and every public object has one."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import permdist

OURS = (
    "cli",
    "comparison",
    "consensus",
    "data",
    "diagnostics",
    "distributions",
    "explorer",
    "identities",
    "inference",
    "measures",
    "models",
    "models.objectives",
    "models.spaces",
    "plots",
    "rankings",
    "rating",
    "report",
    "samplers",
    "samplers.kernels",
    "strategies",
)


def module_names() -> list[str]:
    names = ["permdist"]
    for entry in pkgutil.iter_modules([permdist.__path__[0]], "permdist."):
        names.append(entry.name)
    for package in OURS:
        module = importlib.import_module(f"permdist.{package}")
        names.append(module.__name__)
        names += [
            entry.name for entry in pkgutil.iter_modules(module.__path__, f"{module.__name__}.")
        ]
    return sorted(set(names))


@pytest.mark.parametrize("name", module_names())
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


@pytest.mark.parametrize(
    "package",
    [
        "comparison",
        "consensus",
        "data",
        "diagnostics",
        "explorer",
        "measures",
        "plots",
        "rankings",
        "rating",
        "report",
        "samplers",
        "strategies",
    ],
)
def test_every_public_name_is_documented(package: str) -> None:
    module = importlib.import_module(f"permdist.{package}")
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), f"permdist.{package}.{name} has no docstring"
