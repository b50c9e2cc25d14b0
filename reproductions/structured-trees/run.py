"""Formulas from prefix to infix notation, with no attention, simple attention and trees in the encoder.

The encoder is a table of embeddings, each concatenated with what its symbol reads from the others. The three models
differ in how symbols read: not at all, by a softmax over all symbols, or from the soft parent in a tree over the whole
formula.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.data.special import EOS
from saccade.data.special import NAMES as SPECIAL
from saccade.interpretation.plots import plot_attention, plot_lines
from saccade.models import Kim

FOLDER = Path(__file__).resolve().parent
ROOT = "$"
NUMBERS, OPERATORS = range(21), "+*"
FEWEST, MOST = 2, 4  # expressions in a parenthesis
NESTED = 0.25  # probability that an expression is a parenthesis where a number is allowed
TRAINED, TESTED = (2, 3, 4), (2, 3, 4, 5, 6)  # depths
DRAWN = 3  # the depth of the plotted formula

SIZES = {"embedding_dim": 50, "hidden_dim": 100, "parser_dim": 50, "input_feeding": True}
MODELS = {
    "none": partial(Kim, **SIZES, selection=None),
    "simple": partial(Kim, **SIZES, selection="softmax"),
    "structured": partial(Kim, **SIZES, selection="projective_tree"),
}
NAMES = {"none": "no attention", "simple": "simple attention", "structured": "structured attention"}
PUBLISHED = {
    "none": (7.6, 4.1, 2.8, 2.1, 1.5),
    "simple": (87.4, 49.6, 23.3, 15.0, 8.5),
    "structured": (99.2, 87.0, 64.5, 30.8, 18.2),
}
"""Kim et al. (2017), depths 2 to 6."""

Formula = Any  # an int, or an operator and a tuple of formulas
Pair = tuple[str, str]
Depths = dict[int, list[Pair]]


def main(arguments: list[str] | None = None) -> int:
    """Trains the models, two at a time, and writes the table, plot and trees."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--only", choices=MODELS, help="train only this model, and write its results next to its run")
    parser.add_argument("--processes", type=int, default=2, help="models to train at once, with one thread each")
    parser.add_argument("--steps", type=int, default=2000, help="updates per model")
    parser.add_argument("--pairs", type=int, default=5_000, help="training formulas per depth")
    parser.add_argument("--tests", type=int, default=200, help="test formulas per depth")
    given = parser.parse_args(arguments)

    started = time.monotonic()
    train, valid, test = make_data(random.Random(given.seed), given.pairs, given.tests)
    if given.only is not None:
        fit(given.only, train, valid, test, steps=given.steps, seed=given.seed, runs=given.runs)
        return 0
    options = [f"--{name}={getattr(given, name)}" for name in ("runs", "steps", "pairs", "tests", "seed")]
    with ThreadPoolExecutor(given.processes) as threads:  # the longest training first
        codes = list(threads.map(partial(fit_apart, options), reversed(given.models)))
    if any(codes):
        return 1
    results = {name: json.loads((given.runs / f"{name}.json").read_text()) for name in given.models}
    given.output.mkdir(parents=True, exist_ok=True)
    draw({name: saccade.load(given.runs / name) for name in given.models}, test[DRAWN], given.output / "trees.png")
    write(results, tokens(train, test), (time.monotonic() - started) / 60, given.output)
    return 0


def make_formula(generator: random.Random, depth: int) -> Formula:
    """A random formula with parentheses nested to this depth; 0 is a number."""
    if depth == 0:
        return generator.choice(NUMBERS)
    count = generator.randint(FEWEST, MOST)
    depths = [generator.randint(1, depth - 1) if depth > 1 and generator.random() < NESTED else 0 for _ in range(count)]
    depths[generator.randrange(count)] = depth - 1
    return generator.choice(OPERATORS), tuple(make_formula(generator, inner) for inner in depths)


def prefix(formula: Formula) -> list[str]:
    """The symbols of a formula in prefix notation."""
    if isinstance(formula, int):
        return [str(formula)]
    operator, inner = formula
    return ["(", operator, *(symbol for part in inner for symbol in prefix(part)), ")"]


def infix(formula: Formula, *, outermost: bool = True) -> list[str]:
    """The symbols of a formula in infix notation; the outermost needs no parentheses."""
    if isinstance(formula, int):
        return [str(formula)]
    operator, (first, *others) = formula
    symbols = infix(first, outermost=False)
    for part in others:
        symbols += [operator, *infix(part, outermost=False)]
    return symbols if outermost else ["(", *symbols, ")"]


def make_data(generator: random.Random, pairs: int, tests: int) -> tuple[Depths, Depths, Depths]:
    """Pairs for training, validation and test by depth, without repeated formulas."""
    seen = set()

    def make(depth: int) -> Pair:
        while True:
            formula = make_formula(generator, depth)
            if formula not in seen:
                seen.add(formula)
                return " ".join([ROOT, *prefix(formula)]), " ".join(infix(formula))

    counts = ((TRAINED, pairs), (TRAINED, min(100, pairs)), (TESTED, tests))
    train, valid, test = ({depth: [make(depth) for _ in range(count)] for depth in depths} for depths, count in counts)
    return train, valid, test


