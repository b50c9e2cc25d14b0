"""The data of a training: what is held out, and what can be validated on."""

import json
import os
from collections import Counter

import pytest

import saccade
from saccade.data.errors import BadRow, DataError
from saccade.data.storage import Stored, fingerprint_of
from saccade.runs.plan import Plan
from saccade.runs.preparation import prepare

TINY = {
    "task": {"class": "classification", "inputs": {"text": {"class": "text", "tokeniser": "word"}}},
    "model": {"class": "pooling", "embedding_dim": 4, "hidden_dim": 4},
}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def train(folder, *, task=TINY["task"], model=TINY["model"], **data):
    trainer = {"max_steps": 1, "device": "cpu"}
    return saccade.train(task=task, model=model, data=data, trainer=trainer, output=folder)


def test_a_label_whose_only_example_is_held_out_is_not_validated_on(tmp_path, capsys, monkeypatch):
    rows = [{"text": f"words {number}", "label": "even" if number % 2 else "odd"} for number in range(30)]
    rows += [{"text": f"rare {number}", "label": f"rare {number}"} for number in range(30)]
    run = train(tmp_path / "in proportion", train=write(tmp_path / "all.jsonl", rows), held_out=0.4)
    assert {row["label"] for row in rows} == set(run.task.label.names)
    capsys.readouterr()
    monkeypatch.setattr("saccade.tasks.Classification.strata", lambda *_: [])
    run = train(tmp_path / "run", train=write(tmp_path / "all.jsonl", rows), held_out=0.4)
    said = capsys.readouterr().err
    names = run.task.label.names
    lost = [row["label"] for row in rows if row["label"] not in names]
    assert lost, "this test needs labels that only held-out examples have"
    assert f"WARNING: {len(lost)} of the held-out examples cannot be validated on: no training example has" in said
    resumed = saccade.train(resume=tmp_path / "run", overrides={"trainer.max_steps": 2})
    assert resumed.result.step == 2


def test_labels_keep_their_shares_in_what_is_held_out(tmp_path):
    rows = [{"text": f"words {number}", "label": "no" if number % 10 else "yes"} for number in range(200)]
    run = train(tmp_path / "run", train=write(tmp_path / "all.jsonl", rows), held_out=0.2)
    assert run.task.label.counts == {"no": 144, "yes": 16}
    held = list(Stored(tmp_path / "run" / "data" / "valid.arrow"))
    assert Counter(example["label"] for example in held) == {"no": 36, "yes": 4}


def test_a_fold_is_not_trained_on(tmp_path):
    rows = [{"text": f"words {number}", "label": "no" if number % 5 else "yes"} for number in range(100)]
    path = write(tmp_path / "all.jsonl", rows)
    counts = Counter()
    for fold in range(4):
        run = train(tmp_path / f"run-{fold}", train=path, held_out=0.0, folds=4, fold=fold)
        counts += run.task.label.counts
        said = json.loads((run.folder / "provenance.json").read_text())
        assert said["train"] == 75
        assert said["sources"]["train"].endswith(f"all.jsonl without fold {fold} of 4")
    assert counts == {"no": 3 * 80, "yes": 3 * 20}


def test_a_column_may_name_the_folds(tmp_path):
    lines = ["part,label,text", *(f"{'ab'[n % 2]},{'x' if n < 9 else 'y'},words {n}" for n in range(20))]
    (tmp_path / "all.csv").write_text("\n".join(lines) + "\n")
    data = {"train": str(tmp_path / "all.csv"), "folds": "part", "held_out": 0.0}
    run = train(tmp_path / "run", **data, fold="b")
    assert run.task.label.counts == {"x": 5, "y": 5}
    with pytest.raises(ValueError, match=r"No example has the fold 'c'\. Choose from: a, b"):
        train(tmp_path / "none", **data, fold="c")
    with pytest.raises(ValueError, match=r"data\.fold is missing"):
        train(tmp_path / "none", **data)


def test_an_unknown_label_in_the_validation_file_is_named_with_its_line(tmp_path):
    rows = [{"text": f"words {number}", "label": "even" if number % 2 else "odd"} for number in range(6)]
    valid = write(tmp_path / "valid.jsonl", [*rows, {"text": "words", "label": "prime"}])
    with pytest.raises(BadRow, match=r"valid\.jsonl, line 7: the model does not know the label 'prime'"):
        train(tmp_path / "run", train=write(tmp_path / "train.jsonl", rows), valid=valid)


