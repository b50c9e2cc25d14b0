"""Runs: trained from Python, saved, loaded, gone on with."""

import json
import random
import re
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

import saccade
from saccade.configuration import ConfigError, read_config
from saccade.data.errors import BadRow
from saccade.fields import Text
from saccade.models import RNNSearch
from saccade.selections import Sparsemax
from saccade.tasks import Generation
from saccade.training import read_metrics


def reversals(count: int, seed: int) -> list[tuple[str, str]]:
    letters = random.Random(seed)
    words = ["".join(letters.choices("abcdefg", k=letters.randint(1, 5))) for _ in range(count)]
    return [(word, word[::-1]) for word in words]


PAIRS = reversals(120, 3)
SMALL = {
    "task": partial(Generation, source=partial(Text, tokeniser="char"), metrics=["exact_match", "cer"]),
    "model": partial(RNNSearch, embedding_dim=8, hidden_dim=12, cell="fast"),
}


def train(output, *, steps=4, data=None, **arguments):
    trainer = {"max_steps": steps, "batch_tokens": 120, "validate_every": 2, **arguments.pop("trainer", {})}
    return saccade.train(**SMALL, data=data or {"train": PAIRS}, trainer=trainer, output=output, **arguments)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs") / "small")


def test_the_folder_holds_everything_and_no_pickle(run) -> None:
    names = {path.name for path in run.folder.iterdir()}
    assert names >= {"config.yaml", "task", "model.safetensors", "metrics.jsonl", "checkpoints", "README.md"}
    suffixes = {path.suffix for path in run.folder.rglob("*") if path.is_file()}
    assert suffixes <= {".yaml", ".json", ".jsonl", ".safetensors", ".md", ".arrow"}


def test_loaded_predicts_the_same(run) -> None:
    loaded = saccade.load(run.folder)
    texts = ["abc", "gfedc", "a"]
    for a, b in zip(run.predict(texts, beam=3), loaded.predict(texts, beam=3), strict=True):
        assert (a.text, a.score) == (b.text, b.score)
        assert torch.equal(a.weights, b.weights)
    assert not loaded.model.training
    placed = saccade.load(run.folder, device="meta").model
    assert {parameter.device.type for parameter in placed.parameters()} == {"meta"}


def test_the_saved_configuration_is_complete(run) -> None:
    config = read_config(run.folder / "config.yaml")
    assert config["model"]["class"] == "rnnsearch"
    assert config["model"]["hidden_dim"] == 12
    assert config["model"]["score"] == "additive"
    assert config["task"]["source"]["tokeniser"] == "char"
    assert config["trainer"]["learning_rate"] == 0.001


def test_the_card_says_what_it_is(run) -> None:
    card = (run.folder / "README.md").read_text()
    parameters = sum(p.numel() for p in run.model.parameters())
    for part in (
        "RNNSearch",
        f"{parameters:,} parameters",
        "120 examples in memory",
        "held out",
        "exact_match",
        "torch",
    ):
        assert part in card
    assert f"After {run.result.step} steps" in card
    assert "Predicted by beam search (beam 5, length penalty 0.6)." in card


def test_the_card_says_that_validations_were_greedy(tmp_path) -> None:
    trained = train(tmp_path / "run", steps=1, trainer={"validate_options": {"beam": 1}, "validate_examples": 2})
    card = (trained.folder / "README.md").read_text()
    usual = "`saccade evaluate` and `predict` use beam search (beam 5, length penalty 0.6) by default."
    assert f"Predicted by greedy search (beam 1) for the first 2 of these examples; {usual}" in card


def test_evaluation_by_length_and_beam(run) -> None:
    found = run.evaluate(reversals(30, 5), by=2, vary={"beam": [1, 3]}, beam=3)
    assert found.examples == 30
    assert set(found.figures) == {"exact_match", "cer"}
    assert sum(b.examples for b in found.by_length) == 30
    assert [(b.low, b.high) for b in found.by_length] == [(1, 2), (3, 4), (5, 6)]
    assert found.varied["beam=3"] == found.figures
    assert list(found.varied) == ["beam=1", "beam=3"]
    mean = sum(b.examples * b.figures["exact_match"].value for b in found.by_length) / 30
    assert found.figures["exact_match"].value == pytest.approx(mean)


def test_it_learns(tmp_path) -> None:
    """Strings backwards, almost all of them, after some seconds."""
    trainer = {"learning_rate": 1e-2, "validate_every": 100, "batch_tokens": 600}
    model = partial(RNNSearch, embedding_dim=16, hidden_dim=32, cell="fast", selection=Sparsemax)
    run = saccade.train(
        task=SMALL["task"],
        model=model,
        data={"train": reversals(2000, 1), "held_out": 0.0, "valid": reversals(20, 2)},
        trainer={"max_steps": 200, **trainer},
        output=tmp_path / "run",
    )
    assert run.evaluate(reversals(100, 9), beam=1).figures["exact_match"].value >= 95


