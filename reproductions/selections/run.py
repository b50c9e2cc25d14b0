"""Structured attention in translation: RNNsearch whose attention is softmax, sigmoid or a linear chain.

The configurations differ only in the selection: a distribution over words, each word independently, or segments of
words. The data are the English and German texts of Multi30k.
"""

import os
import shutil
import sys
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.multi30k.run import pair
from reproductions.report import markdown_table, publish
from saccade.evaluation import mean_blur
from saccade.interpretation.plots import plot_attention
from saccade.selections import LinearChain
from saccade.tasks import Answer
from saccade.training import read_metrics

FOLDER = Path(__file__).resolve().parent
SELECTIONS: dict[str, Any] = {
    "softmax": "softmax",
    "sigmoid": "sigmoid",  # not normalised, as in the authors' code
    "linear_chain": {"class": "linear_chain", "mass": 2.0},
}
NAMES = {"softmax": "softmax (simple)", "sigmoid": "sigmoid", "linear_chain": "linear chain (structured)"}
PUBLISHED = {"softmax": (12.6, 14.1), "sigmoid": (13.1, 13.8), "linear_chain": (14.6, 14.3)}
"""Kim et al. (2017): BLEU for Japanese to English, with characters and with words."""
DRAWN = 3  # the test sentence to plot


def main(arguments: list[str] | None = None) -> int:
    """Trains the models one after another, evaluates them, and writes the table and plot."""
    parser = make_parser(FOLDER, __doc__, seed=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("MULTI30K"), help="the folder with the texts")
    parser.add_argument("--selections", nargs="+", choices=SELECTIONS, default=list(SELECTIONS))
    parser.add_argument("--steps", type=int, help="updates; by default, as in the configuration")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs the Multi30k texts. Set --data or MULTI30K to their folder.", file=sys.stderr)
        return 0
    try:
        files = {split: pair(given.data, split) for split in ("train", "val", "test_2016_flickr")}
    except FileNotFoundError as error:
        parser.error(str(error))

    results, drawings = {}, []
    for name in given.selections:
        folder = given.runs / name
        shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
        started = time.process_time()
        run = fit(name, files, steps=given.steps, seed=given.seed, folder=folder)
        minutes = (time.process_time() - started) / 60
        predictions, figures = measured(run, files["test_2016_flickr"])
        results[name] = {"minutes": minutes, **figures}
        print(name, results[name], flush=True)
        drawn = predictions[min(DRAWN, len(predictions) - 1)]
        assert drawn.weights is not None, "RNNsearch has attention weights"
        shares = drawn.weights / drawn.weights.sum(dim=-1, keepdim=True)  # a chain's weights are rescaled anyway
        drawings.append((shares, drawn.attention.keys, drawn.attention.queries))
    given.output.mkdir(parents=True, exist_ok=True)
    plot_attention(drawings, given.output / "attention.png", names=[NAMES[name] for name in results])
    write(results, given.output)
    return 0


def fit(name: str, files: dict[str, str], *, steps: int | None, seed: int, folder: Path) -> saccade.Run:
    """Trains the configuration with this selection."""
    return saccade.train(
        FOLDER / "rnnsearch.yaml",
        model={"selection": SELECTIONS[name]},
        data={"train": files["train"], "valid": files["val"]},
        trainer={"seed": seed} | ({} if steps is None else {"max_steps": steps, "validate_every": steps}),
        output=folder,
    )


def measured(run: saccade.Run, test: str) -> tuple[list[Answer], dict[str, Any]]:
    """Predictions on the test set, with their metrics and statistics of the attention."""
    examples = list(run.plan.data.read(test, run.task.scored))
    predictions = run.predict(examples, beam=5)
    figures = run.task.score(predictions, examples)
    weights = [prediction.weights for prediction in predictions if prediction.weights is not None]
    records = read_metrics(run.folder / "metrics.jsonl")
    selection = run.model.get_submodule("decoder.attention.selection")
    return predictions, {
        "bleu": figures["bleu"].value,
        "signature": figures["bleu"].signature,
        "chrf": figures["chrf"].value,
        "blur": mean_blur(weights),
        "picked": fmean(total for matrix in weights for total in matrix.sum(dim=-1).tolist()),
        "validations": {record["step"]: record["bleu"] for record in records if record["split"] == "valid"},
        "transitions": selection.transitions.tolist() if isinstance(selection, LinearChain) else None,
        "parameters": sum(parameters.numel() for parameters in run.model.parameters()),
        "steps": records[-1]["step"],
    }


def write(results: dict[str, Any], output: Path) -> None:
    """Writes a row for each selection, with the published results."""
    header = ["selection", "BLEU, test 2016, beam 5", "chrF", "entropy of the weights, nats", "sum of the weights"]
    header += ["parameters", "processor minutes", "published, Ja-En: characters", "published, Ja-En: words"]
    rows = []
    for name, r in results.items():
        row = [NAMES[name], r["bleu"], r["chrf"], r["blur"], r["picked"], r["parameters"]]
        rows.append([*row, r["minutes"], *PUBLISHED[name]])
    publish(output, results=results, table=markdown_table(header, rows))


if __name__ == "__main__":
    sys.exit(main())
