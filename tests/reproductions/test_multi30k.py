"""The command at toy scale, on texts that have the names and the form of Multi30k's."""

import gzip
import json
import random

import pytest

from tests.reproductions.scripts import script

multi30k = script("multi30k")


@pytest.fixture
def data(tmp_path):
    """Counting in two languages; some of the files gzipped."""
    english, german = ["one", "two", "three", "four", "five"], ["eins", "zwei", "drei", "vier", "fünf"]
    generator = random.Random(3)
    folder = tmp_path / "data"
    folder.mkdir()
    for split, count in (("train", 40), ("val", 5), ("test_2016_flickr", 7)):
        numbers = [generator.choices(range(5), k=generator.randint(2, 7)) for _ in range(count)]
        for language, words in (("en", english), ("de", german)):
            text = "".join(" ".join(words[n] for n in line) + " .\n" for line in numbers).encode()
            name = f"{split}.lc.norm.tok.{language}"
            if split == "train":
                (folder / f"{name}.gz").write_bytes(gzip.compress(text))
            else:
                (folder / name).write_bytes(text)
    return folder


def test_trains_models_and_measures_them(data, tmp_path) -> None:
    names = ["rnnsearch", "transformer-small"]  # a configuration of its own, and one as shipped
    folders = {name: tmp_path / "runs" / name for name in names}
    arguments = ["--data", str(data), "--output", str(tmp_path / "results"), "--steps", "2"]
    arguments += ["--runs", str(tmp_path / "runs"), "--models", *names]
    assert multi30k.main(arguments) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    for name in names:
        assert found[name]["steps"] == 2
        assert "tok:none" in found[name]["signature"]
        assert len(found[name]["curve"][0]) == 2
    assert (tmp_path / "results" / "bleu.png").stat().st_size > 1000

    written = {name: (folder / "model.safetensors").stat().st_mtime_ns for name, folder in folders.items()}
    assert multi30k.main(arguments) == 0  # what is trained is not trained again
    assert written == {name: (folder / "model.safetensors").stat().st_mtime_ns for name, folder in folders.items()}


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("MULTI30K", raising=False)
    assert multi30k.main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit:
        multi30k.main(["--data", str(tmp_path)])
    assert exit.value.code == 2
    assert "train.lc.norm.tok.en" in capsys.readouterr().err
