"""What no graph can express, by name: a run that uses it is refused before any work."""

from __future__ import annotations

from torch import nn

from saccade.fields import Text, WordPieces
from saccade.layers import LSTMNLayer, ReadPicked, SequentialSelection
from saccade.models import GAT, HAN, WordByWord
from saccade.models.base import EncoderDecoder
from saccade.runs import Run
from saccade.selections import (
    ContinuousSoftmax,
    ContinuousSparsemax,
    Entmax,
    Fusedmax,
    KSubset,
    LinearChain,
    NonProjectiveTree,
    ProjectiveTree,
    SemiMarkov,
)
from saccade.tasks import Classification, Generation, Rating

STEPS = "computes step by step, and its steps depend on the length of the input"
PARTS: dict[type[nn.Module], str] = {
    **dict.fromkeys((LSTMNLayer, WordByWord), "attends once per step, and its steps depend on the length of the input"),
    **dict.fromkeys((HAN, GAT), "groups its inputs by their sizes"),
    **dict.fromkeys((ReadPicked, SequentialSelection), "reads only what it picks, and how much that is varies"),
    **dict.fromkeys((Entmax, KSubset, Fusedmax, SemiMarkov, LinearChain, ProjectiveTree, NonProjectiveTree), STEPS),
    **dict.fromkeys((ContinuousSoftmax, ContinuousSparsemax), "solves linear equations, which ONNX cannot express"),
}
"""Modules that a graph cannot hold, with the reason."""

KINDS = ("bpe", "char", "pretokenised", "unigram", "word")
"""The tokenisers that the runner has."""


def check_graphs(run: Run) -> None:
    """Raises `ValueError`, naming the part of a run that has no graph."""
    task, model = run.task, run.model
    if not isinstance(task, Generation | Classification | Rating):
        raise ValueError(
            f"The task {type(task).__name__} cannot be exported: generation, classification and rating can."
        )
    tagged = isinstance(task, Classification) and task.form.name == "tags"
    if tagged and not isinstance(next(iter(task.inputs.values())), Text):
        raise ValueError("Tags of wordpieces cannot be exported: tags of the words of a text can.")
    if isinstance(task, Generation) and not isinstance(model, EncoderDecoder):
        raise ValueError(f"{type(model).__name__} cannot be exported: it is not an encoder-decoder.")
    for role, field in {**task.inputs, **({"target": task.target} if isinstance(task, Generation) else {})}.items():
        if not isinstance(field, Text | WordPieces):
            raise ValueError(
                f"The {role} is the field {type(field).__name__}, which cannot be exported: text and wordpieces can."
            )
        if isinstance(field, Text) and field.tokeniser.kind not in KINDS:
            raise ValueError(
                f"The tokeniser {field.tokeniser.kind!r} of the {role} cannot be exported: {', '.join(KINDS)} can."
            )
    for name, part in model.named_modules():
        for kind, reason in PARTS.items():
            if isinstance(part, kind):
                raise ValueError(f"{kind.__name__} (model.{name}) cannot be exported: it {reason}.")
