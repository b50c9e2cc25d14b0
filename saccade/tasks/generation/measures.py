"""The measures next to the attention of one input, each with its meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from saccade.evaluation import MEANINGS
from saccade.evaluation.faithfulness import faithfulness
from saccade.evaluation.report import AlignmentFigure, alignment_figures
from saccade.interpretation.alignments import Alignment, Words, align, merge_words
from saccade.interpretation.explorer import Measure
from saccade.interpretation.source import source_attentions
from saccade.models import EncoderDecoder
from saccade.tasks.answers import Origin
from saccade.tasks.generation.forced_alignment import HeadChoice, read_head
from saccade.tasks.generation.posteriors import sums_alignments

PREDICTED = "What the model wrote for this input. The rows of the maps are its pieces, or the words they make up."
FORCED = (
    "What the model was made to write (forced decoding). The maps show how it reads the input for this text, "
    "even if it would have written another one."
)
LOG_PROBABILITY = (
    "The mean log-probability of the output's tokens; 0 means that the model was certain of each. "
    "Attention for an output that the model finds unlikely says little about how it usually reads."
)
READ_OFF = (
    "Which attention the measures below describe, and whether they count words or pieces (for texts of one word). "
    "Weight on spaces and on the end of the sentence is left out."
)
SHARES = (
    "How much of the attention each source gets, averaged over the output. Sources with an attention of their own get "
    "equal shares: then it says nothing about which one matters."
)
ORIGINS = (
    "Where each piece of the output came from. Pieces without a remark were generated from the vocabulary; for "
    "the others, the remark names the way that contributed most to their probability, and the position in the input, "
    "counted from 0."
)
UNKNOWN = "Pieces of the input that are not in the vocabulary. The model read each as an unknown word."


def output(text: str, forced: bool) -> Measure:
    """What was written."""
    return Measure(name="output", value=text, meaning=FORCED if forced else PREDICTED)


def log_probability(value: float) -> Measure:
    """How likely the output is; nothing for a model that cannot write it."""
    return Measure(
        name="mean log-probability", value=value if math.isfinite(value) else "none", meaning=LOG_PROBABILITY
    )


def shares(looked: dict[str, Tensor]) -> Measure:
    """How the attention is divided between sources, given the weights (steps, positions) of each."""
    totals = {role: float(weights.sum()) for role, weights in looked.items()}
    every = sum(totals.values()) or 1.0
    value = ", ".join(f"{role}: {total / every:.0%}" for role, total in totals.items())
    return Measure(name="attention to sources", value=value, meaning=SHARES)


def unknown(pieces: Sequence[str]) -> list[Measure]:
    """The pieces that are not in the vocabulary, if there are any."""
    if not pieces:
        return []
    return [Measure(name="unknown", value=f"{len(pieces)}: {short(' '.join(dict.fromkeys(pieces)))}", meaning=UNKNOWN)]


def attention_measures(
    across: dict[str, Tensor], words: tuple[Words, Words], choice: HeadChoice, gold: Alignment | None
) -> list[Measure]:
    """Figures of the attention between words; between pieces, where a text is a single word and no links are known.

    Args:
        across: (heads, target pieces, source pieces) of each attention to the source.
        words: the places of the pieces of each source word and of each target word.
        choice: which attention is measured.
        gold: human-made links.
    """
    weights = read_head(across, choice)[choice.shift :]
    in_words = gold is not None or min(map(len, words)) > 1
    sources, targets = words if in_words else ([[place] for word in side for place in word] for side in words)
    matrix = merge_words(weights, sources, [[place for place in unit if place < len(weights)] for unit in targets])
    figures = alignment_figures([align(matrix)], [matrix], gold=None if gold is None else [gold])
    name = list(across)[choice.layer]
    heads = across[name].shape[0]
    head = "" if heads == 1 else f", mean of {heads} heads" if choice.head is None else f", head {choice.head}"
    value = f"{name}{head}{', a step later' if choice.shift else ''}; {'words' if in_words else 'pieces'}"
    return [Measure(name="read off", value=value, meaning=READ_OFF), *map(_measure, figures.items())]


def faithfulness_measures(model: EncoderDecoder, source: Tensor, target: Tensor, *words: Tensor) -> list[Measure]:
    """Whether the model depends on what it attends to; `words` are the source's words, for a model that copies."""
    return [*map(_measure, faithfulness(model, [(source, target, *words)]).items())]


def origin_measure(origins: Sequence[Origin]) -> Measure:
    """Where each word came from."""
    said = [
        origin.token if origin.position is None else f"{origin.token} ({origin.way}: {origin.key} at {origin.position})"
        for origin in origins
    ]
    return Measure(name="origins", value=" ".join(said), meaning=ORIGINS)


def origin_phrase(origin: Origin) -> str:
    """A phrase that says where a word came from; "" for a generated word."""
    if origin.position is None:
        return ""
    way = {"copy": "copied", "lexicon": "lexicon,"}.get(origin.way, f"{origin.way},")
    place = f"position {origin.position + 1}" if origin.word is None else f"word {origin.word + 1}"
    return f"{way} from {place} ({origin.key})"


def testable(model: nn.Module) -> bool:
    """Whether there are weights that can be changed."""
    if sums_alignments(model):
        return False
    attentions = source_attentions(model).values()
    return bool(attentions) and not any(each.selection.through_basis for each in attentions)


def short(text: str, most: int = 60) -> str:
    """The beginning of a long text."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _measure(figure: tuple[str, AlignmentFigure]) -> Measure:
    name, value = figure
    if isinstance(value, dict):
        shown: float | str = ", ".join(f"{offset:+d}: {mass:.2f}" for offset, mass in value.items())
    else:
        shown = "none" if math.isnan(value) else float(value)
    return Measure(name=name.replace("_", " "), value=shown, meaning=MEANINGS[name])
