"""RETAIN with an outcome at each visit: all prefixes of the records at once, against a loop over prefixes."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.harness import Timing
from saccade.models import RETAIN

VOCAB, CLASSES, BATCH, VISITS, CODES, DIM = 1000, 50, 64, 30, 12, 128


class Loop(nn.Module):
    """Each prefix as a record of its own, read backwards by PyTorch's GRU, as implementations of RETAIN do.

    It has the weights of a model of ours, and the same dropout of none. The plain loop hands all records of the batch
    to each step; with `filtered`, only those that have so many visits.
    """

    def __init__(self, model: RETAIN, *, filtered: bool) -> None:
        super().__init__()
        self.model, self.filtered = model, filtered
        self.units = nn.ModuleList(nn.GRU(DIM + 1, DIM, batch_first=True) for _ in range(2))
        for unit, layer in zip(self.units, (model.alpha, model.beta), strict=True):
            weight, inner = layer.cell.tensors()
            with torch.no_grad():
                unit.weight_ih_l0.copy_(layer.input_proj.weight)
                unit.bias_ih_l0.copy_(layer.input_proj.bias)
                unit.weight_hh_l0.copy_(weight)
                unit.bias_hh_l0.zero_()
                unit.bias_hh_l0[2 * DIM :] = inner

    def prefix(self, codes: Tensor, amounts: Tensor, gaps: Tensor) -> Tensor:
        """The logits for the last visit; records that end before have no meaning, and are not looked at."""
        model = self.model
        visits = (F.embedding(codes, model.embedding.weight) * amounts.unsqueeze(-1)).sum(2)
        inputs = torch.cat([visits, gaps.unsqueeze(-1)], dim=-1).flip(1)
        g, h = (unit(inputs)[0].flip(1) for unit in self.units)
        alpha = model.attention.score.key_proj(g).softmax(1)
        beta = model.gate_proj(h).tanh()
        return model.output_proj((alpha * beta * visits).sum(1))

    def forward(self, codes: Tensor, mask: Tensor, amounts: Tensor, gaps: Tensor) -> Tensor:
        """The logits of all prefixes, (real visits, classes)."""
        found = torch.zeros(*mask.shape, CLASSES)
        for end in range(1, mask.shape[1] + 1):
            rows = mask[:, end - 1].nonzero().squeeze(1) if self.filtered else torch.arange(len(mask))
            logits = self.prefix(*(each[rows, :end] for each in (codes, amounts, gaps)))
            found = found.index_put((rows, torch.tensor(end - 1)), logits)
        return found[mask]


def build(*, filtered: bool = False) -> tuple[Callable[[], object], Callable[[], object]]:
    """One step of training without its optimiser: the loss of every visit, and its gradients."""
    torch.manual_seed(0)
    model = RETAIN(
        vocab=VOCAB, static=1, classes=CLASSES, each_visit=True, embedding_dim=DIM, hidden_dim=DIM, dropout=0.0
    )
    peer = Loop(model, filtered=filtered)
    lengths = torch.randint(VISITS // 3, VISITS + 1, (BATCH,))
    lengths[0] = VISITS
    mask = torch.arange(VISITS) < lengths[:, None]
    codes = torch.randint(1, VOCAB, (BATCH, VISITS, CODES)) * mask.unsqueeze(-1)
    records = codes, mask, (codes != 0).float(), torch.rand(BATCH, VISITS) * mask
    static = torch.zeros(BATCH, 1, dtype=torch.long)
    wanted = torch.randint(0, 2, (int(mask.sum()), CLASSES)).float()

    def ours() -> Tensor:
        return F.binary_cross_entropy_with_logits(model(*records, static, static.float())[mask], wanted)

    def theirs() -> Tensor:
        return F.binary_cross_entropy_with_logits(peer(*records), wanted)

    with torch.no_grad():
        torch.testing.assert_close(model(*records, static, static.float())[mask], peer(*records), rtol=1e-5, atol=1e-5)
    shared = [model.embedding.weight, model.gate_proj.weight, model.output_proj.weight]
    gradients = [torch.autograd.grad(loss(), shared) for loss in (ours, theirs)]
    for one, two in zip(*gradients, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)

    def stepped(loss: Callable[[], Tensor], parameters: list[Tensor]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(loss(), parameters, allow_unused=True)

    return stepped(ours, list(model.parameters())), stepped(theirs, list(peer.parameters()))


def build_filtered() -> tuple[Callable[[], object], Callable[[], object]]:
    return build(filtered=True)


def cases() -> list[Timing]:
    what = f"RETAIN, training on all prefixes of {BATCH} records of {VISITS // 3} to {VISITS} visits, {DIM} units"
    return [
        Timing(what, "a loop over prefixes", build, must=3),
        Timing(what, "a loop over prefixes that leaves out records that have ended", build_filtered),
    ]
