"""Hostile data files: each gets a clear error of one line, is skipped or is read right, in bounded time and memory."""

import gzip
import io
import json
import random
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.cell import Cell
from saccade.data.errors import BadRow, DataError
from saccade.data.marks import digest
from saccade.data.readers import lines
from saccade.data.recordings import as_wav
from saccade.data.storage import store
from saccade.fields import Audio
from saccade.fields.graph_files import read_graph
from saccade.interpretation.alignments import read_alignments
from tests.data.stand_ins import read
from tests.hostile.counting import SECONDS, bounded

GOOD = "a dog\tein Hund\n"
OBJECT = '{"source": "a", "target": "b"}\n'


def deep(open_, close, levels):
    return OBJECT + '{"source": "a", "target": ' + open_ * levels + close * levels + "}\n" + OBJECT


# A file's name, its content, what the error says, and how many examples are left with `bad_rows: skip` (None: an error
# all the same).
FILES = [
    ("a.tsv", GOOD + "x" * (lines.LONGEST + 1) + "\n" + GOOD, r"a\.tsv, line 2: the line is longer than 16 MiB", 2),
    ("a.csv", f'a,b\n"{"x" * lines.LONGEST}\n",b\nc,d\n', r"a\.csv, line 2: ", 2),
    ("a.csv", "a,b\n" + '"\n' * 3 + "c,d\n", r"a\.csv, line \d: ", 2),
    ("a.csv", 'a,b\nc,"d\n' + "e,f\n" * 30000, r"a\.csv, line 2: a quote is opened and never closed", 30001),
    ("a.csv", '"' * 100_001, r"a\.csv, line 1: ", None),
    ("a.csv", 'a,b\n"c"d,e\n', r"a\.csv, line 2: not a CSV row \(',' expected", 1),
    ("a.jsonl", deep("[", "]", 100_000), r"a\.jsonl, line 2: lists and objects nest deeper than 64", 2),
    ("a.jsonl", deep('{"a":', "1" + "}", 900), r"a\.jsonl, line 2: ", 2),
    ("a.jsonl", deep("[", "", 60), r"a\.jsonl, line 2: not JSON", 2),
    ("a.jsonl", OBJECT + '{"source": "' + '\\"' * 500_000 + "[" * 70 + "\n" + OBJECT, r"line 2: not JSON", 2),
    ("a.jsonl", OBJECT + '["' * 500_000 + "\n" + OBJECT, r"line 2: lists and objects nest deeper than 64", 2),
    (
        "a.jsonl",
        OBJECT + '{"source": ' + "9" * 5000 + ', "target": "b"}\n',
        "line 2: an integer has thousands of dig",
        1,
    ),
    ("a.jsonl", OBJECT + '{"source": ' + "9" * 4000 + ', "target": "b"}\n', "line 2: the source is an integer of", 1),
    ("a.jsonl", OBJECT + '{"source": NaN, "target": "b"}\n', r"line 2: the source is not text but float \(nan\)", 1),
    ("a.jsonl", OBJECT + '{"source": "a\\u0000", "target": "b"}\n', r"line 2: the source contains a NUL", 1),
    ("a.jsonl", OBJECT + '"source target"\n3\nnull\n', r"line 2: a JSON str instead of an object", 1),
    ("a.tsv", GOOD + "a\0b\tc\n", r"a\.tsv, line 2: the source contains a NUL character", 1),
    ("a.tsv", b"\xef\xbb\xbf", r"a\.tsv, line 1: the line is empty", None),
    ("a.tsv", "a\tb\n".encode("utf-16"), r"a\.tsv is UTF-16", None),
    ("a.tsv", "a\tb\n".encode("utf-16-le"), r"line 1: the source contains a NUL character", None),
    ("a.tsv", GOOD.encode() + b"\xe4\tb\n", r"line 2: the source is not UTF-8 .* iconv -f LATIN1 -t UTF-8", 1),
    ("a.tsv", "\n", r"a\.tsv, line 1: the line is empty", None),
    (
        "a.tsv.gz",
        gzip.compress(GOOD.encode() * 99, mtime=0)[:-9],
        r"a\.tsv\.gz is not a complete gzip file .*after line 99",
        None,
    ),
    ("a.tsv.gz", GOOD.encode(), r"a\.tsv\.gz is not a complete gzip file", None),
    ("a.tsv.gz", gzip.compress(GOOD.encode(), mtime=0) + b"rest", r"a\.tsv\.gz is not a complete gzip file", None),
    ("a.jsonl.gz", gzip.compress(b"", mtime=0), r"a\.jsonl\.gz has no rows", None),
    ("a.parquet", b"PAR1" + b"\xff" * 99 + b"PAR1", r"a\.parquet is not a Parquet file, or is damaged", None),
    ("a.parquet", b"PAR1", r"a\.parquet is not a Parquet file, or is damaged", None),
]


