"""A training step of a captioner with kept annotations, against one that runs the backbone.

Both sides take the same steps of Adam on the same 32 pictures and captions. Ours reads from a file the annotations that
EfficientNet-Lite0 made of the pictures once. The peer has the decoded pictures in memory and runs the network in each
step.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from benchmarks.harness import Timing
from benchmarks.multi30k import temporary_folder
from saccade.data.cell import Cell
from saccade.encoders.backbones import EfficientNetLite0
from saccade.fields import Image, Text
from saccade.models import ShowAttendTell
from saccade.tasks import Generation

PICTURES, SIDE, WORDS = 32, 224, 12
VOCABULARY = [f"word{number}" for number in range(500)]


def cases() -> list[Timing]:
    what = "training step of Show, Attend and Tell, 32 pictures of 224 pixels, annotations kept"
    return [Timing(what, "the same step that runs EfficientNet-Lite0", _sides, must=5.0)]


def _sides() -> tuple[Callable[[], object], Callable[[], object]]:
    torch.manual_seed(1)
    draws = np.random.default_rng(1)
    folder = temporary_folder()
    torch.save(EfficientNetLite0(weights="").state_dict(), folder / "state.pth")  # any weights take as long
    backbone = EfficientNetLite0(weights=str(folder / "state.pth"))
    field = Image(size=SIDE, backbone=backbone, features=str(folder / "annotations"))
    task = Generation(source=field, target=Text(tokeniser="word"), metrics=["exact_match"])
    pictures = draws.integers(0, 256, (PICTURES, SIDE, SIDE, 3), dtype=np.uint8)
    examples = [
        {
            "source": field.read(picture, Cell("memory", number, "source")),
            "target": " ".join(draws.choice(VOCABULARY, WORDS)),
        }
        for number, picture in enumerate(pictures, start=1)
    ]
    task.fit(examples)
    rows = [task.encode(example) for example in examples]
    model = ShowAttendTell(
        source_dim=field.sizes()["dim"],
        target_vocab=task.sizes()["target_vocab"],
        encoder="given",
        embedding_dim=256,
        hidden_dim=512,
    )
    optimiser = torch.optim.Adam(model.parameters())

    def step(batch: Mapping[str, Tensor]) -> None:
        optimiser.zero_grad()
        loss = task.loss(model, dict(batch))
        (loss.total / loss.count).backward()
        optimiser.step()

    def ours() -> None:
        step(task.collate(rows))

    batch = task.collate(rows)
    decoded = torch.from_numpy(pictures).permute(0, 3, 1, 2)
    mean, deviation = (torch.tensor(three).reshape(3, 1, 1) for three in (backbone.mean, backbone.deviation))

    def annotations() -> Tensor:
        with torch.no_grad():
            return backbone((decoded / 255.0 - mean) / deviation).flatten(2).transpose(1, 2)

    def peer() -> None:
        step({**batch, "source": annotations()})

    torch.testing.assert_close(annotations(), batch["source"], rtol=1e-2, atol=1e-2)  # kept in half precision
    return ours, peer
