"""A model of words, and tables of them."""

import csv
import json
import random

import pytest

from tests.commands.conftest import WORDS, run

__all__ = ["run"]

random_words = random.Random(5)
ROWS = [
    {
        "id": number,
        "text": " ".join(random_words.choices(WORDS, k=random_words.randint(1, 4))),
        "tags": ["a"] * (number % 3),
    }
    for number in range(53)
]


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> dict[str, list[str]]:
    """The same 53 rows in two files of each format."""
    import pyarrow
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("tables")
    found = {}
    for suffix in ("parquet", "jsonl", "csv", "tsv"):
        found[suffix] = [str(folder / f"{name}.{suffix}") for name in ("first", "second")]
        for path, rows in zip(found[suffix], (ROWS[:23], ROWS[23:]), strict=True):
            if suffix == "parquet":
                parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=11)
            elif suffix == "jsonl":
                with open(path, "w") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)
            else:
                with open(path, "w", newline="") as file:
                    writer = csv.writer(file, delimiter="," if suffix == "csv" else "\t", lineterminator="\n")
                    writer.writerow(["id", "text", "note"])
                    note = 'one,\n"two"' if suffix == "csv" else "one"
                    writer.writerows([row["id"], row["text"], note] for row in rows)
    return found


def read_back(folder) -> list[dict]:
    """The rows of all output files, in order."""
    from pyarrow import parquet

    rows = []
    for path in sorted(folder.glob("part-*")):
        if path.suffix == ".parquet":
            rows += parquet.read_table(path).to_pylist()
        elif path.suffix == ".jsonl":
            rows += [json.loads(line) for line in path.read_text().splitlines()]
        else:
            with open(path, newline="") as file:
                rows += list(csv.DictReader(file, delimiter="," if path.suffix == ".csv" else "\t"))
    return rows
