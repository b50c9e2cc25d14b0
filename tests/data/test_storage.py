import pickle
import random
import tracemalloc

import numpy as np
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
    with pytest.raises(DataError, match=r"a\.arrow is not a complete Arrow file"):
        Stored(path)
    assert list(store(examples(70), path, fingerprint="one")) == list(examples(70))


ARRAYS = [
    {"mel": np.arange(12, dtype=np.float32).reshape(4, 3), "ids": np.arange(3, dtype=np.int32), "n": 1},
    {"mel": np.zeros((0, 3), dtype=np.float32), "ids": np.zeros(0, dtype=np.int32), "n": 2},
    {"mel": np.ones((1, 3), dtype=np.float32).T, "ids": np.array([7], dtype=np.int32), "n": 3},
]


def equal(one, other):
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int64", "bool"])
def test_arrays_stay_arrays(tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(storage, "ROWS", 2)
    rows = [{name: value.astype(dtype) if name != "n" else value for name, value in row.items()} for row in ARRAYS]
    rows += [{"mel": None, "ids": np.zeros(2, dtype=dtype), "n": None}]
    stored = store(rows, tmp_path / "a.arrow", size=lambda row: len(row["ids"]))
    assert equal(list(stored), rows)
    assert equal([stored[n] for n in range(4)], rows)
    assert stored.sizes().tolist() == [3, 0, 1, 2]
    stored[0]["ids"][:] = 1  # an example is the caller's own
    assert equal(stored[0], rows[0])


def test_dictionaries_bytes_and_arrays_inside(tmp_path):
    rows = [
        {
            "graph": {"edges": np.arange(2 * n).reshape(2, n), "names": ["a"] * n, "raw": b"\x00" * n},
            "pages": [np.full((n, 2), k, dtype=np.uint8) for k in range(n)],
            "boxes": [{"x": k, "of": [k]} for k in range(n)],
        }
        for n in range(4)
    ] + [{"graph": None, "pages": None, "boxes": None}]
    stored = store(rows, tmp_path / "a.arrow")
    assert equal(list(stored), rows)
    assert equal(stored[3], rows[3])


LATER = [
    (None, 3),
    (None, [1, 2]),
    (None, "text"),
    (None, np.zeros((2, 2))),
    ([], [1]),
    ([None, None], [1]),
    ([[None], None], [[1.5]]),
    ([[]], [[1.5]]),
    ([], [{"a": 1}]),
    ({"a": None, "b": 1}, {"a": [1], "b": None}),
    ([1], [5_000_000_000]),
    (1, 2.5),
    (np.zeros(2, dtype=np.float32), np.ones(2, dtype=np.float32)),
]


@pytest.mark.parametrize(("first", "later"), LATER, ids=range(len(LATER)))
def test_types_may_become_known_later(tmp_path, monkeypatch, first, later):
    monkeypatch.setattr(storage, "ROWS", 2)
    for rows in ([first] * 3 + [later] * 2, [later] * 3 + [first] * 2, [None, first, later, None]):
        wanted = [{"x": value, "n": n} for n, value in enumerate(rows)]
        assert equal(list(store(wanted, tmp_path / "a.arrow")), wanted)
    assert [file.name for file in tmp_path.iterdir()] == ["a.arrow"]


def test_exact_numbers(tmp_path):
    rows = [{"x": [0.1, 2.0**60], "n": [2**40]}, {"x": [], "n": [1]}]
    assert list(store(rows, tmp_path / "a.arrow", exact=True)) == rows
    assert store(rows, tmp_path / "b.arrow")[0]["x"] != rows[0]["x"]


def test_keys_may_come_later(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "ROWS", 1)
    assert list(store([{"a": 1}, {"a": 2, "b": [3]}, {"b": [4]}], tmp_path / "a.arrow")) == [
        {"a": 1, "b": None},
        {"a": 2, "b": [3]},
        {"a": None, "b": [4]},
    ]


@pytest.mark.parametrize("rows", [1, 9])
@pytest.mark.parametrize(
    ("first", "later"),
    [
        (1, "text"),
        ([1], 1),
        ([1], ["a"]),
        ("text", b"bytes"),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, 3),
        (np.zeros(2), [0.0]),
        (1, 2**64),
        ("a", "\ud800"),
        (np.zeros(2), np.array(["a"])),
        ([[1]], [{"a": 1}]),
        ([0.5], [False]),
    ],
    ids=range(12),
)
def test_mixed_types_are_named_with_their_role(tmp_path, monkeypatch, first, later, rows):
    monkeypatch.setattr(storage, "ROWS", rows)
    with pytest.raises(DataError, match=r"Cannot store 'speech(\[\])?':.* same type") as caught:
        store([{"n": 1, "speech": first}, {"n": 2, "speech": later}], tmp_path / "a.arrow")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_large_arrays_do_not_become_lists(tmp_path):
    rows = ({"x": np.full((1000, 250), n, dtype=np.float32)} for n in range(40))  # 40 MB
    tracemalloc.start()
    stored = store(rows, tmp_path / "a.arrow")
    total = sum(float(example["x"][0, 0]) for example in stored)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == sum(range(40))
    assert peak < 150e6  # lists of floats would take a gigabyte
