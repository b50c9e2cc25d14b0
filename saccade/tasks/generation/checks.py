"""Which arguments of a generation task fit together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saccade.fields import Field, Text
from saccade.registry import arguments_of, constructor_parameters


def check_sides(
    source: Field,
    sources: Mapping[str, Field],
    target: Field | None,
    *,
    joint: bool,
    copying: bool,
    lexicon: str | None,
) -> None:
    """Raises `ValueError` for arguments that these sources, or this target, rule out; see `Generation`."""
    alone = isinstance(source, Text) and not sources
    if joint and not isinstance(source, Text):
        raise ValueError("joint=True shares a vocabulary between two texts, but the source is not a text.")
    if joint and target is not None and not _same_arguments(target, source):
        raise ValueError(
            "joint=True means one vocabulary for both sides: leave target out, or set joint to no (--task.joint no) "
            "for two."
        )
    if copying and not alone:
        raise ValueError("copying=True takes words from one text: leave out sources, and make the source a text.")
    if copying and not joint and isinstance(source, Text) and isinstance(target, Text):
        read, written = source.tokeniser.kind, target.tokeniser.kind
        if _units(read) != _units(written):
            raise ValueError(
                "copying=True needs tokenisers that split both sides alike, so that words of the source fit into the "
                f"target: got {read} and {written}."
            )
    if lexicon is not None and not alone:
        raise ValueError("lexicon translates the words of one text: leave out sources, and make the source a text.")


def _units(kind: str) -> str:
    """How tokenisers of a kind spell their units: units of one can stand in for another's."""
    return {"pretokenised": "word", "unigram": "bpe"}.get(kind, kind)


def _same_arguments(part: Any, whole: Any) -> bool:
    """Whether an instance was made with the same arguments as another, apart from defaults."""
    given, known = arguments_of(part), arguments_of(whole)
    if given is None or known is None:
        return bool(part == whole)
    usual = {name: each.default for name, each in constructor_parameters(type(part)).items()}
    return type(part) is type(whole) and all(
        value == usual[name] or (name in known and _same_arguments(value, known[name])) for name, value in given.items()
    )