@pytest.mark.parametrize(("name", "content", "message", "left"), FILES, ids=range(len(FILES)))
def test_hostile_files(tmp_path, name, content, message, left):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with bounded(name):
        with pytest.raises(DataError, match=message) as caught:
            list(read(path))
        assert "\n" not in str(caught.value)
        if left is None:
            with pytest.raises(DataError):
                list(read(path, bad_rows="skip"))
        else:
            examples = read(path, bad_rows="skip")
            assert len(list(examples)) == left
            assert examples.skipped.count >= 1


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.csv.gz", "a.jsonl.gz", "a.txt.gz"])
def test_gzip_bombs(tmp_path, name):
    member = gzip.compress(b"x" * (1 << 24))
    (tmp_path / name).write_bytes(gzip.compress(b"a\n") + member * 64)  # a line of 1 GB in 1 MB
    roles = "source" if name == "a.txt.gz" else "source target"
    with bounded(name) as used:
        with pytest.raises(BadRow, match=r"line [12]: "):
            list(read(tmp_path / name, roles))
        with pytest.raises(DataError, match="found no line break in 268,435,456 bytes"):
            list(read(tmp_path / name, roles, bad_rows="skip"))
    assert used.megabytes < 200


def test_damaged_parquet_names_the_row(tmp_path):
    path = tmp_path / "a.parquet"
    rows = [f"sentence {n} {random.Random(n).random()}" for n in range(5000)]
    pq.write_table(pa.table({"source": rows, "target": rows}), path, row_group_size=1000, use_dictionary=False)
    data = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    data[start : start + 400] = b"\xff" * 400
    path.write_bytes(data)
    for bad_rows in ("error", "skip"):
        with pytest.raises(DataError, match=r"a\.parquet is damaged after row \d+ \(") as caught:
            list(read(path, bad_rows=bad_rows))
        assert 1700 <= int(str(caught.value).split("after row ")[1].split()[0]) <= 2000
    good = pa.table({"source": ["a", "b"], "target": pa.array([2**62, 0], pa.timestamp("us"))})
    pq.write_table(good, path)
    with pytest.raises(BadRow, match=r"line 1: a value cannot be read"):
        list(read(path))
    with pytest.raises(DataError, match=r"None of the 2 rows"):
        list(read(path, bad_rows="skip"))


def test_parquet_bombs(tmp_path, monkeypatch):
    """A few bytes that become a great many: in one page, and in many rows."""
    path, rows = tmp_path / "a.parquet", 40
    pq.write_table(
        pa.table({"source": ["x" * (1 << 24)], "target": ["b"]}), path, use_dictionary=False, compression="gzip"
    )
    monkeypatch.setattr("saccade.data.readers.parquet.MOST_BYTES", 1 << 20)
    with (
        bounded("a page"),
        pytest.raises(DataError, match=r"'source' of row group 0 has .* bytes that become 16,777,2"),
    ):
        list(read(path))
    monkeypatch.undo()
    for size, message in (
        (lines.LONGEST + 1, r"line 1: a value cannot be read \(text of 16,777,218 bytes\)"),
        (4 << 20, ""),
    ):
        shared = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["y" * size]))
        pq.write_table(pa.table({"source": shared, "target": ["b"] * rows}), path)
        with bounded("rows") as used:
            if message:
                with pytest.raises(BadRow, match=message):
                    list(read(path))
            else:
                assert sum(len(example["source"]) for example in read(path)) == rows * size
        assert used.megabytes < 150


ARCHIVES = [
    ("edges", b"not an array", r"not a NumPy archive of plain arrays \(the magic string is not correct"),
    ("edges.npy", b"", "not a NumPy archive of plain arrays"),
    (
        "x.npy",
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 2), }".ljust(118),
        r"x\.npy announces \(1000000000000, 2\) numbers, more than it contains",
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), ARCHIVES, ids=range(len(ARCHIVES)))
def test_hostile_archives(tmp_path, name, content, message):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr(name, content)
    with bounded(name), pytest.raises(DataError, match=message):
        read_graph(str(tmp_path / "a.npz"), None, skip=False)


