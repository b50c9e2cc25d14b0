"""What was expected and not found: AER in training, weights of another run, several references."""

import json
import math
import re
from pathlib import Path

import pytest

import saccade
from tests.first_day.conftest import PAIRS, write

ROOT = Path(__file__).parents[2]


def test_aer_decides(train, work, call) -> None:
    rows = [(s, t, " ".join(f"{n}-{n}" for n in range(len(s.split())))) for s, t in PAIRS]
    write(work / "linked.tsv", rows)
    code, _, err = train(
        "--task.metrics",
        "[aer]",
        "--trainer.metric",
        "aer",
        data="linked.tsv",
        config="translation/rnnsearch-supervised",
    )
    assert code == 0, err
    assert "(best aer so far)" in err
    out = call("evaluate", "run", "--data", "linked.tsv", "--json")[1]
    found = json.loads(out)["figures"]["aer"]
    assert 0 <= found <= 100
    assert not math.isnan(found)
    write(work / "a.txt", [(s,) for s, _ in PAIRS])
    write(work / "b.txt", [(t,) for _, t in PAIRS])
    write(work / "gold.talp", [(links,) for _, _, links in rows])
    err = call("align", "run", "--source", "a.txt", "--target", "b.txt", "--gold", "gold.talp", "--json")[2]
    assert abs(json.loads(err)["aer"] - found) < 1e-6  # both are percentages
    chosen = call("align", "run", "--source", "a.txt", "--target", "b.txt", "--choose", "a.txt,b.txt,gold.talp")[2]
    assert 1 < float(re.search(r": AER (\d+\.\d\d)$", chosen, re.MULTILINE)[1]) <= found + 0.01


def test_weights_of_another_run(train, work) -> None:
    assert train()[0] == 0
    (work / "run").rename(work / "first")
    err = train("--init-from", "first")[2]
    assert "Started from 22 of 22 weight tensors of first." in err
    assert "There is no folder nowhere" in train("--init-from", "nowhere")[2]


def test_several_references(train, call, work) -> None:
    assert train("--task.metrics", "[bleu]")[0] == 0
    write(work / "two.tsv", [(s, t, t) for s, t in PAIRS])
    code, out, err = call("evaluate", "run", "--data", "two.tsv", "--columns", "source=0,target=1+2")
    assert code == 0, err
    assert "nrefs:2" in out


def test_an_input_itself(train, call) -> None:
    assert train()[0] == 0
    out = call("predict", "run", "--input", "bado", "--input", "", "--input", "geki")[1]
    assert out == call("predict", "run", given="bado\n\ngeki\n")[1]
    assert out.count("\n") == 3
    assert "not both" in call("predict", "run", "rivers.tsv", "--input", "bado")[2]


def test_inputs_may_follow_options(train, call, work) -> None:
    assert train()[0] == 0
    write(work / "a.txt", [(s,) for s, _ in PAIRS[:3]])
    assert call("predict", "run", "--beam", "2", "a.txt")[1].count("\n") == 3


def test_a_data_frame(tmp_path) -> None:
    frame = pytest.importorskip("pandas").DataFrame(PAIRS, columns=["source", "target"])
    run = saccade.train(
        task={"source": {"class": "text", "tokeniser": "char"}},
        model={"class": "rnnsearch", "embedding_dim": 8, "hidden_dim": 8},
        data=frame,
        trainer={"max_steps": 1},
        output=tmp_path / "run",
    )
    assert len(run.predict(frame)) == len(PAIRS)
    assert run.evaluate(frame, beam=1).figures


def test_every_key_of_the_explorers_address_is_documented() -> None:
    written = (ROOT / "explorer" / "src" / "state.ts").read_text(encoding="utf-8")
    keys = set(re.findall(r'(?:put|parts\.set)\("(\w+)"', written))
    section = (
        (ROOT / "docs" / "explorer.md").read_text(encoding="utf-8").partition("## Address")[2].partition("\n## ")[0]
    )
    assert {"view", "show", "pin"} < keys == set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE))
