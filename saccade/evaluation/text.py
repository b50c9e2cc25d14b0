"""Metrics of predicted texts against references."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, Literal, get_args

from saccade.data.extra import required
from saccade.evaluation.captions import caption_bleu, cider, distinct, rouge_l
from saccade.evaluation.edits import Edits, count_edits, edit_distance
from saccade.evaluation.figures import Figure
from saccade.evaluation.references import References, Texts, check_texts, several
from saccade.evaluation.tables import Table
from saccade.registry import nearest

Tokenisation = Literal["13a", "none", "intl", "zh", "char", "ja-mecab", "ko-mecab"]
"""What a configuration may name: sacrebleu's tokenisations, except those that it would download."""

TOKENISATIONS: tuple[Tokenisation, ...] = get_args(Tokenisation)


def bleu(predicted: Texts, wanted: References, *, tokenize: str = "13a") -> Figure:
    """Corpus BLEU, from 0 to 100; use `tokenize="none"` for text that is already tokenised.

    If all references have fewer than four tokens, only the n-grams that exist count (`eff:yes` in the signature);
    otherwise BLEU would always be 0.
    """
    if tokenize != "none" and 2 * sum(text.endswith(" .") for text in predicted) > len(predicted):
        warnings.warn(
            "Most of the texts end in ' .': they seem to be tokenised, and BLEU tokenises them again. Compare texts as "
            "people write them, or set task.bleu_tokenize to none.",
            stacklevel=2,
        )
    options = {"tokenize": tokenize, "force": True}  # without sacrebleu's own warning about this
    found = _sacrebleu("BLEU", predicted, wanted, **options)
    first = [several(each)[0] for each in wanted]
    if found.value == 0.0 and _sacrebleu("BLEU", first, wanted, **options).value == 0.0:
        return _sacrebleu("BLEU", predicted, wanted, effective_order=True, **options)
    return found


def chrf(predicted: Texts, wanted: References) -> Figure:
    """chrF: the F-score of character n-grams, from 0 to 100."""
    return _sacrebleu("CHRF", predicted, wanted)


def ter(predicted: Texts, wanted: References) -> Figure:
    """Translation edit rate: word edits and shifts per hundred reference words; lower is better."""
    return _sacrebleu("TER", predicted, wanted)


def exact_match(predicted: Texts, wanted: References) -> Figure:
    """The percentage of texts that are exactly right."""
    check_texts(predicted, wanted)
    same = sum(p in several(w) for p, w in zip(predicted, wanted, strict=True))
    return Figure(_percent(same, len(wanted)), "% of texts that match exactly")


def word_f1(predicted: Texts, wanted: References) -> Figure:
    """The F1 of a text's words, in any order, averaged over texts; among several references, the nearest counts.

    Reference:
        Allamanis et al. (2016), arXiv:1602.03001, section 3.
    """
    check_texts(predicted, wanted)
    found = []
    for p, w in zip(predicted, wanted, strict=True):
        said = Counter(p.split())
        references = [Counter(each.split()) for each in several(w)]
        shares = [2 * (said & each).total() / max(1, said.total() + each.total()) for each in references]
        found.append(max(shares))
    return Figure(100.0 * sum(found) / max(1, len(found)), "F1 of words in any order, mean of texts")


def token_accuracy(predicted: Iterable[Sequence[Any]], wanted: Iterable[Sequence[Any]]) -> Figure:
    """The percentage of tokens that are right at their position; missing and extra tokens count as wrong."""
    right = total = 0
    for p, w in zip(predicted, wanted, strict=True):
        right += sum(a == b for a, b in zip(p, w, strict=False))
        total += max(len(p), len(w))
    return Figure(_percent(right, total), "% of tokens that match at their position, relative to the longer text")


def length_to_failure(predicted: Iterable[Sequence[Any]], wanted: Iterable[Sequence[Any]]) -> Figure:
    """The percentage of a text's tokens before the first wrong one, averaged over texts.

    The end of a text counts as a token: continuing after the last token is an error there.

    Reference:
        Grefenstette et al. (2015), arXiv:1506.02516; Kim et al. (2017), arXiv:1702.00887, section 4.1.
    """
    shares = []
    for p, w in zip(predicted, wanted, strict=True):
        right = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(p, w, strict=False)))
        shares.append((right + (right == len(p) == len(w))) / (len(w) + 1))
    return Figure(100.0 * sum(shares) / max(len(shares), 1), "% of tokens before the first wrong one, mean of texts")


def character_error_rate(predicted: Texts, wanted: References) -> Figure:
    """Character insertions, deletions and substitutions per hundred reference characters; lower is better."""
    return _error_rate(predicted, wanted, "characters")


