"""The command that shows what a Hugging Face model attends to: inspect."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

from saccade.commands.interrupting import leaving_at_once
from saccade.commands.pictures import check_place

CONFIG = "config.json"
PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
SOUNDS = (".aiff", ".flac", ".ogg", ".opus", ".wav")
USUAL_STEPS = 32
"""How many tokens an encoder-decoder model writes by default."""
READS = {
    "input_ids": ("a text", 'a text (--input "some words")'),
    "pixel_values": ("a picture", "a picture (--input photo.jpg)"),
    "input_features": ("a recording", "a recording (--input speech.wav)"),
    "input_values": ("a recording", "a recording (--input speech.wav)"),
}
AFTER_ATTENTION = re.compile(r"pooler|classifier|score|outputs|cls|head|predict|projection")
"""Modules that attention does not depend on, and that a folder may lack."""
LONG, TOP = 2048, 16
"""For an input with more tokens than the first number, only the second number of weights is kept for each token."""


def inspect(
    folder: str,
    *,
    input: list[str] | None = None,
    output: str = "attention.html",
    generate: int | None = None,
    beams: int = 1,
    top: int | None = None,
    title: str | None = None,
) -> None:
    """Show what a Hugging Face model attends to, without writing any Python.

        saccade inspect models/gpt2 --input "The eye rests, then jumps." --generate 20
        saccade inspect models/t5-small --input "translate English to German: a small house" --beams 4
        saccade inspect models/vit --input photo.jpg --output photo.html
        saccade inspect models/whisper-tiny --input speech.wav

    The folder is what `save_pretrained` writes: config.json, weights as .safetensors, and the files of the tokeniser or
    processor. Pickled weights and code from the folder are never opened or run, and nothing is downloaded. This needs
    the transformers library.

    Args:
        folder: the folder of the model.
        input: a text, or the path of a picture or recording; for a model that reads both, give it twice.
        output: the page to write.
        generate: how many tokens to write; by default 32 for encoder-decoder models, and none for others.
        beams: the beam size.
        top: keep only this many of each token's largest weights; by default 16 if the input has more than 2,048 tokens.
        title: the title of the page.
    """
    place = Path(folder)
    check_folder(place)
    check_place(output, "--output")
    texts, pictures, sounds = _sorted(input or [])
    for name, value in (("--generate", generate), ("--beams", beams), ("--top", top)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    with leaving_at_once():
        transformers = _transformers()
        import torch

        from saccade.interpretation.recording import record
    model = load_model(transformers, place)
    steps = _steps(model, generate, beams)
    batch, tokenizer, shown, rate = _prepare(transformers, place, model, texts, pictures, sounds)
    length = max((each.shape[-1] for name, each in batch.items() if name == "input_ids"), default=0)
    if top is None and length > LONG:
        top = TOP
    with torch.no_grad(), record(model, reduce=None if top is None else ("top_k", top)) as trace, _told(place):
        found = None
        try:
            if steps is None:
                model(**batch)
            else:
                found = model.generate(**batch, max_new_tokens=steps, num_beams=beams, return_dict_in_generate=True)
        except (IndexError, RuntimeError) as error:
            most = getattr(model.config, "max_position_embeddings", None)
            if most is None or length + (steps or 0) <= most:
                raise
            wanted = f"{length:,} tokens" + (f" and {steps:,} to write" if steps else "")
            raise ValueError(f"the model has {most:,} positions, too few for {wanted}.") from error
    name = title or f"{place.resolve().name} ({type(model).__name__})"
    trace.explore(output, tokenizer=tokenizer, inputs=shown, generated=found, rate=rate, title=name)
    size = Path(output).stat().st_size
    print(f"Wrote {output} ({size / 1e6:.1f} MB): {len(trace.paths)} attention modules.", file=sys.stderr)


def check_folder(folder: Path) -> None:
    """Raises unless this is the folder of a model whose weights can be read safely."""
    if not folder.is_dir():
        what = "that is a file" if folder.exists() else "there is no such folder"
        raise ValueError(f"{folder}: {what}. Give the folder that save_pretrained wrote.")
    if not (folder / CONFIG).is_file():
        run = (folder / "run.json").is_file() or (folder / "config.yaml").is_file()
        hint = " It looks like a run of Saccade: use `saccade explain`." if run else ""
        raise ValueError(f"{folder} is not the folder of a Hugging Face model: {CONFIG} is missing.{hint}")
    if next(folder.glob("*.safetensors"), None) is None:
        pickles = sorted(each.name for kind in ("*.bin", "*.pt", "*.pth", "*.ckpt") for each in folder.glob(kind))
        if pickles:
            raise ValueError(
                f"{folder} has its weights in {pickles[0]}, a pickle, which can run any code when it is opened: "
                "convert it in a place you trust, with model.save_pretrained(folder)."
            )
        raise ValueError(f"{folder} has no weights: there is no .safetensors file.")


def load_model(transformers: Any, folder: Path) -> Any:
    """Loads the model in a folder as the class that its configuration names; custom code is rejected."""
    with _told(folder):
        settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise ValueError(f"{folder / CONFIG} must contain an object, got {type(settings).__name__}.")
    named = settings.get("architectures") or [None]
    kind: Any = getattr(transformers, str(named[0]), None) if isinstance(named, list) else None
    safely = {"local_files_only": True, "trust_remote_code": False}
    if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
        if settings.get("auto_map"):
            raise ValueError(f"{folder} brings its own code ({named[0]}), which is not run: open it in Python.")
        kind = transformers.AutoModel
    own = getattr(getattr(kind, "config_class", None), "model_type", None)
    if own is not None and settings.get("model_type") not in (None, own):
        raise ValueError(
            f"{folder / CONFIG}: model_type is {settings['model_type']!r}, and that of {named[0]} {own!r}: "
            "open it in Python."
        )
    options = {"use_safetensors": True, "output_loading_info": True, "ignore_mismatched_sizes": True}
    with _told(folder):
        model, about = kind.from_pretrained(str(folder), **safely, **options)
    _check_weights(folder, about)
    return model.eval()


def _check_weights(folder: Path, about: dict[str, Any]) -> None:
    """Raises if a weight that attention depends on is not in the files: it would be random."""
    wrong = [f"{name} {tuple(found)} instead of {tuple(wanted)}" for name, found, wanted in about["mismatched_keys"]]
    if wrong:
        raise ValueError(f"{folder}: the weights do not fit {CONFIG}: {_first(wrong)}.")
    missing = sorted(filter(_matters, about["missing_keys"]))
    if missing:
        raise ValueError(
            f"{folder}: the .safetensors files lack {_first(missing)}, which would be random. "
            f"Do they belong to this {CONFIG}?"
        )


def _matters(name: str) -> bool:
    """Whether attention depends on a weight: it is in a numbered layer, or the embedding of the tokens."""
    parts = name.split(".")
    numbers = [place for place, part in enumerate(parts) if part.isdecimal()]
    before = parts[: numbers[0]] if numbers else []
    embedding = parts[-1] == "weight" and parts[-2:-1] in (["wte"], ["shared"], ["embed_tokens"], ["word_embeddings"])
    return (bool(numbers) and not any(map(AFTER_ATTENTION.search, before))) or embedding


def _first(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _prepare(
    transformers: Any, folder: Path, model: Any, texts: list[str], pictures: list[Path], sounds: list[Path]
) -> tuple[Any, Any, Any, int]:
    """The batch, what names its tokens, the input as the page shows it, and the rate of a recording."""
    kind, wanted = READS.get(str(model.main_input_name), ("", str(model.main_input_name)))
    given: dict[str, list[Any]] = {"a text": texts, "a picture": pictures, "a recording": sounds}
    for name, each in given.items():
        if len(each) > 1:
            raise ValueError(f"A page shows {name}, got {len(each)}: write a page for each.")
    if kind and not given[kind]:
        found = " and ".join(name for name, each in given.items() if each) or "missing"
        raise ValueError(f"{type(model).__name__} reads {wanted}, and --input is {found}.")
    tokenizer: Any = None
    batch: Any = {}
    rate = 16_000
    if texts or model.can_generate():
        tokenizer = _load(transformers.AutoTokenizer, folder, "tokenizer*", "its tokeniser", "*vocab*", "*.model")
    if texts:
        batch = tokenizer(texts, return_tensors="pt")
        known = _vocabulary(model)
        if known is not None and int(batch["input_ids"].max()) >= known:
            raise ValueError(
                f"{folder}: the tokeniser has {len(tokenizer):,} tokens, but the model only {known:,}: "
                "they do not belong together."
            )
        if "token_type_ids" in batch and "token_type_ids" not in signature(model.forward).parameters:
            del batch["token_type_ids"]
    shown = batch
    if pictures:
        processor = _load(transformers.AutoImageProcessor, folder, "*processor_config.json", "its image processor")
        batch.update(_pixels(processor, pictures[0]))
    if sounds:
        processor = _load(transformers.AutoFeatureExtractor, folder, "*processor_config.json", "its feature extractor")
        samples, rate = _samples(processor, sounds[0])
        batch.update(processor(samples.numpy(), sampling_rate=rate, return_tensors="pt"))
        shown = samples
    return batch, tokenizer, shown, rate


def _vocabulary(model: Any) -> int | None:
    """How many tokens the model knows; None if it does not say."""
    try:
        found: int | None = getattr(model.get_input_embeddings(), "num_embeddings", None)
    except NotImplementedError:
        return None
    return found


def _load(kind: Any, folder: Path, files: str, what: str, *others: str) -> Any:
    """A tokeniser or processor of the folder."""
    if not any(True for pattern in (files, *others) for _ in folder.glob(pattern)):
        raise ValueError(f"{folder} has no files of {what} ({files}): copy them from where the model came from.")
    with _told(folder):
        return kind.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


def _steps(model: Any, generate: int | None, beams: int) -> int | None:
    """How many tokens to write; None for a model that only reads."""
    writes = bool(model.can_generate())
    if not writes and (generate is not None or beams > 1):
        raise ValueError(f"{type(model).__name__} does not write: leave out --generate and --beams.")
    if generate is None and (getattr(model.config, "is_encoder_decoder", False) or beams > 1) and writes:
        return USUAL_STEPS
    return generate


def _pixels(processor: Any, path: Path) -> Any:
    from saccade.data.extra import required
    from saccade.data.pictures import read_picture

    images = required("PIL.Image", "images")
    with _told(path):
        return processor(images=images.fromarray(read_picture(str(path))), return_tensors="pt")


def _samples(processor: Any, path: Path) -> tuple[Any, int]:
    """The sound at the rate that the model was trained with."""
    import torch

    from saccade.data.recordings import read_samples
    from saccade.kernels.resample import resample

    with _told(path):
        samples, rate = read_samples(str(path))
    wanted = int(getattr(processor, "sampling_rate", rate))
    sound = torch.from_numpy(samples)
    return (sound if rate == wanted else resample(sound, rate, wanted)), wanted


def _sorted(given: list[str]) -> tuple[list[str], list[Path], list[Path]]:
    """Texts, pictures and recordings."""
    texts, pictures, sounds = list[str](), list[Path](), list[Path]()
    for each in given:
        suffix = Path(each).suffix.lower() if len(each) < 4096 else ""
        kinds = {**dict.fromkeys(PICTURES, pictures), **dict.fromkeys(SOUNDS, sounds)}
        if suffix not in kinds:
            texts.append(each)
        elif Path(each).is_file():
            kinds[suffix].append(Path(each))
        elif " " not in each.strip():
            raise ValueError(f"--input {each}: there is no such file.")
        else:
            texts.append(each)
    if any(not text.strip() for text in texts):
        raise ValueError("--input is an empty text.")
    return texts, pictures, sounds


def _transformers() -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"  # read when the library is imported
    try:
        transformers: Any = importlib.import_module("transformers")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("inspect needs transformers: pip install transformers", name="transformers") from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@contextmanager
def _told(place: Path) -> Iterator[None]:
    """Reports errors of other libraries in one line, with the place."""
    try:
        yield
    except ModuleNotFoundError:
        raise
    except ImportError as error:
        raise ModuleNotFoundError(f"{place}: {' '.join(str(error).split())}") from None
    except Exception as error:  # other libraries have errors of their own
        raise ValueError(f"{place}: {' '.join(str(error).split())}") from error
