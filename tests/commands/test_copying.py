"""A model that copies, from the command line: trained, resumed, evaluated, asked and explained."""

import json
import random

import pytest
import torch

import saccade
from saccade.cli import main


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    letters = random.Random(5)

    def name():
        return "".join(letters.choices("abcdefgh", k=4)).capitalize()

    for file, count in (("train.tsv", 60), ("test.tsv", 4)):
        names = [(name(), name()) for _ in range(count)]
        lines = [f"who saw {one} and {two} ?\t{two} and {one} were seen" for one, two in names]
        (tmp_path / file).write_text("\n".join(lines) + "\n")
    return tmp_path


SMALL = {"--model.embedding_dim": "6", "--model.hidden_dim": "8", "--trainer.batch_tokens": "120"}


def arguments(config="", **others):
    small = {"--model.dim": "8", "--trainer.batch_tokens": "120"} if config == "copying/transformer" else SMALL
    return [part for pair in {**small, **others}.items() for part in pair]


@pytest.mark.parametrize("config", ["copying/copynet", "copying/pointer-generator", "copying/transformer"])
def test_a_resumed_training_ends_where_one_training_does(pairs, config):
    steps = {"--data.train": "train.tsv", "--trainer.validate_every": "2"}
    assert (
        main(["train", config, "--output", "whole", *arguments(config, **steps, **{"--trainer.max_steps": "4"})]) == 0
    )
    assert (
        main(["train", config, "--output", "parts", *arguments(config, **steps, **{"--trainer.max_steps": "2"})]) == 0
    )
    assert main(["train", "--resume", "parts", "--trainer.max_steps", "4"]) == 0
    one, other = (saccade.load(pairs / name).model.state_dict() for name in ("whole", "parts"))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.parametrize("config", ["copying/copynet", "copying/transformer"])
def test_every_command_works(pairs, capsys, config):
    train = arguments(
        config, **{"--data.train": "train.tsv", "--trainer.max_steps": "3", "--trainer.validate_every": "3"}
    )
    assert main(["train", config, "--output", "run", *train]) == 0
    assert main(["evaluate", "run", "--data", "test.tsv"]) == 0
    assert "words outside the vocabulary that were written" in capsys.readouterr().out
    assert main(["predict", "run", "test.tsv", "--format", "jsonl", "--output", "out.jsonl", "--max-length", "6"]) == 0
    for line in (pairs / "out.jsonl").read_text().splitlines():
        (answer,) = json.loads(line)["nbest"]
        assert {origin["from"] for origin in answer["origins"]} <= {"generate", "copy"}
    asked = ["--input", "who saw Otto and Ida ?", "--target", "Ida and Otto were seen"]
    assert main(["explain", "run", *asked, "--output", "page.html"]) == 0
    assert "Where each piece of the output came from" in (pairs / "page.html").read_text()
    (pairs / "a.txt").write_text("who saw Otto and Ida ?\n")
    (pairs / "b.txt").write_text("Ida and Otto were seen\n")
    capsys.readouterr()
    assert main(["align", "run", "--source", "a.txt", "--target", "b.txt"]) == 0
    assert len(capsys.readouterr().out.split()) == 5
