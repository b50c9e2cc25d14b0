"""The commands that make a model: train, validate, copy."""

from __future__ import annotations

import contextlib
import inspect
import json
import signal
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from saccade.commands.columns import parse_column, parse_columns
from saccade.commands.interrupting import leaving_at_once
from saccade.configuration import ConfigError, override, read_config
from saccade.configuration.catalogue import described
from saccade.configuration.files import find_config
from saccade.configuration.spelling import check_spelling, wrong_names
from saccade.configuration.yaml_files import read_text


def train_model(
    config: str | None = None,
    *,
    output: str | None = None,
    resume: str | None = None,
    init_from: str | None = None,
    folds: str | None = None,
    **overrides: str,
) -> None:
    """Train a model, or resume training.

        saccade train translation/rnnsearch --data.train pairs.tsv --output runs/my-model
        saccade train my.yaml --data.train reviews.csv --data.text body --data.label stars --output runs/reviews
        saccade train my.yaml --model.hidden_dim 64 --model.selection sparsemax --output runs/smaller
        saccade train my.yaml --trainer.schedule '{class: cosine, warmup: 100}' --output runs/cosine
        saccade train classification/bert --init-from bert-base-uncased --data.train reviews.csv --output runs/reviews
        saccade train --resume runs/my-model
        saccade train classification/pooling --data.train reviews.csv --folds 10 --output runs/cross-validation
        torchrun --nproc-per-node 2 -m saccade train my.yaml --output runs/by-two

    Any argument of the configuration can be set as --section.argument value, where the sections are task, model, data
    and trainer, and a value may be YAML; with a configuration, --help lists them all. `--data.text body` says which
    column is the text, and so on for every role of the task. Ctrl-C (or SIGTERM) saves a checkpoint and exits with code
    130; --resume continues exactly where it stopped. The processes that torchrun starts share every batch, so the
    losses are those of a single process. With --folds, a model is trained for each fold on the other folds and
    evaluated on that one; after an interruption, the same command keeps finished folds and continues the unfinished
    one.

    Args:
        config: a YAML file, or the name of one that comes with Saccade (saccade list configs).
        output: the folder to create for the weights, the configuration, the figures and the model card; by default one
            in runs/, named after the configuration.
        resume: the folder of a run to continue.
        init_from: a folder whose weights to start from, as far as names and shapes match: another run, or a BERT saved
            by the transformers library, whose sizes and vocabulary are then used.
        folds: cross-validate with this many folds, or with the folds given by a column of this name.
    """
    by_default = output is None and resume is None and config is not None
    if by_default:
        output = str(Path("runs", Path(str(config)).stem))
    if folds is not None and (resume is not None or output is None):
        raise ConfigError("--folds needs --output and does not take --resume: to continue, run the same command again.")
    with _stopping(Path(output or resume or "."), again=folds is not None):
        overrides = _with_data(overrides)
        written = {} if config is None else override(read_config(config), overrides)
        if config is not None:
            check_spelling(written)  # before anything slow is imported
        if by_default and _names_data(written):
            print(f"Writing the run to {output}; use --output to choose another folder.", file=sys.stderr)
        if folds is None:
            _train(config, output, resume, init_from, overrides)
        else:
            _cross_validate(config, str(output), init_from, folds, overrides)


def _train(
    config: str | None, output: str | None, resume: str | None, init_from: str | None, overrides: dict[str, str]
) -> None:
    with leaving_at_once():
        from saccade.runs import train
        from saccade.runs.preparation import is_main

    if resume is None:
        _check_model(config, overrides)
    run = train(config, output=output, resume=resume, init_from=init_from, overrides=overrides)
    if is_main():
        print(f"{run.folder} is ready: saccade predict {run.folder} INPUTS, or saccade explain {run.folder} --help")


def _cross_validate(
    config: str | None, output: str, init_from: str | None, folds: str, overrides: dict[str, str]
) -> None:
    with leaving_at_once():
        from saccade.commands.evaluating import print_tables
        from saccade.runs import cross_validate

    _check_model(config, overrides)
    found = cross_validate(config, folds=folds, output=output, init_from=init_from, overrides=overrides)
    width = max(map(len, found.mean))
    print(f"\n{'':{width}}      mean  deviation  pooled")
    for name, mean in found.mean.items():
        pooled = f"{found.pooled[name].value:6.2f}" if name in found.pooled else f"{'':6}"
        signature = found.folds[0].figures[name].signature
        print(f"{name:{width}}  {mean:8.2f}  {found.deviation[name]:9.2f}  {pooled}  {signature}")
    total = sum(fold.examples for fold in found.folds)
    print(f"over {len(found.folds)} folds; pooled: over all {total:,} examples together")
    print_tables(found.tables)
    print(f"\n{found.folder} has a run for each fold, the figures (cross-validation.json) and a summary (README.md)")


def _names_data(config: Mapping[str, Any]) -> bool:
    data = config.get("data")
    return isinstance(data, Mapping) and data.get("train") is not None


