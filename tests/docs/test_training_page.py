"""What the page on training says about columns, references and other runs' weights."""

import csv
import json
import re
import shlex

from saccade.cli import main
from tests.docs.code_blocks import ROOT

PAGE = (ROOT / "docs" / "training.md").read_text()
SMALL = shlex.split("--trainer.max_steps 2 --model.embedding_dim 5 --model.hidden_dim 7")
WORDS = [
    ("run", "V;PST", "ran"),
    ("walk", "V;PST", "walked"),
    ("sing", "V;PTCP;PRS", "singing"),
    ("eye", "N;PL", "eyes"),
]


def run(*words: str) -> None:
    assert main(words) == 0


def test_columns_joined_as_the_page_says(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.tsv").write_text("".join("\t".join(row) + "\n" for row in WORDS * 5))
    command = re.search(r"^(saccade train inflection.*?)\n```", PAGE, flags=re.DOTALL | re.MULTILINE)[1]
    run(*shlex.split(command.replace("\\\n", " "))[1:], *SMALL)
    capsys.readouterr()
    run("predict", "runs/inflection", "words.tsv", "--columns", "source=0+1", "--format", "csv")
    answers = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [answer["source"] for answer in answers[:2]] == ["run <V;PST>", "walk <V;PST>"]

    (tmp_path / "test.csv").write_text("src,ref1,ref2\nrun <V;PST>,ran,did run\nwalk <V;PST>,walked,went\n")
    run("evaluate", "runs/inflection", "--data", "test.csv", "--columns", "source=src,target=ref1+ref2", "--json")
    assert json.loads(capsys.readouterr().out)["examples"] == 2

    again = shlex.split("train inflection/hard-monotonic-0 --data.train words.tsv --data.columns source=0+1,target=2")
    run(*again, "--task.source.join", "{} <{}>", *SMALL, "--init-from", "runs/inflection", "--output", "runs/new")
    assert re.search(r"Started from (\d+) of \1 weight tensors", capsys.readouterr().err)


def test_unavailable_gpu_is_named(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert main(["train", "dates/rnnsearch", "--trainer.device", "cuda:1", "--output", str(tmp_path / "run")]) == 2
    assert "cuda:1" in capsys.readouterr().err
