"""The server on Ray Serve: the same answers."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

import saccade
from tests.ports import free_port

pytest.importorskip("ray", reason='needs pip install "saccade[ray]"')


def ask(port, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_it_answers_as_the_model_does_and_leaves_nothing_behind(reverse, tmp_path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "saccade", "serve", str(reverse), "--engine", "ray", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("RAY_ADDRESS", None)
    with open(tmp_path / "log", "w") as log:
        server = subprocess.Popen([*command, "--max-replicas", "2"], env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 180
        while True:
            assert server.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            try:
                if ask(port, "/ready")["ready"]:
                    break
            except OSError:
                time.sleep(0.5)
        words = ["abc", "bad", "dada", "cab"] * 4
        expected = [answer.text for answer in saccade.load(reverse).predict(words, max_length=5)]
        with ThreadPoolExecutor(4) as threads:
            bodies = [{"inputs": [word], "options": {"max_length": 5}} for word in words]
            found = list(threads.map(lambda body: ask(port, "/predict", body), bodies))
        assert [one["predictions"][0]["answer"] for one in found] == expected
        assert list(ask(port, "/info")["models"]) == ["reverse"]
        with pytest.raises(urllib.error.HTTPError, match="422"):
            ask(port, "/predict", {"inputs": 7})
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=120)
    assert server.returncode == 0, (tmp_path / "log").read_text()
