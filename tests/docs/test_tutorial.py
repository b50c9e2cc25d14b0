"""Every command of the tutorial runs, at toy size."""

import csv
import io
import random
import re
import shlex
import sys
from pathlib import Path

import pytest

from saccade.cli import main
from tests.docs.code_blocks import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"
SMALL = {
    "max_epochs: 20": "max_epochs: 2",
    "embedding_dim: 128": "embedding_dim: 5",
    "hidden_dim: 128": "hidden_dim: 7",
}


def write_reviews(path: Path, count: int, seed: int) -> None:
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "body", "verdict"])
        for number in range(count):
            verdict = draw.choice(["good", "bad"])
            word = draw.choice(["superb", "moving"] if verdict == "good" else ["dull", "slow"])
            rows.writerow([number, f"A {word} film, with {draw.choice(['music', 'words', 'a cast'])}.", verdict])


def steps() -> list[tuple[str, str]]:
    """("sh" or "python", its text) of each block."""
    return re.findall(r"^```(sh|python)\n(.*?)^```", TUTORIAL.read_text(), flags=re.DOTALL | re.MULTILINE)


def run_command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if line.startswith("echo "):
        said, line = line.split(" | ")
        text = shlex.split(said)[1] + "\n"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    words = shlex.split(line)
    assert words[0] == "saccade", line
    assert main(words[1:]) == 0, line
    if words[1] == "copy":
        path = Path(words[3])
        content = path.read_text()
        for usual, small in SMALL.items():
            assert usual in content
            content = content.replace(usual, small)
        path.write_text(content)


def test_every_command_of_the_tutorial_runs(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    write_reviews(tmp_path / "reviews.csv", 60, seed=1)
    write_reviews(tmp_path / "test.csv", 13, seed=2)
    for kind, text in steps():
        if kind == "sh":
            for line in text.splitlines():
                run_command(line, monkeypatch)
        elif text.startswith("# my_parts.py"):
            (tmp_path / "my_parts.py").write_text(text)
        else:
            exec(compile(text, "docs/tutorial.md", "exec"), {"__name__": "__main__"})
    monkeypatch.delitem(sys.modules, "my_parts")
    answers = list(csv.DictReader((tmp_path / "answers.csv").open(encoding="utf-8")))
    assert len(answers) == 13
    assert {row["answer"] for row in answers} <= {"good", "bad"}
    for page in ("page.html", "both.html", "own.html"):
        assert "superb" in (tmp_path / page).read_text(encoding="utf-8")
    assert (tmp_path / "runs" / "python" / "model.safetensors").is_file()
