"""The script of a reproduction, whose folder's name no import statement can say."""

import importlib.util
from pathlib import Path
from types import ModuleType

import torch

from saccade import huggingface
from saccade.data.tokenisers.wordpiece import WordPiece
from saccade.models import Bert

ROOT = Path(__file__).resolve().parent.parent.parent / "reproductions"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), ROOT / name / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tiny_bert(folder: Path) -> Path:
    """A folder in place of MiniLM's."""
    torch.manual_seed(1)
    tokeniser = WordPiece(vocab_size=80).fit(["low new tower fox jump sleep a film pos neg cat dog hen good bad"])
    sizes = {"dim": 14, "num_heads": 2, "num_layers": 4, "feed_forward_dim": 19, "max_length": 512}
    return huggingface.save(folder / "bert", Bert(vocab=tokeniser.size, head="none", **sizes), tokeniser)
