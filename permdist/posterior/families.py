"""Which posterior belongs to a model: a table that other packages can add to."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from permdist._registry import load_plugins
from permdist.posterior.problem import Problem

# Makes a Problem from the model (a class or an object), data, prior and the family's options.
Maker = Callable[..., Problem]

# Makers by the name of the model's class: functions, or where to import them from.
FAMILIES: dict[str, Maker | str] = {
    "PlackettLuce": "permdist.posterior.luce:luce_problem",
    "DavidsonLuce": "permdist.posterior.luce:luce_problem",
    "GaussianScores": "permdist.posterior.gaussian_scores:gaussian_problem",
    "GeneralizedMallows": "permdist.posterior.generalized:generalized_problem",
    "Mallows": "permdist.posterior.mallows:mallows_problem",
    "Mixture": "permdist.posterior.mixtures:mixture_problem",
    "MLE": "permdist.posterior.linear:linear_problem",
    "ConvexLoss": "permdist.posterior.linear:linear_problem",
    "ListMLE": "permdist.posterior.linear:linear_problem",
}


def register_family(model: type, maker: Maker) -> None:
    """Let `sample` know what the posterior of a class of models is.

    Parameters
    ----------
    model : type
        A class; its subclasses have the same posterior unless they are registered, too.
    maker : callable
        Called with the model (the class or an object of it), the data, the prior, and all other
        options as keywords; returns a `Problem`.
    """
    if not isinstance(model, type):
        raise TypeError(f"model: expected a class, got {type(model).__name__}")
    if not callable(maker):
        raise TypeError(f"maker: expected a function, got {type(maker).__name__}")
    FAMILIES[_name(model)] = maker


def problem_of(model: Any, data: Any = None, prior: Any = None, **options: Any) -> Problem:
    """Return the posterior of a model, ready for `sample`.

    Parameters
    ----------
    model : type, Distribution, Ranker or Problem
        As in `sample`.
    data, prior : object
    **options
        Of the family.

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> problem = problem_of(PlackettLuce, [[0, 1, 2], [1, 0, 2]], prior=1.0)
    >>> problem.family, problem.size
    ('Plackett-Luce', 3)
    """
    if isinstance(model, Problem):
        given = {"data": data, "prior": prior, **options}
        extra = [name for name, value in given.items() if value is not None]
        if extra:
            raise TypeError(
                f"{extra[0]}: a Problem has its own data, prior and options; leave it out"
            )
        return model
    load_plugins()
    for base in (model if isinstance(model, type) else type(model)).__mro__:
        maker = FAMILIES.get(_name(base))
        if maker is not None:
            made = _imported(maker) if isinstance(maker, str) else maker
            if data is None:
                _check_has_ballots(model)
            return made(model, data, prior, **options)
    known = ", ".join(name.rpartition(".")[2] for name in FAMILIES)
    what = model.__name__ if isinstance(model, type) else type(model).__name__
    raise TypeError(
        f"model: no posterior is known for {what}, expected one of {known}; make a "
        "posterior of your own by permdist.posterior.from_functions (see 'A posterior of your own' "
        "in docs/posterior.md), or register one by register_family"
    )


def _check_has_ballots(model: Any) -> None:
    """Refuse a fitted model without its ballots: its posterior would be the prior."""
    fitted = getattr(model, "fit_result", None)
    if not isinstance(model, type) and fitted is not None and not hasattr(fitted, "ballots"):
        raise ValueError(
            f"data: a fitted {type(model).__name__} does not keep its ballots; pass them, too"
        )


def _name(model: type) -> str:
    """Return the name of a class, with its module if it is not one of the library's."""
    own = model.__module__.partition(".")[0] == "permdist"
    return model.__qualname__ if own else f"{model.__module__}.{model.__qualname__}"


def _imported(place: str) -> Maker:
    module, _, name = place.partition(":")
    maker: Maker = getattr(import_module(module), name)
    return maker
