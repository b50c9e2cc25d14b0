"""Multi30k, English to German: BLEU of RNNsearch and a tiny Transformer, and how it grows during training."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.interpretation.plots import plot_lines
from saccade.training import read_metrics

FOLDER = Path(__file__).resolve().parent
WANTED = 33.0
LIMIT = 90.0  # minutes of training
MODELS = {
    "rnnsearch": "RNNsearch",
    "transformer": "Transformer, d=128, 4+4 layers",
    "rnnsearch-small": "`translation/rnnsearch-small` as shipped",
    "transformer-small": "`translation/transformer-small` as shipped",
}


def main(arguments: list[str] | None = None) -> int:
    """Trains models that are not trained yet, evaluates them, and writes the table and plot."""
    parser = make_parser(FOLDER, __doc__, models=MODELS)
    parser.add_argument("--data", type=Path, default=os.environ.get("MULTI30K"), help="the folder with the texts")
    parser.add_argument("--steps", type=int, help="updates; by default, as in the configuration")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs the Multi30k texts. Set --data or MULTI30K to their folder.", file=sys.stderr)
        return 0
    try:
        files = {split: pair(given.data, split) for split in ("train", "val", "test_2016_flickr")}
    except FileNotFoundError as error:
        parser.error(str(error))

    kept = given.output / "results.json"
    results = json.loads(kept.read_text()) if kept.is_file() else {}
    for name in given.models:
        own = FOLDER / f"{name}.yaml"
        config = own if own.is_file() else f"translation/{name}"
        run = trained(given.runs / name, config, files, steps=given.steps)
        results[name] = measured(run, files["test_2016_flickr"])
    results = {name: results[name] for name in MODELS if name in results}
    given.output.mkdir(parents=True, exist_ok=True)
    curves = {MODELS[name]: tuple(zip(*result["curve"], strict=True)) for name, result in results.items()}
    plot_lines(curves, given.output / "bleu.png", x="minutes of training", y="BLEU, validation, greedy")
    header = ["model", "parameters", "minutes", "steps", f"validation, greedy, within {LIMIT:.0f} minutes"]
    header += ["test 2016, beam 5", "wanted"]
    rows = [
        [MODELS[name], r["parameters"], r["minutes"], r["steps"], r["best_in_time"], r["test"], f"≥ {WANTED:.0f}"]
        for name, r in results.items()
    ]
    publish(given.output, results=results, table=markdown_table(header, rows))
    return 0


def pair(folder: Path, split: str) -> str:
    """The English and German files of one split, lower-cased, normalised and tokenised; gzipped or not."""
    found = []
    for language in ("en", "de"):
        name = f"{split}.lc.norm.tok.{language}"
        files = [folder / name, folder / f"{name}.gz"]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            raise FileNotFoundError(f"{folder} has neither {name} nor {name}.gz.")
        found.append(str(file))
    return ",".join(found)


def trained(folder: Path, config: Path | str, files: dict[str, str], *, steps: int | None) -> saccade.Run:
    """The run in this folder: loaded, resumed or trained from scratch."""
    if (folder / "model.safetensors").is_file():
        return saccade.load(folder)
    if (folder / "config.yaml").is_file():
        return saccade.train(resume=folder)
    data = {"train": files["train"], "valid": files["val"]}
    task = {"metrics": ["bleu"], "bleu_tokenize": "none"}  # the text is already tokenised
    trainer = {} if steps is None else {"max_steps": steps, "max_minutes": None}
    return saccade.train(config, task=task, data=data, trainer=trainer, output=folder)


def measured(run: saccade.Run, test: str) -> dict[str, Any]:
    """BLEU on the test set, and the validation results over time."""
    validations = [record for record in read_metrics(run.folder / "metrics.jsonl") if record["split"] == "valid"]
    curve = [(record["seconds"] / 60, record["bleu"]) for record in validations]
    bleu = run.evaluate(test, beam=5).figures["bleu"]
    return {
        "parameters": sum(weights.numel() for weights in run.model.parameters()),
        "minutes": curve[-1][0],
        "steps": validations[-1]["step"],
        "best_in_time": max((bleu for minutes, bleu in curve if minutes <= LIMIT), default=0.0),
        "test": bleu.value,
        "signature": bleu.signature,
        "curve": curve,
    }


if __name__ == "__main__":
    sys.exit(main())
