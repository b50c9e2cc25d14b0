"""Short names for members: `scores.create("additive", query_dim=37, ...)`."""

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
C = TypeVar("C")


def nearest(name: str, choices: Iterable[str]) -> str:
    """The end of an error message: the nearest right name, and all of them."""
    choices = sorted(choices)
    close = difflib.get_close_matches(name, choices, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{hint} Choose from: {', '.join(choices)}."


class Registry(Generic[T]):
    """Members of one kind, each under one short name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._members: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[C]], type[C]]:
        """Class decorator: makes the class reachable as `name`."""

        def add(member: type[C]) -> type[C]:
            if name in self._members:
                raise ValueError(f"The {self.kind} name {name!r} is taken by {self._members[name].__name__}.")
            self._members[name] = member  # type: ignore[assignment]
            return member

        return add

    def names(self) -> list[str]:
        return sorted(self._members)

    def get(self, name: str) -> type[T]:
        """The class called `name`."""
        if name not in self._members:
            raise ValueError(f"Unknown {self.kind} {name!r}.{nearest(name, self._members)}")
        return self._members[name]

    def create(self, name: str, **arguments: Any) -> T:
        """An instance of the class called `name`; arguments are checked against its constructor."""
        member = self.get(name)
        parameters = constructor_parameters(member)
        for argument in arguments:
            if argument not in parameters:
                choices = nearest(argument, parameters) if parameters else " It takes none."
                raise TypeError(f"{self.kind} {name!r} has no argument {argument!r}.{choices}")
        missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in arguments]
        if missing:
            raise TypeError(f"{self.kind} {name!r} needs {', '.join(missing)}; its signature is {describe(member)}.")
        return member(**arguments)

    def items(self) -> list[tuple[str, type[T]]]:
        return sorted(self._members.items())


def constructor_parameters(member: type) -> dict[str, inspect.Parameter]:
    """What the constructor takes; nothing for a class that leaves it to `nn.Module`'s `*args, **kwargs`."""
    parameters = inspect.signature(member).parameters.values()
    return {p.name: p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def describe(member: type) -> str:
    """`Name(argument, argument=default)` for help and error messages."""
    parameters = constructor_parameters(member).values()
    shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
    return f"{member.__name__}({', '.join(shown)})"
