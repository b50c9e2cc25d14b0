"""A model's embeddings of a field, and the word vectors that they start with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from saccade.artifacts import make_folder, pack_tensors, read_tensors, write_file
from saccade.data.special import NAMES
from saccade.data.vectors import Found
from saccade.fields import Field
from saccade.tasks.base import Row, Task

PROBED = 8
"""Examples by which a model's embeddings are recognised."""
ALIKE = 0.5
"""The share of the looked-up ids that must be those of the field."""
FEW = 0.5
"""The share of words with vectors below which a user is warned."""


def start_embeddings(
    task: Task, model: nn.Module, rows: Sequence[Row], notes: Path, *, fresh: bool, main: bool = True
) -> list[str]:
    """Sets the embeddings of fields that have vectors, and lets training change what it may; says what was done.

    Args:
        task: its fields may have vectors.
        model: not trained yet.
        rows: the training examples.
        notes: the folder that keeps which words have vectors, for a resumed training.
        fresh: whether the training starts, and not resumes from a checkpoint, which has the embeddings.
        main: whether this process writes.
    """
    said: list[str] = []
    for role, field in task.fields.items():
        if field.vectors is None:
            continue
        tables = tables_of(task, model, rows, role)
        if not tables:
            raise ValueError(
                f"{role} has vectors, and {type(model).__name__} has no table of embeddings for its "
                f"{field.sizes()['vocab']:,} words: leave vectors out."
            )
        note = notes / f"vectors-{role}.safetensors"
        if fresh:
            found = _found(field, rows, role, tables[0].shape[1])
            known = torch.from_numpy(found.known)
            for table in tables:
                _set(table, found, rescale=field.vectors.rescale)
            if main and field.vectors.tune == "new":
                make_folder(notes)
                write_file(note, pack_tensors({"known": known}))
            said += _described(role, field, found)
        elif field.vectors.tune == "new":
            known = read_tensors(note, {"known": ((field.sizes()["vocab"],), torch.bool)})["known"]
        for table in tables:
            if field.vectors.tune == "none":
                table.requires_grad_(False)
            elif field.vectors.tune == "new":
                keep_rows(table, known)
    return said


def tables_of(task: Task, model: nn.Module, rows: Sequence[Row], role: str) -> list[nn.Parameter]:
    """The tables in which a model looks up the ids of a field: those that are seen to, on a few examples."""
    field = task.fields[role]
    some = [rows[number] for number in range(min(PROBED, len(rows)))]
    wanted: Counter[int] = Counter()
    for row in some:
        for text in field.texts(row[role]):
            wanted.update(number for number in text if number >= len(NAMES))
    seen: dict[int, Counter[int]] = {}
    weights: dict[int, nn.Parameter] = {}

    def note(ids: Tensor, weight: Tensor) -> None:
        if isinstance(weight, nn.Parameter) and weight.shape[0] == field.sizes()["vocab"]:
            weights[id(weight)] = weight
            looked_up = ids[ids >= len(NAMES)].flatten().tolist()
            seen.setdefault(id(weight), Counter()).update(looked_up)

    was_training = model.training
    with torch.random.fork_rng(devices=[]), torch.no_grad(), Lookups(note):
        try:
            task.loss(model.eval(), task.collate(some))
        finally:
            model.train(was_training)
    overlaps = {key: (wanted & found).total() / max((wanted | found).total(), 1) for key, found in seen.items()}
    best = max(overlaps.values(), default=0.0)
    return [weights[key] for key, overlap in overlaps.items() if overlap == best >= ALIKE]


class Lookups(TorchFunctionMode):
    """Reports what is looked up in which table.

    Args:
        note: called with ids and a table (vocab, dim).
    """

    def __init__(self, note: Callable[[Tensor, Tensor], None]) -> None:
        super().__init__()
        self.note = note

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is F.embedding:
            named = {**dict(zip(("input", "weight"), args, strict=False)), **(kwargs or {})}
            self.note(named["input"], named["weight"])
        return func(*args, **(kwargs or {}))


def keep_rows(table: nn.Parameter, rows: Tensor) -> None:
    """Training leaves these rows of a table as they are: they get no gradient, and the table does not decay.

    Args:
        table: (vocab, dim).
        rows: (vocab,), True for each row to keep.
    """
    trained = (~rows).unsqueeze(1)
    table.register_hook(lambda gradient: gradient * trained.to(gradient))
    table.no_decay = True  # type: ignore[attr-defined] # which the optimiser looks for


def _found(field: Field, rows: Sequence[Row], role: str, dim: int) -> Found:
    assert field.vectors is not None
    texts = (text for number in range(len(rows)) for text in field.texts(rows[number][role]))
    return field.vectors.find(field.words(), texts, dim)


@torch.no_grad()
def _set(table: nn.Parameter, found: Found, *, rescale: bool) -> None:
    known = torch.from_numpy(np.flatnonzero(found.known))
    values = torch.from_numpy(found.values)[known].to(table)
    if rescale and len(known):
        values *= table.square().mean().sqrt() / values.square().mean().sqrt().clamp(min=1e-12)
    table[known] = values


def _described(role: str, field: Field, found: Found) -> list[str]:
    words = [bool(word) for word in field.words()]
    count, total = int(found.known.sum()), sum(words)
    tuned = {"all": "all are trained", "new": "the others are trained", "none": "none is trained"}
    assert field.vectors is not None
    said = [f"  {role}: {count:,} of {total:,} words start with vectors, and {tuned[field.vectors.tune]}."]
    if count < FEW * total:
        said.append(
            f"WARNING: {role}: {total - count:,} words have no vector. Is the file of the same language, are its words "
            "in lower case, and are the pieces of the tokeniser words?"
        )
    return said
