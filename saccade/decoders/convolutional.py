"""A recurrent decoder that uses convolutions to find what to attend to and what to copy."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.decoders.base import Decoded, Decoder, Step
from saccade.decoders.bridge import LearnedStart
from saccade.decoders.heads import Entries, GivenGate, LinearHead, OutputHead, Said, WaysHead
from saccade.encoders import EncoderOutput, SourceWords
from saccade.layers import GRUCell, TokenEmbedding
from saccade.memory import Memory
from saccade.reading import Reading
from saccade.scores import ConvolutionalScore

TYPICAL_LENGTH = 20
"""Tokens of a source for which scores of copying start with a deviation of 1."""


class ConvolutionalMemory(NamedTuple):
    """The part of the state that belongs to the sentence; all but the memory is None without copying.

    Args:
        read: the memory of the source.
        copied: (batch, positions, channels), the output of the convolution for copying.
        gate: (batch, positions, channels), that of the convolution for its gate.
        words: the words of the source.
    """

    read: Memory
    copied: Tensor | None
    gate: Tensor | None
    words: SourceWords | None


class ConvolutionalState(NamedTuple):
    """The state of a `ConvolutionalAttentionDecoder`; `context` is that of the last step."""

    memory: ConvolutionalMemory
    hidden: Tensor
    context: Tensor


class ConvolutionalAttentionDecoder(Decoder):
    r"""A gated recurrent unit whose state filters convolutional features of the source.

    .. math:: \alpha = \operatorname{softmax}(\mathrm{conv}(F, K_{att})), \quad
        \hat n = \sum_i \alpha_i E_{c_i}, \quad P(m) = \operatorname{softmax}(E \hat n + b), \quad
        h_t = \mathrm{GRU}(E_{m_t}, h_{t-1})

    F are the features of a `ConvolutionalScore` whose query is h_{t-1}. With `copies`, two more convolutions of F
    determine which position to copy, :math:`\kappa = \operatorname{softmax}(\mathrm{conv}(F, K_{copy}))`, and how much
    copying counts, :math:`\lambda = \sigma(\max_i \mathrm{conv}(F, K_\lambda)_i + b_\lambda)`.

    Shapes:
        states (batch, length, dim), tokens (batch, steps) -> features (batch, steps, dim), or `Said` with them.

    Reference:
        Allamanis et al. (2016), arXiv:1602.03001, section 2; its bias b starts from the words' frequencies, here from
        zero.

    Args:
        embedding: E, tokens -> (batch, steps, dim); also the output weights. It may scale what it returns.
        score: of `query_dim` channels, which the state has too.
        dropout: how often training feeds the context of the last step instead of the word before.
    """

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        score: ConvolutionalScore,
        dim: int,
        copies: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        channels, width = score.conv_2.out_channels, score.conv_att.kernel_size[0]
        self.vocab_size = embedding.vocab_size
        self.embedding = embedding
        self.attention = Attention(score=score)
        self.start = LearnedStart(hidden_dim=channels)
        nn.init.normal_(self.start.states, std=1.0)  # it filters the features: with zeros nothing would be seen
        self.input_proj = nn.Linear(dim, 3 * channels)
        self.cell = GRUCell(hidden_dim=channels)
        self.copy_conv = _copying(channels, width) if copies else None
        self.gate_conv = _copying(channels, width) if copies else None
        generate = LinearHead(input_dim=dim, vocab_size=self.vocab_size, bias=True, tied_to=embedding.weight)
        self.head: OutputHead = generate
        if copies:
            self.head = WaysHead(generate=generate, blend=GivenGate(), vocab_size=self.vocab_size)
            self.head.copies = True
        self.dropout = dropout

    def begin(self, encoded: EncoderOutput) -> ConvolutionalState:
        memory = self.attention.prepare(encoded.states, mask=encoded.mask.unsqueeze(1))
        hidden = self.start(encoded.summary)[0][0]
        kept = ConvolutionalMemory(memory, None, None, None)
        if self.copy_conv is not None and self.gate_conv is not None:
            if encoded.words is None or encoded.words.words is None:
                raise ValueError(
                    "This model copies words of the source, but did not get them: set task.copying to yes."
                )
            features = memory.prepared[0][1]
            kept = ConvolutionalMemory(
                memory, by_channel(features, self.copy_conv), by_channel(features, self.gate_conv), encoded.words
            )
        return ConvolutionalState(kept, hidden, encoded.states.new_zeros(hidden.shape[0], encoded.states.shape[-1]))

    def step(self, tokens: Tensor, state: ConvolutionalState) -> Step:
        state, reading, said = self._advance(self._embed(tokens), state)
        return Step((self.head, said), state, lambda: reading.weights.squeeze(1))

    def forward(self, encoded: EncoderOutput, tokens: Tensor) -> Decoded:
        state = self.begin(encoded)
        readings: list[Reading] = []
        steps: list[Any] = []
        for number, embedded in enumerate(self._embed(tokens).unbind(1)):
            if number and self.training and self.dropout:
                drawn = torch.rand(len(tokens), 1, device=tokens.device) < self.dropout
                embedded = torch.where(drawn, state.context, embedded)
            state, reading, said = self._advance(embedded, state)
            readings.append(reading)
            steps.append(said)
        if not steps:
            return Decoded(encoded.states.new_zeros(len(tokens), 0, encoded.states.shape[-1]))
        joined = torch.stack(steps, dim=1) if isinstance(steps[0], Tensor) else _stacked(steps)
        return Decoded.of_steps(joined, readings)

    def _embed(self, tokens: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(self.head.known(tokens))
        return embedded

    def _advance(self, embedded: Tensor, state: ConvolutionalState) -> tuple[ConvolutionalState, Reading, Any]:
        hidden = self.cell.step(self.input_proj(embedded), (state.hidden,))[0]
        reading = self.attention.read(hidden.unsqueeze(1), state.memory.read)
        context = reading.context.squeeze(1)
        return state._replace(hidden=hidden, context=context), reading, self._said(hidden, context, state.memory)

    def _said(self, hidden: Tensor, context: Tensor, memory: ConvolutionalMemory) -> Any:
        """The context, and with copying the scores of positions and the gate."""
        if self.copy_conv is None or self.gate_conv is None:
            return context
        assert memory.words is not None
        assert memory.words.words is not None
        score = self.attention.score
        assert isinstance(score, ConvolutionalScore)
        scaled = score.as_dot_product(hidden.unsqueeze(1), memory.read.prepared[0]).query
        copied = _scores(scaled, memory.copied, self.copy_conv).masked_fill(~memory.words.mask, -torch.inf)
        gates = _scores(scaled, memory.gate, self.gate_conv).masked_fill(~memory.words.mask, -torch.inf)
        # No position, no gate: any number will do, since there is nothing to copy.
        highest = F.pad(gates, (0, 1), value=-1e4).amax(-1, keepdim=True)
        return Said(
            context, {"copy": Entries(copied, memory.words.words)}, -highest, extra=memory.words.words.shape[-1]
        )


def _copying(channels: int, width: int) -> nn.Conv1d:
    """A convolution whose scores differ from the start.

    The features of a source have length 1 all together, so each is small. With PyTorch's initial weights, all positions
    would be copied alike, and training would hardly change that.
    """
    conv = nn.Conv1d(channels, 1, width)
    nn.init.normal_(conv.weight, std=(TYPICAL_LENGTH / width) ** 0.5)
    return conv


def by_channel(features: Tensor, conv: nn.Conv1d) -> Tensor:
    """The terms of a convolution of features (batch, positions, channels) to one channel, before they are summed."""
    width = conv.kernel_size[0]
    flat = F.pad(features.transpose(-1, -2), ((width - 1) // 2, width // 2))
    if not features.shape[1]:
        return features
    return F.conv1d(flat, conv.weight.transpose(0, 1), groups=conv.in_channels).transpose(-1, -2)


def _scores(scaled: Tensor, channels: Tensor | None, conv: nn.Conv1d) -> Tensor:
    assert channels is not None
    assert conv.bias is not None
    return (scaled @ channels.transpose(-1, -2)).squeeze(1) + conv.bias


def _stacked(steps: list[Said]) -> Said:
    """The steps (batch, ...) as one (batch, steps, ...)."""
    entries = [step.entries["copy"] for step in steps]
    scores, words = (torch.stack([getattr(each, name) for each in entries], dim=1) for name in ("scores", "words"))
    cues = torch.stack([step.cue for step in steps if step.cue is not None], dim=1)
    features = torch.stack([step.features for step in steps], dim=1)
    return Said(features, {"copy": Entries(scores, words)}, cues, extra=steps[0].extra)
