"""Hostile options: each command line gives a right result, or exit code 2 and one line that names what is wrong."""

import os
import random

import pytest

from saccade.cli import build_parser
from saccade.commands.task_options import add_task_options
from saccade.data.readers.lines import LONGEST
from tests.hostile.counting import bounded

DIGITS = "9" * 5000
LONG = "a" * 100_000

PREDICT = [
    # What the options of a search take.
    (["--forced", "99999999999=a"], "forced takes a position and a piece, as in 0=The; got '99999999999=a'"),
    (["--forced", "=a"], "forced takes a position and a piece"),
    (["--forced", "0="], "forced takes a position and a piece"),
    (["--forced", "20000=a"], "forced: positions are counted from 0 and must be below 10000, got 20000"),
    (["--forced", "0=Z"], "forced: the model's vocabulary cannot write 'Z'"),
    (["--forbidden", "9" * 5000], "forbidden: the model's vocabulary cannot write '99999"),
    (["\ud800"], "There is no file \\ud800"),
    (["--frob", "\ud800"], "predict has no option --frob"),
    (["--\ud800"], "predict has no option --\\ud800"),
    (["--forced", "0=ba su"], "'ba su' is not one piece of the model's vocabulary"),
    (["--forced", "-1=a"], "expected one argument"),
    (["--forbidden", ""], "forbidden: each entry must be a text of at least one piece, got ''"),
    (["--forbidden", "ZZ"], "forbidden: the model's vocabulary cannot write 'ZZ'"),
    (["--forbidden", LONG], "longer than 10000 characters"),
    (["--prefix", ""], None),
    (["--prefix", "Z"], "prefix: the model's vocabulary cannot write 'Z'"),
    (["--prefix", "\0"], "prefix: the model's vocabulary cannot write"),
    (["--prefix", "\ud800"], "prefix: the model's vocabulary cannot write"),
    (["--prefix", LONG], "longer than 10000 characters"),
    (["--length-penalty", "1e308"], "length_penalty must be from 0.0 to 100.0, got 1e+308"),
    (["--length-penalty", "nan"], "nan is not a finite number"),
    (["--length-penalty", "-1"], "length_penalty must be from 0.0 to 100.0, got -1.0"),
    (["--length-penalty", ""], "argument --length-penalty: it takes a number, got ''"),
    (["--coverage-penalty", "inf"], "inf is not a finite number"),
    (["--beam", "0"], "beam must be from 1 to 1000, got 0"),
    (["--beam", "99999999"], "beam must be from 1 to 1000, got 99999999"),
    (["--beam", DIGITS], "argument --beam: it takes a whole number, got '999"),
    (["--beam", "1.5"], "argument --beam: it takes a whole number, got '1.5'"),
    (["--beam", "٣"], None),  # a digit, in Arabic
    (["--beam", "\x1b[2J"], "argument --beam: it takes a whole number, got '\\x1b[2J'"),
    (["--beam", "2", "--beam", "3"], None),
    (["--nbest", "6"], "nbest=6 needs a beam of at least 6, got beam=5"),
    (["--min-length", "-1"], "min_length must be from 0 to 10000, got -1"),
    (["--max-length", "99999999999"], "must be at most 2,147,483,647, got 99999999999"),
    (["--max-length", "1000000"], "max_length must be from 1 to 10000, got 1000000"),
    (["--min-length", "9", "--max-length", "3"], "min_length=9 is more than max_length=3"),
    (["--no-repeat-ngram", "99999999"], "no_repeat_ngram must be from 0 to 10000"),
    (["--sample", "--beam", "2"], "beam and sample exclude each other"),
    (["--sample", "--temperature", "0"], "temperature must be from 1e-06 to 1000000.0, got 0.0"),
    (["--sample", "--temperature", "nan"], "nan is not a finite number"),
    (["--sample", "--top-p", "2"], "top_p must be above 0 and at most 1, got 2.0"),
    (["--sample", "--top-k", "0"], "top_k must be from 1 to"),
    (["--sample", "--seed", "-1"], "seed must be from 0 to 2147483647, got -1"),
    (["--sample", "--sample"], None),
    (["--temperature", "1"], "temperature only affects sampling: set sample as well"),
    (["--subwords"], "subwords only affects alignments: set alignments as well"),
    # Options of the command.
    (["--batch-size", "0"], "--batch-size must be 1 or more, got 0"),
    (["--batch-size", DIGITS], "argument --batch-size: it takes a whole number"),
    (["--workers", "-1"], "--workers must be 1 or more, got -1"),
    (["--workers", "99999999"], "workers must be 32 or fewer, got 99999999"),
    (["--format", "xml"], "--format: unknown 'xml'. Choose from: csv, jsonl, text"),
    (["--format", ""], "--format: unknown ''"),
    (["--draw", "--format", "csv"], "--draw cannot be combined with --format csv"),
    (["--output", "folder"], "--output folder: that is a folder; name a file in it"),
    (["--output", ""], "--output: '' is not the name of a file"),
    (["--output", "a\0b"], "--output: 'a\\x00b' is not the name of a file"),
    (["--output", "missing/x"], "--output missing/x: there is no folder missing"),
    (["--output", "/dev/full"], "No space left on device."),
    (["--plot", "x.gif"], "--plot x.gif: no picture has the suffix '.gif'"),
    (["--plot", ""], "no picture has the suffix ''"),
    (["--header", "maybe"], "--header must be yes or no, got 'maybe'"),
    (["--columns", "nonsense"], "--columns takes roles with their columns, as source=nonsense"),
    (["--columns", ""], "--columns takes roles with their columns"),
    (["--columns", "{"], "--columns '{' is not YAML"),
    (["--columns", "{source: {a: 1}}"], "'source' takes the name of a column"),
    (["--columns", "=" * 5000], "--columns takes roles with their columns"),
    (["--frob", "1"], "predict has no option --frob."),
    (["--top", "3"], "predict has no option --top."),  # of a task that labels
    (["--scores", "yes"], "There is no file yes"),
    # What the inputs are.
    (["folder"], "folder"),
    (["pipe"], "pipe is a pipe, not a file"),
    (["/dev/zero"], "/dev/zero is a device, not a file"),
    (["missing.txt"], "There is no file missing.txt"),
    ([""], "A file name is empty"),
    (["a\0b"], "There is no file"),
    (["a" * 5000], "File name too long."),
    (["source.txt", "source.txt"], None),
    (["pairs.tsv", "--columns", "source=7"], "pairs.tsv"),
    (["pairs.tsv", "--columns", "sauce=0"], "--columns: generation reads no 'sauce'. Did you mean 'source'?"),
    (["pairs.tsv", "--columns", "source=name"], "pairs.tsv has no column 'name'"),
    (["pairs.tsv", "--columns", "source=0+1"], None),
]

