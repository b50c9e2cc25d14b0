import gzip
import json
import re
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saccade.data.errors import BadRow, DataError
from saccade.data.readers import Examples, read_examples

PAIRS = [{"source": "a dog", "target": "ein Hund"}, {"source": 'a "cat", she said', "target": "日本\u2028語"}]
NAMED = {"source": "en", "target": "de"}


def write(path, text, encoding="utf-8"):
    data = text if isinstance(text, bytes) else text.encode(encoding)
    with gzip.open(path, "wb") if path.suffix == ".gz" else open(path, "wb") as file:
        file.write(data)
    return str(path)


def tsv(rows):
    return "".join("\t".join(row.values()) + "\n" for row in rows)


@pytest.mark.parametrize("end", ["", ".gz"])
def test_every_text_format(tmp_path, end):
    quoted = "".join(",".join('"' + text.replace('"', '""') + '"' for text in row.values()) + "\n" for row in PAIRS)
    lines = "".join(json.dumps(row) + "\n" for row in PAIRS)
    for name, text in (("a.tsv", tsv(PAIRS)), ("a.csv", quoted), ("a.jsonl", lines)):
        assert list(read_examples(write(tmp_path / (name + end), text))) == PAIRS
    english = write(tmp_path / f"t.en{end}", "".join(row["source"] + "\n" for row in PAIRS))
    german = write(tmp_path / f"t.de{end}", "".join(row["target"] + "\n" for row in PAIRS))
    assert list(read_examples(f"{english},{german}")) == PAIRS
    assert list(read_examples([english, german])) == PAIRS
    assert list(read_examples([german, english], NAMED)) == PAIRS  # by suffix
    assert list(read_examples([german, english], {"source": 1, "target": 0})) == PAIRS
    assert list(read_examples([f"{english},{german}", f"{english},{german}"])) == PAIRS * 2
    assert list(read_examples(english, ["source"])) == [{"source": row["source"]} for row in PAIRS]


