import pytest
import torch

from saccade.models import Cho, Luong, RNNSearch, Sutskever, Transformer
from tests.models.family import SMALL, TINY, VOCAB


def test_tied_embeddings_are_one_matrix():
    model = Transformer(**{**TINY, "target_vocab": 13}, tied="all")
    assert model.encoder.embedding is model.decoder.embedding
    features = torch.randn(3, 12)
    torch.testing.assert_close(model.head.logits(features), features @ model.encoder.embedding.weight.T)
    with pytest.raises(ValueError, match="one vocabulary"):
        Transformer(**TINY, tied="all")


def test_every_layer_has_its_own_score():
    from saccade.scores import AdditiveScore

    given = AdditiveScore(query_dim=6, key_dim=6, hidden_dim=5)
    model = Transformer(**TINY, score=given)
    scores = [m for m in model.modules() if isinstance(m, AdditiveScore)]
    assert len({id(m) for m in scores}) == 6
    assert given not in scores


def test_output_is_computed_for_what_is_asked():
    model = RNNSearch(**SMALL)
    mask = torch.ones(2, 3, dtype=torch.bool)
    decoded = model(torch.ones(2, 3, dtype=torch.long), mask, torch.ones(2, 5, dtype=torch.long))
    assert model.head.logits(decoded.features[torch.tensor([[True, False, True, False, False]] * 2)]).shape == (4, 11)


@pytest.mark.parametrize(
    ("model", "bound"), [(Sutskever(**SMALL, paper_start=True), 0.08), (Luong(**SMALL, paper_start=True), 0.1)]
)
def test_uniform_starts(model, bound):
    largest = max(parameter.abs().max().item() for parameter in model.parameters())
    assert 0.95 * bound < largest <= bound


@pytest.mark.parametrize("model", [Cho(**SMALL, paper_start=True), RNNSearch(**SMALL, paper_start=True)])
def test_normal_and_orthogonal_starts(model):
    assert 0.006 < model.decoder.input_proj.weight.std().item() < 0.014  # 0.01, of a small unseeded draw
    gate = model.encoder.layers[0].cells[0].weight[:8]
    torch.testing.assert_close(gate @ gate.T, torch.eye(8))
    if isinstance(model, RNNSearch):
        score = model.decoder.attention.score
        assert not score.hidden_proj.weight.any()
        assert score.query_proj.weight.std().item() < 0.002


@pytest.mark.parametrize(("query", "seen"), [("state", False), ("state_and_token", True)])
def test_attention_has_seen_the_token_before_or_not(query, seen):
    torch.manual_seed(0)
    model = RNNSearch(**SMALL, query=query).eval()
    source, mask, target = (
        torch.randint(4, 13, (1, 7)),
        torch.ones(1, 7, dtype=torch.bool),
        torch.randint(1, 11, (1, 5)),
    )
    other = target.clone()
    other[0, 3] = (target[0, 3] + 1) % 11
    weights, changed = (model(source, mask, tokens).weights[0] for tokens in (target, other))
    torch.testing.assert_close(weights[:3], changed[:3])
    assert torch.equal(weights[3], changed[3]) is not seen
    assert not torch.equal(weights[4], changed[4])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RNNSearch(**SMALL, encoder="birn"), "Did you mean 'birnn'"),
        (lambda: RNNSearch(**SMALL, cell="slow"), "'paper' or 'fast'"),
        (lambda: RNNSearch(**SMALL, readout_state="next"), "'previous' or 'current'"),
        (lambda: RNNSearch(**SMALL, query="token"), "'state' or 'state_and_token'"),
        (lambda: RNNSearch(**SMALL, score="aditive"), "Did you mean 'additive'"),
        (lambda: Luong(**VOCAB, hidden_dim=7, bidirectional=True), "must be even"),
        (lambda: Transformer(**TINY, positions="rotari"), "Did you mean 'rotary'"),
        (lambda: Transformer(**TINY, norm="middle"), "'pre' or 'post'"),
        (lambda: Transformer(**VOCAB, dim=10, num_heads=4), "not a multiple"),
        (lambda: Transformer(**TINY, tied="some"), "Choose from: all, none, target"),
        (lambda: Transformer(**TINY, decoder_layers=0), "at least one layer"),
    ],
)
def test_errors_name_the_fix(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("name", ["rnnsearch", "luong", "transformer"])
def test_bfloat16_autocast_trains(name):
    torch.manual_seed(0)
    model = {
        "rnnsearch": lambda: RNNSearch(**SMALL),
        "luong": lambda: Luong(**SMALL),
        "transformer": lambda: Transformer(**TINY),
    }[name]()
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        decoded = model(torch.randint(4, 13, (2, 5)), mask, torch.randint(1, 11, (2, 3)))
        loss = model.head.logits(decoded.features).float().logsumexp(-1).sum()
    loss.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
