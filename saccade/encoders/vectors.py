"""A text with image vectors among its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from saccade.encoders.base import Encoder, EncoderOutput, mean_of_real
from saccade.encoders.several import JoinedSources, Layout, pack
from saccade.layers import FeatureEmbedding
from saccade.registry import nearest

VectorsName = Literal["global", "regions", "both"]
PlaceName = Literal["head", "tail"]


class SourcePart(NamedTuple):
    """Some positions of a sequence: embeddings (batch, length, dim), mask, and the source and place of each."""

    values: Tensor
    mask: Tensor
    owner: Tensor
    place: Tensor


class WithVectorsEncoder(Encoder):
    r"""Reads image vectors as words of a text, before its first word or after its last.

    .. math:: x = (E w_1, \dots, E w_n, W v_1, \dots, W v_R), \qquad h = \mathrm{network}(x)

    The vectors are those of regions, their mean (the global vector), or both. With threads, the network reads the
    text once for each vector, with the same weights; the states of all threads are attended, and the final ones
    averaged:

    .. math:: h^{(r)} = \mathrm{network}(E w_1, \dots, E w_n, W v_r), \qquad s = \frac{1}{R} \sum_r s^{(r)}

    Shapes:
        source (batch, length), mask bool (batch, length), and the same of each picture, vectors (batch, regions, dim)
        -> states (batch, positions, output_dim), real positions first; summary as the network's. A text without
        pictures is read on its own, and so are pictures without a text.

    Reference:
        Huang et al. (2016), "Attention-based multimodal neural machine translation", sections 3.2 and 3.3.

    Args:
        embedding: tokens -> (batch, length, dim).
        vectors: the map of each picture's vectors into the space of the words.
        network: any encoder of the embeddings, whose own embedding is `nn.Identity()`.
        read: "global", "regions" or "both", the regions first.
        place: "head" or "tail".
        threads: whether each vector has a thread of its own.
    """

    def __init__(
        self,
        *,
        embedding: nn.Module,
        vectors: Sequence[FeatureEmbedding],
        network: Encoder,
        read: VectorsName = "both",
        place: PlaceName = "head",
        threads: bool = False,
    ) -> None:
        super().__init__()
        for name, given, choices in (("vectors", read, VectorsName), ("place", place, PlaceName)):
            if given not in get_args(choices):
                raise ValueError(f"Unknown {name} {given!r}.{nearest(given, get_args(choices))}")
        self.embedding = embedding
        self.vectors = nn.ModuleList(vectors)
        self.network = network
        self.read, self.place, self.threads = read, place, threads
        self.output_dim, self.summary_dim = network.output_dim, network.summary_dim

    def forward(self, source: Tensor, mask: Tensor, *pictures: Tensor) -> JoinedSources:  # type: ignore[override]
        masks = (mask, *pictures[1::2])
        if len(pictures) != 2 * len(self.vectors):
            raise ValueError(f"There are {len(self.vectors)} pictures to read, got {len(pictures)} tensors.")
        words = _part(self.embedding(source), mask, 0)
        seen = [
            part
            for number, (embed, values, real) in enumerate(
                zip(self.vectors, pictures[::2], pictures[1::2], strict=True), start=1
            )
            for part in self._seen(embed, values, real, number, len(masks))
        ]
        if not self.threads:
            return self._encoded(_after(seen, words, self.place), masks)
        return self._in_threads(words, seen, masks)

    def _seen(self, embed: nn.Module, values: Tensor, real: Tensor, number: int, count: int) -> list[SourcePart]:
        """The vectors of one picture."""
        mapped, real = embed(values, real)
        regions = _part(mapped, real, number)
        whole = mean_of_real(mapped, real).unsqueeze(1)
        everything = _part(whole, real.any(1, keepdim=True), count + number)
        return {"regions": [regions], "global": [everything], "both": [regions, everything]}[self.read]

    def _encoded(self, parts: Sequence[SourcePart], masks: tuple[Tensor, ...]) -> JoinedSources:
        (values, owner, place), real = pack(
            [torch.cat([getattr(part, name) for part in parts], dim=1) for name in ("values", "owner", "place")],
            torch.cat([part.mask for part in parts], dim=1),
        )
        read: EncoderOutput = self.network(values, real)
        return JoinedSources(read.states, read.mask, read.summary, Layout(owner, place, masks))

    def _in_threads(self, words: SourcePart, seen: Sequence[SourcePart], masks: tuple[Tensor, ...]) -> JoinedSources:
        """One thread for each vector; a text without any has one thread, of its words alone."""
        batch = words.mask.shape[0]
        count = sum(part.mask.shape[1] for part in seen)
        if not count:
            return self._encoded([words], masks)
        vectors = SourcePart(*(torch.cat(several, dim=1) for several in zip(*seen, strict=True)))
        alone = ~vectors.mask.any(1, keepdim=True) & (torch.arange(count, device=vectors.mask.device) == 0)
        running = vectors.mask | alone
        repeated = SourcePart(*(tensor.repeat_interleave(count, dim=0) for tensor in words))
        own = SourcePart(*(tensor.flatten(0, 1).unsqueeze(1) for tensor in vectors))
        repeated = repeated._replace(mask=repeated.mask & running.flatten().unsqueeze(1))
        threads = self._encoded(_after([own], repeated, self.place), masks)
        layout = threads.layout
        flat = [
            tensor.unflatten(0, (batch, count)).flatten(1, 2) for tensor in (threads.states, layout.owner, layout.place)
        ]
        (states, owner, place), real = pack(flat, threads.mask.unflatten(0, (batch, count)).flatten(1, 2))
        summary = _averaged(threads.summary, running)
        return JoinedSources(states, real, summary, Layout(owner, place, masks))

    def positions(self, mask: Tensor) -> Tensor:
        return mask.sum(dim=1)


def _part(values: Tensor, mask: Tensor, owner: int) -> SourcePart:
    places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    return SourcePart(values, mask, torch.full_like(places, owner), places)


def _after(vectors: Sequence[SourcePart], words: SourcePart, place: PlaceName) -> list[SourcePart]:
    return [*vectors, words] if place == "head" else [words, *vectors]


def _averaged(summary: Any, running: Tensor) -> Any:
    """The mean of the summaries (batch x threads, dim) of the threads that run, bool (batch, threads)."""
    if isinstance(summary, Tensor):
        return mean_of_real(summary.unflatten(0, running.shape), running)
    return tuple(_averaged(part, running) for part in summary)
