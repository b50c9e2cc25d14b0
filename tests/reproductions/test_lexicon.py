"""The cipher of the reproduction, and its command at toy scale."""

import json
import random

from tests.reproductions.scripts import ROOT, script

lexicon = script("lexicon")


def test_the_cipher_swaps_every_two_words_and_has_one_translation_for_each() -> None:
    train, test = lexicon.cipher(random.Random(1), 300, 20)
    assert (len(train), len(test)) == (300, 20)
    key: dict[str, str] = {}
    for source, target in train:
        words, said = source.split(), target.split()
        assert len(words) == len(said)
        for place, word in enumerate(words):
            other = place ^ 1
            assert key.setdefault(word, said[other if other < len(words) else place]).startswith("t")
            assert key[word] == said[other if other < len(words) else place]
    assert len(set(key.values())) == len(key)


def test_every_lexicon_is_measured(tmp_path) -> None:
    small = ["--steps", "2", "--points", "2", "--pairs", "30", "--tests", "3", "--size", "8"]
    assert lexicon.main(["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), *small]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    for mode in lexicon.MODES:
        assert [point["step"] for point in found["cipher"][mode]["curve"]] == [1, 2]
        assert all(0 <= point["rare"] <= 100 for point in found["cipher"][mode]["curve"])
    assert (tmp_path / "results" / "cipher.png").stat().st_size > 1000


TESTED = ("cipher", "multi30k")


def test_the_claim_holds_in_the_committed_figures() -> None:
    found = json.loads((ROOT / "lexicon" / "results" / "results.json").read_text())
    rare = {
        name: [found[name][mode]["curve"][-1]["rare"] for mode in lexicon.MODES] for name in found if name in TESTED
    }
    assert rare["cipher"][0] + 10 < min(rare["cipher"][1:])  # both find all rare words of a cipher
    assert rare["multi30k"][0] + 5 < rare["multi30k"][1] < rare["multi30k"][2]
