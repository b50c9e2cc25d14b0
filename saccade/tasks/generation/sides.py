"""The data of a generation task: one source or several, and the text that is written for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from saccade.artifacts import JsonObject, read_json
from saccade.data.cell import Cell
from saccade.data.special import EOS, PAD
from saccade.fields import Field, OptionalField, Text, plain
from saccade.fields.text import texts_of
from saccade.layers.limits import most_positions
from saccade.models import EncoderDecoder
from saccade.tasks.base import Example, Row, Task
from saccade.tasks.generation.extension import Extension
from saccade.tasks.generation.supervision import gold_matrix, link_pieces, outside

LENGTHS = "lengths.json"
WORDS = "words"
"""The column of the source's words, as ids of the extended vocabulary."""


class SourceToTarget(Task):
    """A task that writes a text, the target, for each source, or for several sources that belong together."""

    source: Field
    """The first of the inputs."""

    target: Text

    alignment_weight: float = 0.0
    """How much the loss of given links counts relative to the loss of a token."""

    alignment_shift: int = 0
    """0 if the attention is read at the step that writes a word, 1 at the next step."""

    longest_target: int = 0
    """The longest target of the training examples, in tokens."""

    target_ratio: float = 0.0
    """Target tokens per source position, over all training examples."""

    copying: bool = False
    """Whether each source extends the vocabulary by its unknown words, for models that copy them."""

    def check_example(self, example: Example, cell: Cell) -> None:
        if all(example.get(role) is None for role in self.inputs):
            raise cell.bad(f"all of {', '.join(self.inputs)} are empty", "Give at least one source.")
        if "alignment" in example and isinstance(self.source, Text):
            words = len(example["source"].split()), len(texts_of(example["target"])[0].split())
            problem = outside(example["alignment"], *words)
            if problem:
                raise cell.bad(problem, "Count words from 0, separated by spaces.")
        if "boxes" in example:
            counts = len(example["boxes"]), len(texts_of(example["target"])[0].split())
            if counts[0] != counts[1]:
                problem = f"there are {counts[0]} boxes for {counts[1]} words of the target"
                raise cell.bad(problem, "Give a box for each word, and null for a word that names nothing.")

    def observe(self, sizes: Sequence[Sequence[int]]) -> None:
        *several, targets = np.asarray(sizes, dtype=np.int64).T
        sources = np.max(several, axis=0)
        self.longest_target, self.target_ratio = int(targets.max()) - 1, float(targets.sum() / max(1, sources.sum()))

    def sizes(self) -> dict[str, Any]:
        target = self.target.sizes()["vocab"]
        if not self.target.fitted and not self.shared:
            target += 2  # so that no two stand-ins are the same
        source, *others = (field.sizes() for field in self.inputs.values())
        more = {"other_sources": others} if others else {}
        return {**{f"source_{name}": size for name, size in source.items()}, **more, "target_vocab": target}

    def extension(self, example: Example) -> Extension | None:
        """The vocabulary of an example whose words can be copied."""
        if not self.copying:
            return None
        assert isinstance(self.source, Text)
        return Extension(self.source.tokeniser, self.target.tokeniser, self.source.show(example["source"]))

    def check(self, model: nn.Module) -> None:
        copies = isinstance(model, EncoderDecoder) and model.head.copies
        if copies and not self.copying:
            raise ValueError("the model copies words of the source: set task.copying to yes.")
        if self.copying and not copies:
            raise ValueError(
                "task.copying is for models that copy words, and this one does not: choose model copynet or "
                "pointer_generator, or model.head pointer_generator, or set task.copying to no."
            )
        sides = [*map(plain, self.inputs.values()), self.target]
        longest = max(side.max_length for side in sides if isinstance(side, Text))
        most = most_positions(model)
        if most is not None and most <= longest:
            raise ValueError(
                f"the model's {most} learned positions are too few for texts of max_length={longest} and their end: "
                f"set model.max_length to {longest + 1} or more, or max_length of source and target to {most - 1} or "
                "less."
            )
        reads = model.longest_source() if isinstance(model, EncoderDecoder) else None
        for role, field in self.inputs.items():
            kept = field.longest
            if not isinstance(plain(field), Text) and kept is not None and reads is not None and kept > reads:
                raise ValueError(
                    f"the model reads {reads:,} {field.unit}, and training keeps {role}s of up to {kept:,}: raise "
                    f"model.max_length, or let the {role} be shorter."
                )

    def example(self, value: Any) -> Example:
        found = super().example(value)
        return found if len(self.inputs) == 1 else {**dict.fromkeys(self.inputs), **found}  # what is absent is missing

    def encode(self, example: Example) -> Row:
        row: Row = {role: field.encode(example[role]) for role, field in self.inputs.items()}
        extension = self.extension(example)
        if extension is not None:
            row[WORDS] = extension.said
        if "target" in example:
            row["target"] = self.target_ids(example, extension)
            if self.alignment_weight and "alignment" in example:
                links = self._words(self.source, example["source"]), self.target_words(example, extension)
                row["alignment"] = link_pieces(example["alignment"], *links, shift=self.alignment_shift)
        return row

    def target_ids(self, example: Example, extension: Extension | None) -> list[int]:
        """The ids of a target and of its end."""
        if extension is None:
            return self.target.encode(example["target"])
        return [*extension.encode(self.target.show(example["target"])), EOS]

    def target_words(self, example: Example, extension: Extension | None) -> list[list[int]]:
        """The places of each word of a target among its ids."""
        if extension is None:
            return self._words(self.target, example["target"])
        return extension.words(self.target_ids(example, extension)[:-1])

    def rows(self, example: Example) -> list[Row]:
        """A row for each of the right answers; links belong to the first."""
        texts = texts_of(example["target"])[: 1 if self.alignment_weight else None]
        return [self.encode({**example, "target": text}) for text in texts]

    def joined(self, examples: Iterable[Example]) -> list[Example]:
        if not any(field.repeats for field in self.inputs.values()):
            return list(examples)
        found: dict[int, dict[str, Any]] = {}
        for example in examples:
            known = found.setdefault(self.mark(example), {**example, "target": []})
            known["target"].extend(texts_of(example["target"]))
        return list(found.values())

    def size(self, row: Row) -> tuple[int, ...]:
        return tuple(field.size(row[side]) for side, field in self._sides().items() if side in row)

    def left_out(self, row: Row) -> str | None:
        for side, field in self._sides().items():
            reason = field.left_out(row[side]) if side in row else None
            if reason is not None:
                return f"{side} {reason}"
        return None

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        texts = [{side: value for side, value in row.items() if side not in ("alignment", WORDS)} for row in rows]
        batch = self.padded(texts, generator)
        if WORDS in rows[0]:
            said = [torch.as_tensor(row[WORDS]) for row in rows]
            batch[WORDS] = pad_sequence(said, batch_first=True, padding_value=PAD).long()
        if "alignment" in rows[0]:
            links = [row["alignment"] for row in rows]
            batch["alignment"] = gold_matrix(links, batch["target"], batch["source_mask"])
        return batch

    def stand_ins(self, count: int, length: int) -> dict[str, Tensor]:
        found = super().stand_ins(count, length)
        if self.copying:  # words of the vocabulary, and those that only the source has
            most = self.target.sizes()["vocab"] + found["source"].shape[1]
            found["source_words"] = torch.arange(found["source"].numel()).reshape(found["source"].shape) % most
        return found

    def sources_of(self, batch: dict[str, Tensor]) -> list[Tensor]:
        """What a model encodes of a batch: values and mask of each source."""
        return [batch[name] for role in self.inputs for name in (role, f"{role}_mask")]

    @staticmethod
    def words_of(batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """What a model that copies also needs: the words of the source."""
        return {"words": batch[WORDS]} if WORDS in batch else {}

    def save(self, folder: Path) -> None:
        super().save(folder)
        lengths = {"longest_target": self.longest_target, "target_ratio": self.target_ratio}
        (folder / LENGTHS).write_text(json.dumps(lengths), encoding="utf-8")

    def load(self, folder: Path) -> None:
        super().load(folder)
        found = JsonObject(read_json(folder / LENGTHS), str(folder / LENGTHS))
        self.longest_target = found.take("longest_target", int, least=0, most=2**31)
        self.target_ratio = float(found.take("target_ratio", float, least=0.0, most=1e9))

    def _sides(self) -> dict[str, Field]:
        """What is padded: the sources and the target."""
        return {**self.inputs, "target": self.target}

    @staticmethod
    def _words(field: Field, value: Any) -> list[list[int]]:
        if not isinstance(field, Text):
            raise ValueError("alignment_weight teaches links between words: the source must be a text.")
        return field.tokeniser.words(field.show(value))


def inputs_of(source: Field, others: dict[str, Field]) -> dict[str, Field]:
    """The source, or several sources, each of which may be missing."""
    masks = [name for name in others if name.endswith("_mask")]  # what batches call the masks of other columns
    taken = next((name for name in ("source", "target", "alignment", *masks) if name in others), None)
    if taken is not None:
        raise ValueError(f"sources: {taken!r} is the name of another column of this task: choose another name.")
    if not others:
        return {"source": source}
    first = OptionalField(source, role="source", column=True)
    return {"source": first, **{role: OptionalField(field, role=role) for role, field in others.items()}}
