"""The command at toy scale, on coloured squares."""

import gzip
import io
import json
import zipfile

import pytest
import torch

from tests.reproductions.scripts import script

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("pyarrow")
seen = script("multi30k-pictures")

NAMES = {"red": ("rot", (220, 30, 30)), "green": ("grün", (30, 220, 30)), "blue": ("blau", (30, 30, 220))}
COUNTS = {"train": 7, "val": 3, "test_2016_flickr": 4}


@pytest.fixture
def folders(tmp_path):
    """Folders as those of Multi30k and Flickr8k; each split has a description whose picture is missing."""
    texts, pictures = tmp_path / "texts", tmp_path / "flickr"
    texts.mkdir()
    pictures.mkdir()
    with zipfile.ZipFile(pictures / "images128.zip", "w") as archive:
        number = 100
        for prefix, count in COUNTS.items():
            names, english, german = ["1.jpg"], ["a dog ."], ["ein hund ."]
            for place in range(count):
                colour, (stem, pixels) = list(NAMES.items())[place % 3]
                content = io.BytesIO()
                Image.new("RGB", (32, 32), pixels).save(content, "JPEG")
                archive.writestr(f"{number}_a1.jpg", content.getvalue())
                names.append(f"{number}.jpg")
                english.append(f"a {colour} square .")
                german.append(f"ein {stem}es quadrat .")
                number += 1
            for name, lines in (("en", english), ("de", german)):
                (texts / f"{prefix}.lc.norm.tok.{name}.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
            (texts / f"images.{prefix}.txt").write_text("\n".join(names))
    return texts, pictures


def test_descriptions_are_joined_with_their_pictures(folders, tmp_path):
    examples = seen.described(*folders, tmp_path / "runs")
    assert [len(examples[split]) for split in ("train", "valid", "test")] == [6, 3, 5]  # one is held out
    row = examples["valid"][1]
    assert (row["source"], row["target"]) == ("a green square .", "ein grünes quadrat .")
    red, green, blue = Image.open(row["picture"]).getpixel((3, 5))
    assert green > 150 > max(red, blue)
    assert seen.shown(seen.SEEN, True, row) == {**row, "source": "a [colour] square ."}
    assert set(seen.shown("text alone", False, row)) == {"source", "target"}


def test_colours_are_counted_by_their_stems():
    found = seen.colours("ein rotes auto und ein roter ball vor einem schwarz-weißen brot")
    assert found == {"rot": 2, "schwarz": 1, "weiß": 1}


def test_models_are_trained_and_measured(folders, tmp_path, monkeypatch):
    from saccade.encoders.backbones import EfficientNetLite0

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(seen, "SIDE", 64)
    monkeypatch.setattr(seen, "SIZES", {**seen.SIZES, "embedding_dim": 6, "hidden_dim": 8})
    torch.manual_seed(1)
    torch.save(EfficientNetLite0(weights="").state_dict(), tmp_path / "state.pth")
    texts, pictures = map(str, folders)
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    arguments = ["--texts", texts, "--pictures", pictures, "--weights", str(tmp_path / "state.pth"), *places]
    assert seen.main([*arguments, "--steps", "1"]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert found["descriptions"] == {"train": 6, "valid": 3, "test": 5}
    for hidden in ("", ", colours hidden"):
        for name in (f"text alone{hidden}", f"text and picture{hidden}"):
            assert found[name]["colours"] == 5
            assert 0 <= found[name]["right"] <= 100
            assert found[name]["minutes"] > 0
        assert "bleu" in found[f"text and picture{hidden}, tested with wrong pictures"]
    assert len((tmp_path / "results" / "table.md").read_text().splitlines()) == 2 + 6


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    for name in ("MULTI30K", "FLICKR8K"):
        monkeypatch.delenv(name, raising=False)
    assert script("multi30k-pictures").main([]) == 0
    assert "--pictures" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        seen.main(
            ["--texts", str(tmp_path), "--pictures", str(tmp_path), "--weights", "x", "--runs", str(tmp_path / "r")]
        )
    assert "images128.zip" in capsys.readouterr().err
