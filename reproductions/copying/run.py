"""Copying in real data: SQL, code, sentences about restaurants and subjects of e-mails, with and without copying.

Every corpus trains the same encoder-decoder with attention twice: one says words of the vocabulary alone, the other can
also copy those of its source, by a gate as in the pointer-generator. Rare words are left out of the vocabulary.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

import saccade
from reproductions.arguments import make_parser
from reproductions.copying.corpora import Splits, aeslc, django, e2e, text2sql
from reproductions.report import earlier, markdown_table, publish
from saccade.data.special import UNK
from saccade.fields.text import texts_of
from saccade.models import RNNSearch

FOLDER = Path(__file__).resolve().parent
HEADS = {"no": "linear", "yes": "pointer_generator"}
"""Whether it copies, and the head that does."""


class Corpus(NamedTuple):
    """How a corpus is read, learned and judged.

    Args:
        figure: what chooses the weights and is shown beside exact matches.
        published: a published figure, of another scale.
    """

    title: str
    read: Callable[[Path], Splits]
    tokeniser: dict[str, Any]
    figure: str
    steps: int
    published: str = ""


def pretokenised(times: int) -> dict[str, Any]:
    """Tokens that occur so many times."""
    return {"class": "pretokenised", "min_frequency": times}


CORPORA = {
    "geography": Corpus("text to SQL, geography", text2sql("geography"), pretokenised(10), "exact_match", 1500),
    "django": Corpus(
        "text to code, Django", django, pretokenised(5), "exact_match", 1500, "exact 62.3 (LPN), not scaled"
    ),
    "e2e": Corpus(
        "meaning to text, E2E",
        e2e,
        {"class": "word", "min_frequency": 500},
        "bleu",
        800,
        "BLEU 65.9 (TGen), not scaled",
    ),
    "aeslc": Corpus(
        "subjects of e-mails, AESLC", aeslc, {"class": "word", "vocab_size": 5000, "lowercase": True}, "rouge_l", 800
    ),
    "advising": Corpus("text to SQL, advising", text2sql("advising"), pretokenised(10), "exact_match", 1500),
}


def main(arguments: list[str] | None = None) -> int:
    """Trains and tests what has not been, and writes the table after each model."""
    parser = make_parser(FOLDER, __doc__, seed=1)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("COPYING"),
        help="folder with text2sql/, django/, e2e-nlg/ and aeslc/",
    )
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--steps", type=int, help="updates per model, instead of each corpus's own number")
    parser.add_argument("--size", type=int, default=128, help="units of the models")
    parser.add_argument("--tests", type=int, help="the most test examples; by default, all")
    given = parser.parse_args(arguments)
    if given.data is None:
        print(
            "Skipped: this needs a folder (--data or COPYING) with text2sql/geography.json.gz and advising.json.gz, "
            "django/all.anno.gz and all.code.gz, e2e-nlg/e2e-dataset.zip, or aeslc/train.jsonl.gz, dev and test.",
            file=sys.stderr,
        )
        return 0
    torch.set_num_threads(1)
    results: dict[str, Any] = earlier(given.output)
    for name in given.corpora:
        try:
            splits = CORPORA[name].read(given.data)
        except FileNotFoundError as error:
            print(f"{CORPORA[name].title} is skipped: there is no {error.filename}.", file=sys.stderr)
            continue
        found = results.setdefault(name, {})
        for copying in HEADS:
            if copying not in found:
                found[copying] = measured(name, copying, splits, given)
                write({each: results[each] for each in CORPORA if each in results}, given.output)
    return 0


def measured(name: str, copying: str, splits: Splits, given: argparse.Namespace) -> dict[str, Any]:
    """Trains and tests one model."""
    folder = given.runs / f"{name}-{copying}"
    shutil.rmtree(folder, ignore_errors=True)  # what an interrupted training left
    corpus = CORPORA[name]
    steps = given.steps or corpus.steps
    started = time.process_time()
    run = fit(corpus, copying, splits, steps=steps, size=given.size, seed=given.seed, folder=folder)
    minutes = (time.process_time() - started) / 60
    test = splits.test[: given.tests]
    figures = run.evaluate(test, beam=1).figures
    tokeniser = run.task.targets["target"].tokeniser  # type: ignore[attr-defined]
    units = [unit for example in test for unit, _ in tokeniser.units(texts_of(example["target"])[0])]
    return {
        **{key: figure.value for key, figure in figures.items()},
        "unknown": sum(tokeniser.id_of(unit) == UNK for unit in units),
        "words": len(units),
        "vocabulary": tokeniser.size,
        "train": len(splits.train),
        "test": len(test),
        "steps": steps,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "minutes": minutes,
    }


def fit(corpus: Corpus, copying: str, splits: Splits, *, steps: int, size: int, seed: int, folder: Path) -> saccade.Run:
    """One encoder-decoder, which copies or does not; everything else is the same."""
    return saccade.train(
        task={
            "source": {"class": "text", "tokeniser": corpus.tokeniser, "max_length": 120},
            "joint": True,
            "copying": copying == "yes",
            "metrics": list(dict.fromkeys([corpus.figure, "exact_match", "bleu", "rouge_l", "unknown_words"])),
            "bleu_tokenize": "none" if corpus.tokeniser["class"] == "pretokenised" else "13a",
        },
        model=partial(
            RNNSearch,
            embedding_dim=size,
            hidden_dim=size,
            query="state_and_token",
            cell="fast",
            readout_state="current",
            head=HEADS[copying],
            dropout=0.2,
        ),
        data={"train": splits.train, "valid": splits.valid},
        trainer={
            "max_steps": steps,
            "batch_tokens": 3072,
            "learning_rate": 2e-3,
            "schedule": {"class": "cosine", "warmup": min(100, steps)},
            "clip_norm": 1.0,
            "validate_every": max(1, steps // 2),
            "validate_examples": 100,
            "validate_options": {"beam": 1},
            "metric": corpus.figure,
            "log_every": 100,
            "seed": seed,
        },
        output=folder,
    )


def write(results: dict[str, Any], output: Path) -> None:
    """The table: each corpus with and without copying."""
    header = ["corpus, scaled", "copying", "exact, %", "BLEU", "ROUGE-L", "unknown words right, %", "unknown words"]
    header += ["updates", "parameters", "processor minutes", "published"]
    rows = [
        [
            CORPORA[name].title,
            copying,
            *(one[key] for key in ("exact_match", "bleu", "rouge_l", "unknown_words")),
            f"{one['unknown']:,} of {one['words']:,}",
            *(one[key] for key in ("steps", "parameters", "minutes")),
            CORPORA[name].published,
        ]
        for name, found in results.items()
        for copying, one in found.items()
    ]
    publish(output, results=results, table=markdown_table(header, rows))


if __name__ == "__main__":
    sys.exit(main())
