"""The data of a generation task: one source or several, and the text that is written for them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from saccade.artifacts import JsonObject, read_json
from saccade.data.cell import Cell
from saccade.data.special import EOS, PAD
from saccade.decoders import Decoded
from saccade.fields import Field, OptionalField, Text, plain
from saccade.fields.text import texts_of
from saccade.layers.limits import most_positions
from saccade.models import EncoderDecoder
from saccade.registry import arguments_of, constructor_parameters
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Row, Task
from saccade.tasks.generation.extension import Extension
from saccade.tasks.generation.supervision import gold_matrix, link_pieces, outside

LENGTHS = "lengths.json"
WORDS = "words"
"""The column of what the source says, as ids of the extended vocabulary."""

READ = 1000
STRETCH = 4
"""Inputs are read up to STRETCH times the length of the longest training example, and at least up to READ positions."""


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
    """Whether each source adds the words that the vocabulary lacks, for models that copy them."""

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

    def prepare(self, model: nn.Module, example: Example) -> Row:
        return self.prepare_all(model, [example])[0]

    def prepare_all(self, model: nn.Module, examples: Sequence[Example]) -> list[Row]:
        most = {role: self.most_read(model, field) for role, field in self.inputs.items()}
        return [self._clipped(example, most) for example in examples]

    def _clipped(self, example: Example, most: dict[str, int]) -> Row:
        row = {role: field.clip(field.encode(example[role]), most[role]) for role, field in self.inputs.items()}
        extension = self.extension(example)
        if extension is not None:
            row[WORDS] = [*extension.said[: len(row["source"]) - 1], EOS]
        return row

    def most_read(self, model: nn.Module, field: Field | None = None) -> int:
        """How many positions of a source a model reads; of the first by default."""
        longest = (field or self.source).longest
        return most_read(model, 2**31 - 1 if longest is None else longest)

    def truncated(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        examples = [self.example(value) for value in inputs]
        found: dict[int, str] = {}
        for role, field in self.inputs.items():
            read, of = self.most_read(model, field), "" if len(self.inputs) == 1 else f" in {role}"
            text = isinstance(plain(field), Text)
            for number, example in enumerate(examples):
                value = example[role]
                # A piece has at least half a character: short texts need not be tokenised.
                if value is None or (text and 2 * len(value) <= read):
                    continue
                length = self._length(field, value)
                if length > read:
                    found[number] = f"{length:,} {field.unit}{of}, and the model reads only the first {read:,}"
        return found

    def unknown(self, inputs: Sequence[Any], answers: Sequence[Answer] | None = None) -> dict[int, list[str]]:
        found = super().unknown(inputs)
        if answers is None or not self.copying:
            return found
        for number in list(found):
            several = [answers[number], *answers[number].alternatives]
            written = {token for answer in several for token in getattr(answer, "tokens", [])}
            found[number] = self.lost(self.example(inputs[number]), written)
        return {number: parts for number, parts in found.items() if parts}

    def lost(self, example: Example, written: Collection[int]) -> list[str]:
        """The unknown parts of the inputs, without the words of a source that a text of these ids copies."""
        extension = self.extension(example)
        if extension is None:
            return super().unknown([example]).get(0, [])
        return extension.lost(written)

    def length(self, example: Example) -> int:
        return sum(self._length(field, example[role]) for role, field in self.inputs.items())

    @staticmethod
    def _length(field: Field, value: Any) -> int:
        size = field.size(field.encode(value))
        return size - 1 if isinstance(plain(field), Text) and size else size  # without the end

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
    """The source, or several that may each be missing."""
    masks = [name for name in others if name.endswith("_mask")]  # what batches call the masks of other columns
    taken = next((name for name in ("source", "target", "alignment", *masks) if name in others), None)
    if taken is not None:
        raise ValueError(f"sources: {taken!r} is the name of another column of this task: choose another name.")
    if not others:
        return {"source": source}
    first = OptionalField(source, role="source", column=True)
    return {"source": first, **{role: OptionalField(field, role=role) for role, field in others.items()}}


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


def same_arguments(part: Any, whole: Any) -> bool:
    """Whether an instance has the arguments of another one of its class, but for those left at their defaults."""
    given, known = arguments_of(part), arguments_of(whole)
    if given is None or known is None:
        return bool(part == whole)
    usual = {name: each.default for name, each in constructor_parameters(type(part)).items()}
    return type(part) is type(whole) and all(
        value == usual[name] or (name in known and same_arguments(value, known[name])) for name, value in given.items()
    )
