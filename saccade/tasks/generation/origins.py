"""Where the words of a text came from: the vocabulary, the source, a lexicon."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from saccade.data.special import BOS, EOS, PAD
from saccade.decoders import Origins, shift_right
from saccade.decoders.base import index_state
from saccade.encoders import EncoderOutput
from saccade.models import EncoderDecoder
from saccade.search import Hypothesis
from saccade.tasks.answers import Origin


@torch.no_grad()
def origins_of(
    model: EncoderDecoder, encoded: EncoderOutput, hypotheses: Sequence[Sequence[Hypothesis]]
) -> list[list[Origins]] | None:
    """Where the tokens of each hypothesis came from, including the end; None for a model that only generates words.

    The model is forced to write what a search found, so that searches need not know about origins.

    Args:
        model: in evaluation mode.
        encoded: the sources, with hypotheses for each row.
    """
    if not model.head.cued:
        return None
    rows = [row for row, several in enumerate(hypotheses) for _ in several]
    ids = [[*h.tokens, *([EOS] if h.finished else [])] for several in hypotheses for h in several]
    device = encoded.mask.device
    target = pad_sequence([torch.tensor(each, dtype=torch.long) for each in ids], batch_first=True, padding_value=PAD)
    target = target.to(device)
    if not target.shape[1]:
        return [[Origins((), torch.zeros(0, 0), torch.zeros(0, 0)) for _ in several] for several in hypotheses]
    found = forced_origins(model, index_state(encoded, torch.tensor(rows, device=device)), target)
    assert found is not None
    each = (
        Origins(found.ways, shares[: len(own)].cpu(), places[: len(own)].cpu())
        for own, shares, places in zip(ids, found.shares, found.places, strict=True)
    )
    return [[next(each) for _ in several] for several in hypotheses]


def forced_origins(model: EncoderDecoder, encoded: EncoderOutput, target: Tensor) -> Origins | None:
    """Where the tokens of targets (batch, steps) come from under forced decoding."""
    decoded = model.decoder(encoded, shift_right(target, BOS))
    return model.head.origins(decoded.features, target)


def told(origins: Origins, tokens: Sequence[str], keys: Sequence[str], words: Sequence[Sequence[int]]) -> list[Origin]:
    """The way that contributed most to each token, and the position of the source that it used.

    Args:
        origins: those of one text, (steps, ways).
        tokens: its pieces.
        keys: the names of the source's positions.
        words: the positions of each word of the source.
    """
    word_of = {place: number for number, word in enumerate(words) for place in word}
    found = []
    for token, shares, places in zip(tokens, origins.shares.tolist(), origins.places.tolist(), strict=True):
        best = max(range(len(shares)), key=shares.__getitem__)
        way, place = origins.ways[best], int(places[best])
        if place < 0 or place >= len(keys):
            found.append(Origin(token, way, shares[best]))
        else:
            found.append(Origin(token, way, shares[best], place, keys[place], word_of.get(place)))
    return found
