"""The loss of a model that copies: forward and backward over a vocabulary of 50,000 words."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.harness import Memory, Timing
from saccade.decoders.heads import Entries, Gate, LinearHead, Said, WaysHead

ROWS, KEYS, DIM, CUE, VOCAB, EXTRA = 512, 60, 64, 128, 50_000, 20


def losses() -> tuple[Callable[[], object], Callable[[], object]]:
    """The head's loss, and the same with all probabilities in one tensor, as the pointer-generator is often written."""
    torch.manual_seed(0)
    head = WaysHead(generate=LinearHead(input_dim=DIM, vocab_size=VOCAB), blend=Gate(cue_dim=CUE), vocab_size=VOCAB)
    features, cue = torch.randn(ROWS, DIM, requires_grad=True), torch.randn(ROWS, CUE, requires_grad=True)
    scores = torch.randn(ROWS, KEYS, requires_grad=True)
    words = torch.randint(0, VOCAB + EXTRA, (ROWS, KEYS))
    targets = torch.where(torch.rand(ROWS) < 0.5, words[:, 0], torch.randint(0, VOCAB, (ROWS,)))
    inputs = [features, cue, scores, *head.parameters()]

    def ours() -> object:
        said = Said(features, {"copy": Entries(scores, words)}, cue, extra=EXTRA)
        return torch.autograd.grad(head.loss(said, targets).total, inputs)

    def peer() -> object:
        return torch.autograd.grad(scattered(head, features, cue, scores, words, targets), inputs)

    return ours, peer


def scattered(head: WaysHead, features: Tensor, cue: Tensor, scores: Tensor, words: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of a distribution over the vocabulary and all extra words."""
    assert isinstance(head.blend, Gate)
    assert head.blend.proj is not None
    gate = torch.sigmoid(head.blend.proj(cue))
    vocabulary = F.pad(gate * head.generate.logits(features).softmax(-1), (0, EXTRA))
    mixed = vocabulary.scatter_add(1, words, (1 - gate) * scores.softmax(-1))
    return F.nll_loss((mixed + 1e-12).log(), targets, reduction="sum")


def cases() -> list[Timing | Memory]:
    what = f"copy loss, {ROWS} words, {KEYS} positions, d={DIM}, V=50,000"
    against = "scatter into the full vocabulary"
    return [
        Timing(what, against, losses, must=3),
        Memory(f"{what}: extra peak memory", against, losses, must=5),
    ]
