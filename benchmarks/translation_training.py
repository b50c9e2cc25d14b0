"""Training on Multi30k: target tokens per second, not counting padding.

Ours is `Trainer.fit` as run by the command line, as one process with two threads and with torchrun as two with one
thread. JoeyNMT builds its own batches by tokens and takes the steps of its `TrainManager`. The same budget gives
batches with about as many sentences: JoeyNMT counts only the longer side and we count both, but it does not group
sentences of similar length, so half of a batch is padding. It does not support multi-process training on a CPU.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks import translation_models as made
from benchmarks.multi30k import (
    ONE_PROCESS,
    ROOT,
    TWO_WORKERS,
    Comparison,
    Layout,
    Table,
    pairs,
    prepared,
    rate,
    task,
    work,
)

BATCH_TOKENS, LABEL_SMOOTHING, CLIP_NORM, LEARNING_RATE = 4096, 0.1, 1.0, 1e-3
WARM_UP, STEPS = 3, 15


def cases() -> list[Comparison]:
    sides: dict[tuple[str, Layout], Callable[[], float]] = {}
    for kind in ("rnn", "transformer"):
        for layout in (ONE_PROCESS, TWO_WORKERS):
            sides[f"ours-{kind}", layout] = _ours(kind, layout)
        sides[f"joeynmt-{kind}", ONE_PROCESS] = _joeynmt(kind)
    table = Table(sides)

    def case(name: str, against: str, ours: Any, peer: Any, must: float | None = None, aim: float | None = None) -> Any:
        return Comparison(f"training {name} on Multi30k", against, table, ours, peer, "target tokens/s", must, aim)

    found = []
    for kind, name in (("rnn", "RNNsearch, 256 units"), ("transformer", "a Transformer, d=128, 4+4 layers")):
        one, two = (f"ours-{kind}", ONE_PROCESS), (f"ours-{kind}", TWO_WORKERS)
        peer = (f"joeynmt-{kind}", ONE_PROCESS)
        found += [
            case(name, "JoeyNMT, ours at its best", (one, two), (peer,), must=1.5, aim=3),
            case(name, "JoeyNMT, both 1 x 2 threads", (one,), (peer,)),
            case(name, "itself: torchrun with 2 x 1 against 1 x 2 threads", (two,), (one,)),
        ]
    return found


def _joeynmt(kind: str) -> Callable[[], float]:
    return lambda: rate("translation_training", f"joeynmt-{kind}", ONE_PROCESS)


def _ours(kind: str, layout: Layout) -> Callable[[], float]:
    def run() -> float:
        with tempfile.TemporaryDirectory() as output:
            launch = [
                sys.executable,
                "-m",
                "torch.distributed.run",
                "--standalone",
                f"--nproc-per-node={layout.workers}",
            ]
            launch = launch if layout.workers > 1 else [sys.executable]
            command = [*launch, "-m", "benchmarks.translation_training", f"ours-{kind}", str(prepared()), output]
            environment = {**os.environ, "OMP_NUM_THREADS": str(layout.threads), "PYTHONPATH": str(ROOT)}
            done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"ours-{kind} failed: {done.stderr.strip().splitlines()[-1]}")
            log = [json.loads(line) for line in (Path(output) / "run" / "metrics.jsonl").read_text().splitlines()]
        steps = [record for record in log if record["split"] == "train"]
        seconds = steps[-1]["seconds"] - steps[WARM_UP - 1]["seconds"]
        return sum(record["tokens"] for record in steps[WARM_UP:]) / seconds

    return run


def ours(kind: str, folder: str, output: str) -> None:
    from saccade.training import Trainer

    learned = task(label_smoothing=LABEL_SMOOTHING)
    learned.load(Path(folder))
    train = [{"source": [*a, made.EOS], "target": [*b, made.EOS]} for a, b in pairs("train", folder)]
    trainer = Trainer(
        max_steps=WARM_UP + STEPS,
        batch_tokens=BATCH_TOKENS,
        learning_rate=LEARNING_RATE,
        clip_norm=CLIP_NORM,
        device="cpu",
    )
    trainer.fit(task=learned, model=made.ours(kind), train=train, output=Path(output) / "run")


class Data(torch.utils.data.Dataset):
    """The training data in the form that JoeyNMT's batch sampler needs."""

    def __init__(self, folder: str) -> None:
        self.pairs = pairs("train", folder)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> tuple[int, list[int], list[int]]:
        return index, *self.pairs[index]


def joeynmt(kind: str, folder: str) -> None:
    from joeynmt.batch import Batch
    from joeynmt.datasets import TokenBatchSampler
    from torch.utils.data import RandomSampler

    data = Data(folder)
    model = made.joeynmt(kind).train()
    model.loss_function = ("crossentropy", LABEL_SMOOTHING)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    generator = torch.Generator().manual_seed(1)
    sampler = TokenBatchSampler(
        RandomSampler(data, generator=generator), batch_size=BATCH_TOKENS, drop_last=False, seed=1
    )

    def batches() -> Iterator[Batch]:
        for indices in sampler:
            rows = [data[index] for index in indices]
            sources = [made.joeynmt_ids([*source, made.EOS]) for _, source, _ in rows]
            targets = [made.joeynmt_ids([made.BOS, *target, made.EOS]) for _, _, target in rows]
            source, target = (
                nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in side], batch_first=True, padding_value=1)
                for side in (sources, targets)
            )
            lengths = torch.tensor([len(ids) for ids in sources])
            yield Batch(source, lengths, None, target, None, torch.tensor(indices), torch.device("cpu"), 1, 3)

    stream = batches()

    def steps(count: int) -> float:
        tokens = 0
        for batch in itertools.islice(stream, count):
            batch.sort_by_src_length()
            loss, _, _, right = model(return_type="loss", **vars(batch))
            batch.normalize(loss, normalization="tokens").backward()
            right.item()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
            optimiser.step()
            optimiser.zero_grad()
            tokens += batch.ntokens
        return tokens

    work(lambda: steps(WARM_UP), lambda: steps(STEPS))


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    name, kind = sys.argv[1].split("-")
    if name == "ours":
        ours(kind, sys.argv[2], sys.argv[3])
    else:
        joeynmt(kind, sys.argv[2])
