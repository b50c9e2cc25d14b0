"""The command that uses a trained model: predict."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from saccade.checks import check_count
from saccade.commands.pictures import check_picture
from saccade.interpretation import align, draw_attention, merge_words, pharaoh
from saccade.run import Run, load
from saccade.tasks import Prediction
from saccade.workers import Workers

PICTURES = 6
"""How many predictions --plot draws."""

CHUNK = 1024
"""How many lines are read before the first is answered: sentences of like length are translated together."""


def predict(
    run: str,
    *,
    beam: int | None = None,
    nbest: int = 1,
    scores: bool = False,
    alignments: bool = False,
    subwords: bool = False,
    jsonl: bool = False,
    draw: bool = False,
    plot: str | None = None,
    length_penalty: float | None = None,
    coverage_penalty: float | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    no_repeat_ngram: int | None = None,
    prefix: str | None = None,
    forbidden: list[str] | None = None,
    forced: list[str] | None = None,
    sample: bool = False,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    batch_size: int = 64,
    workers: int = 1,
    trust_classes: bool = False,
) -> None:
    """Predict a target for each line of standard input.

        saccade predict runs/my-model < source.txt > target.txt
        saccade predict runs/my-model --nbest 3 --scores < source.txt
        saccade predict runs/my-model --sample --top-p 0.9 --seed 1 < source.txt

    Each line gives one line, in order; --scores and --alignments add columns after a tab. With --nbest, each
    hypothesis has a line of its own, which begins with the number of its source, counted from 1.

    The score that hypotheses are ranked by is their log-probability, summed over all tokens and the end, divided by
    ((5 + tokens) / 6) ^ length-penalty, with the coverage penalty added if there is one. With --length-penalty 0 it is
    the log-probability itself, which --jsonl writes beside it. `saccade explain` shows another: the mean over tokens.

    Of a line with very many tokens the beginning is read: 1,000 tokens, or four times as many as training examples
    may have (task.max_length) if that is more, and never more than the model has positions for. Standard error tells
    which lines that were.

    Args:
        run: the folder of a trained model.
        beam: hypotheses kept at each step of the search; 1 is greedy (default: 5).
        nbest: how many hypotheses are written for each line; with --sample, how many are drawn.
        scores: add the score, as explained above: the higher, the surer.
        alignments: add which source word each target word looked at most, as 0-0 1-2: words between spaces, from 0.
        subwords: the pieces of the vocabulary instead of words in --alignments, the last of the source being its end.
        jsonl: write a JSON object a line, with pieces, words, scores, log-probabilities, alignments and weights.
        draw: draw what each prediction looked at: a line for each target piece, a column for each source piece.
        plot: write a picture of what the first predictions looked at, as .png, .svg or .pdf.
        length_penalty: the exponent of the length that a score is divided by: 0 favours short predictions, 1 compares
            nearly by token (default: 0.6; with --sample 0).
        coverage_penalty: how much it costs to leave source words unread (default: 0).
        min_length: the fewest tokens of a prediction (default: 0).
        max_length: the most tokens of a prediction (default: ten more than the longest training target has, or than
            twice what the length of the source suggests).
        no_repeat_ngram: no sequence of so many tokens is written twice (default: 0, which allows all).
        prefix: a text that all predictions begin with (default: none).
        forbidden: a text that no prediction contains, as the vocabulary splits it; may be given several times.
        forced: a piece at a place counted from 0, as 0=The; may be given several times.
        sample: draw from the model instead of searching.
        temperature: of the draws; below 1 they are more alike (default: 1).
        top_k: draw from this many of the likeliest tokens alone (default: from all).
        top_p: draw from the fewest tokens that have this probability together (default: 1, all tokens).
        seed: of the draws: the same seed gives the same predictions (default: a new one each time).
        batch_size: how many lines are predicted together.
        workers: how many processes share the work, each with one thread; on a CPU as many as it has cores are fastest.
        trust_classes: let the run use classes that are not Saccade's, which runs their code.
    """
    if jsonl and draw:
        raise ValueError("--jsonl and --draw do not go together.")
    if subwords and not alignments:
        raise ValueError("--subwords changes --alignments: give both. (--jsonl has words and pieces.)")
    for name, value in (("temperature", temperature), ("top-k", top_k), ("top-p", top_p), ("seed", seed)):
        if value is not None and not sample:
            raise ValueError(f"--{name} needs --sample.")
    if sample and beam is not None:
        raise ValueError("--beam searches and --sample draws: give one of the two.")
    check_count("--workers", workers)
    if plot is not None:
        check_picture(plot)
    given: dict[str, Any] = {
        "beam": beam,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "min_length": min_length,
        "max_length": max_length,
        "no_repeat_ngram": no_repeat_ngram,
        "prefix": prefix,
        "forbidden": forbidden,
        "forced": None if forced is None else _places(forced),
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    options = {"nbest": nbest, "batch_size": batch_size, **({"sample": True} if sample else {})}
    options |= {name: value for name, value in given.items() if value is not None}
    model = load(run, trust=trust_classes)
    model.task.check_options(options)
    looking = [f"--{name}" for name, wanted in (("alignments", alignments), ("draw", draw), ("plot", plot)) if wanted]
    number = unfinished = 0
    pictures: list[Prediction] = []
    for line, prediction in _predictions(model, workers, options, looking):
        number += 1
        unfinished += not prediction.finished
        hypotheses = prediction.nbest or [prediction]
        if len(pictures) < PICTURES and prediction.weights is not None:
            pictures.append(prediction)
        if jsonl:
            print(json_module.dumps(as_json(line, hypotheses), ensure_ascii=False))
            continue
        for hypothesis in hypotheses:
            columns = [str(number)] if nbest > 1 else []
            columns.append(hypothesis.text)
            columns += [f"{hypothesis.score:.4f}"] if scores else []
            columns += [pharaoh(alignment_of(hypothesis, subwords=subwords))] if alignments else []
            print("\t".join(columns))
            if draw and hypothesis.weights is not None:
                print(f"\n{draw_attention(hypothesis.weights, hypothesis.source, hypothesis.target)}\n")
    tell_unfinished(unfinished, number)
    if plot is not None:
        from saccade.interpretation.plots import plot_attention

        plot_attention([(p.weights, p.source, p.target) for p in pictures if p.weights is not None], plot)


def _predictions(
    model: Run, workers: int, options: dict[str, Any], looking: Sequence[str]
) -> Iterator[tuple[str, Prediction]]:
    """Each line of standard input with its prediction, in order; what was printed is out before more is read."""
    read = 0
    with Workers(model.task, model.model, workers) if workers != 1 else nullcontext() as several:
        predict_all = partial(model.task.predict, model.model) if several is None else several.predict
        for lines in _chunks():
            if looking:
                _check_attention(model, lines, looking[0])
            for place, left in model.task.unread(model.model, lines).items():
                print(f"Line {read + place + 1} has {left}.", file=sys.stderr)
            yield from zip(lines, predict_all(lines, **options), strict=True)
            sys.stdout.flush()
            read += len(lines)


def alignment_of(prediction: Prediction, *, subwords: bool = False) -> list[tuple[int, int]]:
    """Which source word each target word looked at most, or which piece each piece.

    The end of the target is neither; a piece may have looked at the end of the source, which is the last piece there.
    """
    weights = prediction.weights
    if weights is None:
        return []
    if subwords or not prediction.source_words:
        return align(weights[: len(prediction.tokens)])
    return align(merge_words(weights, prediction.source_words, prediction.target_words))


def as_json(source: str, hypotheses: Sequence[Prediction]) -> dict[str, Any]:
    """The hypotheses of one line as JSON can hold them."""
    best = hypotheses[0]
    return {
        "input": source,
        "text": best.text,
        "score": best.score,
        "log_prob": best.log_prob,
        "source": best.source,
        "source_words": best.source_words,
        "nbest": [
            {
                "text": h.text,
                "score": h.score,
                "log_prob": h.log_prob,
                "target": h.target,
                "target_words": h.target_words,
                "finished": h.finished,
                "alignment": alignment_of(h, subwords=True),
                "word_alignment": alignment_of(h),
                "weights": None
                if h.weights is None
                else [[round(weight, 4) for weight in row] for row in h.weights.tolist()],
            }
            for h in hypotheses
        ],
    }


def tell_unfinished(count: int, of: int) -> None:
    """Says how many predictions were cut."""
    if count:
        print(f"{count:,} of {of:,} predictions were cut before their end: see --max-length.", file=sys.stderr)


def _check_attention(model: Run, lines: Sequence[str], option: str) -> None:
    """Raises, before anything is written, if the model looks at nothing; one token tells."""
    line = next((line for line in lines if line.strip()), None)
    if line is not None and model.task.predict(model.model, [line], beam=1, max_length=1)[0].weights is None:
        raise ValueError(
            f"{option} shows what a model looked at, and {type(model.model).__name__} has no attention: leave it out."
        )


def _places(forced: Sequence[str]) -> dict[int, str]:
    """`0=The` as {0: "The"}."""
    found = {}
    for text in forced:
        place, equals, piece = text.partition("=")
        if not equals or not place.strip().isdecimal() or not piece:
            raise ValueError(f"--forced is a place and a piece, as 0=The; got {text!r}.")
        found[int(place)] = piece
    return found


def _chunks() -> Iterator[list[str]]:
    """The lines of standard input, some at a time."""
    lines: list[str] = []
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        try:
            lines.append(raw.decode("utf-8").rstrip("\r\n"))
        except UnicodeDecodeError:
            raise ValueError(f"Line {number} of the input is not UTF-8. Convert it, for example with iconv.") from None
        if len(lines) == CHUNK:
            yield lines
            lines = []
    if lines:
        yield lines
