"""Errors name the value, the place and the fix; Ctrl-C is no error."""

import os
import signal
import subprocess
import sys

import pytest

from tests.first_day.conftest import PAIRS, SETTINGS, write


def test_an_empty_line(train, work) -> None:
    write(work / "gap.tsv", [*PAIRS[:6], ("",), *PAIRS[6:]])
    code, _, err = train(data="gap.tsv")
    assert code == 2
    assert "gap.tsv, line 7: the line is empty. --data.bad_rows skip leaves such lines out." in err
    assert train("--data.bad_rows", "skip", data="gap.tsv")[0] == 0


def test_a_file_of_one_line(train, work) -> None:
    write(work / "one.tsv", PAIRS[:1])
    code, _, err = train("--trainer.patience", "3", data="one.tsv")
    assert code == 2
    assert "one.tsv: 1 example with 1 different inputs, too few to hold out 5% for validation." in err
    assert "--data.valid" in err


def test_latin_1(train, work) -> None:
    (work / "old.tsv").write_bytes("caf\xe9\tk\xe4se\n".encode("latin-1") * 30)
    code, _, err = train(data="old.tsv")
    assert code == 2
    assert "old.tsv, line 1" in err
    assert "iconv -f" in err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["train", "translation/rnnsearch", "--data.train", "rivers.tsv", "--output", "x"], "--data.columns"),
        (["evaluate", "x", "--data", "rivers.tsv"], "--columns"),
    ],
)
def test_columns_are_spelt_the_same_everywhere(command, option, work, call) -> None:
    code, _, err = call(*command, option, "latin,cyrillic")
    assert code == 2
    assert f"{option} takes roles with their columns, as source=en,target=de or {{source: en, target: de}}" in err


@pytest.mark.parametrize("when", ["at once", "while it reads", "while it trains"])
def test_ctrl_c(when, work) -> None:
    command = [sys.executable, "-m", "saccade", "train", "translation/rnnsearch", "--data.train", "rivers.tsv"]
    process = subprocess.Popen(
        [*command, "--output", "run", *SETTINGS, "--trainer.max_steps", "100000", "--trainer.log_every", "1"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wanted = {"at once": None, "while it reads": "Reading", "while it trains": "step 2 "}[when]
    said = []
    while wanted is not None and not any(line.startswith(wanted) for line in said):
        line = process.stderr.readline()
        assert line, said
        said.append(line)
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=120)[1]
    if when == "at once" and process.returncode == -signal.SIGINT:
        return  # before Python itself had started
    assert process.returncode == 130, rest
    assert "Traceback" not in rest
    assert "nterrupted" in rest
    if when == "while it trains":
        assert "saccade train --resume run" in rest
