"""`saccade align`."""

import json
import os
import re

import pytest

import saccade
from saccade.cli import main
from saccade.evaluation import CAUTION, MEANINGS, score_alignments
from saccade.interpretation.alignments import read_alignments
from saccade.tasks.generation.forced_alignment import HeadChoice
from tests.commands.conftest import PAIRS


@pytest.fixture
def texts(tmp_path):
    """Two texts of three lines, an empty one among them, and gold links."""
    pairs = [PAIRS[0], ("", ""), PAIRS[1]]
    for side, name in enumerate(("a.en", "b.de")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    gold = [" ".join(f"{n}-{n}" for n in range(len(source.split()))) for source, _ in pairs]
    (tmp_path / "gold.talp").write_text("\n".join(gold) + "\n")
    (tmp_path / "gold1.talp").write_text(
        "\n".join(" ".join(f"{n + 1}-{n + 1}" for n in range(len(source.split()))) for source, _ in pairs) + "\n"
    )
    return tmp_path


def given(texts) -> list[str]:
    return ["--source", str(texts / "a.en"), "--target", str(texts / "b.de")]


def test_a_line_for_each_pair(run, call, texts) -> None:
    code, out, err = call("align", run, *given(texts))
    assert (code, err) == (0, "")
    lines = out.split("\n")
    assert len(lines) == 4
    assert lines[1] == ""
    loaded = saccade.load(run)
    for line, pair in ((lines[0], PAIRS[0]), (lines[2], PAIRS[1])):
        aligned = loaded.align([pair])[0]
        assert set(line.split()) == {f"{s}-{t}" for s, t in aligned.links}
        assert len(aligned.links) == len(pair[1].split())


def test_unknown_words_of_both_texts_are_named(run, call, texts) -> None:
    said = "1 pair has parts that the model has never seen and reads as unknown: 'z', 'Ŧ'"
    for name, word in (("a.en", "zebra"), ("b.de", "Ŧebra")):
        (texts / name).write_text((texts / name).read_text() + f"{word}\n")
    code, out, err = call("align", run, *given(texts))
    assert (code, out.count("\n")) == (0, 4)
    assert err == f"{said}\n"
    (texts / "gold.talp").write_text((texts / "gold.talp").read_text() + "0-0\n")
    err = call("align", run, *given(texts), "--gold", str(texts / "gold.talp"), "--json")[2]
    assert json.loads(err)["remarks"] == [said]


@pytest.mark.parametrize("format", ["pharaoh", "talp", "naacl", "json"])
@pytest.mark.parametrize("one_based", [False, True])
def test_formats(run, call, texts, format, one_based) -> None:
    plain = call("align", run, *given(texts))[1]
    (texts / "plain").write_text(plain)
    code, out, _ = call("align", run, *given(texts), "--format", format, *["--one-based"] * one_based)
    assert code == 0
    (texts / "written").write_text(out)
    found = read_alignments(texts / "written", format=format, one_based=one_based, sentences=3)
    assert found == read_alignments(texts / "plain")
    if format == "json":
        first = json.loads(out.splitlines()[0])
        assert (first["source"], first["target"]) == (PAIRS[0][0].split(), PAIRS[0][1].split())
        assert len(first["weights"]) == len(first["target"])


def test_figures_come_even_if_nobody_reads_the_links(run, texts, capfd, monkeypatch) -> None:
    for gold, wanted in ((["--gold", str(texts / "gold.talp")], True), ([], False)):
        read, write = os.pipe()
        os.close(read)
        with open(write, "w") as closed:
            monkeypatch.setattr("sys.stdout", closed)
            assert main(["align", run, *given(texts), *gold]) == 0
        assert ("aer" in capfd.readouterr().err) == wanted


def test_figures_go_to_standard_error(run, call, texts) -> None:
    plain = call("align", run, *given(texts))[1]
    code, out, err = call("align", run, *given(texts), "--gold", str(texts / "gold.talp"))
    assert code == 0
    assert out == plain
    names = [line.split()[0] for line in err.splitlines() if line and not line.startswith(" ")]
    assert {"aer", "match", "mass", "blur", "shift", "coverage", "dropped"} <= set(names)
    assert MEANINGS["aer"].split(".")[0] in " ".join(err.split())
    assert CAUTION in " ".join(err.split())
    assert [line.split()[0] for line in err.splitlines() if re.fullmatch(r" +[+-]\d  \d\.\d{4}", line)] == [
        *("-3", "-2", "-1", "+0", "+1", "+2", "+3")
    ]
    one_based = ["--gold", str(texts / "gold1.talp"), "--gold-one-based", "--json", "--faithfulness"]
    code, out, err = call("align", run, *given(texts), *one_based)
    assert code == 0
    figures = json.loads(err)
    assert set(figures) <= set(MEANINGS)
    (texts / "out.align").write_text(plain)
    rates = score_alignments(*(read_alignments(texts / name) for name in ("out.align", "gold.talp")))
    for name in ("aer", "precision", "recall", "f"):
        assert figures[name] == pytest.approx(100 * getattr(rates, name))  # percentages, as in training
    profile = figures["shift_profile"]
    assert list(profile) == ["-3", "-2", "-1", "0", "1", "2", "3"]
    assert profile[str(figures["shift"])] == max(profile.values())
    assert profile["0"] == pytest.approx(figures["mass"])
    assert {"comprehensiveness", "gradient_kendall", "uniform"} <= set(figures)
    code, out, err = call("align", "--score", str(texts / "out.align"), "--gold", str(texts / "gold.talp"), "--json")
    assert (code, err) == (0, "")
    assert {name: figures[name] for name in json.loads(out)} == json.loads(out)
    assert "aer" in call("align", "--score", str(texts / "out.align"), "--gold", str(texts / "gold.talp"))[1]


def test_two_directions_and_a_choice(run, call, texts) -> None:
    both = [*given(texts), "--reverse-model", run]  # of words that are read backwards, either direction will do
    plain = {len(call("align", run, *both, "--symmetrise", method)[1].split()) for method in ("union", "intersection")}
    found = len(call("align", run, *both)[1].split())
    assert min(plain) <= found <= max(plain)
    chosen = ",".join(str(texts / name) for name in ("a.en", "b.de", "gold.talp"))
    code, _, err = call("align", run, *both, "--choose", chosen, "--gold", str(texts / "gold.talp"), "--json")
    assert code == 0
    said, figures = err.split("{", 1)
    assert said.count("AER") == 2
    assert "agreement" in json.loads("{" + figures)


def test_a_naacl_file_need_not_name_the_last_pairs(run, call, texts) -> None:
    with open(texts / "a.en", "a") as source, open(texts / "b.de", "a") as target:
        source.write("\n")
        target.write("\n")
    (texts / "gold.naacl").write_text("1 1 1 S\n3 1 1 P\n")
    code, out, err = call("align", run, *given(texts), "--gold", str(texts / "gold.naacl"), "--json")
    assert code == 0, err
    assert len(out.splitlines()) == 4
    (texts / "out.align").write_text(out)
    code, scored, err = call(
        "align", "--score", str(texts / "out.align"), "--gold", str(texts / "gold.naacl"), "--json"
    )
    assert code == 0, err
    assert json.loads(scored)["links"] == len(out.split())


def test_both_directions_are_read_at_the_same_step(run, call, texts) -> None:
    loaded = saccade.load(run)
    options = {"reverse": loaded, "method": "union"}
    later = HeadChoice(shift=1)
    wanted = [loaded.align([pair], choice=later, reverse_choice=later, **options)[0].links for pair in PAIRS[:2]]
    out = call("align", run, *given(texts), "--reverse-model", run, "--symmetrise", "union", "--shift", "1")[1]
    found = [{tuple(map(int, link.split("-"))) for link in line.split()} for line in out.splitlines() if line]
    assert found == list(map(set, wanted))


def test_options_reach_the_alignment(run, call, texts) -> None:
    def count(*options: str) -> int:
        code, out, _ = call("align", run, *given(texts), *options)
        assert code == 0
        return len(out.split())

    words = sum(len(source.split()) * len(target.split()) for source, target in PAIRS[:2])
    assert count("--extract", "threshold", "--threshold", "1e-9") == words
    assert count("--extract", "mutual") <= count()
    assert count("--subwords") > count()
    assert count("--layer=0", "--head", "0", "--shift", "1", "--sink", "redistribute") > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Say which model and which texts"),
        (["--score", "{texts}/gold.talp"], "--score needs gold links"),
        (["{run}", "--source", "{texts}/a.en", "--target", "{texts}/short"], "short has 1 lines"),
        (["{run}", "{given}", "--format", "phraoh"], "Did you mean 'pharaoh'"),
        (["{run}", "{given}", "--gold-format", "nacl", "--gold", "x"], "Did you mean 'naacl'"),
        (["{run}", "{given}", "--extract", "min"], "Unknown extraction 'min'"),
        (["{run}", "{given}", "--extract", "threshold", "--threshold", "2"], "threshold must be above 0 and at most 1"),
        (["{run}", "{given}", "--symmetrise", "union"], "--symmetrise needs the model of the other direction"),
        (["{run}", "{given}", "--reverse-model", "{run}", "--symmetrise", "onion"], "Did you mean 'union'"),
        (["{run}", "{given}", "--choose", "a,b"], "--choose takes two texts and their links"),
        (["{run}", "{given}", "--gold", "{texts}/short"], "short, line 1: 'x' is not a link"),
        (["{run}", "{given}", "--gold", "{texts}/few.talp"], "few.talp has alignments of 1 sentence pair, not of 3"),
        (["{run}", "{given}", "--gold", "{texts}/gold.talp", "--subwords"], "--subwords does not apply"),
        (
            ["--score", "{texts}/few.talp", "--gold", "{texts}/gold.talp"],
            "few.talp has alignments of 1 sentence pair, not of 3",
        ),
        (["{run}", "--source", "{texts}/none", "--target", "{texts}/none"], "none is empty"),
        (["{run}", "--source", "{texts}/bad", "--target", "{texts}/bad"], "bad, line 1"),
        (["{blind}", "{given}"], "Cho does not attend to its source"),
        (["{run}", "{given}", "--layer", "1"], "layer must be from 0 to 0"),
        (["{run}", "{given}", "--choose", "a,b,c", "--shift", "1"], "leave --layer, --head and --shift out"),
        (["{blind}", "{given}", "--faithfulness"], "--faithfulness changes attention weights, but Cho has none"),
    ],
)
def test_mistakes_are_named(run, blind, call, texts, arguments, message) -> None:
    (texts / "short").write_text("x\n")
    (texts / "few.talp").write_text("0-0\n")
    (texts / "none").write_text("")
    (texts / "bad").write_bytes(b"\xff\n")
    filled = []
    for argument in arguments:
        filled += given(texts) if argument == "{given}" else [argument.format(run=run, blind=blind, texts=texts)]
    code, _, err = call("align", *filled)
    assert code == 2
    assert message in err, err
