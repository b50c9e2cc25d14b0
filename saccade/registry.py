"""Short names for classes: `scores.create("additive", query_dim=37, ...)`."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
C = TypeVar("C")

NOTED = "_constructor_arguments"
"""The attribute in which an instance of a registered class keeps the arguments that it was made with."""

registries: dict[str, Registry[Any]] = {}
"""Every registry that has a home module, by its plural: `scores`, `selections`, `models`, ..."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """The end of an error message: the closest valid name, and all choices."""
    choices = sorted(choices)
    close = closest(name, choices)
    hint = f" Did you mean {close!r}?" if close else ""
    return f"{hint} Choose from: {', '.join(choices)}."


def closest(name: str, choices: Collection[str]) -> str | None:
    """The choice that the name was probably meant to be.

    The name lacks words that it has, as `heads` for `num_heads`; or it is spelt nearly the same; or the name has more
    words, as `embedding_dim` for `dim`; or its spelling is similar; or the name abbreviates it, as `lr` does
    `learning_rate`.
    """
    name = name[:100]
    words = {each: set(each.split("_")) for each in choices}
    own = set(name.split("_"))
    by_words = sorted(choices, key=lambda each: len(own ^ words[each]))
    longer = [each for each in by_words if own < words[each]]
    same = difflib.get_close_matches(name, choices, n=1, cutoff=0.85)
    shorter = [each for each in by_words if own > words[each]]
    close = difflib.get_close_matches(name, choices, n=1)
    short = [each for each in choices if "_" in each and name == "".join(word[:1] for word in each.split("_"))]
    return next(iter([*longer, *same, *shorter, *close, *short]), None)


class Registry(Generic[T]):
    """The members of one kind, each under a short name.

    Args:
        kind: what a member is called, such as "score".
        base: the class that members derive from.
        home: the module that imports all members. A registry with a home is listed in `registries`.
        plural: the name of the kind as a whole, if not the kind with an s.
    """

    def __init__(self, kind: str, *, base: type = object, home: str | None = None, plural: str | None = None) -> None:
        self.kind = kind
        self.plural = plural or f"{kind}s"
        self.base = base
        self.home = home
        self.aliases: dict[str, str] = {}
        self._members: dict[str, type[T]] = {}
        if home is not None:
            registries[self.plural] = self

    def register(self, name: str, *, aliases: Collection[str] = ()) -> Callable[[type[C]], type[C]]:
        """Class decorator: makes the class available as `name`, and under its `aliases`.

        Instances keep the arguments that they were made with, so that a run can write them to its configuration.
        """

        def add(member: type[C]) -> type[C]:
            for taken in (name, *aliases):
                owner = self._members.get(self.aliases.get(taken, taken))
                if owner is not None:
                    raise ValueError(f"The {self.kind} name {taken!r} is taken by {owner.__name__}.")
            self._members[name] = member  # type: ignore[assignment]
            self.aliases |= dict.fromkeys(aliases, name)
            return noting_arguments(member)

        return add

    def names(self) -> list[str]:
        """The short names, without aliases."""
        return sorted(self._members)

    def get(self, name: str) -> type[T]:
        """The class called `name`."""
        found = self._members.get(self.aliases.get(name, name))
        if found is None:
            raise ValueError(f"Unknown {self.kind} {name!r}.{nearest(name, [*self._members, *self.aliases])}")
        return found

    def create(self, name: str, **arguments: Any) -> T:
        """An instance of the class called `name`; arguments are checked against its constructor."""
        member = self.get(name)
        refuse_arguments(member, (), arguments, f"{self.kind} {name!r}")
        return member(**arguments)

    def items(self) -> list[tuple[str, type[T]]]:
        return sorted(self._members.items())

    def load(self) -> Registry[T]:
        """The registry itself, with all of its members imported."""
        if self.home is not None:
            importlib.import_module(self.home)
        return self


def registry_of(base: Any) -> Registry[Any] | None:
    """The registry whose members derive from exactly this class, with all of its members."""
    found = next((registry for registry in registries.values() if registry.base is base), None)
    return None if found is None else found.load()


def arguments_of(instance: object) -> dict[str, Any] | None:
    """The arguments that an instance of a registered class was made with; None for any other object."""
    return getattr(instance, NOTED, None) if not isinstance(instance, type) else None


def noting_arguments(member: type[C]) -> type[C]:
    """Class decorator: the constructor notes its arguments, so that a configuration can hold an instance."""
    made: Any = member.__init__
    if member.__module__ == "builtins":  # which cannot be changed
        return member
    if made is object.__init__:  # it takes none
        setattr(member, NOTED, {})
        return member

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        own = type(self) is member  # and not a subclass, which has arguments of its own
        try:
            if own:
                named = kwargs if not args else inspect.signature(made).bind(self, *args, **kwargs).arguments
                vars(self)[NOTED] = {name: value for name, value in named.items() if name != "self"}
            made(self, *args, **kwargs)
        except TypeError:
            if own:
                refuse_arguments(member, args, kwargs)
            raise

    member.__init__ = __init__  # type: ignore[method-assign]
    return member


def refuse_arguments(member: type, args: Sequence[Any], kwargs: Mapping[str, Any], name: str = "") -> None:
    """Raises a `TypeError` that says how to call a constructor, if these arguments do not fit it."""
    parameters = constructor_parameters(member)
    name = name or member.__name__
    by_place = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    if len(args) > len(by_place):
        raise TypeError(f"{name} takes its arguments by name: {describe(member)}.")
    for argument in kwargs:
        if argument not in parameters:
            choices = nearest(argument, parameters) if parameters else " It takes none."
            raise TypeError(f"{name} has no argument {argument!r}.{choices}")
    given = {*by_place[: len(args)], *kwargs}
    missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in given]
    if missing:
        listed = ", ".join([member.__name__, *(f"{each}={kwargs[each]!r:.40}" for each in kwargs)])
        raise TypeError(
            f"{name} needs {', '.join(missing)}; its signature is {describe(member)}. Where Saccade fills in the rest, "
            f"as in saccade.train, give functools.partial({listed})."
        )


def constructor_parameters(member: type) -> dict[str, inspect.Parameter]:
    """What the constructor takes; nothing for a class that leaves it to `nn.Module`'s `*args, **kwargs`."""
    return _parameters(member)


@functools.lru_cache(maxsize=1024)  # a signature takes a millisecond, and a configuration asks for hundreds
def _parameters(member: Any) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(member).parameters.values()
    return {p.name: p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def describe(member: type) -> str:
    """`Name(argument, argument=default)` for help and error messages."""
    parameters = constructor_parameters(member).values()
    shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
    return f"{member.__name__}({', '.join(shown)})"