def _check_model(config: str | None, overrides: dict[str, str]) -> None:
    if config is None and not {"model", "model.class"} & overrides.keys():
        raise ConfigError(
            "Say what to train: a YAML file, or a configuration that `saccade list configs` shows, for example "
            "saccade train translation/rnnsearch --data.train pairs.tsv --output runs/my-model"
        )


AGAIN = 2.0
"""Seconds after which an interruption is raised again: an import or a destructor may have swallowed it."""


@contextlib.contextmanager
def _stopping(folder: Path, *, again: bool = False) -> Iterator[None]:
    """Treats SIGTERM like SIGINT while the training loop, which saves a checkpoint first, is not running.

    Args:
        folder: of the run.
        again: whether the same command continues what was interrupted.
    """

    repeated = hasattr(signal, "setitimer")  # not on Windows

    def stop(number: int, frame: FrameType | None) -> None:
        if repeated and number != signal.SIGALRM:  # once: what cleans up must not be disturbed again and again
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM, signal.SIGALRM] if repeated else [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in the background
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        if repeated:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        if any((folder / "checkpoints").glob("step-*")):
            fix = f": continue from the last checkpoint with saccade train --resume {folder}"
        elif (folder / "config.yaml").is_file():
            fix = f" before the first checkpoint: run the same command again, or saccade train --resume {folder}"
        elif again and folder.is_dir():
            fix = ": run the same command again to keep finished folds and continue this one"
        else:
            fix = " before anything was written: run the same command again."
        print(f"Interrupted{fix}", file=sys.stderr)
        raise KeyboardInterrupt(fix) from None
    finally:
        if repeated:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)


def validate_config(config: str, *, trust_classes: bool = False, **overrides: str) -> None:
    """Check a configuration without training.

        saccade validate my.yaml --model.selection sparsemax

    Checks everything that can be checked before the data is read: names, types, and whether the parts fit together.

    Args:
        config: a YAML file, or the name of one that comes with Saccade.
        trust_classes: allow classes that are not Saccade's, which runs their code.
    """
    written = override(read_config(config), _with_data(overrides))
    check_spelling(written)
    from saccade.runs.plan import Plan
    from saccade.runs.reading import read_examples
    from saccade.training.processes import check_trackers

    plan = Plan(written, trust=trust_classes)
    plan.check_training()
    validating = bool(plan.data.valid or plan.data.share(None))
    plan.trainer.check(plan.task, validating=validating)
    check_trackers(plan.trainer.trackers)
    scored = plan.trainer.validate_examples != 0
    for files, validated in ((plan.data.train, validating and not plan.data.valid), (plan.data.valid, True)):
        if files:
            read_examples(plan.data, files, plan.task, plan.task.fields, scored=scored and validated)
    outline = plan.outline()
    count = sum(parameter.numel() for name, parameter in outline.named_parameters() if "embedding" not in name)
    print(f"{config} is valid: {type(outline).__name__}, {count:,} parameters without embeddings.")


def misspelt(configs: Sequence[str], overrides: Mapping[str, str]) -> list[str]:
    """What is misspelt in the arguments on a command line, whose configuration is the first of these that is one."""
    for config in configs:
        with contextlib.suppress(ConfigError, OSError):
            return [problem.text for problem in wrong_names(override(read_config(config), _with_data(overrides)))]
    return []


def copy_config(name: str, file: str) -> None:
    """Copy a configuration that comes with Saccade, to edit it.

        saccade copy translation/rnnsearch my.yaml

    Args:
        name: translation/rnnsearch, or another one that `saccade list configs` shows.
        file: the file to write; it must not exist yet.
    """
    source, target = find_config(name), Path(file)
    if target.exists():
        raise FileExistsError(f"{target} already exists: choose another name.")
    text = read_text(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("x", encoding="utf-8", newline="") as copy:
        copy.write(text)
    print(f"{target} is a copy of {name}: edit it, then saccade train {target} --data.train ... --output ...")


def explain_config(config: str, overrides: dict[str, Any]) -> str:
    """Prints every argument of a configuration: its type, its meaning, and its value here."""
    from saccade.configuration.hints import argument_helps, hint_of, readable
    from saccade.runs.plan import Plan

    plan = Plan(override(read_config(config), _with_data(overrides)), trust=True)
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


def _with_data(overrides: Mapping[str, str]) -> dict[str, str]:
    """`--data pairs.tsv` means what to train on; columns may be written as for `saccade evaluate`.

    `--data.text body` is the column of the role `text`, if that is a role of the task.
    """
    changed: dict[str, Any] = dict(overrides)
    arguments = described("saccade.data.corpus.Corpus").parameters
    for key in [key for key in changed if key.startswith("data.") and key.count(".") == 1]:
        if key.removeprefix("data.") not in arguments and not changed[key].lstrip().startswith(("{", "[")):
            changed[key] = parse_column(changed[key])
    if not changed.get("data", "{").lstrip().startswith("{"):
        changed["data.train"] = changed.pop("data")
    if "=" in changed.get("data.columns", ""):
        with contextlib.suppress(ValueError):  # reported with whatever else is wrong
            changed["data.columns"] = parse_columns(changed["data.columns"])
    return changed


def _paragraphs(kind: type) -> list[str]:
    return (inspect.getdoc(kind) or kind.__name__).split("\n\n")
