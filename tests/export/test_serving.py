"""An int8 folder and a captioner answer over HTTP as they do in process."""

import base64
import csv
import io
from functools import partial

import numpy as np
import pytest

import saccade
from saccade.export import export
from saccade.fields import Text
from saccade.models import ShowAttendTell, Transformer
from saccade.tasks import Generation

from .conftest import PAIRS, SOURCES

pytest.importorskip("fastapi_offline", reason="needs the extra serve")
pillow = pytest.importorskip("PIL.Image", reason="needs the extra images")
CHARS = partial(Text, tokeniser="char")


def picture(seed):
    content = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (23, 19, 3), np.uint8)
    pillow.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


@pytest.fixture(scope="module")
def runs(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    task = partial(Generation, source=CHARS, metrics=["exact_match"])
    sizes = {"dim": 24, "num_heads": 3, "encoder_layers": 1, "decoder_layers": 1, "feed_forward_dim": 41}
    run = trained(task, Transformer, PAIRS, **sizes)
    with (folder / "test.tsv").open("w") as file:
        csv.writer(file, delimiter="\t").writerows(PAIRS[:7])
    small = export(run, folder / "int8", format="int8", data=str(folder / "test.tsv"))
    task = partial(Generation, source={"class": "image", "size": 16, "patch": 4}, target=CHARS, metrics=["exact_match"])
    rows = [(picture(n), "ab"[n % 2] * 3) for n in range(7)]
    sizes = {"embedding_dim": 5, "hidden_dim": 7, "annotation_dim": 12, "encoder": "residual"}
    return {"int8": small, "captions": trained(task, ShowAttendTell, rows, **sizes).folder}


@pytest.fixture(scope="module")
def client(runs):
    from fastapi.testclient import TestClient

    from saccade.serving.app import make_app
    from saccade.serving.settings import Settings

    with TestClient(make_app(runs, settings=Settings(deadline=60.0)), "http://localhost") as client:
        yield client


@pytest.mark.slow
def test_an_int8_folder_is_served(client, runs):
    options = {"beam": 3, "max_length": 9}
    wanted = saccade.load(runs["int8"]).predict(SOURCES[:5], **options)
    body = {"inputs": SOURCES[:5], "model": "int8", "options": options, "attention": True}
    found = client.post("/predict", json=body).json()["predictions"]
    assert [each["answer"] for each in found] == [answer.text for answer in wanted]
    np.testing.assert_allclose(found[0]["nbest"][0]["weights"], wanted[0].weights.numpy(), atol=1e-3)


@pytest.mark.slow
def test_pictures_come_as_base64_and_as_files(client, runs):
    pictures, options = [picture(11), picture(12)], {"beam": 2, "max_length": 5}
    wanted = [answer.text for answer in saccade.load(runs["captions"]).predict(pictures, **options)]
    inputs = [{"base64": base64.b64encode(each).decode(), "name": "a.png"} for each in pictures]
    found = client.post("/predict", json={"inputs": inputs, "model": "captions", "options": options}).json()
    assert [each["answer"] for each in found["predictions"]] == wanted
    files = [("files", (f"{n}.png", each)) for n, each in enumerate(pictures)]
    form = {"model": "captions", "options": '{"beam": 2, "max_length": 5}', "attention": "true"}
    found = client.post("/predict/files", files=files, data=form).json()["predictions"]
    assert [each["answer"] for each in found] == wanted
    assert found[0]["keys"] == ["1,1", "1,2", "2,1", "2,2"]
    broken = client.post("/predict/files", files=[("files", ("a.png", b"\x89PNG"))], data={"model": "captions"})
    assert broken.status_code == 422
    assert "files[0]: the source" in broken.text
