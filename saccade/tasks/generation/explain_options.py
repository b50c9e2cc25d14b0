"""What to show of generated texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from saccade.interpretation.alignments import FORMATS, Alignment, read_alignments
from saccade.registry import nearest
from saccade.tasks.generation.forced_alignment import HeadChoice
from saccade.tasks.options import Options


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(Options):
    """What to show of a generated text.

    Args:
        layer: which layer's attention to the input is measured, from 0, or -1 for the last.
        head: which head is measured, from 0; the mean over all by default.
        shift: 1 reads each word one step later, when it has just been written (default: as the run was trained).
        keep: show only the attentions whose names fit this pattern, for example *cross_attention.
        faithfulness: also test whether the model depends on what it attends to for long inputs, which takes time.
        gold: human-made links between the words of each input and target, or a file of them: they are shown, and the
            attention is scored against them.
        gold_format: the format of that file, pharaoh, talp, naacl or json; by default taken from the suffix.
        gold_one_based: words in that file are counted from 1.
        name: of the model, where several are shown side by side.
    """

    layer: int = -1
    head: int | None = None
    shift: int | None = None
    keep: str = "*"
    faithfulness: bool | None = None
    gold: Any = None
    gold_format: str | None = None
    gold_one_based: bool = False
    name: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        gold = given.get("gold")
        if gold is None or isinstance(gold, str):
            return super().of(given)
        return replace(super().of({**given, "gold": None}), gold=gold)  # links do not belong to a configuration

    def check(self) -> None:
        if self.gold_format is not None and self.gold_format not in FORMATS:
            raise ValueError(f"gold_format: unknown {self.gold_format!r}.{nearest(self.gold_format, FORMATS)}")
        HeadChoice(layer=self.layer, head=self.head, shift=self.shift or 0)

    def alignments(self, count: int) -> list[Alignment | None]:
        """The gold links of each input."""
        if self.gold is None:
            return [None] * count
        if not isinstance(self.gold, str):
            return [links if isinstance(links, Alignment) else Alignment.of(links) for links in self.gold]
        form: Any = self.gold_format
        return list(read_alignments(self.gold, format=form, one_based=self.gold_one_based, sentences=count))
