"""A server as users start it: the documentation's clients, the live page in a browser, signals."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

import saccade
from tests.docs.code_blocks import ROOT, execute
from tests.ports import free_port
from tests.serving.conftest import wav

PAGE = (ROOT / "docs" / "deploy.md").read_text()


@contextlib.contextmanager
def started(log: Path, *arguments: str):
    """The process and the address of a server that is ready."""
    port = free_port()
    command = [sys.executable, "-m", "saccade", "serve", *arguments, "--port", str(port)]
    with open(log, "w") as file, subprocess.Popen(command, stderr=file, stdout=file) as server:
        try:
            for _ in range(900):
                with contextlib.suppress(OSError), urllib.request.urlopen(f"http://localhost:{port}/ready") as answer:
                    assert answer.status == 200
                    break
                assert server.poll() is None, log.read_text()
                time.sleep(0.1)
            yield server, f"localhost:{port}"
        finally:
            server.kill()


@pytest.fixture(scope="module")
def run(reverse, tmp_path_factory) -> Path:
    """A copy that tests may replace."""
    return shutil.copytree(reverse, tmp_path_factory.mktemp("live") / "run")


@pytest.fixture(scope="module")
def served(run, tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "log"
    with started(log, str(run)) as (server, address):
        yield server, address, log


def curls(path: str, address: str, folder: Path) -> bytes:
    """What the documentation's command for a path prints."""
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    blocks = re.findall(r"^```sh\n(curl.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    (block,) = [block for block in blocks if f"localhost:8000{path} " in block]
    command = block.replace("localhost:8000", address)
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, check=True, timeout=60).stdout


def test_the_clients_of_the_documentation(served, reverse, tmp_path) -> None:
    _, address, _ = served
    wanted = saccade.load(reverse).predict(["le 3 avril 1998", "7/4/76"], beam=5)
    client = execute("docs/deploy.md")["predict"]
    found = client("le 3 avril 1998", "7/4/76", url=f"http://{address}", beam=5)
    assert [each["answer"] for each in found] == [answer.text for answer in wanted]
    assert json.loads(curls("/predict", address, tmp_path))["predictions"] == found
    events = curls("/stream", address, tmp_path)
    assert events.rpartition(b"event: ")[2].startswith(b"answer\ndata: {")


