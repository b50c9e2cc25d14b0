import gzip
import json
import os
import re
import socket
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saccade.data.errors import BadRow, DataError
from saccade.data.readers import Reader, Rows, absolute, readers
from tests.data.stand_ins import Place, Raw, read

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
    for name, text in (("a.tsv", tsv(PAIRS)), ("a.csv", quoted), ("a.jsonl", lines), ("a.ndjson", lines)):
        assert list(read(write(tmp_path / (name + end), text))) == PAIRS
    english = write(tmp_path / f"t.en{end}", "".join(row["source"] + "\n" for row in PAIRS))
    german = write(tmp_path / f"t.de{end}", "".join(row["target"] + "\n" for row in PAIRS))
    assert list(read(f"{english},{german}")) == PAIRS
    assert list(read([english, german])) == PAIRS
    assert list(read([german, english], columns=NAMED)) == PAIRS  # by suffix
    assert list(read([german, english], columns={"source": 1, "target": 0})) == PAIRS
    assert list(read([f"{english},{german}", f"{english},{german}"])) == PAIRS * 2
    assert list(read(english, "source")) == [{"source": row["source"]} for row in PAIRS]
    assert list(read(english, "source", columns={"source": "lemma"})) == list(read(english, "source"))
    with pytest.raises(DataError, match="2 text files for 1 columns"):
        read([english, german], "source")


