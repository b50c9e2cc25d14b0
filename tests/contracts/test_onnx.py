"""Every selection and every model is exported to ONNX with the same numbers, or refused by name."""

import dataclasses

import numpy as np
import pytest
import torch

from saccade.export.graphs import Graph, axes_between
from saccade.export.onnx import onnx_bytes
from saccade.export.refusing import PARTS
from saccade.export.whole import whole_graph
from saccade.export.writers import writing_graphs
from saccade.kernels.modes import plainly
from saccade.models import models
from saccade.models.base import EncoderDecoder, LanguageModel

from .members import SELECTIONS as FACTORIES
from .members import Assembly, Sizes, covered
from .members import selections as registered
from .test_compile import Outputs

onnxruntime = pytest.importorskip("onnxruntime")

SELECTIONS = [Assembly("selection", name) for name in covered(registered, FACTORIES)]
QUICK = ("softmax", "sparsemax")
TINY = {"embedding_dim": 6, "hidden_dim": 10}
OTHERS = {
    "transformer": {"dim": 8, "num_heads": 2, "encoder_layers": 1},
    "bert": {"dim": 8, "num_heads": 2, "num_layers": 1},
    "kim": {"selection": "softmax", **TINY},
    "pooling": {"encoder": "birnn", **TINY},
}
"""The sizes of models that have others than `TINY`."""

ELSEWHERE = {
    "show_attend_tell": "reads pictures, a field that is refused",
    "transformer_lm": "belongs to language modelling, a task that is refused",
}


def refused(model) -> bool:
    return any(isinstance(part, kind) for part in model.modules() for kind in PARTS)


def session(graph):
    return onnxruntime.InferenceSession(onnx_bytes(graph), providers=["CPUExecutionProvider"])


def results(made, given):
    taken = {each.name for each in made.get_inputs()}
    found = made.run(None, {name: tensor.numpy() for name, tensor in given.items() if name in taken})
    return dict(zip([each.name for each in made.get_outputs()], map(torch.from_numpy, found), strict=True))


def assert_same(graph, found, wanted):
    for name, tensor in zip(graph.outputs, wanted, strict=True):
        np.testing.assert_allclose(found[name].numpy(), tensor.numpy(), atol=1e-4, err_msg=f"{graph.name}: {name}")


@pytest.mark.parametrize(
    "assembly",
    [pytest.param(each, marks=[] if each.name in QUICK else [pytest.mark.slow]) for each in SELECTIONS],
    ids=str,
)
@torch.no_grad()
def test_selection_is_exported_or_refused(assembly):
    sizes = assembly.sizes(Sizes(queries=1))
    module = Outputs(assembly.attention(sizes, dtype=torch.float32))
    if refused(module):
        return
    square = sizes.keys == sizes.queries
    other = dataclasses.replace(sizes, batch=(5,), **({} if square else {"keys": 67}))
    given, varied = (
        {"query": made.query, "keys": made.keys, "values": made.values, "mask": made.mask}
        for made in (assembly.inputs(each, dtype=torch.float32, seed=3) for each in (sizes, other))
    )
    graph = Graph("attention", module, given, ["context", "weights"], axes_between(given, varied, {}))
    assert_same(graph, results(session(graph), varied), module(*varied.values()))


def source_of(batch, length):
    lengths = torch.tensor([max(1, length - n % 3) for n in range(batch)])
    return [torch.arange(batch * length).reshape(batch, length) % 13 + 3, torch.arange(length) < lengths[:, None]]


def model_of(name):
    given = {"vocab": 17, "classes": 3, "source_vocab": 17, "target_vocab": 19, **OTHERS.get(name, TINY)}
    kind = models.load().get(name)
    parameters = kind.__init__.__wrapped__.__code__.co_varnames if hasattr(kind.__init__, "__wrapped__") else ()
    return kind(**{key: value for key, value in given.items() if key in parameters}).eval()


@pytest.mark.slow
@pytest.mark.parametrize("name", models.load().names())
@torch.no_grad()
@plainly()
def test_model_is_exported_or_refused(name):
    if name in ELSEWHERE or name == "gat":
        pytest.skip(ELSEWHERE.get(name, "is refused, see PARTS"))
    model = model_of(name)
    if refused(model):
        return
    if isinstance(model, LanguageModel):
        pytest.skip("belongs to a task that is refused")
    if not isinstance(model, EncoderDecoder):
        graph = whole_graph(model, lambda *size: dict(zip(["text", "text_mask"], source_of(*size), strict=True)))
        made = session(graph)
        for size in ((1, 1), (2, 19)):
            given = dict(zip(graph.inputs, source_of(*size), strict=True))
            assert_same(graph, results(made, given), graph.module(*given.values()))
        return
    encoder, decoder = writing_graphs(model, source_of)
    start, step = session(encoder), session(decoder)
    for size in ((1, 1), (2, 19)):
        given = dict(zip(encoder.inputs, source_of(*size), strict=True))
        wanted = encoder.module(*given.values())
        found = results(start, given)
        assert_same(encoder, found, wanted)
        state = dict(zip(encoder.outputs, wanted, strict=True))
        for token in (5, 7):
            now = {"tokens": torch.full((size[0],), token), **{n: state[n] for n in decoder.inputs if n != "tokens"}}
            wanted = decoder.module(*now.values())
            assert_same(decoder, results(step, now), wanted)
            state |= {n.removeprefix("next_"): each for n, each in zip(decoder.outputs, wanted, strict=True)}
