"""Validation: what counts in the loss, and which options are refused before training starts."""

import numpy as np
import pytest

from saccade.fields import Text
from saccade.models import Transformer
from saccade.tasks import Generation, LanguageModelling
from saccade.training import Trainer

PAIRS = [{"source": text, "target": text[::-1]} for text in ("abc", "cab", "ba")]
LONG = {"source": "abc" * 30, "target": "a"}
SMALL = {"dim": 8, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward_dim": 8}


def validated(folder, valid):
    task = Generation(source=Text(tokeniser="char", max_length=8), metrics=["exact_match"])
    task.fit(PAIRS)
    task.observe(np.array([task.size(task.encode(pair)) for pair in PAIRS]))
    model = task.build(Transformer, positions="learned", max_length=30, dropout=0.0, **SMALL)
    trainer = Trainer(max_steps=1, device="cpu", learning_rate=1e-9)
    train = [task.encode(pair) for pair in PAIRS]
    return trainer.fit(task=task, model=model, train=train, valid=valid, output=folder)


def test_an_example_longer_than_the_model_can_read_does_not_end_the_training(tmp_path, capsys):
    without = validated(tmp_path / "without", PAIRS)
    assert "training would leave out" not in capsys.readouterr().err
    longer = validated(tmp_path / "with", [*PAIRS, LONG])
    assert "4 examples, the loss without the 1 that training would leave out" in capsys.readouterr().err
    assert 0.0 < longer.scores["loss"] < 10.0
    assert longer.scores.keys() == without.scores.keys()


def test_options_that_do_not_go_with_an_evaluation_are_refused_before_any_work():
    trainer = Trainer(max_steps=1, device="cpu", validate_options={"beam": 2})
    with pytest.raises(ValueError, match="score measures a text, but beam changes how it is continued"):
        trainer.check(LanguageModelling(), validating=True)
