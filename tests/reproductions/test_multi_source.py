"""The command at toy scale, the hidden parts, and the committed figures."""

import json
import random

import pytest

from tests.reproductions.scripts import ROOT, script

sources = script("multi-source")


@pytest.fixture
def data(tmp_path):
    """Counting in three languages."""
    words = {"en": "one two three", "de": "eins zwei drei", "fr": "un deux trois"}
    generator = random.Random(3)
    folder = tmp_path / "data"
    folder.mkdir()
    for split, count in (("train", 30), ("val", 4), ("test_2016_flickr", 5)):
        numbers = [generator.choices(range(3), k=generator.randint(2, 5)) for _ in range(count)]
        for language, names in words.items():
            lines = [" ".join(names.split()[n] for n in line) for line in numbers]
            (folder / f"{split}.lc.norm.tok.{language}").write_text("\n".join(lines) + "\n")
    return folder


def test_models_are_trained_and_measured(data, tmp_path):
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--data", str(data)]
    chosen = ["--models", "second", "each"]
    assert sources.main([*places, *chosen, "--steps", "1", "--examples", "120", "--updates", "1"]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    for task, figure in (("hidden", "exact_match"), ("multi30k", "bleu")):
        assert list(found[task]) == ["second", "each"]
        assert all(0 <= each[figure] <= 100 for each in found[task].values())
    assert len((tmp_path / "results" / "table.md").read_text().splitlines()) == 4


def test_each_source_hides_one_bit():
    draws = random.Random(1)
    for _ in range(50):
        row = sources.hidden(draws)
        a, b, target = row["source"].split(), row["second"].split(), row["target"].split()
        assert len(a) == len(b) == len(target) // 2
        for left, right, colour, shape in zip(a, b, target[::2], target[1::2], strict=True):
            assert int(left[2]) == sources.COLOURS.index(colour)
            assert int(right[1]) == sources.SHAPES.index(shape)
            assert int(left[1]) == int(right[1]) // 2
            assert int(right[2]) == int(left[2]) // 2


def test_the_committed_figures_meet_the_claim():
    found = json.loads((ROOT / "multi-source" / "results" / "results.json").read_text())
    hidden = {name: each["exact_match"] for name, each in found["hidden"].items()}
    assert max(hidden["first"], hidden["second"]) < 40
    assert hidden["each"] >= 99
    bleu = {name: each["bleu"] for name, each in found["multi30k"].items()}
    assert bleu["each"] > max(bleu["first"], bleu["second"])