EVALUATE = [
    (["--vary", "beam"], "--vary takes an option and numbers, as in beam=1,5,10; got 'beam'"),
    (["--vary", "beam="], "--vary takes an option and numbers"),
    (["--vary", "=1"], "--vary takes an option and numbers"),
    (["--vary", ""], "--vary takes an option and numbers"),
    (["--vary", "beam=a"], "--vary takes an option and numbers"),
    (["--vary", "beam=1e999"], "beam"),
    (["--vary", "beam=1.5"], "beam must be a whole number"),
    (["--vary", f"beam={DIGITS}"], "--vary takes an option and numbers"),
    (["--vary", "beam=0"], "beam must be from 1 to 1000, got 0"),
    (["--vary", "length_penalty=nan"], "--vary takes an option and numbers"),
    (["--vary", "frob=1"], "There is no option 'frob'"),
    (["--vary", "batch_size=0"], "There is no option 'batch_size'"),
    (["--vary", "prefix=1"], "prefix must be a text"),
    (["--vary", "forced=1"], "forced must map positions to pieces"),
    (["--vary", "length-penalty=0,0.6"], None),
    (["--plot", "x.png"], "--plot draws figures by length or by option"),
    (["--by-length", "0"], "--by-length must be 1 or more, got 0"),
    (["--by-length", DIGITS], "argument --by-length: it takes a whole number"),
    (["--by-length", "99999999999999999999"], None),
    (["--batch-size", "0"], "--batch-size must be 1 or more, got 0"),
    (["--columns", "source=0"], "--columns does not say which column is the target"),
    (["--columns", "source=0,target=9"], "pairs.tsv"),
    (["--columns", "{source: 0, target: -1}"], "'target' takes the name of a column"),
    (["--columns", "{source: .nan, target: 1}"], "'source' takes the name of a column"),
    (["--columns", "source=0,target=1+0"], None),  # two references
    (["--bad-rows", "maybe"], "--bad-rows must be error or skip, got 'maybe'"),
    (["--header", ""], "--header must be yes or no, got ''"),
    (["--data", "missing.tsv"], "There is no file missing.tsv"),
    (["--data", "folder"], "folder"),
    (["--data", "pipe"], "pipe is a pipe, not a file"),
    (["--data", "/dev/zero"], "/dev/zero is a device, not a file"),
    (["--data", ""], "A file name is empty"),
    (["--data", "a\0b"], "There is no file"),
    (["--data", "hf:"], "hf:"),
    (["--data", "pairs.tsv,pairs.tsv,pairs.tsv"], "pairs.tsv"),
    (["--data", "source.txt,"], "A file name is empty"),
    (["--top", "3"], "evaluate has no option --top."),
]

