import numpy as np
import pytest

from saccade.data import chunks, spool
from saccade.data.spool import Spool

ROWS = [
    {"x": value, "n": n} for n, value in enumerate([1, 2.5, "日本", b"\xff", [1, "a", [None]], {"k": [1]}, 10**30] * 99)
]


@pytest.mark.parametrize("in_memory", [1 << 20, 100])
def test_values_come_back_as_often_as_needed(tmp_path, monkeypatch, in_memory):
    monkeypatch.setattr(spool, "IN_MEMORY", in_memory)
    reads = []

    def examples():
        reads.append(1)
        yield from ROWS

    with Spool(examples(), tmp_path) as spooled:
        assert len(spooled) == len(ROWS)
        assert list(spooled) == list(spooled) == ROWS
        assert list(zip(spooled, spooled, strict=True)) == [(row, row) for row in ROWS]  # taking turns
        assert reads == [1]
        assert not list(tmp_path.iterdir())  # the file has no name
    with pytest.raises(ValueError, match="closed"):
        list(spooled)


def test_arrays(tmp_path):
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    [found] = Spool([{"x": array}], tmp_path)
    assert found["x"].dtype == array.dtype
    assert np.array_equal(found["x"], array)


def test_an_error_while_reading_passes(tmp_path):
    def torn():
        yield from ROWS[:3]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Spool(torn(), tmp_path)
    assert list(Spool([], tmp_path)) == []


def test_chunks_end_early_where_examples_are_large(monkeypatch):
    monkeypatch.setattr(chunks, "HEAVY", 1000)
    examples = [{"x": np.zeros(100)}, {"x": "a" * 2000}, {"x": 1}, {"x": [[1] * 100, [2] * 30]}, {"x": b""}]
    found = list(chunks.chunks(examples, 3))
    assert [len(chunk) for chunk in found] == [2, 2, 1]
    assert [len(chunk) for chunk in chunks.chunks([{"x": 1}] * 7, 3)] == [3, 3, 1]
