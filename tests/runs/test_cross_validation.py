"""Cross-validation: a run for each fold, kept, resumed and summed up."""

import json
import statistics

import pytest

import saccade
from saccade.runs import cross_validation
from tests.tasks.test_classification import films

SMALL = {
    "task": {"class": "classification", "metrics": ["accuracy", "macro_f1"]},
    "model": {"class": "pooling", "embedding_dim": 7, "hidden_dim": 5, "encoder": "embedding"},
    "trainer": {"max_steps": 12, "learning_rate": 3e-2, "batch_tokens": 300, "device": "cpu"},
}
DATA = [{"text": text, "label": label} for text, label in films(101, 1)]


def validate(folder, data=DATA, folds=3, **changes):
    return saccade.cross_validate(data=data, folds=folds, output=folder, **{**SMALL, **changes})


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return validate(tmp_path_factory.mktemp("runs") / "cv")


def test_every_example_is_tested_once_by_a_run_that_did_not_see_it(found):
    assert sum(fold.examples for fold in found.folds) == 101
    for number, fold in enumerate(found.folds):
        run = saccade.load(fold.folder)
        assert fold.folder.name == f"fold-{number}"
        assert (run.plan.data.folds, run.plan.data.fold) == (3, str(number))
        noted = json.loads((fold.folder / "provenance.json").read_text())
        assert noted["train"] + noted["valid"] == 101 - fold.examples


def test_the_summary(found):
    accuracies = [fold.figures["accuracy"].value for fold in found.folds]
    assert found.mean["accuracy"] == pytest.approx(sum(accuracies) / 3)
    assert found.deviation["accuracy"] == pytest.approx(statistics.stdev(accuracies))
    right = sum(fold.examples * fold.figures["accuracy"].value for fold in found.folds) / 101
    assert found.pooled["accuracy"].value == pytest.approx(right)
    written = json.loads((found.folder / "cross-validation.json").read_text())
    assert [fold["figures"]["accuracy"] for fold in written["folds"]] == accuracies
    assert written["pooled"]["accuracy"] == found.pooled["accuracy"].value
    assert sum(map(sum, written["tables"]["confusion"]["rows"].values())) == 101
    card = (found.folder / "README.md").read_text()
    assert f"| mean |  | {found.mean['accuracy']:.2f} |" in card


def test_finished_folds_are_kept_and_an_interrupted_one_is_resumed(tmp_path, found, monkeypatch):
    trained = []
    original = cross_validation.train

    def interrupted(*arguments, **options):
        if len(trained) == 1:
            trained.append("stopped")
            options["overrides"] = {"trainer.max_steps": 4}
            original(*arguments, **options)
            run = options["output"]  # as a crash leaves it: a checkpoint, and no model
            for name in ("model.safetensors", "checksums.json", "README.md"):
                (run / name).unlink()
            config = (run / "config.yaml").read_text()
            (run / "config.yaml").write_text(config.replace("max_steps: 4", "max_steps: 12"))
            raise KeyboardInterrupt
        trained.append("resumed" if "resume" in options else "new")
        return original(*arguments, **options)

    monkeypatch.setattr(cross_validation, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        validate(tmp_path / "cv")
    partial = json.loads((tmp_path / "cv" / "cross-validation.json").read_text())
    assert len(partial["folds"]) == 1
    again = validate(tmp_path / "cv")
    assert trained == ["new", "stopped", "resumed", "new"]
    assert again.pooled == found.pooled
    assert [fold.figures for fold in again.folds] == [fold.figures for fold in found.folds]
    assert validate(tmp_path / "cv").pooled == found.pooled
    assert len(trained) == 4  # nothing is trained any more
    with pytest.raises(ValueError, match=r"fold-0 was trained with trainer\.max_steps 12, not 13"):
        validate(tmp_path / "cv", trainer={**SMALL["trainer"], "max_steps": 13})
    with pytest.raises(ValueError, match="contains the folds of other data"):
        validate(tmp_path / "cv", data=DATA[1:])


def test_folds_of_a_column(tmp_path, capsys):
    rows = [{**example, "part": "one" if number < 70 else "two"} for number, example in enumerate(DATA)]
    rows[80]["text"] = rows[0]["text"]
    found = validate(tmp_path / "cv", data=rows, folds="part")
    assert [(fold.name, fold.examples) for fold in found.folds] == [("one", 70), ("two", 31)]
    assert "WARNING: 1 inputs occur in more than one fold" in capsys.readouterr().err


def test_a_label_of_a_single_fold_counts_as_wrong(tmp_path):
    found = validate(tmp_path / "cv", data=[*DATA, {"text": "odd one out", "label": "odd"}])
    confusion = found.tables[0]
    assert confusion.rows["odd"][confusion.columns.index("odd")] == 0
    assert sum(confusion.rows["odd"]) == 1


def test_wrong_use(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"data\.train is missing"):
        validate(tmp_path / "cv", data=None)
    with pytest.raises(ValueError, match="2 or more"):
        validate(tmp_path / "cv", folds=1)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"contains more than a cross-validation \(notes.txt\)"):
        validate(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="runs in one process"):
        validate(tmp_path / "cv")
