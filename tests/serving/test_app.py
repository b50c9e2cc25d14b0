"""The HTTP interface, with real workers."""

import asyncio
import base64
import json
import logging
import os
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient

import saccade
from saccade.serving.app import make_app
from saccade.serving.hosting import Hosted
from saccade.serving.logs import JsonFormatter
from saccade.serving.metrics import Metrics
from saccade.serving.process import Process
from saccade.serving.settings import Settings
from saccade.serving.worker import Reply
from tests.serving.conftest import wav

TOKEN = "a token of many letters"
LOCAL = "http://localhost"


@pytest.fixture(scope="module")
def client(reverse, films, tones):
    settings = Settings(deadline=60.0, max_body=100_000, max_inputs=19)
    with TestClient(make_app({"reverse": reverse, "films": films, "tones": tones}, settings=settings), LOCAL) as client:
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
    asked = client.post("/predict", json={"inputs": ["a"]})
    assert asked.status_code == 422
    assert asked.json()["detail"][0]["msg"].endswith("say which. Choose from: reverse, films, tones.")


def test_empty_inputs_get_empty_answers_in_their_place(client) -> None:
    texts = [each["answer"] for each in ask(client, ["abc", " ", ""]).json()["predictions"]]
    assert (len(texts), texts[1:]) == (3, ["", ""])
    labels = [each["answer"] for each in ask(client, ["", "good film"], model="films").json()["predictions"]]
    assert labels[0] is None
    assert labels[1] in ("yes", "no")


def test_answers_say_what_the_model_did_not_know(client, reverse) -> None:
    known, strange, empty = ask(client, ["abc", "aXbYXc", ""]).json()["predictions"]
    assert "warnings" not in known
    assert strange["warnings"] == ["The input has parts that the model has never seen and reads as unknown: 'X', 'Y'"]
    assert empty["warnings"] == ["The input is empty, so its answer is empty too."]
    (long,) = ask(client, "abcd" * 500, options={"beam": 1, "max_length": 3}).json()["predictions"]
    assert long["warnings"] == ["The input has 2,000 tokens, but the model only reads the first 1,024."]
    streamed = client.post("/stream", json={"input": "<b>", "model": "reverse"}).text
    assert json.loads(streamed.strip().rpartition("data: ")[2])["warnings"][0].endswith("unknown: '<', '>'")
    (film,) = ask(client, ["good zebra"], model="films").json()["predictions"]
    assert "'zebra'" in film["warnings"][0]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (
            {"inputs": ["a"], "model": "reverse", "options": {"beem": 3}},
            "no such field. Did you mean 'beam'?",
        ),
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
        ({"input": "a", "model": "reverse"}, "Did you mean 'inputs'? Choose from: attention, inputs, model, options."),
        ({"inputs": ["a"], "model": "reverse", "options": {"prefix": ["a", "b"]}}, "one for each of 1"),
        ({"inputs": [{"base64": "%%"}], "model": "tones"}, "inputs[0]: base64 is not valid"),
        ({"inputs": ["/etc/passwd"], "model": "tones"}, "inputs[0]: send the contents of a file (.wav"),
        ({"inputs": [{"path": "/etc/passwd", "base64": "QUJD"}], "model": "tones"}, "inputs[0]: send the contents"),
        ({"inputs": [{"source": {"path": "/etc/passwd"}}], "model": "tones"}, "inputs[0]: send the contents"),
        ({"inputs": [{"base64": "QUJD"}], "model": "tones"}, "inputs[0]: the source"),
        ([], "body"),
    ],
)
def test_bad_requests_name_the_field(client, body, place) -> None:
    answer = client.post("/predict", json=body)
    assert answer.status_code == 422, answer.text
    assert place in answer.text


