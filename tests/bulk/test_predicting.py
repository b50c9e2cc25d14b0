"""Bulk prediction: every row once, with all its columns, whatever interrupts it."""

import csv
import json
import os
import subprocess
import sys
from itertools import islice

import pytest

import saccade
from saccade.bulk import Engine, engines, predict_files
from saccade.bulk.manifest import DONE, MANIFEST
from saccade.data.corpus import Corpus
from tests.bulk.conftest import ROWS, read_back

COLUMNS = Corpus(columns={"source": "text"})


@pytest.fixture(scope="session")
def model(run):
    return saccade.load(run)


@pytest.fixture(scope="session")
def expected(model) -> list[str]:
    return [answer.text for answer in model.predict([row["text"] for row in ROWS], max_length=5)]


def predict(model, files, output, **options):
    given = {"corpus": COLUMNS, "block_rows": 7, "max_length": 5, "say": lambda line: None, **options}
    return predict_files(model, files, output, **given)


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv", "tsv"])
def test_every_row_once_with_all_its_columns(model, tables, expected, suffix, tmp_path) -> None:
    done = predict(model, tables[suffix], tmp_path / "out")
    assert (done.blocks, done.rows, done.skipped) == (9, 53, 0)  # 23 and 30 rows in blocks of 7
    rows = read_back(tmp_path / "out")
    assert [row["answer"] for row in rows] == expected
    assert [int(row["id"]) for row in rows] == list(range(53))
    assert [row["text"] for row in rows] == [row["text"] for row in ROWS]
    if suffix in ("parquet", "jsonl"):
        assert [row["tags"] for row in rows] == [row["tags"] for row in ROWS]
        assert all(isinstance(row["score"], float) for row in rows)
    elif suffix == "csv":
        assert {row["note"] for row in rows} == {'one,\n"two"'}


class Dies(Engine):
    """Works on two blocks, and leaves half of a third."""

    def run(self, job, blocks):
        for block in blocks[:2]:
            yield job.run(block)
        (job.output / ".part-000002.jsonl.half").write_text("{")
        raise KeyboardInterrupt


def test_a_second_call_does_only_what_is_missing(model, tables, expected, tmp_path, monkeypatch) -> None:
    out, said = tmp_path / "out", []
    monkeypatch.setitem(engines._members, "dies", Dies)
    with pytest.raises(KeyboardInterrupt):
        predict(model, tables["jsonl"], out, engine="dies")
    first = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert len(first) == 2
    with open(out / DONE, "a") as file:
        file.write('{"block": 2, "ro')  # cut off by a crash
    done = predict(model, tables["jsonl"], out, say=said.append)
    assert "2 of 9 blocks" in said[0]
    assert len(said) == 1 + 7
    assert done.rows == 53
    assert [row["answer"] for row in read_back(out)] == expected
    assert {name: (out / name).stat().st_mtime_ns for name in first} == first
    assert not list(out.glob(".part-*"))
    assert predict(model, tables["jsonl"], out) == done, "nothing is left to do"


def test_a_damaged_or_missing_file_is_made_again(model, tables, expected, tmp_path) -> None:
    out = tmp_path / "out"
    predict(model, tables["csv"], out)
    (out / "part-000001.csv").write_text("id,te")
    (out / "part-000004.csv").unlink()
    predict(model, tables["csv"], out)
    assert [row["answer"] for row in read_back(out)] == expected


def test_another_prediction_in_the_same_folder_is_refused(model, tables, tmp_path) -> None:
    out = tmp_path / "out"
    predict(model, tables["jsonl"], out)
    for change, named in (
        ({"max_length": 4}, "max_length was 5, now 4"),
        ({"block_rows": 8}, "block_rows was 7, now 8"),
        ({"corpus": Corpus(columns={"source": "text"}, bad_rows="skip")}, "bad_rows was 'error', now 'skip'"),
    ):
        with pytest.raises(FileExistsError, match=named):
            predict(model, tables["jsonl"], out, **change)
    with pytest.raises(FileExistsError, match="another data"):
        predict(model, tables["jsonl"][:1], out)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"contains notes.txt"):
        predict(model, tables["jsonl"], tmp_path / "mine")


def test_a_damaged_manifest_is_named(model, tables, tmp_path) -> None:
    out = tmp_path / "out"
    predict(model, tables["jsonl"], out)
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["blocks"][3] = [0, 1]
    (out / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(OSError, match=r"blocks\[3\] must have four values"):
        predict(model, tables["jsonl"], out)


def test_bad_rows_stop_it_or_are_counted(model, tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps({"text": row["text"]}) for row in ROWS[:20]]
    lines[3], lines[9], lines[11] = "{", json.dumps({"text": 1.5}), json.dumps({"text": ""})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"rows.jsonl, line 4: not JSON"):
        predict(model, [str(path)], tmp_path / "strict", block_rows=3)
    assert len(read_back(tmp_path / "strict")) == 3, "what came before is kept"
    skip = Corpus(columns={"source": "text"}, bad_rows="skip")
    done = predict(model, [str(path)], tmp_path / "out", corpus=skip, block_rows=3)
    assert (done.rows, done.skipped) == (18, 2)
    assert ["line 4" in done.bad[0], "line 10" in done.bad[1]] == [True, True]
    rows = read_back(tmp_path / "out")
    assert len(rows) == 18
    assert [row["answer"] for row in rows if not row["text"]] == [""]


