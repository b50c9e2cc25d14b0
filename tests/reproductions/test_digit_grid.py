"""The command at toy scale, the pictures, and the committed figures."""

import json

import numpy as np
import pytest

from tests.reproductions.scripts import ROOT, script

pytest.importorskip("PIL")
digits = script("digit-grid")


def test_models_are_trained_and_measured(tmp_path):
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    assert digits.main([*places, "--steps", "1", "--examples", "120", "--tested", "5"]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert set(digits.MODELS) <= set(found)
    assert all(0 <= found[name]["pointing"] <= 100 for name in digits.MODELS)
    assert len((tmp_path / "results" / "table.md").read_text().splitlines()) == 4


def test_boxes_are_where_the_red_digits_are():
    draws = np.random.default_rng(0)
    for _ in range(20):
        picture, caption, boxes = digits.drawn(draws)
        assert picture.shape == (32, 32, 3)
        assert len(caption.split()) == len(boxes) == 4
        for left, top, right, bottom in boxes:
            part = picture[int(32 * top) : int(32 * bottom), int(32 * left) : int(32 * right)]
            assert part.shape == (8, 8, 3)
            assert part[..., 0].max() > 0.9
            assert part[..., 2].max() < 0.3
        red = (picture[..., 0] > 0.5).reshape(4, 8, 4, 8).any((1, 3))
        assert red.sum() == 4


def test_the_committed_figures_meet_the_claim():
    found = json.loads((ROOT / "digit-grid" / "results" / "results.json").read_text())
    assert found["soft"]["pointing"] >= 95
    assert found["hard"]["pointing"] >= 95
