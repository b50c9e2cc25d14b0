"""The folder of a run: nothing of a user's is harmed, and damage is found."""

import os
import random
from functools import partial

import pytest

import saccade
from saccade.artifacts import ArtifactError
from saccade.configuration import ConfigError, read_config
from saccade.fields import Text
from saccade.models import RNNSearch
from saccade.runs.folder import check_output, with_absolute_paths
from saccade.tasks import Generation

LETTERS = random.Random(5)
WORDS = ["".join(LETTERS.choices("abcdefg", k=LETTERS.randint(1, 5))) for _ in range(110)]
PAIRS = [(word, word[::-1]) for word in WORDS]


def train(output, *, data=None, **trainer):
    return saccade.train(
        task=partial(Generation, source=partial(Text, tokeniser="char"), metrics=["exact_match"]),
        model=partial(RNNSearch, embedding_dim=7, hidden_dim=11, cell="fast"),
        data=data or {"train": PAIRS},
        trainer={"max_steps": 2, "batch_tokens": 130, "validate_examples": 3, **trainer},
        output=output,
    )


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_pairs(path):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))


@pytest.mark.parametrize("name", ["task/notes.txt", "README.md", "config.yaml", "model.safetensors"])
def test_a_project_of_a_user_is_not_touched(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=f"not empty .*{name.split('/')[0]}.*another folder"):
        train(tmp_path)
    assert contents(tmp_path) == before


def test_a_training_that_came_to_no_checkpoint_may_begin_again(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("out of memory")

    monkeypatch.setattr("saccade.training.trainer.Loop.run", fail)
    with pytest.raises(RuntimeError):
        train(tmp_path / "run")
    monkeypatch.undo()
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"config.yaml", "provenance.json", "task"}
    (tmp_path / "run" / "README.md").write_text("mine")
    with pytest.raises(FileExistsError, match=r"contains README\.md"):
        check_output(tmp_path / "run")
    (tmp_path / "run" / "README.md").unlink()
    train(tmp_path / "run")
    assert saccade.load(tmp_path / "run").predict(["abc"])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(folder)
    return folder


@pytest.mark.parametrize(
    ("key", "value", "old"),
    [
        ("model.hidden_dim", 13, 11),
        ("task.source.max_length", 9, 256),
        ("trainer.batch_tokens", 99, 130),
        ("trainer.seed", 2, 1),
        ("data.bad_rows", "skip", "'error'"),
    ],
)
def test_what_a_resumed_run_cannot_change_is_named(finished, key, value, old):
    before = contents(finished)
    with pytest.raises(ConfigError, match=f"{key} was {old or ''}.*cannot become {value!r}"):
        saccade.train(resume=finished, data={"train": PAIRS}, overrides={key: value, "trainer.max_steps": 4})
    assert contents(finished) == before


def test_a_resumption_that_fails_leaves_the_run_as_it_was(finished):
    before = contents(finished)
    with pytest.raises((ValueError, KeyError, RuntimeError)):
        saccade.train(resume=finished, data={"train": PAIRS[:3]}, overrides={"trainer.max_steps": 4})
    assert contents(finished) == before
    assert saccade.load(finished).plan.trainer.max_steps == 2


def test_a_model_without_checkpoints_is_not_trained_again(tmp_path):
    train(tmp_path / "run")
    (tmp_path / "run" / "checkpoints").rename(tmp_path / "elsewhere")
    before = contents(tmp_path / "run")
    with pytest.raises(FileNotFoundError, match="no checkpoint to continue from"):
        saccade.train(resume=tmp_path / "run", data={"train": PAIRS})
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize("name", ["model.safetensors", "config.yaml", "task/source/tokeniser.json"])
def test_a_flipped_bit_is_found(tmp_path, name):
    train(tmp_path)
    path = tmp_path / name
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=f"{name} is damaged.*[Cc]opy the run again"):
        saccade.load(tmp_path)


def test_a_run_goes_on_from_any_folder_and_is_sealed_again(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    write_pairs(tmp_path / "pairs.tsv")
    monkeypatch.chdir(tmp_path)
    train("run", data={"train": "pairs.tsv"})
    assert read_config("run/config.yaml")["data"]["train"] == str(tmp_path / "pairs.tsv")
    assert str(tmp_path) not in (tmp_path / "run" / "README.md").read_text()
    monkeypatch.chdir(tmp_path / "there")
    run = saccade.train(resume="../run", overrides={"trainer.max_steps": 3, "data.train": "../pairs.tsv"})
    assert run.result.step == 3
    assert saccade.load("../run").plan.trainer.max_steps == 3
    assert (tmp_path / "run" / "checksums.json").is_file()


def test_every_way_to_name_files_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("kept", "b"):
        (tmp_path / name).mkdir()
    for name in ("a.en", "a.de", "b/a.de"):
        (tmp_path / name).write_text("text\n")
    for given, expected in (
        ("a.tsv", f"{tmp_path}/a.tsv"),
        ("a.en, b/a.de", f"{tmp_path}/a.en,{tmp_path}/b/a.de"),
        (["a.en", "a.de"], [f"{tmp_path}/a.en", f"{tmp_path}/a.de"]),
        ("dates:train:200", "dates:train:200"),
        ("hf:someone/set@de:train", "hf:someone/set@de:train"),
        ("hf:kept:train", f"hf:{tmp_path}/kept:train"),
    ):
        found = with_absolute_paths({"data": {"train": given, "valid": None}})["data"]
        assert found == {"train": expected, "valid": None}
    assert os.getcwd() == str(tmp_path)


def test_options_of_the_validation_are_checked_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'length_penalty'"):
        train(tmp_path / "run", validate_options={"beam": 2, "length_penality": 0.5})
    with pytest.raises(ValueError, match="nbest=3"):
        train(tmp_path / "run", validate_options={"beam": 2, "nbest": 3})
    assert not (tmp_path / "run").exists()


def test_a_training_that_was_killed_while_it_read_may_start_again(tmp_path):
    (tmp_path / "run" / "data").mkdir(parents=True)
    (tmp_path / "run" / "data" / "train.arrow.4711.part").write_bytes(b"half")
    check_output(tmp_path / "run")
    (tmp_path / "run" / "data" / "mine.csv").write_text("a")
    with pytest.raises(FileExistsError, match="is not empty"):
        check_output(tmp_path / "run")