def watched(chromium, address: str):
    """A tab, and what went wrong in it: errors, dialogs, requests to others."""
    trouble: list[str] = []
    page = chromium.new_page()
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: (trouble.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    own = (f"http://{address}/", "about:", "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(own) else trouble.append(request.url))
    return page, trouble


def test_the_live_page(served, chromium, reverse) -> None:
    _, address, _ = served
    page, trouble = watched(chromium, address)
    page.goto(f"http://{address}/")
    for text in ("dadacab", "<img src=x onerror=alert(1)>"):
        (wanted,) = saccade.load(reverse).predict([text], beam=1)
        page.fill("textarea", text)
        page.click("#ask")
        page.locator("#state", has_text=" ms").wait_for()
        assert page.inner_text("#answer").strip() == wanted.text.strip()
        assert page.locator("#weights tbody tr").count() == len(wanted.attention.weights)
        assert page.locator("#weights img").count() == 0
        warning = page.locator("#warnings")
        assert warning.is_visible() == ("<" in text)
        assert ("unknown: '<', 'i'" in warning.inner_text()) == ("<" in text)
    page.click("#explain")
    page.frame_locator("#page").locator("[data-ready=true]").first.wait_for(timeout=20_000)
    page.goto(f"http://{address}/docs")
    page.wait_for_selector("text=Answer one input, token by token")
    page.close()
    assert not trouble


@pytest.mark.slow
def test_the_live_page_says_where_words_were_copied_from(chromium, tmp_path) -> None:
    task = {"source": {"class": "text", "tokeniser": "word"}, "joint": True, "copying": True}
    model = {"class": "copynet", "embedding_dim": 7, "hidden_dim": 11}
    data = {"train": [("who saw Zora ?", "Zora was seen"), ("who saw Milo ?", "Milo was seen")], "held_out": 0.0}
    run = saccade.train(
        task=task, model=model, data=data, trainer={"max_steps": 60, "learning_rate": 1e-2}, output=tmp_path / "run"
    )
    (wanted,) = run.predict(["who saw Zarathustra ?"], beam=1)
    assert wanted.text == "Zarathustra was seen"
    with started(tmp_path / "log", str(tmp_path / "run")) as (_, address):
        page, trouble = watched(chromium, address)
        page.goto(f"http://{address}/")
        page.fill("textarea", "who saw Zarathustra ?")
        page.click("#ask")
        page.locator("#state", has_text=" ms").wait_for()
        said = page.locator("#weights th.origin").all_inner_texts()
        page.close()
    assert said[:3] == ["copied from word 3 (Zarathustra)", "", ""]
    assert not trouble


@pytest.mark.slow
def test_files_by_curl_and_dropped_on_the_page(tones, chromium, tmp_path) -> None:
    for name in ("one.wav", "two.wav"):
        (tmp_path / name).write_bytes(wav())
    wanted = [saccade.load(tones).predict([wav()], beam=beam)[0].text for beam in (5, 1)]
    with started(tmp_path / "log", str(tones)) as (_, address):
        found = json.loads(curls("/predict/files", address, tmp_path))["predictions"]
        assert [each["answer"] for each in found] == [wanted[0]] * 2
        page, trouble = watched(chromium, address)
        page.goto(f"http://{address}/")
        page.wait_for_selector("input[type=file]")
        page.evaluate(
            """content => {
                const transfer = new DataTransfer();
                transfer.items.add(new File([Uint8Array.from(content)], "tone.wav"));
                document.querySelector(".drop").dispatchEvent(new DragEvent("drop", {dataTransfer: transfer}));
            }""",
            list(wav()),
        )
        page.locator("#state", has_text=" ms").wait_for()
        assert page.inner_text("#answer").strip() == wanted[1].strip()
        assert page.locator("#weights tbody tr").count()
        page.close()
        assert not trouble


@pytest.mark.slow
def test_inputs_that_may_be_missing_need_not_be_filled_in(chromium, tmp_path) -> None:
    rows = [{"user": f"u{n % 3}", "item": f"i{n % 4}", "rating": n % 5, "text": "good"} for n in range(9)]
    data = {"train": rows, "held_out": 0.0}
    model = {"class": "factorisation", "factors": 2}
    run = saccade.train(
        task={"class": "recommendation"}, model=model, data=data, trainer={"max_steps": 2}, output=tmp_path / "run"
    )
    (wanted,) = run.predict([{"user": "u1"}])
    with started(tmp_path / "log", str(tmp_path / "run")) as (_, address):
        page, trouble = watched(chromium, address)
        page.goto(f"http://{address}/")
        page.fill("textarea[name=user]", "u1")
        page.click("#ask")
        page.locator("#state", has_text=" ms").wait_for()
        assert page.inner_text("#answer").strip() == wanted.value
        page.close()
        assert not trouble


def waiting(address: str) -> bool:
    """Whether inputs wait."""
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        found = re.search(r"saccade_queue_inputs\{.*\} (\S+)", answer.read().decode())
    assert found is not None
    return float(found[1]) > 0


def test_signals(served, run) -> None:
    """SIGHUP refuses a damaged run and takes over a good one; SIGTERM answers what was accepted. Runs last."""
    server, address, log = served
    client = execute("docs/deploy.md")["predict"]

    def waits_for(event: str) -> None:
        for _ in range(600):
            if any(json.loads(line)["event"] == event for line in log.read_text().splitlines()):
                return
            time.sleep(0.1)
        raise AssertionError(log.read_text()[-2000:])

    weights = run / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-5])  # as if it were being written
    server.send_signal(signal.SIGHUP)
    waits_for("new version refused")
    weights.write_bytes(whole)
    server.send_signal(signal.SIGHUP)
    statuses = []

    def ask() -> None:
        statuses.append(len(client(*["xyzzy"] * 50, url=f"http://{address}", beam=30)))

    while not any("new version serves" in line for line in log.read_text().splitlines()):
        ask()
        assert len(statuses) < 1000
    threads = [threading.Thread(target=ask) for _ in range(2)]
    before = len(statuses)
    for thread in threads:
        thread.start()
    seen = 0
    while seen < 2 and any(thread.is_alive() for thread in threads):  # until one waits for the other, not for a moment
        seen = seen + 1 if waiting(address) else 0
        time.sleep(0.01)
    server.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert server.wait(60) in (0, -signal.SIGTERM)
    assert statuses[before:] == [50, 50]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["status"] for line in lines if line["event"] == "request"} == {200}
    assert "xyzzy" not in log.read_text()
    with pytest.raises(OSError, match=r"refused|reset"):
        client("abc", url=f"http://{address}")
    assert not os.path.exists(f"/proc/{server.pid}")
