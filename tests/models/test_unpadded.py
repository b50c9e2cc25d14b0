"""Encoding without padding gives the numbers of a padded batch."""

import pytest
import torch

import saccade
from saccade.models import Bert, unpadded
from saccade.models.unpadded import Unpadded

LENGTHS = [3, 11, 2, 11, 17, 5, 3, 3, 1, 13]


def build(**arguments):
    torch.manual_seed(5)
    sizes = {"dim": 22, "num_heads": 2, "num_layers": 2, "feed_forward_dim": 29, "max_length": 17}
    return Bert(vocab=31, head="none", **{**sizes, **arguments}).eval()


def texts():
    generator = torch.Generator().manual_seed(3)
    ids = [torch.randint(0, 31, (length,), generator=generator).tolist() for length in LENGTHS]
    return ids, [max(1, length // 2) for length in LENGTHS]


def padded(ids, first):
    longest = max(map(len, ids))
    tokens = torch.tensor([text + [0] * (longest - len(text)) for text in ids])
    mask = torch.arange(longest) < torch.tensor([len(text) for text in ids])[:, None]
    segments = (mask & (torch.arange(longest) >= torch.tensor(first)[:, None])).long()
    return tokens, mask, segments


@torch.no_grad()
@pytest.mark.parametrize("tokens", [1, 19, 10_000])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"pooling": "mean"},
        {"pooling": "attention"},
        {"activation": "relu"},
        {"selection": "sparsemax", "pooling": "mean"},
        {"score": "additive"},
    ],
    ids=str,
)
def test_numbers_equal_those_of_a_padded_batch(arguments, tokens, monkeypatch):
    monkeypatch.setattr(unpadded, "TOKENS", tokens)
    model = build(**arguments)
    ids, first = texts()
    batch = padded(ids, first)
    expected = model.read(*batch)
    torch.testing.assert_close(model.vectors(ids, first), expected.pooled, rtol=0, atol=1e-5)
    for row, states in enumerate(Unpadded(model).states(ids, first)):
        torch.testing.assert_close(states, expected.states[row, : LENGTHS[row]], rtol=0, atol=1e-5)
    alone = model.read(batch[0], batch[1])
    torch.testing.assert_close(model.vectors(ids), alone.pooled, rtol=0, atol=1e-5)


def test_nothing_and_training_mode():
    model = build().train()
    ids, first = texts()
    assert torch.equal(model.vectors(ids, first), model.vectors(ids, first))  # no dropout
    assert model.training
    assert not model.vectors(ids).requires_grad
    assert model.vectors([]).shape == (0, 22)
    with pytest.raises(ValueError, match="without any token"):
        model.vectors([[1], []])
    with pytest.raises(ValueError, match="max_length=17"):
        model.vectors([list(range(18))])


def test_a_run_encodes_its_inputs(tmp_path):
    examples = [{"text": text, "label": text[0]} for text in ["a low tower", "new", "a new low"] * 5]
    run = saccade.train(
        "classification/bert",
        data={"train": examples},
        model={"dim": 14, "num_layers": 1},
        output=tmp_path / "run",
        overrides={"trainer.max_steps": 1, "trainer.metric": "loss"},
    )
    found = run.encode(["a low tower", ["a", "new"]])
    assert found.shape == (2, 14)
    field = run.task.inputs["text"]
    batch = field.pad([field.encode(value) for value in ("a low tower", ["a", "new"])])
    states = run.model.embed(batch["values"], batch["segments"])
    for layer in run.model.layers:
        states = layer(states, batch["mask"].unsqueeze(1))
    torch.testing.assert_close(found, run.model.pool(states, batch["mask"]).detach(), rtol=0, atol=1e-5)