EXPLAIN = [
    (["--keep", "["], "keep='[' fits none of"),
    (["--keep", "nothing"], "keep='nothing' fits none of"),
    (["--keep", "*" * 1000], None),
    (["--shift", "99"], "shift must be 0 or 1, got 99"),
    (["--gold", "missing"], "There is no file missing"),
    (["--gold", "pipe"], "pipe is a pipe, not a file"),
    (["--gold", "/dev/zero"], "/dev/zero is a device, not a file"),
    (["--output", "folder"], "--output folder: that is a folder"),
    (["--output", ""], "--output: '' is not the name of a file"),
    (["--output", "x.gif"], "there is no format for the suffix '.gif'"),
    (["--format", "gif"], "--format: unknown 'gif'"),
    (["--title", "<script>"], None),
    (["--target", "us", "--target", "ab"], "Give a target for each input: inputs 1, targets 2."),
    (["--target", ""], "target"),
    (["--targets", "pipe"], "pipe is a pipe, not a file"),
    (["--targets", "missing"], "There is no file missing"),
    (["--against", "missing"], "missing"),
    (["--against", "folder"], "folder"),
    (["source.txt"], "Give inputs with --input, or files to read them from, but not both"),
    (["--beam", "0"], "beam must be from 1 to 1000"),
    (["--forced", "99999999999=a"], "forced takes a position and a piece"),
    (["--input", "\0"], "NUL character"),
    (["--input", "\ud800"], "surrogate"),
    (["--input", ""], "empty"),
    (["--inptu", "x"], "explain has no option --inptu. Did you mean --input?"),
    (
        ["--inptu", "x", "--outptu=y"],
        "explain has no option --inptu. Did you mean --input? explain has no option --outptu. Did you mean --output?",
    ),
]

ALIGN = [
    (["--format", "x"], "--format: unknown 'x'"),
    (["--extract", "x"], "extract"),
    (["--extract", "threshold", "--threshold", "nan"], "threshold"),
    (["--sink", "x"], "sink"),
    (["--layer", "99"], "layer"),
    (["--layer", DIGITS], "argument --layer: it takes a whole number"),
    (["--head", "-7"], "head"),
    (["--shift", "99"], "shift must be 0 or 1, got 99"),
    (["--shift", "-5"], "shift must be 0 or 1, got -5"),
    (["--choose", "x"], "--choose takes two texts and their links"),
    (["--choose", "a,b,c"], "There is no file a"),
    (["--reverse-model", "missing"], "missing"),
    (["--reverse-model", "folder"], "folder"),
    (["--symmetrise", "union"], "--symmetrise needs the model of the other direction"),
    (["--gold", "pipe"], "pipe is a pipe, not a file"),
    (["--gold", "folder"], "folder"),
    (["--gold", "pairs.tsv"], "pairs.tsv"),
    (["--gold", "gold.talp", "--gold-format", "x"], "--gold-format: unknown 'x'"),
    (["--gold", DIGITS], "There is no file 999"),
    (["--gold", "digits.talp"], "digits.talp, line 1: '99999"),
    (
        ["--score", "far.naacl", "--gold", "far.naacl"],
        "far.naacl, line 1: sentence 999999999 must be from 1 to 1000000",
    ),
    (["--gold", "deep.json"], "deep.json, line 1 is not an alignment"),
    (["--gold", "gold.talp"], None),
    (["--score", "gold.talp"], "--score needs gold links to compare with"),
    (["--score", "pairs.tsv", "--gold", "gold.talp"], "pairs.tsv"),
    (["--batch-size", "0"], "batch"),
    (["--batch-size", "-1"], "batch"),
    (["--source", "pipe"], "pipe is a pipe, not a file"),
    (["--source", "/dev/zero"], "/dev/zero is a device, not a file"),
    (["--source", ""], "A file name is empty"),
    (["--source", "pairs.tsv"], "must have the same number of lines"),
    (["--beam", "2"], "align has no option --beam"),
]

