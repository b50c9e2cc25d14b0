"""The rules of the reproduction, and its command at toy scale."""

import json
import random

from tests.reproductions.scripts import ROOT, script

copynet = script("copynet")


def test_instances_follow_their_rule() -> None:
    generator = random.Random(3)
    for kind, sides in copynet.TYPES.items():
        rule = copynet.make_rule(generator, *sides)
        assert "".join(part for part in rule.source if part in "xy") == sides[0]
        assert "".join(part for part in rule.target if part in "xy") == sides[1]
        instance = copynet.make_instance(generator, kind, rule)
        fixed = [part for part in rule.source if part not in "xy"]
        filled = len(instance.source.split()) - len(fixed)
        assert len(sides[0]) <= filled <= 15 * len(sides[0])
        if sides == ("x", "xx"):
            start = next(place for place, part in enumerate(rule.source) if part == "x")
            x = instance.source.split()[start : start + filled]
            assert " ".join(x) in instance.target
            assert len(instance.target.split()) == len(rule.target) - 2 + 2 * filled


def test_every_model_is_measured_on_every_type(tmp_path) -> None:
    small = ["--steps", "2", "--rules", "1", "--instances", "4", "--tests", "2"]
    assert copynet.main(["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), *small]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    for name in copynet.MODELS:
        assert list(found[name]["right"]) == list(copynet.TYPES)
        assert all(0 <= share <= 100 for share in found[name]["right"].values())
    assert (tmp_path / "results" / "table.md").read_text().count("(97.3)") == 1


def test_the_claim_holds_in_the_committed_figures() -> None:
    found = json.loads((ROOT / "copynet" / "results" / "results.json").read_text())
    means = {name: sum(found[name]["right"].values()) / 5 for name in copynet.MODELS}
    assert means["encoder-decoder"] < means["rnnsearch"] < means["copynet"]
