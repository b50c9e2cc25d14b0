"""The corpora of the reproduction in their own forms, and its command at toy scale."""

import csv
import gzip
import io
import json
import zipfile

import pytest

from tests.reproductions.scripts import ROOT, script

copying = script("copying")
CITIES = ["austin", "boise", "dover", "juneau", "salem", "salt lake city"]


def packed(path, text):
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    splits = ["train"] * 4 + ["dev", "test"]
    questions = [
        {"question-split": split, "text": "how big is city0", "variables": {"city0": city}}
        for split, city in zip(splits * 2, CITIES * 2, strict=True)
    ]
    query = {
        "sql": ['SELECT A.SIZE FROM CITY AS A WHERE A.NAME = "city0" AND A.KIND = kind0 ;', "another"],
        "variables": [{"name": "city0", "example": "x"}, {"name": "kind0", "example": "7"}],
        "sentences": questions,
    }
    for name in ("geography", "advising"):
        packed(folder / "text2sql" / f"{name}.json.gz", json.dumps([query]))
    packed(folder / "django" / "all.anno.gz", "call os.path with string 'a-b'.\n" * 18_805)
    packed(folder / "django" / "all.code.gz", "  os . path ( 'a-b' )\n" * 18_805)
    (folder / "e2e-nlg").mkdir()
    with zipfile.ZipFile(folder / "e2e-nlg" / "e2e-dataset.zip", "w") as archive:
        for name in ("trainset", "devset", "testset_w_refs"):
            file = io.StringIO()
            csv.writer(file).writerows(
                [["mr", "ref"], *(["name[Cocum], food[Thai]", f"Cocum serves {kind}."] for kind in ("Thai", "food"))]
            )
            archive.writestr(f"e2e-dataset/{name}.csv", file.getvalue())
    for name in ("train", "dev", "test"):
        mails = [{"body": f"Please read\nthe report {number}.", "subject": f"Report {number}"} for number in range(9)]
        packed(folder / "aeslc" / f"{name}.jsonl.gz", "".join(json.dumps(mail) + "\n" for mail in mails))
    return folder


def test_values_are_filled_into_questions_and_queries(data):
    splits = copying.CORPORA["geography"].read(data)
    assert len(splits.train) == 8
    assert splits.test[0]["source"] == "how big is salt lake city"
    assert splits.test[0]["target"].endswith('WHERE A.NAME = " salt lake city " AND A.KIND = 7 ;')


def test_code_has_the_usual_split(data):
    splits = copying.CORPORA["django"].read(data)
    assert [len(each) for each in splits] == [16_000, 1000, 1805]
    assert splits.train[0] == ("call os . path with string 'a-b' .", "os . path ( 'a-b' )")


def test_equal_meanings_have_several_references(data):
    (only,) = copying.CORPORA["e2e"].read(data).test
    assert only == {"source": "name : Cocum, food : Thai", "target": ["Cocum serves Thai.", "Cocum serves food."]}


def test_every_corpus_is_measured_once(data, tmp_path, monkeypatch, capsys):
    output, runs = tmp_path / "results", tmp_path / "runs"
    for name in ("e2e", "django"):
        corpus = copying.CORPORA[name]
        small = corpus._replace(tokeniser={**corpus.tokeniser, "min_frequency": 2})
        monkeypatch.setitem(copying.CORPORA, name, small)
    django = copying.CORPORA["django"].read(data)
    few = copying.Splits(django.train[:20], django.valid[:3], django.test[:3])
    monkeypatch.setitem(copying.CORPORA, "django", copying.CORPORA["django"]._replace(read=lambda folder: few))
    command = ["--data", str(data), "--output", str(output), "--runs", str(runs), "--steps", "2", "--size", "8"]
    assert copying.main([*command, "--tests", "2"]) == 0
    found = json.loads((output / "results.json").read_text())
    for name in copying.CORPORA:
        assert found[name]["yes"]["parameters"] > found[name]["no"]["parameters"]
        assert found[name]["yes"]["unknown"] == found[name]["no"]["unknown"]
    assert 6 <= found["geography"]["no"]["unknown"] <= found["geography"]["no"]["words"]  # two cities of three words
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 2 + 2 * len(copying.CORPORA)
    capsys.readouterr()
    assert copying.main(command) == 0  # everything is there already
    assert "Model:" not in capsys.readouterr().err


def test_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("COPYING", raising=False)
    assert copying.main([]) == 0
    assert "--data" in capsys.readouterr().err
    assert copying.main(["--data", str(tmp_path), "--output", str(tmp_path / "results")]) == 0
    assert "there is no" in capsys.readouterr().err


def test_copying_finds_unknown_words_in_the_committed_figures():
    committed = ROOT / "copying" / "results" / "results.json"
    if not committed.is_file():
        pytest.skip("reproductions/copying has not been measured yet")
    found = json.loads(committed.read_text())
    for name in copying.CORPORA:
        if "yes" in found.get(name, {}):
            figure = "bleu" if name == "e2e" else "unknown_words"  # unknown words of E2E are not in its sources
            assert found[name]["yes"][figure] > found[name]["no"][figure]
