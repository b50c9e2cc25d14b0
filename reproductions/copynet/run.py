"""Copying by rules: the synthetic data of CopyNet.

A rule is a pattern of symbols with variables, such as `a b x c d y e f -> g h x m`; every instance fills the variables
with random symbols. One model learns all rules of all five types, and is tested on other instances of the same rules.
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
from saccade.models import Cho, CopyNet, RNNSearch

FOLDER = Path(__file__).resolve().parent
SYMBOLS = 1000
FIXED = (2, 6)  # symbols between two variables, from and to
FILLED = (1, 15)  # symbols of a variable
TYPES = {"x → ∅": ("x", ""), "x → x": ("x", "x"), "x → xx": ("x", "xx"), "xy → x": ("xy", "x"), "xy → xy": ("xy", "xy")}

MODELS = {
    "encoder-decoder": partial(Cho, embedding_dim=64, hidden_dim=200, maxout_dim=64),
    "rnnsearch": partial(RNNSearch, embedding_dim=64, hidden_dim=128, maxout_dim=64),
    "copynet": partial(CopyNet, embedding_dim=64, hidden_dim=128, score="coverage"),
}
PUBLISHED = {
    "encoder-decoder": (100.0, 3.3, 1.5, 2.9, 0.0),
    "rnnsearch": (99.0, 69.4, 22.3, 40.7, 2.6),
    "copynet": (97.3, 93.7, 98.3, 68.2, 77.5),
}
"""Table 1 of the paper, in per cent."""


class Rule(NamedTuple):
    """What stands on both sides; "x" and "y" are variables, everything else is a symbol."""

    source: list[str]
    target: list[str]


class Instance(NamedTuple):
    """A text of the left side, of the right side, and the type of its rule."""

    source: str
    target: str
    kind: str


def main(arguments: list[str] | None = None) -> int:
    """Trains the models one after another, and writes their accuracy on each type of rule."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--steps", type=int, default=1500, help="updates per model")
    parser.add_argument("--rules", type=int, default=10, help="rules of each type; the paper has 40")
    parser.add_argument("--instances", type=int, default=100, help="training instances of each rule")
    parser.add_argument("--tests", type=int, default=20, help="test instances of each rule")
    given = parser.parse_args(arguments)

    generator = random.Random(given.seed)
    rules = [(kind, make_rule(generator, *sides)) for kind, sides in TYPES.items() for _ in range(given.rules)]
    train, valid, test = (
        [make_instance(generator, kind, rule) for kind, rule in rules for _ in range(count)]
        for count in (given.instances, 1, given.tests)
    )
    generator.shuffle(train)
    results: dict[str, Any] = {}
    for name in given.models:
        folder = given.runs / name
        shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
        started = time.process_time()
        run = fit(name, train, valid, steps=given.steps, seed=given.seed, folder=folder)
        minutes = (time.process_time() - started) / 60
        parameters = sum(parameter.numel() for parameter in run.model.parameters())
        results[name] = {"minutes": minutes, "parameters": parameters, "right": measured(run, test)}
    write(results, given.output)
    return 0


def make_rule(generator: random.Random, left: str, right: str) -> Rule:
    """A rule with these variables on its sides, and symbols before, between and after them."""

    def side(variables: str) -> list[str]:
        parts = [[symbol(generator) for _ in range(generator.randint(*FIXED))] for _ in range(len(variables) + 1)]
        found = parts[0]
        for variable, part in zip(variables, parts[1:], strict=True):
            found = [*found, variable, *part]
        return found

    return Rule(side(left), side(right))


def make_instance(generator: random.Random, kind: str, rule: Rule) -> Instance:
    """The rule with random symbols for its variables."""
    filled = {name: [symbol(generator) for _ in range(generator.randint(*FILLED))] for name in "xy"}
    source, target = (" ".join(s for part in side for s in filled.get(part, [part])) for side in rule)
    return Instance(source, target, kind)


def symbol(generator: random.Random) -> str:
    """One of the symbols."""
    return f"s{generator.randrange(SYMBOLS)}"


def fit(
    name: str, train: Sequence[Instance], valid: Sequence[Instance], *, steps: int, seed: int, folder: Path
) -> saccade.Run:
    """Trains one model, with the same settings for all."""
    return saccade.train(
        task={
            "source": {"class": "text", "tokeniser": "pretokenised"},
            "joint": True,
            "copying": name == "copynet",
            "metrics": ["exact_match"],
        },
        model=MODELS[name],
        data={"train": [each[:2] for each in train], "valid": [each[:2] for each in valid]},
        trainer={
            "max_steps": steps,
            "batch_tokens": 1536,
            "learning_rate": 2e-3,
            "schedule": {"class": "cosine", "warmup": min(100, steps)},
            "clip_norm": 1.0,
            "validate_every": max(1, steps // 4),
            "validate_options": {"beam": 1},
            "log_every": 100,
            "seed": seed,
        },
        output=folder,
    )


def measured(run: saccade.Run, test: Sequence[Instance]) -> dict[str, float]:
    """The percentage of test instances of each type that are written exactly, by greedy search."""
    answers = run.predict([each.source for each in test], beam=1)
    right: dict[str, list[bool]] = {kind: [] for kind in TYPES}
    for instance, answer in zip(test, answers, strict=True):
        right[instance.kind].append(answer.text == instance.target)
    return {kind: 100.0 * sum(found) / len(found) for kind, found in right.items()}


def write(results: dict[str, Any], output: Path) -> None:
    """The table: each type's accuracy, scaled, beside the paper's."""
    rows = []
    for name, found in results.items():
        cells = [
            f"{found['right'][kind]:.1f} ({paper:.1f})" for kind, paper in zip(TYPES, PUBLISHED[name], strict=True)
        ]
        rows.append([name, *cells, found["parameters"], found["minutes"]])
    header = ["model", *(f"{kind}, scaled (paper)" for kind in TYPES), "parameters", "processor minutes"]
    publish(output, results=results, table=markdown_table(header, rows))


if __name__ == "__main__":
    sys.exit(main())
