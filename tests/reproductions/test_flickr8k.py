"""The command at toy scale, on coloured squares, and the split."""

import gzip
import io
import json
import zipfile

import pytest
import torch

from tests.reproductions.scripts import script

Image = pytest.importorskip("PIL.Image")
captions = script("flickr8k")

COLOURS = {"red": (220, 30, 30), "green": (30, 220, 30), "blue": (30, 30, 220)}
COUNTS = {"train": 7, "dev": 2, "test": 3}


@pytest.fixture
def data(tmp_path):
    """A folder as that of Flickr8k, with a picture that no split names."""
    folder = tmp_path / "data"
    folder.mkdir()
    lines, names = [], iter(f"{number}_a.jpg" for number in range(13))
    with zipfile.ZipFile(folder / "images128.zip", "w") as archive:
        for split, count in {**COUNTS, "": 1}.items():
            chosen = [next(names) for _ in range(count)]
            for number, name in enumerate(chosen):
                colour = list(COLOURS)[number % 3]
                content = io.BytesIO()
                Image.new("RGB", (32, 32), COLOURS[colour]).save(content, "JPEG")
                archive.writestr(name, content.getvalue())
                lines += [f"{name}#{n}\ta {colour} square {n} ." for n in range(5)]
            if split:
                (folder / f"Flickr_8k.{split}Images.txt").write_text("\n".join(chosen) + "\n")
    (folder / "Flickr8k.token.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


def test_tables_follow_the_split(data, tmp_path):
    tables = captions.write_tables(data, tmp_path / "runs")
    rows = {split: [json.loads(line) for line in path.read_text().splitlines()] for split, path in tables.items()}
    assert [len(rows[split]) for split in ("train", "valid", "test")] == list(COUNTS.values())
    files = [row["file"] for several in rows.values() for row in several]
    assert len(set(files)) == 12
    assert all((tmp_path / "runs" / file).is_file() for file in files)
    assert rows["valid"][1]["caption"] == [f"a green square {n} ." for n in range(5)]


def test_models_are_trained_and_measured(data, tmp_path, monkeypatch):
    from saccade.encoders.backbones import EfficientNetLite0

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(captions, "SIDE", 64)
    torch.manual_seed(1)
    torch.save(EfficientNetLite0(weights="").state_dict(), tmp_path / "state.pth")
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    arguments = ["--data", str(data), "--weights", str(tmp_path / "state.pth"), *places, "--steps", "1"]
    assert captions.main([*arguments, "--models", "hard", "mean"]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert {"hard", "mean"} <= set(found)
    assert all(0 <= found[name]["bleu_4"] <= 100 for name in ("hard", "mean"))
    (tmp_path / "runs" / "mean-1-1.json").unlink()  # as if it had been interrupted
    assert captions.main([*arguments, "--models", "hard", "mean"]) == 0
    again = json.loads((tmp_path / "results" / "results.json").read_text())
    assert again["hard"] == found["hard"]
    assert again["mean"] == {key: value for key, value in found["mean"].items() if key != "minutes"}
    rows = (tmp_path / "results" / "table.md").read_text().splitlines()
    assert len(rows) == 6  # with the two published ones
    assert len({row.count("|") for row in rows}) == 1


def test_what_is_missing_is_named(data, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("FLICKR8K", raising=False)
    assert script("flickr8k").main([]) == 0
    assert "--data" in capsys.readouterr().err
    (data / "images128.zip").unlink()
    with pytest.raises(SystemExit):
        captions.main(["--data", str(data), "--weights", "x.pth", "--runs", str(tmp_path)])
    assert "images128.zip" in capsys.readouterr().err
