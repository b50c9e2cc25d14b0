"""A head that looks up words in a lexicon."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.decoders.heads.base import Cues, Entries, heads
from saccade.decoders.heads.blends import Bias, Blend, Gate
from saccade.decoders.heads.copying import log_weights
from saccade.decoders.heads.linear import LinearHead
from saccade.decoders.heads.ways import Way, WaysHead


class LookUp(Way):
    r"""Looks up the words that the decoder attends to.

    .. math:: p_{lex}(y) = \sum_j a_j \, p(y \mid x_j)

    Args:
        source_vocab: the number of source tokens.
        entries: the maximum number of translations of each, without the unknown word.
    """

    words: Tensor
    probabilities: Tensor

    def __init__(self, *, source_vocab: int, entries: int) -> None:
        super().__init__()
        self.entries = entries
        self.register_buffer("words", torch.zeros(source_vocab, entries + 1, dtype=torch.long))
        self.register_buffer("probabilities", torch.zeros(source_vocab, entries + 1))

    def fill(self, words: Tensor, probabilities: Tensor) -> None:
        """Sets the translations (source_vocab, entries + 1), ids of the target, and their probabilities."""
        if words.shape != self.words.shape or probabilities.shape != self.words.shape:
            raise ValueError(f"The lexicon must be {tuple(self.words.shape)}, got {tuple(words.shape)}.")
        self.words.copy_(words)
        self.probabilities.copy_(probabilities)

    def forward(self, cues: Cues) -> Entries:
        tokens = cues.source.tokens
        if tokens is None or tokens.is_floating_point():
            raise ValueError("A lexicon translates words: the source must be a text.")
        scores = log_weights(cues.weights).unsqueeze(-1) + log_weights(self.probabilities[tokens]).unsqueeze(1)
        words = self.words[tokens].flatten(1).unsqueeze(1)
        flat = scores.flatten(-2)
        return Entries(flat, words.expand(flat.shape), of_place=self.entries + 1)


@heads.register("lexicon")
class LexiconHead(WaysHead):
    r"""Adds the translations of the words that the decoder attends to to what it would generate.

    .. math:: p = \operatorname{softmax}\big(W x + b + \log(p_{lex} + \epsilon)\big)
        \quad\text{("bias")}, \qquad
        p = \lambda \, p_{lex} + (1 - \lambda) \operatorname{softmax}(W x + b)
        \quad\text{("linear")}

    with :math:`p_{lex} = \sum_j a_j \, p(\cdot \mid x_j)` and a learned :math:`\lambda`. The lexicon itself is not
    trained: `task.lexicon` names its file, which `saccade lexicon` makes, and the model keeps it.

    Shapes:
        features (batch, steps, input_dim) with their `Cues` -> log-probabilities (batch, steps, vocab_size).

    Reference:
        Arthur et al. (2016), arXiv:1606.02006, section 4.

    Args:
        mode: "bias" or "linear".
        entries: the most translations of each word that the model keeps.
        epsilon: what words have that the lexicon does not name, in the bias; less makes the lexicon count more.
        tied_to: embedding weights (vocab_size, input_dim) that are also the output weights W.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        vocab_size: int,
        source_vocab: int,
        mode: Literal["bias", "linear"] = "bias",
        entries: int = 10,
        epsilon: float = 0.001,
        tied_to: nn.Parameter | None = None,
    ) -> None:
        if mode not in ("bias", "linear"):
            raise ValueError(f"mode must be 'bias' or 'linear', got {mode!r}.")
        check_count("entries", entries)
        blend: Blend = Bias(epsilon=epsilon) if mode == "bias" else Gate(cue_dim=0)
        super().__init__(
            generate=LinearHead(input_dim=input_dim, vocab_size=vocab_size, tied_to=tied_to),
            blend=blend,
            vocab_size=vocab_size,
            ways={"lexicon": LookUp(source_vocab=source_vocab, entries=entries)},
        )

    @property
    def look_up(self) -> LookUp:
        """The way that contains the lexicon."""
        way = self.ways["lexicon"]
        assert isinstance(way, LookUp)
        return way
