"""Language modelling: how likely a text is, and how it continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, islice, pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.data.contiguous import carried
from saccade.data.special import BOS, EOS, NAMES, UNK
from saccade.evaluation import Table
from saccade.evaluation.figures import Figure
from saccade.evaluation.neural_cache import NeuralCache
from saccade.evaluation.perplexity import HIGHER_IS_BETTER, Read, about_unknown, score_reading
from saccade.fields import Field, Text
from saccade.layers.limits import most_positions
from saccade.models import LanguageModel
from saccade.tasks.answers import Answer
from saccade.tasks.arguments import field_of
from saccade.tasks.base import Example, Loss, Row, tasks
from saccade.tasks.continuing import ADDED, ContinuationOptions, continue_texts
from saccade.tasks.explained_texts import ExplainedTexts, reader_of
from saccade.tasks.guessing import fill_blanks, guesses, summed_over_texts
from saccade.tasks.metric_names import LanguageModellingMetric
from saccade.tasks.reading_texts import Tokens, in_lanes, lane_start, read_lanes
from saccade.tasks.scored_texts import Scored, by_frequency, measured


@tasks.register("language_modelling")
class LanguageModelling(ExplainedTexts):
    r"""Learns what texts look like: each token from those before it, or masked tokens from those around them.

    .. math:: -\sum_t \log p(x_t \mid x_{<t}) \qquad\text{or}\qquad -\sum_{t \in M} \log p(x_t \mid \tilde x)

    A text with more than `max_length` tokens (see the field `text`) is cut into pieces of that length. Each piece sees
    the last token before it.

    If texts are `contiguous`, such as the lines of a book, they are read one after another as a single text, in as many
    streams at once as pieces of max_length fit into a batch. A recurrent model then carries its state from each piece
    to the next, without a gradient, and texts are also scored in order.

    A causal model continues texts. A masked one fills in each `[MASK]` of a text. With `score`, both
    give the log-probability of texts; for a masked model it is the sum over all tokens, each masked once.

    Args:
        text: the column of the texts.
        causal: whether each token is predicted from those before it; otherwise tokens are masked.
        mask_share: how many of the tokens are masked, if not causal.
        contiguous: whether the texts are parts of one text, to be read in order.
        metrics: the figures of an evaluation: perplexity, word_perplexity, bits_per_byte, accuracy.

    Reference:
        Masked: Devlin et al. (2019), arXiv:1810.04805; the score: Salazar et al. (2020), arXiv:1910.14659.
    """

    unit = "tokens"
    options = ContinuationOptions
    evaluate_options: ClassVar[dict[str, Any]] = {"score": True}
    known_metrics = HIGHER_IS_BETTER

    def __init__(
        self,
        *,
        text: Field | str = "text",
        causal: bool = True,
        mask_share: float = 0.15,
        contiguous: bool = False,
        metrics: Sequence[LanguageModellingMetric] = ("perplexity", "bits_per_byte", "accuracy"),
    ) -> None:
        if not 0.0 < mask_share < 1.0:
            raise ValueError(f"mask_share must be between 0 and 1, got {mask_share}.")
        if contiguous and not causal:
            raise ValueError(
                "contiguous texts are read from left to right: set causal to true, or contiguous to false."
            )
        self.text = field_of("text", text, Text)
        self.causal = causal
        self.mask_share = mask_share
        self.contiguous = contiguous
        self.counts = []
        self.inputs = {"text": self.text}
        self.choose_metrics(metrics)

    def sizes(self) -> dict[str, Any]:
        return {"vocab": self.mask_id + (not self.causal), "causal": self.causal}

    def check(self, model: nn.Module) -> None:
        most, needed = most_positions(model), self.text.max_length + (not self.causal)
        if most is not None and most < needed:
            raise ValueError(
                f"the model's {most} learned positions are too few for texts of max_length={self.text.max_length}: "
                f"set model.max_length to {needed} or more, or max_length of the text to {most - (not self.causal)}."
            )

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        given, mask, asked, targets = self._question(batch)
        own, after = reader_of(model), dict[str, Tensor]()
        if self.contiguous:
            features, after = own.read(given, mask, carried(batch))
        else:
            features = model(given, mask)
        features, wanted = features[asked], targets[asked]
        found = own.head.loss(features, wanted, first=EOS)
        penalty = own.penalty(features, wanted) if model.training else None
        if penalty is None:
            return Loss(found.total, asked.sum(), {"accuracy": found.right}, after)
        return Loss(found.total + penalty, asked.sum(), {"accuracy": found.right, "loss": found.total}, after)

    def prepare(self, model: nn.Module, example: Example) -> Row:
        """The text without its end, or with masks for blanks; texts that are too long lose their beginning."""
        ids = [*self._ids(example["text"]), *([] if self.causal else [EOS])]
        most = reader_of(model).longest()
        kept = len(ids) if most is None else most // 2 if self.causal else most - 1
        return {"text": [BOS, *ids[max(0, len(ids) - kept) :]]}

    def predict(self, model: nn.Module, inputs: Sequence[Any], *, batch_size: int = 64, **options: Any) -> list[Answer]:
        asked = self.options.of(options)
        if asked.cache() is not None and not (asked.score and self.causal):
            raise ValueError("A cache only changes how a causal model scores texts: set score as well.")
        if not asked.score or not self.causal:
            return super().predict(model, inputs, batch_size=batch_size, **options)
        check_count("batch_size", batch_size)
        examples = [self.example(value) for value in inputs]
        was_training = model.training
        model.eval()
        try:
            found = self._read(reader_of(model), examples, batch_size, asked.cache())
        finally:
            model.train(was_training)
        return [measured(self.text.tokeniser, *each) for each in zip(examples, found, strict=True)]

    def batches(self, model: nn.Module, inputs: Sequence[Any], batch_size: int) -> list[list[int]]:
        if not self.contiguous:
            return super().batches(model, inputs, batch_size)
        return in_lanes([len(self.rows(self.example(value))[0]["text"]) for value in inputs], batch_size)

    def _read(
        self, model: LanguageModel, examples: Sequence[Example], together: int, cache: NeuralCache | None
    ) -> list[Tokens]:
        """The tokens of each text, as a causal model reads them."""
        piece = self.text.max_length
        if not self.contiguous:
            rows = [[row["text"] for row in self.rows(example)] for example in examples]
            several = iter(read_lanes(model, list(chain(*rows)), piece=piece, together=together, cache=cache))
            return [Tokens.joined(list(islice(several, len(own)))) for own in rows]
        texts = [self.rows(example)[0]["text"] for example in examples]
        groups = in_lanes(list(map(len, texts)), together)
        begin = lane_start(sum(map(len, texts)))
        lanes = [[begin, *chain.from_iterable(texts[number] for number in group)] for group in groups]
        found: list[Tokens] = []
        for group, read in zip(
            groups, read_lanes(model, lanes, piece=piece, together=together, cache=cache), strict=True
        ):
            ends = list(accumulate((len(texts[number]) for number in group), initial=0))
            found += [read.part(start, end) for start, end in pairwise(ends)]
        return found

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: ContinuationOptions
    ) -> list[Answer]:
        model = reader_of(model)
        sums = partial(self._sums, model)
        if options.score:  # of a masked model
            found = summed_over_texts(self, model, examples, sums, width=3, together=len(examples))
            return [self._measured(*each) for each in zip(examples, found, strict=True)]
        if self.causal:
            before = sums(batch)[:, 0].tolist()
            return continue_texts(self.text.tokeniser, model, batch, before, examples, options)
        if options.writing():
            raise ValueError(f"{options.writing()[0]} changes how texts continue, but a masked model fills in blanks.")
        return self._filled(model, batch, examples)

    def _filled(self, model: LanguageModel, batch: dict[str, Tensor], examples: Sequence[Example]) -> list[Answer]:
        ids, first = batch["text"], len(NAMES)
        blank = ids == self.mask_id
        log_probs = model.head.logits(model(ids, batch["text_mask"])[blank]).float().log_softmax(-1)

        def write(number: int, tokens: list[int]) -> str:
            filled = ids[number].clone()
            filled[blank[number]] = torch.tensor(tokens, device=ids.device)
            return self.text.tokeniser.decode(filled.tolist())

        real = log_probs[:, first : self.mask_id]  # never a special token
        texts = blank.nonzero()[:, 0]
        found = fill_blanks(real, texts, examples, pieces=self.text.tokeniser.pieces, write=write, first=first)
        read = batch["text_mask"].sum(1).tolist()
        unread = [2 + len(self._ids(each["text"])) - count for each, count in zip(examples, read, strict=True)]
        return [
            replace(answer, details={**answer.details, "unread_tokens": left}) if left else answer
            for answer, left in zip(found, unread, strict=True)
        ]

    def _sums(self, model: LanguageModel, batch: dict[str, Tensor]) -> Tensor:
        """(batch, 3): the sums of `guesses` over the tokens of each row."""
        sums = torch.zeros(len(batch["text"]), 3, dtype=torch.float64)
        for given, mask, asked, targets in self._questions(batch):
            each = guesses(model.head.logits(model(given, mask)[asked]), targets[asked])
            sums.index_add_(0, asked.nonzero()[:, 0].cpu(), each)
        return sums

    def _measured(self, example: Example, found: list[float]) -> Answer:
        log_prob, tokens, right = found
        text = self.text.tokeniser.normalise(example["text"])
        unknown = self.text.tokeniser.encode(example["text"]).count(UNK)
        read = Read(log_prob, int(tokens), int(right), len(text.split()), len(text.encode()), unknown)
        return Answer(log_prob, log_prob / max(1.0, tokens), details=read._asdict())

    def portable(self, model: nn.Module) -> dict[str, Any]:
        about = {"causal": self.causal, "mask_id": self.mask_id, "every": self.every, "piece": self.text.max_length}
        more = {"contiguous": self.contiguous, "added": ADDED, "most": reader_of(model).longest()}
        return {"kind": "language_modelling", **about, **more}

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        return score_reading([Read(**answer.details) for answer in answers], list(self.metrics))

    def tables(self, answers: Sequence[Answer], examples: Sequence[Example]) -> list[Table]:
        read = [answer.read for answer in answers if isinstance(answer, Scored)]
        return [by_frequency(self.counts, read)] if read and self.counts else []

    def remarks(self, answers: Sequence[Answer]) -> list[str]:
        cut = sum("unread_tokens" in answer.details for answer in answers)
        long = f"{cut:,} of {len(answers):,} texts are too long for the model, which read only their ends."
        scored = [Read(**answer.details) for answer in answers if "log_prob" in answer.details]
        return [*([long] if cut else []), *(about_unknown(scored) if scored else [])]

    def truncated(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        """Nothing: long texts are scored in pieces, and `remarks` says if a continuation reads only the end of one."""
        return {}

    def unknown(self, inputs: Sequence[Any], answers: Sequence[Answer] | None = None) -> dict[int, list[str]]:
        texts = [self.example(value)["text"] for value in inputs]
        return super().unknown([" ".join(self._between_blanks(text)) for text in texts])
