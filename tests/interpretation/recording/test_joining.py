import pytest
import torch

import saccade
from saccade.interpretation.recording import joining
from saccade.interpretation.recording.positions import Positions
from saccade.models import Luong


def join(name, parts, rows, places=None):
    return joining.join(name, parts, places or [Positions()] * len(parts), rows)


def steps(batches, keys):
    return [torch.rand(batch, 3, 1, count) for batch, count in zip(batches, keys, strict=True)]


def test_fewer_keys_are_filled_up_with_zeros():
    parts = steps([2, 2, 2], [1, 2, 3])
    joined = join("x", parts, None)
    assert joined.shape == (2, 3, 3, 3)
    for i, part in enumerate(parts):
        assert torch.equal(joined[:, :, i, : i + 1], part[:, :, 0])
        assert (joined[:, :, i, i + 1 :] == 0).all()


@pytest.mark.parametrize("form", [torch.tensor, list])
def test_rows_follow_hypotheses(form):
    parts = steps([2, 4, 3], [5, 5, 5])
    joined = join("x", parts, form([[1, 3, 0], [0, 2, -1]]))
    assert torch.equal(joined[0], torch.stack([parts[0][1, :, 0], parts[1][3, :, 0], parts[2][0, :, 0]], dim=1))
    assert torch.equal(joined[1, :, 1], parts[1][2, :, 0])
    assert (joined[1, :, 2] == 0).all()


def test_a_prompt_and_its_steps():
    parts = [torch.rand(2, 3, 5, 5), torch.rand(2, 3, 1, 6)]
    assert join("x", parts, torch.tensor([[1, 0]])).shape == (1, 3, 6, 6)


def test_errors_name_the_place():
    parts = steps([2, 4], [5, 5])
    with pytest.raises(ValueError, match=r"'x' has 2 rows at its first call and 4 at call 1.*rows="):
        join("x", parts, None)
    with pytest.raises(ValueError, match="row 4 at call 1 of 'x', whose batch has 4 rows"):
        join("x", parts, [[0, 4]])
    with pytest.raises(ValueError, match="rows has 3 calls, but 'x' was called 2 times"):
        join("x", parts, [[0, 1, 1]])
    with pytest.raises(ValueError, match="rows must be"):
        join("x", parts, torch.tensor([1, 2]))


def test_hypotheses_that_are_queries_of_one_row():
    parts = [torch.rand(2, 3, 1, 5), torch.rand(2, 3, 4, 5), torch.rand(1, 3, 4, 5)]
    joined = join("x", parts, [[1, 6, 2], [0, 3]])
    assert joined.shape == (2, 3, 3, 5)
    assert torch.equal(joined[0], torch.stack([parts[0][1, :, 0], parts[1][1, :, 2], parts[2][0, :, 2]], dim=1))
    assert torch.equal(joined[1, :, 1], parts[1][0, :, 3])
    assert (joined[1, :, 2] == 0).all()


def test_steps_that_are_read_again_are_refused():
    parts = [torch.rand(2, 3, step, step) for step in (1, 2, 3)]
    with pytest.raises(ValueError, match=r"'x' have 1, 2, \.\.\. queries.*with a cache"):
        join("x", parts, [[0, 1, 1]])


def test_keys_stand_at_their_positions():
    parts = [torch.rand(2, 3, 5, 5), torch.rand(2, 3, 1, 4), torch.rand(2, 3, 1, 4)]
    joined = join("x", parts, None, [Positions(0, 0), Positions(2, 5), Positions(3, 6)])
    assert joined.shape == (2, 3, 7, 7)
    assert torch.equal(joined[:, :, :5, :5], parts[0])
    assert torch.equal(joined[:, :, 5:6, 2:6], parts[1])
    assert torch.equal(joined[:, :, 6:7, 3:7], parts[2])
    assert (joined[:, :, 5, :2] == 0).all()


def test_a_query_that_is_computed_again_replaces_the_earlier_one():
    parts = [torch.rand(1, 3, 4, 4), torch.rand(1, 3, 2, 4)]
    joined = join("x", parts, None, [Positions(0, 0), Positions(0, 2)])
    assert torch.equal(joined, torch.cat([parts[0][:, :, :2], parts[1]], dim=2))


def test_steps_whose_weights_are_computed_later_follow_one_another():
    """Local attention keeps no keys that would tell positions."""
    model = Luong(
        source_vocab=11, target_vocab=13, embedding_dim=7, hidden_dim=8, selection="local_p", half_width=3
    ).eval()
    source = torch.randint(3, 11, (1, 17))
    with torch.no_grad(), saccade.record(model) as trace:
        model.decoder(model.encode(source, source > 0), torch.randint(3, 13, (1, 5)))
    assert torch.equal(trace.joined("decoder.attention"), torch.cat([call.weights for call in trace.calls], dim=2))