def test_a_column_of_the_same_name_needs_a_prefix(model, tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "ba su", "answer": "mine"}) + "\n")
    with pytest.raises(ValueError, match="already has a column 'answer': rename"):
        predict(model, [str(path)], tmp_path / "out")
    predict(model, [str(path)], tmp_path / "other", column_prefix="model_")
    (row,) = read_back(tmp_path / "other")
    assert row["answer"] == "mine"
    assert isinstance(row["model_answer"], str)


def test_several_answers_are_kept_as_details(model, tables, tmp_path) -> None:
    with pytest.raises(ValueError, match="--details"):
        predict(model, tables["jsonl"], tmp_path / "out", nbest=2, beam=2)
    predict(model, tables["parquet"], tmp_path / "more", nbest=2, beam=2, details=True)
    rows = read_back(tmp_path / "more")
    assert all(len(json.loads(row["details"])["nbest"]) == 2 for row in rows)


def test_formats_are_not_mixed(model, tables, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"one format.*\.jsonl and \.parquet"):
        predict(model, [tables["jsonl"][0], tables["parquet"][0]], tmp_path / "out")
    with pytest.raises(ValueError, match="twice"):
        predict(model, tables["jsonl"] * 2, tmp_path / "out")
    with pytest.raises(ValueError, match=r"--data takes .*got .*\.txt"):
        predict(model, ["a.txt"], tmp_path / "out")


def test_the_command(run, call, tables, expected, tmp_path) -> None:
    first, second = tables["csv"]
    options = ["--columns", "source=text", "--max-length", "5", "--output", str(tmp_path / "out"), "--block-rows", "10"]
    code, _, err = call("predict", run, "--data", first, second, *options)
    assert code == 0, err
    assert "53 answers in 6 files" in err
    assert [row["answer"] for row in read_back(tmp_path / "out")] == expected
    code, _, err = call("predict", run, "--data", str(tmp_path / "*.nothing"), *options)
    assert code == 2
    assert "no file like" in err
    assert call("predict", run, "--data", first)[0] == 2
    assert call("predict", run, "--engine", "ray", "--input", "su")[0] == 2


MEASURE = """
import resource, sys
import saccade
from saccade.bulk import predict_files
from saccade.data.corpus import Corpus

run, small, large, output = sys.argv[1:]
model = saccade.load(run)
corpus = Corpus(columns={"source": "text"})
predict_files(model, [small], output + "/small", corpus=corpus, max_length=2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
predict_files(model, [large], output + "/large", corpus=corpus, max_length=2, block_rows=500)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_memory_is_bounded_by_neither_file_nor_block(run, suffix, tmp_path) -> None:
    import pyarrow
    from pyarrow import parquet

    def write(name: str, count: int) -> str:
        path = tmp_path / f"{name}.{suffix}"
        rows = ({"text": ROWS[n % 53]["text"], "payload": os.urandom(200_000).hex()} for n in range(count))
        if suffix == "parquet":
            schema = pyarrow.schema([("text", pyarrow.string()), ("payload", pyarrow.string())])
            with parquet.ParquetWriter(path, schema, compression="none") as writer:
                while some := list(islice(rows, 50)):
                    writer.write_table(pyarrow.Table.from_pylist(some, schema))
        else:
            with open(path, "w") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        return str(path)

    small, large = write("small", 3), write("large", 1500)
    command = [sys.executable, "-c", MEASURE, run, small, large, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, text=True, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    size = os.path.getsize(large)
    assert size > 600e6
    assert int(done.stdout) < size / 2, f"{int(done.stdout):,} bytes for a file of {size:,}"
    assert sum(path.stat().st_size for path in (tmp_path / "large").glob("part-*")) > size * 0.99


def test_the_prefix_of_an_answer_is_not_that_of_a_column(run, call, tables, tmp_path) -> None:
    options = ["--columns", "source=text", "--max-length", "5", "--prefix", "im", "--column-prefix", "our_"]
    code, _, err = call("predict", run, "--data", tables["csv"][0], *options, "--output", str(tmp_path / "out"))
    assert code == 0, err
    with next((tmp_path / "out").glob("*.csv")).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["our_answer"].startswith("im") for row in rows)
    assert float(rows[0]["our_score"]) < 0
