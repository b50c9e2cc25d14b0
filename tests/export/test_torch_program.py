"""PyTorch programs give the same numbers as the model, for any batch and length."""

import json

import pytest
import torch

from saccade.export import export
from saccade.export.tracing import graphs_of
from saccade.kernels.private_torch import load_package


def outputs(graph, program, batch, length):
    """What the encoder's program and the module itself make of the same source."""
    source = torch.arange(batch * length).reshape(batch, length) % 7 + 4
    mask = torch.arange(length) < torch.tensor([[length - n % 2] for n in range(batch)]).clamp(min=1)
    with torch.no_grad():
        return program(source, mask), graph.module(source, mask)


@pytest.mark.parametrize("size", [(3, 7), (2, 19), (1, 2)])
@pytest.mark.slow
def test_loaded_programs_give_the_same_numbers(writer, saved, size):
    encoder, decoder = graphs_of(writer)
    program = torch.export.load(saved / "encoder.pt2").module()
    found, wanted = outputs(encoder, program, *size)
    torch.testing.assert_close(found, wanted)
    state = dict(zip(encoder.outputs, wanted, strict=True))
    given = [torch.full((size[0],), 5), *(state[name] for name in decoder.inputs if name != "tokens")]
    with torch.no_grad():
        step = torch.export.load(saved / "decoder.pt2").module()(*given)
        torch.testing.assert_close(step, decoder.module(*given))


@pytest.fixture(scope="module")
def saved(writer, tmp_path_factory):
    place = export(writer, tmp_path_factory.mktemp("exports") / "torch", format="torch")
    assert json.loads((place / "model.json").read_text())["task"]["kind"] == "generation"
    return place


@pytest.mark.slow
def test_a_whole_model_gives_the_same_numbers_with_its_attention(labeller, tmp_path):
    place = export(labeller, tmp_path / "out", format="torch")
    (graph,) = graphs_of(labeller)
    assert graph.outputs == ["logits", "looks", "weights_pooling"]
    program = torch.export.load(place / "model.pt2").module()
    found, wanted = outputs(graph, program, 2, 11)
    torch.testing.assert_close(list(found), list(wanted))
    assert found[1].shape == (2, 11)


@pytest.mark.slow
def test_native_code_gives_the_same_numbers(labeller, tmp_path):
    place = export(labeller, tmp_path / "out", format="torch", aot=True)
    (graph,) = graphs_of(labeller)
    found, wanted = outputs(graph, load_package(place / "model.pt2"), 2, 5)
    torch.testing.assert_close(list(found), list(wanted), rtol=1e-4, atol=1e-5)


def test_no_compiler_is_said_before_any_work(labeller, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ValueError, match="there is no compiler: install g"):
        export(labeller, tmp_path / "out", format="torch", aot=True)
