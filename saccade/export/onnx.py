"""ONNX: graphs for onnxruntime, with a runner that needs only numpy besides."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from saccade.export.base import Format, formats, required
from saccade.export.describing import describe
from saccade.export.graphs import TracedGraph, exported_program
from saccade.export.refusing import RUNNER, check_graphs, graph_remarks
from saccade.export.tracing import graphs_of
from saccade.runs import Run


@formats.register("onnx")
class Onnx(Format):
    """ONNX graphs with named inputs, outputs and attention weights, and a runner that needs onnxruntime and numpy.

    Batches and lengths are dynamic. `encoder.onnx` and `decoder.onnx` are the two halves of a model that writes texts,
    `model.onnx` is any other model. `model.json` contains the vocabularies and everything else that a prediction needs,
    and `python run.py "a text"` predicts without PyTorch.
    """

    def check(self, run: Run) -> None:
        required("onnx", "onnx", "onnxscript")
        check_graphs(run)

    def remarks(self, run: Run) -> list[str]:
        return graph_remarks(run)

    def write(self, run: Run, output: Path) -> None:
        graphs = graphs_of(run)
        for graph in graphs:
            (output / f"{graph.name}.onnx").write_bytes(onnx_bytes(graph))
        about = describe(run, graphs)
        (output / "model.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
        copy_runner(about, output)


NEEDED = {
    "document": ["text"],
    "link": ["node"],
    "recommendation": ["text"],
    "generation": ["search", "text"],
    "language_modelling": ["search"],
}
"""What modules of the runner import."""


def copy_runner(about: dict[str, Any], output: Path) -> None:
    """Copies the runner into an export: its core, and the modules for this kind of inputs and answers."""
    kinds = [about["task"]["kind"], *(each["kind"] for each in about["inputs"].values())]
    kinds += ["optional"] if any(each.get("optional") for each in about["inputs"].values()) else []
    modules = {*kinds, *(other for kind in kinds for other in NEEDED.get(kind, ()))}
    (output / "saccade_runner").mkdir()
    for name in ("__init__", *sorted(modules)):
        shutil.copyfile(RUNNER / f"{name}.py", output / "saccade_runner" / f"{name}.py")
    shutil.copyfile(RUNNER / "run.py", output / "run.py")


def onnx_bytes(graph: TracedGraph) -> bytes:
    """The graph as the content of an ONNX file, its axes named."""
    with quiet(), torch.no_grad():  # with gradients, the loops would be differentiated
        made = torch.onnx.export(
            exported_program(graph),
            dynamo=True,
            input_names=list(graph.inputs),
            output_names=graph.outputs,
            optimize=True,
            verbose=False,
        )
    assert made is not None
    model = made.model_proto
    names = _axis_names(model.graph.input, graph)
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param:
                axis.dim_param = names.get(axis.dim_param, axis.dim_param)
    content: bytes = model.SerializeToString()
    return content


def _axis_names(inputs: Any, graph: TracedGraph) -> dict[str, str]:
    """Our names of the symbols that the exporter chose for axes."""
    found: dict[str, str] = {}
    for value in inputs:
        for number, axis in enumerate(value.type.tensor_type.shape.dim):
            own = graph.axes.get(value.name, {}).get(number)
            if axis.dim_param and own is not None:
                found.setdefault(axis.dim_param, own)
    return found


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silences the exporter's notes to its own developers."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
