"""The commands that use a trained model: predict, evaluate."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from saccade.evaluation import Figure
from saccade.interpretation import align, draw_attention, pharaoh
from saccade.run import Evaluation, load
from saccade.tasks import Prediction

PICTURES = 6
"""How many predictions --plot draws."""

CHUNK = 1024
"""How many lines are read before the first is answered: sentences of like length are translated together."""


def predict(
    run: str,
    *,
    beam: int = 5,
    nbest: int = 1,
    scores: bool = False,
    alignments: bool = False,
    jsonl: bool = False,
    draw: bool = False,
    plot: str | None = None,
    sample: bool = False,
    temperature: float | None = None,
    length_penalty: float | None = None,
    max_length: int | None = None,
    batch_size: int = 64,
    seed: int | None = None,
) -> None:
    """Predict a target for each line of standard input.

    saccade predict runs/my-model < source.txt > target.txt

    Each line gives one line, in order; --scores and --alignments add columns after a tab. With --nbest, each
    hypothesis has a line of its own, which begins with the number of its source, counted from 1.

    Args:
        run: the folder of a trained model.
        beam: hypotheses kept at each step of the search; 1 is greedy.
        nbest: how many hypotheses are written for each line.
        scores: add the score, a normalised log-probability.
        alignments: add which source piece each target piece looked at most, as 0-0 1-2, counted from 0.
        jsonl: write a JSON object a line, with pieces, scores, alignments and weights.
        draw: draw what each prediction looked at: a line for each target piece, a column for each source piece.
        plot: write a picture of what the first predictions looked at, as .png, .svg or .pdf.
        sample: draw from the model instead of searching.
        temperature: of the draws; below 1 they are more alike.
        length_penalty: the exponent of the length that a score is divided by.
        max_length: the most tokens of a prediction; by default more than any target of the training data has.
        batch_size: how many lines are predicted together.
        seed: of the draws.
    """
    model = load(run)
    options: dict[str, Any] = {"beam": beam, "nbest": nbest, "sample": sample, "batch_size": batch_size}
    given = {"temperature": temperature, "length_penalty": length_penalty, "max_length": max_length, "seed": seed}
    if temperature is not None and not sample:
        raise ValueError("--temperature needs --sample.")
    options |= {name: value for name, value in given.items() if value is not None}
    if jsonl and draw:
        raise ValueError("--jsonl and --draw do not go together.")
    number = unfinished = 0
    pictures: list[Prediction] = []
    for lines in _chunks():
        for line, prediction in zip(lines, model.predict(lines, **options), strict=True):
            number += 1
            unfinished += not prediction.finished
            hypotheses = prediction.nbest or [prediction]
            if len(pictures) < PICTURES and prediction.weights is not None:
                pictures.append(prediction)
            if jsonl:
                print(json_module.dumps(_as_json(line, hypotheses), ensure_ascii=False))
                continue
            for hypothesis in hypotheses:
                columns = [str(number)] if nbest > 1 else []
                columns.append(hypothesis.text)
                columns += [f"{hypothesis.score:.4f}"] if scores else []
                columns += [pharaoh(_alignment(hypothesis))] if alignments else []
                print("\t".join(columns))
                if draw and hypothesis.weights is not None:
                    print(f"\n{draw_attention(hypothesis.weights, hypothesis.source, hypothesis.target)}\n")
        sys.stdout.flush()
    _tell_unfinished(unfinished, number)
    if plot is not None:
        from saccade.interpretation.plots import plot_attention

        plot_attention([(p.weights, p.source, p.target) for p in pictures if p.weights is not None], plot)


def evaluate(
    run: str,
    *,
    data: str,
    beam: int = 5,
    beams: str | None = None,
    by_length: int | None = None,
    plot: str | None = None,
    max_length: int | None = None,
    batch_size: int = 64,
    json: bool = False,
) -> None:
    """Evaluate a model on examples whose targets are known.

    saccade evaluate runs/my-model --data test.tsv --by-length 10 --plot lengths.png

    The files are read as those of the training were: with the same columns and the same care about bad rows.

    Args:
        run: the folder of a trained model.
        data: test.tsv, .csv, .jsonl, .parquet, or two text files as test.en,test.de.
        beam: hypotheses kept at each step of the search; 1 is greedy.
        beams: beam sizes to compare, as 1,2,5,10.
        by_length: show the figures for each so many source tokens too.
        plot: write a picture of the figures by length (or by beam size), as .png, .svg or .pdf.
        max_length: the most tokens of a prediction; by default more than any target of the training data has.
        batch_size: how many examples are predicted together.
        json: print a JSON object instead of tables.
    """
    sizes = _sizes(beams)
    if plot is not None and by_length is None and not sizes:
        raise ValueError("--plot draws figures by length or by beam size: add --by-length 10 or --beams 1,2,5,10")
    options: dict[str, Any] = {"beam": beam, "batch_size": batch_size}
    options |= {} if max_length is None else {"max_length": max_length}
    found = load(run).evaluate(data, by_length=by_length, beams=sizes, **options)
    _tell_unfinished(found.unfinished, found.examples)
    if plot is not None:
        _plot(found, plot)
    if json:
        print(json_module.dumps(evaluation_json(found), indent=2))
    else:
        print_evaluation(found)


def evaluation_json(found: Evaluation) -> dict[str, Any]:
    """An evaluation as JSON can hold it."""

    def values(figures: dict[str, Figure]) -> dict[str, float]:
        return {name: figure.value for name, figure in figures.items()}

    return {
        "examples": found.examples,
        "seconds": round(found.seconds, 3),
        "unfinished": found.unfinished,
        "skipped": found.skipped,
        "figures": values(found.figures),
        "signatures": {name: figure.signature for name, figure in found.figures.items()},
        "by_length": [
            {"low": b.low, "high": b.high, "examples": b.examples, "figures": values(b.figures)}
            for b in found.by_length
        ],
        "by_beam": [{"beam": size, "figures": values(figures)} for size, figures in found.by_beam.items()],
    }


def print_evaluation(found: Evaluation) -> None:
    """An evaluation as tables."""
    width = max(map(len, found.figures))
    for name, figure in found.figures.items():
        print(f"{name:{width}}  {figure.value:8.2f}  {figure.signature}")
    print(f"{found.examples:,} examples in {found.seconds:.1f} s")
    names = list(found.figures)
    if found.by_length:
        rows = [(f"{b.low}-{b.high}", b.figures, f"{b.examples:,}") for b in found.by_length]
        _print_rows("source tokens", rows, names)
    if found.by_beam:
        _print_rows("beam", [(str(size), figures, "") for size, figures in found.by_beam.items()], names)


def _print_rows(head: str, rows: Sequence[tuple[str, dict[str, Figure], str]], names: Sequence[str]) -> None:
    counted = any(count for _, _, count in rows)
    print(f"\n{head:>13}" + "".join(f"  {name:>{max(len(name), 8)}}" for name in names) + ("  examples" * counted))
    for label, figures, count in rows:
        cells = "".join(f"  {figures[name].value:{max(len(name), 8)}.2f}" for name in names)
        print(f"{label:>13}{cells}" + (f"  {count:>8}" if counted else ""))


def _plot(found: Evaluation, path: str) -> None:
    from saccade.interpretation.plots import plot_lines

    name = next(iter(found.figures))
    if found.by_length:
        places = [(b.low + b.high) / 2 for b in found.by_length]
        line = (places, [b.figures[name].value for b in found.by_length])
        plot_lines({name: line}, path, x="source tokens", y=name)
    else:
        heights = [figures[name].value for figures in found.by_beam.values()]
        plot_lines({name: (list(found.by_beam), heights)}, path, x="beam size", y=name)


def _tell_unfinished(count: int, of: int) -> None:
    if count:
        print(f"{count:,} of {of:,} predictions were cut before their end: see --max-length.", file=sys.stderr)


def _sizes(text: str | None) -> list[int]:
    try:
        return [int(size) for size in text.split(",")] if text else []
    except ValueError:
        raise ValueError(f"--beams are whole numbers with commas between, as 1,2,5; got {text!r}.") from None


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


def _alignment(prediction: Prediction) -> list[tuple[int, int]]:
    """Without the step that ends the target, which is no piece."""
    return [] if prediction.weights is None else align(prediction.weights[: len(prediction.tokens)])


def _as_json(source: str, hypotheses: Sequence[Prediction]) -> dict[str, Any]:
    best = hypotheses[0]
    return {
        "input": source,
        "text": best.text,
        "score": best.score,
        "source": best.source,
        "nbest": [
            {
                "text": h.text,
                "score": h.score,
                "target": h.target,
                "finished": h.finished,
                "alignment": _alignment(h),
                "weights": None
                if h.weights is None
                else [[round(weight, 4) for weight in row] for row in h.weights.tolist()],
            }
            for h in hypotheses
        ],
    }
