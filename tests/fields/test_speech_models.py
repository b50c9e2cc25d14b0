"""The other speech configurations from the command line, at toy scale: streams, CTC, and language models."""

import io
import json
import random
import sys
from types import SimpleNamespace

import pytest

import saccade
from saccade.cli import main
from tests.data.sounds import pcm
from tests.fields.test_speech import made, spoken

TOY = {
    "task.source.rate": 8000,
    "task.source.mels": 16,
    "model.embedding_dim": 8,
    "model.hidden_dim": 16,
    "trainer.batch_tokens": 400,
    "trainer.max_steps": 2,
    "trainer.validate_every": 2,
    "trainer.validate_examples": 3,
}
OWN = {
    "las": {"model.listener_dim": 8},
    "chorowski": {"model.encoder_layers": 1, "model.alignment_dim": 8},
    "online": {"model.selection.threshold": 0.25, "model.encoder_layers": 1},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech-models")
    made(folder, "train", 20, 1)
    made(folder, "test", 4, 2)
    return folder


@pytest.fixture(scope="module")
def runs(folder):
    """A run of each configuration."""
    data = {"train": str(folder / "train.csv"), "columns": {"source": "file", "target": "said"}}
    return {
        name: saccade.train(f"speech/{name}", data=data, overrides={**TOY, **own}, output=folder / name)
        for name, own in OWN.items()
    }


@pytest.fixture(scope="module")
def language(folder):
    """A language model that has seen nothing but the letter c."""
    texts = {"train": [("ccc",), ("cc",)] * 40, "held_out": 0.1}
    sizes = {"model.dim": 8, "model.num_layers": 1, "model.num_heads": 2, "task.text.tokeniser": "char"}
    steps = {"trainer.max_steps": 40, "trainer.learning_rate": 0.03, "trainer.validate_every": 40}
    return saccade.train("language/transformer", data=texts, overrides={**sizes, **steps}, output=folder / "lm")


@pytest.mark.parametrize("name", OWN)
def test_every_configuration_trains_and_evaluates(runs, folder, name, capsys) -> None:
    capsys.readouterr()
    test = ["--data", str(folder / "test.csv"), "--json", "--max-length", "5"]
    assert main(["evaluate", str(runs[name].folder), *test]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["figures"]) == {"wer", "cer"}
    edits = found["tables"]["edits"]["rows"]
    assert edits["words"][3] == 4
    assert sum(edits["characters"][:3]) / edits["characters"][3] == pytest.approx(
        found["figures"]["cer"] / 100, rel=1e-3
    )


@pytest.mark.parametrize("beam", [1, 3])
def test_ctc_in_the_search(runs, beam) -> None:
    las, sounds = runs["las"], [spoken("abc", random.Random(1)), spoken("d", random.Random(2))]
    options = {"beam": beam, "max_length": 4}
    scores = [[a.log_prob for a in las.predict(sounds, ctc_weight=weight, **options)] for weight in (0.0, 0.3, None)]
    assert scores[1] == pytest.approx(scores[2])  # as much as in training
    assert scores[0] != pytest.approx(scores[1])
    assert las.predict(sounds, **options)[0].attention is not None


def test_wrong_weights_of_ctc(runs) -> None:
    las, sounds = runs["las"], [spoken("d", random.Random(2))]
    with pytest.raises(ValueError, match="needs a model trained with ctc_weight"):
        runs["chorowski"].predict(sounds, ctc_weight=0.3)
    with pytest.raises(ValueError, match="ctc_weight must be from"):
        las.predict(sounds, ctc_weight=1.3)


def test_a_language_model_ranks_the_beam(runs, language, folder, capsys) -> None:
    las, sounds = runs["las"], [spoken("ab", random.Random(3)), spoken("cc", random.Random(4))]
    options = {"beam": 4, "nbest": 4, "max_length": 3}
    plain = las.predict(sounds, **options)
    ranked = las.predict(sounds, lm=language, lm_weight=0.7, **options)
    for before, after in zip(plain, ranked, strict=True):
        known = {answer.text: answer for answer in before.alternatives}
        assert {answer.text for answer in after.alternatives} == set(known)
        for answer in after.alternatives:
            (read,) = language.task.predict(language.model, [answer.text], score=True)
            length = ((5 + len(answer.tokens) + answer.finished) / 6) ** 0.6
            wanted = (known[answer.text].log_prob + 0.7 * read.value) / length
            assert answer.score == pytest.approx(wanted, abs=1e-4)
        scores = [(answer.finished, answer.score) for answer in after.alternatives]
        assert scores == sorted(scores, reverse=True)
    assert [a.text for a in las.predict(sounds, lm=language, lm_weight=0.0, beam=4, max_length=3)] == [
        a.text for a in las.predict(sounds, beam=4, max_length=3)
    ]
    lm = ["--lm", str(language.folder), "--lm-weight", "50", "--max-length", "3"]
    assert main(["predict", str(las.folder), str(folder / "test"), *lm]) == 0
    assert main(["evaluate", str(las.folder), "--data", str(folder / "test.csv"), *lm]) == 0
    for wrong, problem in (
        ({"lm": las}, "must be a run of language modelling"),
        ({"lm": language, "beam": 1}, "set beam to 2 or more"),
        ({"lm": language, "lm_weight": -1.0}, "lm_weight must be 0 or more"),
    ):
        with pytest.raises(ValueError, match=problem):
            las.predict(sounds, **wrong)
    with pytest.raises(ValueError, match="ranks texts that a search found, but this task is language_modelling"):
        language.predict(["ab"], lm=language)


def test_streams_write_what_a_prediction_writes(runs, folder, capsys, monkeypatch) -> None:
    online = runs["online"]
    files = sorted(str(path) for path in (folder / "test").iterdir())
    wanted = [answer.text for answer in online.predict(files, beam=1, ctc_weight=0.0, max_length=12)]
    capsys.readouterr()
    run = str(online.folder)
    assert main(["predict", run, str(folder / "test"), "--stream", "--max-length", "12"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == wanted
    assert shown.err.count("read on average") == len(files)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pcm(spoken("ab", random.Random(1))))))
    assert main(["predict", run, "-", "--stream", "--format", "jsonl", "--max-length", "12"]) == 0
    *parts, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert "".join(part["text"] for part in parts) == last["answer"]
    assert all(part["looked_at"] <= part["read"] <= last["seconds"] for part in parts)
    assert 0.0 < last["proportion"] <= 1.0


