"""The command that computes how likely texts are: score."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from saccade.commands.inputs import check_one_source, chunks, input_corpus, read_inputs
from saccade.commands.interrupting import leaving_at_once
from saccade.commands.options import TableOptions
from saccade.commands.pictures import check_place
from saccade.registry import nearest

if TYPE_CHECKING:
    from saccade.runs import Run
    from saccade.tasks import Answer, Example

CHUNK = 1024
"""How many texts are read before the first is scored, if they have nothing to do with each other."""

END = "</s>"


def score(
    run: str,
    inputs: list[str],
    *,
    input: list[str] | None = None,
    format: str = "text",
    words: bool = False,
    output: str | None = None,
    tables: TableOptions,
    batch_size: int = 64,
    cache_size: int | None = None,
    cache_weight: float | None = None,
    cache_flatness: float | None = None,
    trust_classes: bool = False,
) -> None:
    """Print how likely each text is under a language model.

        saccade score runs/book test.txt
        saccade score runs/book --input "it was a dark and stormy night" --words
        saccade score runs/book test.txt --format jsonl --output scores.jsonl
        saccade score runs/book test.txt --cache-size 500 --cache-weight 0.1

    A text is a line of a file or of standard input, or a row of a table. Each gives one line, in order: its
    log-probability in nats, including its end; --words adds that of each word, after tabs. The perplexity of all texts
    together goes to standard error. A model that was trained on contiguous texts reads them as one.

    Args:
        run: the folder of a trained language model, or of a GPT-2 saved by the transformers library.
        inputs: files to read (default: standard input).
        input: a text; may be given several times.
        format: text, or jsonl (one object per line, with all words).
        words: also print the log-probability of each word.
        output: the file to write (default: standard output).
        batch_size: how many texts are read side by side.
        cache_size: mix in a cache of this many recent words (default: no cache).
        cache_weight: how much the cache counts, from 0 to less than 1 (default: 0.1).
        cache_flatness: 0 makes all cached words count the same; higher values prefer words in a similar context
            (default: 0.3).
        trust_classes: allow classes that are not Saccade's, which runs their code.
    """
    from saccade.checks import check_count

    with leaving_at_once():
        from saccade.evaluation.perplexity import METRICS, Read, about_unknown, score_reading
        from saccade.runs import load
        from saccade.tasks import LanguageModelling

    if format not in ("text", "jsonl"):
        raise ValueError(f"--format must be text or jsonl, got {format!r:.60}.{nearest(format, ('text', 'jsonl'))}")
    check_count("--batch-size", batch_size)
    check_one_source(input, inputs)
    if output is not None:
        check_place(output, "--output")
    model = load(run, trust=trust_classes)
    if not isinstance(model.task, LanguageModelling):
        raise ValueError(f"score needs a language model, but the task of {run} is {type(model.task).__name__}.")
    if words and not model.task.causal:
        raise ValueError("--words needs a causal model: a masked one also reads the words after each word.")
    options = {"cache_size": cache_size, "cache_weight": cache_weight, "cache_flatness": cache_flatness}
    asked = {name: value for name, value in options.items() if value is not None}
    model.task.options.of({"score": True, **asked})
    examples = read_inputs(model.task, input_corpus(model, tables), inputs, input)
    read: list[Read] = []
    with contextlib.ExitStack() as opened:
        file = sys.stdout if output is None else opened.enter_context(open(output, "w", encoding="utf-8"))
        for example, answer in _scored(model, examples, batch_size, asked):
            read.append(Read(**answer.details))
            _write(file, model, example, answer, words, format)
    if not read:
        print("There was no input.", file=sys.stderr)
        return
    found = score_reading(read, list(METRICS))
    shown = ", ".join(f"{name.replace('_', ' ')} {figure.value:.4g}" for name, figure in found.items())
    tokens = sum(each.tokens for each in read)
    print(
        f"{len(read):,} text{'s' * (len(read) != 1)}, {tokens:,} token{'s' * (tokens != 1)}: {shown}.", file=sys.stderr
    )
    for remark in about_unknown(read):
        print(remark, file=sys.stderr)


def _scored(
    model: Run, examples: Iterator[Example], batch_size: int, options: dict[str, Any]
) -> Iterator[tuple[Example, Answer]]:
    """Each text with its score, in order."""
    from saccade.tasks import LanguageModelling

    assert isinstance(model.task, LanguageModelling)
    together = [list(examples)] if model.task.contiguous else chunks(examples, CHUNK)
    for chunk in together:
        answers = model.task.predict(model.model, chunk, batch_size=batch_size, score=True, **options)
        yield from zip(chunk, answers, strict=True)


def _write(file: TextIO, model: Run, example: Example, answer: Answer, words: bool, format: str) -> None:
    from saccade.evaluation.perplexity import perplexity
    from saccade.tasks import LanguageModelling
    from saccade.tasks.scored_texts import Scored, word_scores

    assert isinstance(model.task, LanguageModelling)
    each: list[tuple[str, float]] = []
    if isinstance(answer, Scored) and answer.read is not None:
        each = word_scores(model.task.text.tokeniser, example["text"], answer.read)
    if format == "jsonl":
        tokens = answer.details["tokens"]
        shown = {"text": example["text"], "log_prob": answer.value, "tokens": tokens}
        shown |= {"unknown": answer.details["unknown"], "perplexity": perplexity(-answer.value, tokens)}
        if each:
            shown |= {"words": [{"word": word, "log_prob": value} for word, value in each[:-1]], "end": each[-1][1]}
        print(json.dumps(shown, ensure_ascii=False), file=file)
        return
    cells = [f"{answer.value:.4f}"]
    if words:
        cells += [f"{word or END} {value:.4f}" for word, value in each]
    print("\t".join(cells), file=file)