def test_resumed_equals_uninterrupted(tmp_path) -> None:
    whole = train(tmp_path / "whole", steps=8)
    train(tmp_path / "parts", steps=4)
    resumed = saccade.train(resume=tmp_path / "parts", data={"train": PAIRS}, overrides={"trainer.max_steps": 8})
    losses = [
        [(r["step"], r["loss"]) for r in read_metrics(folder / "metrics.jsonl") if r["split"] == "train"]
        for folder in (whole.folder, resumed.folder)
    ]
    assert losses[0] == losses[1]
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_files_are_stored_as_arrow_and_long_ones_left_out(tmp_path) -> None:
    pairs = [*PAIRS, ("abcdefg" * 5, "g")]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps({"in": a, "out": b}) + "\n" for a, b in pairs))
    run = saccade.train(
        task=partial(Generation, source=partial(Text, tokeniser="char", max_length=20), metrics=["exact_match"]),
        model=SMALL["model"],
        data={"train": str(tmp_path / "pairs.jsonl"), "columns": {"source": "in", "target": "out"}},
        trainer={"max_steps": 2},
        output=tmp_path / "run",
    )
    assert (run.folder / "data" / "train.arrow").is_file()
    card = (run.folder / "README.md").read_text()
    assert "Left out: 1 (source longer than max_length=20 tokens)." in card
    resumed = saccade.train(resume=run.folder, overrides={"trainer.max_steps": 3})
    assert resumed.result.step == 3


