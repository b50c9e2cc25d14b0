"""The data of a generation task: a source and the text that is written for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.artifacts import JsonObject, read_json
from saccade.data.cell import Cell
from saccade.data.marks import mark
from saccade.decoders import Decoded
from saccade.fields import Field, Text
from saccade.fields.text import texts_of
from saccade.layers.limits import most_positions
from saccade.models import EncoderDecoder
from saccade.tasks.base import Example, Row, Task
from saccade.tasks.generation.supervision import gold_matrix, link_pieces, outside

LENGTHS = "lengths.json"

READ = 1000
STRETCH = 4
"""Inputs are read up to STRETCH times the length of the longest training example, and at least up to READ positions."""


class SourceToTarget(Task):
    """A task that writes a text, the target, for each source."""

    source: Field
    target: Text

    alignment_weight: float = 0.0
    """How much the loss of given links counts relative to the loss of a token."""

    alignment_shift: int = 0
    """0 if the attention is read at the step that writes a word, 1 at the next step."""

    longest_target: int = 0
    """The longest target of the training examples, in tokens."""

    target_ratio: float = 0.0
    """Target tokens per source position, over all training examples."""

    def check_example(self, example: Example, cell: Cell) -> None:
        if "alignment" in example and isinstance(self.source, Text):
            words = len(example["source"].split()), len(texts_of(example["target"])[0].split())
            problem = outside(example["alignment"], *words)
            if problem:
                raise cell.bad(problem, "Count words from 0, separated by spaces.")

    def observe(self, sizes: Sequence[Sequence[int]]) -> None:
        sources, targets = np.asarray(sizes, dtype=np.int64).T
        self.longest_target, self.target_ratio = int(targets.max()) - 1, float(targets.sum() / max(1, sources.sum()))

    def sizes(self) -> dict[str, int]:
        target = self.target.sizes()["vocab"]
        if not self.target.fitted and not self.shared:
            target += 2  # so that no two stand-ins are the same
        return {**{f"source_{name}": size for name, size in self.source.sizes().items()}, "target_vocab": target}

    def check(self, model: nn.Module) -> None:
        longest = max(side.max_length for side in (self.source, self.target) if isinstance(side, Text))
        most = most_positions(model)
        if most is not None and most <= longest:
            raise ValueError(
                f"the model's {most} learned positions are too few for texts of max_length={longest} and their end: "
                f"set model.max_length to {longest + 1} or more, or max_length of source and target to {most - 1} or "
                "less."
            )
        reads = model.longest_source() if isinstance(model, EncoderDecoder) else None
        kept = self.source.longest
        if not isinstance(self.source, Text) and kept is not None and reads is not None and kept > reads:
            raise ValueError(
                f"the model reads {reads:,} {self.source.unit}, and training keeps sources of up to {kept:,}: raise "
                "model.max_length, or let the source be shorter."
            )

    def encode(self, example: Example) -> Row:
        row: Row = {"source": self.source.encode(example["source"])}
        if "target" in example:
            row["target"] = self.target.encode(example["target"])
            if self.alignment_weight and "alignment" in example:
                words = self._words(self.source, example["source"]), self._words(self.target, example["target"])
                row["alignment"] = link_pieces(example["alignment"], *words, shift=self.alignment_shift)
        return row

    def rows(self, example: Example) -> list[Row]:
        """A row for each of the right answers; links belong to the first."""
        texts = texts_of(example["target"])[: 1 if self.alignment_weight else None]
        return [self.encode({**example, "target": text}) for text in texts]

    def joined(self, examples: Iterable[Example]) -> list[Example]:
        if not self.source.repeats:
            return list(examples)
        found: dict[int, dict[str, Any]] = {}
        for example in examples:
            known = found.setdefault(mark(example, ["source"]), {**example, "target": []})
            known["target"].extend(texts_of(example["target"]))
        return list(found.values())

    def size(self, row: Row) -> tuple[int, ...]:
        sides = {"source": self.source, "target": self.target}
        return tuple(field.size(row[side]) for side, field in sides.items() if side in row)

    def left_out(self, row: Row) -> str | None:
        for side, field in (("source", self.source), ("target", self.target)):
            reason = field.left_out(row[side]) if side in row else None
            if reason is not None:
                return f"{side} {reason}"
        return None

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        texts = [{side: value for side, value in row.items() if side != "alignment"} for row in rows]
        batch = super().collate(texts, generator=generator)
        if "alignment" in rows[0]:
            links = [row["alignment"] for row in rows]
            batch["alignment"] = gold_matrix(links, batch["target"], batch["source_mask"])
        return batch

    def prepare(self, model: nn.Module, example: Example) -> Row:
        encoded = self.source.encode(example["source"])
        return {"source": self.source.clip(encoded, most_read(model, self._trained()))}

    def truncated(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        read = most_read(model, self._trained())
        examples = [self.example(value) for value in inputs]
        # A piece has at least half a character: short texts need not be tokenised.
        possible = [
            number
            for number, example in enumerate(examples)
            if not isinstance(self.source, Text) or 2 * len(example["source"]) > read
        ]
        lengths = {number: self.length(examples[number]) for number in possible}
        return {
            number: f"{length:,} {self.source.unit}, and the model reads only the first {read:,}"
            for number, length in lengths.items()
            if length > read
        }

    def length(self, example: Example) -> int:
        size = self.source.size(self.source.encode(example["source"]))
        return size - 1 if isinstance(self.source, Text) else size  # without the end

    def save(self, folder: Path) -> None:
        super().save(folder)
        lengths = {"longest_target": self.longest_target, "target_ratio": self.target_ratio}
        (folder / LENGTHS).write_text(json.dumps(lengths), encoding="utf-8")

    def load(self, folder: Path) -> None:
        super().load(folder)
        found = JsonObject(read_json(folder / LENGTHS), str(folder / LENGTHS))
        self.longest_target = found.take("longest_target", int, least=0, most=2**31)
        self.target_ratio = float(found.take("target_ratio", float, least=0.0, most=1e9))

    def _trained(self) -> int:
        return 2**31 - 1 if self.source.longest is None else self.source.longest

    @staticmethod
    def _words(field: Field, value: Any) -> list[list[int]]:
        if not isinstance(field, Text):
            raise ValueError("alignment_weight teaches links between words: the source must be a text.")
        return field.tokeniser.words(field.show(value))


def writer(model: nn.Module) -> EncoderDecoder:
    """The model of such a task, which may be any module with the methods of an `EncoderDecoder`."""
    return cast(EncoderDecoder, model)


def most_read(model: nn.Module, trained: int) -> int:
    """How many positions of an input a model reads, if training examples had at most `trained`.

    Far beyond the lengths it was trained on, a model writes nothing useful, and takes hours to do so.
    """
    positions = writer(model).longest_source()
    return min(max(READ, STRETCH * trained), *([] if positions is None else [positions]), 2**31 - 1)


@torch.no_grad()
def log_likelihoods(model: EncoderDecoder, decoded: Decoded, target: Tensor, real: Tensor) -> Tensor:
    """(batch,): the log-probability of each target, the sum over its real tokens, without a graph."""
    logits = model.head.logits(decoded.features[real])
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    losses = F.cross_entropy(exact, target[real], reduction="none")
    return losses.new_zeros(real.shape).masked_scatter(real, -losses).sum(1)
