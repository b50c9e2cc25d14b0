"""The base classes of encoder-decoders, language models and text encoders; models with their own objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from saccade.decoders import CTC, Decoded, Decoder, OutputHead, Step
from saccade.encoders import Encoder, EncoderOutput, SourceWords
from saccade.layers.limits import fewest, most_keys, most_positions
from saccade.registry import Registry


class EncoderDecoder(nn.Module):
    """Encodes a source into a memory and generates a target from it.

    Shapes:
        source (batch, length), or (batch, length, features), source_mask bool (batch, length), True = real, target_in
        (batch, steps), the start token first, and for an encoder of several sources the values and mask of each further
        one -> `Decoded` with features (batch, steps, dim), which `head` turns into logits (batch, steps, vocab). A head
        that copies also needs words (batch, length): see `saccade.encoders.SourceWords`.
    """

    def __init__(self, *, encoder: Encoder, decoder: Decoder, ctc_weight: float = 0.0) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        # A second way to write the target, which reads the encoder's states in order.
        self.ctc: CTC | None = None
        if ctc_weight:
            self.ctc = CTC(input_dim=encoder.output_dim, vocab_size=decoder.vocab_size, weight=ctc_weight)

    def forward(
        self, source: Tensor, source_mask: Tensor, target_in: Tensor, *others: Tensor, words: Tensor | None = None
    ) -> Decoded:
        """Runs the model with teacher forcing."""
        encoded = self.encode(source, source_mask, *others, **({} if words is None else {"words": words}))
        decoded: Decoded = self.decoder(encoded, target_in)
        decoded.encoded = encoded
        return decoded

    def encode(
        self, source: Tensor, source_mask: Tensor, *others: Tensor, words: Tensor | None = None
    ) -> EncoderOutput:
        """The encoded source; its `layout`, with several sources, says which source each position belongs to."""
        encoded: EncoderOutput = self.encoder(source, source_mask, *others)
        return source_words(encoded, source, words) if self.head.cued else encoded

    @property
    def head(self) -> OutputHead:
        """Turns features into logits and into a loss."""
        return self.decoder.head

    def penalty(
        self, decoded: Decoded, target: Tensor, real: Tensor, log_likelihood: Callable[[], Tensor]
    ) -> Tensor | None:
        """A term that training adds to the token loss, summed over the batch; None for none.

        Args:
            decoded: what `forward` returned.
            target: (batch, steps), with the end token.
            real: bool (batch, steps), the steps that have a target.
            log_likelihood: computes that of each target, (batch,), without a graph.
        """
        if self.ctc is None or decoded.encoded is None:
            return None
        encoded = decoded.encoded
        return self.ctc.added_loss(encoded.states, encoded.mask, target, real)

    def positions(self, source_mask: Tensor) -> Tensor:
        """(batch,): the number of encoder positions for each source."""
        return self.encoder.positions(source_mask)

    def longest_source(self) -> int | None:
        """The maximum number of source tokens (without the end token) or feature vectors; None without a limit."""
        positions = fewest([self.encoder.max_positions(), self.decoder.max_keys()])
        return None if positions is None else self.encoder.source_length(positions)

    def longest_target(self) -> int | None:
        """The maximum number of target tokens, without the end token; None without a limit."""
        steps = self.decoder.max_steps()
        return None if steps is None else steps - 1

    def begin(self, encoded: EncoderOutput) -> Any:
        """The state before the first token."""
        return self.decoder.begin(encoded)

    def step(self, tokens: Tensor, state: Any) -> Step:
        """Advances one step after tokens (batch,)."""
        return self.decoder.step(tokens, state)

    def select(self, state: Any, rows: Tensor) -> Any:
        """Selects batch rows of the state."""
        return self.decoder.select(state, rows)

    def reorder(self, state: Any, rows: Tensor) -> Any:
        """Selects rows of the state that stay within their sentence."""
        return self.decoder.reorder(state, rows)


def source_words(encoded: EncoderOutput, source: Tensor, words: Tensor | None) -> EncoderOutput:
    """The encoded source, with the word at each of its positions."""
    if encoded.mask.shape != source.shape:
        raise ValueError(
            f"This head reads the words of the source, but the encoder makes {tuple(encoded.mask.shape)} positions of "
            f"a source of shape {tuple(source.shape)}: choose an encoder that keeps one position for each token."
        )
    return encoded._replace(words=SourceWords(encoded.mask, source, words))


class LanguageModel(nn.Module):
    """Predicts the tokens of a text, from those before each or from those around it.

    Shapes:
        tokens (batch, length), mask bool (batch, length), True = real, padding last -> features (batch, length, dim),
        which `head` turns into logits (batch, length, vocab).
    """

    head: OutputHead

    def read(
        self, tokens: Tensor, mask: Tensor, carried: Mapping[str, Tensor] | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The features of pieces of texts, and what the next pieces of the same texts are given as `carried`.

        Carried tensors have no graph, and the batch is their first dimension. A model without memory reads every piece
        as a separate text.
        """
        return self(tokens, mask), {}

    def states_of(self, features: Tensor) -> Tensor:
        """The states (*, dim) within features (*, ...), which may contain more, for the head."""
        return features

    def penalty(self, features: Any, targets: Tensor) -> Tensor | None:
        """A term that training adds to the loss of tokens (rows,), given their features, summed; None for none."""
        return None

    def longest(self) -> int | None:
        """The maximum number of positions, or None."""
        return fewest([most_positions(self), most_keys(self)])

    def begin(self, encoded: Any) -> Any:
        """The state before the first token of as many texts as `encoded.mask` has rows."""
        raise ValueError(f"{type(self).__name__} cannot continue a text.")

    def step(self, tokens: Tensor, state: Any) -> Step:
        """Advances one step after tokens (batch,)."""
        raise NotImplementedError

    def select(self, state: Any, rows: Tensor) -> Any:
        """Selects batch rows of the state."""
        return self.reorder(state, rows)

    def reorder(self, state: Any, rows: Tensor) -> Any:
        """Selects rows of the state that stay within their text."""
        raise NotImplementedError


