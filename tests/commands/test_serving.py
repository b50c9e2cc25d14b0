"""The command `serve`: what it refuses before it starts, and how it ends."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from saccade.commands.serving import named_runs, serve
from tests.ports import free_port

pytest.importorskip("fastapi_offline", reason="needs the extra serve")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name the folder of a run"),
        (["nowhere"], "There is no folder nowhere"),
        (["RUN", "--host", "0.0.0.0"], "can be reached by others: add --token"),
        (["RUN", "--host", "saccade.example"], "can be reached by others: add --token"),
        (["RUN", "--token"], "SACCADE_TOKEN"),
        (["RUN", "--workers", "0"], "workers"),
        (["RUN", "--port", "70000"], "--port must be from 0 to 65535"),
        (["RUN", "--deadline", "nan"], "deadline must be above 0"),
        (["a=RUN", "a=RUN"], "Two models are called 'a'"),
        (["a b=RUN"], "the name of a model may only contain letters"),
    ],
)
def test_bad_usage_is_named(run, call, monkeypatch, arguments, message) -> None:
    monkeypatch.delenv("SACCADE_TOKEN", raising=False)
    code, _, err = call("serve", *(argument.replace("RUN", run) for argument in arguments))
    assert code == 2
    assert message in err


@pytest.mark.parametrize("engine", ["embedded", "ray"])
def test_a_port_in_use_is_refused_before_models_are_loaded(call, monkeypatch, engine) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = call("serve", "nowhere", "--port", str(port), "--engine", engine)
    assert code == 2
    assert f"Port {port} of 127.0.0.1 is in use: choose another one, as --port {port + 1}." in err


def test_a_worker_that_cannot_start_ends_the_server_with_its_reason(run, monkeypatch) -> None:
    program = SimpleNamespace(executable=shutil.which("false"), path=[])  # in place of Python
    monkeypatch.setattr("saccade.serving.process.sys", program)
    monkeypatch.setattr("saccade.serving.logs.log_to_stderr", lambda: None)
    with ThreadPoolExecutor(1) as thread, pytest.raises(SystemExit) as left:
        thread.submit(serve, [run], port=free_port()).result()
    assert left.value.code == "saccade serve: A worker ended with code 1 while loading the model."


def test_names() -> None:
    assert {name: str(path) for name, path in named_runs(["runs/de", "x=runs/fr"]).items()} == {
        "de": "runs/de",
        "x": "runs/fr",
    }


def get(url: str, body: dict | None = None, token: str = "") -> tuple[int, dict]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_from_start_to_end(run, tmp_path) -> None:
    port = free_port()
    token = "a secret of many letters"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SACCADE_TOKEN": token}
    command = [sys.executable, "-m", "saccade", "serve", f"words={run}", "--port", str(port), "--token"]
    with (
        open(tmp_path / "log", "w") as log,
        subprocess.Popen(command, env=environment, stderr=log, stdout=log) as server,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(600):
                try:
                    if get(f"{url}/ready")[0] == 200:
                        break
                except OSError:
                    assert server.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.1)
            assert get(f"{url}/predict", {"inputs": ["ba"]})[0] == 401
            status, found = get(f"{url}/predict", {"inputs": ["ba"]}, token)
            assert (status, found["predictions"][0]["input"]) == (200, "ba")
            server.send_signal(signal.SIGTERM)
            assert server.wait(30) in (0, -signal.SIGTERM)
        finally:
            server.kill()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    requests = {line["path"]: line["status"] for line in lines if line["event"] == "request"}
    assert requests == {"/ready": 200, "other": 401, "/predict": 200}
    assert token not in (tmp_path / "log").read_text()
