"""An output head that mixes several ways to produce a word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.decoders.heads.base import Cues, Entries, Origins, OutputHead
from saccade.decoders.heads.blends import LOWEST, Blend, Shared
from saccade.decoders.heads.linear import LinearHead
from saccade.kernels.chunked_loss import chunked_loss
from saccade.kernels.cross_entropy import CrossEntropy
from saccade.kernels.picked_logits import Picked, picked_logits

GENERATE = "generate"
UNKNOWN = 3
"""The id of the unknown word."""


class Said:
    """What a `WaysHead` needs from each step; indexing it by rows indexes all of its parts.

    Args:
        features: (*, dim), those of the vocabulary.
        entries: those of each other way, by its name.
        cue: (*, cue_dim), what the blend depends on.
        extra: how many words outside the vocabulary there may be.
    """

    def __init__(
        self, features: Tensor, entries: Mapping[str, Entries], cue: Tensor | None = None, *, extra: int = 0
    ) -> None:
        self.features, self.entries, self.cue, self.extra = features, dict(entries), cue, extra

    def __getitem__(self, rows: Any) -> Said:
        entries = {
            name: each._replace(scores=each.scores[rows], words=each.words[rows]) for name, each in self.entries.items()
        }
        cue = None if self.cue is None else self.cue[rows]
        return Said(self.features[rows], entries, cue, extra=self.extra)


class Way(nn.Module):
    """A way to produce a word other than generating it."""

    copies: bool = False
    """Whether it can produce words that only the source has."""

    def forward(self, cues: Cues) -> Entries:
        """The entries of each step."""
        raise NotImplementedError


class WaysHead(OutputHead):
    r"""An output that is a mixture of named ways to produce a word.

    .. math:: p(y) = p(y, \text{generate}) + \sum_k \sum_{e : w_{ke} = y} p(k, e)

    The blend turns the logits of the vocabulary and the scores of all entries into the joint probabilities p(k,
    e). The words w_{ke} are ids of an extended vocabulary: from `vocab_size` on they stand for words that only the
    example has, numbered when the batch is made. Training only computes the target's probability; only a search needs
    all of the extended vocabulary.

    Shapes:
        `Said` with features (*, dim) -> logits (*, vocab_size + extra), which are log-probabilities.

    Args:
        generate: the logits of the vocabulary.
        blend: how probability is shared.
        vocab_size: the number of words in the vocabulary.
        ways: make the entries from a decoder's cues; a model that makes them itself passes `Said`.
        unknown: the id of the unknown word, as which an embedding reads words outside the vocabulary.
    """

    cued = True

    def __init__(
        self,
        *,
        generate: OutputHead,
        blend: Blend,
        vocab_size: int,
        ways: Mapping[str, Way] | None = None,
        unknown: int = UNKNOWN,
    ) -> None:
        super().__init__()
        self.generate = generate
        self.blend = blend
        self.ways = nn.ModuleDict(ways or {})
        self.vocab_size = vocab_size
        self.unknown = unknown
        self.copies = any(way.copies for way in (ways or {}).values())

    def collect(self, features: Tensor, cues: Cues | None = None) -> Said:
        if cues is None:
            raise ValueError("Ways other than generating read the source: pass the cues of the step.")
        entries = {name: way(cues) for name, way in self.ways.items()}
        cue = torch.cat([cues.context, cues.state, cues.inputs], dim=-1) if self.blend.reads_cue else None
        extra = cues.weights.shape[-1] if self.copies else 0
        return Said(features, entries, cue, extra=extra)

    def known(self, tokens: Tensor) -> Tensor:
        return torch.where(tokens < self.vocab_size, tokens, self.unknown)

    def logits(self, features: Said) -> Tensor:
        logits = self.generate.logits(features.features)
        shared = self._share_all(features, logits)
        exact = logits.to(shared.generate.dtype)
        found = F.pad(exact + shared.generate.unsqueeze(-1), (0, features.extra), value=LOWEST)
        for log_probs, each in zip(shared.others, features.entries.values(), strict=True):
            found = torch.logaddexp(found, _by_word(log_probs, each.words, found.shape[-1]))
        return found.masked_fill(found <= LOWEST / 2, -torch.inf)

    def shares(self, features: Said) -> dict[str, Entries]:
        shared = self._share_all(features, self.generate.logits(features.features))
        each = zip(features.entries.items(), shared.others, strict=True)
        return {name: entries._replace(scores=log_probs) for (name, entries), log_probs in each}

    def _share_all(self, said: Said, logits: Tensor) -> Shared:
        """How probability is shared, given the logits of the whole vocabulary."""
        words = [each.words.clamp(max=self.vocab_size - 1) for each in said.entries.values()]
        shared: Shared = self.blend(said.cue, picked_logits(logits, torch.cat(words, -1)), _scores(said))
        return shared

    def loss(self, features: Said, targets: Tensor, *, smoothing: float = 0.0, first: int = 0) -> CrossEntropy:
        """The cross-entropy of the targets; smoothing spreads probability over generated words only."""
        words = [each.words for each in features.entries.values()]
        picks = torch.cat([targets.unsqueeze(-1), *words], dim=-1).clamp(max=self.vocab_size - 1)
        plain: list[Tensor] = []
        right: list[Tensor] = []

        def part(said: Said, wanted: Tensor, picked: Picked) -> Tensor:
            shared = self._share(said, picked)
            generated = torch.where(wanted < self.vocab_size, picked.logits[..., 0], LOWEST)
            log_probs = _of_target(said, shared, wanted, generated)
            with torch.no_grad():
                plain.append(-log_probs.sum())
                right.append((log_probs >= self._highest(said, shared, picked) - 1e-4).sum())
            return -((1.0 - smoothing) * log_probs + smoothing * shared.generate).sum()

        layer = getattr(self.generate, "proj", None)
        if type(self.generate) is LinearHead and isinstance(layer, nn.Linear) and self._fits(features, layer):
            total = self._chunked(features, targets, picks, layer, part)
        else:
            total = part(features, targets, picked_logits(self.generate.logits(features.features), picks))
        if smoothing:
            total = total - smoothing * self.generate.mean_logit(features.features, first).sum()
        return CrossEntropy(total, torch.stack(right).sum(), torch.stack(plain).sum())

    @staticmethod
    def _fits(said: Said, layer: nn.Linear) -> bool:
        """Whether rows can be taken chunk by chunk."""
        plain = said.features.dtype == layer.weight.dtype in (torch.float32, torch.float64)
        automatic = torch.is_autocast_enabled(said.features.device.type) or torch.compiler.is_compiling()
        return plain and not automatic and said.features.dim() == 2 and len(said.features) > 0

    def _chunked(
        self,
        said: Said,
        targets: Tensor,
        picks: Tensor,
        layer: nn.Linear,
        part: Callable[[Said, Tensor, Picked], Tensor],
    ) -> Tensor:
        """The sum of `part` over chunks of rows."""
        scores = [each.scores for each in said.entries.values()]
        rows = scores if said.cue is None else [*scores, said.cue]

        def of_rows(chosen: slice, picked: Picked, given: Sequence[Tensor]) -> Tensor:
            entries = {
                name: each._replace(scores=own, words=each.words[chosen])
                for (name, each), own in zip(said.entries.items(), given, strict=False)
            }
            cue = None if said.cue is None else given[-1]
            here = Said(said.features[chosen].detach(), entries, cue, extra=said.extra)
            return part(here, targets[chosen], picked)

        learned = list(self.blend.parameters())
        return chunked_loss(said.features, layer.weight, layer.bias, picks, rows, learned, of_rows)

    def origins(self, features: Said, tokens: Tensor) -> Origins:
        words = [each.words for each in features.entries.values()]
        picks = torch.cat([tokens.unsqueeze(-1), *words], dim=-1).clamp(max=self.vocab_size - 1)
        picked = picked_logits(self.generate.logits(features.features), picks)
        shared = self._share(features, picked)
        known = tokens < self.vocab_size
        parts = [torch.where(known, picked.logits[..., 0] + shared.generate, LOWEST)]
        places = [torch.full_like(tokens, -1)]
        for log_probs, each in zip(shared.others, features.entries.values(), strict=True):
            own = torch.where(each.words == tokens.unsqueeze(-1), log_probs, LOWEST)
            parts.append(own.logsumexp(-1))
            highest = own.max(-1)
            places.append(torch.where(highest.values > LOWEST / 2, highest.indices // each.of_place, -1))
        shares = torch.stack(parts, dim=-1).softmax(-1)
        return Origins((GENERATE, *features.entries), shares, torch.stack(places, dim=-1))

    def _share(self, said: Said, picked: Picked) -> Shared:
        """`picked` begins with one more logit than those of the entries' words."""
        shared: Shared = self.blend(said.cue, picked._replace(logits=picked.logits[..., 1:]), _scores(said))
        return shared

    def _highest(self, said: Said, shared: Shared, picked: Picked) -> Tensor:
        """The log-probability of the most likely word; words without an entry have at most the highest logit."""
        highest = picked.highest + shared.generate
        words = torch.cat([each.words for each in said.entries.values()], dim=-1)
        if not words.shape[-1]:
            return highest
        entries = torch.cat(shared.others, dim=-1).float()
        generated = torch.where(words < self.vocab_size, picked.logits[..., 1:] + shared.generate.unsqueeze(-1), LOWEST)
        ordered, order = words.sort(-1)
        mass = entries.exp().gather(-1, order).cumsum(-1)
        starts = F.pad(ordered[..., 1:] != ordered[..., :-1], (1, 0), value=True)
        before = torch.where(starts, F.pad(mass[..., :-1], (1, 0)), 0.0).cummax(-1).values
        # The last entry of each word has the mass of all of them.
        together = torch.logaddexp((mass - before).clamp(min=0).log(), generated.gather(-1, order).float())
        return torch.maximum(highest, together.amax(-1))


def _scores(said: Said) -> list[Tensor]:
    exact = torch.promote_types(said.features.dtype, torch.float32)
    return [each.scores.to(exact).clamp(min=LOWEST) for each in said.entries.values()]


def _of_target(said: Said, shared: Shared, targets: Tensor, logits: Tensor) -> Tensor:
    """The log-probability of each target, summed over all ways."""
    parts = [(logits + shared.generate).unsqueeze(-1)]
    for log_probs, each in zip(shared.others, said.entries.values(), strict=True):
        parts.append(torch.where(each.words == targets.unsqueeze(-1), log_probs, LOWEST))
    return torch.cat(parts, dim=-1).logsumexp(-1)


def _by_word(log_probs: Tensor, words: Tensor, size: int) -> Tensor:
    """(*, size): the log-probability of each word, summed over its entries."""
    highest = log_probs.detach().amax(-1, keepdim=True) if log_probs.shape[-1] else log_probs.new_zeros(1)
    empty = log_probs.new_zeros(*log_probs.shape[:-1], size)
    mass = empty.scatter_add(-1, words, (log_probs - highest).exp())
    some = mass > 0
    return torch.where(some, torch.where(some, mass, 1.0).log() + highest, LOWEST)
