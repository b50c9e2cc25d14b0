"""`saccade explain`."""

import json
import os

import pytest

import saccade
from saccade.evaluation import CAUTION
from saccade.interpretation.explorer import write_page
from tests.commands.conftest import PAIRS

HOSTILE = "<script>alert(1)</script> \u202eba we"


@pytest.fixture
def given():
    return ["--input", PAIRS[0][0], "--input", PAIRS[1][0]]


def read_page(path) -> dict[str, object]:
    """The data that stands in a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])


def test_a_page(run, call, given, tmp_path) -> None:
    page = tmp_path / "page.html"
    code, out, err = call("explain", run, *given, "--output", str(page), "--title", "Two words")
    assert (code, out) == (0, "")
    assert str(page) in err
    data = read_page(page)
    assert data["title"] == "Two words"
    assert data["beside"] is True
    assert [item["title"].partition(" → ")[0] for item in data["items"]] == [PAIRS[0][0], PAIRS[1][0]]
    assert "Content-Security-Policy" in page.read_text(encoding="utf-8")
    assert CAUTION in [measure["meaning"] for measure in data["items"][0]["measures"]]


def test_text_is_what_the_terminal_gets(run, call, given) -> None:
    code, out, err = call("explain", run, *given)
    assert (code, err) == (0, "")
    assert out.startswith(PAIRS[0][0])
    assert "decoder.attention" in out
    assert CAUTION in out


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("a.png", b"\x89PNG"),
        ("a.svg", b"<?xml"),
        ("a.json", b"{"),
        ("a.txt", PAIRS[0][0].encode()),
        ("a.htm", b"<!doc"),
    ],
)
def test_the_suffix_is_the_format(run, call, given, tmp_path, name, beginning) -> None:
    assert call("explain", run, *given, "--output", str(tmp_path / name))[0] == 0
    assert (tmp_path / name).read_bytes().startswith(beginning)


def test_format_says_more_than_the_suffix(run, call, given, tmp_path) -> None:
    assert call("explain", run, *given, "--output", str(tmp_path / "a.dat"), "--format", "json")[0] == 0
    code, out, _ = call("explain", run, *given, "--format", "json")
    assert code == 0
    assert json.loads((tmp_path / "a.dat").read_text()) == json.loads(out)


def test_json_holds_what_python_gives(run, call) -> None:
    source, target = PAIRS[0]
    out = call("explain", run, "--input", source, "--target", target, "--format", "json")[1]
    item = json.loads(out)["items"][0]
    (wanted,) = saccade.load(run).explain([source], [target])
    assert item["title"] == wanted.title
    assert item["maps"][0]["weights"] == wanted.maps[0].weights.tolist()
    assert item["maps"][0]["keys"]["words"] == wanted.maps[0].keys.words


def test_files_and_gold_links(run, call, tmp_path) -> None:
    for name, lines in (("in.txt", [s for s, _ in PAIRS[:2]]), ("out.txt", [t for _, t in PAIRS[:2]])):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "gold.talp").write_text("1-1\n1p1\n")
    files = [str(tmp_path / "in.txt"), "--targets", str(tmp_path / "out.txt")]
    gold = ["--gold", str(tmp_path / "gold.talp"), "--gold-one-based"]
    code, out, err = call("explain", run, *files, *gold, "--format", "json")
    assert (code, err) == (0, "")
    items = json.loads(out)["items"]
    assert [item["links"] for item in items] == [[[0, 0]], [[0, 0]]]
    assert "aer" in [measure["name"] for measure in items[0]["measures"]]


def test_two_models_side_by_side(run, call, given, tmp_path) -> None:
    code, out, _ = call("explain", run, "--against", run, *given, "--format", "json")
    assert code == 0
    data = json.loads(out)
    assert len(data["items"]) == 4
    sources = [item["title"].partition(": ")[2].partition(" → ")[0] for item in data["items"]]
    assert sources == [PAIRS[0][0]] * 2 + [PAIRS[1][0]] * 2


def test_hostile_text_stays_text(run, call, tmp_path) -> None:
    page = tmp_path / "page.html"
    assert call("explain", run, "--input", HOSTILE, "--title", HOSTILE, "--output", str(page))[0] == 0
    assert "<script>alert" not in page.read_text(encoding="utf-8")
    assert read_page(page)["title"] == HOSTILE
    code, out, _ = call("explain", run, "--input", HOSTILE)
    assert code == 0
    assert HOSTILE in out


def test_from_python_to_a_page(run, tmp_path) -> None:
    items = saccade.load(run).explain([PAIRS[0][0], PAIRS[1][0]], beam=1)
    write_page(tmp_path / "page.html", items, title="by hand")
    assert read_page(tmp_path / "page.html")["title"] == "by hand"
    with pytest.raises(TypeError, match=r"explain\(\[text\]\)"):
        saccade.load(run).explain("text")


def test_a_model_without_attention(blind, call, given, tmp_path) -> None:
    code, out, err = call("explain", blind, *given, "--output", str(tmp_path / "page.html"))
    assert (code, out) == (2, "")
    assert "Cho has no attention" in err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "There is nothing to explain: give --input"),
        (["--input", "ba", "--format", "htlm"], "Did you mean 'html'?"),
        (["--input", "ba", "--output", "page.pgn"], "Did you mean '.png'?"),
        (["--input", "ba", "--output", "nowhere/page.html"], "there is no folder nowhere"),
        (["--input", "ba", "--output", "."], "that is a folder"),
        (["a.txt", "--input", "ba"], "not both"),
        (["nowhere.txt"], "nowhere.txt"),
        (["--input", "ba", "--targets", os.devnull], "is a device, not a file"),
        (["--input", " "], "source of input 1 is empty"),
        (["--input", "ba", "--target", "ab", "--target", "we"], "inputs 1, targets 2"),
        (["--input", "ba", "--target", "ab", "--beam", "3"], "beam changes the search, but the targets are given"),
        (["--input", "ba", "--beam", "0"], "beam must be from 1 to 1000"),
        (["--input", "ba", "--gold", "gold.talp"], "gold.talp"),
        (["--input", "ba", "--gold-format", "talq"], "Did you mean 'talp'?"),
        (["--input", "ba", "--layer", "3"], "layer must be from 0 to 0"),
        (["--input", "ba", "--keep", "*cross*"], "fits none of decoder.attention"),
        (["--input", "ba", "--against", "nowhere"], "There is no folder nowhere"),
        (["--input", "ba", "--ouput", "page.html"], "--output"),
    ],
)
def test_bad_usage_is_named(run, call, monkeypatch, tmp_path, arguments, message) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call("explain", run, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_no_run(call) -> None:
    code, _, err = call("explain", "nowhere", "--input", "ba")
    assert code == 2
    assert "There is no folder nowhere" in err
