import torch

from saccade.selections.ranks import Ranks

MASK = torch.tensor([[True, False, True, True], [False, False, False, True], [False] * 4])


def test_ranks_count_attendable_keys():
    ranks = Ranks.of(MASK)
    assert ranks.size.tolist() == [[3], [1], [0]]
    assert ranks.rank[MASK].tolist() == [0, 1, 2, 0]


def test_pack_moves_attendable_entries_to_the_front():
    tensor = torch.arange(12.0).view(3, 4)
    packed = Ranks.of(MASK).pack(tensor, fill=-1)
    assert packed.tolist() == [[0, 2, 3, -1], [7, -1, -1, -1], [-1, -1, -1, -1]]
    assert torch.equal(Ranks.of(MASK).unpack(packed), tensor * MASK)


def test_gradients_go_where_the_entries_came_from():
    tensor = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    ranks = Ranks.of(MASK)
    assert torch.autograd.gradcheck(ranks.pack, (tensor,))
    assert torch.autograd.gradcheck(ranks.unpack, (tensor,))


def test_no_keys():
    ranks = Ranks.of(torch.zeros(3, 0, dtype=torch.bool))
    assert ranks.unpack(ranks.pack(torch.zeros(3, 0))).shape == (3, 0)
