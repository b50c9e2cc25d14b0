"""Reads a run folder."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import torch

from saccade import gpt2
from saccade.artifacts import check_header, load_weights, read_header, shapes_of
from saccade.configuration import read_config
from saccade.models.quantised import quantise_layers, quantised_in
from saccade.runs.folder import check_run, chosen_weights, verify_run
from saccade.runs.plan import Plan
from saccade.runs.run import Run
from saccade.tasks import LanguageModelling
from saccade.training.processes import check_device


def load(folder: str | os.PathLike[str], *, device: str | torch.device | None = None, trust: bool = False) -> Run:
    """Loads the model of a run folder, ready to predict.

    Nothing in a run is a pickle, but its configuration may name any class by dotted path, and building the model runs
    that class. So classes from outside Saccade are rejected unless the caller trusts the author of the run.

    A training that was interrupted has no model yet: its best checkpoint is loaded, with a warning.

    Args:
        folder: what `train` made, or a GPT-2 saved by the `transformers` library.
        device: where the model goes; the CPU unless another one is named.
        trust: whether the run may use classes that are not Saccade's.
    """
    if gpt2.is_folder(folder):
        return _foreign(Path(folder), device)
    path = check_run(folder)
    if device is not None and torch.device(device).type in ("cuda", "mps"):
        check_device(str(device))
    weights = chosen_weights(path)
    verify_run(path)
    plan = Plan(read_config(path / "config.yaml"), trust=trust)
    plan.task.load(path / "task")
    with torch.device("meta"):
        outline = plan.build()
    found = {name: dtype for name, (_, dtype) in read_header(weights.file).items()}
    rounded = quantised_in(found, outline)
    check_header(weights.file, shapes_of(quantise_layers(outline, rounded)))  # before any such size is allocated
    model = quantise_layers(plan.build(), rounded)
    load_weights(model, weights.file)
    if weights.remark:
        warnings.warn(weights.remark, stacklevel=2)
    return Run(path, plan, model if device is None else model.to(device))


def _foreign(folder: Path, device: str | torch.device | None) -> Run:
    """The GPT-2 of a folder as a run of language modelling."""
    found = gpt2.load(folder)  # which checks everything
    plan = Plan(gpt2.settings_of(folder))
    assert isinstance(plan.task, LanguageModelling)
    plan.task.text.tokeniser, plan.task.text.fitted = found.tokeniser, True
    return Run(folder, plan, found.model if device is None else found.model.to(device))
