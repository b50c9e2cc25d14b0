"""GPT-2 folders of the `transformers` library, with config.json, model.safetensors and a vocabulary.

As with BERT (`saccade.huggingface`), that library is not needed, and everything in a folder is treated as data: its
configuration is checked key by key, and the header of its weights is compared with the model before any tensor is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.artifacts import ArtifactError, JsonObject, open_regular, read_header, read_json, read_tensors, weights_of
from saccade.data.special import BOS, EOS, NAMES
from saccade.data.tokenisers import ByteBpeTokeniser
from saccade.data.tokenisers.byte_level import letters
from saccade.data.tokenisers.subwords import HIDDEN
from saccade.models import TransformerLanguageModel

CONFIG, WEIGHTS = "config.json", "model.safetensors"
END = "<|endoftext|>"
"""The only special token: it ends a text and precedes the next one."""

SIZES = {"dim": "n_embd", "num_heads": "n_head", "num_layers": "n_layer", "max_length": "n_positions"}
"""Arguments of our model, and their names in config.json."""

FIXED = {
    "model_type": "gpt2",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
"""Settings that must have GPT-2's values."""

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}

LAYER = {
    "around_attention.norm.": "ln_1.",
    "self_attention.output_proj.": "attn.c_proj.",
    "around_feed_forward.norm.": "ln_2.",
    "feed_forward.hidden_proj.": "mlp.c_fc.",
    "feed_forward.output_proj.": "mlp.c_proj.",
}
"""How names of our weights begin, after the number of the layer, and how theirs do."""

JOINED = ("query_proj", "key_proj", "value_proj")
"""Our weights that are one matrix, c_attn, in theirs, in this order."""

IMPOSSIBLE = -1e9
"""The bias of special ids that a GPT-2 does not have."""

MOST_BYTES = 64 * 2**20

FIX = "Copy the folder again from where the model came from, or save the model again with save_pretrained."


class OtherKindError(ArtifactError):
    """The model is intact, but Saccade's GPT-2 cannot compute what it computes."""


class Pretrained(NamedTuple):
    """A model with its tokeniser.

    Our ids are not theirs: `<|endoftext|>` is our start and end of a text, and the others keep their order after our
    four special ids; `ids` has theirs for each of ours, -1 for the ids that they do not have.
    """

    model: TransformerLanguageModel
    tokeniser: ByteBpeTokeniser
    ids: Tensor


@contextmanager
def _with_fix() -> Iterator[None]:
    """Adds what to do to the error of a damaged folder."""
    try:
        yield
    except OtherKindError:
        raise
    except ArtifactError as error:
        raise ArtifactError(f"{error} {FIX}") from None


@_with_fix()
def is_folder(folder: str | os.PathLike[str]) -> bool:
    """Whether this is a folder of that kind, judged by its configuration."""
    path = Path(folder) / CONFIG
    if not path.is_file() or (Path(folder) / "config.yaml").is_file():
        return False
    found = read_json(path)
    return isinstance(found, dict) and found.get("model_type") == FIXED["model_type"]


@_with_fix()
def load(folder: str | os.PathLike[str], **arguments: Any) -> Pretrained:
    """Loads the GPT-2 in a folder, in evaluation mode.

    Args:
        folder: what `save_pretrained` wrote.
        arguments: those of `TransformerLanguageModel` that a folder leaves open, such as `dropout=0.1`.
    """
    path = Path(folder)
    given = {**read_arguments(path), **arguments}
    tokeniser, ids = read_tokeniser(path)
    given = {"vocab": tokeniser.size, "causal": True, **given}
    with torch.device("meta"):
        outline = TransformerLanguageModel(**given)
    weights = read_weights(path, outline, ids)  # before anything of that size is allocated
    model = TransformerLanguageModel(**given)
    own = weights_of(model)
    with torch.no_grad():
        for name, tensor in weights.items():
            own[name].copy_(tensor)
    return Pretrained(model.eval(), tokeniser, ids)