def test_parquet(tmp_path):
    table = pa.table({"de": [r["target"] for r in PAIRS], "n": [1, 2], "en": [r["source"] for r in PAIRS]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert list(read_examples(tmp_path / "a.parquet", NAMED)) == PAIRS
    assert list(read_examples(tmp_path / "a.parquet", {"source": 2, "target": 0})) == PAIRS
    assert list(read_examples(tmp_path / "a.parquet", {"label": "n"})) == [{"label": "1"}, {"label": "2"}]
    nested = pa.table({"translation": [{"en": r["source"], "de": r["target"]} for r in PAIRS]})
    pq.write_table(nested, tmp_path / "b.parquet")
    assert (
        list(read_examples(tmp_path / "b.parquet", {"source": "translation.en", "target": "translation.de"})) == PAIRS
    )
    with pytest.raises(DataError, match=r"no column 'm'. Choose from: de, en, n\."):
        read_examples(tmp_path / "a.parquet", {"source": "en", "target": "m"})
    write(tmp_path / "c.parquet", "text")
    with pytest.raises(DataError, match=r"c\.parquet is not a Parquet file"):
        read_examples(tmp_path / "c.parquet")


def test_undecodable_parquet(tmp_path):
    raw = pa.array([b"good", b"\xff\xfe", b"fine"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"source": raw}), tmp_path / "a.parquet")
    examples = read_examples(tmp_path / "a.parquet", ["source"], bad_rows="skip")
    assert list(examples) == [{"source": "good"}, {"source": "fine"}]
    assert [row.line for row in examples.skipped.first] == [2]


def test_datasets_folders(tmp_path):
    datasets = pytest.importorskip("datasets")
    one = datasets.Dataset.from_list([{"translation": {"en": r["source"], "de": r["target"]}} for r in PAIRS])
    one.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": one, "test": one.select([1])}).save_to_disk(tmp_path / "two")
    columns = {"source": "translation.en", "target": "translation.de"}
    assert list(read_examples(f"hf:{tmp_path}/one", columns)) == PAIRS
    assert list(read_examples(f"hf:{tmp_path}/two:test", columns)) == PAIRS[1:]
    with pytest.raises(DataError, match=r"two' needs a split, as in .*two:train'.*Choose from: test, train"):
        read_examples(f"hf:{tmp_path}/two", columns)
    with pytest.raises(DataError, match=r"no split 'tset'.*Did you mean 'test'"):
        read_examples(f"hf:{tmp_path}/two:tset", columns)
    with pytest.raises(DataError, match="no column 'en'"):
        read_examples(f"hf:{tmp_path}/one", ["en"])
    with pytest.raises(DataError, match=f"'hf:{tmp_path}/one'"):
        read_examples(f"{tmp_path}/one", columns)
    (tmp_path / "files").mkdir()
    write(tmp_path / "files" / "train.jsonl", "".join(json.dumps(row) + "\n" for row in PAIRS))
    assert list(read_examples(f"hf:{tmp_path}/files:train")) == PAIRS


def test_a_hub_without_a_network_says_what_to_do(monkeypatch) -> None:
    datasets = pytest.importorskip("datasets")

    def unreachable(*_, **__):
        raise ConnectionError("Couldn't reach the Hub")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(DataError, match=r"Couldn't reach the Hub.*no folder some/pairs.*save_to_disk.*hf:data:train"):
        read_examples("hf:some/pairs:train", ["source", "target"])


def test_dates_need_no_file():
    found = list(read_examples("dates:test:13"))
    assert len(found) == 13
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", example["target"]) for example in found)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_headers_are_never_guessed(tmp_path, name):
    separator = "\t" if name == "a.tsv" else ","
    text = "de,en,score\nein Hund,a dog,1\neine Katze,a cat,2\n".replace(",", separator)
    path = write(tmp_path / name, text)
    dog, cat = {"source": "a dog", "target": "ein Hund"}, {"source": "a cat", "target": "eine Katze"}
    assert list(read_examples(path, NAMED)) == [dog, cat]  # names: so there is a header
    numbers = {"source": 1, "target": 0}
    assert list(read_examples(path, numbers)) == [
        {"source": "en", "target": "de"},
        dog,
        cat,
    ]  # numbers: so there is not
    assert list(read_examples(path, numbers, header=True)) == [dog, cat]
    assert list(read_examples(path, ["en", "de"], header=True)) == [
        {"en": e["source"], "de": e["target"]} for e in (dog, cat)
    ]
    with pytest.raises(DataError, match=r"no column 'scores'\. Did you mean 'score'"):
        read_examples(path, {"source": "en", "target": "scores"})
    with pytest.raises(DataError, match="give its number"):
        read_examples(path, NAMED, header=False)
    with pytest.raises(DataError, match="no column 7"):
        read_examples(path, {"source": 7}, header=True)
    lookalike = write(tmp_path / f"b{name}", separator.join(["Source", "Target"]) + "\n")
    with pytest.raises(DataError, match=r"--data\.header true.*header=True"):
        read_examples(lookalike)
    assert list(read_examples(lookalike, header=False)) == [{"source": "Source", "target": "Target"}]


def test_bad_rows_of_tsv(tmp_path):
    rows = [b"a\tb", b"alone", b"x\ty\tz", b"\tempty", b"c\t \xc2\xa0", b"\xff\xfe\td", b"", b"e\tf"]
    path = write(tmp_path / "a.tsv", b"\n".join(rows) + b"\n")
    examples = read_examples(path, bad_rows="skip")
    assert list(examples) == [{"source": "a", "target": "b"}, {"source": "e", "target": "f"}]
    assert examples.skipped.count == 6
    assert [(row.line, row.problem) for row in examples.skipped.first] == [
        (2, "1 columns instead of 2 as in the first row"),
        (3, "3 columns instead of 2 as in the first row"),
        (4, "the source is empty"),
        (5, "the target is empty"),
        (6, "the source is not UTF-8 (bytes b'\\xff\\xfe')"),
        (7, "1 columns instead of 2 as in the first row"),
    ]
    assert f"Skipped 6 bad rows:\n  {path}, line 2: 1 columns" in examples.skipped.report()
    assert list(examples)
    assert examples.skipped.count == 6  # of the last pass, not of both
    with pytest.raises(BadRow, match=r"a\.tsv, line 2: 1 columns instead of 2") as caught:
        list(read_examples(path))
    assert (caught.value.file, caught.value.line) == (path, 2)


def test_many_bad_rows_are_counted_and_the_first_listed(tmp_path):
    examples = read_examples(write(tmp_path / "a.tsv", "a\tb\n" + "bad\n" * 101), bad_rows="skip")
    assert len(list(examples)) == 1
    assert (examples.skipped.count, len(examples.skipped.first)) == (101, 20)
    assert examples.skipped.report().endswith("... and 81 more")


def test_bad_rows_of_csv(tmp_path):
    text = b'a,b\n"multi\nline",c\n"x"y,z\n\n\xff,d\n"say ""so""",e\n'
    examples = read_examples(write(tmp_path / "a.csv", text), bad_rows="skip")
    assert list(examples) == [
        {"source": "a", "target": "b"},
        {"source": "multi\nline", "target": "c"},
        {"source": 'say "so"', "target": "e"},
    ]
    assert [row.line for row in examples.skipped.first] == [4, 5, 6]
    unclosed = write(tmp_path / "b.csv", b'a,b\n"never closed,c\n')
    with pytest.raises(BadRow, match=r"b\.csv, line 2: not a CSV row"):
        list(read_examples(unclosed))


def test_bad_rows_of_jsonl(tmp_path):
    good = json.dumps(PAIRS[0])
    rows = [good, "{", "[1]", '{"source": "x"}', '{"source": "x", "target": null}', '{"source": "x", "target": ["y"]}']
    rows += ['{"source": "x", "target": "\\ud83d"}', "", good]
    examples = read_examples(write(tmp_path / "a.jsonl", "\n".join(rows) + "\n"), bad_rows="skip")
    assert list(examples) == [PAIRS[0]] * 2
    assert [row.line for row in examples.skipped.first] == [2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(DataError, match=r"no column 'sorce'\. Did you mean 'source'"):
        read_examples(str(tmp_path / "a.jsonl"), ["sorce"], bad_rows="skip")


def test_bad_rows_of_parallel_files(tmp_path):
    english = write(tmp_path / "t.en", "a\n\nc\n")
    german = write(tmp_path / "t.de", b"x\ny\n\xe4\n")
    examples = read_examples([english, german], bad_rows="skip")
    assert list(examples) == [{"source": "a", "target": "x"}]
    assert [(row.file, row.line) for row in examples.skipped.first] == [(english, 2), (german, 3)]


def test_parallel_files_of_different_length(tmp_path):
    english, german = write(tmp_path / "t.en", "a\nb\nc\n"), write(tmp_path / "t.de", "x\ny")
    for bad_rows in ("error", "skip"):
        with pytest.raises(DataError, match=r"t\.en has 3 lines, .*t\.de has 2 lines"):
            list(read_examples([english, german], bad_rows=bad_rows))


def test_windows_files(tmp_path):
    assert list(read_examples(write(tmp_path / "a.tsv", "a\tb\r\nc\td\r\n", "utf-8-sig"))) == [
        {"source": "a", "target": "b"},
        {"source": "c", "target": "d"},
    ]
    assert list(read_examples(write(tmp_path / "b.csv", "en,de\r\na,b\r\n", "utf-8-sig"), NAMED)) == [
        {"source": "a", "target": "b"}
    ]


def test_what_cannot_be_read(tmp_path):
    path = write(tmp_path / "pairs.tsv", "a\tb\n")
    with pytest.raises(FileNotFoundError, match=r"no file .*pairs\.tvs.* Did you mean .*pairs\.tsv"):
        read_examples(str(tmp_path / "pairs.tvs"))
    for name in ("tests.tsv", "valid.tsv", "other.tvs"):  # the suffix alone makes none alike
        with pytest.raises(FileNotFoundError) as raised:
            read_examples(str(tmp_path / name))
        assert "Did you mean" not in str(raised.value)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        read_examples(str(tmp_path / "nowhere" / "pairs.tsv"))
    with pytest.raises(DataError, match="no files"):
        read_examples([])
    plain = write(tmp_path / "t.en", "a\n")
    with pytest.raises(DataError, match="Join text files"):
        read_examples([path, plain])
    with pytest.raises(DataError, match="tables are given as a list"):
        read_examples(f"{path},{path}")
    with pytest.raises(DataError, match=r"t\.en is one text file, but source and target need one each"):
        read_examples(plain)
    with pytest.raises(ValueError, match="bad_rows"):
        read_examples(path, bad_rows="ignore")
    with pytest.raises(TypeError, match="string"):
        read_examples(path, "source")
    with pytest.raises(ValueError, match="columns is empty"):
        read_examples(path, {})
    with pytest.raises(ValueError, match=r"columns\['source'\]"):
        read_examples(path, {"source": -1})
    with pytest.raises(DataError, match="is empty"):
        read_examples(write(tmp_path / "empty.tsv", ""), NAMED)
    torn = tmp_path / "torn.tsv.gz"
    torn.write_bytes(gzip.compress(b"a\tb\n" * 1000)[:-20])
    with pytest.raises(DataError, match=r"torn\.tsv\.gz is not a whole gzip file"):
        list(read_examples(torn))
    torn.write_bytes(b"a\tb\n")
    with pytest.raises(DataError, match="gzip"):
        list(read_examples(torn))


def test_files_are_streamed(tmp_path):
    path = write(tmp_path / "a.tsv", "a\tb\n" * 1000 + "bad\n")
    assert len(list(islice(read_examples(path), 999))) == 999  # does not reach the bad row


def test_lists_of_tables_follow_each_other_and_rows_know_where_they_stand(tmp_path):
    one, two = write(tmp_path / "a.tsv", "a\tb\n"), write(tmp_path / "b.tsv.gz", "c\td\ne\tf\n")
    examples = read_examples([one, two])
    assert [(file, line) for file, line, _ in examples.located()] == [(one, 1), (two, 1), (two, 2)]


def test_fingerprints_change_with_the_data(tmp_path):
    path = write(tmp_path / "a.tsv", "a\tb\n")
    before = Examples(path).fingerprint()
    assert Examples(path).fingerprint() == before
    assert Examples(path, {"source": 1, "target": 0}).fingerprint() != before
    write(tmp_path / "a.tsv", "a\tb\nc\td\n")
    assert Examples(path).fingerprint() != before


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_empty_files_are_named(tmp_path, name):
    with pytest.raises(DataError, match=rf"{name} is empty"):
        read_examples(write(tmp_path / name, ""))
