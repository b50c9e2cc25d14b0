"""The commands that make a model: train, validate, copy."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from saccade.configuration import ConfigError, override, read_config
from saccade.configuration.files import find_config
from saccade.configuration.hints import argument_helps, hint_of, readable
from saccade.configuration.spelling import check_spelling
from saccade.runs.plan import Plan
from saccade.training.processes import check_trackers


def train_model(
    config: str | None = None, *, output: str | None = None, resume: str | None = None, **overrides: str
) -> None:
    """Train a model, or go on with one.

        saccade train translation/rnnsearch --data.train pairs.tsv --output runs/my-model
        saccade train my.yaml --model.hidden_dim 64 --model.selection sparsemax --output runs/smaller
        saccade train my.yaml --trainer.schedule '{class: cosine, warmup: 100}' --output runs/cosine
        saccade train --resume runs/my-model
        torchrun --nproc-per-node 2 -m saccade train my.yaml --output runs/by-two

    Any argument of the configuration can be set as --section.argument value, where the sections are task, model, data
    and trainer, and a value may be YAML; with a configuration, --help lists them all. Ctrl-C (or SIGTERM) saves and
    leaves with exit code 130; --resume goes on exactly there. Of the processes that torchrun starts, each takes its
    share of every batch: the losses are those of one process.

    Args:
        config: a YAML file, or the name of one that comes with Saccade (saccade list configs).
        output: the folder to make, for the weights, the configuration, the figures and the model card.
        resume: the folder of a run to go on with.
    """
    from saccade.run import is_main
    from saccade.run_training import train

    overrides = _with_data(overrides)
    if config is None and resume is None and not {"model", "model.class"} & overrides.keys():
        raise ConfigError(
            "Say what to train: a YAML file, or a configuration that `saccade list configs` shows, for example "
            "saccade train translation/rnnsearch --data.train pairs.tsv --output runs/my-model"
        )
    with _stopping(Path(output or resume or ".")):
        run = train(config, output=output, resume=resume, overrides=overrides)
    if is_main():
        print(f"{run.folder} is ready: saccade predict {run.folder} < source.txt > target.txt")


@contextlib.contextmanager
def _stopping(folder: Path) -> Iterator[None]:
    """Obeys SIGTERM as it does SIGINT while the training loop, which saves first, is not yet or no longer on."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        if any((folder / "checkpoints").glob("step-*")):
            again = f"go on from the last checkpoint with saccade train --resume {folder}"
        elif (folder / "config.yaml").is_file():
            again = f"before the first checkpoint: give the same command again, or saccade train --resume {folder}"
        else:
            again = "before anything was written: give the same command again"
        print(f"Interrupted; {again}", file=sys.stderr)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def validate_config(config: str, **overrides: str) -> None:
    """Check a configuration without training.

        saccade validate my.yaml --model.selection sparsemax

    Everything is checked that can be known before the data are read: names, types, and whether the parts fit together.

    Args:
        config: a YAML file, or the name of one that comes with Saccade.
    """
    described = override(read_config(config), _with_data(overrides))
    check_spelling(described)
    plan = Plan(described, trust=True)
    validating = bool(plan.data.valid or plan.data.share(None))
    plan.trainer.check(plan.task, os.devnull, validating=validating)  # which holds no earlier training
    check_trackers(plan.trainer.trackers)
    for files in filter(None, (plan.data.train, plan.data.valid)):
        plan.data.read(files, plan.task.columns)
    outline = plan.outline()
    count = sum(parameter.numel() for name, parameter in outline.named_parameters() if "embedding" not in name)
    print(f"{config} is valid: {type(outline).__name__}, {count:,} parameters without embeddings.")


def copy_config(name: str, file: str) -> None:
    """Copy a configuration that comes with Saccade, to edit it.

        saccade copy translation/rnnsearch my.yaml

    Args:
        name: translation/rnnsearch, or another one that `saccade list configs` shows.
        file: the file to write; it must not be there yet.
    """
    source, target = find_config(name), Path(file)
    if target.exists():
        raise FileExistsError(f"{target} is there already; give another name.")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    print(f"{target} is a copy of {name}: edit it, then saccade train {target} --data.train ... --output ...")


def explain_config(config: str, overrides: dict[str, Any]) -> str:
    """Every argument that a configuration may set: its type, what it is for, and its value here."""
    described = override(read_config(config), _with_data(overrides))
    check_spelling(described)
    plan = Plan(described, trust=True)
    lines = []
    for section, part in plan.parts.items():
        lines += [f"{section}: {_paragraphs(part.kind)[0]}", ""]
        helps = argument_helps(part.kind)
        for name, value in part.plain.items():
            lines.append(f"  --{section}.{name}  ({readable(hint_of(part.kind, name))})")
            lines += textwrap.wrap(helps.get(name, ""), 112, initial_indent=" " * 6, subsequent_indent=" " * 6)
            lines.append(f"      here: {json.dumps(value, ensure_ascii=False)}")
        lines.append("")
    return "\n".join(lines)


def _with_data(overrides: dict[str, str]) -> dict[str, str]:
    """`--data pairs.tsv` means what to train on, as `saccade evaluate --data` means what to evaluate on."""
    if not overrides.get("data", "{").lstrip().startswith("{"):
        return {("data.train" if name == "data" else name): value for name, value in overrides.items()}
    return overrides


def _paragraphs(kind: type) -> list[str]:
    return (inspect.getdoc(kind) or kind.__name__).split("\n\n")
