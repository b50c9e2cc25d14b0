"""PyTorch programs: graphs that `torch.export` wrote, for PyTorch without Saccade."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch

from saccade.export.base import Format, formats
from saccade.export.describing import describe
from saccade.export.graphs import exported_program
from saccade.export.onnx import quiet
from saccade.export.refusing import check_graphs, graph_remarks
from saccade.export.tracing import graphs_of
from saccade.kernels.private_torch import compile_package
from saccade.runs import Run


@formats.register("torch")
class TorchProgram(Format):
    """`torch.export` programs, with the same graphs, inputs and outputs as the format onnx.

    `torch.export.load("encoder.pt2").module()` runs in PyTorch without Saccade. With `aot` there are packages of
    AOTInductor instead, compiled for this machine: `torch._inductor.aoti_load_package("encoder.pt2")`.

    Args:
        aot: compile the graphs to native code, which takes minutes and needs a C++ compiler.
    """

    def __init__(self, *, aot: bool = False) -> None:
        self.aot = aot

    def check(self, run: Run) -> None:
        check_graphs(run)
        if self.aot and not any(map(shutil.which, ("c++", "g++", "clang++"))):
            raise ValueError("--aot compiles C++, but there is no compiler: install g++ or clang, or leave --aot out.")

    def remarks(self, run: Run) -> list[str]:
        return graph_remarks(run)

    def write(self, run: Run, output: Path) -> None:
        graphs = graphs_of(run)
        for graph in graphs:
            with quiet(), torch.no_grad():
                made = exported_program(graph)
                if self.aot:
                    compile_package(made, output / f"{graph.name}.pt2")
                else:
                    torch.export.save(made, output / f"{graph.name}.pt2")
        (output / "model.json").write_text(json.dumps(describe(run, graphs), ensure_ascii=False), encoding="utf-8")
