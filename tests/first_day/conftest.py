"""Data as a new user might have them, and a small training that takes a second."""

import random

import pytest

LETTERS = dict(zip("abdegiklmnoprstuvz", "абдегиклмнопрстувз", strict=True))
SYLLABLES = random.Random(3)
RIVERS = [
    " ".join("".join(SYLLABLES.choices(["ba", "do", "ge", "ki", "lu"], k=2)) for _ in range(SYLLABLES.randint(1, 3)))
    for _ in range(60)
]
PAIRS = [(name, "".join(LETTERS.get(letter, letter) for letter in name)) for name in RIVERS]
SMALL = """--task.source {class: text, tokeniser: char}|--task.metrics [exact_match]|--model.embedding_dim 8
--model.hidden_dim 8|--trainer.max_steps 2|--trainer.batch_tokens 200|--trainer.validate_every 2
--trainer.metric loss|--trainer.patience null|--trainer.schedule constant""".replace("\n", "|").split("|")
SETTINGS = [word for setting in SMALL for word in setting.split(" ", 1)]


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A working folder with river names in two scripts."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rivers.tsv", PAIRS)
    return tmp_path


def write(path, rows, between="\t") -> None:
    path.write_text("".join(between.join(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def train(work, call):
    """Trains in the folder `run`: exit code, output, errors."""

    def trained(*more: str, data: str = "rivers.tsv", config: str = "translation/rnnsearch"):
        return call("train", config, "--data.train", data, "--output", "run", *SETTINGS, *more)

    return trained