def read_arguments(folder: Path) -> dict[str, Any]:
    """The arguments of `TransformerLanguageModel` that config.json decides."""
    found = JsonObject(read_json(folder / CONFIG), str(folder / CONFIG))
    for key, usual in FIXED.items():
        value = found.values.get(key, usual)
        if value != usual:
            raise OtherKindError(f"{found.where}: Saccade reads GPT-2 with {key} {usual!r} only, not {value!r:.40}.")
    sizes: dict[str, Any] = {ours: found.take(theirs, int, least=1, most=2**20) for ours, theirs in SIZES.items()}
    if sizes["dim"] % sizes["num_heads"]:
        raise found.wrong("n_head", f"does not divide n_embd={sizes['dim']}")
    if sizes["num_layers"] > 1024:
        raise found.wrong("n_layer", f"is {sizes['num_layers']:,}, more than 1,024")
    activation = found.take("activation_function", str)
    if activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise OtherKindError(
            f"{found.where}: activation_function is {activation[:40]!r}, and Saccade has only {known}."
        )
    inner = found.values.get("n_inner")
    return {
        **sizes,
        "feed_forward_dim": 4 * sizes["dim"] if inner is None else found.take("n_inner", int, least=1, most=2**22),
        "activation": ACTIVATIONS[activation],
        "epsilon": found.take("layer_norm_epsilon", float, least=0.0, most=1.0),
        "positions": "learned",
        "norm": "pre",
        "tied": found.check("tie_word_embeddings", found.values.get("tie_word_embeddings", True), bool),
        "scale_embeddings": False,
        "output_bias": True,
        "dropout": 0.0,
    }


def read_tokeniser(folder: Path) -> tuple[ByteBpeTokeniser, Tensor]:
    """The tokeniser of a folder, `vocab.json` and `merges.txt` or those in `tokenizer.json`; and its ids by ours."""
    saved = folder / "tokenizer.json"
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        where, found = folder / "vocab.json", JsonObject(read_json(folder / "vocab.json"), str(folder / "vocab.json"))
        with open_regular(folder / "merges.txt") as file:
            lines = file.read(MOST_BYTES).decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
        merges_in = folder / "merges.txt"
    elif saved.is_file():
        where, document = saved, JsonObject(read_json(saved), str(saved)).inner("model")
        found = document.inner("vocab")
        listed = document.values.get("merges")
        if not isinstance(listed, list):
            raise document.wrong("merges", "is not a list")
        pairs = [each.split(" ") if isinstance(each, str) else each for each in listed]
        merges_in = saved
    else:
        raise ArtifactError(f"{folder} has neither vocab.json and merges.txt nor tokenizer.json.")
    size = JsonObject(read_json(folder / CONFIG), str(folder / CONFIG)).take("vocab_size", int, least=1, most=2**24)
    return _tokeniser(found, pairs, size, where, merges_in)


def _tokeniser(
    found: JsonObject, pairs: list[Any], size: int, where: Path, merges_in: Path
) -> tuple[ByteBpeTokeniser, Tensor]:
    """The tokeniser of a vocabulary and merges, once they are checked, and its ids by ours."""
    numbers = {piece: found.take(piece, int, least=0, most=size - 1) for piece in found.values}
    pieces = [piece for piece in sorted(numbers, key=numbers.__getitem__) if piece != END]
    if len(set(numbers.values())) < len(numbers) or not all(pieces):
        raise ArtifactError(f"{where} is damaged: it gives two pieces one id, or has an empty one.")
    strange = next((piece for piece in pieces if piece in HIDDEN), None)
    if strange is not None:
        raise ArtifactError(f"{where} is damaged: its piece {strange!r} is the name of a special id of Saccade's.")
    missing = set(letters().values()) - {*pieces}
    if missing:
        raise ArtifactError(f"{where} is not a vocabulary of GPT-2: it lacks the byte {min(missing)!r}.")
    merges: list[tuple[str, str]] = []
    known = {*pieces}
    for number, pair in enumerate(pairs, start=1):
        fits = isinstance(pair, list) and len(pair) == 2 and all(isinstance(each, str) for each in pair)
        if not fits or not {*pair, "".join(pair)} <= known:
            text = " ".join(map(str, pair)) if isinstance(pair, list) else str(pair)
            raise ArtifactError(f"{merges_in} is damaged: merge {number}, {text!r:.60}, is not two pieces of a third.")
        merges.append((pair[0], pair[1]))
    tokeniser = ByteBpeTokeniser(vocab_size=len(HIDDEN) + len(pieces))
    tokeniser.take([*HIDDEN, *pieces], merges)
    ids = torch.tensor([-1] * len(NAMES) + [numbers[piece] for piece in pieces])
    # A vocabulary without the token ends a text with its last id, as GPT-2's does.
    ids[[BOS, EOS]] = numbers.get(END, size - 1)
    return tokeniser, ids


