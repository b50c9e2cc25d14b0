"""Hugging Face: BERT as a folder that the `transformers` library can load."""

from __future__ import annotations

from pathlib import Path

from saccade.export.base import Format, formats
from saccade.fields import WordPieces
from saccade.huggingface import check_savable, files_of
from saccade.models.bert import Bert
from saccade.models.quantised import is_quantised
from saccade.runs import Run
from saccade.tasks import Classification


@formats.register("huggingface")
class HuggingFace(Format):
    """A folder that the `transformers` library can load, with the weights, the tokeniser and the names of the labels.

    For BERT with softmax over scaled inner products. A head that classifies the mean of the states, or pools them by
    attention, is left out, since that library has no class for it.
    """

    def check(self, run: Run) -> None:
        model = run.model
        if not isinstance(model, Bert):
            raise ValueError(
                f"{type(model).__name__} is not a BERT: the transformers library cannot load it. Use --format onnx."
            )
        if is_quantised(model):
            raise ValueError("The weights are 8-bit, which this format does not support: export the original run.")
        if not any(isinstance(field, WordPieces) for field in run.task.inputs.values()):
            raise ValueError("Its input is not WordPiece, but the transformers library's BERT reads nothing else.")
        check_savable(model)

    def write(self, run: Run, output: Path) -> None:
        task, model = run.task, run.model
        assert isinstance(model, Bert)
        tokeniser = next(field.tokeniser for field in task.inputs.values() if isinstance(field, WordPieces))
        labels = task.label.names if isinstance(task, Classification) else None
        for name, content in files_of(model, tokeniser, labels=labels).items():
            (output / name).write_bytes(content)
