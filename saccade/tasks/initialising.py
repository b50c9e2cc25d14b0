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
from saccade.tasks.base import Row, Task

PROBED = 8
"""How many examples are used to recognise a model's embeddings."""
ALIKE = 0.5
"""The share of the field's ids that must be looked up in a table."""
FEW = 0.5
"""Below this share of words with vectors, training warns."""


def start_embeddings(
    task: Task, model: nn.Module, rows: Sequence[Row], notes: Path, *, fresh: bool, main: bool = True
) -> list[str]:
    """Sets the embeddings of fields that have vectors, and freezes those that training must not change; returns a
    report.

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
        users = [role, *(other for other, owner in task.shared.items() if owner == role)]
        vectors = next((v for user in users if (v := task.fields[user].vectors) is not None), None)
        if vectors is None or role in task.shared:
            continue
        tables = list({id(table): table for user in users for table in tables_of(task, model, rows, user)}.values())
        if not tables:
            raise ValueError(
                f"{role} has vectors, and {type(model).__name__} has no table of embeddings for its "
                f"{field.sizes()['vocab']:,} words: leave vectors out."
            )
        note = notes / f"vectors-{role}.safetensors"
        if fresh:
            texts = (text for n in range(len(rows)) for user in users for text in field.texts(rows[n][user]))
            found = vectors.find(field.vocabulary(), texts, tables[0].shape[1])
            known = torch.from_numpy(found.known)
            for table in tables:
                _set(table, found, rescale=vectors.rescale)
            if main and vectors.tune == "new":
                make_folder(notes)
                write_file(note, pack_tensors({"known": known}))
            said += _described(role, found, sum(map(bool, field.vocabulary())), vectors.tune)
        elif vectors.tune == "new":
            known = read_tensors(note, {"known": ((field.sizes()["vocab"],), torch.bool)})["known"]
        for table in tables:
            if vectors.tune == "none":
                table.requires_grad_(False)
            elif vectors.tune == "new":
                keep_rows(table, known)
    return said


def tables_of(task: Task, model: nn.Module, rows: Sequence[Row], role: str) -> list[nn.Parameter]:
    """The tables in which a model is seen to look up the ids of a field, on a few examples."""
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
    # A table that other fields share is seen with their ids, too; another field's own table shares fewer.
    alike = {
        key: (_share(wanted & found, wanted), _share(wanted & found, wanted | found)) for key, found in seen.items()
    }
    best = max(alike.values(), default=(0.0, 0.0))
    return [weights[key] for key, likeness in alike.items() if likeness == best and best[0] >= ALIKE]


def _share(part: Counter[int], whole: Counter[int]) -> float:
    return part.total() / max(whole.total(), 1)


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
    """Freezes these rows of a table: they get no gradient, and the table has no weight decay.

    Args:
        table: (vocab, dim).
        rows: (vocab,), True for each row to keep.
    """
    trained = (~rows).unsqueeze(1)
    table.register_hook(lambda gradient: gradient * trained.to(gradient))
    table.no_decay = True  # type: ignore[attr-defined] # which the optimiser looks for


@torch.no_grad()
def _set(table: nn.Parameter, found: Found, *, rescale: bool) -> None:
    known = torch.from_numpy(np.flatnonzero(found.known))
    values = torch.from_numpy(found.values)[known].to(table)
    if rescale and len(known):
        values *= table.square().mean().sqrt() / values.square().mean().sqrt().clamp(min=1e-12)
    table[known] = values


def _described(role: str, found: Found, words: int, tune: str) -> list[str]:
    count = int(found.known.sum())
    tuned = {"all": "all are trained", "new": "the others are trained", "none": "none is trained"}[tune]
    said = [f"  {role}: {count:,} of {words:,} words start with vectors, and {tuned}."]
    if count < FEW * words:
        said.append(
            f"WARNING: {role}: {words - count:,} words have no vector. Is the file of the same language, are its words "
            "in lower case, and are the pieces of the tokeniser words?"
        )
    return said
