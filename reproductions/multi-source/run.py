"""Two sources against one: image descriptions in German and French, and sentences of which each source hides a part."""

import json
import os
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish

FOLDER = Path(__file__).resolve().parent
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}

SINGLE, BOTH = ("source",), ("source", "second")
MODELS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "first": ("{first} alone, attention", SINGLE, {"attention": "each"}),
    "second": ("{second} alone, attention", SINGLE, {"attention": "each"}),
    "basic": ("both, basic, no attention", BOTH, {"attention": "none", "combination": "basic"}),
    "child-sum": ("both, child-sum, no attention", BOTH, {"attention": "none", "combination": "child_sum"}),
    "each": ("both, child-sum, attention to each", BOTH, {"attention": "each", "combination": "child_sum"}),
}
"""Each model's name in the table, what it reads, and how."""

SHAPES, COLOURS = ("circle", "square", "star", "cross"), ("red", "blue", "green", "black")
LENGTHS = (2, 6)  # words of a hidden sentence


def main(arguments: list[str] | None = None) -> int:
    """Trains models on the hidden bits, then, where there are data, on Multi30k; writes the table."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("MULTI30K"), help="the folder with Multi30k's texts"
    )
    parser.add_argument("--steps", type=int, default=600, help="updates of each model, hidden parts")
    parser.add_argument("--examples", type=int, default=3000, help="training examples, hidden parts")
    parser.add_argument("--updates", type=int, default=6000, help="updates of each model, Multi30k")
    given = parser.parse_args(arguments)

    kept = given.output / "results.json"
    known = json.loads(kept.read_text()) if kept.is_file() else {}
    results: dict[str, dict[str, Any]] = {"hidden": known.get("hidden", {}), "multi30k": known.get("multi30k", {})}
    if given.steps:
        draws = random.Random(given.seed)
        train, test = ([hidden(draws) for _ in range(count)] for count in (given.examples, 500))
        for name in given.models:
            results["hidden"][name] = on_hidden(
                name, train, test, given.runs / f"hidden-{name}", given.steps, given.seed
            )
    if given.data is None:
        print("Multi30k is skipped: set --data or MULTI30K to the folder of its texts.", file=sys.stderr)
    else:
        for name in given.models:
            folder = given.runs / f"multi30k-{name}"
            results["multi30k"][name] = on_multi30k(name, given.data, folder, given.updates, given.seed)
            write(given.output, results)  # what is measured is kept
    write(given.output, results)
    return 0


def write(output: Path, results: dict[str, dict[str, Any]]) -> None:
    """Publishes one table of all that is measured."""
    header = ["sources and model", "hidden parts: sentences right, %", "Multi30k test 2016: BLEU", "processor minutes"]
    rows = []
    for name, (title, _, _) in MODELS.items():
        made, found = results["hidden"].get(name), results["multi30k"].get(name)
        if made or found:
            titled = title.format(first="German (A)", second="French (B)")
            cells = [
                made["exact_match"] if made else "",
                found["bleu"] if found else "",
                found["minutes"] if found else "",
            ]
            rows.append([titled, *cells])
    publish(output, results=results, table=markdown_table(header, rows))


def hidden(draws: random.Random) -> dict[str, str]:
    """A sentence of coloured shapes: source A drops one bit of each word, source B another.

    A word has four bits. A does not say the last bit of the shape, nor B the last bit of the colour.
    """
    words = [(draws.randrange(4), draws.randrange(4)) for _ in range(draws.randint(*LENGTHS))]
    return {
        "source": " ".join(f"a{shape // 2}{colour}" for shape, colour in words),
        "second": " ".join(f"b{shape}{colour // 2}" for shape, colour in words),
        "target": " ".join(f"{COLOURS[colour]} {SHAPES[shape]}" for shape, colour in words),
    }


def settings(name: str, text: dict[str, Any], metrics: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The task and the model of a name."""
    _, reads, options = MODELS[name]
    sources = {"sources": {"second": text}} if reads == BOTH else {}
    task = {"class": "generation", "source": text, **sources, "target": text, "metrics": metrics}
    return task, {"class": "multi_source", "bidirectional": True, **options}


def on_hidden(
    name: str, train: list[dict[str, str]], test: list[dict[str, str]], folder: Path, steps: int, seed: int
) -> dict[str, Any]:
    """Trains and tests a model on sentences with hidden parts."""
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    task, model = settings(name, {"class": "text", "tokeniser": "word"}, ["exact_match", "token_accuracy"])
    started = time.process_time()
    run = saccade.train(
        task=task,
        model={**model, "embedding_dim": 32, "hidden_dim": 64, "num_layers": 1},
        data=[seen(name, row) for row in train],
        trainer={
            "max_steps": steps,
            "batch_tokens": 1600,
            "learning_rate": 5e-3,
            "schedule": {"class": "cosine", "warmup": 50},
            "clip_norm": 1.0,
            "validate_every": max(1, steps // 3),
            "metric": "exact_match",
            "seed": seed,
        },
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    figures = run.evaluate([seen(name, row) for row in test], beam=1).figures
    return {"minutes": minutes, **{metric: figure.value for metric, figure in figures.items()}}


def seen(name: str, row: dict[str, str]) -> dict[str, str]:
    """What a model sees of an example: both sources, or one."""
    if name == "second":
        return {"source": row["second"], "target": row["target"]}
    return row if MODELS[name][1] == BOTH else {"source": row["source"], "target": row["target"]}


def on_multi30k(name: str, data: Path, folder: Path, updates: int, seed: int) -> dict[str, Any]:
    """Trains and tests a model on Multi30k; all models see the same number of sentences."""
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    languages = {"first": ["de"], "second": ["fr"]}.get(name, ["de", "fr"])
    files = {
        split: ",".join(text(data, prefix, each) for each in [*languages, "en"]) for split, prefix in SPLITS.items()
    }
    words = {"class": "text", "tokeniser": {"class": "bpe", "vocab_size": 2000}, "max_length": 60}
    task, model = settings(name, words, ["bleu"])
    started = time.process_time()
    run = saccade.train(
        task={**task, "bleu_tokenize": "none"},  # the text is already tokenised
        model={
            **model,
            "embedding_dim": 128,
            "hidden_dim": 128,
            "num_layers": 1,
            "score": "additive",
            "input_feeding": False,
            "dropout": 0.3,
        },
        data={"train": files["train"], "valid": files["valid"]},
        trainer={
            "max_steps": updates,
            "batch_tokens": 640 * (len(languages) + 1),
            "learning_rate": 3e-3,
            "schedule": {"class": "cosine", "warmup": 50},
            "clip_norm": 1.0,
            "validate_every": max(1, updates // 4),
            "validate_examples": 200,
            "validate_options": {"beam": 1},
            "metric": "bleu",
            "seed": seed,
        },
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    figure = run.evaluate(files["test"], beam=5).figures["bleu"]
    return {"bleu": figure.value, "signature": figure.signature, "updates": updates, "minutes": minutes}


def text(folder: Path, prefix: str, language: str) -> str:
    """The file of one language, lower-cased, normalised and tokenised; gzipped or not."""
    name = f"{prefix}.lc.norm.tok.{language}"
    found = next((file for file in (folder / name, folder / f"{name}.gz") if file.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"{folder} has neither {name} nor {name}.gz.")
    return str(found)


if __name__ == "__main__":
    sys.exit(main())
