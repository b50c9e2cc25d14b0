"""Exports next to the run that they were made from: the same answers, how fast, and what 8 bits lose.

The translations are those of 1,000 sentences of Multi30k (see `benchmarks.multi30k` for SACCADE_DATA), by a small
Transformer that is trained for a minute or two. SACCADE_TRANSLATOR names the folder of another run instead, of a
Transformer that translates these sentences.
"""

import importlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Measurement, Timing
from benchmarks.multi30k import lines
from benchmarks.serving_clients import dates, run_folder

COUNT = 128
SENTENCES = 1000
TOKENS = 60
"""The most tokens of a translation."""


@dataclass(frozen=True)
class Figure:
    """How large a figure of an export is, relative to that of the run."""

    what: str
    against: str
    figures: Callable[[], tuple[float, float]]
    unit: str
    must: float | None = None
    aim: float | None = None

    def measure(self, repeats: int) -> Measurement:
        ours, peer = self.figures()
        return Measurement(ours / peer, ours, peer, self.unit)


def cases() -> list[Any]:
    what = f"{COUNT} dates by the ONNX runner, RNNsearch"
    sentences = f"{SENTENCES:,} Multi30k sentences, Transformer"
    same = f"{sentences}: the same greedy translation by the CTranslate2 export"
    one_thread = "run.predict, one thread"
    return [
        *(Timing(f"{what}, beam {beam}", one_thread, partial(onnx_runner, beam=beam)) for beam in (1, 5)),
        Figure(same, "run.predict", ctranslate2, "sentences", must=1.0),
        Figure(f"{sentences}: BLEU of the int8 export, greedy", "float32", int8, "BLEU"),
    ]


def onnx_runner(beam: int) -> tuple[Callable[[], object], Callable[[], object]]:
    run, model = both()
    texts = dates()[:COUNT]
    given = [answer.text for answer in run.predict(texts, beam=beam)]
    if [answer["answer"] for answer in model.predict(texts, beam=beam)] != given:
        raise RuntimeError("the export answers differently")
    return lambda: model.predict(texts, beam=beam), lambda: run.predict(texts, beam=beam)


@cache
def both() -> tuple[Any, Any]:
    """The run on one thread, and its export on another."""
    importlib.import_module("onnxruntime")
    import torch

    import saccade
    from saccade.export import export
    from saccade.export.runner import Model

    torch.set_num_threads(1)
    run = saccade.load(run_folder())
    return run, Model(export(run, temporary("onnx"), format="onnx"), threads=1)


def temporary(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix="saccade-bench-")) / name


@cache
def translator() -> Any:
    """The run whose translations are compared."""
    import saccade

    if "SACCADE_TRANSLATOR" in os.environ:
        return saccade.load(os.environ["SACCADE_TRANSLATOR"])
    pairs = list(zip(lines("train", "en"), lines("train", "de"), strict=True))
    return saccade.train(
        task={"source": {"class": "text", "tokeniser": {"class": "bpe", "vocab_size": 4000}}, "joint": True},
        model={"class": "transformer", "dim": 128, "num_heads": 4, "encoder_layers": 2, "decoder_layers": 2},
        data={"train": pairs[:20_000]},
        trainer={"batch_tokens": 4000, "max_steps": 150, "learning_rate": 3e-3, "validate_examples": 20},
        output=temporary("run"),
    )


@cache
def translated() -> tuple[list[str], list[Any]]:
    """The sentences, and what the run makes of them, greedily."""
    texts = lines("test_2016_flickr", "en")[:SENTENCES]
    return texts, translator().predict(texts, beam=1, max_length=TOKENS)


def ctranslate2() -> tuple[float, float]:
    """How many of the greedy translations are the same, token by token, and how many there are."""
    engine = importlib.import_module("ctranslate2")
    from saccade.data.tokenisers import Tokeniser
    from saccade.export import export

    texts, wanted = translated()
    folder = export(translator(), temporary("ctranslate2"), format="ctranslate2")
    source, target = (Tokeniser.load(folder / f"{name}.json") for name in ("source", "target"))
    pieces = [source.pieces(source.encode(text)) for text in texts]
    options = {"beam_size": 1, "max_decoding_length": TOKENS, "max_batch_size": 64}
    found = engine.Translator(str(folder), compute_type="float32").translate_batch(pieces, **options)
    same = [target.pieces(one.tokens) == other.hypotheses[0] for one, other in zip(wanted, found, strict=True)]
    return float(sum(same)), float(len(same))


def int8() -> tuple[float, float]:
    """The BLEU of translations with weights of 8 bits, and with those of the run."""
    import saccade
    from saccade.evaluation import score_texts
    from saccade.export import export

    texts, wanted = translated()
    references = [[line] for line in lines("test_2016_flickr", "de")[:SENTENCES]]
    data = temporary("data.tsv")
    rows = zip(texts[:20], references, strict=False)
    data.write_text("".join(f"{text}\t{line}\n" for text, (line,) in rows), encoding="utf-8")
    rounded = saccade.load(export(translator(), temporary("int8"), format="int8", data=str(data)))
    answers = [rounded.predict(texts, beam=1, max_length=TOKENS), wanted]
    texts_of = ([each.text for each in several] for several in answers)
    after, before = (score_texts(each, references, ["bleu"], tokenize="none")["bleu"].value for each in texts_of)
    return after, before
