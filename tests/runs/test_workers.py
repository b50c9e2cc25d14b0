"""Several processes predict what one would."""

import pytest
import torch

from saccade.fields import Text
from saccade.models import models
from saccade.runs.workers import Workers
from saccade.tasks import Classification, Generation

TEXTS = ["abc", "", "b", "ca", "abca", "cb", "bacab", "aa", "c", "abc", "cc"]


@pytest.fixture(scope="module")
def task():
    made = Generation(source=Text(tokeniser="char"), metrics=["exact_match"])
    made.fit([{"source": text, "target": text[::-1]} for text in ["abcabc", "cab"]])
    return made


@pytest.fixture(scope="module")
def model(task):
    torch.manual_seed(3)
    return models.create("rnnsearch", **task.sizes(), embedding_dim=5, hidden_dim=7).eval()


@pytest.fixture(scope="module")
def workers(task, model):
    with Workers(task, model, 2) as started:
        yield started


@pytest.mark.parametrize("options", [{}, {"nbest": 2}, {"sample": True, "seed": 5}, {"prefix": [t[:1] for t in TEXTS]}])
def test_the_same_predictions(task, model, workers, options):
    ours = workers.predict(TEXTS, batch_size=3, **options)
    alone = task.predict(model, TEXTS, batch_size=3, **options)
    assert [p.text for p in ours] == [p.text for p in alone]
    for mine, other in zip(ours, alone, strict=True):
        assert mine.score == pytest.approx(other.score, rel=1e-5)
        assert [h.tokens for h in mine.alternatives] == [h.tokens for h in other.alternatives]
        assert (mine.weights is None) == (other.weights is None)
        if mine.weights is not None:
            torch.testing.assert_close(mine.weights, other.weights)


def test_any_task_and_nothing_but_answers(capfd):
    task = Classification()
    task.fit([{"text": "a b", "label": "x"}, {"text": "b c", "label": "y"}])
    torch.manual_seed(3)
    model = models.create("pooling", **task.sizes(), embedding_dim=5, hidden_dim=7).eval()
    texts = ["a", "b c", "c a b", "b"]
    alone = task.predict(model, texts, batch_size=2)
    with Workers(task, model, 1) as one:
        found = one.predict(texts, batch_size=2)
    assert [(answer.value, answer.details) for answer in found] == [(each.value, each.details) for each in alone]
    assert capfd.readouterr() == ("", "")


def test_no_inputs(workers):
    assert workers.predict([]) == []


def test_an_error_is_that_of_the_model_and_the_workers_live_on(workers):
    with pytest.raises(ValueError, match="no option"):
        workers.predict(TEXTS, beem=3)
    assert len(workers.predict(TEXTS)) == len(TEXTS)


def test_a_prefix_for_each_input(workers):
    with pytest.raises(ValueError, match="one for each of 11"):
        workers.predict(TEXTS, prefix=["a", "b"])


def test_a_worker_that_died_is_told(task, model):
    with Workers(task, model, 1) as workers:
        workers._processes[0]._process.kill()
        with pytest.raises(ChildProcessError, match="exit code -9"):
            workers.predict(TEXTS)


def test_how_many(task, model):
    with pytest.raises(ValueError, match="1 or more, got 0"):
        Workers(task, model, 0)
    with pytest.raises(ValueError, match="on meta"):
        Workers(task, torch.nn.Linear(2, 3, device="meta"), 2)
