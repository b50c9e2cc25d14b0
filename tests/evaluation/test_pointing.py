"""Whether weights lie in boxes."""

import pytest
import torch

from saccade.evaluation.pointing import places_in, pointing_accuracy, weight_in_box

BOXES = [[(0.3, 0.0, 0.7, 0.5)], [(0.0, 0.0, 0.5, 1.0)], []]


def weights() -> torch.Tensor:
    found = torch.zeros(3, 6)
    found[0, 1] = found[1, 5] = found[2, 0] = 1.0  # line 0 column 1; line 1 column 2; line 0 column 0
    return found


def test_pointing_counts_words_whose_largest_weight_is_in_their_box() -> None:
    found = pointing_accuracy([weights(), weights()[:1]], [BOXES, BOXES[:1]], (2, 3))
    assert found.value == pytest.approx(100 * 2 / 3)
    with pytest.raises(ValueError, match="grid of 2 x 2"):
        pointing_accuracy([weights()], [BOXES], (2, 2))


def test_any_of_several_boxes_counts() -> None:
    either = [[(0.0, 0.0, 0.3, 0.5), (0.7, 0.5, 1.0, 1.0)]]
    assert places_in(either[0], (2, 3)).tolist() == [True, False, False, False, False, True]
    assert pointing_accuracy([weights()[1:2]], [either], (2, 3)).value == 100.0
    assert pointing_accuracy([weights()[:1]], [either], (2, 3)).value == 0.0


def test_the_weight_in_a_box_beside_that_of_even_weights() -> None:
    looked = torch.tensor([[0.1, 0.2, 0.05, 0.3, 0.25, 0.1]])
    found = weight_in_box([looked], [BOXES[1:2]], (2, 3))
    assert found.value == pytest.approx(100 * (0.1 + 0.3))
    assert "33.3" in found.signature


def test_without_boxes_there_is_nothing_to_count() -> None:
    assert pointing_accuracy([weights()], [[[], [], []]], (2, 3)).value == 0.0
    assert weight_in_box([weights()], [[]], (2, 3)).value == 0.0
