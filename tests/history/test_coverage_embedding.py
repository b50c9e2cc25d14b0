import pytest
import torch

from saccade import Attention, masks
from saccade.history import CoverageEmbedding
from saccade.scores import CoverageEmbeddingScore

DIMS = {"query_dim": 5, "key_dim": 11, "feature_dim": 3}


@pytest.mark.parametrize("update", ["gru", "subtraction"])
def test_the_first_step_sees_full_embeddings(update):
    feature = CoverageEmbedding(**DIMS, update=update)
    keys, query = torch.randn(2, 7, 11), torch.randn(2, 1, 5)
    kept = feature.prepare(keys)
    state = feature.begin(query, kept)
    assert torch.equal(feature.features(state, query, kept), keys @ feature.key_proj.weight.T)


def test_what_an_output_takes_is_taken_by_the_next_query():
    feature = CoverageEmbedding(**DIMS, update="subtraction")
    keys = torch.randn(2, 7, 11)
    first, second = torch.randn(2, 1, 5), torch.randn(2, 1, 5)
    weights = torch.softmax(torch.randn(2, 1, 7), -1)
    kept = feature.prepare(keys)
    state = feature.advance(feature.begin(first, kept), weights, first, kept)
    assert torch.equal(state.embedding, kept), "nothing is taken before the output is known"
    taken = weights.transpose(-1, -2) * (second @ feature.query_proj.weight.T)
    torch.testing.assert_close(feature.features(state, second, kept), kept - taken)


@pytest.mark.parametrize("update", ["gru", "subtraction"])
def test_residual_is_over_attendable_keys_and_settled_by_one_more_query(update):
    score = CoverageEmbeddingScore(query_dim=5, key_dim=11, hidden_dim=13, feature_dim=3, update=update).double()
    attention = Attention(score=score)
    query, keys = torch.randn(2, 4, 5).double(), torch.randn(2, 7, 11).double()
    memory = attention.prepare(keys, mask=masks.from_lengths([3, 7]))
    spoken = attention.read(query[:, :3], memory)
    settled = attention.read(query[:, 3:], memory, state=spoken.state).state.score[0]
    feature = score.features[0]
    embedding = feature.features(spoken.state.score[0], query[:, 3:], memory.prepared[0][1][0])
    torch.testing.assert_close(settled.embedding, embedding)
    expected = torch.stack([embedding[0, :3].square().sum(), embedding[1].square().sum()])
    torch.testing.assert_close(settled.residual(), expected)


def test_training_on_the_residual_empties_the_embeddings():
    torch.manual_seed(0)
    score = CoverageEmbeddingScore(query_dim=5, key_dim=11, hidden_dim=13, feature_dim=3)
    attention = Attention(score=score)
    query, keys = torch.randn(2, 6, 5), torch.randn(2, 7, 11)
    optimizer = torch.optim.Adam(score.parameters(), lr=0.02)
    residuals = []
    for _ in range(40):
        residual = attention(query, keys).state.score[0].residual().mean()
        optimizer.zero_grad()
        residual.backward()
        optimizer.step()
        residuals.append(residual.item())
    assert residuals[-1] < 0.1 * residuals[0]


def test_unknown_update():
    with pytest.raises(ValueError, match="update must be 'subtraction' or 'gru', got 'add'"):
        CoverageEmbedding(**DIMS, update="add")
