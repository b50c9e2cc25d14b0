"""Pre-training: masked tokens, and which sentences follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.decoders import OutputHead
from saccade.evaluation.figures import Figure
from saccade.evaluation.pretraining import HIGHER_IS_BETTER, Guessed, score_guesses
from saccade.fields import Field, WordPieces
from saccade.fields.wordpieces import CLS, MASK, PAD, SEP
from saccade.interpretation.explorer import Item, Measure, Outcome
from saccade.models.bert import BertStates
from saccade.tasks.answers import Answer
from saccade.tasks.arguments import field_of
from saccade.tasks.base import Example, Loss, Row, Task, tasks
from saccade.tasks.explaining import RecordOptions, explain_inputs
from saccade.tasks.guessing import fill_blanks, guesses, summed_over_texts
from saccade.tasks.masking import mask_some
from saccade.tasks.metric_names import PretrainingMetric
from saccade.tasks.options import Options
from saccade.tasks.sentence_pairs import chunks, number_of, pairs, room


class Pretrainable(Protocol):
    """What this task requires of a model."""

    masked: OutputHead
    """Predicts hidden tokens from their states."""

    next_sentence: nn.Linear
    """Predicts from the vector of a pair whether the second text follows the first."""

    def read(self, tokens: Tensor, mask: Tensor, segments: Tensor) -> BertStates: ...


@dataclass(frozen=True, kw_only=True)
class PretrainingOptions(Options):
    """What to do with a text.

    Args:
        score: report how well the model predicts hidden tokens and next sentences, instead of filling in [MASK].
    """

    score: bool = False


@tasks.register("pretraining")
class Pretraining(Task):
    r"""Learns from raw text to predict masked tokens, and whether one passage follows another.

    .. math:: -\frac{1}{|M|} \sum_{t \in M} \log p(x_t \mid \tilde x) - \log p(\text{next} \mid \tilde x)

    A document is a row, or in a plain text file everything up to an empty line. Each of its lines is a sentence. The
    trained model fills in each `[MASK]` of a text, and other models can start from it (`--init-from`).

    Args:
        text: the column of the documents.
        mask_share: the share of tokens to hide; 80 % of these are masked, 10 % replaced and 10 % kept.
        max_predictions: the maximum number of tokens to hide in a pair of texts.
        short_share: the share of documents that are cut into shorter passages than would fit.
        metrics: the figures of an evaluation: masked_accuracy, masked_perplexity, next_accuracy.

    Reference:
        Devlin et al. (2019), arXiv:1810.04805, section 3.1 and appendix A.
    """

    options = PretrainingOptions
    explain_options = RecordOptions
    evaluate_options: ClassVar[dict[str, Any]] = {"score": True}
    known_metrics = HIGHER_IS_BETTER

    def __init__(
        self,
        *,
        text: Field | str = "wordpieces",
        mask_share: float = 0.15,
        max_predictions: int = 20,
        short_share: float = 0.1,
        metrics: Sequence[PretrainingMetric] = ("masked_accuracy", "masked_perplexity", "next_accuracy"),
    ) -> None:
        check_count("max_predictions", max_predictions)
        for name, share in (("mask_share", mask_share), ("short_share", short_share)):
            if not 0.0 <= share < 1.0:
                raise ValueError(f"{name} must be from 0 to less than 1, got {share}.")
        self.text = field_of("text", text, WordPieces)
        self.text.paragraphs = True
        self.mask_share = mask_share
        self.max_predictions = max_predictions
        self.short_share = short_share
        self.inputs = {"text": self.text}
        self.choose_metrics(metrics)

    @property
    def most(self) -> int:
        """The tokens of a pair, without the special ones."""
        return self.text.max_length - 3

    def sizes(self) -> dict[str, Any]:
        return {**self.input_sizes(), "head": "pretraining"}

    def rows(self, example: Example) -> list[Row]:
        sentences = [line for line in example["text"].split("\n") if line.strip()]
        encoded = [ids for ids in self.text.tokeniser.encode_all(sentences) if ids]
        number = number_of(example["text"])
        found = chunks(encoded, document=number, most=self.most, short_share=self.short_share)
        return [{"text": chunk} for chunk in found]

    def cut(self, row: Row) -> str | None:
        return None  # a document becomes as many rows as it takes

    def size(self, row: Row) -> tuple[int, ...]:
        text = row["text"]
        return (len(text["ids"]) if "first" in text else room(text, self.most) + 3,)

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Texts to fill in stay as they are; stretches of documents become pairs with hidden tokens.

        Without a generator the pairs and the hidden tokens are the same every time, for validation.
        """
        if "first" in rows[0]["text"]:
            return super().collate(rows, generator=generator)
        drawn = torch.Generator().manual_seed(len(rows)) if generator is None else generator
        found = pairs([row["text"] for row in rows], most=self.most, generator=drawn)
        assembled = [self.text.assemble(pair.one, *([pair.other] if pair.other else [])) for pair in found]
        padded = self.text.pad(assembled)
        ids, tokeniser = padded["values"], self.text.tokeniser
        special = torch.tensor([tokeniser.special(name) for name in (PAD, CLS, SEP)])
        given, hidden = mask_some(
            ids,
            padded["mask"] & ~torch.isin(ids, special),
            share=self.mask_share,
            most=self.max_predictions,
            mask_id=tokeniser.special(MASK),
            others=(0, tokeniser.size),
            generator=drawn,
        )
        follows = torch.tensor([int(pair.follows) if pair.other else -1 for pair in found])
        return {
            "text": given,
            "text_mask": padded["mask"],
            "text_segments": padded["segments"],
            "hidden": hidden & (self.mask_share > 0),
            "wanted": ids,
            "follows": follows,
        }

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        reader = cast(Pretrainable, model)
        states, pooled = reader.read(*self.given(batch))
        hidden, follows = batch["hidden"], batch["follows"]
        masked = reader.masked.loss(states[hidden], batch["wanted"][hidden])
        known = follows >= 0
        logits = reader.next_sentence(pooled)[known].float()
        following = F.cross_entropy(logits, follows[known], reduction="sum")
        tokens, texts, count = (n.clamp(min=1) for n in (hidden.sum(), known.sum(), torch.tensor(len(follows))))
        count = count.to(pooled.device)
        parts = {
            "masked_accuracy": masked.right * count / tokens,
            "next_accuracy": (logits.argmax(1) == follows[known]).sum() * count / texts,
        }
        return Loss(count * (masked.total / tokens + following / texts), count, parts)

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: PretrainingOptions
    ) -> list[Answer]:
        reader = cast(Pretrainable, model)
        if options.score:
            sums = partial(self._sums, reader)
            counted = summed_over_texts(self, model, examples, sums, width=len(Guessed._fields), together=64)
            found = [Guessed(each[0], *map(int, each[1:])) for each in counted]
            return [Answer(g.log_prob, g.log_prob / max(1, g.tokens), details=g._asdict()) for g in found]
        tokeniser = self.text.tokeniser
        blank = batch["text"] == tokeniser.special(MASK)
        log_probs = reader.masked(reader.read(*self.given(batch)).states[blank]).float().log_softmax(-1)

        def write(number: int, tokens: list[int]) -> str:
            """The text as the user wrote it, with its blanks filled in as far as the model reads."""
            first, *others = examples[number]["text"].split(MASK)
            pieces = [piece.removeprefix("##") for piece in tokeniser.pieces(tokens)]
            pieces += [MASK] * (len(others) - len(pieces))
            return "".join([first, *(piece + part for piece, part in zip(pieces, others, strict=False))])

        return fill_blanks(log_probs, blank.nonzero()[:, 0], examples, pieces=tokeniser.pieces, write=write)

    def _sums(self, model: Pretrainable, batch: dict[str, Tensor]) -> Tensor:
        """(batch, 5): the fields of `Guessed` for each row."""
        states, pooled = model.read(*self.given(batch))
        hidden, follows = batch["hidden"], batch["follows"]
        sums = torch.zeros(len(follows), len(Guessed._fields), dtype=torch.float64)
        each = guesses(model.masked(states[hidden]), batch["wanted"][hidden])
        sums[:, :3].index_add_(0, hidden.nonzero()[:, 0].cpu(), each)
        sums[:, 3] = (follows >= 0).double().cpu()
        sums[:, 4] = (model.next_sentence(pooled).argmax(1) == follows).double().cpu()
        return sums

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        return score_guesses([Guessed(**answer.details) for answer in answers], list(self.metrics))

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        return explain_inputs(self, model, examples, answers, describe=self._describe, **options)

    def _describe(self, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
        blanks = answer.details.get("blanks", [])
        meaning = f"The likeliest pieces for the first {MASK}."
        outcomes = [
            Outcome(label=piece, probability=p, gold=False) for piece, p in (blanks[0] if blanks else {}).items()
        ]
        return [Measure(name="filled in", value=answer.text, meaning=meaning)], outcomes