@pytest.mark.parametrize("path", ["/predict", "/explain"])
def test_refusals_are_about_the_model_asked_for(client, path) -> None:
    given = {"inputs": ["a"]} if path == "/predict" else {"input": "a"}
    answer = client.post(path, json={**given, "model": "reverse", "options": {"beem": 3}})
    (wrong,) = answer.json()["detail"]
    assert wrong["loc"] == ["body", "options", "beem"]
    assert "Did you mean 'beam'?" in wrong["msg"]
    assert "threshold" not in wrong["msg"]
    answer = client.post(path, json={**given, "model": "revers", "options": {"beem": 3}})
    (wrong,) = answer.json()["detail"]
    assert wrong["msg"].startswith("There is no model 'revers'. Did you mean 'reverse'?")
    answer = client.post(path, json={"model": "reverse"})
    assert answer.json()["detail"] == [
        {"loc": ["body", next(iter(given))], "msg": "This field is missing.", "type": "missing"}
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"inputs": ["\xff"]}',
        b"[" * 90_000,
        b'{"inputs": ["\\ud800"], "model": "reverse"}',
        b'{"inputs": ["a"], "model": "reverse", "\\ud800": 1}',
        b'{"inputs": ["a"], "model": "reverse", "options": {"\\ud800": 1}}',
        b'{"inputs": ["a"], "model": "reverse", "options": {"prefix": "\\ud800"}}',
        b'{"inputs": ["a"], "model": "reverse", "options": {"beam": ' + b"9" * 5000 + b"}}",
        b'{"inputs": ["a"], "model": "reverse", "options": {"length_penalty": NaN}}',
        b'{"inputs": ["a"], "model": "reverse", "options": {"length_penalty": -Infinity}}',
        b'{"inputs": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b', "model": "reverse"}',
    ],
)
def test_broken_json(client, content) -> None:
    answer = client.post("/predict", content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_what_is_not_called_json_is_refused(client, kind) -> None:
    answer = client.post("/predict", content=b'{"inputs": ["a"], "model": "reverse"}', headers={"content-type": kind})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["detail"]


def test_errors_are_short(client) -> None:
    body = {"inputs": ["a"], "model": "reverse", "options": {f"{number}{'x' * 500}": 1 for number in range(100)}}
    answer = client.post("/predict", json=body)
    assert answer.status_code == 422
    assert len(answer.content) < 5000


def test_recordings_as_base64_and_as_files(client, tones) -> None:
    sounds = [wav(frequency=300.0), wav(2300, frequency=900.0)]
    wanted = [answer.text for answer in saccade.load(tones).predict(sounds, beam=2)]
    encoded = [{"base64": base64.b64encode(sound).decode(), "name": "tone.wav"} for sound in sounds]
    found = ask(client, encoded, model="tones", options={"beam": 2}).json()["predictions"]
    assert [each["answer"] for each in found] == wanted
    assert [each["input"] for each in found] == ["tone.wav", "tone.wav"]
    unnamed = [{"base64": each["base64"]} for each in encoded]
    found = ask(client, unnamed, model="tones", options={"beam": 2}).json()["predictions"]
    assert [each["input"] for each in found] == ["recording 1", "recording 2"]
    files = [("files", ("/etc/passwd", sound)) for sound in sounds]  # a name, which is never opened
    form = {"model": "tones", "options": '{"beam": 2}', "attention": "true"}
    found = client.post("/predict/files", files=files, data=form).json()["predictions"]
    assert [each["answer"] for each in found] == wanted
    assert found[0]["nbest"][0]["weights"]
    assert found[0]["input"] == "/etc/passwd"


@pytest.mark.parametrize(
    ("form", "content", "place"),
    [
        ({"model": "tones"}, b"no sound", "files[1]: the source"),
        ({"model": "tones"}, b"", "files[1]: the source"),
        ({"model": "tones"}, wav()[:60], "files[1]: the source"),
        ({"model": "tones", "options": "[]"}, wav(), "options: must be a JSON object"),
        ({"model": "tones", "options": "[" * 10_000}, wav(), "options: must be a JSON object"),
        ({"model": "tones", "options": '{"beam": 1e999}'}, wav(), "options: beam"),
        ({"model": "tones", "attention": "perhaps"}, wav(), "attention"),
        ({"model": "reverse"}, b"abc", "files: the model reverse cannot answer from files"),
        ({}, wav(), "model: choose from"),
    ],
)
def test_bad_files_name_the_field(client, form, content, place) -> None:
    files = [("files", ("a.wav", wav())), ("files", ("b.wav", content))]
    answer = client.post("/predict/files", files=files, data=form)
    assert answer.status_code == 422, answer.text
    assert place in answer.text


def test_one_input_is_named_as_one(client) -> None:
    for path in ("/stream", "/explain"):
        answer = client.post(path, json={"input": {"a": 1}, "model": "reverse"})
        assert answer.json()["detail"].startswith("input: the source is not text")


def test_reading_ends_with_the_deadline(films) -> None:
    client = TestClient(make_app({"films": films}, settings=Settings(deadline=0.5)), LOCAL)  # without workers
    version, read = client.app.state.models["films"].version, []

    def slow(inputs, start):
        time.sleep(0.2)
        read.append(start)
        return [{"text": inputs[0]}]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(version, "read", slow)
        before = time.monotonic()
        answer = client.post("/predict", json={"inputs": ["good " * 1000] * 50})
        assert (answer.status_code, answer.json()["detail"]) == (503, "The inputs could not be read in time.")
        assert time.monotonic() - before < 5
        version.readers.shutdown()  # waits for the thread, which has stopped, too
    assert 1 <= len(read) <= 4


def test_a_seed_gives_the_same_draws_in_any_company(client, reverse) -> None:
    options = {"sample": True, "seed": 5, "temperature": 3.0}
    wanted = [saccade.load(reverse).predict([text], **options)[0].text for text in ("abc", "dada", "cab")]
    found = ask(client, ["abc", "dada", "cab"], options=options).json()["predictions"]
    assert [each["answer"] for each in found] == wanted


def test_alignments_come_if_asked_for(client) -> None:
    (found,) = ask(client, "abc", options={"alignments": True}).json()["predictions"]
    assert "word_alignment" in found["nbest"][0]


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
    assert [each["text"] for each in data[:-1]] == [wanted.text[:end] for end in range(1, len(data))]
    for each, row in zip(data[:-1], wanted.weights.tolist(), strict=False):
        assert each["weights"] == pytest.approx(row, abs=1e-3)


def test_a_stream_honours_its_options_or_refuses_them(client, reverse) -> None:
    def streamed(**options):
        return client.post("/stream", json={"input": "dada", "model": "reverse", "options": options})

    drawn = {"sample": True, "seed": 7, "max_length": 3}
    last = json.loads(streamed(**drawn).text.strip().rpartition("data: ")[2])
    assert last["answer"] == saccade.load(reverse).predict(["dada"], **drawn)[0].text
    for options, name in (({"beam": 5}, "beam"), ({"sample": True, "nbest": 2}, "nbest"), ({"beem": 1}, "beem")):
        refused = streamed(**options)
        assert refused.status_code == 422
        assert name in refused.text
    assert streamed(beam=1, prefix="a").status_code == 200


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
    assert client.get("/ready").json() == {"ready": True, "workers": {"reverse": 1, "films": 1, "tones": 1}}
    about = client.get("/info").json()["models"]
    assert about["reverse"]["options"]["beam"]["description"].startswith("the number of hypotheses")
    assert about["films"]["inputs"] == {"text": {"field": "text", "files": [], "optional": False}}
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


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "List should have at least 1 item after validation, not 0"),
        (["a"] * 20, "List should have at most 19 items after validation, not 20"),
        (3, "Send a text or an object for one input, or a list with one for each answer."),
    ],
)
def test_inputs_of_the_wrong_form_get_one_message(client, inputs, message) -> None:
    (detail,) = ask(client, inputs).json()["detail"]
    assert (detail["loc"], detail["msg"]) == (["body", "inputs"], message)


