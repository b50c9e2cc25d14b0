"""Generation: writing a text for one input, or for several."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from saccade.data.lexicons import read_lexicon
from saccade.data.special import BOS, EOS
from saccade.decoders import shift_right
from saccade.evaluation.text import TOKENISATIONS, Tokenisation
from saccade.fields import Field, Links, Text, fields
from saccade.interpretation.explorer import Item
from saccade.registry import nearest
from saccade.tasks.answers import Answer
from saccade.tasks.arguments import field_of
from saccade.tasks.base import Example, Loss, tasks
from saccade.tasks.generation.checks import check_sides
from saccade.tasks.generation.explain_options import ExplainOptions
from saccade.tasks.generation.explaining import explain
from saccade.tasks.generation.forced_alignment import AlignedPair, align_pairs
from saccade.tasks.generation.measuring import MeasuredTexts
from saccade.tasks.generation.options import RANGES
from saccade.tasks.generation.posteriors import sums_alignments
from saccade.tasks.generation.sides import inputs_of
from saccade.tasks.generation.supervision import attention_loss
from saccade.tasks.generation.word_tables import check_lexicon, fill_lexicon
from saccade.tasks.generation.writer import log_likelihoods, writer
from saccade.tasks.metric_names import GenerationMetric


@tasks.register("generation")
class Generation(MeasuredTexts):
    """Writes a text for each input: translation, captions, transcripts, pronunciations.

    Args:
        source: what is read: a text, a recording, or any other field.
        sources: what else is read, by the names of the columns: `{fr: text, picture: {class: image, size: 64}}`. Any of
            the sources may be missing in an example, but not all: its cell is empty or null, or there is no such
            column. Models for several sources are multi_source and multimodal.
        target: the text to write; by default a field like the source, if that is a text.
        joint: one vocabulary, learned from both sides and shared by them.
        copying: lets models that copy write out-of-vocabulary words of the source, whole:
            copynet, pointer_generator, or others with such a `head`.
        lexicon: a file of word translations, made by `saccade lexicon` or by hand, for models whose `head` is lexicon.
            It is read when training starts; the model keeps what it needs of it.
        label_smoothing: how much probability training spreads evenly over all tokens that can follow.
        alignment_weight: how much the loss of given links counts relative to that of a token. If it is above 0, every
            training example needs a third column, `alignment`, with links between source and target words (separated
            by spaces, counted from 0), such as 0-0 1-2.
        alignment_shift: 0 trains the attention of the step that writes a token on the links of that token; 1 trains the
            attention of the next step, which has read the token. This gives better alignments, but they no longer show
            where the token was translated from.
        metrics: the figures of an evaluation: bleu, chrf, ter, exact_match, word_f1, token_accuracy, length_to_failure,
            cer and wer (error rates of characters and words); for captions with several references each, as
            in the COCO evaluation, bleu_1 to bleu_4, rouge_l and cider; distinct_1 and distinct_2; unknown_words, the
            share of words outside the vocabulary that are right; aer, for examples with an `alignment` column; pointing
            and weight_in_box, for pictures with a `boxes` column.
        bleu_tokenize: sacrebleu's tokenisation: 13a, intl, zh, char, ja-mecab, ko-mecab; "none" for text that is
            tokenised already.
    """

    unit = "tokens"
    explain_options = ExplainOptions
    usual_classes = {"target": "text"}  # noqa: RUF012 (a constant of the base)

    def __init__(
        self,
        *,
        source: Field | str = "text",
        sources: dict[str, Field] | None = None,
        target: Field | None = None,
        joint: bool = False,
        copying: bool = False,
        lexicon: str | None = None,
        label_smoothing: float = 0.0,
        alignment_weight: float = 0.0,
        alignment_shift: int = 0,
        metrics: Sequence[GenerationMetric] = ("bleu", "chrf", "exact_match"),
        bleu_tokenize: Tokenisation = "13a",
    ) -> None:
        self.source: Field = fields.create(source) if isinstance(source, str) else source
        check_sides(self.source, sources or {}, target, joint=joint, copying=copying, lexicon=lexicon)
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing must be from 0 to less than 1, got {label_smoothing}.")
        if not 0.0 <= alignment_weight < math.inf:
            raise ValueError(f"alignment_weight must be 0 or more, got {alignment_weight}.")
        if alignment_shift not in (0, 1):
            raise ValueError(f"alignment_shift must be 0 or 1, got {alignment_shift}.")
        if bleu_tokenize not in TOKENISATIONS:
            raise ValueError(f"bleu_tokenize={bleu_tokenize!r} is unknown.{nearest(bleu_tokenize, TOKENISATIONS)}")
        if target is None or joint:
            target = copy.deepcopy(self.source) if isinstance(self.source, Text) else Text(tokeniser="char")
            target.vectors = None  # the words of the target may be those of another language
        self.target = field_of("target", target, Text)
        self.target.references = True
        self.shared = {"target": "source"} if joint else {}
        self.copying = copying
        self.lexicon = lexicon
        self.label_smoothing = label_smoothing
        self.alignment_weight = alignment_weight
        self.alignment_shift = alignment_shift
        self.inputs = inputs_of(self.source, sources or {})
        self.targets = {"target": self.target, **({"alignment": Links()} if alignment_weight else {})}
        self.choose_metrics(metrics)
        self.bleu_tokenize = bleu_tokenize
        self.longest_target = 0  # tokens, of the training examples
        self.target_ratio = 0.0  # target tokens to source positions

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        model = writer(model)
        (source, mask, *others), target, real = self.sources_of(batch), batch["target"], batch["target_mask"]
        before = shift_right(target, BOS)
        smoothing = self.label_smoothing if model.training else 0.0  # validation measures the targets alone
        if sums_alignments(model) and "alignment" not in batch and not smoothing:
            alignment = model.alignment(source, mask, before, target, real)
            return Loss(-alignment.log_likelihood.sum(), real.sum())
        decoded = model(source, mask, before, *others, **self.words_of(batch))
        # Nothing is computed for padding. Padding and the start token, which come before EOS, are never wanted.
        found = model.head.loss(decoded.features[real], target[real], smoothing=smoothing, first=EOS)
        total, parts = found.total, {"accuracy": found.right}
        if "alignment" in batch:
            missed = attention_loss(model, decoded.weights, batch["alignment"])
            parts["alignment"] = missed.detach()
            if model.training:
                total = total + self.alignment_weight * missed
        added = None
        if model.training:
            added = model.penalty(decoded, target, real, lambda: log_likelihoods(model, decoded, target, real))
        if added is not None:
            total, parts["penalty"] = total + added, added.detach()
        if model.training and (smoothing or "alignment" in batch or added is not None):
            parts["loss"] = found.plain
        return Loss(total, real.sum(), parts)

    def check(self, model: nn.Module) -> None:
        check_lexicon(model, self.lexicon)
        super().check(model)

    def check_files(self) -> None:
        super().check_files()
        if self.lexicon is not None:
            read_lexicon(self.lexicon)

    def start(self, model: nn.Module) -> list[str]:
        if self.lexicon is None:
            return []
        assert isinstance(self.source, Text)
        lexicon = read_lexicon(self.lexicon)
        return [fill_lexicon(model, self.lexicon, lexicon, self.source.tokeniser, self.target.tokeniser)]

    def portable(self, model: nn.Module) -> dict[str, Any]:
        model = writer(model)
        most = {role: self.most_read(model, field) for role, field in self.inputs.items()}
        return {
            "kind": "generation",
            "target": self.target.portable(),
            "most": most if len(most) > 1 else most["source"],
            "longest": self.longest_target,
            "ratio": self.length_ratio(),
            "limit": RANGES["max_length"][1],
            "written": model.longest_target(),
            "copying": self.copying,
        }

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        return explain(self, model, examples, answers, **options)

    def align(self, model: nn.Module, pairs: Sequence[tuple[str, str]], **options: Any) -> list[AlignedPair]:
        """The word alignment of each pair of texts, by forced decoding: see `align_pairs`."""
        return align_pairs(self, model, pairs, **options)
