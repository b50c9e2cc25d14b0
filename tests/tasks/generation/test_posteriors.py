"""A task trains models that sum over alignments by their likelihood, and shows where each word came from."""

import pytest
import torch

from saccade.fields import Text
from saccade.models import HardMonotonic, RNNSearch, SegmentToSegment
from saccade.tasks import Generation
from saccade.tasks.generation.posteriors import sums_alignments

PAIRS = [
    {"source": "walk <V;PST>", "target": "walked"},
    {"source": "go <V;PST>", "target": "went"},
    {"source": "see <V;PRS>", "target": "sees"},
]


@pytest.fixture
def task():
    task = Generation(source=Text(tokeniser="tagged"), target=Text(tokeniser="char"), metrics=["exact_match"])
    task.fit(PAIRS)
    return task


def build(task, kind, **options):
    torch.manual_seed(0)
    return task.build(kind, embedding_dim=5, hidden_dim=8, **options)


def test_which_models_sum(task):
    assert not sums_alignments(build(task, RNNSearch))
    assert sums_alignments(build(task, HardMonotonic))


@pytest.mark.parametrize(("kind", "options"), [(HardMonotonic, {"order": 0}), (SegmentToSegment, {})])
def test_the_loss_is_that_of_the_words_one_by_one(task, kind, options, monkeypatch):
    model = build(task, kind, **options).train()
    batch = task.collate([task.encode(pair) for pair in PAIRS])
    summed = task.loss(model, batch)
    monkeypatch.setattr("saccade.tasks.generation.task.sums_alignments", lambda model: False)
    one_by_one = task.loss(model, batch)
    assert summed.count == one_by_one.count == sum(len(pair["target"]) + 1 for pair in PAIRS)
    torch.testing.assert_close(summed.total, one_by_one.total, rtol=1e-4, atol=1e-4)


def test_label_smoothing_needs_all_words(task):
    model = build(task, HardMonotonic)
    batch = task.collate([task.encode(pair) for pair in PAIRS])
    plain = task.loss(model.train(), batch).total
    task.label_smoothing = 0.2
    assert (task.loss(model.train(), batch).total - plain).abs() > 0.1
    torch.testing.assert_close(task.loss(model.eval(), batch).total, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 3, "nbest": 2}, {"sample": True, "seed": 1}])
def test_predictions_show_the_posterior_alignment(task, options):
    model = build(task, HardMonotonic, order=0)
    texts = [pair["source"] for pair in PAIRS]
    for text, best in zip(texts, task.predict(model, texts, max_length=7, **options), strict=True):
        for prediction in best.alternatives or [best]:
            assert prediction.weights.shape == (len(prediction.attention.queries), len(prediction.attention.keys))
            target = torch.tensor([[*prediction.tokens, *([2] if prediction.finished else [])]])
            source = torch.tensor([[*task.source.tokeniser.encode(text), 2]])
            before = torch.cat([torch.ones(1, 1, dtype=torch.long), target[:, :-1]], dim=1)
            everything = torch.ones_like(source, dtype=torch.bool)
            alignment = model.eval().alignment(source, everything, before, target, torch.ones_like(target) > 0)
            torch.testing.assert_close(prediction.weights, alignment.marginals[0], atol=1e-5, rtol=0)


def test_online_predictions_show_what_was_chosen(task):
    model = build(task, SegmentToSegment)
    (prediction,) = task.predict(model, ["go <V;PST>"], max_length=7)
    assert ((prediction.weights == 0) | (prediction.weights == 1)).all()
    assert (prediction.weights.sum(-1) == 1).all()


def test_nothing_written_has_no_rows(task):
    model = build(task, HardMonotonic, order=0)
    (prediction,) = task.predict(model, [""])
    assert prediction.text == ""
    assert prediction.weights.shape == (0, 1)
