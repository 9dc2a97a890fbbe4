"""Objects made of a few options, with a text form: ``orders[orders=64,random_state=0]``."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from permdist._check import short_text
from permdist._registry import Registry, read_value, split_spec
from permdist._text import hint
from permdist.models.rules import Rule, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Spec:
    """An immutable object that can be written as text; a frozen dataclass makes one.

    `alias` is its name in texts.
    """

    alias: ClassVar[str]

    @property
    def has_text(self) -> bool:
        """Whether the text form says everything: all options are numbers, words or names."""
        plain = (int, float, str, type(None))
        values = (getattr(self, field.name) for field in dataclasses.fields(self))  # type: ignore[arg-type]
        return all(isinstance(getattr(value, "name", value), plain) for value in values)

    @property
    def name(self) -> str:
        """The text that `parse` reads as this object."""
        shown = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value != field.default:
                shown.append(f"{field.name}={getattr(value, 'name', value)}")
        return self.alias + (f"[{','.join(shown)}]" if shown else "")


S = TypeVar("S", bound=Spec)


class SpecRegistry(Registry[Any], Generic[S]):
    """Classes of such objects by their `alias`, to be made from texts.

    Parameters
    ----------
    what : str
        What one of them is called in error messages, ``"space"`` say.
    kind : class
        What they all are.
    load : callable, optional
        Adds the library's own.
    elsewhere : mapping of str to str, optional
        What is known by another name in papers or in other libraries: that name, and the text form
        to suggest for it.
    """

    def __init__(
        self,
        what: str,
        kind: type,
        load: Callable[[], Any] | None = None,
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what, load)
        self._what, self._kind, self._elsewhere = what, kind, elsewhere or {}

    def register(self, kind: type[S]) -> type[S]:
        """Let learners find a class by its `alias`; usable as a decorator."""
        self.add(kind.alias, kind)
        return kind

    def parse(self, value: Any) -> S:
        """Return an object from its text form; an object is returned as it is."""
        what = self._what
        if isinstance(value, self._kind):
            return value  # type: ignore[return-value]
        if not isinstance(value, str):
            raise TypeError(f"{what}: expected a name or an object of permdist, got {shown(value)}")
        name, texts = split_spec(short_text(what, value), what)
        name, options = name.lower(), {key: read_value(text) for key, text in texts.items()}
        if name in self._elsewhere and name not in self:
            other = self._elsewhere[name]
            raise ValueError(f"{what}: there is no {name!r} here; did you mean {other!r}?")
        make = self.find(name)
        _need_options(f"{what}: {value!r}", make, options)
        try:
            return make(**options)
        except TypeError as error:
            raise ValueError(f"{what}: {value!r}: {error}") from error


@dataclasses.dataclass(frozen=True)
class SpecName(Rule):
    """One of the objects of a registry, or its text form; None where it is optional."""

    registry: SpecRegistry[Any]
    optional: bool = False

    def check(self, name: str, value: Any) -> None:  # noqa: ARG002
        """Raise ValueError or TypeError for anything else."""
        if not (value is None and self.optional):
            self.registry.parse(value)


def _need_options(start: str, make: Any, options: Iterable[str]) -> None:
    """Refuse options that there are not, and name those that there are."""
    parameters = inspect.signature(make).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    for option in options:
        if option not in parameters:
            known = ", ".join(parameters) or "none"
            raise ValueError(
                f"{start}: unknown option {option!r}, expected one of {known}"
                f"{hint(option, parameters)}"
            )
