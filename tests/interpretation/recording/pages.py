"""Pages read back, and a tokeniser to name tokens."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.interpretation.explorer.packing import unpack

transformers = pytest.importorskip("transformers")

TEXT = "the old cat sat on a red mat while two dogs slept near its blue door and one bird sang"


def tokeniser(padding_side: str = "right") -> Any:
    """Words with the mark of a space before them; 0 is padding, 1 the end, 2 the start."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    names = ["<pad>", "</s>", "<s>", "<unk>", *(f"\u2581{word}" for word in TEXT.split())]
    made = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="</s>",
        bos_token="<s>",
        unk_token="<unk>",
        padding_side=padding_side,
        model_input_names=["input_ids", "attention_mask"],
    )


def lively(model: nn.Module, std: float = 0.7) -> nn.Module:
    """Weights large enough that attention has something to choose."""
    for name, parameter in model.named_parameters():
        if "norm" not in name:
            nn.init.normal_(parameter, std=std)
    return model.eval()


class Page:
    """The data of a page: by name of its maps the pieces of their queries and keys, and weights."""

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self.data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
        self._blocks = dict(re.findall(r'id="block-(\d+)">(.*?)</script>', text))
        self.item = self.data["items"][0]
        self.notes: list[str] = self.item["notes"]
        self._maps = {each["name"]: each for each in self.item["maps"]}

    def __contains__(self, name: str) -> bool:
        return name in self._maps

    @property
    def names(self) -> list[str]:
        return list(self._maps)

    def axes(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        found = self._maps[name]
        return self.data["axes"][found["rows"]], self.data["axes"][found["cols"]]

    def pieces(self, name: str) -> tuple[list[str], list[str]]:
        rows, columns = self.axes(name)
        return rows["pieces"], columns["pieces"]

    def weights(self, name: str, queries: int, keys: int) -> Tensor:
        found = self._maps[name]
        blocks = [self.block(found["block"] + head) for head in range(found["heads"])]
        return torch.stack([unpack(block, self.data["levels"], queries, keys) for block in blocks])

    def block(self, number: int) -> bytes:
        return base64.b64decode(self._blocks[str(number)])
