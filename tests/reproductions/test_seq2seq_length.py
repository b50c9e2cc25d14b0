"""The language of the reproduction, and its command at toy scale."""

import json
import random
import re
from itertools import pairwise

import pytest

from tests.reproductions.scripts import ROOT, script

length = script("seq2seq-length")


def test_a_sentence_and_its_translation() -> None:
    generator = random.Random(3)
    language = length.make_language(generator)
    dictionary, followers = language
    assert sorted(dictionary) == list(range(length.WORDS))
    for _ in range(200):
        pair = length.make_pair(generator, language, 17)
        words = [int(word[1:]) for word in pair.source.split()]
        assert 1 <= len(words) == len(set(words)) <= 17
        assert all(after in followers[before] for before, after in pairwise(words))
        kinds = "".join("m" if word < length.MODIFIERS else "n" for word in words)
        wanted = []  # phrase by phrase, found by their form
        for phrase in re.finditer("m*n|m+$", kinds):
            wanted += [f"t{dictionary[word]}" for word in reversed(words[phrase.start() : phrase.end()])]
        assert pair.target.split() == wanted
        assert [f"t{dictionary[words[place]]}" for place in pair.order] == wanted


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("length")
    small = ["--steps", "2", "--pairs", "50", "--tests", "12"]
    assert length.main(["--output", str(folder / "results"), "--runs", str(folder / "runs"), *small]) == 0
    return folder / "results"


def test_every_model_is_measured_at_every_length(results) -> None:
    found = json.loads((results / "results.json").read_text())
    for name in length.MODELS:
        assert found[name]["bins"][-1]["low"] > length.LONGEST
        assert all(0 <= line[figure] <= 100 for line in found[name]["bins"] for figure in ("bleu", "token_accuracy"))
    assert found["cho"]["bins"][0]["alignment"] is None
    assert 0 <= found["rnnsearch"]["bins"][0]["alignment"] <= 100
    rows = (results / "table.md").read_text().partition("\n\n")[0].splitlines()
    assert len(rows) == 2 + len(found["cho"]["bins"])
    assert len({row.count("|") for row in rows}) == 1
    assert all((results / name).stat().st_size > 1000 for name in ("lengths.png", "rnnsearch.png", "location.png"))


def test_no_model_has_an_advantage_in_size(results) -> None:
    sizes = [
        found["parameters"]
        for name, found in json.loads((results / "results.json").read_text()).items()
        if name in length.MODELS
    ]
    assert max(sizes) < 1.3 * min(sizes)


def test_the_claim_holds_in_the_committed_figures() -> None:
    found = json.loads((ROOT / "seq2seq-length" / "results" / "results.json").read_text())
    unseen = {
        name: [line["bleu"] for line in found[name]["bins"] if line["low"] > length.LONGEST] for name in length.MODELS
    }
    for without in ("cho", "sutskever"):
        assert all(ours > 2 * theirs for ours, theirs in zip(unseen["rnnsearch"], unseen[without], strict=True))
    assert min(unseen["location"]) > 95
