"""The command at toy scale, the pictures, and the committed figures."""

import json

import numpy as np
import pytest

from tests.reproductions.scripts import ROOT, script

pytest.importorskip("PIL")
ambiguous = script("ambiguous-word")


def test_models_are_trained_and_measured(tmp_path):
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--models", "text", "m3"]
    assert ambiguous.main([*places, "--steps", "1", "--examples", "120", "--tested", "5"]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert 0 <= found["m3"]["pointing"] <= 100
    assert "pointing" not in found["text"]
    assert len((tmp_path / "results" / "table.md").read_text().splitlines()) == 4


def test_only_the_picture_says_the_colour():
    draws = np.random.default_rng(0)
    for _ in range(20):
        example, colour, region = ambiguous.drawn(draws)
        assert colour in example["target"].split()
        assert not any(name in example["source"] for name in ambiguous.COLOURS)
        squares = example["picture"].reshape(3, 4, 3, 4, 3).mean((1, 3)).reshape(9, 3)
        spread = squares.max(1) - squares.min(1)
        assert spread.argmax() == region
        assert np.allclose(squares[region], ambiguous.COLOURS[colour], atol=0.1)


def test_the_committed_figures_meet_the_claim():
    found = json.loads((ROOT / "ambiguous-word" / "results" / "results.json").read_text())
    assert abs(found["text"]["colour"] - found["chance"]) < 6
    assert all(found[name]["colour"] >= 95 for name in ("m2", "m3", "regions", "each"))
    assert found["m2"]["pointing"] >= 95
    assert found["m2"]["mass"] >= 95
