"""The HTTP interface, with real workers."""

import json
import os
import shutil
import signal
import time

import pytest
from fastapi.testclient import TestClient

import saccade
from saccade.serving.app import make_app
from saccade.serving.settings import Settings

TOKEN = "a token of many letters"


@pytest.fixture(scope="module")
def client(reverse, films):
    settings = Settings(deadline=60.0, max_body=100_000, max_inputs=19)
    with TestClient(make_app({"reverse": reverse, "films": films}, settings=settings)) as client:
        yield client


def ask(client, inputs, model="reverse", **more):
    return client.post("/predict", json={"inputs": inputs, "model": model, **more})


def test_answers_are_those_of_the_run(client, reverse) -> None:
    texts = ["abc", "dadacab", "b"]
    found = ask(client, texts, options={"beam": 3}).json()["predictions"]
    wanted = saccade.load(reverse).predict(texts, beam=3)
    assert [each["answer"] for each in found] == [answer.text for answer in wanted]
    assert [each["score"] for each in found] == pytest.approx([answer.score for answer in wanted], abs=1e-5)
    assert "weights" not in found[0]["nbest"][0]


def test_attention_comes_if_asked_for(client) -> None:
    (found,) = ask(client, "abc", attention=True).json()["predictions"]
    best = found["nbest"][0]
    assert len(best["weights"]) == len(best["queries"])
    assert found["keys"] == ["a", "b", "c", "</s>"]