def test_parquet(tmp_path):
    table = pa.table({"de": [r["target"] for r in PAIRS], "n": [1, 2], "en": [r["source"] for r in PAIRS]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert list(read(tmp_path / "a.parquet", columns=NAMED)) == PAIRS
    assert list(read(tmp_path / "a.parquet", columns={"source": 2, "target": 0})) == PAIRS
    assert list(read(tmp_path / "a.parquet", "label", columns={"label": "n"})) == [{"label": "1"}, {"label": "2"}]
    nested = pa.table({"translation": [{"en": r["source"], "de": r["target"]} for r in PAIRS]})
    pq.write_table(nested, tmp_path / "b.parquet")
    inside = {"source": "translation.en", "target": "translation.de"}
    assert list(read(tmp_path / "b.parquet", columns=inside)) == PAIRS
    with pytest.raises(DataError, match=r"no column 'm'. Choose from: 'de', 'en', 'n'\."):
        read(tmp_path / "a.parquet", columns={"source": "en", "target": "m"})
    with pytest.raises(DataError, match="there is no column 3"):
        read(tmp_path / "a.parquet", "source", columns={"source": 3})
    write(tmp_path / "c.parquet", "text")
    with pytest.raises(DataError, match=r"c\.parquet is not a Parquet file"):
        read(tmp_path / "c.parquet")


def test_undecodable_parquet(tmp_path):
    raw = pa.array([b"good", b"\xff\xfe", b"fine"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"source": raw}), tmp_path / "a.parquet")
    examples = read(tmp_path / "a.parquet", "source", bad_rows="skip")
    assert list(examples) == [{"source": "good"}, {"source": "fine"}]
    assert [row.line for row in examples.skipped.first] == [2]


VALUES = [3, -2.5, True, None, "text", [1, [2.0, None]], {"a": {"b": [1]}}]


def test_values_pass_unharmed(tmp_path):
    path = write(tmp_path / "a.jsonl", "".join(json.dumps({"x": value}) + "\n" for value in VALUES))
    assert [example["x"] for example in read(path, "x", field=Raw)] == VALUES
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = [
        example["x"] for example in read([{"x": value} for value in [*VALUES, b"\x00\xff", array]], "x", field=Raw)
    ]
    assert found[:-1] == [*VALUES, b"\x00\xff"]
    assert found[-1] is array
    pq.write_table(pa.table({"x": [b"\x00\xff"], "y": [[[1.5, 2.5], []]], "z": [{"k": 1}]}), tmp_path / "a.parquet")
    assert list(read(tmp_path / "a.parquet", "x y z", field=Raw)) == [
        {"x": b"\x00\xff", "y": [[1.5, 2.5], []], "z": {"k": 1}}
    ]


def test_several_columns_for_one_role(tmp_path):
    columns = {"source": ["lemma", "features"], "target": "form"}
    wanted = [{"source": ["walk", "V;PST"], "target": "walked"}]
    text = "lemma\tform\tfeatures\nwalk\twalked\tV;PST\n"
    path = write(tmp_path / "a.tsv", text)
    assert list(read(path, columns=columns, field=Raw)) == wanted
    assert list(read(path, columns={"source": [0, 2], "target": 1}, header=True, field=Raw)) == wanted
    row = {"lemma": "walk", "form": "walked", "features": "V;PST"}
    assert list(read(write(tmp_path / "a.jsonl", json.dumps(row)), columns=columns, field=Raw)) == wanted
    assert list(read([row], columns=columns, field=Raw)) == wanted
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    assert list(read(tmp_path / "a.parquet", columns=columns, field=Raw)) == wanted
    with pytest.raises(DataError, match=r"no column 'feature'\. Did you mean 'features'"):
        read(path, columns={**columns, "source": ["lemma", "feature"]})


def test_rows_in_memory():
    tuples = [tuple(row.values()) for row in PAIRS]
    assert list(read(PAIRS)) == list(read(tuples)) == list(read(iter(tuples))) == list(read([list(t) for t in tuples]))
    assert list(read(PAIRS)) == PAIRS
    assert list(read([{"en": "a", "de": "b"}], columns=NAMED)) == [{"source": "a", "target": "b"}]
    assert list(read(PAIRS, columns=NAMED)) == PAIRS  # the columns are those of the training files
    assert list(read(["a dog", "b"], "source")) == list(read([("a dog",), ("b",)], "source"))
    assert list(read(["a dog", "b"], "source")) == [{"source": "a dog"}, {"source": "b"}]
    assert list(read([[1, 2]], "x", field=Raw)) == [{"x": [1, 2]}]
    assert list(read([], "source")) == []
    assert list(read(Rows(["pairs.tsv"]), "source")) == [{"source": "pairs.tsv"}]
    assert list(read([("a", "b"), ("c",)], "source target", optional=["target"])) == [
        {"source": "a", "target": "b"},
        {"source": "c"},
    ]
    examples = read(tuples)
    assert [(file, line) for file, line, _ in examples.located()] == [
        ("the examples in memory", 1),
        ("the examples in memory", 2),
    ]
    for row, message in [
        (("a", " "), "line 2: the target is empty"),
        (("a",), "line 2: the row has 1 values instead of 2"),
        ({"source": "a"}, r"line 2: there is no 'target'\. The row has: 'source'"),
        ("a", "line 2: 'a' is not a row of source and target"),
    ]:
        with pytest.raises(BadRow, match=message):
            list(read([("x", "y"), row]))
        skipping = read([("x", "y"), row], bad_rows="skip")
        assert len(list(skipping)) == 1
        assert skipping.skipped.count == 1
    with pytest.raises(DataError, match="got dict"):
        read({"source": "a", "target": "b"})
    with pytest.raises(FileNotFoundError):  # two roles: a text cannot be a row
        read(["trian.en", "trian.de"])
    with pytest.raises(FileNotFoundError, match=r"trian\.tsv"):  # nor can the name of a table
        read(["trian.tsv"], "source")


def test_folders_of_files(tmp_path):
    for name in ("yes/b.wav", "yes/a.wav", "no/deep/c.wav", ".hidden/d.wav", "no/.e.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    found = list(read(tmp_path, "audio label"))
    assert [(Path(row["audio"]).relative_to(tmp_path).as_posix(), row["label"]) for row in found] == [
        ("no/deep/c.wav", "deep"),
        ("yes/a.wav", "yes"),
        ("yes/b.wav", "yes"),
    ]
    named = read(str(tmp_path), "id sound", columns={"id": "stem", "sound": "path"})
    assert [row["id"] for row in named] == ["c", "a", "b"]
    assert all(Path(row["sound"]).is_absolute() for row in named)
    assert len(list(read(tmp_path, "audio", columns={"audio": "file"}))) == 3  # a column of the training table
    before = named.fingerprint()
    (tmp_path / "yes" / "a.wav").write_bytes(b"longer")
    assert named.fingerprint() != before
    (tmp_path / "f.wav").write_bytes(b"x")
    with pytest.raises(DataError, match="files outside its sub-folders, which have no label"):
        read(tmp_path, "audio label")
    with pytest.raises(DataError, match=r"say which is the audio and which the text, as --data\.columns audio=path"):
        read(tmp_path, "audio text")
    with pytest.raises(DataError, match="say which is the audio"):
        read(tmp_path, "audio label", columns={"audio": "pth", "label": "label"})
    write(tmp_path / "b.tsv", "x\ty\n")
    write(tmp_path / "yes" / "c.csv", "x,y\n")
    with pytest.raises(DataError, match=r"contains tables \('b\.tsv', 'yes/c\.csv'\): name one of them"):
        read(tmp_path, "source target")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="contains no files"):
        read(tmp_path / "empty", "audio")


def test_cells_know_their_place(tmp_path):
    path = write(tmp_path / "manifest.tsv", "clips/a.wav\thello\n")
    [example] = read(path, "audio text", field=Place)
    raw, cell = example["audio"]
    assert (raw, cell.file, cell.line, cell.role, cell.folder) == ("clips/a.wav", path, 1, "audio", tmp_path)
    english, german = write(tmp_path / "t.en", "a\n"), write(tmp_path / "t.de", "b\n")
    [example] = read([english, german], field=Place)
    assert [example[role][1].file for role in ("source", "target")] == [english, german]


def test_a_reader_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "_members", dict(readers._members))

    @readers.register("fixed")
    class Fixed(Reader):
        suffixes = (".fixed",)

        def rows(self):
            for line, text in enumerate(Path(self.source).read_text().splitlines(), start=1):
                bad = BadRow(self.name, line, "too short", "Write more.")
                yield line, {"id": text[:3], "text": text[3:]} if len(text) > 3 else bad

    path = write(tmp_path / "a.fixed", "001hello\n002\n003you\n")
    examples = read(path, "text", bad_rows="skip")
    assert list(examples) == [{"text": "hello"}, {"text": "you"}]
    assert examples.skipped.count == 1
    with pytest.raises(DataError, match=r"no column 'txt'\. Did you mean 'text'"):
        read(path, "txt")
    readers.register("again")(type("Again", (Fixed,), {}))
    with pytest.raises(DataError, match=r"More than one reader can read .*: again, fixed"):
        read(path, "text")