TRAIN = [
    (["--output", ""], "output"),
    (["--output", "pairs.tsv"], "pairs.tsv"),
    (["--output", "pairs.tsv/x"], "pairs.tsv"),
    (["--output", "a\0b"], "output"),
    (["--init-from", "folder"], "folder"),
    (["--model.hidden_dim", DIGITS], "model.hidden_dim"),
    (["--model.hidden_dim", "nan"], "model.hidden_dim must be a whole number"),
    (["--model.hidden_dim", "-1"], "hidden_dim"),
    (["--model.hidden_dim", ""], "model.hidden_dim must be a whole number"),
    (["--model.hidden_dim", "{"], "model.hidden_dim: '{' is not YAML"),
    (["--model.class", ""], "model"),
    (["--model", "["], "model: '[' is not YAML"),
    (["--model", "\0"], "model"),
    (["--task", "x" * 5000], "task"),
    (["--trainer.max_steps", "99999999999999999999"], "trainer.max_steps must be a whole number"),
    (["--trainer.max_minutes", "nan"], "nan is not a finite number"),
    (["--trainer.learning_rate", "inf"], "inf is not a finite number"),
    (["--trainer.learning_rate", "-1"], "learning_rate must be positive, got -1.0"),
    (["--trainer.seed", "-1"], "seed must be from 0 to 4294967295, got -1"),
    (["--trainer.batch_tokens", "0"], "batch_tokens must be positive, got 0"),
    (["--trainer.validate_options", "{beam: 99999999}"], "beam must be from 1 to 1000"),
    (["--trainer.validate_options", "x"], "trainer.validate_options must be a mapping"),
    (["--trainer.device", "cuda:99999999999999"], "device"),
    (["--trainer.device", "meta"], "device must be auto, cpu, cuda"),
    (["--trainer.device", "cuda"], "there is no GPU here"),
    (["--data.held_out", "2"], "data: held_out must be a share from 0 to less than 1, got 2"),
    (["--data.columns", "latin,cyrillic"], "--data.columns takes roles with their columns, as source=latin,target=cyr"),
    (["--data.columns", "="], "--data.columns takes roles with their columns"),
    (["--data.header", "maybe"], "data.header must be yes or no or null, got 'maybe'"),
    (["--data.train", "pipe"], "is a pipe, not a file"),
    (["--data.train", "/dev/zero"], "/dev/zero is a device, not a file"),
    (["--data.train", ""], "A file name is empty"),
    (["--data.bad_rows", "x"], "data.bad_rows must be 'error' or 'skip', got 'x'"),
    (["--frob.x", "1"], "frob"),
    (["--model.score.class.class", "x"], "model.score"),
    (["--task.source.max_length", "0"], "max_length must be 1 or more, got 0"),
    (["--task.source.tokeniser.vocab_size", "-1"], "vocab_size"),
]

COMMANDS = {
    "predict": ["predict", "{writer}"],
    "evaluate": ["evaluate", "{writer}", "--data", "pairs.tsv"],
    "explain": ["explain", "{writer}", "--input", "ba su"],
    "align": ["align", "{writer}", "--source", "source.txt", "--target", "target.txt"],
    "train": ["train", "translation/rnnsearch", "--data.train", "pairs.tsv", "--output", "new"],
}


@pytest.fixture
def command(writer, files, call, monkeypatch):
    """Runs a command with options; checks that it ends well and soon."""
    os.mkfifo(files / "pipe")
    (files / "digits.talp").write_text(f"{DIGITS}-1\n0-0\n")
    (files / "far.naacl").write_text("999999999 1 1\n")
    (files / "deep.json").write_text("[" * 100_000)
    monkeypatch.setattr("saccade.runs.train", no_training)

    def run(name: str, options: list[str]) -> tuple[int, str]:
        with bounded([name, *options]):
            code, _, errors = call(*(part.format(writer=writer) for part in COMMANDS[name]), *options)
        shown = f"{name} {[option[:60] for option in options]}: {code}: {errors[:2000]}"
        assert code in (0, 2), shown
        if code == 2:
            said = [line for line in errors.splitlines() if not line.startswith(("usage: ", "WARNING: "))]
            said = said[-1:] if name == "train" else said  # after what it read
            assert len(said) == 1, shown
            assert said[0].startswith("saccade"), shown
            assert len(said[0]) < 1500, shown
            assert "[Errno" not in said[0], shown
        return code, errors

    return run


