"""The bodies of requests, typed by the options of the tasks that a server answers."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from saccade.configuration.hints import argument_helps
from saccade.tasks import Options, Task

Form: Any = Literal["json", "html"]


class Body(BaseModel):
    """What all bodies share: an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())


def options_model(options: type[Options], name: str) -> type[BaseModel]:
    """A body whose fields are those of a task's options, all of them optional."""
    hints = typing.get_type_hints(options)
    helps: dict[str, str] = {}
    for kind in reversed(options.__mro__[:-1]):  # what a class does not explain, its base does
        helps |= argument_helps(kind)
    parts: dict[str, Any] = {
        each.name: (hints[each.name] | None, Field(None, description=helps.get(each.name)))
        for each in dataclasses.fields(options)
        if each.name != "name"
    }
    return create_model(name, __base__=Body, __doc__=f"{name} of this server's models.", **parts)


def bodies(tasks: dict[str, Task], max_inputs: int) -> dict[str, type[BaseModel]]:
    """The bodies of /predict, /stream and /explain."""
    names = tuple(tasks)
    model: Any = (Literal[names], names[0]) if len(names) == 1 else (Literal[names], ...)
    asked = _union(task.options for task in tasks.values())
    explained = _union((task.options for task in tasks.values()), (task.explain_options for task in tasks.values()))
    described = Field(description="A text, or an object with a value for each input of the model.")
    many = Annotated[list[Any], Field(min_length=1, max_length=max_inputs)]
    several = Field(description="One input, or a list with one for each answer.")
    return {
        "predict": create_model(
            "PredictRequest",
            __base__=Body,
            inputs=(many | str | dict[str, Any], several),
            options=(asked, Field(default_factory=dict)),
            attention=(bool, Field(False, description="Whether to return what the model looked at.")),
            model=model,
        ),
        "stream": create_model(
            "StreamRequest",
            __base__=Body,
            input=(Any, described),
            options=(asked, Field(default_factory=dict)),
            model=model,
        ),
        "explain": create_model(
            "ExplainRequest",
            __base__=Body,
            input=(Any, described),
            options=(explained, Field(default_factory=dict)),
            format=(Form, Field("json", description="Data, or the explorer's page.")),
            model=model,
        ),
    }


def options_name(*several: type[Options]) -> str:
    """The name of a body that has the fields of all these options."""
    return "".join(dict.fromkeys(kind.__name__ for kind in several))


def option_classes(body: type[BaseModel] | None) -> set[str]:
    """The classes that the options of a body may have, if there are several: places in errors of pydantic name them."""
    return (
        set() if body is None else {kind.__name__ for kind in typing.get_args(body.model_fields["options"].annotation)}
    )


def known_names(body: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """The fields of an object inside a body.

    Args:
        body: the class of the whole body.
        place: where the object is, as pydantic says: names of fields, each followed by that of a class if there are
            several for it.
    """
    kinds = [body]
    for part in place:
        chosen = [kind for kind in kinds if kind.__name__ == part]
        hints = [kind.model_fields[part].annotation for kind in kinds if part in kind.model_fields]
        inner = [each for hint in hints for each in (hint, *typing.get_args(hint))]
        kinds = chosen or [each for each in inner if isinstance(each, type) and issubclass(each, BaseModel)]
    return [name for kind in kinds for name in kind.model_fields]


def _union(*groups: Iterable[type[Options]]) -> Any:
    """The options of any of the tasks; whether they fit the model of a request is checked later."""
    lists = [list(group) for group in groups]
    made = {}
    for several in zip(*lists, strict=True):
        name = options_name(*several)
        if name not in made:
            models = [options_model(kind, kind.__name__) for kind in several]
            made[name] = models[0] if len(models) == 1 else create_model(name, __base__=tuple(models))
    return typing.Union[tuple(made.values())]  # noqa: UP007 (of a tuple)
