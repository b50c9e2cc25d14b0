"""Transduction: one sequence of tokens becomes another."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from saccade.checks import check_count
from saccade.data.special import BOS, EOS, NAMES, PAD
from saccade.data.tokenisers import Tokeniser, tokenisers
from saccade.decoders import shift_right
from saccade.evaluation import HIGHER_IS_BETTER, METRICS, OF_TOKENS, Figure, LengthBin, by_length, score_texts
from saccade.layers.positions import LearnedPositions
from saccade.registry import nearest
from saccade.tasks.aligning import sums_alignments, with_posteriors
from saccade.tasks.base import Encoded, Example, Loss, Prediction, Task, tasks
from saccade.tasks.searching import check_options, describe_search, most_read, search
from saccade.tasks.supervision import attention_loss, gold_matrix, link_pieces
from saccade.tasks.wording import as_ids


@tasks.register("translation")
class Transduction(Task):
    """Turns source texts into target texts: translation, transliteration, normalisation, pronunciation.

    Args:
        source_tokeniser: char, word, bpe, unigram or pretokenised, or an instance with its own options.
        target_tokeniser: the same for the other side; if left out, of the source's kind.
        joint: one vocabulary, learnt from both sides and shared by them.
        max_length: training leaves out examples of which a side has more tokens.
        label_smoothing: how much of the probability is wanted, in training, for all tokens alike that can follow.
        alignment_weight: how much it counts, beside a token's loss, that attention misses given links; above 0 every
            training example has a third column, `alignment`: links of source and target words (between spaces, from
            0) such as 0-0 1-2.
        alignment_shift: 0 shows the links of a token to the attention that writes it; 1 to that of the next step, which
            has read it: surer alignments, for `saccade align --shift 1`, but not where the token was translated from.
        metrics: the figures of an evaluation: bleu, chrf, ter, exact_match, token_accuracy, length_to_failure,
            character_error_rate.
        bleu_tokenize: sacrebleu's tokenisation; "none" for text that is tokenised already.
    """

    columns: tuple[str, ...] = ("source", "target")
    scored = ("source", "target")
    metrics = HIGHER_IS_BETTER

    def __init__(
        self,
        *,
        source_tokeniser: Tokeniser | str = "bpe",
        target_tokeniser: Tokeniser | str | None = None,
        joint: bool = False,
        max_length: int = 256,
        label_smoothing: float = 0.0,
        alignment_weight: float = 0.0,
        alignment_shift: int = 0,
        metrics: Sequence[str] = ("bleu", "chrf", "exact_match"),
        bleu_tokenize: str = "13a",
    ) -> None:
        if joint and target_tokeniser is not None:
            raise ValueError("joint=True means one tokeniser for both sides: leave target_tokeniser out.")
        if max_length < 1:
            raise ValueError(f"max_length must be a number of tokens, 1 or more, got {max_length}.")
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}.")
        if alignment_weight < 0.0:
            raise ValueError(f"alignment_weight must be 0 or more, got {alignment_weight}.")
        if alignment_shift not in (0, 1):
            raise ValueError(f"alignment_shift must be 0 or 1, got {alignment_shift}.")
        for metric in metrics:
            if metric not in HIGHER_IS_BETTER:
                raise ValueError(f"Unknown metric {metric!r}.{nearest(metric, HIGHER_IS_BETTER)}")
        self.source_tokeniser = _tokeniser(source_tokeniser)
        self.target_tokeniser = (
            self.source_tokeniser
            if joint
            else copy.deepcopy(self.source_tokeniser)
            if target_tokeniser is None
            else _tokeniser(target_tokeniser)
        )
        self.joint = joint
        self.max_length = max_length
        self.label_smoothing = label_smoothing
        self.alignment_weight = alignment_weight
        self.alignment_shift = alignment_shift
        if alignment_weight:
            self.columns = (*self.scored, "alignment")
        self.metrics = {name: HIGHER_IS_BETTER[name] for name in metrics}
        self.bleu_tokenize = bleu_tokenize
        self._fitted = False
        self.longest_target = 0  # tokens, of the examples that `fit` saw and `keeps` keeps
        self.target_ratio = 0.0  # their target tokens to their source tokens

    def fit(self, examples: Iterable[Example]) -> None:
        if self.joint:
            self.source_tokeniser.fit(text for example in examples for text in (example["source"], example["target"]))
        else:
            self.source_tokeniser.fit(example["source"] for example in examples)
            self.target_tokeniser.fit(example["target"] for example in examples)
        self._fitted = True
        self._measure(examples)

    def _measure(self, examples: Iterable[Example]) -> None:
        """How long targets are, so that no prediction is cut that is no longer than they."""
        longest, sources, targets = 0, 0, 0
        for example in examples:
            encoded = self.encode(example)
            if self.keeps(encoded):
                longest = max(longest, len(encoded["target"]) - 1)
                sources += len(encoded["source"])
                targets += len(encoded["target"])
        self.longest_target, self.target_ratio = longest, targets / max(1, sources)

    def most_tokens(self, sources: Tensor) -> Tensor:
        """How many tokens a prediction may have, for sources of these lengths, unless the user says.

        As many as the longest target of the training data, or twice as many as the source makes expect, and ten.
        """
        expected = (max(1.0, self.target_ratio) * sources).ceil().long()
        return (2 * expected).clamp(min=self.longest_target) + 10

    def sizes(self) -> dict[str, int]:
        if self._fitted:
            return {"source_vocab": self.source_tokeniser.size, "target_vocab": self.target_tokeniser.size}
        return {"source_vocab": 11, "target_vocab": 11 if self.joint else 13}

    def check(self, model: nn.Module) -> None:
        for part in model.modules():
            if isinstance(part, LearnedPositions) and part.max_length <= self.max_length:
                raise ValueError(
                    f"the model's {part.max_length} learned positions are too few for a task of "
                    f"max_length={self.max_length} and the end: set model.max_length to {self.max_length + 1} or more, "
                    f"or task.max_length to {part.max_length - 1} or less."
                )

    def encode(self, example: Example) -> Encoded:
        encoded: Encoded = {"source": [*self.source_tokeniser.encode(example["source"]), EOS]}
        if "target" in example:
            encoded["target"] = [*self.target_tokeniser.encode(example["target"]), EOS]
            if self.alignment_weight and "alignment" in example:
                words = (self.source_tokeniser.words(example["source"]), self.target_tokeniser.words(example["target"]))
                encoded["alignment"] = link_pieces(example["alignment"], *words, shift=self.alignment_shift)
        return encoded

    def size(self, encoded: Encoded) -> tuple[int, ...]:
        return len(encoded["source"]), len(encoded["target"])

    def keeps(self, encoded: Encoded) -> bool:
        return max(len(encoded[side]) for side in self.scored if side in encoded) <= self.max_length + 1  # the end

    def collate(self, encoded: Sequence[Encoded]) -> dict[str, Tensor]:
        batch = {name: _pad(example[name] for example in encoded) for name in self.scored if name in encoded[0]}
        if "alignment" in encoded[0]:
            links = [example["alignment"] for example in encoded]
            batch["alignment"] = gold_matrix(links, batch["target"], batch["source"])
        return batch

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        source, target = batch["source"], batch["target"]
        shifted = shift_right(target, BOS)
        real = target != PAD
        if sums_alignments(model) and "alignment" not in batch and not (self.label_smoothing and model.training):
            alignment = model.alignment(source, source != PAD, shifted, target, real)  # type: ignore[operator]
            return Loss(-alignment.log_likelihood.sum(), real.sum())
        decoded = model(source, source != PAD, shifted)
        wanted = target[real]
        features = decoded.features[real]  # nothing is computed of padding
        # In validation, the loss is that of the targets. Padding and the beginning, before EOS, are never wanted.
        smoothing = self.label_smoothing if model.training else 0.0
        total, right = model.head.loss(features, wanted, smoothing=smoothing, first=EOS)  # type: ignore[operator, union-attr]
        parts = {"accuracy": right}
        if "alignment" in batch:
            missed = attention_loss(model, decoded.weights, batch["alignment"])
            parts["alignment"] = missed.detach()
            if model.training:
                total = total + self.alignment_weight * missed
        return Loss(total, real.sum(), parts)

    @torch.no_grad()
    def predict(
        self,
        model: nn.Module,
        inputs: Sequence[str | Example],
        *,
        batch_size: int = 64,
        **options: Any,
    ) -> list[Prediction]:
        """One prediction for each text; of a text that is very long, the beginning is read (see `unread`).

        Args:
            model: made by `build`.
            inputs: source texts, or examples with a source.
            batch_size: how many texts are translated together; those of like length are.
            options: see `saccade.tasks.searching.search`: beam, nbest, sample, max_length (by default that of
                `most_tokens`), ...; prefix, forbidden and forced may be texts (see `saccade.tasks.wording.as_ids`).
        """
        check_options(options)
        options = as_ids(options, self.target_tokeniser)
        asked = options.pop("max_length", None)
        prefix: Sequence[Any] = options.pop("prefix", None) or ()
        several = bool(prefix) and not isinstance(prefix[0], int)
        if several and len(prefix) != len(inputs):
            raise ValueError(f"prefix has one text for all inputs or one for each of {len(inputs)}, got {len(prefix)}.")
        texts = _texts(inputs)
        read = most_read(model, self.max_length)
        sources = [[*self.source_tokeniser.encode(text)[:read], EOS] for text in texts]
        device = next(model.parameters()).device
        found = [Prediction("", 0.0, source=[NAMES[EOS]]) for _ in texts]  # what nothing becomes
        was_training = model.training
        model.eval()
        try:
            for numbers in _batches([len(source) - 1 for source in sources], batch_size):
                batch = _pad(sources[number] for number in numbers).to(device)
                mask = batch != PAD
                most = self.most_tokens(mask.sum(dim=1)) if asked is None else asked
                begun = [prefix[number] for number in numbers] if several else prefix
                hypotheses_of = search(model, batch, mask, max_length=most, prefix=begun, **options)
                if sums_alignments(model):
                    hypotheses_of = with_posteriors(model, batch, mask, hypotheses_of)
                for number, hypotheses in zip(numbers, hypotheses_of, strict=True):
                    found[number] = self._prediction(texts[number], sources[number], hypotheses)
        finally:
            model.train(was_training)
        return found

    def batches(self, inputs: Sequence[str | Example], batch_size: int) -> list[list[int]]:
        lengths = [len(self.source_tokeniser.encode(text)) for text in _texts(inputs)]
        found = list(_batches(lengths, batch_size))
        empty = [number for number, length in enumerate(lengths) if not length]
        return [*found, empty] if empty else found

    def unread(self, model: nn.Module, inputs: Sequence[str | Example]) -> dict[int, str]:
        read = most_read(model, self.max_length)
        possible = {n: text for n, text in enumerate(_texts(inputs)) if 2 * len(text) > read}  # of a piece each
        lengths = {number: len(self.source_tokeniser.encode(text)) for number, text in possible.items()}
        return {
            number: f"{length:,} tokens, of which the model reads the first {read:,}"
            for number, length in lengths.items()
            if length > read
        }

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_options(options)
        if self._fitted:
            as_ids(options, self.target_tokeniser)

    def describe_search(self, options: Mapping[str, Any]) -> str:
        return describe_search(options)

    def score(self, predictions: Sequence[Prediction], examples: Sequence[Example]) -> dict[str, Figure]:
        wanted = [self.target_tokeniser.normalise(example["target"]) for example in examples]
        predicted = [prediction.text for prediction in predictions]
        figures = score_texts(predicted, wanted, list(self.metrics), tokenize=self.bleu_tokenize)
        for name in OF_TOKENS:
            if name in figures:
                tokens = [self.target_tokeniser.encode(text) for text in wanted]
                figures[name] = METRICS[name]([prediction.tokens for prediction in predictions], tokens)
        return figures

    def score_by_length(
        self, predictions: Sequence[Prediction], examples: Sequence[Example], *, width: int = 10
    ) -> list[LengthBin]:
        """The figures by the number of source tokens."""

        def score(numbers: list[int]) -> dict[str, Figure]:
            return self.score([predictions[n] for n in numbers], [examples[n] for n in numbers])

        return by_length([len(prediction.source) - 1 for prediction in predictions], score, width=width)

    def save(self, folder: str | os.PathLike[str]) -> None:
        self.source_tokeniser.save(Path(folder) / "source.json")
        if not self.joint:
            self.target_tokeniser.save(Path(folder) / "target.json")
        lengths = {"longest_target": self.longest_target, "target_ratio": self.target_ratio}
        (Path(folder) / "lengths.json").write_text(json.dumps(lengths), encoding="utf-8")

    def load(self, folder: str | os.PathLike[str]) -> None:
        self.source_tokeniser = Tokeniser.load(Path(folder) / "source.json")
        self.target_tokeniser = self.source_tokeniser if self.joint else Tokeniser.load(Path(folder) / "target.json")
        file = Path(folder) / "lengths.json"
        if file.is_file():  # runs had none at first
            lengths = json.loads(file.read_text(encoding="utf-8"))
            self.longest_target, self.target_ratio = lengths["longest_target"], lengths["target_ratio"]
        self._fitted = True

    def _prediction(self, text: str, source: list[int], hypotheses: Sequence[Any]) -> Prediction:
        """The best hypothesis, with all of them if there are several."""
        pieces = [*self.source_tokeniser.pieces(source[:-1]), NAMES[EOS]]
        words = self.source_tokeniser.words(text)
        if words and words[-1] and words[-1][-1] >= len(source) - 1:  # the text was not read to its end
            words = [kept for word in words if (kept := [place for place in word if place < len(source) - 1])]
        all_of_them = [
            Prediction(
                text=self.target_tokeniser.decode(h.tokens),
                score=h.score,
                tokens=list(h.tokens),
                source=pieces,
                target=[*self.target_tokeniser.pieces(h.tokens), *([NAMES[EOS]] if h.finished else [])],
                weights=None if h.weights is None else h.weights[: len(h.tokens) + h.finished, : len(source)].cpu(),
                source_words=words,
                target_words=self.target_tokeniser.group(self.target_tokeniser.pieces(h.tokens)),
                finished=h.finished,
                log_prob=h.log_prob,
            )
            for h in hypotheses
        ]
        best = all_of_them[0]
        if len(all_of_them) == 1:
            return best
        return replace(best, nbest=all_of_them)


def _tokeniser(given: Tokeniser | str) -> Tokeniser:
    return tokenisers.create(given) if isinstance(given, str) else given


def _texts(inputs: Sequence[str | Example]) -> list[str]:
    return [text if isinstance(text, str) else text["source"] for text in inputs]


def _pad(sequences: Iterable[Sequence[int]]) -> Tensor:
    return pad_sequence([torch.tensor(ids) for ids in sequences], batch_first=True, padding_value=PAD)


def _batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Numbers of inputs of like length, the longest first: if memory is short, it shows at once. Empty ones are not."""
    check_count("batch_size", batch_size)
    order = sorted((n for n, length in enumerate(lengths) if length), key=lambda number: -lengths[number])
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
