"""What no graph can express: a run that uses it is rejected by name before any work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from saccade.export.runner.text import KINDS
from saccade.layers import LSTMNLayer
from saccade.models import WordByWord
from saccade.models.base import EncoderDecoder, LanguageModel
from saccade.runs import Run
from saccade.selections import (
    ContinuousSoftmax,
    ContinuousSparsemax,
    Fusedmax,
    KSubset,
    LinearChain,
    NonProjectiveTree,
    ProjectiveTree,
    SemiMarkov,
)

RUNNER = Path(__file__).parent / "runner"

STEPS = "computes step by step, and its steps depend on the length of the input"
PARTS: dict[type[nn.Module], str] = {
    **dict.fromkeys((KSubset, Fusedmax, SemiMarkov, LinearChain, ProjectiveTree, NonProjectiveTree), STEPS),
    **dict.fromkeys((ContinuousSoftmax, ContinuousSparsemax), "solves linear equations, which ONNX cannot express"),
}
"""Modules that a graph cannot express, with the reason."""

INSTEAD = "Use the run itself: `saccade predict`, or `saccade serve` for other programs."


def check_graphs(run: Run) -> None:
    """Raises `ValueError`, naming the part of a run that has no graph, or that no program without Saccade can read."""
    task, model = run.task, run.model
    about = _portable(f"The task {type(task).__name__}", lambda: task.portable(model))
    writes = about["kind"] in ("generation", "language_modelling")
    if writes and not isinstance(model, EncoderDecoder | LanguageModel):
        raise ValueError(f"{type(model).__name__} cannot be exported: it is not an encoder-decoder. {INSTEAD}")
    for role, field in task.inputs.items():
        _check_tokeniser(role, _portable(f"The {role}", field.portable))
    _check_tokeniser("target", about.get("target", {}))
    if any(field.fixed() for field in task.inputs.values()) and not callable(getattr(model, "over", None)):
        raise ValueError(f"{type(model).__name__} cannot be exported: it has no method `over`, see GAT. {INSTEAD}")
    check_parts(model)


def graph_remarks(run: Run) -> list[str]:
    """What the graphs of a run leave out."""
    found, ctc = [], getattr(run.model, "ctc", None)
    if ctc is not None and ctc.weight:
        found.append(
            f"The run searches with CTC (ctc_weight={ctc.weight:g}), but the export does not: its answers are those of "
            "`saccade predict --ctc-weight 0`."
        )
    if run.task.contiguous:
        found.append(
            "The run scores texts as parts of one, carrying its state from each to the next; the export continues "
            "texts, but does not score them."
        )
    return found


def check_parts(model: nn.Module) -> None:
    """Raises `ValueError`, naming a module that a graph cannot express."""
    for name, part in model.named_modules():
        for kind, reason in PARTS.items():
            if isinstance(part, kind):
                raise ValueError(f"{type(part).__name__} (model.{name}) cannot be exported: it {reason}. {INSTEAD}")
        if isinstance(part, LSTMNLayer | WordByWord):
            for attention in (part.attention, getattr(part, "source_attention", None)):
                for inner in () if attention is None else (attention.score, attention.selection):
                    if inner.stateful:
                        loop = f"{type(part).__name__} (model.{name})"
                        raise ValueError(
                            f"{type(inner).__name__} in {loop} cannot be exported: its state grows from step to step. "
                            f"{INSTEAD}"
                        )


def _portable(what: str, describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        about = describe()
    except ValueError as error:
        raise ValueError(f"{what} cannot be exported: {str(error).rstrip('.')}. {INSTEAD}") from None
    if not (RUNNER / f"{about['kind']}.py").is_file():
        raise ValueError(f"{what} cannot be exported: the runner has nothing for {about['kind']!r}. {INSTEAD}")
    return about


def _check_tokeniser(role: str, about: dict[str, Any]) -> None:
    kind = about.get("tokeniser", {}).get("kind", KINDS[0])
    if kind not in KINDS:
        raise ValueError(f"The tokeniser {kind!r} of the {role} cannot be exported: {', '.join(KINDS)} can. {INSTEAD}")