def test_the_card_of_a_resumed_run_tells_the_whole_story(tmp_path, monkeypatch) -> None:
    rows = [f"{a}\t{b}" for a, b in [*PAIRS, ("abcdefg" * 5, "g"), ("ggg" * 9, "f")]]
    (tmp_path / "pairs.tsv").write_text("\n".join([*rows, "alone", "a\t"]) + "\n")
    (tmp_path / "valid.tsv").write_text("ab\tba\nabc\tcba\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["saccade", "train", "first"])
    task = partial(Generation, source=partial(Text, tokeniser="char", max_length=20), metrics=["exact_match"])
    data = {"train": "pairs.tsv", "valid": "valid.tsv", "bad_rows": "skip"}
    saccade.train(task=task, model=SMALL["model"], data=data, trainer={"max_steps": 2}, output="run")
    for steps in (3, 4):
        monkeypatch.setattr("sys.argv", ["saccade", "train", "--resume", "run", f"--trainer.max_steps={steps}"])
        resumed = saccade.train(resume="run", overrides={"trainer.max_steps": steps})
    card = Path("run/README.md").read_text()
    assert "Left out: 2 (source longer than max_length=20 tokens), 2 bad rows." in card
    assert "| training | `pairs.tsv` | 120 |" in card
    assert "| validation | `valid.tsv` | 2 |" in card
    begun, *again = [line for line in card.splitlines() if line.startswith("saccade train")]
    assert begun == "saccade train first"
    assert [line.rpartition("=")[2] for line in again] == ["3", "4"]
    assert f"After {resumed.result.step} steps" in card
    assert resumed.result.step == 4
    assert "| torch |" in card


def test_versions_that_changed_are_both_on_the_card(tmp_path, monkeypatch) -> None:
    train(tmp_path / "run", steps=1)
    monkeypatch.setattr("saccade.runs.provenance.LIBRARIES", ("numpy",))
    saccade.train(resume=tmp_path / "run", data={"train": PAIRS}, overrides={"trainer.max_steps": 2})
    card = (tmp_path / "run" / "README.md").read_text()
    assert "when last resumed" in card
    assert re.search(r"^\| torch \| \S+ \|  \|$", card, flags=re.MULTILINE)
    assert re.search(r"^\| numpy \|  \| \S+ \|$", card, flags=re.MULTILINE)


@pytest.mark.parametrize("interrupted", ["saccade.runs.training.seed_everything", "saccade.training.trainer.Loop.run"])
def test_what_was_left_out_is_known_after_a_second_start(interrupted, tmp_path, monkeypatch) -> None:
    rows = [f"{a}\t{b}\n" for a, b in PAIRS]
    (tmp_path / "pairs.tsv").write_text("".join([*rows, "abcdefg\tg\n", "alone\n"]))
    task = partial(Generation, source=partial(Text, tokeniser="char", max_length=6), metrics=["exact_match"])
    data = {"train": str(tmp_path / "pairs.tsv"), "held_out": 0.0, "bad_rows": "skip"}
    again = partial(saccade.train, task=task, model=SMALL["model"], data=data, trainer={"max_steps": 2})

    def stop(*_, **__) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as stopping:
        stopping.setattr(interrupted, stop)
        with pytest.raises(KeyboardInterrupt):
            again(output=tmp_path / "run")
    again(output=tmp_path / "run")
    card = (tmp_path / "run" / "README.md").read_text()
    assert "Left out: 1 (source longer than max_length=6 tokens), 1 bad rows." in card


def test_columns_that_leave_a_role_out_are_refused(tmp_path) -> None:
    (tmp_path / "pairs.tsv").write_text("in\tout\nab\tba\n")
    for columns, problem in (
        ({"source": "in"}, "does not say which column is the target"),
        ({"sorce": "in", "target": "out"}, "generation reads no 'sorce'. Did you mean 'source'?"),
    ):
        data = {"train": str(tmp_path / "pairs.tsv"), "columns": columns}
        with pytest.raises(ValueError, match=re.escape(problem)):
            train(tmp_path / "run", data=data)
    assert not (tmp_path / "run").exists()


def test_data_may_be_a_path_or_pairs_alone(tmp_path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    for number, data in enumerate([path, str(path), {"train": path, "valid": [path]}, PAIRS]):
        assert train(tmp_path / str(number), steps=1, data=data).result.step == 1
    assert train(tmp_path / "evaluated", steps=1, data=path).evaluate(path).examples == len(PAIRS)


def test_examples_in_memory_are_read_as_carefully_as_files(tmp_path, capsys) -> None:
    for row, message in [
        (("a", " "), "line 121: the target is empty"),
        (("a",), "tuple"),
        ({"source": "a"}, "'target'"),
    ]:
        with pytest.raises(BadRow, match=message):
            train(tmp_path / "run", data=[*PAIRS, row])
    assert not (tmp_path / "run").exists()
    train(tmp_path / "run", steps=1, data={"train": [*PAIRS, ("", "a")], "bad_rows": "skip"})
    assert "Skipped 1 bad row" in capsys.readouterr().err


def test_the_readme_trains(tmp_path, monkeypatch) -> None:
    readme = (Path(__file__).parent.parent.parent / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE)
    (block,) = [block for block in blocks if "saccade.train" in block]
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert names["answer"].attention.keys == ["a", "b", "c", "</s>"]
    assert [p.text for p in names["run"].predict(["abc", "bcde", "dab"])] == ["cba", "edcb", "bad"]
    assert names["figures"]["exact_match"].value == 100
    assert "exact_match" in names["figures"]


def test_wrong_use_is_named_before_any_work(tmp_path, run) -> None:
    with pytest.raises(ConfigError, match=r"data\.train is missing"):
        saccade.train("translation/rnnsearch", output=tmp_path / "a")
    with pytest.raises(ConfigError, match="name a folder for the run"):
        saccade.train("translation/rnnsearch", data={"train": PAIRS})
    with pytest.raises(ConfigError, match="leave config and output out"):
        saccade.train("translation/rnnsearch", resume=run.folder)
    with pytest.raises(FileExistsError, match="saccade train --resume"):
        train(run.folder)
    with pytest.raises(ValueError, match="patience needs validation data"):
        train(tmp_path / "a", data={"train": PAIRS, "held_out": 0.0}, trainer={"patience": 3})
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        saccade.load(tmp_path / "nowhere")
    with pytest.raises(TypeError, match=r"write \['abc'\]"):
        run.predict("abc")
    assert not (tmp_path / "a").exists()


OWN = """
from saccade.models import RNNSearch

class Mine(RNNSearch):
    pass
"""


def test_classes_of_others_are_loaded_by_those_who_trust_them(tmp_path, monkeypatch) -> None:
    (tmp_path / "theirs_of_a_run.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = {"class": "theirs_of_a_run.Mine", "embedding_dim": 8, "hidden_dim": 12}
    trainer = {"max_steps": 1, "batch_tokens": 120}
    saccade.train(task=SMALL["task"], model=model, data=PAIRS, trainer=trainer, output="run")
    monkeypatch.delitem(sys.modules, "theirs_of_a_run")
    with pytest.raises(ConfigError, match=r"model: 'theirs_of_a_run\.Mine' is not a class that comes.*trust=True"):
        saccade.load("run")
    assert "theirs_of_a_run" not in sys.modules
    assert type(saccade.load("run", trust=True).model).__name__ == "Mine"
    saccade.train(resume="run", data=PAIRS, overrides={"trainer.max_steps": 2})