class TextEncoder(nn.Module):
    """A model that can represent each text by one vector."""

    def longest(self) -> int | None:
        """The maximum number of positions, or None."""
        return fewest([most_positions(self), most_keys(self)])

    def vectors(self, texts: Sequence[Sequence[int]], first: Sequence[int] | None = None) -> Tensor:
        """(texts, dim): one vector for each text.

        Args:
            texts: the token ids of each, including special ones.
            first: how many tokens of each belong to the first of two texts; all by default.
        """
        raise NotImplementedError


Losses = Callable[[Tensor], Tensor]
"""The task's loss of each example (batch,), given the logits (batch, classes)."""


class Costs(NamedTuple):
    """What a model minimises for each example of a batch.

    Args:
        logits: (batch, classes), what it answers.
        total: (batch,), whose mean is minimised. In training only its gradient is meaningful, not its value. In
            evaluation it is the loss of the logits plus the penalty.
        penalty: (batch,), what the model adds to the task's loss.
        figures: more numbers (batch,) for the log.
    """

    logits: Tensor
    total: Tensor
    penalty: Tensor | float = 0.0
    figures: dict[str, Tensor] = {}  # noqa: RUF012 (never written to)


def costs_of(model: nn.Module, inputs: Sequence[Tensor], losses: Losses) -> Costs:
    """The costs of a model that answers with logits.

    A model with its own objective, such as rewarded samples or a penalty, has a method
    `costs(*inputs, losses=losses) -> Costs`. Others minimise the task's loss.
    """
    own = getattr(model, "costs", None)
    if own is not None:
        found: Costs = own(*inputs, losses=losses)
        return found
    logits = model(*inputs)
    return Costs(logits, losses(logits))


models: Registry[nn.Module] = Registry("model", base=nn.Module, home="saccade.models")