def test_optional_roles(tmp_path):
    lines = '{"source": "a", "target": "b"}\n{"source": "c"}\n{"source": "d", "target": null}\n'
    path = write(tmp_path / "a.jsonl", lines)
    wanted = [{"source": "a", "target": "b"}, {"source": "c"}, {"source": "d"}]
    assert list(read(path, optional=["target"])) == wanted
    assert list(read(path, "source missing", optional=["missing"])) == [{"source": t} for t in "acd"]
    table = write(tmp_path / "a.tsv", "a\tb\n")
    assert list(read(table, optional=["target"])) == wanted[:1]
    assert list(read(table, "source target links", optional=["links"])) == wanted[:1]
    headed = write(tmp_path / "b.tsv", "body\nc\n")
    columns = {"source": "body", "target": "stars"}
    assert list(read(headed, columns=columns, optional=["target"])) == [{"source": "c"}]
    with pytest.raises(DataError, match="no column 'stars'"):
        read(headed, columns=columns)


def test_datasets_folders(tmp_path):
    datasets = pytest.importorskip("datasets")
    one = datasets.Dataset.from_list([{"translation": {"en": r["source"], "de": r["target"]}} for r in PAIRS])
    one.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": one, "test": one.select([1])}).save_to_disk(tmp_path / "two")
    columns = {"source": "translation.en", "target": "translation.de"}
    assert list(read(f"hf:{tmp_path}/one", columns=columns)) == PAIRS
    assert list(read(f"hf:{tmp_path}/two:test", columns=columns)) == PAIRS[1:]
    assert list(read(one, columns=columns)) == PAIRS  # rows in memory
    with pytest.raises(DataError, match=r"two' needs a split, as in .*two:train'.*Choose from: test, train"):
        read(f"hf:{tmp_path}/two", columns=columns)
    with pytest.raises(DataError, match=r"no split 'tset'.*Did you mean 'test'"):
        read(f"hf:{tmp_path}/two:tset", columns=columns)
    with pytest.raises(DataError, match="no column 'en'"):
        read(f"hf:{tmp_path}/one", "en")
    with pytest.raises(DataError, match=f"'hf:{tmp_path}/one'"):
        read(f"{tmp_path}/one", columns=columns)
    for file in (tmp_path / "one").glob("*.arrow"):
        file.write_bytes(file.read_bytes()[:-300])
    with pytest.raises(DataError, match=r"Cannot read .*one'"):
        list(read(f"hf:{tmp_path}/one", columns=columns))
    (tmp_path / "files").mkdir()
    write(tmp_path / "files" / "train.jsonl", "".join(json.dumps(row) + "\n" for row in PAIRS))
    assert list(read(f"hf:{tmp_path}/files:train")) == PAIRS


