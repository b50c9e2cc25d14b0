"""The work on one block, with everything that a worker on another machine needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from saccade.bulk.blocks import Block
from saccade.bulk.manifest import Done
from saccade.bulk.outputs import Output, Row, new_output
from saccade.data.chunks import chunks
from saccade.data.corpus import Corpus
from saccade.data.examples import Examples
from saccade.tasks import Answer, Example, Task

CHUNK = 1024
"""How many rows are in memory at a time; inputs of similar size among them are answered together."""

Predict = Callable[..., list[Answer]]


@dataclass(frozen=True)
class BulkJob:
    """A bulk prediction: the model, how the rows are read, and where the answers go."""

    task: Task
    model: nn.Module
    corpus: Corpus
    options: dict[str, Any]
    batch_size: int
    output: Path
    prefix: str = ""
    details: bool = False

    @property
    def names(self) -> list[str]:
        """The columns of the answers."""
        return [self.prefix + name for name in ("answer", "score", "details")[: 3 if self.details else 2]]

    def examples(self, source: Any, part: Any = None) -> Examples:
        """The rows of files, or of a part of one, as the task reads them."""
        task = self.task
        check = task.check_example
        return self.corpus.read(
            source, task.inputs, extras=task.extras, check=check, part=part, blank=True, unread=task.targets
        )

    def run(self, block: Block, predict: Predict | None = None) -> Done:
        """Answers the rows of a block and writes its output file; `predict` is the task's unless workers share it."""
        examples = self.examples(block.file, block.part)
        reader = examples.readers[0]
        counts = {"rows": 0, "truncated": 0, "strange": 0}
        with new_output(self.output, block, reader, self.names) as output:
            self._write(examples, output, predict, counts)
        skipped = examples.skipped
        path = block.output(self.output)
        size = path.stat().st_size
        if not counts["rows"]:  # a file without rows would have columns of no type
            path.unlink()
        return Done(block.number, bytes=size, skipped=skipped.count, bad=list(map(str, skipped.first)), **counts)

    def _write(self, examples: Examples, output: Output, predict: Predict | None, counts: dict[str, int]) -> None:
        asked = self.task.options.of(self.options)
        for chunk in chunks(self._located(examples), CHUNK):
            inputs: list[Example] = [each["example"] for each in chunk]
            answers = self._answers(inputs, predict)
            output.write(
                [
                    Row(each["line"], each["record"], *self._columns(example, answer, asked))
                    for each, example, answer in zip(chunk, inputs, answers, strict=True)
                ]
            )
            counts["rows"] += len(chunk)
            counts["truncated"] += len(self.task.truncated(self.model, inputs))
            counts["strange"] += len(self.task.unknown(inputs, answers))

    @staticmethod
    def _located(examples: Examples) -> Iterator[dict[str, Any]]:
        for reader, line, example in examples.read():
            yield {"line": line, "record": reader.record, "example": example}

    def _answers(self, inputs: Sequence[Example], predict: Predict | None) -> list[Answer]:
        if predict is not None:
            return predict(inputs, batch_size=self.batch_size, **self.options)
        return self.task.predict(self.model, inputs, batch_size=self.batch_size, **self.options)

    def _columns(self, example: Example, answer: Answer, asked: Any) -> tuple[dict[str, Any], list[str]]:
        """The columns of an answer as values and as texts."""
        shown, *more = self.task.cells(answer, asked)
        if (answer.alternatives or more) and not self.details:
            raise ValueError("These options give more than one answer to an input: keep them with --details.")
        values: list[Any] = [answer.value, answer.score]
        texts = [shown, f"{answer.score:.6g}"]
        if self.details:
            found = self.task.as_json(example, answer, attention=False)
            found = {key: value for key, value in found.items() if key not in ("input", "answer", "score")}
            found |= {"columns": more} if more else {}
            values.append(found)
            texts.append(json.dumps(found, ensure_ascii=False))
        return dict(zip(self.names, values, strict=True)), texts
