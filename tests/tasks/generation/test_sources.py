"""Generation from several sources, some of which may be missing."""

import csv
import json

import numpy as np
import pytest

import saccade
from saccade import cli
from saccade.configuration import ConfigError
from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.export.page import check_page
from saccade.fields import Text
from saccade.interpretation.explorer import write_page
from saccade.tasks import Generation

WORDS = {"class": "text", "tokeniser": "word"}
TASK = {"class": "generation", "source": WORDS, "sources": {"fr": WORDS}, "metrics": ["exact_match"]}
MODEL = {"class": "multi_source", "embedding_dim": 5, "hidden_dim": 8, "num_layers": 1, "attention": "hierarchical"}
TRAINER = {"max_steps": 2, "batch_tokens": 90, "validate_every": 2}
ROWS = [
    {"source": "a b", "fr": "A B", "target": "b a"},
    {"source": "c a d", "fr": None, "target": "d a c"},
    {"source": "", "fr": "B D", "target": "d b"},
    {"source": "d", "target": "d"},
] * 5


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return saccade.train(
        task=TASK, model=MODEL, data={"train": str(data), "held_out": 0.2}, trainer=TRAINER, output=folder / "run"
    )


def test_the_model_gets_the_sizes_of_all_sources(run):
    assert run.task.sizes() == {"source_vocab": 8, "other_sources": [{"vocab": 7}], "target_vocab": 8}
    loaded = saccade.load(run.folder)
    asked = [{"source": "a b", "fr": "A B"}, {"source": "a b"}, {"source": None, "fr": "A"}]
    found = [answer.text for answer in run.predict(asked, beam=2, max_length=5)]
    assert found == [answer.text for answer in run.task.predict(run.model, asked, beam=2, max_length=5)]
    assert found == [answer.text for answer in loaded.predict(asked, beam=2, max_length=5)]


def test_an_answer_says_where_the_model_looked_in_each_source(run):
    whole, alone, other = run.predict(
        [{"source": "a b", "fr": "A B D"}, {"source": "a b"}, {"source": "", "fr": "A"}], beam=1, max_length=4
    )
    assert whole.attention.keys == ["a", "b", "</s>"]
    assert whole.others["fr"].keys == ["A", "B", "D", "</s>"]
    both = whole.weights.sum(1) + whole.others["fr"].weights.sum(1)
    np.testing.assert_allclose(both, 1.0, atol=1e-5)
    assert alone.others["fr"].weights.shape[1] == 0
    doubled = whole.with_weights(lambda weights: 2 * weights)
    assert np.array_equal(doubled.others["fr"].weights, 2 * whole.others["fr"].weights)
    np.testing.assert_allclose(alone.weights.sum(1), 1.0, atol=1e-5)
    assert other.attention.keys == []
    shown = run.task.as_json({"source": None, "fr": "A"}, other)
    assert shown["input"] == {"source": "", "fr": "A"}
    assert shown["nbest"][0]["sources"]["fr"]["keys"] == ["A", "</s>"]


def test_one_map_for_each_source(run):
    both, alone = run.explain([{"source": "a b", "fr": "A B D"}, {"source": "a b"}], ["b a", "b a"])
    assert [(each.name, tuple(each.weights.shape)) for each in both.maps] == [("source", (1, 3, 3)), ("fr", (1, 3, 4))]
    assert [each.name for each in alone.maps] == ["source"]
    assert both.title == "a b | A B D → b a"
    assert "source: 100%" in [measure.value for measure in alone.measures]
    (one,) = run.explain([{"source": "a b", "fr": "A"}], ["b a"], keep="fr", shift=1)
    assert [tuple(each.weights.shape) for each in one.maps] == [(1, 2, 2)]
    with pytest.raises(ValueError, match="one source"):
        run.explain([{"source": "a b", "fr": "A"}], ["b a"], faithfulness=True)


