"""`align` and `explain` read attention at the step that the run was trained for."""

import pytest

from tests.first_day.conftest import PAIRS, write


@pytest.fixture
def shifted(train, work) -> None:
    rows = [(s, t, " ".join(f"{n}-{n}" for n in range(len(s.split())))) for s, t in PAIRS]
    write(work / "linked.tsv", rows)
    code, _, err = train("--task.alignment_shift", "1", data="linked.tsv", config="translation/rnnsearch-supervised")
    assert code == 0, err
    write(work / "a.txt", [(s,) for s, _ in PAIRS[:9]])
    write(work / "b.txt", [(t,) for _, t in PAIRS[:9]])


def test_align(shifted, call) -> None:
    texts = ["align", "run", "--source", "a.txt", "--target", "b.txt", "--format", "json"]
    usual = call(*texts)[1]
    assert usual == call(*texts, "--shift", "1")[1]
    assert usual != call(*texts, "--shift", "0")[1]


def test_explain_shifts_measures_and_picture(shifted, call) -> None:
    source, target = next(pair for pair in PAIRS if len(pair[0].split()) > 1)
    asked = ["explain", "run", "--input", source, "--target", target, "--format", "json"]
    usual = call(*asked)[1]
    assert usual == call(*asked, "--shift", "1")[1]
    assert usual != call(*asked, "--shift", "0")[1]
