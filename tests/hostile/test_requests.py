"""Hostile requests: each gives an answer or an error that says what is wrong, and never a traceback."""

import base64
import json
import random
from functools import partial

import numpy as np
import pytest

pytest.importorskip("fastapi_offline", reason="needs the extra serve")

from fastapi.testclient import TestClient

import saccade
from saccade.data.pictures import as_png
from saccade.models import RNNSearch
from saccade.serving.app import make_app
from saccade.serving.settings import Settings
from tests.hostile.counting import SECONDS
from tests.serving.conftest import wav

SOUND = wav(900)
PICTURE = as_png(np.arange(19 * 23 * 3, dtype=np.uint8).reshape(19, 23, 3))
FILES = {"sounds": SOUND, "pictures": PICTURE}
ALLOWED = {200, 400, 404, 405, 413, 415, 422, 429, 503}
PATHS = ("/predict", "/stream", "/explain", "/predict/files", "/info", "/", "/ready", "/docs", "/nowhere", "/../etc")
HUGE = "a" * 60_000
STRANGE = ["", "\0", HUGE, "\ud800", "<script>", "\x1b[2J", "../../etc/passwd", "🦋" * 50, "NaN", "ba " * 700]
OPTIONS = ("beam", "nbest", "length_penalty", "max_length", "sample", "top_p", "prefix", "forced", "forbidden", "seed")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "words"
    pairs = [(word, word[::-1]) for word in ("ba", "su", "basu", "ababa", "sus", "ubas")]
    saccade.train(
        task={"source": {"class": "text", "tokeniser": "char"}},
        model=partial(RNNSearch, embedding_dim=5, hidden_dim=7),
        data={"train": pairs, "held_out": 0.0},
        trainer={"max_steps": 2},
        output=folder,
    )
    sounds = tmp_path_factory.mktemp("runs") / "sounds"
    saccade.train(
        task={"source": {"class": "audio", "mels": 5}, "target": {"class": "text", "tokeniser": "char"}},
        model=partial(RNNSearch, embedding_dim=5, hidden_dim=7, source_stride=3),
        data={"train": [(SOUND, "a"), (SOUND, "b")], "held_out": 0.0},
        trainer={"max_steps": 2},
        output=sounds,
    )
    settings = Settings(deadline=4.0, max_body=50_000, max_inputs=7)
    pictures = tmp_path_factory.mktemp("runs") / "pictures"
    saccade.train(
        task={"class": "classification", "inputs": {"picture": {"class": "image", "size": 16, "patch": 4}}},
        model={"class": "pooling", "encoder": "patches", "hidden_dim": 8},
        data={"train": [(PICTURE, "a"), (PICTURE, "b")], "held_out": 0.0},
        trainer={"max_steps": 2},
        output=pictures,
    )
    app = make_app({"words": folder, "sounds": sounds, "pictures": pictures}, settings=settings)
    with TestClient(app, "http://localhost", raise_server_exceptions=True) as client:
        yield client


def value(draw: random.Random, depth: int = 0) -> object:
    """Any JSON value."""
    simple = [None, True, 0, -1, 3, 2**63, 1e308, 0.5, float("nan"), "ba", *STRANGE]
    kind = draw.randrange(8) if depth < 3 else 7
    if kind == 0:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind == 1:
        return {draw.choice(["source", "base64", "class", "a", ""]): value(draw, depth + 1) for _ in range(2)}
    return draw.choice(simple)


def damaged(draw: random.Random, content: bytes) -> bytes:
    """A file that is cut off or has other bytes here and there, or is none."""
    if draw.random() < 0.2:
        picture = b"\x89PNG\r\n\x1a\n" + draw.randbytes(99)
        return draw.choice([b"", b"RIFF", picture, draw.randbytes(500), HUGE.encode()])
    changed = bytearray(content)
    for _ in range(draw.randrange(5)):
        changed[draw.randrange(64)] = draw.randrange(256)  # most mistakes are in the header
    return bytes(changed[: draw.choice([draw.randrange(len(changed)), len(changed), len(changed)])])


