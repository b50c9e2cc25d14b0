"""Which layers can have weights of 8 bits."""

from torch import nn

from saccade.layers.quantised import QuantisedLinear
from saccade.models import models
from saccade.models.quantised import quantisable, quantise_layers


class Own(nn.Module):
    quantisable = True

    def __init__(self) -> None:
        super().__init__()
        self.proj, self.norm = nn.Linear(5, 7), nn.LayerNorm(7)


def test_a_module_of_ones_own_takes_part() -> None:
    model = nn.Sequential(Own(), nn.Linear(7, 3))
    assert quantisable(model) == ["0.proj"]
    assert isinstance(quantise_layers(model, ["0.proj"])[0].proj, QuantisedLinear)


def test_heads_and_feed_forward_layers_take_part() -> None:
    model = models.create(
        "transformer", source_vocab=7, target_vocab=11, dim=6, num_heads=2, encoder_layers=1, decoder_layers=1
    )
    found = quantisable(model)
    assert "decoder.head.proj" in found
    assert {name.rpartition(".")[2] for name in found} == {
        "proj", "query_proj", "key_proj", "value_proj", "output_proj", "hidden_proj"
    }  # fmt: skip