def test_several_models(client, films) -> None:
    (found,) = ask(client, ["good film"], model="films").json()["predictions"]
    assert found["answer"] == saccade.load(films).predict(["good film"])[0].value
    assert found["probabilities"].keys() == {"yes", "no"}
    assert "model" in client.post("/predict", json={"inputs": ["a"]}).text  # which one?


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"inputs": ["a"], "model": "reverse", "options": {"beem": 3}}, "beem"),
        ({"inputs": ["a"], "model": "reverse", "options": {"beam": -3}}, "options: beam must be from 1 to 1000"),
        ({"inputs": ["a"], "model": "reverse", "options": {"beam": "many"}}, "beam"),
        ({"inputs": ["a"], "model": "reverse", "options": {"top": 3}}, "options: There is no option 'top'"),
        ({"inputs": ["a"], "model": "reverse", "options": {"prefix": "XYZ"}}, "cannot write 'XYZ'"),
        ({"inputs": ["a"], "model": "other"}, "model"),
        ({"inputs": ["a"], "model": "reverse", "wait": 3}, "wait"),
        ({"inputs": [], "model": "reverse"}, "inputs"),
        ({"inputs": ["a"] * 20, "model": "reverse"}, "inputs"),
        ({"inputs": ["a", 1.5], "model": "reverse"}, "inputs[1]"),
        ({"inputs": ["a", {"source": "b", "other": 3}, [{"a": 1}]], "model": "reverse"}, "inputs[2]"),
        ({"inputs": ["a", None], "model": "reverse"}, "inputs[1]"),
        ({"inputs": ["a\0b"], "model": "reverse"}, "inputs[0]"),
        ({"model": "reverse"}, "inputs"),
        ([], "body"),
    ],
)
def test_bad_requests_name_the_field(client, body, place) -> None:
    answer = client.post("/predict", json=body)
    assert answer.status_code == 422, answer.text
    assert place in answer.text


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"inputs": ["\xff"]}', b"[" * 90_000, b'{"inputs": ["\\ud800"], "model": "reverse"}']
)
def test_broken_json(client, content) -> None:
    answer = client.post("/predict", content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert "Traceback" not in answer.text


def test_large_requests_are_refused(client) -> None:
    assert ask(client, "a" * 100_001).status_code == 413

    def parts():
        yield b'{"inputs": ["'
        for _ in range(200):
            yield b"a" * 1000

    answer = client.post("/predict", content=parts(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert "100,000 bytes" in answer.json()["detail"]


def test_a_stream_writes_token_by_token(client, reverse) -> None:
    answer = client.post("/stream", json={"input": "abc", "model": "reverse"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [part.split("\n") for part in answer.text.strip().split("\n\n")]
    kinds = [kind.removeprefix("event: ") for kind, _ in events]
    data = [json.loads(line.removeprefix("data: ")) for _, line in events]
    wanted = saccade.load(reverse).predict(["abc"], beam=1)[0]
    assert kinds == ["token"] * len(wanted.tokens) + ["answer"]
    assert "".join(each["token"] for each in data[:-1]) == wanted.text == data[-1]["answer"]
    for each, row in zip(data[:-1], wanted.weights.tolist(), strict=False):
        assert each["weights"] == pytest.approx(row, abs=1e-3)


def test_a_task_that_does_not_write_streams_its_answer(client) -> None:
    answer = client.post("/stream", json={"input": "good film", "model": "films"})
    assert answer.text.startswith("event: answer\ndata: {")


def test_explanations_as_data_and_as_a_page(client) -> None:
    found = client.post("/explain", json={"input": "abc", "model": "reverse"}).json()
    assert found["items"][0]["maps"][0]["name"] == "decoder.attention"
    page = client.post("/explain", json={"input": "<script>", "model": "reverse", "format": "html"})
    assert page.text.startswith("<!doctype html>")
    assert "script-src 'sha256-" in page.headers["content-security-policy"]
    wrong = client.post("/explain", json={"input": "abc", "model": "reverse", "options": {"keep": "*nothing*"}})
    assert wrong.status_code == 422
    assert "fits none of" in wrong.json()["detail"]


def test_what_the_server_says_about_itself(client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"ready": True, "workers": {"reverse": 1, "films": 1}}
    about = client.get("/info").json()["models"]
    assert about["reverse"]["options"]["beam"]["description"].startswith("hypotheses kept")
    assert about["films"]["inputs"] == {"text": {"field": "text", "files": []}}
    assert "# " in about["films"]["card"]
    ask(client, "abc")
    figures = client.get("/metrics").text
    assert 'saccade_requests_total{model="reverse",path="/predict",status="200"}' in figures
    assert "saccade_batch_inputs_bucket" in figures
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/predict", "/stream", "/explain", "/info"} <= paths.keys()
    docs = client.get("/docs").text
    assert "http://" not in docs
    assert "https://" not in docs


def test_pages_are_guarded(client) -> None:
    page = client.get("/")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "onclick" not in page.text
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    other = client.post("/predict", json={}, headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_requests_have_ids(client) -> None:
    assert client.get("/health", headers={"x-request-id": "mine-7"}).headers["x-request-id"] == "mine-7"
    assert client.get("/health", headers={"x-request-id": "a b\tc"}).headers["x-request-id"] != "a b\tc"


def test_inputs_stay_out_of_the_log(client, caplog) -> None:
    caplog.set_level("INFO", "saccade.serving")
    ask(client, "abcabc")
    record = next(record for record in caplog.records if record.getMessage() == "request")
    assert (record.path, record.status, record.inputs, record.model) == ("/predict", 200, 1, "reverse")
    assert "abcabc" not in str(vars(record))


def test_a_killed_worker_is_replaced_and_nothing_is_lost(client) -> None:
    version = client.app.state.models["films"].version
    (process,) = version.processes
    os.kill(process.pid, signal.SIGKILL)
    statuses = {ask(client, "good film", model="films").status_code for _ in range(3)}
    assert statuses <= {200, 503}
    for _ in range(200):
        if ask(client, "good film", model="films").status_code == 200:
            break
        time.sleep(0.1)
    assert ask(client, "good film", model="films").status_code == 200
    assert 'saccade_worker_restarts_total{model="films"} 1.0' in client.get("/metrics").text


def test_tokens(films) -> None:
    with pytest.raises(ValueError, match="16 characters"):
        Settings(token="short")
    settings = Settings(token=TOKEN, origins=("https://page.example",))
    client = TestClient(make_app({"films": films}, settings=settings, local=False))  # without workers
    assert client.get("/health", headers={"host": "any.example"}).status_code == 200
    for given in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer ä"},
    ):
        refused = client.get("/info", headers={k: v.encode() for k, v in given.items()})
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert client.get("/info", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    allowed = client.get("/health", headers={"origin": "https://page.example"})
    assert allowed.headers["access-control-allow-origin"] == "https://page.example"


def test_a_full_queue_and_a_deadline(films) -> None:
    settings = Settings(queue=1, deadline=0.5)
    app = make_app({"films": films}, settings=settings)
    client = TestClient(app)  # no worker takes anything: what is accepted waits until its deadline
    late = client.post("/predict", json={"inputs": ["good film"]})
    assert late.status_code == 503


def test_a_new_version_is_taken_over_and_a_damaged_one_refused(films, reverse, tmp_path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(films, folder)
    with TestClient(make_app({"run": folder})) as client:
        hosted = client.app.state.models["run"]
        before = hosted.version
        weights = folder / "model.safetensors"
        whole = weights.read_bytes()
        weights.write_bytes(whole[:-7])
        assert client.portal.call(hosted.reload) is False
        assert hosted.version is before
        assert ask(client, "good film", model="run").status_code == 200
        weights.write_bytes(whole)
        assert client.portal.call(hosted.reload) is True
        assert hosted.version is not before
        assert ask(client, "good film", model="run").status_code == 200


def test_runs_with_classes_of_strangers_are_refused(films, tmp_path) -> None:
    shutil.copytree(films, tmp_path / "run")
    config = (tmp_path / "run" / "config.yaml").read_text()
    (tmp_path / "run" / "config.yaml").write_text(config.replace("class: pooling", "class: os.system"))
    (tmp_path / "run" / "checksums.json").unlink()
    with pytest.raises(ValueError, match=r"os\.system"):
        make_app({"run": tmp_path / "run"})