def test_a_stream_shows_the_first_source(run):
    events = []
    (example,) = run.read([{"source": "a b", "fr": "A B D"}])
    run.task.stream(run.model, example, run.task.options.of({"max_length": 4}), events.append)
    assert events
    assert all(len(event["weights"]) == 3 for event in events)


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_predict_reads_columns(run, tmp_path, format, capsys):
    rows = [{"source": "a b", "fr": ""}, {"source": "c", "fr": "A B"}]
    file = tmp_path / f"new.{format}"
    if format == "csv":
        with open(file, "w", newline="") as opened:
            table = csv.DictWriter(opened, ["fr", "source"])
            table.writeheader()
            table.writerows(rows)
    else:
        file.write_text("".join(json.dumps({k: v for k, v in row.items() if v}) + "\n" for row in rows))
    options = ["--columns", "source=source,fr=fr", "--header", "yes"] if format == "csv" else []
    assert cli.main(["predict", str(run.folder), str(file), "--format", "jsonl", *options]) in (0, None)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["input"] for each in found] == rows
    wanted = [answer.text for answer in run.predict(rows)]
    assert [each["answer"] for each in found] == wanted


def test_standard_input_is_one_object_a_line(run, capsys, monkeypatch):
    assert cli.main(["predict", str(run.folder), "--input", '{"source": "a b"}']) in (0, None)
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_it_is_evaluated(run):
    assert run.evaluate(ROWS).figures.keys() == {"exact_match"}
    assert run.task.length({"source": "a b", "fr": None}) == 2


def test_long_sources_are_named(run):
    long = {"source": "a", "fr": " ".join(["A"] * 1500)}
    assert "1,500 tokens in fr" in run.task.truncated(run.model, [long])[0]
    assert len(run.task.prepare(run.model, long)["fr"]) == 1025


def test_at_least_one_source_is_needed():
    task = Generation(sources={"fr": Text()})
    with pytest.raises(BadRow, match="all of source, fr are empty"):
        task.check_example({"source": None, "fr": None, "target": "a"}, Cell("rows", 1, "row"))


@pytest.mark.parametrize(
    ("task", "model", "message"),
    [
        ({**TASK, "sources": {"target": WORDS}}, MODEL, "name of another column"),
        ({**TASK, "metrics": ["aer"]}, MODEL, "two texts"),
        ({**TASK, "alignment_weight": 1.0}, MODEL, "two texts"),
        (TASK, {"class": "luong"}, "reads one input, not 2: use multi_source or multimodal"),
        (TASK, {"class": "multimodal"}, "for two texts, use multi_source"),
        (TASK, {**MODEL, "other_sources": []}, "follows from the task"),
    ],
)
def test_what_does_not_fit_is_refused(task, model, message):
    with pytest.raises(ConfigError, match=message):
        saccade.train(task=task, model=model, data=ROWS, trainer=TRAINER, output="unused")


def test_a_page_has_one_input(run):
    with pytest.raises(ValueError, match="A page has one input, but this model reads source and fr"):
        check_page(run)


def test_word_alignments_need_one_source(run):
    with pytest.raises(TypeError, match="two texts"):
        run.align([("a", "b")])


def test_the_page_shows_each_source(run, chromium, tmp_path):
    items = run.explain([{"source": "a b", "fr": "A B D"}], ["b a"])
    write_page(tmp_path / "page.html", items, title="Two sources")
    page = chromium.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("[data-ready=true]", timeout=60_000)
    layers = page.get_by_label("Layer", exact=True)
    assert layers.locator("option").all_inner_texts() == ["source", "fr"]
    for number, (role, key) in enumerate([("source", "b"), ("fr", "B")]):
        page.goto("about:blank")
        page.goto((tmp_path / "page.html").as_uri() + f"#show=0.{number}.0&units=pieces&at=0.1")
        page.wait_for_selector("[data-ready=true]", timeout=60_000)
        assert page.inner_text("[role=status] bdi >> nth=1") == key, role
        weight = f"{float(items[0].maps[number].weights[0, 0, 1]):.4f}".rstrip("0")
        assert page.inner_text("[role=status] b") == weight
    page.close()