def test_held_out_values_that_arrow_cannot_hold_are_read_again_when_a_run_resumes(tmp_path):
    rows = [{"source": f"a {n}", "target": [f"b {n}", f"c {n}"] if n % 2 else f"b {n}"} for n in range(40)]
    task = {"class": "generation", "source": {"class": "text", "tokeniser": "char"}, "metrics": ["exact_match"]}
    model = {"class": "rnnsearch", "embedding_dim": 4, "hidden_dim": 4}
    run = train(tmp_path / "run", task=task, model=model, train=write(tmp_path / "all.jsonl", rows), held_out=0.3)
    assert fingerprint_of(tmp_path / "run" / "data" / "valid.arrow") == ""
    resumed = saccade.train(resume=tmp_path / "run", overrides={"trainer.max_steps": 2})
    assert (run.result.step, resumed.result.step) == (1, 2)


def test_only_the_main_process_changes_what_a_run_folder_keeps(tmp_path, monkeypatch):
    rows = [{"text": f"words {number}", "label": "even" if number % 2 else "odd"} for number in range(40)]
    data = {"train": write(tmp_path / "all.jsonl", rows)}
    found = {}
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        plan = Plan({**TINY, "data": data, "trainer": {"max_steps": 1}})
        found[rank] = prepare(plan, {}, tmp_path / rank, resume=False)
    assert list(found["0"].rows) == list(found["1"].rows)
    assert found["0"].provenance.train == found["1"].provenance.train == len(found["0"].rows)
    assert {path.name for path in (tmp_path / "0" / "data").iterdir()} == {
        "checksums.json",
        "train.arrow",
        "valid.arrow",
    }
    assert list((tmp_path / "1").iterdir()) == []


def test_a_figure_without_its_column_is_refused_before_training(tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"a {n}\tb {n}\n" for n in range(40)))
    text = {"class": "text", "tokeniser": "word"}
    task = {"class": "generation", "source": text, "metrics": ["exact_match", "aer"]}
    model = {"class": "rnnsearch", "embedding_dim": 3, "hidden_dim": 5}
    with pytest.raises(DataError, match="aer needs a column 'alignment': add it to the data, or leave aer out of the"):
        train(tmp_path / "run", task=task, model=model, train=str(pairs))
    assert not (tmp_path / "run" / "checkpoints").exists()
    pairs.write_text("".join(f"a {n}\tb {n}\t0-0 1-1\n" for n in range(40)))
    run = train(tmp_path / "linked", task=task, model=model, train=str(pairs))
    assert "aer" in (run.folder / "metrics.jsonl").read_text()
    assert (run.folder / "data" / "checksums.json").exists()


def test_data_that_changed_before_a_resumption_get_a_warning(tmp_path, capsys):
    rows = [{"text": f"words {number}", "label": "even" if number % 2 else "odd"} for number in range(40)]
    train(tmp_path / "run", train=write(tmp_path / "all.jsonl", rows))
    for steps, changed in ((2, False), (3, True)):
        if changed:
            rows[7]["label"] = "odd" if rows[7]["label"] == "even" else "even"
        write(tmp_path / "all.jsonl", rows)
        os.utime(tmp_path / "all.jsonl", ns=(steps, steps))
        capsys.readouterr()
        resumed = saccade.train(resume=tmp_path / "run", overrides={"trainer.max_steps": steps})
        assert resumed.result.step == steps
        said = capsys.readouterr().err
        assert "Reading" in said
        assert ("all.jsonl has changed since this training began, and is read again" in said) == changed


@pytest.mark.parametrize(("bad", "many"), [(1, False), (7, True)])
def test_many_skipped_rows_get_a_warning(tmp_path, capsys, bad, many):
    rows = [{"text": f"words {number}", "label": "even" if number % 2 else "odd"} for number in range(40)]
    train(
        tmp_path / "run",
        train=write(tmp_path / "all.jsonl", rows + [{"text": "", "label": "odd"}] * bad),
        bad_rows="skip",
    )
    said = capsys.readouterr().err
    assert f"skipped {bad} bad row" in said
    assert ("WARNING: 15% of the rows are skipped as bad." in said) == many
