"""Long sentences with and without attention.

The language is artificial: each word has one translation and a few possible successors, no word is repeated in a
sentence, and nouns move in front of their modifiers, whose order is reversed. Every model sees the same sentences,
none longer than `LONGEST`.
"""

import random
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.interpretation import align
from saccade.interpretation.plots import plot_attention, plot_lines
from saccade.models import Cho, RNNSearch, Sutskever
from saccade.scores import LocationAwareScore

FOLDER = Path(__file__).resolve().parent
WORDS, MODIFIERS, FOLLOWERS = 100, 30, 4  # the first thirty words are modifiers, the others nouns
LONGEST, TESTED = 15, 30  # maximum number of words in training and test sentences
BIN = 5  # words per row of the table

SEARCH = {"embedding_dim": 64, "hidden_dim": 128, "maxout_dim": 64, "cell": "fast"}
MODELS = {
    "cho": partial(Cho, embedding_dim=64, hidden_dim=172, maxout_dim=64),
    "sutskever": partial(Sutskever, embedding_dim=64, hidden_dim=200, num_layers=1),
    "rnnsearch": partial(RNNSearch, **SEARCH),
    "location": partial(
        RNNSearch,
        **SEARCH,
        score=partial(LocationAwareScore, query_dim=128, key_dim=256, hidden_dim=128, num_filters=8, width=11),
    ),
}
NAMES = {
    "cho": "Cho et al. 2014, one vector",
    "sutskever": "Sutskever et al. 2014, one vector",
    "rnnsearch": "RNNsearch, attention",
    "location": "RNNsearch that sees where it looked before",
}


class Language(NamedTuple):
    """The translation and the possible successors of each word."""

    dictionary: list[int]
    followers: list[list[int]]


class Pair(NamedTuple):
    """A sentence, its translation, and the source position of each word of the translation."""

    source: str
    target: str
    order: list[int]


