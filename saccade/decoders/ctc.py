"""Connectionist temporal classification."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BLANK = 0
"""The id of padding, which is never written, stands for "nothing"."""

MOST_NUMBERS = 1 << 24
"""How many numbers the scores of a step may take at once."""


class CTC(nn.Module):
    r"""Writes a token or nothing at each encoder state, independently; equal neighbours count once.

    .. math:: p(y \mid h) = \sum_{\pi \in B^{-1}(y)} \prod_t p(\pi_t \mid h_t), \qquad
        \ell = (1 - \lambda)\, \ell_{\text{attention}} + \lambda\, \ell_{\text{CTC}}

    B removes repetitions and blanks. Next to a decoder with attention it keeps the encoder's states in the order of the
    input, so that attention learns sooner to move from left to right.

    Shapes:
        states (batch, positions, input_dim) -> log-probabilities (batch, positions, vocab_size).

    Reference:
        Graves et al. (2006), "Connectionist temporal classification"; jointly with attention: Kim et al. (2017),
        arXiv:1609.06773.

    Args:
        input_dim: features of the encoder's states.
        vocab_size: of the target; the id of padding is the blank.
        weight: lambda, how much it counts in training.
    """

    def __init__(self, *, input_dim: int, vocab_size: int, weight: float) -> None:
        super().__init__()
        if not 0.0 < weight < 1.0:
            raise ValueError(f"ctc_weight must be from 0 to less than 1, got {weight}.")
        self.proj = nn.Linear(input_dim, vocab_size)
        self.weight = weight

    def forward(self, states: Tensor) -> Tensor:
        return F.log_softmax(self.proj(states).float(), dim=-1)

    def added_loss(self, states: Tensor, mask: Tensor, target: Tensor, real: Tensor) -> Tensor:
        r"""What is added to the loss of the decoder, summed over the batch.

        This is \lambda / (1 - \lambda) times the negative log-likelihood: the total is proportional to the equation
        above, and comparable with training without CTC. A target that needs more positions than there are, which has
        probability 0, is left out.

        Args:
            states: (batch, positions, input_dim).
            mask: bool (batch, positions).
            target: (batch, steps), with the end token, which is not written here.
            real: bool (batch, steps).
        """
        lengths = real.sum(1) - 1
        missed: Tensor = F.ctc_loss(
            self(states).transpose(0, 1),
            target,
            mask.sum(1),
            lengths.clamp(min=0),
            blank=BLANK,
            reduction="sum",
            zero_infinity=True,
        )
        return missed * (self.weight / (1.0 - self.weight))


class CTCPrefixes:
    r"""The probability that what CTC writes begins with a prefix, for each token that may come next.

    .. math:: \psi(g \cdot c) = \sum_t \phi_{t-1}\, p_t(c), \qquad
        \phi_t = \gamma^b_t(g) + [c \ne g_{-1}]\, \gamma^n_t(g)

    \gamma^n and \gamma^b are the probabilities that the first t positions write g and end with a token or a blank.

    Args:
        log_probs: (sentences, positions, vocab), of `CTC`.
        mask: bool (sentences, positions).

    Reference:
        Hori et al. (2017), "Joint CTC/attention decoding for end-to-end speech recognition", algorithm 2.
    """

    def __init__(self, log_probs: Tensor, mask: Tensor, *, eos: int = 2) -> None:
        blank = F.one_hot(torch.tensor(BLANK), log_probs.shape[-1]).bool().to(mask.device)
        padded = torch.where(blank, 0.0, -torch.inf).to(log_probs)  # padding writes nothing
        self.log_probs = torch.where(mask.unsqueeze(-1), log_probs, padded)
        self.eos = eos

    def begin(self) -> Tensor:
        """(sentences, positions + 1, 2): log gamma of the empty prefix."""
        blanks = F.pad(self.log_probs[..., BLANK].cumsum(1), (1, 0))
        return torch.stack([torch.full_like(blanks, -torch.inf), blanks], dim=-1)

    def scores(self, gamma: Tensor, last: Tensor, sentences: Tensor) -> Tensor:
        """(rows, vocab): log psi of each row's prefix with each token added; at the end token, of the prefix itself.

        Args:
            gamma: (rows, positions + 1, 2), of the prefixes.
            last: (rows,), their last tokens.
            sentences: (rows,), which sentence each belongs to.
        """
        rows = max(1, MOST_NUMBERS // max(1, self.log_probs[0].numel()))
        parts = zip(gamma.split(rows), last.split(rows), sentences.split(rows), strict=True)
        return torch.cat([self._scores(*part) for part in parts])

    def _scores(self, gamma: Tensor, last: Tensor, sentences: Tensor) -> Tensor:
        either, blank = gamma.logsumexp(-1), gamma[..., 1]
        log_probs = self.log_probs[sentences]  # (rows, positions, vocab)
        found = (either[:, :-1, None] + log_probs).logsumexp(1)
        again = (blank[:, :-1] + log_probs.gather(2, _at(last, log_probs)).squeeze(2)).logsumexp(1)
        found = found.scatter(1, last[:, None], again[:, None])
        found[:, self.eos] = either[:, -1]
        found[:, BLANK] = -torch.inf
        return found

    def advance(self, gamma: Tensor, last: Tensor, tokens: Tensor, sentences: Tensor) -> Tensor:
        """Log gamma of the prefixes with these tokens (rows,) added."""
        token, blanks = self.log_probs[sentences, :, tokens], self.log_probs[sentences, :, BLANK]
        before = torch.where((tokens == last)[:, None], gamma[..., 1], gamma.logsumexp(-1))
        ended = torch.full_like(token[:, 0], -torch.inf) if token.shape[1] else gamma[:, 0, 0]
        steps = [torch.stack([ended, ended], dim=-1)]
        blanked = ended
        for t in range(token.shape[1]):
            blanked = torch.logaddexp(ended, blanked) + blanks[:, t]
            steps.append(torch.stack([torch.logaddexp(ended, before[:, t]) + token[:, t], blanked], dim=-1))
            ended = steps[-1][:, 0]
        return torch.stack(steps, dim=1)


def _at(tokens: Tensor, log_probs: Tensor) -> Tensor:
    return tokens[:, None, None].expand(-1, log_probs.shape[1], 1)
