"""Mixtures of generating and copying words."""

import torch
from torch import Tensor
from torch.nn import functional as F


def pointer_generator_log_probs(vocab_log_probs: Tensor, copy_probs: Tensor, gate_logits: Tensor) -> Tensor:
    r"""Log-probabilities of the mixture of a generator and the `Copy` aggregation over the extended vocabulary.

    .. math:: \log P(w) = \log\big(p_{gen} P_{vocab}(w) + (1 - p_{gen}) P_{copy}(w)\big), \qquad
        p_{gen} = \sigma(\text{gate})

    Computed in log space. Words with probability zero have -inf and no gradient. Training needs only the gold words,
    which `pointer_generator_log_likelihood` computes without this tensor.

    Shapes:
        vocab_log_probs (*batch, queries, vocab_size), copy_probs (*batch, queries, vocab_size + extra_ids),
        gate_logits (*batch, queries, 1) -> (*batch, queries, vocab_size + extra_ids).

    Reference:
        See et al. (2017), arXiv:1704.04368, equation 9.
    """
    size = vocab_log_probs.shape[-1]
    if copy_probs.shape[-1] < size or gate_logits.shape[-1] != 1:
        raise ValueError(
            f"copy_probs must cover the {size} words of vocab_log_probs and gate_logits end in an axis of size 1, got "
            f"copy_probs {tuple(copy_probs.shape)} and gate_logits {tuple(gate_logits.shape)}."
        )
    generated = F.logsigmoid(gate_logits) + vocab_log_probs
    can_copy = copy_probs > 0
    copied = F.logsigmoid(-gate_logits) + torch.where(can_copy, copy_probs, 1.0).log()
    known = torch.where(can_copy[..., :size], torch.logaddexp(generated, copied[..., :size]), generated)
    extra = torch.where(can_copy[..., size:], copied[..., size:], -torch.inf)
    return torch.cat([known, extra], dim=-1)


def pointer_generator_log_likelihood(
    vocab_log_probs: Tensor, weights: Tensor, source_ids: Tensor, gate_logits: Tensor, targets: Tensor
) -> Tensor:
    r"""The same mixture at the gold words only, without a tensor over the extended vocabulary.

    .. math:: \log P(y_t) = \log\Big(p_{gen} P_{vocab}(y_t) + (1 - p_{gen}) \sum_{j : x_j = y_t} a_{tj}\Big)

    A target that is neither in the vocabulary nor in the source gets -inf: use the id of the unknown word for it. At
    padding, targets may have any id in the vocabulary; leave them out of the sum.

    Shapes:
        vocab_log_probs (*batch, queries, vocab_size), weights (*batch, queries, keys), source_ids (*batch, keys) and
        targets (*batch, queries), whole numbers of the extended vocabulary, gate_logits (*batch, queries, 1)
        -> (*batch, queries).

    Reference:
        See et al. (2017), arXiv:1704.04368, equation 9.
    """
    size = vocab_log_probs.shape[-1]
    if gate_logits.shape[-1] != 1 or targets.shape != weights.shape[:-1]:
        raise ValueError(
            f"gate_logits must be (*batch, queries, 1) and targets (*batch, queries) = {tuple(weights.shape[:-1])}, "
            f"got {tuple(gate_logits.shape)} and {tuple(targets.shape)}."
        )
    if not torch.compiler.is_compiling() and targets.device.type == "cpu" and bool((targets < 0).any()):
        raise ValueError(
            f"targets must be 0 or more, got {int(targets.min())}: give padding any id, and exclude it from the sum."
        )
    in_vocab = targets < size
    gold = torch.where(in_vocab, targets, 0).unsqueeze(-1)
    generated = F.logsigmoid(gate_logits.squeeze(-1)) + vocab_log_probs.gather(-1, gold).squeeze(-1)
    same = source_ids.unsqueeze(-2) == targets.unsqueeze(-1)
    mass = torch.where(same, weights, 0.0).sum(-1)
    can_copy = mass > 0
    copied = F.logsigmoid(-gate_logits.squeeze(-1)) + torch.where(can_copy, mass, 1.0).log()
    one = torch.where(in_vocab, generated, torch.where(can_copy, copied, -torch.inf))
    return torch.where(in_vocab & can_copy, torch.logaddexp(generated, copied), one)
