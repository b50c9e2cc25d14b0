"""Inflection with soft, exact hard and hard monotonic attention: CoNLL-SIGMORPHON 2017, task 1.

The folder contains the files of the task, gzipped or not: `english-train-medium`, `english-dev`,
`english-uncovered-test` and so on, with a lemma, a form and tags on each line. Each language is trained separately;
"run <V;PST>" becomes "ran".
"""

import gzip
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from statistics import fmean
from threading import Thread
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.configuration import read_config
from saccade.training import read_metrics

FOLDER = Path(__file__).resolve().parent
MODELS = {
    "soft": "soft attention (RNNsearch)",
    "exact-hard": "exact hard attention (0-HARD)",
    "hard-monotonic-0": "hard monotonic, order 0 (0-MONO)",
    "hard-monotonic": "hard monotonic, order 1 (1-MONO)",
}
SIZE = {"embedding_dim": 64, "hidden_dim": 128, "encoder_layers": 1}
STEPS = {"medium": 1200, "high": 6000}
PUBLISHED = {"soft": 93.4, "exact-hard": 94.5, "hard-monotonic-0": 94.4, "hard-monotonic": 94.8}
"""Wu and Cotterell (2019), 51 languages, high."""

Pair = tuple[str, str]


def main(arguments: list[str] | None = None) -> int:
    """Trains models that are not trained yet, and writes a row for each language and the mean."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("CONLL2017"), help="the folder with the files")
    parser.add_argument("--medium", nargs="*", help="languages with 1,000 words; by default, all in the folder")
    parser.add_argument("--high", nargs="*", default=["english", "german"], help="languages with 10,000 words")
    parser.add_argument("--steps", type=int, help="updates per model")
    parser.add_argument("--tests", type=int, help="words in each test set; by default, all")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="models to train at once")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs CoNLL-SIGMORPHON 2017. Set --data or CONLL2017 to its folder.", file=sys.stderr)
        return 0
    chosen = {"high": given.high, "medium": languages_of(given.data) if given.medium is None else given.medium}
    jobs = [
        Job(given.data, size, language, name, given.runs, given.steps, given.tests, given.seed)
        for size, languages in chosen.items()
        for language in languages
        for name in given.models
    ]
    missing = sorted({name for job in jobs for name in job.files() if find(given.data, name) is None})
    if missing or not jobs:
        print(f"{given.data} has no {', '.join(missing) or '*-train-medium'}, gzipped or not.", file=sys.stderr)
        return 2
    results: dict[str, Any] = {size: {language: {} for language in chosen[size]} for size in ("medium", "high")}
    with workers(given.workers) as apply:
        for job, figures in zip(jobs, apply(measured, jobs), strict=True):
            results[job.size][job.language][job.name] = figures
            print(job.size, job.language, job.name, figures, flush=True)
    write(results, given.models, given.output)
    return 0


@contextmanager
def workers(number: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` over several single-threaded processes, or in this process with one worker."""
    if number == 1:
        yield map
        return
    os.environ["OMP_NUM_THREADS"] = "1"  # before the processes start
    with ProcessPoolExecutor(number, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        yield pool.map


def end_with_parent() -> None:
    """Ends this process when its parent is gone, since a killed parent cannot stop its workers."""

    def wait() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


@dataclass(frozen=True)
class Job:
    """One model to train on one file."""

    data: Path
    size: str
    language: str
    name: str
    runs: Path
    steps: int | None
    tests: int | None
    seed: int

    def files(self) -> list[str]:
        """The files for training, validation and test."""
        return [f"{self.language}-{part}" for part in (f"train-{self.size}", "dev", "uncovered-test")]


def measured(job: Job) -> dict[str, float]:
    """Accuracy and cost of one model, which is trained unless it already exists."""
    train, valid, test = (read(job.data, name) for name in job.files())
    folder = job.runs / job.size / job.language / job.name
    steps, data = job.steps or STEPS[job.size], {"train": train, "valid": valid}
    trainer = {
        "seed": job.seed,
        "max_steps": steps,
        "max_epochs": None,
        "learning_rate": 5e-3,
        "schedule": "cosine",
        "validate_every": max(1, steps // 4),
        "metric": "cer",
        "patience": None,
    }
    if (folder / "config.yaml").is_file():
        found = read_config(folder / "config.yaml")
        wanted = [("model", *each) for each in SIZE.items()] + [("trainer", *each) for each in trainer.items()]
        for part, name, value in wanted:
            if (there := found[part][name]) != value:
                raise SystemExit(f"{folder}: {part}.{name} is {there}, not {value}. Remove it, or pass another --runs.")
    if (folder / "model.safetensors").is_file():
        run = saccade.load(folder)
    elif (folder / "config.yaml").is_file():
        run = saccade.train(resume=folder, data=data)
    else:
        run = saccade.train(f"inflection/{job.name}", data=data, model=SIZE, trainer=trainer, output=folder)
    *_, last = read_metrics(run.folder / "metrics.jsonl")
    figures = run.evaluate(test[: job.tests]).figures
    return {
        "accuracy": figures["exact_match"].value,
        "cer": figures["cer"].value,
        "steps": last["step"],
    }


def languages_of(folder: Path) -> list[str]:
    """The languages with a medium training file."""
    return sorted({path.name.partition("-train-")[0] for path in folder.glob("*-train-medium*")})


def find(folder: Path, name: str) -> Path | None:
    """The file of this name, gzipped or not."""
    return next((file for file in (folder / f"{name}.gz", folder / name) if file.is_file()), None)


def read(folder: Path, name: str) -> list[Pair]:
    """The pairs of a file: "run <V;PST>" and "ran"."""
    file = find(folder, name)
    assert file is not None
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode("utf-8")
    pairs = []
    for number, line in enumerate(text.splitlines(), start=1):
        parts = line.split("\t")
        if len(parts) != 3:
            raise SystemExit(f"{file}, line {number}: expected lemma, form and tags separated by tabs, got {line!r}.")
        lemma, form, tags = parts
        pairs.append((f"{lemma} <{tags}>", form))
    return pairs


def write(results: dict[str, Any], models: Sequence[str], output: Path) -> None:
    """Writes a row for each language, the means, and the published results for more languages."""
    rows: list[list[object]] = []
    for size, languages in results.items():
        if not languages:
            continue

        def line(figure: str, of: Sequence[str], found: dict[str, Any] = languages) -> list[float]:
            return [fmean(found[language][name][figure] for language in of) for name in models]

        rows += [[f"{language}, {size}", *line("accuracy", [language])] for language in languages]
        rows.append([f"**mean of {len(languages)}, {size}**", *line("accuracy", list(languages))])
    rows.append(["published: mean of 51, high", *(PUBLISHED[name] for name in models)])
    header = ["accuracy", *(MODELS[name] for name in models)]
    publish(output, results=results, table=markdown_table(header, rows))


if __name__ == "__main__":
    sys.exit(main())
