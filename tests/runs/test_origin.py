"""Models that start from the weights of another run, or of a BERT that the `transformers` library saved."""

import json

import pytest
import torch

import saccade
from saccade import huggingface
from saccade.configuration import ConfigError, read_config
from saccade.data.tokenisers.wordpiece import WordPiece
from saccade.models import Bert
from saccade.training import Trainer

TEXTS = ["a low tower", "the new tower", "low and lower", "a newer one", "nothing new"]
DATA = [{"text": text, "label": "new" if "new" in text else "old"} for text in TEXTS * 3]
SIZES = {"dim": 14, "num_heads": 2, "num_layers": 2, "feed_forward_dim": 19, "max_length": 23}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.manual_seed(3)
    tokeniser = WordPiece(vocab_size=47, lowercase=False).fit(TEXTS)
    path = tmp_path_factory.mktemp("foreign") / "bert"
    return huggingface.save(path, Bert(vocab=tokeniser.size, head="none", **SIZES), tokeniser)


def train(output, **arguments):
    given = {"task.inputs.text.max_length": 17, "data.held_out": 0, "trainer.metric": "loss", "trainer.max_steps": 1}
    overrides = given | arguments.pop("overrides", {})
    data = arguments.pop("data", {"train": DATA})
    return saccade.train("classification/bert", data=data, output=output, overrides=overrides, **arguments)


def test_sizes_vocabulary_and_weights_come_from_the_folder(folder, tmp_path, capsys):
    run = train(tmp_path / "run", init_from=folder, overrides={"trainer.learning_rate": 1e-30})
    said = capsys.readouterr().err
    assert "Started from 39 of 41 weight tensors" in said
    assert "(new: classifier.weight, classifier.bias)" in said
    assert "WARNING: its vocabulary" not in said
    config = read_config(run.folder / "config.yaml")["model"]
    assert {name: config[name] for name in SIZES} == SIZES
    loaded = saccade.load(run.folder)  # needs nothing of the folder that training started from
    pretrained = huggingface.load(folder)
    assert loaded.task.inputs["text"].tokeniser.vocabulary == pretrained.tokeniser.vocabulary
    assert not loaded.task.inputs["text"].tokeniser.lowercase
    for name, tensor in pretrained.model.state_dict().items():
        torch.testing.assert_close(loaded.model.state_dict()[name], tensor)
    assert {answer.value for answer in loaded.predict(TEXTS)} <= {"new", "old"}


def test_a_run_passes_on_its_sizes_and_vocabulary(folder, tmp_path, capsys):
    first = train(tmp_path / "first", init_from=folder)
    second = train(tmp_path / "second", init_from=first.folder, model={"pooling": "mean"})
    assert "Started from 39 of 39 weight tensors" in capsys.readouterr().err
    assert second.model.pooler is None
    assert second.task.inputs["text"].tokeniser.dumps() == first.task.inputs["text"].tokeniser.dumps()


def test_a_run_resumed_before_its_first_checkpoint_starts_from_the_same_weights(folder, tmp_path, capsys, monkeypatch):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in DATA))

    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run", init_from=folder, data={"train": str(rows)})
    capsys.readouterr()
    saccade.train(resume=tmp_path / "run")
    assert "Started from 39 of 41 weight tensors" in capsys.readouterr().err


def test_the_user_has_the_last_word(folder, tmp_path):
    run = train(tmp_path / "run", init_from=folder, overrides={"model.num_layers": 1})
    assert len(run.model.layers) == 1


def test_only_bert_starts_from_such_a_folder(folder, tmp_path):
    with pytest.raises(ConfigError, match="only `model: bert` can start from it, not pooling"):
        saccade.train("classification/pooling", data={"train": DATA}, output=tmp_path / "run", init_from=folder)
    with pytest.raises(FileNotFoundError, match="not a run"):
        train(tmp_path / "run", init_from=tmp_path)
    with pytest.raises(ConfigError, match="max_length of text to 23 or less"):
        train(tmp_path / "run", init_from=folder, overrides={"task.inputs.text.max_length": 24})
