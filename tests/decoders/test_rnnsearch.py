"""A search has the source projected once; what it computes is what training computes."""

import pytest
import torch

from saccade.models import models

VOCAB = 17


@pytest.mark.parametrize("readout_state", ["previous", "current"])
@pytest.mark.parametrize("cell", ["paper", "fast"])
def test_steps_of_a_search_are_those_of_training(cell, readout_state) -> None:
    sizes = {"source_vocab": VOCAB, "target_vocab": VOCAB, "embedding_dim": 7, "hidden_dim": 11}
    model = models.create("rnnsearch", **sizes, cell=cell, readout_state=readout_state).double().eval()
    source = torch.randint(3, VOCAB, (3, 5))
    mask = torch.arange(5) < torch.tensor([[5], [3], [0]])
    tokens = torch.randint(3, VOCAB, (3, 4))
    wanted = model.head.logits(model.decoder(model.encode(source, mask), tokens).features)
    for gradients in (False, True):
        with torch.set_grad_enabled(gradients):
            state = model.begin(model.encode(source, mask))
            assert state.projected
            for t in range(4):
                given = model.step(tokens[:, t], state)
                state = given.state
                torch.testing.assert_close(given.logits, wanted[:, t])


def test_values_are_projected_ahead_only_where_the_context_is_a_weighted_sum() -> None:
    model = models.create("rnnsearch", source_vocab=VOCAB, target_vocab=VOCAB, embedding_dim=7, hidden_dim=11).eval()
    source, mask = torch.randint(3, VOCAB, (2, 5)), torch.ones(2, 5, dtype=torch.bool)
    sampled = models.create(
        "rnnsearch", source_vocab=VOCAB, target_vocab=VOCAB, embedding_dim=7, hidden_dim=11, selection="gumbel_softmax"
    ).eval()
    assert model.begin(model.encode(source, mask)).projected
    assert not sampled.begin(sampled.encode(source, mask)).projected
