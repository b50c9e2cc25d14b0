"""The command at toy scale: four language models of the same size, and both corpora in their archives."""

import io
import json
import random
import tarfile
import zipfile

import numpy as np
import pytest

from tests.reproductions.scripts import ROOT, script

language = script("language-models")
WORDS = [f"w{number}" for number in range(30)]


def lines(count, seed):
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(3, 9))) for _ in range(count)]


@pytest.fixture
def data(tmp_path):
    with zipfile.ZipFile(tmp_path / "ptb.zip", "w") as archive:
        for split, count in (("train", 60), ("valid", 9), ("test", 9)):
            archive.writestr(f"ptb.{split}.txt", "".join(f" {line} \n" for line in lines(count, split)))
    return tmp_path


def test_all_have_the_same_size(data, tmp_path) -> None:
    output, runs = tmp_path / "results", tmp_path / "runs"
    command = ["--data", str(data), "--output", str(output), "--runs", str(runs), "--steps", "2", "--dim", "16"]
    assert language.main(command) == 0
    found = json.loads((output / "results.json").read_text())["ptb, 2 updates"]
    assert list(found) == list(language.NAMES)
    sizes = [one["parameters"] for one in found.values()]
    assert max(sizes) < 1.15 * min(sizes)
    for one in found.values():
        assert one["steps"] == 2
        assert 1.0 < one["test"] < 1000.0
        assert one["frequency"]["rows"]["all"][0] == sum(len(line.split()) + 1 for line in lines(9, "test"))
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 2 + len(language.NAMES)
    assert len({row.count("|") for row in rows}) == 1
    assert all("scaled" in row for row in rows[2:])
    before = (runs / "ptb-2-lstm" / "model.safetensors").stat().st_mtime_ns
    assert language.main(command) == 0  # again: nothing is trained
    assert (runs / "ptb-2-lstm" / "model.safetensors").stat().st_mtime_ns == before


def test_minutes_become_steps(data) -> None:
    texts = language.read_corpus("ptb", data)
    task = language.LanguageModelling(text=language.Text(tokeniser="pretokenised", max_length=35), contiguous=True)
    task.fit(texts["train"])
    seconds = language.step_seconds(task, "lstm", language.model_of("lstm", 8), texts["train"])
    assert 0.0 < seconds < 5.0


def test_wikitext_is_read_from_ids(tmp_path) -> None:
    names = ["<eos>", "=", "Cat", "sees"]
    files = {
        "type.info": "\n".join(names).encode(),
        **{f"{split}.npy": [0, 1, 2, 1, 0, 0, 2, 3, 0] for split in ("train", "validate", "test")},
    }
    with tarfile.open(tmp_path / "wikitext-2.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            if isinstance(content, list):
                made = io.BytesIO()
                np.save(made, np.array(content))
                content = made.getvalue()
            entry = tarfile.TarInfo(f"wikitext-2/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    found = language.read_corpus("wikitext2", tmp_path)
    assert found["valid"] == found["train"] == [{"text": "= Cat ="}, {"text": "Cat sees"}]


def test_says_what_it_needs(tmp_path, monkeypatch, capsys) -> None:
    for name in ("PTB", "WIKITEXT2"):
        monkeypatch.delenv(name, raising=False)
    assert language.main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        language.main(["--data", str(tmp_path)])
    assert "There is no ptb.train.txt and no ptb.zip" in capsys.readouterr().err


def test_the_pointer_gains_on_rare_words_that_repeat_in_the_committed_figures() -> None:
    committed = ROOT / "language-models" / "results" / "results.json"
    if not committed.is_file():
        pytest.skip("reproductions/language-models has not been measured yet")
    found = json.loads(committed.read_text())["ptb"]
    assert found["pointer"]["rare repeated"] < found["lstm"]["rare repeated"]
    assert found["pointer"]["repeated"] < found["lstm"]["repeated"]