def form(draw: random.Random) -> bytes:
    """A form with files, or nearly one."""
    content = draw.choice([SOUND, PICTURE])
    parts = [b'name="files"; filename="a.wav"\r\n\r\n' + damaged(draw, content) for _ in range(draw.randrange(4))]
    for name in ("model", "options", "attention", "x"):
        if draw.random() < 0.5:
            given = draw.choice(
                [b"sounds", b"pictures", b"words", b"{}", b'{"beam": 2}', b"[" * 9000, b"\xff", b"true", b""]
            )
            parts.append(f'name="{name}"\r\n\r\n'.encode() + given)
    whole = b"".join(b"--x\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts) + b"--x--\r\n"
    return whole[: draw.randrange(len(whole))] if draw.random() < 0.1 else whole


def body(draw: random.Random) -> bytes:
    """A request that is nearly right, or bytes that are none."""
    made: dict[str, object] = {"inputs": draw.choice([["ba"], "su", ["ba", "su"]]), "model": "words"}
    if draw.random() < 0.5:
        made = {"input": "ba", "model": "words"}
    if draw.random() < 0.2:
        model = draw.choice(list(FILES))
        file = {"base64": base64.b64encode(damaged(draw, FILES[model])).decode()}
        made = {"inputs": [file], "model": model} if draw.random() < 0.5 else {"input": file, "model": model}
    if draw.random() < 0.6:
        made["options"] = {draw.choice(OPTIONS): value(draw) for _ in range(draw.randrange(3))}
    for _ in range(draw.randrange(3)):
        made[draw.choice(["inputs", "input", "model", "attention", "format", "options", "x"])] = value(draw)
    content = json.dumps(made).encode("utf-8", "surrogatepass")
    damage = draw.random()
    if damage < 0.1:
        return content[: draw.randrange(len(content))]
    if damage < 0.2:
        place = draw.randrange(len(content))
        return content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :]
    if damage < 0.25:
        return b"[" * draw.choice([10, 40_000]) + content
    return content


def test_fuzzed_requests(client, cases) -> None:
    draw, tried = random.Random(7), cases("requests", wanted=10_000)
    while tried.more():
        path, content = draw.choice([*PATHS[:4] * 5, *PATHS]), body(draw)
        kind = draw.choice(["application/json"] * 8 + ["text/plain", "multipart/form-data; boundary=x", ""])
        if path == "/predict/files" and draw.random() < 0.8:
            content, kind = form(draw), "multipart/form-data; boundary=x"
        method = "POST" if draw.random() < 0.9 else draw.choice(["GET", "PUT", "DELETE", "OPTIONS"])
        with tried.case((method, path, content[:300])):
            answer = client.request(method, path, content=content, headers={"content-type": kind} if kind else {})
        assert answer.status_code in ALLOWED, (method, path, content[:300], answer.text[:300])
        assert "Traceback" not in answer.text, (path, content[:300])
        if answer.status_code in (400, 413, 422, 503):
            assert answer.json()["detail"], (path, content[:300])
        tried.outcomes[str(answer.status_code)] += 1
    assert tried.outcomes["422"] > 0
    assert tried.outcomes["200"] > 0


@pytest.mark.skipif(not SECONDS, reason="make fuzz runs it")
def test_requests_that_the_schema_allows(client, cases) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
    from hypothesis import HealthCheck, given, settings

    schema = schemathesis.openapi.from_dict(client.app.openapi())
    outcomes = cases("requests that the schema allows", wanted=1000).outcomes
    for operation in schema.get_all_operations():
        strategy = operation.ok().as_strategy()

        @given(case=strategy)
        @settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
        def check(case) -> None:
            answer = client.request(**_as_arguments(case))
            assert answer.status_code in ALLOWED, answer.text[:300]
            assert "Traceback" not in answer.text
            outcomes[str(answer.status_code)] += 1

        check()
    assert sum(outcomes.values()) > 1000
    assert outcomes["422"]


def _as_arguments(case) -> dict[str, object]:
    kwargs = case.as_transport_kwargs(base_url="http://localhost")
    return {
        name: kwargs[name]
        for name in ("method", "url", "params", "json", "headers", "content", "data", "files")
        if kwargs.get(name) is not None
    }
