"""The command at toy scale, on verses of letters; and how the files of the package are read."""

import json
import random
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from tests.reproductions.scripts import ROOT, script

sys.path.append(str(ROOT / "greek-alignment"))
greek = script("greek-alignment")
import verses as reading  # noqa: E402 (its folder is on the path only now)

MODELS = ["supervised"]


@pytest.fixture
def verses(monkeypatch):
    """Letters, and the same letters in capitals and in reverse; all chapters have four verses."""
    letters = random.Random(7)
    made = []
    for chapter in range(1, 21):
        for verse in range(1, 5):
            words = letters.choices("abcde", k=letters.randint(2, 6))
            links = {(place, len(words) - 1 - place) for place in range(len(words))}
            made.append(reading.Verse(f"40{chapter:03}{verse:03}", words, [w.upper() for w in words[::-1]], links))
    monkeypatch.setattr(greek, "read_verses", lambda: made)
    return made


def test_trains_measures_and_compares(verses, tmp_path, monkeypatch) -> None:
    backward = [[(len(v.greek) - 1 - place, place) for place in range(len(v.english))] for v in verses]
    monkeypatch.setattr(greek, "eflomal_links", lambda given: {"union": backward})
    arguments = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--steps", "2"]
    assert greek.main([*arguments, "--models", *MODELS]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert found["verses"] == {"train": 64, "valid": 8, "test": 8}
    figures = found["figures"]
    assert list(figures) == ["diagonal", "eflomal union", *MODELS]
    assert figures["eflomal union"]["aer"] == 0
    assert figures["diagonal"]["aer"] > 50
    for model in MODELS:
        assert {"aer", "at_word", "later", "match", "mass", "blur", "bleu", "minutes"} <= set(figures[model])
        assert figures[model]["shift"]["0"] == pytest.approx(figures[model]["mass"])
    assert "| RNNsearch, supervised |" in (tmp_path / "results" / "table.md").read_text()


def test_without_the_package_it_says_what_it_needs(monkeypatch, capsys) -> None:
    def missing():
        raise PackageNotFoundError(reading.PACKAGE)

    monkeypatch.setattr(greek, "read_verses", missing)
    assert greek.main([]) == 0
    assert "pip install --no-deps bible-alignments" in capsys.readouterr().err


def test_the_diagonal_goes_from_corner_to_corner() -> None:
    verse = reading.Verse("40001001", list("abc"), list("vwxyz"), set())
    assert greek.diagonal(verse) == [(0, 0), (0, 1), (1, 2), (2, 3), (2, 4)]
    assert greek.diagonal(verse._replace(english=["v"])) == [(0, 0)]


def test_verses_are_read_without_punctuation_and_without_links_across_their_borders(tmp_path, monkeypatch) -> None:
    greek_rows = ["id\taltId\ttext", "n40001001001\tx\tΔΛΞ", "n40001001002\tx\tπψφ", "n40005001001\tx\tθδλ"]
    english = ["id\tsource_verse\ttext\tskip_space_after\texclude"]
    english += ["40001001001\t40001001\tThe\t\t", "40001001002\t40001001\t,\t\ty", "40001001003\t40001001\tBook\t\t"]
    english += ["40005001001\t40005001\tWhen\t\t"]
    records = [
        {"source": ["n40001001001"], "target": ["40001001001", "40001001003"]},
        {"source": ["n40001001002", "n40005001001"], "target": ["40005001001"]},
    ]
    (tmp_path / reading.GREEK).write_text("\n".join(greek_rows))
    (tmp_path / reading.ENGLISH).write_text("\n".join(english))
    (tmp_path / reading.LINKS).write_text(json.dumps({"records": records}))
    monkeypatch.setattr(reading, "_installed", lambda name: tmp_path / name)
    first, second = reading.read_verses()
    assert first == ("40001001", ["δλξ", "πψφ"], ["the", "book"], {(0, 0), (0, 1)})
    assert second == ("40005001", ["θδλ"], ["when"], {(0, 0)})
    assert (first.split, second.split) == ("train", "test")


@pytest.mark.slow
def test_all_verses_of_the_package() -> None:
    pytest.importorskip("bible_alignments")
    found = reading.read_verses()
    assert len(found) == 7919
    assert sum(len(verse.links) for verse in found) > 189_000
    assert all(i < len(verse.greek) and j < len(verse.english) for verse in found for i, j in verse.links)
