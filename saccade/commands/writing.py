"""How `saccade predict` writes answers: lines of text, JSON or CSV, and drawings of what the model looked at."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from saccade.runs import Run
    from saccade.tasks import Answer, Example
    from saccade.tasks.answers import Attended

WIDE = 40
"""One row over more keys than this is drawn as bars, the largest first."""


def writer(format: str, file: TextIO, model: Run, asked: Any, scores: bool, single: bool = False) -> Any:
    """The function that writes an answer, given its number and its example.

    Args:
        format: text, jsonl or csv.
        file: where to write.
        model: whose answers are written.
        asked: the options of the answers.
        scores: whether lines of text have the score.
        single: whether there is only one input, so that its answers need no number.
    """
    task = model.task
    if format == "jsonl":

        def write_json(number: int, example: Example, answer: Answer) -> None:
            print(json.dumps(task.as_json(example, answer), ensure_ascii=False), file=file)

        return write_json
    if format == "csv":
        rows = csv.writer(file)
        columns = task.columns(asked)
        rows.writerow([*task.inputs, *columns, "score"])

        def write_csv(number: int, example: Example, answer: Answer) -> None:
            shown = [field.show(example[role]) for role, field in task.inputs.items()]
            for each in answer.alternatives or [answer]:
                cells = task.cells(each, asked)
                missing = [""] * (len(columns) - len(cells))
                rows.writerow([*shown, *cells, *missing, f"{each.score:.6g}"])

        return write_csv

    def write_text(number: int, example: Example, answer: Answer) -> None:
        for each in answer.alternatives or [answer]:
            numbered = [str(number)] if asked.several or (answer.alternatives and not single) else []
            cells = task.cells(each, asked)
            cells[1:1] = [f"{each.score:.4f}"] if scores else []
            print("\t".join([*numbered, *cells]), file=file)

    return write_text


def is_wide(attention: Attended) -> bool:
    """Whether it is drawn as bars."""
    return len(attention.queries) == 1 and len(attention.keys) > WIDE


def draw_answer(answer: Answer, file: TextIO) -> None:
    """Draws with characters what the model looked at."""
    from saccade.interpretation.text import draw_attention, draw_bars

    several = [each for each in answer.alternatives if each.attention is not None]
    for each in several or [answer]:
        if each.attention is not None:
            weights, keys, queries = each.attention.weights, each.attention.keys, each.attention.queries
            wide = is_wide(each.attention)
            drawn = draw_bars(weights[0].tolist(), keys) if wide else draw_attention(weights, keys, queries)
            print(f"\n{drawn}\n", file=file)
