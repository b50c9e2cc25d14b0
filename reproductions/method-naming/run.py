"""Names of methods from their bodies: the Python standard library.

Every function of the standard library is an example: the tokens of its body, identifiers split into their parts, and
the parts of its name. Functions of whole modules are held out for the test. Three models: convolutional attention,
convolutional attention that copies, and RNNsearch with additive attention.
"""

import ast
import io
import keyword
import random
import re
import shutil
import sys
import sysconfig
import textwrap
import time
import tokenize
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.report import earlier, markdown_table, publish
from saccade.models import ConvolutionalAttention, RNNSearch

FOLDER = Path(__file__).resolve().parent
SHORTEST, LONGEST = 10, 120  # tokens of a body
PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

MODELS: dict[str, Any] = {
    "convolutional": partial(
        ConvolutionalAttention, first_channels=8, channels=8, widths=(24, 29, 10), copies=False, dropout=0.2
    ),
    "convolutional, copying": partial(ConvolutionalAttention, dropout=0.2),
    "additive": partial(RNNSearch, embedding_dim=128, hidden_dim=96, cell="fast", dropout=0.2),
}
PUBLISHED = {"convolutional": 43.6, "convolutional, copying": 44.7, "additive": 33.6}
"""F1 of the best name over ten Java projects, in the paper (unconfirmed)."""

Example = tuple[str, str]


def main(arguments: list[str] | None = None) -> int:
    """Trains the models that have not been, and writes F1 and the share of unknown parts that are right."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--library", type=Path, default=Path(sysconfig.get_paths()["stdlib"]), help="Python files")
    parser.add_argument("--examples", type=int, default=6000, help="the most functions")
    parser.add_argument("--steps", type=int, default=1500, help="updates per model")
    given = parser.parse_args(arguments)

    train, test = split(given.library, given.examples, random.Random(given.seed))
    results: dict[str, Any] = {"models": {}, **earlier(given.output)}
    results["examples"] = {"train": len(train), "test": len(test)}
    for name in given.models:
        if name in results["models"]:
            continue
        folder = given.runs / name.replace(", ", "-")
        shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
        started = time.process_time()
        run = fit(name, train, test, steps=given.steps, seed=given.seed, folder=folder)
        minutes = (time.process_time() - started) / 60
        figures = run.task.evaluate(run.model, [{"source": a, "target": b} for a, b in test], beam=1)
        parameters = sum(parameter.numel() for parameter in run.model.parameters())
        results["models"][name] = {**figures, "parameters": parameters, "minutes": minutes}
        write(results, given.output)
    return 0


def split(library: Path, most: int, generator: random.Random) -> tuple[list[Example], list[Example]]:
    """Functions for training and test, which come from different files."""
    files = sorted(path for path in library.rglob("*.py") if not {"site-packages", "test", "tests"} & {*path.parts})
    generator.shuffle(files)
    train: list[Example] = []
    test: list[Example] = []
    for number, path in enumerate(files):
        if len(train) + len(test) >= most:
            break
        (test if number % 10 == 0 else train).extend(functions(path))
    return train, test


def functions(path: Path) -> Iterator[Example]:
    """The functions of a file: the tokens of each body, and the parts of its name."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        name = parts(node.name) if isinstance(node, ast.FunctionDef) else []
        if not isinstance(node, ast.FunctionDef) or not name or node.name.startswith("__"):
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        tokens = [token for argument in node.args.args for token in parts(argument.arg)]
        for statement in body:
            own = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
            tokens += body_tokens(textwrap.dedent(own), node.name)
        if SHORTEST <= len(tokens) <= LONGEST:
            yield " ".join(tokens), " ".join(name)


def body_tokens(text: str, name: str) -> list[str]:
    """The tokens of source code: parts of identifiers, keywords and signs; the function's own name is hidden."""
    found: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                own = ["self_call"] if token.string == name else parts(token.string)
                found += [token.string] if keyword.iskeyword(token.string) else own
            elif token.type == tokenize.OP:
                found.append(token.string)
            elif token.type in (tokenize.STRING, tokenize.NUMBER):
                found.append("<text>" if token.type == tokenize.STRING else "<number>")
    except (tokenize.TokenError, IndentationError):
        pass  # the rest of a statement that does not stand alone
    return found


def parts(name: str) -> list[str]:
    """`readFirstLine` and `read_first_line` as read, first, line."""
    return [part.lower() for part in PARTS.findall(name)]


def fit(
    name: str, train: Sequence[Example], test: Sequence[Example], *, steps: int, seed: int, folder: Path
) -> saccade.Run:
    """Trains one model, with the same settings for all."""
    return saccade.train(
        task={
            "source": {"class": "text", "tokeniser": {"class": "pretokenised", "min_frequency": 10}},
            "joint": True,
            "copying": name.endswith("copying"),
            "metrics": ["word_f1", "exact_match", "unknown_words"],
        },
        model=MODELS[name],
        data={"train": list(train), "held_out": 0.05},
        trainer={
            "max_steps": steps,
            "batch_tokens": 4096,
            "learning_rate": 2e-3,
            "clip_norm": 1.0,
            "validate_every": max(1, steps // 3),
            "validate_examples": 200,
            "validate_options": {"beam": 1},
            "metric": "word_f1",
            "log_every": 100,
            "seed": seed,
        },
        output=folder,
    )


def write(results: dict[str, Any], output: Path) -> None:
    """The table: scaled figures beside the paper's, which are of Java projects."""
    rows = [
        [name, f["word_f1"], PUBLISHED[name], f["exact_match"], f["unknown_words"], f["parameters"], f["minutes"]]
        for name, f in results["models"].items()
    ]
    header = ["model", "F1, %, scaled", "F1, %, paper (Java)", "exact, %", "unknown parts right, %"]
    publish(output, results=results, table=markdown_table([*header, "parameters", "processor minutes"], rows))


if __name__ == "__main__":
    sys.exit(main())