def test_requests_have_ids(client) -> None:
    assert client.get("/health", headers={"x-request-id": "mine-7"}).headers["x-request-id"] == "mine-7"
    assert client.get("/health", headers={"x-request-id": "a b\tc"}).headers["x-request-id"] != "a b\tc"


def test_inputs_stay_out_of_the_log(client, caplog) -> None:
    caplog.set_level("INFO", "saccade.serving")
    ask(client, "abcabc")
    record = next(record for record in caplog.records if record.getMessage() == "request")
    assert (record.path, record.status, record.inputs, record.model) == ("/predict", 200, 1, "reverse")
    assert "abcabc" not in str(vars(record))


def test_a_killed_worker_is_replaced_and_nothing_is_lost(client, caplog) -> None:
    caplog.set_level("INFO", "saccade.serving")
    version = client.app.state.models["films"].version
    (process,) = version.processes
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(ask, client, "good film" * 900, model="films") for _ in range(9)]
        os.kill(process.pid, signal.SIGKILL)
    assert {each.result().status_code for each in asked} <= {200, 503}
    (process,) = replaced(version, process)
    os.kill(process.pid, signal.SIGKILL)  # now it has nothing to do
    replaced(version, process)
    assert ask(client, "good film", model="films").status_code == 200
    problems = [record.problem for record in caplog.records if record.getMessage() == "worker ended"]
    assert problems[-1] == "It ended while it had nothing to do."
    assert 'saccade_worker_restarts_total{model="films"} 2.0' in client.get("/metrics").text


