"""Two runs that are trained for a moment: one writes texts, one labels them."""

import random
from functools import partial

import pytest

import saccade
import saccade.commands.align_texts
import saccade.runs.loading
from tests.hostile.counting import SECONDS, Cases

LETTERS = random.Random(5)
WORDS = ["ba", "dodo", "kelu", "su", "we"]
SOURCES = [" ".join(LETTERS.choices(WORDS, k=LETTERS.randint(1, 3))) for _ in range(40)]
SIZES = {"embedding_dim": 7, "hidden_dim": 11}
TRAINER = {"max_steps": 2, "batch_tokens": 130, "validate_examples": 0}


@pytest.fixture(scope="session")
def writer(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("runs") / "writer"
    saccade.train(
        task={"source": {"class": "text", "tokeniser": "char"}, "metrics": ["exact_match"]},
        model={"class": "rnnsearch", **SIZES},
        data={"train": [(text, text[::-1]) for text in SOURCES], "held_out": 0.1},
        trainer=TRAINER,
        output=folder,
    )
    return str(folder)


@pytest.fixture(scope="session")
def labeller(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("runs") / "labeller"
    saccade.train(
        task={
            "class": "classification",
            "inputs": {"text": {"class": "text", "tokeniser": "word"}},
            "metrics": ["accuracy"],
        },
        model={"class": "pooling", **SIZES},
        data={"train": [(text, "long" if len(text) > 7 else "short") for text in SOURCES], "held_out": 0.1},
        trainer=TRAINER,
        output=folder,
    )
    return str(folder)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A working folder with data files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("".join(f"{text}\t{text[::-1]}\n" for text in SOURCES[:4]))
    (tmp_path / "labels.tsv").write_text("ba su\tshort\ndodo kelu we\tlong\n")
    (tmp_path / "source.txt").write_text("ba su\nwe\n")
    (tmp_path / "target.txt").write_text("us ab\new\n")
    (tmp_path / "gold.talp").write_text("0-1 1-0\n0-0\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


loaded: dict[str, saccade.runs.Run] = {}


def load_once(folder, **options):
    if folder not in loaded:
        loaded[folder] = saccade.runs.loading.load(folder, **options)
    return loaded[folder]


@pytest.fixture
def call(call, monkeypatch):
    """Runs a command on some standard input, with runs that are read once."""
    monkeypatch.setattr("saccade.runs.load", load_once)
    monkeypatch.setattr("saccade.commands.align_texts.load", load_once)
    return partial(call, given="ba su\nwe\n")


@pytest.fixture
def cases(record_property):
    """Makes `Cases`, whose counts are printed at the end."""
    made = []

    def make(what, **bounds):
        made.append(Cases(what, **bounds))
        return made[-1]

    yield make
    for each in made:
        record_property("tried", str(each))


def pytest_terminal_summary(terminalreporter):
    """Prints what the fuzzers tried, if they were given time."""
    if not SECONDS:
        return
    reports = [report for several in terminalreporter.stats.values() for report in several]
    tried = [value for r in reports for name, value in getattr(r, "user_properties", ()) if name == "tried"]
    terminalreporter.section("hostile cases")
    for line in dict.fromkeys(tried):
        terminalreporter.write_line(line)
