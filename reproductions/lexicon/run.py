"""Rare words with and without a lexicon.

Two corpora: a cipher, in which every word has one translation, words are as frequent as in Zipf's law, and every two
words are swapped; and the first pairs of Multi30k (English to German). The lexicon is learned from the training pairs
themselves by expectation maximisation. A rare word is one that occurs once or twice in the training targets.
"""

import argparse
import gzip
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.commands.lexicon import learned
from saccade.data.lexicons import write_lexicon
from saccade.data.tokenisers import WordTokeniser
from saccade.decoders.heads import LexiconHead
from saccade.interpretation.plots import plot_lines
from saccade.models import RNNSearch

FOLDER = Path(__file__).resolve().parent
RARE = 2
VALIDATED = 50  # pairs that choose between the weights of a run
MODES = ("none", "linear", "bias")
WORDS, LONGEST = 1000, 8  # of the cipher

Pair = tuple[str, str]


def main(arguments: list[str] | None = None) -> int:
    """Trains a model without a lexicon and two with one on each corpus, and measures rare words as they learn."""
    parser = make_parser(FOLDER, __doc__, seed=1)
    parser.add_argument("--data", type=Path, default=None, help="the folder of Multi30k; without it, only the cipher")
    parser.add_argument("--steps", type=int, default=1200, help="updates per model")
    parser.add_argument("--points", type=int, default=6, help="points of each learning curve")
    parser.add_argument("--pairs", type=int, default=3000, help="training pairs")
    parser.add_argument("--tests", type=int, default=200, help="test pairs")
    parser.add_argument("--size", type=int, default=64, help="units of the models")
    given = parser.parse_args(arguments)

    corpora = {"cipher": cipher(random.Random(given.seed), given.pairs + VALIDATED, given.tests)}
    if given.data is not None:
        corpora["multi30k"] = multi30k(given.data, given.pairs + VALIDATED, given.tests)
    given.output.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name, (pairs, test) in corpora.items():
        train, valid = pairs[:-VALIDATED], pairs[-VALIDATED:]
        lexicon = given.runs / f"{name}.tsv"
        lexicon.parent.mkdir(parents=True, exist_ok=True)
        split = WordTokeniser().split
        write_lexicon(lexicon, learned([(split(a), split(b)) for a, b in train], "hmm", rounds=5, top=10, least=0.01))
        for part, chosen in (("train", train), ("valid", valid)):
            lines = "".join(f"{source}\t{target}\n" for source, target in chosen)
            (given.runs / f"{name}-{part}.tsv").write_text(lines, encoding="utf-8")
        results[name] = {}
        for mode in MODES:
            started = time.process_time()
            folder = given.runs / f"{name}-{mode}"
            curve = fit(mode, lexicon, train, test, folder, given)
            results[name][mode] = {"curve": curve, "minutes": (time.process_time() - started) / 60}
        curves = {mode: found["curve"] for mode, found in results[name].items()}
        drawn = {mode: ([e["step"] for e in each], [e["rare"] for e in each]) for mode, each in curves.items()}
        plot_lines(drawn, given.output / f"{name}.png", x="updates", y="rare words right, %")
    write(results, given.output)
    return 0


def cipher(generator: random.Random, pairs: int, tests: int) -> tuple[list[Pair], list[Pair]]:
    """Sentences of words with Zipf's frequencies, and their translations, every two of them swapped."""
    key = generator.sample(range(WORDS), WORDS)
    weights = [1 / rank for rank in range(1, WORDS + 1)]

    def pair() -> Pair:
        words = generator.choices(range(WORDS), weights, k=generator.randint(3, LONGEST))
        order = [place ^ 1 if place ^ 1 < len(words) else place for place in range(len(words))]
        return " ".join(f"s{word}" for word in words), " ".join(f"t{key[words[place]]}" for place in order)

    return [pair() for _ in range(pairs)], [pair() for _ in range(tests)]


def multi30k(folder: Path, pairs: int, tests: int) -> tuple[list[Pair], list[Pair]]:
    """The first training pairs and test pairs, English to German."""

    def read(split: str, most: int) -> list[Pair]:
        sides = [gzip.decompress((folder / f"{split}.{side}.gz").read_bytes()) for side in ("en", "de")]
        lines = [[line.strip() for line in side.decode().split("\n")[:most]] for side in sides]
        return list(zip(*lines, strict=True))

    return read("train", pairs), read("test_2016_flickr", tests)


def fit(
    mode: str, lexicon: Path, train: Sequence[Pair], test: Sequence[Pair], folder: Path, given: argparse.Namespace
) -> list[dict[str, float]]:
    """Trains one model, with the same settings for all, and measures it on the way."""
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    size = given.size
    head = "linear" if mode == "none" else partial(LexiconHead, mode=mode, entries=10)
    curve = []
    for point in range(1, given.points + 1):
        steps = given.steps * point // given.points
        if point == 1:
            run = saccade.train(
                task={
                    "source": {"class": "text", "tokeniser": "word"},
                    "metrics": ["token_accuracy"],
                    **({} if mode == "none" else {"lexicon": str(lexicon)}),
                },
                model=partial(RNNSearch, embedding_dim=size, hidden_dim=size, cell="fast", dropout=0.2, head=head),
                data={split: str(lexicon.with_name(f"{lexicon.stem}-{split}.tsv")) for split in ("train", "valid")},
                trainer={
                    "max_steps": steps,
                    "batch_tokens": 1024,
                    "learning_rate": 2e-3,
                    "clip_norm": 1.0,
                    "validate_every": max(1, given.steps),
                    "validate_options": {"beam": 1},
                    "log_every": 100,
                    "seed": given.seed,
                },
                output=folder,
            )
        else:
            run = saccade.train(resume=folder, overrides={"trainer.max_steps": str(steps)})
        curve.append({"step": steps, **measured(run, train, test)})
    return curve


def measured(run: saccade.Run, train: Sequence[Pair], test: Sequence[Pair]) -> dict[str, float]:
    """The percentage of target words that are written, in any order: of all, and of those that are rare."""
    split = WordTokeniser().split
    counts = Counter(word for _, target in train for word in split(target))
    answers = run.predict([source for source, _ in test], beam=1)
    right, total = {"all": 0, "rare": 0}, {"all": 0, "rare": 0}
    for (_, target), answer in zip(test, answers, strict=True):
        wanted, said = Counter(split(target)), Counter(split(answer.text))
        for kind in right:
            chosen = Counter({word: n for word, n in wanted.items() if kind == "all" or 0 < counts[word] <= RARE})
            total[kind] += chosen.total()
            right[kind] += (chosen & said).total()
    return {kind: 100.0 * right[kind] / max(1, total[kind]) for kind in right} | {"rare_words": float(total["rare"])}


def write(results: dict[str, Any], output: Path) -> None:
    """The table of the last points."""
    rows = []
    for name, modes in results.items():
        for mode, found in modes.items():
            last = found["curve"][-1]
            rows.append([name, mode, last["rare"], last["all"], int(last["rare_words"]), found["minutes"]])
    header = ["corpus", "lexicon", "rare words right, %", "words right, %", "rare words tested", "processor minutes"]
    publish(output, results=results, table=markdown_table(header, rows))


if __name__ == "__main__":
    sys.exit(main())