def no_training(config, *, overrides, **arguments):
    """Everything that `saccade.train` does before the first step, and no step."""
    from saccade.runs.training import train

    return train(config, overrides={"trainer.max_steps": "1", **overrides}, **arguments)


LISTED = {"predict": PREDICT, "evaluate": EVALUATE, "explain": EXPLAIN, "align": ALIGN, "train": TRAIN}


@pytest.mark.parametrize("name", LISTED)
def test_hostile_options(name, command) -> None:
    wrong = []
    for options, message in LISTED[name]:
        code, errors = command(name, options)
        shown = f"{[option[:60] for option in options]}: {code}: {errors[-600:]}"
        if (message is None) != (code == 0) or (message or "") not in errors:
            wrong.append(f"{shown}\n   expected {message!r}")
    assert not wrong, "\n".join(wrong)


def test_a_line_of_standard_input_is_bounded(writer, files, call) -> None:
    with bounded("a long line"):
        code, _, errors = call("predict", writer, given="ba\n" + "x" * (LONGEST + 1))
    assert code == 2
    assert errors == "saccade predict: Line 2 of the input is longer than 16 MiB. Is this text?\n"


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "folder", "large"])
def test_only_configurations_are_copied(name, files, call) -> None:
    os.mkfifo(files / "pipe")
    (files / "large").write_bytes(bytes(300_000))
    with bounded(name):
        code, _, errors = call("copy", name, "my.yaml")
    assert code == 2
    assert len(errors.splitlines()) == 1
    assert not os.path.lexists("my.yaml")


VALUES = ["", "0", "1", "2", "-1", "7", "0.5", "1e308", "nan", "inf", "-0.0", "99999999999", DIGITS, "a", "ba", "0=a"]
VALUES += ["beam=1,2", "beam=", "source=0", "source=0,target=1", "{a: 1}", "[", "yes", "no", "csv", "json", "mutual"]
VALUES += ["gold.talp", "pairs.tsv", "source.txt", "folder", "pipe", "missing", "\0", "\x1b", "\ud800", "ü", "٣", "*"]
SENSIBLE = {"N": ["1", "2", "3"], "X": ["0.2", "0.5", "1"]}
"""What options that take whole and other numbers say they take."""
GOOD = {
    "--format": {
        "predict": ["csv", "jsonl", "text"],
        "align": ["pharaoh", "talp", "naacl", "json"],
        "explain": ["html"],
    },
    "--header": ["no"],
    "--bad-rows": ["error", "skip"],
    "--columns": ["source=0,target=1"],
    "--prefix": ["ba"],
    "--forced": ["0=a"],
    "--forbidden": ["su"],
    "--gold": {"align": ["gold.talp"]},
    "--vary": ["beam=1,2", "length-penalty=0,1"],
    "--extract": ["argmax", "threshold"],
}
WRITING = {"--output", "--plot", "--workers", "--help", "-h"}
"""They would overwrite what other cases read, or start processes; they are among the listed ones."""


def flags_of(name, writer) -> dict[str, str | None]:
    """The options of a command on a run: "N" for whole numbers, "X" for others, "" for text, None for switches."""
    parser = build_parser()[1][name]
    add_task_options(parser, name, [name, writer])
    flags = [(option, action) for action in parser._actions for option in action.option_strings]
    return {o: None if a.nargs == 0 else str(a.metavar or "") for o, a in flags if o not in WRITING}


def test_fuzzed_options(command, writer, cases) -> None:
    chance, tried = random.Random(3), cases("option sets", seconds=3.0, wanted=1_000)
    known = {name: flags_of(name, writer) for name in COMMANDS if name != "train"}
    while tried.more():
        name, options = chance.choice([*known]), []
        own = known[name] if chance.random() < 0.9 else known[chance.choice([*known])]
        for flag in chance.sample([*own], chance.randint(1, 4)):
            good = GOOD.get(flag, SENSIBLE.get(own[flag] or "", VALUES))
            good = good.get(name, VALUES) if isinstance(good, dict) else good
            with_value = (own[flag] is not None) != (chance.random() < 0.05)
            options += [flag, chance.choice(good if chance.random() < 0.7 else VALUES)] if with_value else [flag]
        with tried.case([name, *options]):
            code, _ = command(name, options)
        tried.outcomes["answered" if code == 0 else "refused"] += 1
