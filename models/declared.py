"""Estimators that declare what their parameters and fitted attributes may be."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from permdist.models.attributes import Attribute, Count, History, Numbers, Truth, need_finite
from permdist.models.rules import BASIC, Rule, merged


class Declared(BaseEstimator):  # type: ignore[misc]
    """An estimator with one table of rules for its parameters and one for what it learns.

    A subclass adds its own parameters and fitted attributes to the tables of its bases. What is in
    no table is the subclass's own affair: nothing is asked of such a parameter, and such an
    attribute must have finite numbers.

    Attributes
    ----------
    rules : mapping of str to Rule
        What each parameter may be; looked at by `fit`, `save` and `load`.
    fitted : tuple of str
        The attributes that `save` writes.
    attributes : mapping of str to Attribute
        What each of them may be.
    alternatives : tuple of str
        Those of which a fitted learner has exactly one.
    """

    rules: ClassVar[Mapping[str, Rule]] = BASIC
    fitted: ClassVar[tuple[str, ...]] = ("coef_", "n_iter_", "history_", "converged_")
    attributes: ClassVar[Mapping[str, Attribute]] = {
        "coef_": Numbers(("width",)),
        "n_iter_": Count(),
        "history_": History(),
        "converged_": Truth(),
    }
    alternatives: ClassVar[tuple[str, ...]] = ()

    n_features_in_: int
    views_: tuple[str, ...]

    def _check_parameters(self) -> None:
        """Check all parameters by their rules; a learner adds what concerns several of them."""
        rules = merged(type(self), "rules")
        for name, value in self.get_params(deep=False).items():
            self._check_one(rules.get(name), name, value)

    @classmethod
    def check_parameter(cls, name: str, value: Any) -> None:
        """Check one value of a parameter by the learner's rules.

        Parameters
        ----------
        name : str
        value : object

        Raises
        ------
        ValueError, TypeError
            With the name of the parameter, what is expected and what came.

        Examples
        --------
        >>> from permdist.models import MLE
        >>> MLE.check_parameter("max_iter", 0)
        Traceback (most recent call last):
        ValueError: max_iter: expected at least 1, got 0
        """
        cls._check_one(merged(cls, "rules").get(name), name, value)

    @classmethod
    def _check_one(cls, rule: Rule | None, name: str, value: Any) -> None:
        # None is a value wherever it is the default.
        if rule is not None and not (value is None and _default(cls, name) is None):
            rule.check(name, value)

    def _state(self) -> dict[str, Any]:
        return {name: getattr(self, name, None) for name in self.fitted}

    def _read_state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return fitted attributes as the learner keeps them; refuse what cannot be its own."""
        width, known = self.n_features_in_ * len(self.views_), merged(type(self), "attributes")
        found: dict[str, Any] = {}
        for name in self.fitted:
            value = state.get(name)
            if value is None:
                if name in known and name not in self.alternatives:
                    raise ValueError(f"{name}: expected a value, got none")
            elif name in known:
                found[name] = known[name].read(name, value, width)
            else:
                need_finite(name, value)
                found[name] = value
        present = [name for name in self.alternatives if name in found]
        if self.alternatives and len(present) != 1:
            several = " or ".join(self.alternatives)
            raise ValueError(f"{several}: expected one of them, got {len(present)}")
        if "n_iter_" in found and "history_" in found:
            rounds = len(found["history_"]["objective"])
            if found["n_iter_"] != rounds:
                raise ValueError(
                    f"n_iter_: expected {rounds} as in history_, got {found['n_iter_']}"
                )
        self._check_state(found)
        return found

    def _check_state(self, state: Mapping[str, Any]) -> None:
        """Refuse fitted attributes that cannot belong together; a learner says which."""

    def _check_fit(self) -> None:
        """Refuse a fit that ended in numbers that no model can have."""
        for name, value in self._state().items():
            if name == "history_":  # a measure may be undefined there
                continue
            try:
                need_finite(name, value)
            except ValueError as error:
                raise ValueError(
                    f"fit: {error}; are features or parameters too large? Smaller ones, or "
                    "normalize=True, may help"
                ) from error


def _default(kind: type, name: str) -> Any:
    """Return the default of a parameter; where it has none, something that is not None."""
    found = inspect.signature(kind).parameters.get(name)
    return inspect.Parameter.empty if found is None else found.default