def replaced(version, process):
    """The workers once this one is no longer among them."""
    for _ in range(600):
        if version.processes and process not in version.processes:
            return version.processes
        time.sleep(0.1)
    raise AssertionError("The worker was not replaced.")


def test_a_mistake_of_ours_says_where_without_the_input(client, caplog) -> None:
    hosted = client.app.state.models["reverse"]
    caplog.set_level("INFO", "saccade.serving")
    version = hosted.version
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(version, "read", lambda inputs, start: [{"nothing": inputs[0]}])
        answer = ask(client, "secretsecret")
    assert answer.status_code == 500
    assert answer.json()["detail"] == "Internal server error."
    (record,) = [record for record in caplog.records if record.getMessage() == "mistake"]
    assert record.request == answer.headers["x-request-id"] == answer.json()["request"]
    assert "KeyError" in record.problem
    assert "secretsecret" not in str(vars(record))


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
    client = TestClient(app, LOCAL)  # no worker takes anything: what is accepted waits until its deadline
    late = client.post("/predict", json={"inputs": ["good film"]})
    assert late.status_code == 503


def test_a_new_version_is_taken_over_and_a_damaged_one_refused(films, reverse, tmp_path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(films, folder)
    with TestClient(make_app({"run": folder}), LOCAL) as client:
        hosted = client.app.state.models["run"]
        before = hosted.version
        weights = folder / "model.safetensors"
        whole = weights.read_bytes()
        weights.write_bytes(whole[:-7])
        assert client.portal.call(hosted.reload) is False
        with pytest.raises(OSError, match=f"{folder}/model.safetensors"):
            make_app({"run": folder})  # not that of the copy
        assert hosted.version is before
        assert ask(client, "good film", model="run").status_code == 200
        weights.write_bytes(whole)
        shutil.rmtree(folder)
        shutil.copytree(reverse, folder)  # a model that takes other requests
        assert client.portal.call(hosted.reload) is False
        shutil.rmtree(folder)
        shutil.copytree(films, folder)
        before.users += 1  # a request that is being read by the old version
        assert client.portal.call(hosted.reload) is True
        assert hosted.version is not before
        assert ask(client, "good film", model="run").status_code == 200
        assert before.processes
        assert not before.queue.closed
        client.portal.call(before.release)
        for _ in range(100):
            if not before.processes:
                break
            time.sleep(0.1)
        assert before.queue.closed
        assert not before.processes


def in_a_thread(coroutine):
    """Its result; a browser of other tests may leave a loop running in this thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def test_many_signals_are_one_reload_or_two(films) -> None:
    hosted = Hosted("films", films, settings=Settings(), metrics=Metrics())
    made = []

    def refuse() -> None:
        made.append(time.sleep(0.1))
        raise ValueError("refused")

    hosted._make = refuse

    async def storm() -> list[bool]:
        return await asyncio.gather(*(hosted.reload() for _ in range(20)))

    assert not any(in_a_thread(storm()))
    assert len(made) == 2


def test_a_server_that_ends_leaves_nothing_of_a_version_that_it_was_taking_over(films) -> None:
    async def end_while_reloading() -> tuple[Hosted, bool]:
        hosted = Hosted("films", films, settings=Settings(), metrics=Metrics())
        await hosted.start()
        first, reload = hosted.version.folder, asyncio.create_task(hosted.reload())
        await asyncio.sleep(0)
        await hosted.close()
        return hosted, await reload and not first.exists()

    hosted, taken = in_a_thread(end_while_reloading())
    assert taken
    assert not hosted.version.folder.exists()
    assert not hosted.version.processes


def test_a_stream_that_nobody_hears_is_stopped(reverse) -> None:
    run, heard = saccade.load(reverse), []
    (example,) = run.read(["abcd"])
    options = run.task.options.of({"max_length": 3000, "forbidden": ["a"]})

    async def stop_after_three() -> list[Reply]:
        process = await Process.start(reverse, trust=False)
        try:
            (stopped,) = await process.ask("stream", [(example, options)], lambda event: bool(heard.append(event)))
            (answered,) = await process.ask("predict", [(example, run.task.options.of({}), False)], lambda _: True)
        finally:
            await process.end()
        return [stopped, answered]

    stopped, answered = in_a_thread(stop_after_three())
    assert (stopped.state, answered.state) == ("failed", "done")
    assert json.loads(answered.value)["answer"] == run.predict(["abcd"])[0].text
    assert 1 <= len(heard) < 1500


def test_the_log_is_one_line_of_ascii_for_each_event() -> None:
    given = 'a\n{"event": "fake"}\r\x1b[2J\x9b31m\u2028\x85\ud800ä'
    record = logging.makeLogRecord({"msg": "request", "given": [given]})
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["given"] == [given]


def test_links_to_folders_are_refused(films, tmp_path) -> None:
    shutil.copytree(films, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "task")
    (tmp_path / "run" / "task").symlink_to("/", target_is_directory=True)
    with pytest.raises(ValueError, match="task is a link"):
        make_app({"run": tmp_path / "run"})
    (tmp_path / "now").symlink_to(films, target_is_directory=True)
    assert make_app({"run": tmp_path / "now"}).state.models["run"].task  # the run itself may be one


def test_a_run_that_the_disk_cannot_hold(films, tmp_path) -> None:
    shutil.copytree(films, tmp_path / "run")
    with open(tmp_path / "run" / "model.safetensors", "r+b") as file:
        file.truncate(2**43)  # takes no space here
    with pytest.raises(OSError, match="where workers read a copy"):
        make_app({"run": tmp_path / "run"})


def test_runs_with_classes_of_strangers_are_refused(films, tmp_path) -> None:
    shutil.copytree(films, tmp_path / "run")
    config = (tmp_path / "run" / "config.yaml").read_text()
    (tmp_path / "run" / "config.yaml").write_text(config.replace("class: pooling", "class: os.system"))
    (tmp_path / "run" / "checksums.json").unlink()
    with pytest.raises(ValueError, match=r"os\.system"):
        make_app({"run": tmp_path / "run"})
