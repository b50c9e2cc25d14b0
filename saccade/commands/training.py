"""The commands that make a model: train, validate, copy."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from saccade.configuration import Plan, override, read_config
from saccade.configuration.files import find_config
from saccade.configuration.schema import make_parser


def train_model(
    config: str | None = None, *, output: str | None = None, resume: str | None = None, **overrides: str
) -> None:
    """Train a model, or go on with one.

    saccade train translation/rnnsearch --data.train pairs.tsv --output runs/my-model
    saccade train my.yaml --model.hidden_dim 64 --trainer.max_steps 5000 --output runs/smaller
    saccade train --resume runs/my-model

    Any argument of the configuration can be set as --section.argument value; with a configuration, --help lists them
    all. Ctrl-C (or SIGTERM) saves and leaves with exit code 130; --resume goes on exactly there.

    Args:
        config: a YAML file, or the name of one that comes with Saccade (saccade list configs).
        output: the folder to make, for the weights, the configuration, the figures and the model card.
        resume: the folder of a run to go on with.
    """
    from saccade.run import train

    run = train(config, output=output, resume=resume, overrides=overrides)
    print(f"{run.folder} is ready: saccade predict {run.folder} < source.txt > target.txt")


def validate_config(config: str, **overrides: str) -> None:
    """Check a configuration without training.

    Everything is checked that can be known before the data are read: names, types, and whether the parts fit together.

    Args:
        config: a YAML file, or the name of one that comes with Saccade.
    """
    plan = Plan(override(read_config(config), overrides))
    for files in filter(None, (plan.data.train, plan.data.valid)):
        plan.data.read(files, plan.task.columns)
    outline = plan.outline()
    count = sum(parameter.numel() for name, parameter in outline.named_parameters() if "embedding" not in name)
    print(f"{config} is valid: {type(outline).__name__}, {count:,} parameters without embeddings.")


def copy_config(name: str, file: str) -> None:
    """Copy a configuration that comes with Saccade, to edit it.

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
    """Every argument that a configuration may set, with its type and default."""
    plan = Plan(override(read_config(config), overrides))
    supplied = {"model": plan.task.sizes()}
    kinds = {"task": type(plan.task), "model": plan.model.kind, "data": type(plan.data), "trainer": type(plan.trainer)}
    return "\n".join(
        make_parser(kind, section, supplied.get(section, ())).format_help() for section, kind in kinds.items()
    )