def test_a_hub_without_a_network_says_what_to_do(monkeypatch) -> None:
    datasets = pytest.importorskip("datasets")

    def unreachable(*_, **__):
        raise ConnectionError("Couldn't reach the Hub")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(DataError, match=r"Couldn't reach the Hub.*no folder some/pairs.*save_to_disk.*hf:data:train"):
        read("hf:some/pairs:train")


def test_dates_need_no_file():
    found = list(read("dates:test:13"))
    assert len(found) == 13
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", example["target"]) for example in found)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_headers_are_never_guessed(tmp_path, name):
    separator = "\t" if name == "a.tsv" else ","
    text = "de,en,score\nein Hund,a dog,1\neine Katze,a cat,2\n".replace(",", separator)
    path = write(tmp_path / name, text)
    dog, cat = {"source": "a dog", "target": "ein Hund"}, {"source": "a cat", "target": "eine Katze"}
    assert list(read(path, columns=NAMED)) == [dog, cat]  # names: so there is a header
    numbers = {"source": 1, "target": 0}
    assert list(read(path, columns=numbers)) == [{"source": "en", "target": "de"}, dog, cat]  # so there is not
    assert list(read(path, columns=numbers, header=True)) == [dog, cat]
    with pytest.raises(DataError, match=r"no column 'scores'\. Did you mean 'score'"):
        read(path, columns={"source": "en", "target": "scores"})
    with pytest.raises(DataError, match="give its number"):
        read(path, columns=NAMED, header=False)
    with pytest.raises(DataError, match="no column 7"):
        read(path, "source", columns={"source": 7}, header=True)


def test_a_header_alone_is_skipped_and_its_columns_counted(tmp_path):
    two = write(tmp_path / "two.tsv", "en\tde\na\tb\n")
    assert list(read(two, header=True)) == [{"source": "a", "target": "b"}]
    assert list(read(two, "de en", header=True)) == [{"de": "b", "en": "a"}]  # equal names come before positions
    three = write(tmp_path / "three.tsv", "id\ten\tde\n1\ta\tb\n")
    with pytest.raises(
        DataError, match=r"3 columns in its header \('id', 'en', 'de'\), and 2 are .*--data\.columns source="
    ):
        read(three, header=True)
    with pytest.raises(DataError, match="say which"):  # by position, the target would be the source
        read(write(tmp_path / "x.tsv", "target\tenglish\na\tb\n"), header=True)
    with pytest.raises(DataError, match=r"no rows: its only line is the header \('en', 'de'\)"):
        read(write(tmp_path / "one.tsv", "en\tde\n"), header=True)


LOOKS = [
    ("text,label\nIt was good,1\nnot so bad,0\n", True),
    ("body,stars\nIt was good,1\nnot so bad,0\n", True),
    ("Source,Target\na,b\n", True),
    ("en,de\ndog,Hund\ncat,Katze\n", True),
    ("dog,Hund\ncat,Katze\ntext,Text\n", False),
    ("raw,clean\n" + "".join(f"{n}grams,{n} g\n" for n in range(5)), True),
    ("raw,clean\n" + "".join(f"{n}grams,{n} g\n" for n in range(4)) + "some,any\n", False),
    ("raw,clean 1\n" + "".join(f"{n}grams,{n} g\n" for n in range(5)), False),
    ("label,Etikett\ncat,Katze\n", False),  # words, and only one of them a usual name
    ("singular,plural\ncat,cats\nox,oxen\n", True),
    ("Review text,Star rating\nIt was good,1\nnot so bad,0\n", True),
    ("source_text,target_text\ncat,Katze\n", True),
    ("text,label\ntext,mail\n", False),  # the first word comes again
    ("It was good,1\nnot so bad,0\n", False),
    ("source,target\n", False),
]

