"""Rationales: the model answers from the few words that it picks."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.checks import check_count
from saccade.layers import MovingBaseline, ReadPicked, RecurrentLayer, SequentialSelection, TokenEmbedding
from saccade.layers.recurrent import CellName
from saccade.losses import reinforce_loss
from saccade.models.base import Costs, Losses, models
from saccade.reading import Reading
from saccade.scores import QueryFreeScore
from saccade.selections import BinaryConcrete, Selection, Sigmoid


@models.register("rationale")
class Rationale(nn.Module):
    r"""A generator picks words, and an encoder answers from these words alone.

    .. math:: z \sim p(z \mid x), \qquad \text{cost} = \ell(\mathrm{enc}(x, z), y) + \lambda_1 \sum_t z_t
        + \lambda_2 \sum_t |z_t - z_{t-1}|

    The generator reads the whole text in both directions, the encoder only the words with z_t = 1. The first penalty
    keeps rationales short, the second keeps their words together. The expected cost is minimised. With the score
    function (REINFORCE), the generator's gradient is the cost, minus a baseline, times the gradient of log p(z | x);
    with straight-through samples, it flows through z itself. Evaluation picks the words with p of at least a half, the
    recurrent generator word by word.

    In long texts no single word may reach a half: training then samples enough of many unlikely words to answer, but
    evaluation picks none. With a `share`, both pick this share of the words, those with the highest scores, instead of
    paying for each word.

    Padding is never picked and costs nothing. If nothing is picked, the answer is that of an empty text.

    Shapes:
        tokens (batch, length), mask bool (batch, length), padding last -> logits (batch, classes).

    Reference:
        Lei et al. (2016), arXiv:1606.04155. There the embeddings are fixed, and the authors' code has one sample and no
        baseline. Straight-through samples: Jang et al. (2017), arXiv:1611.01144.

    Args:
        hidden_dim: units per direction of the generator, and of each layer of the encoder.
        encoder_layers: the number of layers; the classifier reads all of them.
        cell: "rcnn", as in the paper, "gru" or "lstm".
        pooling: what the classifier reads of a layer: its "last" state, as in the paper, or the "average" of the states
            after each picked word.
        generator: "independent" picks each word given the text alone, "recurrent" also given the earlier picks.
        sampler_dim: units of the recurrent generator's memory of its picks.
        estimator: how gradients reach the generator, "reinforce" or "straight_through".
        baseline: what is subtracted from the cost in REINFORCE, a "moving" average or "none".
        temperature: of straight-through samples; lower ones give less biased gradients of higher variance.
        sparsity: lambda_1, the cost of each word picked.
        share: pick this share of the words of each text, rather than pay for each; with straight-through samples and
            the independent generator.
        coherence: lambda_2, the cost of each place where a run of picked words begins or ends.
        warmup: over how many training steps both costs grow from 0. If they are high from the start, a model learns to
            pick nothing.
        dropout: applied to embeddings, between layers and before the classifier.
    """

    steps: Tensor

    def __init__(
        self,
        *,
        vocab: int,
        classes: int,
        embedding_dim: int = 128,
        hidden_dim: int = 128,
        encoder_layers: int = 2,
        cell: CellName = "rcnn",
        pooling: Literal["last", "average"] = "last",
        generator: Literal["independent", "recurrent"] = "independent",
        sampler_dim: int = 30,
        estimator: Literal["reinforce", "straight_through"] = "reinforce",
        baseline: Literal["moving", "none"] = "moving",
        temperature: float = 1.0,
        sparsity: float = 3e-4,
        share: float | None = None,
        coherence: float = 6e-4,
        warmup: int = 0,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        for name, value, choices in (
            ("generator", generator, ("independent", "recurrent")),
            ("estimator", estimator, ("reinforce", "straight_through")),
            ("baseline", baseline, ("moving", "none")),
        ):
            if value not in choices:
                raise ValueError(f"{name} must be {choices[0]!r} or {choices[1]!r}, got {value!r}.")
        for name, weight in (("sparsity", sparsity), ("coherence", coherence)):
            if not weight >= 0:
                raise ValueError(f"{name} must be 0 or more, got {weight}.")
        if share is not None and (estimator, generator) != ("straight_through", "independent"):
            raise ValueError(
                f"share needs estimator='straight_through' and generator='independent', got {estimator!r} and "
                f"{generator!r}: set share to null, and pay for each word by sparsity."
            )
        self.embedding = TokenEmbedding(vocab_size=vocab, dim=embedding_dim, dropout=dropout)
        self.generator = RecurrentLayer(input_dim=embedding_dim, hidden_dim=hidden_dim, cell=cell, bidirectional=True)
        keys = self.generator.output_dim
        relaxed = BinaryConcrete(temperature=temperature, straight_through=True, share=share)
        relaxation = relaxed if estimator == "straight_through" else None
        selection: Selection = relaxation or Sigmoid()
        if generator == "recurrent":
            selection = SequentialSelection(key_dim=keys, hidden_dim=sampler_dim, cell=cell, relaxation=relaxation)
        encoder = ReadPicked(
            value_dim=embedding_dim,
            hidden_dim=hidden_dim,
            num_layers=encoder_layers,
            cell=cell,
            pooling=pooling,
            dropout=dropout,
        )
        self.rationale = Attention(score=QueryFreeScore(key_dim=keys), selection=selection, aggregation=encoder)
        self.output_proj = nn.Linear(encoder.output_dim(embedding_dim), classes)
        self.estimator = estimator
        self.baseline = MovingBaseline() if baseline == "moving" else None
        check_count("warmup", warmup, least=0)
        self.sparsity = sparsity if share is None else 0.0  # otherwise all rationales cost the same
        self.coherence = coherence
        self.warmup = warmup
        self.dropout = dropout
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return self._answer(self._read(tokens, mask))

    def costs(self, tokens: Tensor, mask: Tensor, *, losses: Losses) -> Costs:
        """The costs of one sample for each example; in evaluation, of the words that it answers from.

        Training counts its steps and updates the moving baseline.
        """
        growth = self._growth()
        reading = self._read(tokens, mask)
        logits = self._answer(reading)
        z = reading.selection.draw.squeeze(1)
        short = growth * self.sparsity * z.sum(1)
        changes = torch.where(mask[:, 1:] & mask[:, :-1], (z[:, 1:] - z[:, :-1]).abs(), 0.0)
        apart = growth * self.coherence * changes.sum(1)
        penalty = short + apart
        total = losses(logits) + penalty
        if self.training and self.estimator == "reinforce":
            total = self._reinforced(reading, total)
        kept = z.detach().sum(1) / mask.sum(1).clamp(min=1)
        figures = {"kept": kept, "sparsity": short.detach(), "coherence": apart.detach()}
        return Costs(logits, total, penalty, figures)

    def _growth(self) -> Tensor | float:
        """The factor of the penalties at this step."""
        if not self.training or not self.warmup:
            return 1.0
        self.steps += 1
        return (self.steps / self.warmup).clamp(max=1.0)

    def _read(self, tokens: Tensor, mask: Tensor) -> Reading:
        """The keys are the generator's states, the values the words themselves."""
        words = self.embedding(tokens)
        states, _ = self.generator(words, mask)
        reading: Reading = self.rationale(None, states, words, mask=mask.unsqueeze(1))
        return reading

    def _answer(self, reading: Reading) -> Tensor:
        logits: Tensor = self.output_proj(F.dropout(reading.context.squeeze(1), self.dropout, self.training))
        return logits

    def _reinforced(self, reading: Reading, cost: Tensor) -> Tensor:
        """The cost with the score-function term, whose gradient is the generator's."""
        gain = -cost.float()
        if self.baseline is None:
            return reinforce_loss(reading.selection, gain, 0.0, reduction="none")[0]
        total: Tensor = self.baseline(reading.selection, gain, reduction="none")
        return total
