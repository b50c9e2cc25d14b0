"""The domain that CONTRIBUTING adds can be trained."""

import json
import random
import re
import shlex
import sys

from saccade.cli import main
from tests.docs.code_blocks import ROOT


def section() -> str:
    return (ROOT / "CONTRIBUTING.md").read_text().partition("## Add a domain")[2].partition("\n## ")[0]


def block(language: str) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```", section(), flags=re.DOTALL | re.MULTILINE)[0]


def series(draw: random.Random) -> tuple[str, str]:
    values = [round(draw.uniform(-3, 3), 2) for _ in range(draw.randint(1, 5))]
    return " ".join(map(str, values)), " ".join("high" if value > 0 else "low" for value in values)


def test_field_and_configuration_stay_small() -> None:
    assert block("python").count("\n") + block("yaml").count("\n") < 90


def test_every_command_of_the_new_domain_runs(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    draw = random.Random(1)
    (tmp_path / "my_steps.py").write_text(block("python"))
    (tmp_path / "series.yaml").write_text(block("yaml").replace("max_steps: 300", "max_steps: 20"))
    (tmp_path / "series.csv").write_text("".join(f"{values},{words}\n" for values, words in map(series, [draw] * 60)))
    (tmp_path / "new.txt").write_text("0.1 0.5 -0.9\n-2.5\n")
    for line in block("sh").splitlines():
        assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert len(answers) == 2
    assert "0.5" in (tmp_path / "page.html").read_text(encoding="utf-8")

    (tmp_path / "bad.csv").write_text("0.1 0.5,high high\n0.1 nan,high low\n")
    assert main(["train", "series.yaml", "--data.train", "bad.csv", "--output", "runs/bad"]) == 2
    assert "bad.csv, line 2: the source is not a series of numbers but '0.1 nan'" in capsys.readouterr().err
    monkeypatch.delitem(sys.modules, "my_steps")
