"""An ONNX export predicts what the run predicts, without PyTorch."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from saccade.export import export
from saccade.export.runner import Model
from saccade.models import AttentionPooling
from saccade.tasks import Classification

from .conftest import LABELLED

pytest.importorskip("onnxruntime")

TEXTS = ["ba su", "", "tarifa we, kelu", "x y", "minamo"]


def assert_same_texts(run, model, texts, **options):
    for ours, theirs in zip(run.predict(texts, **options), model.predict(texts, **options), strict=True):
        several = ours.alternatives or [ours]
        for one, other in zip(several, theirs.get("nbest", [theirs]), strict=True):
            assert one.text == other["answer"]
            assert one.score == pytest.approx(other["score"], abs=1e-4)
            if one.attention is not None:
                assert (one.attention.keys, one.attention.queries) == (other["keys"], other["queries"])
                if len(one.attention.queries):
                    np.testing.assert_allclose(one.weights.numpy(), other["weights"], atol=1e-4)


@pytest.fixture(scope="module")
def exported(writer, tmp_path_factory):
    return export(writer, tmp_path_factory.mktemp("exports") / "onnx", format="onnx")


@pytest.mark.slow
def test_texts_scores_and_weights_are_those_of_the_run(writer, exported):
    model = Model(exported, threads=1)
    assert_same_texts(writer, model, TEXTS, beam=1)
    assert_same_texts(writer, model, TEXTS, beam=5)
    assert_same_texts(writer, model, TEXTS, beam=4, nbest=3, length_penalty=1.0, coverage_penalty=0.3)
    assert_same_texts(writer, model, TEXTS, beam=2, max_length=3)


@pytest.mark.slow
def test_inputs_outputs_and_axes_are_named(exported):
    about = json.loads((exported / "model.json").read_text())
    assert about["graphs"]["encoder"]["inputs"] == ["source", "source_mask"]
    assert about["graphs"]["encoder"]["outputs"][:3] == ["log_probs", "weights", "mask"]
    import onnx

    found = onnx.load(exported / "encoder.onnx").graph
    assert [axis.dim_param for axis in found.input[0].type.tensor_type.shape.dim] == ["batch", "length"]
    assert [axis.dim_param for axis in found.output[1].type.tensor_type.shape.dim] == ["batch", "length"]


@pytest.mark.slow
def test_it_runs_without_pytorch(writer, exported):
    blocked = "import sys; sys.modules['torch'] = sys.modules['saccade'] = None; sys.argv = ['run.py', 'ba su']; "
    code = f"{blocked}import runpy; runpy.run_path({str(exported / 'run.py')!r}, run_name='__main__')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split("\t")[0] == writer.predict(["ba su"])[0].text


def test_only_what_a_model_needs_of_the_runner_is_copied(labeller, tmp_path):
    folder = export(labeller, tmp_path / "out", format="onnx")
    names = {file.name for file in (folder / "saccade_runner").iterdir()}
    assert names == {"__init__.py", "text.py", "classification.py"}
    empty, label = Model(folder).predict(["", "ba su"])
    assert (empty["answer"], empty["score"], empty["queries"]) == (None, 0.0, [])
    assert label["answer"] == labeller.predict(["ba su"])[0].value


def test_what_has_no_graph_is_refused_by_name_before_any_work(trained, tmp_path):
    task = partial(Classification, inputs={"text": {"class": "text", "tokeniser": "word"}})
    sizes = {"embedding_dim": 7, "hidden_dim": 11}
    run = trained(task, AttentionPooling, LABELLED, **sizes, encoder="embedding", selection="linear_chain")
    with pytest.raises(ValueError, match=r"LinearChain \(model.pooling.selection\) cannot be exported: it computes"):
        export(run, tmp_path / "out", format="onnx")
    assert not list(tmp_path.iterdir())
