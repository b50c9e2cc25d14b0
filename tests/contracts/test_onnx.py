"""Every selection and every model is exported to ONNX with the same numbers, or refused by name."""

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from saccade.export.graphs import TracedGraph, axes_between
from saccade.export.onnx import Onnx, onnx_bytes
from saccade.export.refusing import PARTS, check_graphs, graph_remarks
from saccade.export.runner import language_modelling
from saccade.fields import Number, Text
from saccade.models import LSTMLanguageModel, models
from saccade.tasks import LanguageModelling, Task

from .exported import CASES, labels, pairs, reviews
from .members import SELECTIONS as FACTORIES
from .members import Assembly, Sizes, covered
from .members import selections as registered
from .test_compile import Outputs

onnxruntime = pytest.importorskip("onnxruntime")

SELECTIONS = [Assembly("selection", name) for name in covered(registered, FACTORIES)]
QUICK = ("softmax", "sparsemax")


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
    graph = TracedGraph("attention", module, given, ["context", "weights"], axes_between(given, varied, {}))
    assert_same(graph, results(session(graph), varied), module(*varied.values()))


FAST = ("pooling, convolutional",)


def compare(case, folder):
    """Exports a model, and compares all answers of the runner with those of the task."""
    run = SimpleNamespace(task=case.task, model=case.model)
    check_graphs(run)
    output = folder / "exported"
    output.mkdir()
    Onnx().write(run, output)
    json.loads((output / "model.json").read_text())
    for options, theirs in zip(case.options, answered_apart(output, case.raw, case.options), strict=True):
        ours = case.task.predict(case.model, case.values, **options)
        assert not case.attends or any(answer.attention is not None for answer in ours)
        for one, other in zip(ours, theirs, strict=True):
            assert_same_answer(one, other, case.attends)


