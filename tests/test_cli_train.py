"""The commands that train and use a model, as a user calls them."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import saccade
from saccade.cli import main
from saccade.data.special import EOS
from saccade.tasks.generation.searching import search
from saccade.training import read_metrics

PNG = b"\x89PNG\r\n\x1a\n"
SMALL = [
    "--task.source.tokeniser=char",
    "--task.metrics=[exact_match, bleu]",
    "--model.embedding-dim=8",
    "--model.hidden_dim",
    "12",
    "--trainer.batch_tokens=120",
    "--trainer.validate_examples=5",
    "--trainer.max_epochs=null",
]


def call(capsys, *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(arguments)
    except SystemExit as leave:
        code = int(leave.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    letters = random.Random(7)
    words = ["".join(letters.choices("abcde", k=letters.randint(1, 6))) for _ in range(90)]
    (folder / "pairs.tsv").write_text("".join(f"{w}\t{w[::-1]}\n" for w in words[:70]))
    (folder / "test.tsv").write_text("".join(f"{w}\t{w[::-1]}\n" for w in words[70:]))
    (folder / "bad.tsv").write_text("ab\tba\nabc\nc\tc\n")
    return folder


@pytest.fixture(scope="module")
def run(work):
    trained = ["--data.train", str(work / "pairs.tsv"), "--output", str(work / "run"), "--trainer.max_steps=4"]
    assert main(["train", "configs/translation/rnnsearch.yaml", *trained, *SMALL]) == 0
    return str(work / "run")


def give(monkeypatch, text: str | bytes) -> None:
    raw = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))


def test_train_and_resume(work, run, capsys) -> None:
    assert (work / "run" / "model.safetensors").is_file()
    code, out, err = call(capsys, "train", "--resume", run, "--trainer.max_steps", "6")
    assert code == 0
    assert "Resuming after step 4" in err
    assert "Done after step 6 (max_steps=6)" in err
    usual = "`saccade evaluate` uses beam search (beam 5, length penalty 0.6)"
    assert f"Their validation (greedy search (beam 1), 4 examples; {usual}): loss" in err
    assert out.startswith(f"{run} is ready")
    steps = [r["step"] for r in read_metrics(work / "run" / "metrics.jsonl") if r["split"] == "train"]
    assert steps == [1, 2, 3, 4, 5, 6]


def test_resuming_what_has_ended_says_which_setting_ended_it(work, capsys) -> None:
    output = str(work / "ended")
    given = ["translation/rnnsearch", "--data.train", str(work / "pairs.tsv"), "--output", output, *SMALL]
    limits = ["--trainer.patience=1", "--trainer.metric=exact_match", "--trainer.validate_every=1"]
    code, _, err = call(capsys, "train", *given, *limits)
    assert code == 0
    ended = "(patience=1: no better exact_match in 1 validation)"
    assert ended in err
    again = err.partition("To continue: ")[2].partition("\n")[0]
    assert again.startswith(f"saccade train --resume {output} --trainer.patience 2")
    code, _, err = call(capsys, "train", "--resume", output)
    assert code == 0
    assert "Nothing was left to do" in err
    assert ended in err
    steps = len(read_metrics(work / "ended" / "metrics.jsonl"))
    code, _, err = call(capsys, *again.split()[1:])
    assert code == 0
    assert "Nothing" not in err
    assert len(read_metrics(work / "ended" / "metrics.jsonl")) > steps


def test_predict_gives_one_line_for_each(run, capsys, monkeypatch) -> None:
    give(monkeypatch, "abc\n\ned\r\n")
    code, out, err = call(capsys, "predict", run)
    assert (code, err) == (0, "Input 2 is empty, so its answer is empty too.\n")
    lines = out.split("\n")
    assert len(lines) == 4
    assert lines[1] == lines[3] == ""
    expected = saccade.load(run).predict(["abc", "", "ed"], beam=5)
    assert lines[:3] == [p.text for p in expected]


def test_predict_with_all_columns(run, capsys, monkeypatch) -> None:
    give(monkeypatch, "abc\ned\n")
    options = ["--nbest", "2", "--beam", "3", "--scores", "--alignments", "--subwords"]
    code, out, _ = call(capsys, "predict", run, *options)
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "2"]
    assert float(rows[0][2]) >= float(rows[1][2])
    for row in rows:
        assert [pair.split("-")[1] for pair in row[3].split()] == [str(i) for i in range(len(row[1]))]


def test_predict_as_json(run, capsys, monkeypatch) -> None:
    give(monkeypatch, "abc\n")
    code, out, _ = call(capsys, "predict", run, "--format", "jsonl", "--nbest=2", "--beam=2")
    found = json.loads(out)
    assert code == 0
    assert found["input"] == "abc"
    assert found["keys"] == ["a", "b", "c", "</s>"]
    assert len(found["nbest"]) == 2
    best = found["nbest"][0]
    assert best["answer"] == found["answer"]
    assert [len(row) for row in best["weights"]] == [4] * len(best["queries"])


def test_predict_draws(run, capsys, monkeypatch, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    give(monkeypatch, "abc\n")
    code, out, _ = call(capsys, "predict", run, "--draw", "--plot", str(tmp_path / "a.png"))
    assert code == 0
    assert any(line.strip() == "abc∎" for line in out.splitlines())
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_evaluate_prints_tables_with_signatures(work, run, capsys) -> None:
    data = str(work / "test.tsv")
    code, out, _ = call(capsys, "evaluate", run, "--data", data, "--by-length", "3", "--vary", "beam=1,2")
    assert code == 0
    searched = "Predicted by beam search (beam 5, length penalty 0.6); validation during training used greedy search"
    assert out.startswith(searched)
    assert "exact_match" in out
    assert "tok:13a" in out
    assert "20 examples" in out
    assert [line.split()[0] for line in out.splitlines() if line.strip().startswith(("1-3", "4-6"))] == ["1-3", "4-6"]


def test_evaluate_as_json_and_picture(work, run, capsys, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "lengths.png"
    options = ["--by-length", "3", "--plot", str(picture), "--json"]
    code, out, _ = call(capsys, "evaluate", run, "--data", str(work / "test.tsv"), *options)
    assert code == 0
    found = json.loads(out)
    assert set(found["figures"]) == set(found["signatures"]) == {"exact_match", "bleu"}
    assert sum(b["examples"] for b in found["by_length"]) == found["examples"] == 20
    assert picture.read_bytes().startswith(PNG)


def test_bad_rows_stop_or_are_skipped(work, capsys) -> None:
    arguments = [
        "train",
        "translation/rnnsearch",
        "--data.train",
        str(work / "bad.tsv"),
        "--trainer.max_steps=1",
        *SMALL,
    ]
    output = ["--output", str(work / "skipping")]
    code, _, err = call(capsys, *arguments, *output)
    assert code == 2
    assert "bad.tsv, line 2: 1 column instead of 2" in err
    assert not (work / "skipping").exists()
    valid = ["--data.valid", str(work / "test.tsv"), "--data.bad_rows", "skip"]
    code, _, err = call(capsys, *arguments, *output, *valid)
    assert code == 0
    assert "Skipped 1 bad row" in err


def endless(*given, **limits):
    """A search that never writes the end; its options come last."""
    return search(*given[:-1], replace(given[-1], forbidden=[EOS]), **limits)


def test_cut_predictions_and_skipped_rows_are_told(work, run, capsys, monkeypatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr("saccade.tasks.generation.answering.search", endless)
        arguments = ["--data", str(work / "test.tsv"), "--max-length", "1", "--json"]
        code, out, err = call(capsys, "evaluate", run, *arguments)
    found = json.loads(out)
    assert code == found["skipped"] == 0
    (remark,) = found["remarks"]
    assert remark.startswith("20 of 20 answers were cut at their maximum length")
    assert remark in err
    assert call(capsys, "evaluate", run, "--data", str(work / "bad.tsv"))[0] == 2
    skipping = saccade.load(run)
    skipping.plan.data.bad_rows = "skip"
    assert skipping.evaluate(str(work / "bad.tsv")).skipped == 1
    assert "bad.tsv, line 2" in capsys.readouterr().err
    give(monkeypatch, "abc\n")
    code, _, err = call(capsys, "predict", run, "--temperature", "0.5")
    assert code == 2
    assert "temperature only affects sampling: set sample as well" in err


def test_validate_and_copy(work, capsys, monkeypatch) -> None:
    monkeypatch.chdir(work)
    code, out, _ = call(capsys, "copy", "translation/transformer-sparsemax", "mine/my.yaml")
    assert code == 0
    assert "selection: sparsemax" in (work / "mine" / "my.yaml").read_text()
    code, out, _ = call(capsys, "validate", "mine/my.yaml", "--data.train", "pairs.tsv")
    assert code == 0
    assert "mine/my.yaml is valid: Transformer" in out
    assert call(capsys, "copy", "translation/cho", "mine/my.yaml")[0] == 2


@pytest.mark.parametrize(
    "parts",
    [
        ["--model", "{class: transformer, dim: 64}"],
        ["--model", "transformer", "--model.dim=64"],
        ["--model.dim", "64", "--model.class", "transformer"],
    ],
)
def test_parts_are_given_on_the_command_line(parts, capsys) -> None:
    more = ["--trainer.schedule", "{class: cosine, warmup: 100, steps: 900}", "--model.selection", "sparsemax"]
    code, out, err = call(capsys, "validate", "translation/rnnsearch", *parts, *more)
    assert (code, err) == (0, "")
    assert "Transformer" in out


@pytest.mark.parametrize("kind", ["models", "tasks", "configs"])
def test_list(kind, capsys) -> None:
    code, out, _ = call(capsys, "list", kind)
    assert code == 0
    expected = {
        "models": ["rnnsearch", "RNNSearch("],
        "tasks": ["generation", "classification"],
        "configs": ["dates/rnnsearch", "ISO 8601"],
    }
    assert all(part in out for part in expected[kind])
    code, out, _ = call(capsys, "list", kind, "--json")
    assert code == 0
    assert all({"name", "summary"} <= set(member) for member in json.loads(out))


def test_help_lists_every_argument_of_a_configuration(capsys) -> None:
    code, out, _ = call(capsys, "train", "translation/transformer", "--help")
    assert code == 0
    for argument in ("--task.joint", "--model.num_heads", "--data.bad_rows", "--trainer.patience", "--output"):
        assert argument in out


def test_help_takes_the_configuration_and_not_the_value_of_an_option(run, capsys, tmp_path) -> None:
    output = str(tmp_path / "zz")
    code, out, err = call(capsys, "train", "--output", output, "translation/transformer", "--help")
    assert (code, err) == (0, "")
    assert "--model.num_heads" in out
    code, out, err = call(capsys, "train", "--help", "--resume", run)
    assert (code, err) == (0, "")
    assert "--model.hidden_dim" in out
    assert "here: 12" in out
    code, out, err = call(capsys, "train", "--help", "--output")
    assert (code, err) == (0, "")
    assert "--model.hidden_dim  (" not in out


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["train", "translation/rnnsearch", "--model.hiden_dim", "3"], ["'hiden_dim'", "Did you mean 'hidden_dim'"]),
        (["train", "translation/rnnsearch", "--trainr.seed=1"], ["'trainr'", "Did you mean 'trainer'"]),
        (["train", "translation/rnnserch"], ["Did you mean 'translation/rnnsearch'"]),
        (["train", "translation/rnnsearch", "--output", "x"], ["data.train is missing"]),
        (["train", "translation/rnnsearch", "--data.train", "x.tsv"], ["There is no file", "x.tsv"]),
        (["train", "translation/rnnsearch", "--data.train", "x.tsv", "--output", "x"], ["x.tsv"]),
        (["train", "translation/rnnsearch", "--data.train"], ["--data.train needs a value"]),
        (["train", "--resume", "nowhere"], ["There is no folder nowhere"]),
        (["train", "--outptu", "x"], ["--outptu", "Did you mean --output", "--section.argument"]),
        (["predict", "x", "--ouput=3"], ["no option --ouput", "Did you mean --output"]),
        (["train", "--output", "x"], ["Say what to train", "saccade list configs"]),
        (["predict", "nowhere"], ["There is no folder nowhere"]),
        (["evaluate", "nowhere"], ["--data"]),
        (
            ["validate", "translation/transformer", "--model.num_heads", "7"],
            ["dim=256 is not a multiple of num_heads=7"],
        ),
        (["validate", "translation/rnnsearch", "--data.held_out", "0"], ["need validation data"]),
        (["validate", "translation/rnnsearch", "--trainer.trackers", "[tensorbord]"], ["Did you mean 'tensorboard'"]),
        (["validate", "translation/rnnsearch", "--model.dropout", "2"], ["dropout must be"]),
        (
            ["validate", "translation/cho", "--trainer={max_epochs: null, patience: null}", "--model.hiden_dim=3"],
            ["'hiden_dim'. Did you mean 'hidden_dim'"],
        ),
        (
            ["train", "translation/rnnsearch", "--trainer.max_epoch=3", "--model.hiden_dim=3", "--data.trian=x.tsv"],
            ["3 problems", "Did you mean 'max_epochs'", "Did you mean 'hidden_dim'", "Did you mean 'train'"],
        ),
        (["validate", "translation/rnnsearch", "--model", "{class: transformer, dmi: 64}"], ["Did you mean 'dim'"]),
        (["validate", "translation/rnnsearch", "--modl", "{dim: 64}"], ["no option --modl", "Did you mean --model"]),
        (
            ["validate", "translation/rnnsearch", "--trainer.schedule", "{class: cosin, warmup: 100}"],
            ["trainer.schedule", "Did you mean 'cosine'"],
        ),
        (
            ["validate", "translation/rnnsearch", "--trainer.schedule", "{class: cosine, warmpu: 100}"],
            ["trainer.schedule", "Did you mean 'warmup'"],
        ),
        (["validate", "translation/rnnsearch", "--model", "{dim: "], ["model: '{dim: ' is not YAML"]),
        (["list", "modls"], ["Did you mean 'models'"]),
    ],
)
def test_wrong_command_lines_exit_with_2_and_the_fix(arguments, parts, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    started = [*arguments, "--output", "x"] if arguments[0] == "train" and "--output" not in arguments else arguments
    started = arguments if "Writing the run to runs/rnnsearch" in parts or "--resume" in arguments else started
    code, out, err = call(capsys, *started)
    assert code == 2
    assert out == ""
    assert all(part in err for part in parts), err
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("saccade")]) == 1
    assert not any(tmp_path.iterdir())


def test_input_that_cannot_be_read(run, capsys, monkeypatch) -> None:
    give(monkeypatch, b"ab\n\xff\xfe\n")
    code, _, err = call(capsys, "predict", run)
    assert code == 2
    assert "Line 2 of the input is not UTF-8" in err
    give(monkeypatch, "abc\n")
    code, _, err = call(capsys, "predict", run, "--nbest", "4", "--beam", "2")
    assert code == 2
    assert "nbest=4" in err


def test_interrupted_saves_and_exits_with_130(work) -> None:
    output = work / "interrupted"
    command = [
        sys.executable,
        "-m",
        "saccade",
        "train",
        "translation/rnnsearch",
        "--data.train",
        str(work / "pairs.tsv"),
    ]
    command += ["--output", str(output), "--trainer.max_steps=1000000", *SMALL]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ)
    try:
        for _ in range(600):
            if len(read_metrics(output / "metrics.jsonl")) >= 2:
                break
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in out
    assert any((output / "checkpoints").glob("step-*"))
