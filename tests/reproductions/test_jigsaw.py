"""The command at toy scale, on noise, and how fragments are cut and laid."""

import io
import json
import zipfile

import numpy as np
import pytest

from tests.reproductions.scripts import script

Image = pytest.importorskip("PIL.Image")
jigsaw = script("jigsaw")


def photographs(count: int) -> list[np.ndarray]:
    """Lines of which no two are alike, so that only neighbours fit."""
    draws = np.random.default_rng(1)
    lines = draws.integers(0, 256, (count, 96, 1, 3))
    return list(np.broadcast_to(lines, (count, 96, 96, 3)).astype(np.uint8))


def test_neighbours_fit_along_their_side_alone(monkeypatch) -> None:
    monkeypatch.setattr(jigsaw, "CONTRAST", 0.0)
    lines, columns = np.meshgrid(2 * np.arange(96), 2 * np.arange(96), indexing="ij")
    photograph = np.stack([lines, columns, 0 * lines], axis=2).astype(np.uint8)
    draws = np.random.default_rng(2)
    seen = set()
    for _ in range(30):
        pair = jigsaw.neighbours([photograph], draws)
        apart = {side: jigsaw.edges_apart(jigsaw.laid(pair.first, pair.second, side)) for side in jigsaw.SIDES}
        assert min(apart, key=apart.__getitem__) == pair.side
        assert apart[pair.side] == pytest.approx(2 / 3)  # one step of one colour
        seen.add(pair.side)
    assert seen == set(jigsaw.SIDES)


@pytest.mark.parametrize("side", ["left", "right", "top", "bottom"])
def test_the_sides_in_question_meet_in_the_middle(side) -> None:
    first, second = np.zeros((24, 24, 3), dtype=np.uint8), np.zeros((24, 24, 3), dtype=np.uint8)
    edges = {"left": (slice(None), 0), "right": (slice(None), -1), "top": (0,), "bottom": (-1,)}
    opposite = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
    first[edges[side]], second[edges[opposite[side]]] = 100, 200
    found = jigsaw.laid(first, second, side).picture
    assert found.shape == (24, 48, 3)
    assert (found[:, 23] == 100).all()
    assert (found[:, 24] == 200).all()


def test_the_box_lies_on_the_border() -> None:
    left, top, right, bottom = jigsaw.BOX
    assert (48 * left, top, 48 * right, bottom) == pytest.approx((16, 0, 32, 1))


def test_strangers_lie_apart() -> None:
    draws = np.random.default_rng(4)
    several = photographs(3)
    for same in (True, False):
        first, second = jigsaw.strangers(several, draws, same=same)
        owners = [
            next(n for n, each in enumerate(several) if (each[:, :1] == part[0, 0]).all(-1).any())
            for part in (first, second)
        ]
        assert (owners[0] == owners[1]) == same


def test_models_are_trained_and_measured(tmp_path, monkeypatch, capsys) -> None:
    with zipfile.ZipFile(tmp_path / "images128.zip", "w") as archive:
        for number, pixels in enumerate(photographs(6)):
            content = io.BytesIO()
            Image.fromarray(pixels).save(content, "PNG")
            archive.writestr(f"{number}.jpg", content.getvalue())
    for split, names in (("train", "0.jpg\n1.jpg\n2.jpg\n"), ("test", "3.jpg\n4.jpg\n5.jpg\n")):
        (tmp_path / f"Flickr_8k.{split}Images.txt").write_text(names)
    small = ["--steps", "1", "--examples", "20", "--tested", "7"]
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    assert jigsaw.main(["--data", str(tmp_path), *small, *places]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert set(jigsaw.MODELS) <= set(found)
    for name in ("soft", "hard"):
        assert 0 <= found[name]["pointing"] <= 100
        assert 0 < found[name]["weight_in_box"] < 100
    assert "pointing" not in found["mean"]
    assert found["even weights"]["weight_in_box"] == pytest.approx(100 / 3)
    rows = (tmp_path / "results" / "table.md").read_text().splitlines()
    assert len({row.count("|") for row in rows}) == 1
    monkeypatch.delenv("FLICKR8K", raising=False)
    assert script("jigsaw").main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        jigsaw.main(["--data", str(tmp_path / "results")])
    assert "There is no Flickr_8k.trainImages.txt" in capsys.readouterr().err