APART = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from saccade_runner import Model
raw, several = pickle.load(sys.stdin.buffer)
model = Model(sys.argv[1], threads=1)
found = [model.predict(raw, **options) for options in several]
assert not {"saccade", "torch"} & {name.partition(".")[0] for name in sys.modules}
pickle.dump(found, sys.stdout.buffer)
"""


def answered_apart(folder, raw, options):
    """What the runner that was copied into an export answers, where neither PyTorch nor Saccade can be imported."""
    hidden = folder.parent / "hidden"
    hidden.mkdir()
    for name in ("saccade", "torch"):
        (hidden / f"{name}.py").write_text("raise ImportError('this test has none')")
    done = subprocess.run(
        [sys.executable, "-c", APART, str(folder)],
        input=pickle.dumps((raw, list(options))),
        capture_output=True,
        cwd=folder.parent,
        env={**os.environ, "PYTHONPATH": str(hidden)},
    )
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


def assert_same_answer(one, other, attends):
    several = other.get("nbest", [other])
    for ours, theirs in zip(one.alternatives or [one], several, strict=True):
        wanted = pytest.approx(theirs["answer"], abs=1e-4) if isinstance(ours.value, float) else theirs["answer"]
        assert ours.value == wanted
        assert ours.score == pytest.approx(theirs["score"], abs=1e-4)
        if "probabilities" in theirs:
            each, others = ours.details["probabilities"], theirs["probabilities"]
            pairs = zip(each, others, strict=True) if isinstance(each, list) else [(each, others)]
            assert all(one == pytest.approx(other, abs=1e-4) for one, other in pairs)
        if "reasons" in theirs:
            assert ours.details["reasons"] == theirs["reasons"]
        if "start" in theirs:
            assert (ours.details["start"], ours.details["end"]) == (theirs["start"], theirs["end"])
        assert_same_origins(ours, theirs)
        if attends and ours.attention is None:
            assert "weights" not in theirs
        elif attends and len(ours.attention.queries):
            np.testing.assert_allclose(ours.weights.numpy(), theirs["weights"], atol=1e-4)
            assert len(ours.attention.keys) == len(theirs["keys"])
            assert ours.attention.picked == theirs.get("picked")
            for role, looked in getattr(ours, "others", {}).items():
                np.testing.assert_allclose(looked.weights.numpy(), theirs["sources"][role]["weights"], atol=1e-4)
                assert looked.keys == theirs["sources"][role]["keys"]


def assert_same_origins(ours, theirs):
    """Where each token came from; an untrained model leaves some of them undecided."""
    origins = getattr(ours, "origins", None)
    assert (origins is None) == ("origins" not in theirs)
    for one, other in zip(origins or (), theirs.get("origins", ()), strict=True):
        assert (one.token, one.share) == (other["token"], pytest.approx(other["share"], abs=1e-4))
        assert one.as_json().keys() == other.keys()
        assert 0.0 <= other["share"] <= 1.0
        used = (one.way, one.position, one.key, one.word)
        assert used == (other["from"], other.get("position"), other.get("key"), other.get("word"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in CASES]
)
def test_model_answers_and_attends_the_same(name, tmp_path):
    compare(CASES[name](tmp_path), tmp_path)


def test_every_model_is_in_the_contract():
    assert {name.partition(",")[0] for name in CASES} == set(models.load().names())


def test_language_models_of_contiguous_texts_do_not_score(tmp_path):
    case = CASES["lstm_lm, contiguous"](tmp_path)
    (remark,) = graph_remarks(SimpleNamespace(task=case.task, model=case.model))
    assert "the export continues texts, but does not score them" in remark
    model = SimpleNamespace(readers={})
    with pytest.raises(ValueError, match="scores texts as parts of one, which needs Saccade"):
        language_modelling.Answerer(model, case.task.portable(case.model)).answer([], score=True)


def test_language_models_that_are_refused_by_name():
    task = LanguageModelling(text=Text(tokeniser="byte_bpe"))
    task.fit([{"text": "ab"}])
    with pytest.raises(ValueError, match="The tokeniser 'byte_bpe' of the text cannot be exported"):
        check_graphs(SimpleNamespace(task=task, model=task.build(LSTMLanguageModel, dim=4)))


def test_a_recommender_with_too_many_reviews_is_refused_by_name(tmp_path, monkeypatch):
    case = reviews("factorisation", tmp_path)
    monkeypatch.setattr("saccade.tasks.recommendation.task.MOST_EXPORTED", 20)
    with pytest.raises(ValueError, match="The task Recommendation cannot be exported: its answers need the 23 reviews"):
        check_graphs(SimpleNamespace(task=case.task, model=case.model))


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (
            {"selection": "linear_chain"},
            r"LinearChain \(model.pooling.selection\) cannot be exported: it computes step",
        ),
        ({"selection": "fusedmax"}, r"Fusedmax \(model.pooling.selection\) cannot be exported"),
    ],
)
def test_what_has_no_graph_is_refused_by_name(model, part, tmp_path):
    case = labels("pooling", tmp_path, embedding_dim=5, hidden_dim=7, **model)
    with pytest.raises(ValueError, match=part):
        check_graphs(SimpleNamespace(task=case.task, model=case.model))


def test_a_task_without_answers_is_refused_by_name(tmp_path):
    case = labels("pooling", tmp_path, embedding_dim=5, hidden_dim=7)
    with pytest.raises(ValueError, match="The task Task cannot be exported: its answers cannot be made outside"):
        check_graphs(SimpleNamespace(task=Task(), model=case.model))


def test_a_field_that_nothing_else_reads_is_refused_by_name(tmp_path):
    case = labels("pooling", tmp_path, embedding_dim=5, hidden_dim=7)
    case.task.inputs["text"] = Number()
    with pytest.raises(ValueError, match=r"The text cannot be exported: the field Number cannot .* `saccade serve`"):
        check_graphs(SimpleNamespace(task=case.task, model=case.model))


def test_attention_with_a_state_inside_a_loop_is_refused_by_name(tmp_path):
    case = pairs("word_by_word", tmp_path, embedding_dim=5, hidden_dim=7, selection="monotonic")
    with pytest.raises(ValueError, match=r"Monotonic in WordByWord \(model.\) cannot be exported: its state"):
        check_graphs(SimpleNamespace(task=case.task, model=case.model))