WORDS = [
    first + second for first in ("ba", "do", "ge", "ki", "lu", "mo") for second in ("nar", "tel", "vis", "pok", "rud")
]
PLURALS = "".join(f"{word},{word}s\n" for word in WORDS)
NAMES = "".join(f"{word.title()},{word.upper()}\n" for word in WORDS)
SPOKEN = "".join(f"{word},{' '.join(word)}\n" for word in WORDS)
GREEK = "".join(f"{word},{''.join(chr(ord(letter) + 848) for letter in word)}\n" for word in WORDS)
TEAMS = "".join(f"the {word} is late,{('sales', 'stores')[place % 2]}\n" for place, word in enumerate(WORDS))
LOOKS += [
    (f"noun,many\n{PLURALS}", True),  # less alike than any other pair
    (f"Noun,Many\n{PLURALS}", True),
    (f"noun,nouns\n{PLURALS}", False),
    (f"badok,badoks\n{PLURALS}", False),
    (f"town,shouted\n{NAMES}", True),  # in lower case
    (f"Town,TOWN\n{NAMES}", False),
    (f"spelling,sound\n{SPOKEN}", True),  # one word
    (f"sound,s o u n d\n{SPOKEN}", False),
    (f"roman,greek\n{GREEK}", True),  # in other letters
    (f"complaint,team\n{TEAMS}", True),  # a label that does not come again
    (f"the lid is late,sales\n{TEAMS}", False),
    ("noun,many\n" + "".join(PLURALS.splitlines(True)[:20]), False),  # too few rows to know
]


@pytest.mark.parametrize(("text", "looks"), LOOKS)
def test_undeclared_headers_get_one_warning(tmp_path, recwarn, text, looks):
    path = write(tmp_path / "reviews.csv", text)
    examples = read(path)
    assert len(list(examples)) == text.count("\n")
    list(examples)
    assert sum("reviews.csv, line 1 looks like a header" in str(each.message) for each in recwarn) == looks
    recwarn.clear()
    read(path, header=False)
    assert not recwarn


EXAMPLES = [
    ("my error button,bug\nlocked out,login\nit crashed,bug\n", True),  # the label comes again
    ("132 grams,132 g\n" + "".join(f"{n} grams,{n} g\n" for n in range(5)), True),
    ("ein Hund sieht eine Katze,a dog sees a cat\nein Hund,a dog\n", True),
    ("raw,clean\n" + "".join(f"{n} grams,{n} g\n" for n in range(5)), False),
    ("Review text,Star rating\nIt was good,1\nnot so bad,0\n", False),
    ("latin,cyrillic\nbado,бадо\n", False),
    ("source,target\nsource,Quelle\n", False),  # named as the roles are
]


@pytest.mark.parametrize(("text", "doubtful"), EXAMPLES)
def test_a_declared_header_that_looks_like_an_example_gets_one_warning(tmp_path, recwarn, text, doubtful):
    examples = read(write(tmp_path / "reviews.csv", text), header=True)
    assert len(list(examples)) == text.count("\n") - 1
    said = [str(each.message) for each in recwarn]
    assert sum("reviews.csv, line 1 is read as a header but looks like an example" in each for each in said) == doubtful
    assert ("set --data.header no" in "".join(said)) == doubtful


