"""JSON of strangers: bounded before it is parsed, and checked key by key."""

import json
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.artifacts import ArtifactError, JsonObject, nesting, parse_json, read_json

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN, st.booleans())
def test_ordinary_json_is_read_as_python_reads_it(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a pair
        with pytest.raises(ArtifactError, match="UTF-8"):
            parse_json(data, "x", most_depth=100)
    else:
        assert parse_json(data, "x", most_depth=100) == json.loads(text)


@given(PLAIN)
def test_the_depth_is_that_of_the_value(value):
    def depth(found):
        if isinstance(found, dict):
            return 1 + max(map(depth, found.values()), default=0)
        return 1 + max(map(depth, found), default=0) if isinstance(found, list) else 0

    assert nesting(json.dumps(value).encode()) == depth(value)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "line 1 is not valid JSON"),
        (b'{"a":\n 1', "line 2 is not valid JSON"),
        (b"\xff", "not valid UTF-8"),
        (b'"\\ud800"', "not valid UTF-8"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
        (b"[" * 10**6, "nested more than 32 levels"),
        (b'{"a":' * 10**5, "nested more than 32 levels"),
        (b"[" * 33 + b"]" * 33, "nested more than 32 levels"),
        (b"9" * 5000, "a whole number of 5000 digits"),
        (b"-" + b"9" * 5000, "a whole number of 5001 digits"),
        (b"9" * 22, "a whole number of 22 digits"),
        (b'{"a": {"b": 1, "b": 2}}', "the key 'b' appears twice"),
        (b"[" + b"1," * 4_000_001 + b"1]", "more than 4,000,000 values"),
    ],
    ids=range(13),
)
def test_what_is_refused(data, complaint):
    with pytest.raises(ArtifactError, match=rf"^x is .*{complaint}"):
        parse_json(data, "x")


def test_a_text_that_never_closes_takes_no_time():
    began = time.process_time()
    with pytest.raises(ArtifactError, match="not valid JSON"):
        parse_json(b"[" * 20 + b'"' + b'\\"' * 10**6 + b"[" * 20, "x", most_depth=32)
    assert time.process_time() - began < 2


def test_brackets_in_texts_are_not_nesting():
    assert parse_json(json.dumps(["[" * 100, '\\"[[[['] * 40).encode(), "x") == ["[" * 100, '\\"[[[['] * 40


def test_files_are_bounded_and_ordinary(tmp_path):
    (tmp_path / "x.json").write_text("[1, 2, 3]")
    assert read_json(tmp_path / "x.json", most_bytes=9) == [1, 2, 3]
    with pytest.raises(ArtifactError, match=r"x.json is too large: more than 8 bytes"):
        read_json(tmp_path / "x.json", most_bytes=8)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(os.devnull)
    for name in ("pipe", "link", "."):
        with pytest.raises(ArtifactError, match="is not an ordinary file"):
            read_json(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json")


def test_values_are_checked_and_named():
    found = JsonObject({"a": {"n": 3, "x": 0.5, "t": "s", "on": True, "many": [1, 2], "none": None}}, "f.json")
    inner = found.inner("a")
    assert (inner.take("n", int), inner.take("n", float), inner.take("none", int, type(None))) == (3, 3, None)
    assert inner.take_list("many", int, length=2) == [1, 2]
    for take, complaint in [
        (lambda: inner.take("m", int), "a.m is missing"),
        (lambda: inner.take("x", int), "a.x is 0.5, not a whole number"),
        (lambda: inner.take("on", int), "a.on is true, not a whole number"),
        (lambda: inner.take("t", float, type(None)), 'a.t is "s", not a number or null'),
        (lambda: inner.take("n", int, least=4), "a.n is 3, not 4 or more"),
        (lambda: inner.take("n", int, least=0, most=2), "a.n is 3, not between 0 and 2"),
        (lambda: inner.take("n", int, most=2), "a.n is 3, not 2 or less"),
        (lambda: inner.take_list("many", str), r"a.many\[0\] is 1, not a string"),
        (lambda: inner.take_list("many", int, length=3), "a.many has 2 values, not 3"),
        (lambda: inner.inner("many"), "a.many is a list, not an object"),
        (lambda: inner.only(["n"]), "a.many is not a key that belongs there"),
        (lambda: JsonObject([], "f.json"), "its content is a list, not an object"),
    ]:
        with pytest.raises(ArtifactError, match=f"^f.json is damaged: {complaint}"):
            take()


def test_what_is_not_a_number_is_within_no_bounds():
    with pytest.raises(ArtifactError, match="is NaN"):
        JsonObject({"x": float("nan")}, "f").take("x", float, least=0)