def test_streams_of_models_that_read_first(runs, folder, capsys) -> None:
    (file, *_) = sorted((folder / "test").iterdir())
    assert main(["predict", str(runs["chorowski"].folder), str(file), "--stream", "--max-length", "4"]) == 0
    shown = capsys.readouterr()
    assert "reads the whole recording before it writes" in shown.err
    assert "100% read on average" in shown.err


def test_what_cannot_be_streamed(runs, folder, capsys) -> None:
    file, run = str(next((folder / "test").iterdir())), str(runs["online"].folder)
    for wrong, problem in (
        (["--draw"], "--stream takes no"),
        (["--beam", "3"], "cannot be streamed"),
        (["--min-length", "3"], "cannot be combined with a recording"),
    ):
        assert main(["predict", run, file, "--stream", *wrong]) == 2
        assert problem in capsys.readouterr().err
    assert main(["predict", run, str(folder / "gone.wav"), "--stream"]) == 2
    assert "does not exist" in capsys.readouterr().err
    cut, silent = folder / "cut.wav", folder / "silent.wav"
    cut.write_bytes(pcm(spoken("ab", random.Random(1)))[:-100])
    silent.write_bytes(pcm(spoken("ab", random.Random(1))[:0]))
    for bad in (cut, silent):
        assert main(["predict", run, str(bad), "--stream"]) == 2
        assert str(bad) in capsys.readouterr().err


@pytest.mark.parametrize("name", ["online", "chorowski"])
def test_a_pipe_that_is_wrong_is_named(runs, capsys, monkeypatch, name) -> None:
    sound = spoken("ab", random.Random(1))
    for content, problem in ((pcm(sound[:0]), "contains no sound"), (pcm(sound)[:-100], "samples too early")):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        assert main(["predict", str(runs[name].folder), "-", "--stream", "--max-length", "4"]) == 2
        shown = capsys.readouterr().err
        assert problem in shown
        assert "-: it" in shown


def test_a_stream_reads_as_much_as_a_prediction_does(runs, folder, monkeypatch, capsys) -> None:
    online = runs["online"]
    (file, *_) = sorted((folder / "test").iterdir())
    whole = online.predict([str(file)], beam=1, ctc_weight=0.0, max_length=12)[0]
    for place in ("listening", "unseen"):
        monkeypatch.setattr(f"saccade.tasks.generation.{place}.most_read", lambda model, trained: 7)
    assert main(["predict", str(online.folder), str(file), "--stream", "--max-length", "12", "--format", "jsonl"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    (short,) = online.predict([str(file)], beam=1, ctc_weight=0.0, max_length=12)
    assert last["answer"] == short.text
    assert len(short.attention.keys) < len(whole.attention.keys)
