"""Exports next to the run that they were made from, on one thread each: the same dates, the same answers."""

import importlib.util
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Timing
from benchmarks.serving_clients import dates, run_folder

COUNT = 128


def cases() -> list[Any]:
    what = f"{COUNT} dates by the ONNX runner, RNNsearch"
    return [
        Timing(f"{what}, beam {beam}", "run.predict, one thread", partial(onnx_runner, beam=beam)) for beam in (1, 5)
    ]


def onnx_runner(beam: int) -> tuple[Callable[[], object], Callable[[], object]]:
    run, model = both()
    texts = dates()[:COUNT]
    given = [answer.text for answer in run.predict(texts, beam=beam)]
    if [answer["answer"] for answer in model.predict(texts, beam=beam)] != given:
        raise RuntimeError("the export answers differently")
    return lambda: model.predict(texts, beam=beam), lambda: run.predict(texts, beam=beam)


@cache
def both() -> tuple[Any, Any]:
    """The run on one thread, and its export on another."""
    importlib.import_module("onnxruntime")
    import torch

    import saccade
    from saccade.export import export

    torch.set_num_threads(1)
    run = saccade.load(run_folder())
    folder = export(run, Path(tempfile.mkdtemp(prefix="saccade-bench-")) / "onnx", format="onnx")
    spec = importlib.util.spec_from_file_location("exported_run", folder / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return run, module.Model(folder, threads=1)