def read_weights(folder: Path, outline: TransformerLanguageModel, ids: Tensor) -> dict[str, Tensor]:
    """The weights of a folder under our names, in float32, with a row for each of our ids.

    Args:
        folder: the folder.
        outline: the model that they are for, perhaps on the meta device.
        ids: their id for each of ours, -1 for those that they do not have.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise ArtifactError(f"{folder} has no {WEIGHTS}: its weights must be in one safetensors file.")
    header = read_header(path)
    wanted = weights_of(outline)
    vocab = JsonObject(read_json(folder / CONFIG), str(folder / CONFIG)).take("vocab_size", int, least=1, most=2**24)
    for theirs, shape in _shapes(outline, vocab).items():
        found = header.get(_spelling(theirs, header))
        if found is None or found[0] != shape or not found[1].is_floating_point:
            is_there = "is missing" if found is None else f"is {found[1]} of shape {found[0]}"
            raise ArtifactError(
                f"{path} and {CONFIG} do not fit: {theirs} {is_there}, not floating point of shape {shape}."
            )
    tensors = read_tensors(path)
    of = {theirs: tensors[_spelling(theirs, header)].to(torch.float32) for theirs in _shapes(outline, vocab)}
    for name, tensor in of.items():
        if not bool(tensor.isfinite().all()):
            raise ArtifactError(f"{path} is damaged: {name} contains NaN or infinite values.")
    weights = {name: _weight(name, of, ids) for name in wanted}
    for name, tensor in weights.items():
        assert tensor.shape == wanted[name].shape, name
    return weights


def _weight(name: str, of: dict[str, Tensor], ids: Tensor) -> Tensor:
    """One of our weights, made of theirs."""
    if name == "embedding.positions.table":
        return of["wpe.weight"]
    if name in ("embedding.table.weight", "head.proj.weight"):
        table = of["wte.weight" if name.startswith("embedding") or "lm_head.weight" not in of else "lm_head.weight"]
        return torch.where((ids >= 0).unsqueeze(1), table[ids.clamp(min=0)], 0.0)
    if name == "head.proj.bias":
        silent = ids < 0
        silent[BOS] = True  # the end has the same weights
        return torch.where(silent, IMPOSSIBLE, 0.0)
    if name.startswith("final_norm."):
        return of[name.replace("final_norm.", "ln_f.")]
    _, number, rest = name.split(".", 2)
    for place, part in enumerate(JOINED):
        if rest.startswith(f"self_attention.{part}."):
            whole = of[f"h.{number}.attn.c_attn.{rest.rpartition('.')[2]}"]
            return whole.chunk(3, dim=-1)[place].mT if whole.dim() > 1 else whole.chunk(3)[place]
    ours, theirs = next(pair for pair in LAYER.items() if rest.startswith(pair[0]))
    tensor = of[f"h.{number}.{theirs}{rest.removeprefix(ours)}"]
    return tensor.mT if tensor.dim() > 1 else tensor


def _shapes(outline: TransformerLanguageModel, vocab: int) -> dict[str, tuple[int, ...]]:
    """The names that their weights must have, without the prefix of some, and their shapes."""
    own = {name: tuple(tensor.shape) for name, tensor in weights_of(outline).items()}
    dim = own["embedding.table.weight"][1]
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (vocab, dim), "wpe.weight": own["embedding.positions.table"]}
    for name, shape in own.items():
        place = name.split(".")
        if name.startswith("final_norm."):
            shapes[name.replace("final_norm.", "ln_f.")] = shape
        elif place[0] == "layers" and place[3] == JOINED[0]:
            shapes[f"h.{place[1]}.attn.c_attn.{place[-1]}"] = (*shape[1:], 3 * shape[0])
        elif place[0] == "layers" and place[3] not in JOINED:
            theirs = next(theirs for ours, theirs in LAYER.items() if ".".join(place[2:]).startswith(ours))
            shapes[f"h.{place[1]}.{theirs}{place[-1]}"] = shape[::-1]
    if "head.proj.weight" in own:
        shapes["lm_head.weight"] = (vocab, dim)
    return shapes


def _spelling(name: str, header: Mapping[str, Any]) -> str:
    """What a weight is called in a file: that of a model with a head has a prefix."""
    return f"transformer.{name}" if f"transformer.{name}" in header else name


def settings_of(folder: Path) -> dict[str, Any]:
    """A configuration of Saccade's for the model in a folder."""
    arguments = read_arguments(folder)
    text = {"class": "text", "tokeniser": "byte_bpe", "max_length": arguments["max_length"]}
    metrics = ["perplexity", "word_perplexity", "bits_per_byte", "accuracy"]
    return {
        "task": {"class": "language_modelling", "text": text, "metrics": metrics},
        "model": {"class": "transformer_lm", **arguments},
        "trainer": {"max_epochs": 1},
    }
