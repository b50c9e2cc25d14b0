"""Link prediction: the data names links alone, and pairs without one are drawn."""

import numpy as np
import pytest
import torch

from saccade.fields import Link, Text
from saccade.models import LinkGAT
from saccade.tasks import LinkPrediction

LINKS = ["0 1", "1 2", "2 3", "3 4", "7 8"]


@pytest.fixture
def task(tmp_path):
    edges = np.array([[int(end) for end in link.split()] for link in LINKS])
    np.savez(tmp_path / "graph.npz", x=np.eye(11, 5, dtype=np.float32), edges=edges)
    task = LinkPrediction(inputs={"pair": Link(graph=str(tmp_path / "graph.npz"))}, negatives=3)
    task.fit([{"pair": link} for link in LINKS])
    return task


def test_training_draws_other_pairs_for_every_batch(task):
    rows = [task.encode({"pair": link}) for link in LINKS]
    generator = torch.Generator().manual_seed(5)
    first, second = (task.collate(rows, generator=generator) for _ in range(2))
    assert first["label"].tolist() == [1] * 5 + [0] * 15
    assert first["pair"].shape == (20, 2)
    assert not torch.equal(first["pair_features"], second["pair_features"]) or not torch.equal(
        first["pair"], second["pair"]
    )
    model = LinkGAT(**task.sizes(), num_heads=2, head_dim=3)
    loss = task.loss(model, first)
    assert int(loss.count) == 20
    loss.total.backward()


def test_evaluations_draw_the_same_pairs_every_time(task):
    examples = [{"pair": "0 5"}, {"pair": "6 7"}]
    found = task.joined(examples)
    assert found == task.joined(examples)
    assert [each["label"] for each in found] == ["yes"] * 2 + ["no"] * 6
    links = {tuple(sorted(link.split())) for link in (*LINKS, "0 5", "6 7")}
    drawn = [tuple(sorted(each["pair"].split())) for each in found[2:]]
    assert links.isdisjoint(drawn)
    assert all(one != other for one, other in drawn)
    assert task.joined([]) == []


def test_figures_and_answers(task):
    model = LinkGAT(**task.sizes(), num_heads=2, head_dim=3).eval()
    examples = task.joined([{"pair": "0 5"}, {"pair": "6 7"}])
    assert set(task.evaluate(model, examples)) == {"auroc", "auprc", "accuracy"}
    (answer,) = task.predict(model, ["0 5"])
    assert answer.value in ("yes", "no")
    assert sum(answer.details["probabilities"].values()) == pytest.approx(1.0)


def test_what_it_cannot_read(task):
    with pytest.raises(ValueError, match="link_prediction reads one input, of the field link"):
        LinkPrediction(inputs={"text": Text(tokeniser="word")})
    with pytest.raises(ValueError, match="negatives"):
        LinkPrediction(inputs=task.inputs, negatives=0)