def test_bad_rows_of_tsv(tmp_path):
    rows = [b"a\tb", b"alone", b"x\ty\tz", b"\tempty", b"c\t \xc2\xa0", b"\xff\xfe\td", b"", b"e\tf"]
    path = write(tmp_path / "a.tsv", b"\n".join(rows) + b"\n")
    examples = read(path, bad_rows="skip")
    assert list(examples) == [{"source": "a", "target": "b"}, {"source": "e", "target": "f"}]
    assert examples.skipped.count == 6
    assert [(row.line, row.problem) for row in examples.skipped.first] == [
        (2, "1 column instead of 2, as in the first row"),
        (3, "3 columns instead of 2, as in the first row"),
        (4, "the source is empty"),
        (5, "the target is empty"),
        (6, "the source is not UTF-8 (bytes 0xFF 0xFE)"),
        (7, "the line is empty"),
    ]
    assert "--data.bad_rows skip leaves such lines out" in str(examples.skipped.first[-1])
    assert f"iconv -f LATIN1 -t UTF-8 {path} > {Path(path).stem}.utf8.tsv" in str(examples.skipped.first[-2])
    assert "Separate columns by one tab. --data.bad_rows skip leaves such lines out." in str(examples.skipped.first[0])
    assert f"Skipped 6 bad rows:\n  {path}, line 2: 1 column" in examples.skipped.report()
    assert list(examples)
    assert examples.skipped.count == 6  # of the last pass, not of both
    with pytest.raises(BadRow, match=r"a\.tsv, line 2: 1 column instead of 2") as caught:
        list(read(path))
    assert (caught.value.file, caught.value.line) == (path, 2)
    with pytest.raises(BadRow, match=r"line 1: 1 column, but at least 2 are needed\. Separate columns by one tab"):
        read(write(tmp_path / "one.tsv", "no tab in this line\n"))


def test_many_bad_rows_are_counted_and_the_first_listed(tmp_path):
    examples = read(write(tmp_path / "a.tsv", "a\tb\n" + "bad\n" * 101), bad_rows="skip")
    assert len(list(examples)) == 1
    assert (examples.skipped.count, len(examples.skipped.first)) == (101, 20)
    assert examples.skipped.report().endswith("... and 81 more")
    with pytest.raises(DataError, match=r"None of the 3 rows can be used\. The first: .*line 1: 1 column"):
        list(read(write(tmp_path / "b.tsv", "bad\n" * 3), bad_rows="skip"))


def test_bad_rows_of_csv(tmp_path):
    text = b'a,b\n"multi\nline",c\n"x"y,z\n\n\xff,d\n"say ""so""",e\n'
    examples = read(write(tmp_path / "a.csv", text), bad_rows="skip")
    assert list(examples) == [
        {"source": "a", "target": "b"},
        {"source": "multi\nline", "target": "c"},
        {"source": 'say "so"', "target": "e"},
    ]
    assert [row.line for row in examples.skipped.first] == [4, 5, 6]


def test_an_unclosed_quote_is_reported_where_it_opened(tmp_path):
    path = write(tmp_path / "b.csv", 'a,b\nc,"never closed\n' + "d,e\n" * 60000)
    with pytest.raises(BadRow, match=r"b\.csv, line 2: a quote is opened and never closed"):
        list(read(path))
    examples = read(path, bad_rows="skip")
    assert len(list(examples)) == 60001  # the lines after it are not lost
    assert examples.skipped.count == 1
    path = write(tmp_path / "c.csv", 'a,b\n"two\nlines","open\nd,e\n')
    examples = read(path, bad_rows="skip")
    assert list(examples) == [{"source": "a", "target": "b"}, {"source": "d", "target": "e"}]
    assert [row.line for row in examples.skipped.first] == [3]
    long = write(tmp_path / "long.csv", f'"{"x" * 500_000}",b\n')  # beyond the limit of Python's csv module
    assert len(next(iter(read(long)))["source"]) == 500_000


def test_bad_rows_of_jsonl(tmp_path):
    good = json.dumps(PAIRS[0])
    rows = [good, "{", "[1]", '{"source": "x"}', '{"source": "x", "target": null}', '{"source": "x", "target": ["y"]}']
    rows += ['{"source": "x", "target": "\\ud83d"}', "", '{"source": "x", "target": 1.5}', good]
    examples = read(write(tmp_path / "a.jsonl", "\n".join(rows) + "\n"), bad_rows="skip")
    assert list(examples) == [PAIRS[0]] * 2
    assert [(row.line, row.problem) for row in examples.skipped.first[2:]] == [
        (4, "there is no column 'target'"),
        (5, "the target is empty"),
        (6, "the target is not text but list (of length 1)"),
        (7, "the target contains half a character (\\ud83d)"),
        (8, "the line is empty"),
        (9, "the target is not text but float (1.5)"),
    ]
    with pytest.raises(DataError, match=r'such as {"text": "\.\.\.", "label": "\.\.\."}'):
        read(write(tmp_path / "b.jsonl", "{\n"), "text label")
    with pytest.raises(DataError, match=r'such as {"title": "\.\.\.", "body": "\.\.\.", "stars": "\.\.\."}'):
        read(write(tmp_path / "b.jsonl", "{\n"), "text label", columns={"text": ["title", "body"], "label": "stars"})
    with pytest.raises(DataError, match=r"no column 'sorce'\. Did you mean 'source'"):
        read(str(tmp_path / "a.jsonl"), "sorce", bad_rows="skip")