def word_error_rate(predicted: Texts, wanted: References) -> Figure:
    """Word insertions, deletions and substitutions per hundred reference words; lower is better."""
    return _error_rate(predicted, wanted, "words")


def total_edits(predicted: Texts, wanted: References, unit: Literal["words", "characters"]) -> tuple[Edits, int]:
    """The edits that turn the references into the texts, and the length of the references, in words or characters.

    Among several references, the nearest counts. Spaces at both ends do not count.
    """
    check_texts(predicted, wanted)
    edits, total = Edits(0, 0, 0), 0
    for p, w in zip(predicted, wanted, strict=True):
        text, references = _units(p, unit), [_units(each, unit) for each in several(w)]
        nearest_one = min(references, key=lambda each: (edit_distance(each, text), len(each)))
        edits = Edits(*map(sum, zip(edits, count_edits(nearest_one, text), strict=True)))
        total += len(nearest_one)
    return edits, total


def edits_table(predicted: Texts, wanted: References, units: Sequence[Literal["words", "characters"]]) -> Table:
    """How the errors divide into substitutions, deletions and insertions."""
    rows: dict[str, list[float]] = {}
    for unit in units:
        edits, total = total_edits(predicted, wanted, unit)
        rows[unit] = [*edits, total, _percent(sum(edits), total)]
    columns = ["substituted", "deleted", "inserted", "wanted", "error rate, %"]
    return Table("edits", "Edits that turn the reference into the answer:", columns, rows)


def _units(text: str, unit: Literal["words", "characters"]) -> list[str]:
    return text.split() if unit == "words" else list(text.strip())


def _error_rate(predicted: Texts, wanted: References, unit: Literal["words", "characters"]) -> Figure:
    edits, total = total_edits(predicted, wanted, unit)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in edits._asdict().items())
    return Figure(_percent(sum(edits), total), f"edits per 100 wanted {unit}: {counts} in {total:,} {unit}")


METRICS: dict[str, Callable[..., Figure]] = {
    "bleu": bleu,
    "chrf": chrf,
    "ter": ter,
    "exact_match": exact_match,
    "word_f1": word_f1,
    "token_accuracy": token_accuracy,
    "length_to_failure": length_to_failure,
    "cer": character_error_rate,
    "wer": word_error_rate,
    **{f"bleu_{order}": partial(caption_bleu, order=order) for order in range(1, 5)},
    "rouge_l": rouge_l,
    "cider": cider,
    **{f"distinct_{order}": partial(distinct, order=order) for order in (1, 2)},
}

OF_TOKENS = ("token_accuracy", "length_to_failure")
"""The metrics that compare sequences of tokens instead of texts."""

ERROR_RATES: dict[str, Literal["words", "characters"]] = {"cer": "characters", "wer": "words"}
"""The units of each error rate."""

HIGHER_IS_BETTER: dict[str, bool] = {name: name != "ter" and name not in ERROR_RATES for name in METRICS}


def score_texts(
    predicted: Texts, wanted: References, metrics: Sequence[str], *, tokenize: str = "13a"
) -> dict[str, Figure]:
    """Computes several metrics of the same texts.

    Args:
        predicted: the model's predictions.
        wanted: the references, in the same order; a list where several texts are right.
        metrics: names from `METRICS`.
        tokenize: sacrebleu's tokenisation for BLEU.
    """
    figures = {}
    for name in metrics:
        if name not in METRICS:
            raise ValueError(f"Unknown metric {name!r}.{nearest(name, METRICS)}")
        if name in OF_TOKENS:  # words, unless the caller passes tokens
            figures[name] = METRICS[name]([p.split() for p in predicted], [several(w)[0].split() for w in wanted])
        else:
            options = {"tokenize": tokenize} if name == "bleu" else {}
            figures[name] = METRICS[name](predicted, wanted, **options)
    return figures


def _sacrebleu(kind: str, predicted: Texts, wanted: References, **options: Any) -> Figure:
    check_texts(predicted, wanted)
    try:
        metric = getattr(required("sacrebleu.metrics"), kind)(**options)
    except RuntimeError as error:  # a tokenisation that needs another library
        raise ValueError(f"tokenize={options.get('tokenize')!r}: {' '.join(str(error).split())}") from None
    most = max(len(several(each)) for each in wanted)
    references = [[(several(each) + [None] * most)[n] for each in wanted] for n in range(most)]
    score = metric.corpus_score(list(predicted), references).score
    return Figure(float(score), str(metric.get_signature()))


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / max(whole, 1)
