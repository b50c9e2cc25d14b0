"""A tiny model with random weights for each family and each kind of input and answer that is exported."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from saccade.artifacts import save_weights
from saccade.data.cell import Cell
from saccade.data.tokenisers import tokenisers
from saccade.encoders.backbones import EfficientNetLite0
from saccade.fields import (
    Audio,
    Document,
    GraphField,
    Image,
    Label,
    Labels,
    Link,
    Node,
    OptionalField,
    Reviews,
    Tags,
    Text,
    VisitLabel,
    VisitLabels,
    Visits,
    WordPieces,
)
from saccade.models import models
from saccade.tasks import Classification, Generation, LanguageModelling, Rating, Recommendation, Spans, Task

TINY = {"embedding_dim": 6, "hidden_dim": 10}
HEADS = {"dim": 12, "num_heads": 2}
WORDS = ["ba", "dodo", "kelu", "minamo", "su", "tarifa", "we,"]
TEXTS = [" ".join(WORDS[(n + k * k) % 7] for k in range(1 + n % 4)) for n in range(23)]
ASKED = ["ba su", "tarifa we, kelu x", "minamo", "we, we, dodo ba su su"]
NAMES = ["bad", "fair", "good"]


@dataclass
class Case:
    """What stands for a run: its task, its model, and what it is asked."""

    task: Task
    model: nn.Module
    raw: list[Any]
    options: Sequence[dict[str, Any]] = ({},)
    attends: bool = True
    values: list[Any] = field(default_factory=list)
    """The inputs as the fields read them."""

    def __post_init__(self) -> None:
        for number, raw in enumerate(self.raw):
            given = raw if len(self.task.inputs) > 1 else {next(iter(self.task.inputs)): raw}
            cells = {role: Cell("memory", number + 1, role) for role in given}
            fields = self.task.inputs
            read = {
                role: fields[role].read(each, cells[role]) if each or isinstance(fields[role], OptionalField) else each
                for role, each in given.items()
            }
            self.values.append(read)


def made(task: Task, model: str, examples: Sequence[dict[str, Any]], raw: list[Any], **given: Any) -> Case:
    own = {name: given.pop(name) for name in ("options", "attends") if name in given}
    read = [{role: task.fields[role].read(each, Cell("memory", 1, role)) for role, each in e.items()} for e in examples]
    task.fit(read)
    if isinstance(task, Generation):
        task.longest_target, task.target_ratio = 3, 1.1
    torch.manual_seed(7)
    built = task.build(models.load().get(model), **given).eval()
    for parameter in built.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    return Case(task, built, raw, **own)


SEARCHES = ({"beam": 1}, {"beam": 3, "nbest": 2, "length_penalty": 1.0}, {"beam": 2, "max_length": 3})


SHORT = ({"beam": 1, "max_length": 7}, {"beam": 3, "max_length": 7})
"""Untrained models repeat themselves: of long texts, and of the second best, several are nearly equal."""


def writes(model: str, folder: Path, *, tokeniser: str = "char", **given: Any) -> Case:
    options = {"vocab_size": 31} if tokeniser in ("bpe", "unigram") else {}
    own = {name: given.pop(name) for name in ("joint", "copying", "lexicon") if name in given}
    task = Generation(source=_text(tokeniser, **options), metrics=["exact_match"], **own)
    examples = [{"source": each, "target": each[::-1]} for each in TEXTS]
    return made(task, model, examples, [*ASKED, ""], **{"options": SEARCHES, **given})


def looks_up(model: str, folder: Path, **given: Any) -> Case:
    """A model with a lexicon, which translates some words backwards."""
    path = folder / "lexicon.tsv"
    path.write_text("".join(f"{word}\t{word[::-1]}\t0.7\n{word}\tus\t0.2\n" for word in WORDS[:5]))
    case = writes(model, folder, tokeniser="word", lexicon=str(path), head="lexicon", **given)
    case.task.start(case.model)
    return case


def _text(tokeniser: str, **options: Any) -> Text:
    return Text(tokeniser=tokenisers.create(tokeniser, **options))


def labels(model: str, folder: Path, *, form: str = "one", text: Any = None, rated: bool = False, **given: Any) -> Case:
    inputs = {"text": text or _text("word")}
    rows = [{"text": each} for each in TEXTS]
    if rated:
        task: Task = Rating(inputs=inputs)
        examples = [{**row, "number": float(n)} for n, row in enumerate(rows)]
    else:
        label = {"one": Label(), "several": Labels(), "ordered": Label(ordered=True), "tags": Tags()}[form]
        task = Classification(inputs=inputs, label=label)
        wanted: dict[str, Callable[[int], Any]] = {
            "one": lambda n: NAMES[n % 3],
            "several": lambda n: NAMES[: n % 4],
            "ordered": lambda n: n % 3,
            "tags": lambda n: [NAMES[len(word) % 3] for word in TEXTS[n].split()],
        }
        examples = [{**row, "label": wanted[form](n)} for n, row in enumerate(rows)]
    return made(task, model, examples, ASKED, **given)


def pairs(model: str, folder: Path, **given: Any) -> Case:
    inputs = {"premise": _text("word"), "hypothesis": _text("word")}
    rows = [{"premise": TEXTS[n], "hypothesis": TEXTS[-n], "label": NAMES[n % 3]} for n in range(len(TEXTS))]
    asked = [{"premise": one, "hypothesis": other} for one, other in zip(ASKED, ASKED[1:] + ASKED[:1], strict=True)]
    return made(Classification(inputs=inputs), model, rows, asked, **given)


def wordpieces(folder: Path, *, pair: bool = False, spans: bool = False, **given: Any) -> Case:
    text = WordPieces(vocab_size=61, max_length=23)
    sizes = {**HEADS, "num_layers": 2, "max_length": 23}
    if not (pair or spans):
        return labels("bert", folder, text=text, **sizes, **given)
    values = [[TEXTS[n], TEXTS[-n]] for n in range(len(TEXTS))]
    asked = [["Su ba?", "a tarifa WE, ba  dodo"], ["kelu", "Süß minamo " * 9], ["x " * 40, "dodo su"]]
    if spans:
        rows = [{"text": [one, other], "span": other.split()[0]} for one, other in values]
        return made(Spans(text=text), "bert", rows, asked, attends=False, **sizes, **given)
    rows = [{"text": value, "label": NAMES[n % 3]} for n, value in enumerate(values)]
    return made(Classification(inputs={"text": text}), "bert", rows, asked, **sizes, **given)


def documents(folder: Path, **given: Any) -> Case:
    text = Document(sentences="given", tokeniser="word", max_words=5, max_sentences=4)
    rows = [{"text": TEXTS[n : n + 1 + n % 3], "label": NAMES[n % 3]} for n in range(len(TEXTS) - 3)]
    asked = [["ba su", "", "dodo"], ["we, we, kelu su su su"], ["x", "minamo", "ba", "su ba", "kelu"]]
    sizes = {**TINY, "context_dim": 7}
    return made(Classification(inputs={"text": text}), "han", rows, asked, **sizes, **given)


VISITS: list[Any] = [
    [["a", "b"], {"codes": {"glucose": 7.1, "smoker": "yes", "c": True, "d": False}}, []],
    {"visits": [{"time": "2024-05-01", "codes": ["a", 5]}, {"time": "2024-05-01T14:30", "codes": {"glucose": "5"}}]},
    {"visits": [{"time": 3, "codes": {"b": None}}, {"time": 3.5, "codes": ["c"]}], "static": {"age": 61, "sex": None}},
    {"visits": [["b"]] * 5, "static": ["tall"], "name": "P4"},
]


def records(model: str, folder: Path, *, each: bool = False, several: bool = False, **given: Any) -> Case:
    """Records of visits, with an outcome for the whole or for each visit."""
    values = [*VISITS, *([["a", "c"]] * (1 + n % 3) for n in range(5))]
    counts = [len(value["visits"]) if isinstance(value, dict) else len(value) for value in values]
    wanted: list[Any] = [["no", "yes"][n % 2] for n in range(len(values))]
    label: Label = Label(positive="yes")
    if each:
        label = VisitLabels() if several else VisitLabel()
        outcomes: list[Any] = [["x", "y"][: n % 3] for n in range(3)] if several else ["no", "yes", None]
        wanted = [[outcomes[(n + k) % 3] for k in range(count)] for n, count in enumerate(counts)]
    rows = [{"record": value, "label": out} for value, out in zip(values, wanted, strict=True)]
    asked = [*VISITS, '[["a"], ["unknown", "b"]]']
    task = Classification(inputs={"record": Visits(max_visits=4)}, label=label)
    return made(task, model, rows, asked, options=({}, {"threshold": 0.7}), **given)


def reviews(model: str, folder: Path, *, timed: bool = True, **given: Any) -> Case:
    """Ratings from the reviews of users and items, with some of neither."""
    task = Recommendation(text=Reviews(max_reviews=3, max_words=4) if timed else "reviews")
    rows = [
        {"user": f"u{n % 5}", "item": f"i{n * n % 7}", "rating": float(n % 4), "text": TEXTS[n], "time": 9 - n % 9}
        for n in range(len(TEXTS))
    ]
    rows = [{**row, "time": row["time"] if timed else None} for row in rows]
    asked = [
        {"user": "u1", "item": "i2", "time": None},
        {"user": "u3", "item": "i4", "time": 5 if timed else None},
        {"user": "nobody", "item": "i1", "time": None},
        {"user": "nobody", "item": "nothing", "time": "2016-03-09"},
        {"user": "u2", "item": None, "time": None},
    ]
    return made(task, model, rows, asked, options=({"top": 3, "seen": True}, {"top": 2}), **given)


def picture(seed: int, width: int = 19, height: int = 23, kind: str = "PNG") -> bytes:
    from PIL import Image as Pillow

    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3 + (kind == "PNG" and seed % 2)), np.uint8)
    content = io.BytesIO()
    Pillow.fromarray(pixels).save(content, kind)
    return content.getvalue()


def pictures(folder: Path, *, model: str = "show_attend_tell", **given: Any) -> Case:
    files = [picture(n) for n in range(5)]
    asked = [picture(11), picture(12, 37, 16), picture(13, 31, 47, "JPEG")]
    source = Image(size=16, patch=4)
    if model == "pooling":
        rows = [{"picture": each, "label": NAMES[n % 3]} for n, each in enumerate(files)]
        return made(Classification(inputs={"picture": source}), model, rows, asked, **given)
    task = Generation(source=source, target=_text("word"), metrics=["exact_match"])
    rows = [{"source": each, "target": TEXTS[n]} for n, each in enumerate(files)]
    return made(task, model, rows, asked, options=SHORT, **given)


def annotated(folder: Path, **given: Any) -> Case:
    """Captions of what a pretrained network, here a random one, sees in pictures."""
    torch.manual_seed(3)
    network = EfficientNetLite0(weights="")
    save_weights(network, folder / "network.safetensors")
    network = EfficientNetLite0(weights=str(folder / "network.safetensors"))
    source = Image(size=64, resize=71, backbone=network, features=str(folder / "features"))
    task = Generation(source=source, target=_text("word"), metrics=["exact_match"])
    rows = [{"source": picture(n), "target": TEXTS[n]} for n in range(3)]
    asked = [picture(11), picture(13, 131, 97, "JPEG")]
    return made(task, "show_attend_tell", rows, asked, options=SHORT, encoder="given", **TINY, **given)


def sources(model: str, folder: Path, *, pictured: bool = False, **given: Any) -> Case:
    """Texts from two sources, of which one may be missing: two texts, or a text and a picture."""
    other = Image(size=16, patch=4) if pictured else _text("char")
    values = [picture(n) for n in range(len(TEXTS))] if pictured else TEXTS[::-1]
    task = Generation(source=_text("word"), sources={"other": other}, target=_text("word"), metrics=["exact_match"])
    rows = [{"source": TEXTS[n], "other": values[n], "target": TEXTS[n]} for n in range(len(TEXTS))]
    asked = [
        {"source": "ba su kelu", "other": values[3]},
        {"source": "tarifa", "other": None},
        {"source": None, "other": values[5]},
        {"source": "", "other": None if pictured else ""},
        {"source": "dodo we, su su minamo", "other": values[2]},
    ]
    return made(task, model, rows, asked, options=SHORT, **{**TINY, "num_layers": 1, **given})


def recordings(folder: Path, *, model: str = "rnnsearch", **given: Any) -> Case:
    from tests.data.sounds import pcm, tone

    def hissing(frequency: float, seconds: float, rate: int = 8000, bits: int = 16) -> bytes:
        """A tone with noise: in the empty bands of a pure tone, only rounding errors would be compared."""
        sound = tone(frequency, seconds, rate)
        return pcm(sound + 0.01 * np.random.default_rng(5).standard_normal(len(sound)), rate, bits)

    sounds = [hissing(400.0 + 200 * n, 0.3 + 0.05 * n) for n in range(5)]
    asked = [hissing(900.0, 0.4), hissing(500.0, 0.35, 11025, 24), hissing(700.0, 0.5, 16000, 8)]
    task = Generation(source=Audio(mels=7), target=_text("char"), metrics=["exact_match"])
    rows = [{"source": each, "target": TEXTS[n]} for n, each in enumerate(sounds)]
    return made(task, model, rows, asked, options=SHORT, **{"source_stride": 4, **TINY, **given})


def nodes(folder: Path, **given: Any) -> Case:
    chance = np.random.default_rng(5)
    edges = chance.integers(0, 28, size=(61, 2))  # the last nodes are alone
    np.savez(folder / "graph.npz", x=chance.standard_normal((31, 5)).astype(np.float32), edges=edges)
    task = Classification(inputs={"node": Node(graph=str(folder / "graph.npz"), self_loops=False)})
    rows = [{"node": str(n), "label": NAMES[n % 3]} for n in range(31)]
    return made(task, "gat", rows, ["3", "30", "17", "0"], head_dim=3, num_heads=2, **given)


def links(folder: Path, **given: Any) -> Case:
    chance = np.random.default_rng(5)
    edges = chance.integers(0, 28, size=(61, 2))  # the last nodes are alone
    graph = {"x": chance.standard_normal((31, 5)).astype(np.float32), "edges": edges}
    np.savez(folder / "graph.npz", **graph, edge_features=chance.standard_normal((61, 3)).astype(np.float32))
    field = Link(graph=str(folder / "graph.npz"), self_loops=False)
    rows = [{"pair": f"{n} {(n * n + 1) % 31}", "label": NAMES[n % 3]} for n in range(31)]
    asked = ["3 17", "30 2", "29 30", ["0", "1"]]
    return made(Classification(inputs={"pair": field}), "gat_link", rows, asked, head_dim=3, num_heads=2, **given)


def molecules(folder: Path, *, plain: bool = False, **given: Any) -> Case:
    """Small graphs, with everything that a graph may have, or of edges alone."""
    whole: list[dict[str, Any]] = [
        {
            "edges": [[k, (k * k + n) % (3 + n)] for k in range(3 + n)],
            "tags": [WORDS[(n + k) % 3] for k in range(3 + n)],
            "features": [[k - n, 2.0] for k in range(3 + n)],
            "edge_tags": ["single" if k % 2 else "double" for k in range(3 + n)],
            "edge_features": [[0.3 * k] for k in range(3 + n)],
        }
        for n in range(7)
    ]
    asked: list[Any] = [*whole[:3], {**whole[5], "names": list("abcdefgh")}, {**whole[1], "tags": ["new"] * 4}]
    if plain:
        whole, asked = (
            [{"edges": each["edges"], "nodes": len(each["tags"]) + 1} for each in e] for e in (whole, asked)
        )
    rows = [{"graph": each, "label": NAMES[n % 3]} for n, each in enumerate(whole)]
    field = GraphField(directed=plain, self_loops=not plain, degrees=not plain)
    sizes = {"head_dim": 3, "num_heads": 2, "num_layers": 2, **given}
    return made(Classification(inputs={"graph": field}), "gat_graph", rows, asked, **sizes)


def language(
    folder: Path, *, model: str = "transformer_lm", causal: bool = True, contiguous: bool = False, **given: Any
) -> Case:
    task = LanguageModelling(text=_text("char") if causal else _text("word"), causal=causal, contiguous=contiguous)
    asked = ["ba su", "tarifa we, kelu", "m"] if causal else ["ba [MASK] su", "[MASK] we, [MASK]"]
    options = [{"score": True}, {}, *([{"beam": 3, "nbest": 2, "max_length": 5}] if causal else [])][contiguous:]
    sizes = (
        {**HEADS, "num_layers": 2, "max_length": 256, **given} if model == "transformer_lm" else {"dim": 12, **given}
    )
    return made(task, model, [{"text": t} for t in TEXTS], asked, options=options, attends=False, **sizes)


CASES: dict[str, Callable[[Path], Case]] = {
    "rnnsearch": partial(writes, "rnnsearch", **TINY),
    "luong": partial(writes, "luong", tokeniser="word", **TINY),
    "cho": partial(writes, "cho", attends=False, **TINY),
    "sutskever": partial(writes, "sutskever", attends=False, **TINY),
    "kim": partial(writes, "kim", selection="softmax", **TINY),
    "transformer": partial(writes, "transformer", tokeniser="bpe", encoder_layers=1, **HEADS),
    "transformer, unigram, rotary": partial(
        writes, "transformer", tokeniser="unigram", encoder_layers=1, positions="rotary", **HEADS
    ),
    "rnnsearch, tagged": partial(writes, "rnnsearch", tokeniser="tagged", **TINY),
    "transformer, entmax": partial(writes, "transformer", selection="entmax", encoder_layers=1, **HEADS),
    "convolutional_attention": partial(
        writes, "convolutional_attention", joint=True, copies=False, embedding_dim=6, first_channels=5, channels=4
    ),
    "convolutional_attention, copying": partial(
        writes, "convolutional_attention", tokeniser="word", joint=True, copying=True, first_channels=5, embedding_dim=6
    ),
    "copynet": partial(writes, "copynet", tokeniser="word", copying=True, **TINY),
    "pointer_generator": partial(writes, "pointer_generator", tokeniser="bpe", copying=True, **TINY),
    "rnnsearch, copying": partial(
        writes, "rnnsearch", tokeniser="char", copying=True, head="pointer_generator", selection="sparsemax", **TINY
    ),
    "transformer, copying": partial(
        writes,
        "transformer",
        tokeniser="word",
        copying=True,
        head="pointer_generator",
        encoder_layers=1,
        decoder_layers=2,
        **HEADS,
    ),
    "luong, lexicon": partial(looks_up, "luong", **TINY),
    "hard_monotonic": partial(writes, "hard_monotonic", attends=False, **TINY),
    "ssnt": partial(writes, "ssnt", attends=False, **TINY),
    "pooling": partial(labels, "pooling", **TINY),
    "pooling, several labels": partial(labels, "pooling", form="several", **TINY),
    "pooling, ordered labels": partial(labels, "pooling", form="ordered", **TINY),
    "pooling, rating": partial(labels, "pooling", rated=True, num_queries=2, **TINY),
    "pooling, lstmn": partial(labels, "pooling", encoder="lstmn", encoder_layers=2, **TINY),
    "pooling, convolutional": partial(labels, "pooling", encoder="convolutional", **TINY),
    "tagging": partial(labels, "tagging", form="tags", **TINY),
    "rationale": partial(labels, "rationale", **TINY),
    "rationale, recurrent": partial(labels, "rationale", generator="recurrent", cell="gru", **TINY),
    "rationale, rating": partial(
        labels,
        "rationale",
        rated=True,
        estimator="straight_through",
        cell="lstm",
        share=0.5,
        pooling="average",
        **TINY,
    ),
    "han": documents,
    "han, words alone": partial(documents, sentence_pooling="average"),
    "bert": wordpieces,
    "bert, pooled by attention": partial(wordpieces, pooling="attention"),
    "bert, windows": partial(wordpieces, pooling="attention", window=4),
    "bert, several labels": partial(wordpieces, form="several"),
    "bert, rating": partial(wordpieces, rated=True),
    "bert, tags": partial(wordpieces, form="tags", head="tokens"),
    "bert, pairs": partial(wordpieces, pair=True),
    "bert, spans": partial(wordpieces, spans=True),
    "lstmn_pair": partial(pairs, "lstmn_pair", **TINY),
    "lstmn_pair, shallow": partial(pairs, "lstmn_pair", fusion="shallow", window=2, compare=True, **TINY),
    "word_by_word": partial(pairs, "word_by_word", compare=True, **TINY),
    "retain": partial(records, "retain", **TINY),
    "retain, each visit": partial(records, "retain", each=True, **TINY),
    "visit_rnn": partial(records, "visit_rnn", attends=False, **TINY),
    "visit_rnn, each visit": partial(records, "visit_rnn", attends=False, each=True, cell="lstm", num_layers=2, **TINY),
    "visit_transformer": partial(records, "visit_transformer", attends=False, **HEADS),
    "visit_transformer, each visit": partial(records, "visit_transformer", each=True, several=True, **HEADS),
    "visit_bag": partial(records, "visit_bag", attends=False),
    "factorisation": partial(reviews, "factorisation", attends=False),
    "deep_conn": partial(reviews, "deep_conn", attends=False, embedding_dim=6, filters=5, hidden_dim=7),
    "dual_attention": partial(
        reviews, "dual_attention", embedding_dim=6, local_filters=5, global_filters=4, hidden_dim=7
    ),
    "mpcn": partial(reviews, "mpcn", **TINY),
    "mpcn, without times": partial(reviews, "mpcn", timed=False, pointers=2, combine="ffn", **TINY),
    "gat": nodes,
    "gat_link": links,
    "gat_link, directed": partial(links, directed=True, score="gatv2"),
    "gat_graph": molecules,
    "gat_graph, edges alone": partial(molecules, plain=True, pooling_selection="sigmoid", num_queries=2),
    "show_attend_tell": partial(pictures, encoder="residual", annotation_dim=6, **TINY),
    "show_attend_tell, patches": partial(pictures, encoder="patches", annotation_dim=12, **TINY),
    "show_attend_tell, pretrained network": annotated,
    "pooling, pictures": partial(pictures, model="pooling", encoder="patches", hidden_dim=8),
    "multi_source": partial(sources, "multi_source", combination="child_sum", bidirectional=True),
    "multi_source, hierarchical": partial(sources, "multi_source", attention="hierarchical"),
    "multi_source, all": partial(sources, "multi_source", attention="all", encoders=["convolutional", "recurrent"]),
    "multi_source, pictures": partial(
        sources, "multi_source", pictured=True, encoders=["recurrent", "patches"], hidden_dim=12
    ),
    "multimodal": partial(sources, "multimodal", pictured=True),
    "multimodal, threads": partial(sources, "multimodal", pictured=True, threads=True, place="tail"),
    "rnnsearch, recordings": recordings,
    "las, recordings": partial(recordings, model="las", listener_dim=5, source_stride=2, pyramid=[2, 1]),
    "transformer_lm": language,
    "transformer_lm, masked": partial(language, causal=False),
    "lstm_lm": partial(language, model="lstm_lm"),
    "lstm_lm, contiguous": partial(language, model="lstm_lm", contiguous=True),
    "lstmn_lm": partial(language, model="lstmn_lm", num_layers=2, window=4),
    "pointer_sentinel": partial(language, model="pointer_sentinel", window=4),
}
"""By the name of the model, and what is special about it."""