ALIGNMENTS = [
    ("a.talp", "0-0\n" + "9" * 5000 + "-1\n", r"a\.talp, line 2: '9{50,60} is not a link"),
    ("a.talp", "0-0\n0-99999999999\n", r"a\.talp, line 2: '0-99999999999' is not a link"),
    ("a.talp", "x" * (lines.LONGEST + 1), r"a\.talp, line 1: the line is longer than 16 MiB"),
    ("a.naacl", "1 1 1\n" + "9" * 5000 + " 1 1\n", r"a\.naacl, line 2: '9{50,60} is not a link"),
    ("a.naacl", "1 1 1\n999999999 1 1\n", r"a\.naacl, line 2: sentence 999999999 must be from 1 to 1000000"),
    ("a.json", '{"sure": []}\n' + "[" * 100_000, r"a\.json, line 2 is not an alignment"),
    ("a.json", '{"sure": [[' + "9" * 5000 + ", 1]]}", r"a\.json, line 1 is not an alignment"),
    ("a.json", '{"sure": [[99999999999, 1]]}', r"a\.json, line 1 is not an alignment"),
    ("a.talp", "\0\n", r"a\.talp, line 1: the alignment contains a NUL character"),
]


@pytest.mark.parametrize(("name", "content", "message"), ALIGNMENTS, ids=range(len(ALIGNMENTS)))
def test_hostile_alignments(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with bounded(name), pytest.raises(ValueError, match=message) as caught:
        read_alignments(tmp_path / name)
    assert len(str(caught.value)) < 500


def test_a_dataset_with_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'PWNED')!r}, 'w').close()\n")
    (folder / "train.jsonl").write_text(OBJECT)
    with pytest.raises(DataError, match=r"Cannot read the dataset .* scripts are no longer supported"):
        list(read(f"hf:{folder}:train"))
    assert not (tmp_path / "PWNED").exists()


def test_odd_sample_rates_take_little_memory(tmp_path):
    path, field = tmp_path / "a.wav", Audio()
    path.write_bytes(as_wav(np.sin(np.arange(800)), 383_987))
    with bounded("383,987 Hz") as used:
        assert recording(path, None) == "read"
    assert used.megabytes < 400
    with pytest.raises(BadRow, match="999999"):
        field.read({"array": np.zeros(9), "sampling_rate": 999_999}, Cell("a", 1, "source"))


def test_hostile_names(tmp_path):
    (tmp_path / "loop.tsv").symlink_to(tmp_path / "loop.tsv")
    (tmp_path / "folder.tsv").mkdir()
    (tmp_path / "two\nlines.tsv").write_text("a\n")
    for name, kind, message in [
        ("loop.tsv", FileNotFoundError, "There is no file"),
        ("folder.tsv", DataError, "contains no files"),
        ("two\nlines.tsv", BadRow, r"two lines\.tsv, line 1: 1 column"),
        ("nul\0.tsv", FileNotFoundError, r"nul\\0\.tsv"),
        ("none\r.tsv", FileNotFoundError, r"none \.tsv"),
        ("x" * 5000, OSError, "no file"),
        (",,,", DataError, "is a folder, where a file is needed"),
    ]:
        with pytest.raises(kind, match=message) as caught:
            list(read(f"{tmp_path}/{name}"))
        assert "\n" not in str(caught.value)


def test_very_wide_tables(tmp_path):
    names = [f"column{n}" for n in range(200_000)]
    (tmp_path / "a.tsv").write_text("\t".join(names) + "\n" + "\t".join("x" for _ in names) + "\n")
    (tmp_path / "a.jsonl").write_text(json.dumps(dict.fromkeys(names, "x")) + "\n")
    for name in ("a.tsv", "a.jsonl"):
        with bounded(name), pytest.raises(DataError, match=r"no column 'colum'\. Did you mean 'column\d+'") as caught:
            read(tmp_path / name, "source", columns={"source": "colum"})
        assert len(str(caught.value)) < 1000


def seeds():
    """A good file of each format."""
    pairs = [("a dog, he said", "ein Hund"), ('so "quoted"', "日本 語"), ("multi word", "ü"), ("4", "5")] * 3
    quoted = "".join(",".join('"' + text.replace('"', '""') + '"' for text in pair) + "\n" for pair in pairs)
    objects = "".join(json.dumps({"source": a, "target": b, "n": [1, {"k": None}]}) + "\n" for a, b in pairs)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"source": [a for a, _ in pairs], "target": [b for _, b in pairs]}), sink, row_group_size=5)
    text = {"a.tsv": "".join("\t".join(pair) + "\n" for pair in pairs), "a.csv": quoted, "a.jsonl": objects}
    plain = {name: content.encode() for name, content in text.items()}
    packed = {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in plain.items()}
    aligned = {
        "a.talp": b"0-0 1-2 2p1\n0-1\n",
        "a.naacl": b"1 1 1 S\n1 2 2 P 0.5\n2 1 1\n",
        "a.json": b'{"sure": [[0, 0], [1, 2]], "possible": [[2, 1]]}\n{"sure": []}\n',
    }
    edges, features = np.array([[0, 1], [1, 2]]), np.arange(15.0).reshape(3, 5)
    np.savez_compressed(archive := io.BytesIO(), edges=edges, x=features, labels=np.array(["a", "b", "c"]))
    return {
        **plain,
        **packed,
        **aligned,
        "a.parquet": sink.getvalue().to_pybytes(),
        "a.en": plain["a.tsv"],
        "a.wav": as_wav(np.sin(np.arange(800)), 8000),
        "a.npz": archive.getvalue(),
    }


