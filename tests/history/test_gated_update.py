import torch

from saccade.history.gated_update import GatedUpdate


def test_gates_open_and_closed():
    gru = GatedUpdate(dim=3)
    previous = torch.randn(2, 7, 3)
    inputs = torch.randn(2, 7, 9)
    closed, open_ = inputs.clone(), inputs.clone()
    closed[..., :3], open_[..., :3] = -1e4, 1e4
    torch.testing.assert_close(gru(closed, previous), previous)
    open_[..., 3:6] = -1e4  # the past is reset: what remains is the candidate from the input alone
    torch.testing.assert_close(gru(open_, previous), inputs[..., 6:].tanh())


def test_one_step_of_torch_where_the_reset_gate_stays_open():
    """With r = 1 it makes no difference on which side of the product the reset gate stands."""
    ours = GatedUpdate(dim=3)
    theirs = torch.nn.GRUCell(9, 3)
    previous, inputs = torch.randn(7, 3), torch.randn(7, 9)
    inputs[:, 3:6] = 1e4
    with torch.no_grad():
        # torch: r, z, n with h' = (1 - z) n + z h, so that its z is our 1 - z.
        theirs.weight_ih.zero_()
        theirs.bias_ih.zero_()
        theirs.bias_hh.zero_()
        theirs.weight_ih[0:3, 3:6] = torch.eye(3)
        theirs.weight_ih[3:6, 0:3] = -torch.eye(3)
        theirs.weight_ih[6:9, 6:9] = torch.eye(3)
        theirs.weight_hh[0:3] = ours.gate_proj.weight[3:6]
        theirs.weight_hh[3:6] = -ours.gate_proj.weight[0:3]
        theirs.weight_hh[6:9] = ours.candidate_proj.weight
    torch.testing.assert_close(ours(inputs, previous), theirs(inputs, previous))
