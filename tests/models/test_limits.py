"""How long a source and a target may be: exactly as long as the model can read and write them."""

import pytest
import torch

from saccade.decoders import shift_right
from saccade.models import Luong, RNNSearch, Sutskever, Transformer
from saccade.scores import LocationScore, ScaledDotScore

VOCAB = {"source_vocab": 13, "target_vocab": 11}
SMALL = {**VOCAB, "embedding_dim": 5, "hidden_dim": 8}
TINY = {**VOCAB, "dim": 8, "num_heads": 2, "encoder_layers": 1, "max_length": 7}
FEATURES = {"source_vocab": None, "source_dim": 3, "source_stride": 2}
LIMITS = {
    "learned": (lambda: Transformer(**TINY, positions="learned"), 6, 6),
    "sinusoidal": (lambda: Transformer(**TINY), None, None),
    "location across": (lambda: Transformer(**TINY, cross_score="location"), 6, None),
    "convolutional": (lambda: RNNSearch(**SMALL, encoder="convolutional", max_length=5), 4, None),
    "location": (lambda: RNNSearch(**SMALL, score="location", max_length=5), 4, None),
    "sum": (lambda: Luong(**SMALL, score=LocationScore(query_dim=8, max_keys=9) + ScaledDotScore()), 8, None),
    "frames": (lambda: Transformer(**{**TINY, **FEATURES}, positions="learned"), 14, 6),
    "recurrent": (lambda: Sutskever(**SMALL), None, None),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_exact(name):
    make, longest_source, longest_target = LIMITS[name]
    model = make().eval()
    assert model.longest_source() == longest_source
    assert model.longest_target() == longest_target
    frames = name == "frames"

    def read(length, steps):
        size = length if frames else length + 1  # the end
        source = torch.zeros(1, size, 3) if frames else torch.ones(1, size, dtype=torch.long)
        return model(source, torch.ones(1, size, dtype=torch.bool), torch.ones(1, steps + 1, dtype=torch.long))

    source, target = longest_source or 40, longest_target or 40
    assert read(source, target).features.shape[1] == target + 1
    for limit, longer in ((longest_source, (source + 1, target)), (longest_target, (source, target + 1))):
        if limit is not None and not isinstance(model, Luong):  # which ignores what is beyond
            with pytest.raises(ValueError, match="position"):
                read(*longer)


def test_shift_right():
    target = torch.tensor([[4, 5, 2], [6, 2, 0]])
    assert shift_right(target, 1).tolist() == [[1, 4, 5], [1, 6, 2]]
    assert shift_right(target[0], 1).tolist() == [1, 4, 5]
    assert shift_right(target[:, :0], 1).shape == (2, 0)
