"""The command at toy scale, on tones in the folders of AN4, and the committed figures."""

import csv
import json

import pytest

from tests.data.sounds import pcm, tone
from tests.reproductions.scripts import ROOT, script

an4 = script("an4")


@pytest.fixture
def data(tmp_path):
    """Two speakers for training and one for the test."""
    folder = tmp_path / "an4"
    (folder / "etc").mkdir(parents=True)
    for split, speakers in (("train", ("fash", "mjgr")), ("test", ("fcaw",))):
        names, lines = [], []
        for speaker in speakers:
            for number, (text, pitch) in enumerate((("A B", 500.0), ("ONE", 900.0), ("GO", 1500.0)) * 2):
                name = f"an{number}-{speaker}-b"
                place = folder / "wav" / f"an4_{split}" / speaker / f"{name}.wav"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(pcm(tone(pitch, 0.3 + 0.01 * number, 16000), 16000))
                names.append(f"an4_{split}/{speaker}/{name}")
                lines.append(f"<s> {text} </s> ({name})" if split == "train" else f"{text} ({name})")
        (folder / "etc" / f"an4_{split}.fileids").write_text("\n".join(names))
        (folder / "etc" / f"an4_{split}.transcription").write_text("\n".join(lines))
    return folder


def test_models_are_trained_and_measured(data, tmp_path, monkeypatch):
    monkeypatch.setattr(an4, "SIZES", {**an4.SIZES, "source_filters": 2, "listener_dim": 8, "hidden_dim": 8})
    monkeypatch.setattr(an4, "LANGUAGE", {"dim": 8, "num_heads": 2, "num_layers": 1})
    monkeypatch.setattr(an4, "BEAM", 2)
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    assert an4.main(["--data", str(data), *places, "--steps", "1", "--language-steps", "1"]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert found["updates"] == 1
    assert found["processor_minutes"] > 0
    assert set(found["searches"]) == {"attention and CTC", "attention alone", "attention, CTC and a language model"}
    for figures in found["searches"].values():
        assert figures["words"] == 8
        edits = figures["substitutions"] + figures["deletions"] + figures["insertions"]
        assert figures["wer"] == pytest.approx(100 * edits / 8)
    rows = (tmp_path / "results" / "table.md").read_text().splitlines()
    assert len(rows) == 2 + len(found["searches"])
    assert len({row.count("|") for row in rows}) == 1


def test_tables_hold_the_words_alone_and_a_speaker_is_held_out(data, tmp_path):
    tables = an4.write_tables(data, tmp_path)
    rows = {split: list(csv.DictReader(table.open())) for split, table in tables.items()}
    for split, speaker in (("train", "mjgr"), ("valid", "fash"), ("test", "fcaw")):
        assert {row["speaker"] for row in rows[split]} == {speaker}
        assert len(rows[split]) == 6
        assert {row["text"] for row in rows[split]} == {"A B", "ONE", "GO"}
        assert all((tmp_path / row["file"]).is_file() for row in rows[split])


def test_a_search_is_chosen_by_its_error_rate(monkeypatch):
    monkeypatch.setattr(an4, "figures", lambda run, table, options: {"wer": abs(options["ctc_weight"] - 0.5)})
    assert an4.best(None, None, [{"ctc_weight": each} for each in (0.3, 0.5, 0.7)]) == {"ctc_weight": 0.5}


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("AN4", raising=False)
    assert script("an4").main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        an4.main(["--data", str(tmp_path / "no")])
    assert "no" in capsys.readouterr().err


def test_committed_figures():
    path = ROOT / "an4" / "results" / "results.json"
    if not path.is_file():
        pytest.skip("an4 has not been measured")
    found = json.loads(path.read_text())
    both, alone = (found["searches"][name]["wer"] for name in ("attention and CTC", "attention alone"))
    assert both <= 15
    assert alone > both
