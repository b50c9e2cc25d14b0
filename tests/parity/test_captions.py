"""The figures of captions equal those of the COCO evaluation on the same tokens."""

import random

import pytest

from saccade.evaluation.captions import bleu_of_tokens, cider_of_tokens, rouge_l_of_tokens

pytest.importorskip("pycocoevalcap")
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

WORDS = [*"abcdefghijklmnopq"]


def made(seed: int, count: int, most: int):
    choices = random.Random(seed)

    def caption() -> list[str]:
        return choices.choices(WORDS, k=choices.randint(1, 13))

    wanted = [[caption() for _ in range(choices.randint(1, most))] for _ in range(count)]
    near = [[w for w in choices.choice(each) if choices.random() < 0.8] or ["a"] for each in wanted]
    return [each if choices.random() < 0.7 else caption() for each in near], wanted


def peers(scorer, predicted, wanted):
    results = {n: [" ".join(each)] for n, each in enumerate(predicted)}
    references = {n: [" ".join(each) for each in several] for n, several in enumerate(wanted)}
    return scorer.compute_score(references, results)[0]


@pytest.mark.parametrize(("seed", "count", "most"), [(0, 41, 5), (1, 7, 1), (2, 1, 3), (3, 97, 7)])
def test_equal_to_the_peer(seed, count, most, capsys) -> None:
    predicted, wanted = made(seed, count, most)
    bleus = peers(Bleu(4), predicted, wanted)
    assert [bleu_of_tokens(predicted, wanted, order=n) for n in range(1, 5)] == pytest.approx(bleus, abs=1e-12)
    assert rouge_l_of_tokens(predicted, wanted) == pytest.approx(peers(Rouge(), predicted, wanted), abs=1e-12)
    assert cider_of_tokens(predicted, wanted) == pytest.approx(peers(Cider(), predicted, wanted), abs=1e-10)
