"""Runs the toy training in processes of its own, which can be killed."""

import multiprocessing
import os
import sys
import time

from saccade.training.metrics import read_metrics

_context = multiprocessing.get_context("forkserver")  # imports everything once
_context.set_forkserver_preload(["accelerate", "accelerate.tracking", "tests.training.run_toy"])


def _train(errors, arguments):
    sys.stderr = open(errors, "w", buffering=1)  # noqa: SIM115 (the process ends with it)
    import torch

    from tests.training.run_toy import train

    torch.set_num_threads(1)
    train(**arguments)


def start(output, **arguments):
    process = _context.Process(target=_train, args=(f"{output}.err", {"output": output, **arguments}))
    process.start()
    return process


def finish(process, output, expected=0):
    """What it wrote to its error stream."""
    process.join(timeout=200)
    errors = open(f"{output}.err").read()  # noqa: SIM115
    assert process.exitcode == expected, errors
    return errors


def wait_for_step(output, step, running):
    deadline = time.monotonic() + 200
    while max((r["step"] for r in read_metrics(os.path.join(output, "metrics.jsonl"))), default=0) < step:
        assert running()
        assert time.monotonic() < deadline, "the training does not get on"
        time.sleep(0.02)


def records(output, split="train"):
    """What must be the same in two trainings: everything but the time."""
    found = [r for r in read_metrics(os.path.join(output, "metrics.jsonl")) if r["split"] == split]
    return [{name: value for name, value in r.items() if name not in ("seconds", "split")} for r in found]