TOKENS = [
    b'"',
    b"\0",
    b"\xff",
    b"[" * 70,
    b"{",
    b"}",
    b"\n",
    b"\r",
    b"\t",
    b",",
    b"9" * 5000,
    b"\xef\xbb\xbf",
    b"\xff\xfe",
]
TOKENS += [b"null", b"\\ud800", b"-", b"1e999", b'""', b"\n\n", b"\xed\xa0\x80", "\u2028".encode()]


def damaged(content, draw):
    data = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 5, 20])):
        place = draw.randrange(len(data) + 1)
        change = draw.randrange(5)
        if change == 0 and data:
            data[place % len(data)] ^= 1 << draw.randrange(8)
        elif change == 1:
            data[place:place] = draw.choice(TOKENS)
        elif change == 2:
            del data[place : place + draw.randrange(1, 30)]
        elif change == 3:
            data[place:place] = data[draw.randrange(len(data) + 1) :][: draw.randrange(40)]
        elif draw.random() < 0.2:
            del data[place:]
    return bytes(data)


def table(source, roles, bad_rows="error"):
    """What became of a table; nothing but one line of error, a skip or texts is right."""
    examples = read(source, roles, bad_rows=bad_rows)
    texts = [text for example in examples for text in example.values()]
    assert all(isinstance(text, str) and text.strip() for text in texts)
    "".join(texts).encode()
    return "skipped" if examples.skipped.count else "read"


def recording(path, _):
    field = Audio()
    assert field.pad([field.encode(field.read(str(path), Cell(str(path), 1, "source")))])["values"].isfinite().all()
    return "read"


def graph(path, chance):
    found = read_graph(str(path), None, skip=chance.random() < 0.5)
    assert np.isfinite(found.features).all()
    return "read"


def alignments(path, chance):
    read_alignments(path, sentences=chance.choice([None, 2]))
    return "read"


def texts(path, chance):
    return table(path, "source" if path.name == "a.en" else "source target", chance.choice(["error", "skip"]))


READERS = {".wav": recording, ".npz": graph, ".talp": alignments, ".naacl": alignments, ".json": alignments}


def outcome(work, *arguments):
    """What became of a file; "refused" if the error is one line."""
    try:
        return work(*arguments)
    except (DataError, OSError, ValueError) as error:
        refusal = error
    assert not isinstance(refusal, UnicodeError)
    assert len(str(refusal).splitlines()) == 1
    assert len(str(refusal)) < 2000
    return "refused"


def test_fuzzed_files(tmp_path, cases):
    draw, tried = random.Random(3), cases("data files", seconds=3.0, wanted=5_000)
    originals = seeds()
    while tried.more():
        name = draw.choice(sorted(originals))
        path = tmp_path / name
        path.write_bytes(damaged(originals[name], draw))
        with tried.case(f"{name}: {path.read_bytes()!r}"):
            found = outcome(READERS.get(path.suffix, texts), path, draw)
        tried.outcomes[found] += 1
    assert min(tried.outcomes[name] for name in ("read", "skipped", "refused")) > 0


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)
FUZZ = settings(max_examples=int(20 * (SECONDS or 3.0)), deadline=5000)


@FUZZ
@given(st.lists(VALUES, max_size=4))
def test_fuzzed_rows_in_memory(values):
    for roles in ("source", "source target"):
        assert outcome(table, values, roles) in ("read", "refused")
    assert [digest(value) for value in values] == [digest(value) for value in values]


def plain(value):
    """What a stored value may come back as: numbers in lists have 32 bits, and integers among floats become floats."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, int | float) and not isinstance(value, bool):
        with np.errstate(over="ignore"):
            return str(np.float32(value))
    return value


@FUZZ
@given(values=st.lists(VALUES, max_size=4))
def test_fuzzed_values_are_stored_or_refused(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("stored") / "a.arrow"
    message = ""
    try:
        stored = list(store([{"x": value} for value in values], path))
    except DataError as refusal:
        message = str(refusal)
    if message:
        assert message.startswith("Cannot store 'x")
        assert len(message.splitlines()) == 1
    else:
        assert [plain(row["x"]) for row in stored] == [plain(value) for value in values]
