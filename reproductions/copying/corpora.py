"""Four corpora whose targets hold many words of their sources: queries, code, descriptions of places, subjects."""

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

Pair = tuple[str, str]
SQL_TOKENS = re.compile(r"\w+(?:\.\w+)*|\S")
CODE_TOKENS = re.compile(r"""'[^'\s]*'|"[^"\s]*"|\w+|\S""")  # a string without spaces is one token
BODY = 80  # words of an e-mail


class Splits(NamedTuple):
    """Pairs of source and target for training; the others may have several references."""

    train: list[Pair]
    valid: list[dict[str, Any]]
    test: list[dict[str, Any]]


def text2sql(name: str) -> Callable[[Path], Splits]:
    """Questions and SQL, with the values of their variables filled in; divided by question."""

    def read(folder: Path) -> Splits:
        with gzip.open(folder / "text2sql" / f"{name}.json.gz", "rt", encoding="utf-8") as file:
            queries = json.load(file)
        pairs: dict[str, list[Pair]] = {"train": [], "dev": [], "test": [], "exclude": []}
        for query in queries:
            usual = {variable["name"]: variable["example"] for variable in query["variables"]}
            for question in query["sentences"]:
                values = usual | {key: value for key, value in question["variables"].items() if value}
                sides = (filled(side, values) for side in (question["text"], query["sql"][0]))
                source, target = (" ".join(SQL_TOKENS.findall(side)) for side in sides)
                pairs[question["question-split"]].append((source, target))
        return Splits(pairs["train"], examples(pairs["dev"]), examples(pairs["test"]))

    return read


def filled(text: str, values: dict[str, str]) -> str:
    """A text with each variable replaced by its value."""
    return re.sub(r"\b[a-z_]+\d+\b", lambda found: values.get(found[0], found[0]), text)


def django(folder: Path) -> Splits:
    """Descriptions of lines of code, and the lines, up to spaces."""
    sides = []
    for side in ("anno", "code"):
        with gzip.open(folder / "django" / f"all.{side}.gz", "rt", encoding="utf-8") as file:
            sides.append([" ".join(CODE_TOKENS.findall(line)) for line in file.read().split("\n")])
    pairs: list[Pair] = list(zip(*sides, strict=True))[:18805]
    return Splits(pairs[:16000], examples(pairs[16000:17000]), examples(pairs[17000:]))


def e2e(folder: Path) -> Splits:
    """What is known about a restaurant, and sentences that say it."""
    parts = []
    with zipfile.ZipFile(folder / "e2e-nlg" / "e2e-dataset.zip") as archive:
        for name in ("trainset", "devset", "testset_w_refs"):
            text = archive.read(f"e2e-dataset/{name}.csv").decode("utf-8-sig")
            rows = csv.DictReader(io.StringIO(text))
            parts.append([(row["mr"].replace("[", " : ").replace("]", ""), row["ref"]) for row in rows])
    return Splits(parts[0], grouped(parts[1]), grouped(parts[2]))


def aeslc(folder: Path) -> Splits:
    """The first words of e-mails, and their subjects."""
    parts = []
    for name in ("train", "dev", "test"):
        with gzip.open(folder / "aeslc" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            mails = [json.loads(line) for line in file]
        parts.append([(" ".join(mail["body"].split()[:BODY]), mail["subject"]) for mail in mails])
    train = [pair for pair in parts[0] if all(map(str.strip, pair))]
    return Splits(train, examples(parts[1]), examples(parts[2]))


def examples(pairs: Iterable[Pair]) -> list[dict[str, Any]]:
    """Pairs as examples to test with; those with an empty side are left out."""
    return [{"source": source, "target": target} for source, target in pairs if source.strip() and target.strip()]


def grouped(pairs: Iterable[Pair]) -> list[dict[str, Any]]:
    """Equal sources as one example with several references."""
    found: dict[str, list[str]] = {}
    for source, target in pairs:
        found.setdefault(source, []).append(target)
    return [{"source": source, "target": targets} for source, targets in found.items()]
