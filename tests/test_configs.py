"""Every configuration that is shipped trains, at toy scale, and its run predicts."""

import random

import pytest

import saccade
from saccade.commands.training import explain_config
from saccade.configuration import read_config, shipped
from saccade.runs.plan import Plan

TOY = {
    "data.train": "pairs.tsv",
    "data.valid": "valid.tsv",
    "trainer.max_steps": "2",
    "trainer.max_epochs": "null",
    "trainer.validate_every": "2",
    "trainer.validate_examples": "3",
    "trainer.batch_tokens": "60",
}
TEXTS = ("copying", "dates", "inflection", "naming", "translation")
"""The folders of the configurations that go from text to text; other tests train the others."""

SEVERAL = ("translation/multi-source", "translation/multimodal")
"""Those that go from several sources to text."""

SIZES = {
    "embedding_dim": "8",
    "hidden_dim": "12",
    "maxout_dim": "6",
    "dim": "12",
    "num_heads": "3",
    "encoder_layers": "1",
    "feed_forward_dim": "16",
}


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    """Lists of letters, the same in reverse, and the links between them."""
    monkeypatch.chdir(tmp_path)
    letters = random.Random(7)
    for name, count in (("pairs.tsv", 40), ("valid.tsv", 5)):
        words = [letters.choices("abcde", k=letters.randint(2, 7)) for _ in range(count)]
        (tmp_path / name).write_text("".join(f"{' '.join(w)}\t{' '.join(w[::-1])}\t{crossed(len(w))}\n" for w in words))
    (tmp_path / "lexicon.tsv").write_text("".join(f"{letter}\t{letter}\n" for letter in "abcde"))
    return tmp_path


@pytest.fixture
def rows(pairs):
    """The same letters twice, the second time in capitals, with pictures."""
    pictures = pytest.importorskip("PIL.Image")
    pictures.new("RGB", (40, 30), (250, 3, 90)).save(pairs / "red.png")
    for name in ("pairs.tsv", "valid.tsv"):
        table = [line.split("\t") for line in (pairs / name).read_text().splitlines()]
        lines = [f"{a},{a.upper()},red.png,{b}" if n % 3 else f"{a},,,{b}" for n, (a, b, _) in enumerate(table)]
        (pairs / f"{name[:5]}.csv").write_text("\n".join(["en,second,picture,de", *lines]))
    return pairs


def crossed(length: int) -> str:
    return " ".join(f"{place}-{length - 1 - place}" for place in range(length))


def test_there_is_one_for_everything_a_user_would_train() -> None:
    variants = ["dot", "general", "concat", "location", "local-m", "local-p", "no-feeding"]
    heads = ["", "-sparsemax", "-entmax", "-additive", "-trees"]
    searching = {f"translation/rnnsearch-{v}" for v in ("linear-chain", "sigmoid", "coverage", "supervised", "lexicon")}
    expected = {
        "copying/copynet",
        "copying/pointer-generator",
        "copying/transformer",
        "naming/convolutional",
        "classification/han",
        "classification/bert",
        "classification/bert-spans",
        "classification/bert-tags",
        "classification/lstmn",
        "captioning/show-attend-tell",
        "captioning/transformer",
        "classification/pairs",
        "classification/pictures",
        "classification/pairs-lstmn",
        "classification/pooling",
        "classification/rationale",
        "classification/tags",
        "language/bert",
        "language/lstm",
        "language/lstmn",
        "language/pointer-sentinel",
        "language/transformer",
        "rating/pairs",
        "rating/pooling",
        "speech/chorowski",
        "speech/las",
        "speech/online",
        "speech/rnnsearch",
        "translation/rnnsearch-small",
        "translation/transformer-small",
        "graphs/gat",
        "graphs/graph",
        "graphs/link",
        "graphs/link-prediction",
        "patients/gru",
        "patients/logistic",
        "patients/retain",
        "patients/transformer",
        *SEVERAL,
        "dates/rnnsearch",
        "translation/rnnsearch",
        "translation/cho",
        "translation/sutskever",
    }
    recommenders = ("biases", "deep-conn", "dual-attention", "factorisation-machine", "matrix-factorisation", "mpcn")
    expected |= {f"recommendation/{name}" for name in recommenders}
    expected |= {f"translation/luong-{v}" for v in variants} | {f"translation/transformer{h}" for h in heads}
    expected |= {f"inflection/{m}" for m in ("soft", "exact-hard", "hard-monotonic", "hard-monotonic-0", "online")}
    assert set(shipped()) == expected | searching


@pytest.mark.parametrize("name", sorted(name for name in shipped() if name.startswith(TEXTS) and name not in SEVERAL))
def test_trains_at_toy_scale(name, pairs) -> None:
    config = read_config(name)
    known = Plan(config).model.plain
    sizes = {f"model.{size}": value for size, value in SIZES.items() if size in known}
    vocabulary = (
        {}
        if name.startswith(("copying/copynet", "copying/transformer", "dates", "inflection", "naming"))
        else {"task.source.tokeniser.vocab_size": "16"}
    )
    run = saccade.train(name, output=pairs / "run", overrides={**TOY, **sizes, **vocabulary})
    assert run.result is not None
    assert run.result.step == 2
    texts = [p.text for p in run.predict(["a b c"], beam=2, max_length=9)]
    assert texts == [p.text for p in saccade.load(pairs / "run").predict(["a b c"], beam=2, max_length=9)]


@pytest.mark.parametrize("name", SEVERAL)
def test_several_sources_train_at_toy_scale(name, rows) -> None:
    sizes = {f"model.{size}": value for size, value in SIZES.items() if size in Plan(read_config(name)).model.plain}
    role = "second" if name == "translation/multi-source" else "picture"
    files = {"data.train": "pairs.csv", "data.valid": "valid.csv"}
    columns = {"data.columns": f"{{source: en, {role}: {role}, target: de}}"}
    vocabulary = {"task.source.tokeniser.vocab_size": "16"}
    run = saccade.train(name, output=rows / "run", overrides={**TOY, **files, **columns, **sizes, **vocabulary})
    assert run.result is not None
    given = [{"source": "a b c", role: "A B C" if role == "second" else str(rows / "red.png")}, {"source": "a b c"}]
    texts = [p.text for p in run.predict(given, beam=2, max_length=9)]
    assert texts == [p.text for p in saccade.load(rows / "run").predict(given, beam=2, max_length=9)]


@pytest.mark.parametrize("name", sorted(shipped()))
def test_says_what_it_is_and_every_argument_is_explained(name) -> None:
    lines = shipped()[name].read_text().splitlines()
    assert lines[0].startswith("# ")
    assert lines[0].rstrip().endswith((".", "minutes."))
    assert f"saccade train {name}" in lines[2]
    explained = explain_config(name, {})
    plan = Plan(read_config(name))
    for section, part in plan.parts.items():
        assert all(f"--{section}.{argument}  (" in explained for argument in part.plain)
