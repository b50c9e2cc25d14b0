import pickle
import random

import pyarrow as pa
import pytest

from saccade.data import storage
from saccade.data.errors import DataError
from saccade.data.storage import Stored, store


def examples(count, seed=0):
    draw = random.Random(seed)
    for _ in range(count):
        yield {
            "source": [draw.randrange(100000) for _ in range(draw.randrange(7))],
            "features": [[draw.randrange(5) / 4, 1.0]] * draw.randrange(1, 3),
            "text": "日本" * draw.randrange(3),
            "label": draw.randrange(3),
            "times": [draw.randrange(9) / 8 for _ in range(draw.randrange(4))],
            "gaps": draw.choice([None, [1, None], []]),
        }


def test_what_was_stored_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "ROWS", 11)
    wanted = list(examples(101))
    stored = store(examples(101), tmp_path / "deep" / "a.arrow", size=lambda example: len(example["source"]))
    assert len(stored) == 101
    assert list(stored) == wanted
    for index in (0, 10, 11, 57, 100, -1, -101):
        assert stored[index] == wanted[index]
    assert stored[5:30:7] == wanted[5:30:7]
    assert stored.sizes().tolist() == [len(example["source"]) for example in wanted]
    for index in (101, -102):
        with pytest.raises(IndexError, match="101 examples"):
            stored[index]
    assert list(Stored(tmp_path / "deep" / "a.arrow")) == wanted
    assert pickle.loads(pickle.dumps(stored))[57] == wanted[57]


def test_sizes_with_sides_and_of_nothing(tmp_path):
    stored = store([{"a": [1]}, {"a": [1, 2]}], tmp_path / "a", size=lambda example: (len(example["a"]), 7))
    assert stored.sizes().tolist() == [[1, 7], [2, 7]]
    nothing = store([], tmp_path / "b", size=len)
    assert len(nothing) == 0
    assert list(nothing) == []
    assert nothing.sizes().tolist() == []


def test_ids_take_four_bytes_and_the_first_ones_may_be_empty(tmp_path):
    store([{"a": []}, {"a": []}], tmp_path / "empty.arrow")
    stored = store([{"a": [1]}], tmp_path / "a.arrow")
    assert stored._batches[0].schema.field("a").type == pa.list_(pa.int32())
    assert Stored(tmp_path / "empty.arrow")[1] == {"a": []}


def test_equal_fingerprints_are_not_written_again(tmp_path):
    path = tmp_path / "a.arrow"
    store(examples(7), path, fingerprint="one")

    def never():
        raise AssertionError("read the examples")
        yield

    assert list(store(never(), path, fingerprint="one")) == list(examples(7))
    assert list(store(examples(5), path, fingerprint="two")) == list(examples(5))
    assert list(store(examples(3), path)) == list(examples(3))
    assert list(store(examples(4), path)) == list(examples(4))  # no fingerprint: always written


def test_an_interrupted_store_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.arrow"
    store(examples(7), path, fingerprint="one")

    def torn():
        yield from examples(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store(torn(), path, fingerprint="two")
    assert list(Stored(path)) == list(examples(7))
    assert [file.name for file in tmp_path.iterdir()] == ["a.arrow"]


def test_torn_files_are_noticed_and_made_again(tmp_path):
    path = tmp_path / "a.arrow"
    store(examples(70), path, fingerprint="one")
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"a\.arrow is not a whole Arrow file"):
        Stored(path)
    assert list(store(examples(70), path, fingerprint="one")) == list(examples(70))