def test_bad_rows_of_parallel_files(tmp_path):
    english = write(tmp_path / "t.en", "a\n\nc\n")
    german = write(tmp_path / "t.de", b"x\ny\n\xe4\n")
    examples = read([english, german], bad_rows="skip")
    assert list(examples) == [{"source": "a", "target": "x"}]
    assert [(row.file, row.line) for row in examples.skipped.first] == [(english, 2), (german, 3)]


def test_parallel_files_of_different_length(tmp_path):
    english, german = write(tmp_path / "t.en", "a\nb\nc\n"), write(tmp_path / "t.de", "x\ny")
    for bad_rows in ("error", "skip"):
        with pytest.raises(DataError, match=r"t\.en has 3 lines, .*t\.de has 2 lines"):
            list(read([english, german], bad_rows=bad_rows))


def test_windows_files(tmp_path):
    assert list(read(write(tmp_path / "a.tsv", "a\tb\r\nc\td\r\n", "utf-8-sig"))) == [
        {"source": "a", "target": "b"},
        {"source": "c", "target": "d"},
    ]
    named = write(tmp_path / "b.csv", "en,de\r\na,b\r\n", "utf-8-sig")
    assert list(read(named, columns=NAMED)) == [{"source": "a", "target": "b"}]
    with pytest.raises(DataError, match=r"is UTF-16\. Convert it: iconv -f UTF-16 -t UTF-8 .*c\.tsv > .*\.utf8\.tsv"):
        read(write(tmp_path / "c.tsv", "a\tb\n", "utf-16"))


def test_what_cannot_be_read(tmp_path):
    path = write(tmp_path / "pairs.tsv", "a\tb\n")
    with pytest.raises(FileNotFoundError, match=r"no file .*pairs\.tvs.* Did you mean .*pairs\.tsv"):
        read(str(tmp_path / "pairs.tvs"))
    for name in ("tests.tsv", "valid.tsv", "other.tvs"):  # an equal suffix does not make a name similar
        with pytest.raises(FileNotFoundError) as raised:
            read(str(tmp_path / name))
        assert "Did you mean" not in str(raised.value)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        read(str(tmp_path / "nowhere" / "pairs.tsv"))
    for name in ("", ",", f"{path},"):
        with pytest.raises(DataError, match="A file name is empty"):
            read(name)
    plain = write(tmp_path / "t.en", "a\n")
    with pytest.raises(DataError, match="Join parallel text files"):
        read([path, plain])
    with pytest.raises(DataError, match="Give tables as a list"):
        read(f"{path},{path}")
    with pytest.raises(DataError, match=r"t\.en is one text file, but source and target need one each"):
        read(plain)
    with pytest.raises(DataError, match=r"no reader for \.xlsx files"):
        read(write(tmp_path / "a.xlsx", "x"), "source")
    for name in ("empty.tsv", "empty.csv", "empty.jsonl", "empty.parquet", "empty.txt"):
        with pytest.raises(DataError, match=f"{name} is empty"):
            read(write(tmp_path / name, ""), "source")


def test_settings_are_checked(tmp_path):
    path = write(tmp_path / "a.tsv", "a\tb\n")
    with pytest.raises(DataError, match="bad_rows"):
        read(path, bad_rows="ignore")
    for wrong in ("source", {}, ["en", "de"], 3):
        with pytest.raises(DataError, match=r"data\.columns takes roles with their columns, as source="):
            read(path, columns=wrong)
    for wrong in (-1, True, 1.5, None, [], ["a", -1], [["a"]]):
        with pytest.raises(DataError, match=r"data\.columns: 'source' takes the name of a column, its number .* list"):
            read(path, columns={"source": wrong, "target": 0})
    with pytest.raises(DataError, match=r"does not say which column is the source\. It has: sorce, target"):
        read(path, columns={"sorce": 0, "target": 1})


