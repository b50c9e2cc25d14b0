"""Figures of alignments."""

import math
import os
import re
from pathlib import Path

import pytest
import torch

from saccade.evaluation.alignment import choose_head, match_and_mass, score_alignments, shift_profile, soft_aer
from saccade.interpretation.alignments import Alignment, read_alignments

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SACCADE_DATA", ROOT.parent / "shared" / "data")) / "align-gold"
GOLD = [Alignment.of([(0, 0), (1, 1)], [(2, 1)]), Alignment.of([(0, 0)])]


@pytest.mark.parametrize("system", ["giza", "fastalign"])
def test_published_figures_of_english_french(system) -> None:
    if not DATA.is_dir():
        pytest.skip("needs the gold alignments: set SACCADE_DATA to the folder that holds align-gold")
    results = (DATA / f"{system}.enfr.results.txt").read_text()
    wanted = re.search(r"^test\.enfr\.grow-diagonal\.talp: (\S+)% \((\S+)%/(\S+)%/(\d+)\)$", results, re.MULTILINE)
    assert wanted is not None
    gold = read_alignments(DATA / "enfr.gold", one_based=True)
    found = score_alignments(read_alignments(DATA / f"{system}.enfr.grow-diagonal.talp"), gold)
    assert len(gold) == 447
    percents = [f"{100 * share:.1f}" for share in (found.aer, found.precision, found.recall)]
    assert percents == list(wanted.groups()[:3])
    # The fast_align file is of an earlier run than its results, which say 5379: it has 5374 links, however counted.
    assert found.links == {"giza": int(wanted[4]), "fastalign": 5374}[system]
    assert found.links == len((DATA / f"{system}.enfr.grow-diagonal.talp").read_text().split())


def test_by_hand() -> None:
    found = score_alignments([[(0, 0), (2, 1), (2, 0)], []], GOLD)
    assert found.links == 3
    assert found.precision == pytest.approx(2 / 3)  # 0-0 is sure, 2-1 possible
    assert found.recall == pytest.approx(1 / 3)
    assert found.f == pytest.approx(2 * (2 / 3) * (1 / 3) / (2 / 3 + 1 / 3))
    assert found.aer == pytest.approx(1 - (1 + 2) / (3 + 3))


def test_bounds() -> None:
    assert score_alignments(GOLD, GOLD).aer == 0
    assert score_alignments([gold.sure for gold in GOLD], GOLD) == (0, 1, 1, 1, 3)
    assert score_alignments([[(7, 7)], []], GOLD) == (1, 0, 0, 0, 1)
    assert score_alignments([[]], [[]]) == (0, 1, 1, 1, 0)
    without_possible = score_alignments([[(0, 0), (1, 0)]], [[(0, 0), (3, 3)]])
    assert without_possible.aer == pytest.approx(1 - without_possible.f)  # then AER is what F lacks
    with pytest.raises(ValueError, match="3 predicted alignments cannot be compared with 2"):
        score_alignments([[], [], []], GOLD)
    with pytest.raises(ValueError, match="no predicted alignments"):
        score_alignments([], [])


def test_soft_aer_of_hard_weights_is_aer() -> None:
    links = [[(0, 0), (2, 1), (2, 0)], [(1, 0)]]
    weights = [torch.zeros(2, 3), torch.zeros(1, 2)]
    for matrix, pairs in zip(weights, links, strict=True):
        for source, target in pairs:
            matrix[target, source] = 1.0
    assert soft_aer(weights, GOLD) == pytest.approx(score_alignments(links, GOLD).aer)


def test_match_and_mass() -> None:
    weights = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])  # the last word has no link
    found = match_and_mass([weights], [Alignment.of([(0, 0), (1, 1)], [(2, 1)])])
    assert found.words == 2
    assert found.match == pytest.approx(1 / 2)
    assert found.mass == pytest.approx((0.7 + 0.3 + 0.2) / 2)
    uniform = match_and_mass([torch.full((2, 5), 0.2)], [[(4, 0), (0, 1), (3, 1)]])
    assert uniform == pytest.approx((0.3, 0.3, 2))  # a tie is worth its share, in any order
    assert match_and_mass([torch.zeros(2, 3)], [[(0, 0)]]) == (0, 0, 1)
    assert match_and_mass([torch.zeros(2, 3)], [[]]) == (0, 0, 0)
    with pytest.raises(ValueError, match=r"link 3-0 \(from 0\) is outside the 3 source"):
        match_and_mass([torch.zeros(2, 3)], [[(3, 0)]])


def test_shift_profile_finds_the_shift() -> None:
    links = [(place, place) for place in range(7)]
    shifted = torch.zeros(7, 11)
    for source, target in links:
        shifted[target, source + 1] = 0.9
        shifted[target, source] = 0.1
    profile = shift_profile([shifted], [links], reach=2)
    assert profile == pytest.approx({-2: 0, -1: 0, 0: 0.1, 1: 0.9, 2: 0})
    assert profile[0] == pytest.approx(match_and_mass([shifted], [links]).mass)
    with pytest.raises(ValueError, match="reach must be 0 or more"):
        shift_profile([shifted], [links], reach=-1)


def test_the_best_head_is_chosen() -> None:
    gold = [[(0, 0), (1, 1), (2, 2)], [(1, 0), (0, 1)]]
    right = [torch.eye(3), torch.eye(2).flip(0)]
    wrong = [matrix.roll(1, dims=-1) for matrix in right]
    # In the second layer no head is right, but their mean is.
    near = [torch.stack([torch.where(m > 0, 0.4, 0.6 * w), m * 0.5 + 0.1]) for m, w in zip(right, wrong, strict=True)]
    maps = {
        "first": [torch.stack([w, w, m]) for m, w in zip(right, wrong, strict=True)],
        "second": near,
    }
    chosen = choose_head(maps, gold)
    assert (chosen.name, chosen.head, chosen.aer) == ("first", 2, 0)
    assert len(chosen.table) == 4 + 3
    assert chosen.table["first", 0] == 1
    assert choose_head({"second": near}, gold).head is None
    assert all(math.isfinite(aer) for aer in chosen.table.values())
    with pytest.raises(ValueError, match="maps is empty"):
        choose_head({}, gold)
    with pytest.raises(ValueError, match="1 maps of 'first' cannot be compared with 2"):
        choose_head({"first": maps["first"][:1]}, gold)
