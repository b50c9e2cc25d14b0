"""Reviews are learned from on the command line: train, evaluate, predict, explain, export, serve, and the page."""

import csv
import json
import random

import pytest

from saccade.cli import main
from tests.interpretation.explorer.conftest import tab, visit  # noqa: F401 (fixtures)

USERS, ITEMS, ASPECTS = 19, 13, 3


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A user likes or hates an aspect in all items that have it, and says so."""
    folder = tmp_path_factory.mktemp("reviews")
    draws = random.Random(5)
    lines, time = [], 1_400_000_000
    for user in range(USERS):
        likes = [draws.random() < 0.5 for _ in range(ASPECTS)]
        for item in draws.sample(range(ITEMS), 7):
            time += draws.randrange(1000)
            said = f"aspect{item % ASPECTS} {'love' if likes[item % ASPECTS] else 'hate'} it"
            row = {"reviewerID": f"U{user}", "asin": f"B{item}", "reviewText": said, "unixReviewTime": time}
            lines.append({**row, "overall": 5.0 if likes[item % ASPECTS] else 1.0})
    draws.shuffle(lines)
    (folder / "reviews.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def trained(work, name, config, *given):
    data = ["--data.train", f"amazon:{work / 'reviews.json'}", "--output", str(work / name)]
    limits = ["--trainer.max_epochs", "2", "--trainer.validate_every", "2", "--trainer.batch_tokens", "32"]
    assert main(["train", f"recommendation/{config}", *data, *limits, *given]) == 0
    return str(work / name)


@pytest.fixture(scope="module")
def run(work):
    small = ["--model.embedding_dim", "7", "--model.hidden_dim", "5", "--model.pointers", "2"]
    return trained(work, "run", "mpcn", *small)


def call(capsys, *arguments):
    capsys.readouterr()
    try:
        code = main(arguments)
    except SystemExit as leave:
        code = int(leave.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


SMALL = {
    "dual-attention": ["--model.embedding_dim", "5", "--model.local_filters", "3", "--model.global_filters", "2"],
    "deep-conn": ["--model.embedding_dim", "5", "--model.filters", "3"],
    "biases": [],
    "matrix-factorisation": [],
    "factorisation-machine": [],
}


@pytest.mark.parametrize("config", SMALL)
def test_every_configuration_trains_and_predicts(config, work, capsys):
    folder = trained(work, config, config, *SMALL[config])
    code, out, _ = call(capsys, "predict", folder, "--user", "U3", "--top", "2")
    assert code == 0
    assert all(line.startswith("B") for line in out.splitlines())
    assert len(out.splitlines()) == 2


def test_evaluate(work, run, capsys):
    names = "mse,mae,ndcg@10,recall@10,sampled_ndcg@10"
    code, out, err = call(capsys, "evaluate", run, "--data", f"amazon:{work / 'reviews.json'}", "--metrics", names)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[:5]] == names.split(",")
    assert "133 examples" in out
    assert "ratings are of a user without a review to read" in err


def test_predict_ranks_items_with_the_reason_for_each(run, capsys):
    code, out, _ = call(capsys, "predict", run, "--user", "U3", "--top", "4")
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert len(rows) == 4
    for item, rating, reason in rows:
        assert item.startswith("B")
        assert 0.0 < float(rating) < 7.0
        assert reason.startswith('user: "aspect')
        assert '| item: "aspect' in reason
    assert [float(row[1]) for row in rows] == sorted((float(row[1]) for row in rows), reverse=True)
    code, out, _ = call(capsys, "predict", run, "--user", "U3", "--user", "U4", "--top", "1", "--format", "jsonl")
    found = [json.loads(line) for line in out.splitlines()]
    assert [each["input"]["user"] for each in found] == ["U3", "U4"]
    assert found[0]["alternatives"][0]["reasons"]["user"]["words"]
    code, out, _ = call(capsys, "predict", run, "--user", "U3", "--user", "U4", "--top", "2")
    numbered = [line.split("\t") for line in out.splitlines()]
    assert [line[0] for line in numbered] == ["1", "1", "2", "2"], "lists of several users are told apart"
    assert numbered[0][1:] == rows[0]


def test_every_row_of_a_table_has_the_columns_of_its_header(work, run, capsys):
    (work / "mixed.jsonl").write_text('{"user": "U3"}\n{"user": "U3", "item": "B1"}\n')
    code, out, _ = call(capsys, "predict", run, str(work / "mixed.jsonl"), "--top", "1", "--format", "csv")
    assert code == 0
    header, item, pair = csv.reader(out.splitlines())
    assert header == ["user", "item", "time", "answer", "rating", "reasons", "score"]
    assert len(item) == len(pair) == len(header)
    assert item[3].startswith("B")
    assert 0.0 < float(item[4]) < 7.0
    assert float(pair[3]) > 0.0


def test_predict_a_pair_and_tables_of_pairs(work, run, capsys):
    code, one, _ = call(capsys, "predict", run, "--user", "U3", "--item", "B1", "--item", "B2")
    assert code == 0
    (work / "pairs.csv").write_text("user,item\nU3,B1\nU3,B2\n")
    code, out, _ = call(capsys, "predict", run, str(work / "pairs.csv"))
    assert (code, out) == (0, one)
    code, out, _ = call(capsys, "predict", run, "--input", '{"user": "U3", "item": "B1"}')
    assert (code, out) == (0, one.splitlines()[0] + "\n")
    code, _, err = call(capsys, "predict", run, "--user", "nobody", "--item", "B1")
    assert code == 0
    assert "never seen and reads as unknown: 'nobody'" in err
    for wrong, message in (
        (["--user", "U3", "--input", "{}"], "with --user, or with --input, but not both"),
        (["--user", "U3", "--user", "U4", "--item", "B1", "--item", "B2", "--item", "B3"], "--user is given 2 times"),
        (["--user", "U3", str(work / "pairs.csv")], "or files to read them from, but not both"),
    ):
        code, _, err = call(capsys, "predict", run, *wrong)
        assert code != 0
        assert message in err


def test_is_exported_with_its_reviews(work, run, capsys):
    code, _, _ = call(capsys, "export", run, "--format", "onnx", "--output", str(work / "exported"))
    assert code == 0
    assert (work / "exported" / "export.json").is_file()


def test_the_page_shows_both_sides_beside_both_ratings(work, run, capsys, visit):  # noqa: F811 (a fixture)
    first = json.loads((work / "reviews.json").read_text().splitlines()[0])
    (work / "one.csv").write_text(f"user,item,rating\n{first['reviewerID']},{first['asin']},{first['overall']}\n")
    page_file = work / "page.html"
    assert call(capsys, "explain", run, str(work / "one.csv"), "--output", str(page_file))[0] == 0
    page = visit(page_file)
    assert page.locator(".pane").count() == 2
    verdicts = page.locator(".verdict").all_inner_texts()
    assert len(verdicts) == 2
    assert all(f"(true: {first['overall']:.0f})" in each for each in verdicts)
    assert page.locator(".mark").count() > 20
    picked = page.locator('.text .mark[data-picked="true"]')
    assert picked.count() in (6, 9, 12)  # three words of each review pointed at, one or two on each side
    assert "aspect" in picked.first.inner_text()


def test_served(run):
    pytest.importorskip("fastapi_offline", reason="needs the extra serve")
    from pathlib import Path

    from fastapi.testclient import TestClient

    from saccade.serving.app import make_app
    from saccade.serving.settings import Settings

    app = make_app({"reviews": Path(run)}, settings=Settings(workers=1), trust=False, local=True)
    with TestClient(app, "http://localhost") as client:
        body = {"inputs": [{"user": "U3", "item": "B1"}, {"user": "U4"}], "options": {"top": 2}}
        answer = client.post("/predict", json=body)
        assert answer.status_code == 200, answer.text
        one, several = answer.json()["predictions"]
        assert set(one["reasons"]) == {"user", "item"}
        assert len(several["alternatives"]) == 2
        page = client.post("/explain", json={"input": {"user": "U3", "item": "B1"}, "format": "html"})
        assert page.status_code == 200