def fit_apart(options: Sequence[str], name: str) -> int:
    """Trains one model in a single-threaded process; returns the exit code."""
    command = [sys.executable, str(Path(__file__).resolve()), *options, f"--only={name}"]
    folders = [str(FOLDER.parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(folders)}
    return subprocess.run(command, env=environment, check=False).returncode


def fit(name: str, train: Depths, valid: Depths, test: Depths, *, steps: int, seed: int, runs: Path) -> None:
    """Trains one model, with the same settings for all, and writes its results next to its run."""
    shutil.rmtree(runs / name, ignore_errors=True)  # from an earlier run
    started = time.monotonic()
    run = saccade.train(
        task={
            "source": {"class": "text", "tokeniser": "pretokenised"},
            "metrics": ["length_to_failure", "exact_match"],
        },
        model=MODELS[name],
        data={"train": together(train), "valid": together(valid)},
        trainer={
            "max_steps": steps,
            "batch_tokens": 2048,
            "learning_rate": 5e-3,
            "schedule": {"class": "cosine", "warmup": min(100, steps)},
            "validate_every": max(1, steps // 10),
            "validate_options": {"beam": 1},
            "metric": "length_to_failure",
            "log_every": 200,
            "seed": seed,
        },
        output=runs / name,
    )
    minutes = (time.monotonic() - started) / 60
    processor = time.process_time() / 60
    figures = {depth: run.evaluate(pairs, beam=1).figures for depth, pairs in test.items()}
    result = {
        "parameters": sum(weights.numel() for weights in run.model.parameters()),
        "minutes": minutes,
        "processor_minutes": processor,
        "depths": {
            depth: {metric: figure.value for metric, figure in found.items()} for depth, found in figures.items()
        },
    }
    (runs / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def together(depths: Depths) -> list[Pair]:
    """The pairs of all depths."""
    return [pair for pairs in depths.values() for pair in pairs]


def draw(runs: dict[str, saccade.Run], pairs: Sequence[Pair], path: Path) -> None:
    """Plots what each symbol of a formula reads: rows read from columns."""
    source = min((source for source, _ in pairs), key=lambda text: abs(len(text.split()) - 24))
    symbols = [*source.split(), SPECIAL[EOS]]
    drawings = {}
    for name, run in runs.items():
        with saccade.record(run.model) as trace:
            run.predict([source], beam=1)
        if "encoder.attention" in trace:
            drawings[NAMES[name]] = (trace["encoder.attention"].weights[0, 0], symbols, symbols)
    if drawings:
        plot_attention(list(drawings.values()), path, names=list(drawings))


def tokens(train: Depths, test: Depths) -> dict[int, list[int]]:
    """For each depth, the number of source symbols of the shortest, the median and the longest formula."""
    found = {}
    for depth, pairs in {**test, **train}.items():
        lengths = sorted(len(source.split()) for source, _ in pairs)
        found[depth] = [lengths[0], lengths[len(lengths) // 2], lengths[-1]]
    return dict(sorted(found.items()))


def write(results: dict[str, Any], lengths: dict[int, list[int]], minutes: float, output: Path) -> None:
    """Writes a row of the table per depth, and a curve of the plot per model."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for name, result in results.items():
        lines[NAMES[name]] = (list(TESTED), [result["depths"][str(depth)]["length_to_failure"] for depth in TESTED])
        lines[f"{NAMES[name]}, published"] = (list(TESTED), list(PUBLISHED[name]))
    plot_lines(lines, output / "depths.png", x="depth", y="length to failure, %")
    header = ["depth", "symbols: shortest, median, longest"]
    for name in results:
        header += [NAMES[name], "published"]
    rows: list[list[object]] = []
    for depth in TESTED:
        row: list[object] = [
            str(depth) if depth in TRAINED else f"{depth} (unseen)",
            ", ".join(map(str, lengths[depth])),
        ]
        for name, result in results.items():
            row += [result["depths"][str(depth)]["length_to_failure"], PUBLISHED[name][TESTED.index(depth)]]
        rows.append(row)
    whole = [
        [NAMES[name], result["parameters"], result["minutes"], result["processor_minutes"]]
        + [result["depths"][str(depth)]["exact_match"] for depth in TRAINED]
        for name, result in results.items()
    ]
    sizes = [
        "model",
        "parameters",
        "minutes",
        "of a processor",
        *(f"whole formulas right, depth {depth}" for depth in TRAINED),
    ]
    table = markdown_table(header, rows) + "\n" + markdown_table(sizes, whole)
    publish(output, results={"models": results, "symbols": lengths, "minutes": minutes}, table=table)


if __name__ == "__main__":
    sys.exit(main())