def test_special_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(DataError, match=r"pipe\.tsv is a pipe, not a file"):
        read(tmp_path / "pipe.tsv")
    with pytest.raises(DataError, match="null is a device, not a file"):
        read(os.devnull, "source")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tmp_path)  # the paths of sockets are short
        try:
            server.bind("socket.txt")
        finally:
            os.chdir(here)
        with pytest.raises(DataError, match=r"socket\.txt is a socket, not a file"):
            read(tmp_path / "socket.txt", "source")


def test_files_are_streamed(tmp_path):
    path = write(tmp_path / "a.tsv", "a\tb\n" * 1000 + "bad\n")
    assert len(list(islice(read(path), 999))) == 999  # does not reach the bad row


def test_lists_of_tables_follow_each_other_and_rows_know_where_they_stand(tmp_path):
    one, two = write(tmp_path / "a.tsv", "a\tb\n"), write(tmp_path / "b.tsv.gz", "c\td\ne\tf\n")
    examples = read([one, two])
    assert [(file, line) for file, line, _ in examples.located()] == [(one, 1), (two, 1), (two, 2)]


def test_fingerprints_change_with_the_data(tmp_path):
    path = write(tmp_path / "a.tsv", "a\tb\n")
    before = read(path).fingerprint()
    assert read(path).fingerprint() == before
    assert read(path, columns={"source": 1, "target": 0}).fingerprint() != before
    write(tmp_path / "a.tsv", "a\tb\nc\td\n")
    assert read(path).fingerprint() != before
    rows = [{"x": np.zeros(5000)}, {"x": np.zeros(5000)}]
    same = read([{"x": np.zeros(5000)}, {"x": np.zeros(5000)}], "x", field=Raw).fingerprint()
    assert read(rows, "x", field=Raw).fingerprint() == same
    rows[1]["x"][2500] = 1.0  # which `repr` would not show
    assert read(rows, "x", field=Raw).fingerprint() != same


def test_absolute_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "a.de", "b,c.en"):
        write(tmp_path / name, "x\n")
    (tmp_path / "folder").mkdir()
    for name, wanted in [
        ("pairs.tsv", f"{tmp_path}/pairs.tsv"),
        ("a.en,a.de", f"{tmp_path}/a.en,{tmp_path}/a.de"),
        ("b,c.en", f"{tmp_path}/b,c.en"),
        ("folder", f"{tmp_path}/folder"),
        ("hf:folder:train", f"hf:{tmp_path}/folder:train"),
        ("hf:some/dataset:train", "hf:some/dataset:train"),
        ("dates:train:7", "dates:train:7"),
        (["a.tsv", Path("b.tsv")], [f"{tmp_path}/a.tsv", f"{tmp_path}/b.tsv"]),
    ]:
        assert absolute(name) == wanted
    with pytest.raises(FileNotFoundError, match=r"no file a\.ne.* Did you mean a\.en"):
        absolute("a.ne")


def test_all_wrong_columns_and_roles_are_named_at_once(tmp_path):
    path = write(tmp_path / "a.csv", "number,unit,clean\n7,kg,7 kg\n")
    with pytest.raises(
        DataError, match=r"no column 'numbr' or 'cleen'\. Did you mean 'number' for 'numbr', 'clean' for"
    ):
        read(path, columns={"source": ["numbr", "unit"], "target": "cleen"})
    with pytest.raises(DataError, match=r"Did you mean 'source' for 'sorce', 'target' for 'taget'\?"):
        read(path, columns={"sorce": "number", "taget": "clean"})
    objects = write(tmp_path / "a.jsonl", '{"number": "7", "clean": "7 kg"}\n')
    with pytest.raises(
        DataError, match=r"no column 'numbr' or 'cleen'\. Did you mean 'number' for 'numbr', 'clean' for"
    ):
        read(objects, columns={"source": "numbr", "target": "cleen"})