def main(arguments: list[str] | None = None) -> int:
    """Trains the models one after another, evaluates them by length, and writes the table, plot and attention."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--steps", type=int, default=1000, help="updates per model")
    parser.add_argument("--pairs", type=int, default=60_000, help="training sentences")
    parser.add_argument("--tests", type=int, default=1_000, help="test sentences")
    given = parser.parse_args(arguments)

    generator = random.Random(given.seed)
    language = make_language(generator)
    train, valid, test = (
        [make_pair(generator, language, longest) for _ in range(count)]
        for count, longest in ((given.pairs, LONGEST), (min(200, given.pairs), LONGEST), (given.tests, TESTED))
    )
    given.output.mkdir(parents=True, exist_ok=True)
    results = {}
    for name in given.models:
        folder = given.runs / name
        shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
        started = time.monotonic()
        run = fit(name, train, valid, steps=given.steps, seed=given.seed, folder=folder)
        results[name] = {"minutes": (time.monotonic() - started) / 60, **measured(run, test)}
        if name in ("rnnsearch", "location"):
            draw(run, test, given.output / f"{name}.png")
    write(results, given.output)
    return 0


def make_language(generator: random.Random) -> Language:
    """A random language."""
    everything = range(WORDS)
    return Language(generator.sample(everything, WORDS), [generator.sample(everything, FOLLOWERS) for _ in everything])


def make_words(generator: random.Random, language: Language, length: int) -> list[int]:
    """A random sentence of `length` words."""
    words = [generator.randrange(WORDS)]
    while len(words) < length:
        new = [word for word in language.followers[words[-1]] if word not in words]
        words = [*words, generator.choice(new)] if new else [generator.randrange(WORDS)]  # or starts over
    return words


def make_pair(generator: random.Random, language: Language, longest: int) -> Pair:
    """A random sentence of 1 to `longest` words with its translation."""
    words = make_words(generator, language, generator.randint(1, longest))
    order: list[int] = []
    phrase: list[int] = []
    for place, word in enumerate(words):
        phrase.insert(0, place)
        if word >= MODIFIERS:  # a noun ends the phrase
            order += phrase
            phrase = []
    order += phrase
    target = [language.dictionary[words[place]] for place in order]
    return Pair(" ".join(f"s{word}" for word in words), " ".join(f"t{word}" for word in target), order)


def fit(name: str, train: Sequence[Pair], valid: Sequence[Pair], *, steps: int, seed: int, folder: Path) -> saccade.Run:
    """Trains one model, with the same settings for all."""
    return saccade.train(
        task={
            "source": {"class": "text", "tokeniser": "pretokenised"},
            "bleu_tokenize": "none",
            "metrics": ["bleu", "token_accuracy", "exact_match"],
        },
        model=MODELS[name],
        data={"train": [pair[:2] for pair in train], "valid": [pair[:2] for pair in valid]},
        trainer={
            "max_steps": steps,
            "batch_tokens": 2048,
            "learning_rate": 3e-3,
            "schedule": {"class": "cosine", "warmup": min(100, steps)},
            "validate_every": max(1, steps // 4),
            "validate_options": {"beam": 1},
            "log_every": 100,
            "seed": seed,
        },
        output=folder,
    )


def measured(run: saccade.Run, test: Sequence[Pair]) -> dict[str, Any]:
    """Metrics by the number of source words, and how often the translated word got the most attention."""
    evaluation = run.evaluate([pair[:2] for pair in test], by=BIN, beam=1)
    bins = [
        {"low": found.low, "high": found.high, "examples": found.examples}
        | {name: figure.value for name, figure in found.figures.items()}
        | {"alignment": alignment_accuracy(run, [p for p in test if found.low <= len(p.order) <= found.high])}
        for found in evaluation.by_length
    ]
    return {"parameters": sum(weights.numel() for weights in run.model.parameters()), "bins": bins}


def alignment_accuracy(run: saccade.Run, pairs: Sequence[Pair]) -> float | None:
    """The percentage of correctly translated words whose source word got the most attention."""
    hits = total = 0
    for pair, prediction in zip(pairs, run.predict([pair.source for pair in pairs], beam=1), strict=True):
        if prediction.weights is None:
            return None
        looked = {target: source for source, target in align(prediction.weights)}
        for place, (said, wanted) in enumerate(zip(prediction.text.split(), pair.target.split(), strict=False)):
            if said == wanted:
                total += 1
                hits += looked.get(place) == pair.order[place]
    return 100.0 * hits / max(1, total)


def draw(run: saccade.Run, test: Sequence[Pair], path: Path) -> None:
    """Plots the attention of RNNsearch in a sentence longer than any in training."""
    pair = next((pair for pair in test if len(pair.order) > LONGEST), test[0])
    prediction = run.predict([pair.source], beam=1)[0]
    assert prediction.weights is not None, "RNNsearch has attention weights"
    plot_attention([(prediction.weights, prediction.attention.keys, prediction.attention.queries)], path)


def write(results: dict[str, Any], output: Path) -> None:
    """Writes a row of the table per length bin, and a curve of the plot per model."""
    lines: dict[str, tuple[list[float], list[float]]] = {
        NAMES[name]: ([b["high"] for b in result["bins"]], [b["bleu"] for b in result["bins"]])
        for name, result in results.items()
    }
    lines["longest sentence in training"] = ([LONGEST, LONGEST], [0.0, 100.0])
    plot_lines(lines, output / "lengths.png", x="words in the source", y="BLEU")
    header = ["words", *(f"{NAMES[name]}: BLEU" for name in results), *(f"{name}: words right" for name in results)]
    columns = [*((name, "bleu") for name in results), *((name, "token_accuracy") for name in results)]
    looking = [name for name, result in results.items() if result["bins"][0]["alignment"] is not None]
    header += [f"{name}: looked at the right word" for name in looking]
    columns += [(name, "alignment") for name in looking]
    first = next(iter(results.values()))
    rows = []
    for i, found in enumerate(first["bins"]):
        unseen = " (unseen)" if found["low"] > LONGEST else ""
        rows.append([f"{found['low']} to {found['high']}{unseen}", *(results[n]["bins"][i][c] for n, c in columns)])
    sizes = [[NAMES[n], r["parameters"], r["minutes"]] for n, r in results.items()]
    table = markdown_table(header, rows) + "\n" + markdown_table(["model", "parameters", "minutes"], sizes)
    publish(output, results=results, table=table)


if __name__ == "__main__":
    sys.exit(main())
