"""Errors name the value, the place and the fix; Ctrl-C is no error."""

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial

import pytest

import saccade
from tests.first_day.conftest import PAIRS, SETTINGS, write


def test_an_empty_line(train, work) -> None:
    write(work / "gap.tsv", [*PAIRS[:6], ("",), *PAIRS[6:]])
    code, _, err = train(data="gap.tsv")
    assert code == 2
    assert "gap.tsv, line 7: the line is empty. --data.bad_rows skip leaves such lines out." in err
    assert train("--data.bad_rows", "skip", data="gap.tsv")[0] == 0


def test_a_file_of_one_line(train, work) -> None:
    write(work / "one.tsv", PAIRS[:1])
    code, _, err = train("--trainer.patience", "3", data="one.tsv")
    assert code == 2
    assert "one.tsv has 1 example, too few to hold out 5% for validation." in err
    assert "--data.valid" in err


def test_latin_1(train, work) -> None:
    (work / "old.tsv").write_bytes("caf\xe9\tk\xe4se\n".encode("latin-1") * 30)
    code, _, err = train(data="old.tsv")
    assert code == 2
    assert "old.tsv, line 1" in err
    assert "the source is not UTF-8 (byte 0xE9)" in err
    assert f"iconv -f LATIN1 -t UTF-8 {work / 'old.tsv'} > old.utf8.tsv" in err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["train", "translation/rnnsearch", "--data.train", "rivers.tsv", "--output", "x"], "--data.columns"),
        (["evaluate", "run", "--data", "rivers.tsv"], "--columns"),
    ],
)
def test_columns_are_spelt_the_same_everywhere(command, option, train, call) -> None:
    assert train()[0] == 0
    code, _, err = call(*command, option, "latin,cyrillic")
    assert code == 2
    assert f"{option} takes roles with their columns, as source=latin,target=cyrillic; got 'latin,cyrillic'." in err


@pytest.mark.parametrize("when", ["at once", "while it reads", "while it trains"])
def test_ctrl_c(when, work) -> None:
    command = [sys.executable, "-m", "saccade", "train", "translation/rnnsearch", "--data.train", "rivers.tsv"]
    process = subprocess.Popen(
        [*command, "--output", "run", *SETTINGS, "--trainer.max_steps", "100000", "--trainer.log_every", "1"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wanted = {"at once": None, "while it reads": "Reading", "while it trains": "step 2 "}[when]
    said = []
    while wanted is not None and not any(line.startswith(wanted) for line in said):
        line = process.stderr.readline()
        assert line, said
        said.append(line)
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=120)[1]
    if when == "at once" and (process.returncode == -signal.SIGINT or "Failed to import the site module" in rest):
        return  # before Python itself had started
    assert process.returncode == 130, rest
    assert "Traceback" not in rest
    assert "nterrupted" in rest
    if when == "while it trains":
        assert "saccade train --resume run" in rest


INTERRUPTED = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
runpy.run_module("saccade", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["saccade.commands.interrupting", "saccade.cli", "saccade.commands.training"])
def test_ctrl_c_while_the_command_line_is_imported(module) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", INTERRUPTED, "show", module]
    interruptible = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    done = subprocess.run(command, capture_output=True, text=True, env=env, preexec_fn=interruptible)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.startswith("Interrupted")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_is_quiet_before_and_after() -> None:
    """Nothing is imported before the handler is set, and there is none left while Python shuts down."""
    code = """
import sys
before = {*sys.modules}
import saccade
assert {*sys.modules} - before == {"saccade"}, {*sys.modules} - before
sys.argv = ["saccade", "show", "sparsemax"]
import signal
from saccade.__main__ import run
assert signal.getsignal(signal.SIGINT).__name__ == "leave"
assert run() == 0
assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    interruptible = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    subprocess.run([sys.executable, "-c", code], check=True, env=env, preexec_fn=interruptible)


@pytest.mark.parametrize(
    ("name", "between", "header", "fix"),
    [
        ("rivers.csv", "\t", (), "1 column, but at least 2 are needed. If its columns are separated by tabs, name the"),
        ("rivers.csv", ";", (), "1 column, but at least 2 are needed. If its columns are separated by semicolons"),
        ("rivers.csv", ";", ("latin", "cyrillic"), "one column in its header ('latin;cyrillic'). If its columns are"),
        ("commas.tsv", ",", (), "if they are separated by commas, name the file .csv"),
        ("marks.tsv", ";", (), "If its columns are separated by semicolons, save it again with tabs."),
        ("marks.tsv", ";", ("latin", "cyrillic"), "one column in its header ('latin;cyrillic'). If its columns are"),
    ],
)
def test_another_separator(name, between, header, fix, train, work) -> None:
    write(work / name, [header, *PAIRS] if header else PAIRS, between=between)
    named = ["--data.columns", "source=latin,target=cyrillic"] if header else []
    code, _, err = train(*named, data=name)
    assert code == 2
    assert fix in err


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("   hidden_dim: 8", "this `:` does not fit here; indent the lines of one section equally"),
        (" hidden_dim: 8", "this line does not fit those above; indent the lines of one section equally"),
        ("\thidden_dim: 8", "a tab, where YAML indents with spaces"),
        ("  hidden_dim 8", "this line or the one above has no `:`"),
    ],
)
def test_a_configuration_with_a_slip(line, problem, work, call) -> None:
    (work / "my.yaml").write_text(f"model:\n  class: rnnsearch\n{line}\n  dropout: 0.1\n")
    code, _, err = call("validate", "my.yaml")
    assert code == 2
    assert f"my.yaml is not YAML: {problem}" in err
    assert "(line " in err


def test_data_given_as_the_configuration(work, call) -> None:
    err = call("train", "rivers.tsv")[2]
    assert "rivers.tsv is data, not a configuration: saccade train CONFIG --data.train rivers.tsv" in err


def test_a_configuration_without_its_domain(call) -> None:
    assert "Did you mean 'classification/pooling' or 'rating/pooling'?" in call("train", "pooling")[2]


def test_a_misspelt_configuration_of_ones_own(work, call) -> None:
    (work / "rivers.yaml").touch()
    assert "Did you mean 'rivers.yaml'?" in call("train", "river.yaml")[2]


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--max-steps", "--trainer.max_steps"),
        ("--epochs", "--trainer.max_epochs"),
        ("--lr", "--trainer.learning_rate"),
        ("--train", "--data.train"),
        ("--columns", "--data.columns"),
        ("--outptu", "--output"),
        ("--cross-validation", "--folds"),
        ("--metrics", "--task.metrics"),
        ("--selection", "--model.selection"),
        ("--hiden-dim", "--model.hidden_dim"),
    ],
)
def test_an_option_without_its_section(option, meant, call) -> None:
    code, _, err = call("train", "translation/rnnsearch", option, "3")
    assert code == 2
    assert f"train has no option {option}. Did you mean {meant}?" in err


def test_two_configurations(call) -> None:
    code, _, err = call("train", "translation/rnnsearch", "translation/transformer")
    assert code == 2
    assert "usage: saccade train [config]" in err
    assert "there is one argument too many: 'translation/transformer'" in err


def test_a_text_where_a_file_is_expected(train, call) -> None:
    assert train()[0] == 0
    for command in ("predict", "explain"):
        assert "There is no file bado. To give the input itself, use --input" in call(command, "run", "bado")[2]


def test_what_is_no_run(train, work, call) -> None:
    (work / "runs").mkdir()
    for name in "abcdefg":
        (work / "runs" / name).mkdir()
        (work / "runs" / name / "config.yaml").touch()
    assert "runs contains runs: a, b, c, d, e and 2 more." in call("predict", "runs", given="bado\n")[2]
    assert "rivers.tsv is a file: name the folder of a run." in call("predict", "rivers.tsv", given="bado\n")[2]


def test_nothing_to_train_on(tmp_path) -> None:
    with pytest.raises(ValueError, match="There is nothing to train on: the data has no examples"):
        saccade.train(model="rnnsearch", data=[], trainer={"max_steps": 1}, output=tmp_path / "run")


def test_models_of_different_tasks(train, work, call) -> None:
    assert train()[0] == 0
    write(work / "kinds.tsv", [(name, "long" if len(name) > 8 else "short") for name, _ in PAIRS])
    small = ["--model.embedding_dim", "4", "--model.hidden_dim", "4", "--trainer.max_steps", "1"]
    code, _, err = call("train", "classification/pooling", "--data.train", "kinds.tsv", "--output", "kinds", *small)
    assert code == 0, err
    code, _, err = call("explain", "run", "--against", "kinds", "--input", "bado")
    assert code == 2
    assert "run and kinds have different tasks (Generation, Classification): name two runs with the same task." in err


def test_a_run_that_is_not_there(train, call) -> None:
    assert train()[0] == 0
    for name, close in (("runn", "run"), ("./ru", "run")):
        assert f"There is no folder {os.path.normpath(name)}: did you mean {close}?" in call("predict", name)[2]
    assert "There is no folder x/run: name the folder of a run." in call("predict", "x/run")[2]


def test_options_of_a_run_that_is_not_there(work, call) -> None:
    code, _, err = call("predict", "runs/old", "--beam", "3", "--input", "bado")
    assert code == 2
    assert "There is no folder runs/old: name the folder of a run." in err
    assert "no option" not in err


def test_only_runs_of_a_similar_name_are_suggested(work, call) -> None:
    (work / "runs" / "long").mkdir(parents=True)
    (work / "runs" / "long" / "config.yaml").touch()
    assert "There is no folder runs/old: name the folder of a run." in call("predict", "runs/old")[2]
    assert "There is no folder runs/logn: did you mean runs/long?" in call("predict", "runs/logn")[2]


def test_one_label(work, call) -> None:
    (work / "kinds.csv").write_text("name,kind\n" + "".join(f"{latin},short\n" for latin, _ in PAIRS))
    columns = ["--data.text", "name", "--data.label", "kind"]
    code, _, err = call("train", "classification/pooling", "--data.train", "kinds.csv", *columns, "--output", "run")
    assert code == 2
    assert "kinds.csv, label (column kind): there must be at least two different labels, got short." in err


def test_folds_of_a_misspelt_column_leave_no_folder(work, call) -> None:
    (work / "kinds.csv").write_text("name,kind\n" + "".join(f"{latin},{len(latin)}\n" for latin, _ in PAIRS))
    columns = ["--data.text", "name", "--data.label", "kind", "--folds", "part"]
    code, _, err = call("train", "classification/pooling", "--data.train", "kinds.csv", *columns, "--output", "run")
    assert code == 2
    assert "has no column 'part'" in err
    assert not (work / "run").exists()


def test_labels_that_occur_only_once(work, call) -> None:
    write(work / "ids.tsv", [(latin, str(number)) for number, (latin, _) in enumerate(PAIRS)])
    code, _, err = call("train", "classification/pooling", "--data.train", "ids.tsv", "--output", "run")
    assert code == 2
    assert "The only held-out example cannot be validated on: no training example has the label" in err
    assert "Is every label in more than one example?" in err
    # The folder can be used again, once the mistake is found.
    write(work / "kinds.tsv", [(latin, "ab"[len(latin) % 2]) for latin, _ in PAIRS])
    code, _, err = call(
        "train", "classification/pooling", "--data.train", "kinds.tsv", "--output", "run", "--trainer.max_steps", "1"
    )
    assert code == 0, err


def test_data_that_is_given_without_its_option(work, call) -> None:
    code, _, err = call("train", "translation/rnnsearch", "rivers.tsv", "--output", "run")
    assert code == 2
    assert "one argument too many: 'rivers.tsv'. Is that the data? --data.train rivers.tsv" in err


@pytest.mark.parametrize(
    ("files", "meant"),
    [(["a.src", "a.tgt"], "a.src,a.tgt"), (["rivers.tsv", "a.tsv"], "'[rivers.tsv, a.tsv]'")],
)
def test_several_files_of_data(files, meant, work, call) -> None:
    for name in files:
        (work / name).touch()
    code, _, err = call("train", "translation/rnnsearch", "--data.train", *files, "--output", "run")
    assert code == 2
    assert f"one argument too many: {files[1]!r}. Is that the data? --data.train {meant}" in err


def test_a_value_without_quotes(call) -> None:
    split = ["{class:", "text,", "tokeniser:", "char}"]  # as the shell does
    code, _, err = call("train", "translation/rnnsearch", "--task.source", *split, "--output", "run")
    assert code == 2
    assert "put a value with spaces in quotes: --task.source '{class: text, tokeniser: char}'" in err


def test_several_metrics_as_evaluate_takes_them(train) -> None:
    code, _, err = train("--task.metrics", "exact_match,cer")
    assert code == 0, err
    assert "exact_match" in err
    assert "cer" in err


def test_several_labels_where_one_is_expected(work, call) -> None:
    rows = [{"text": latin, "label": ["long", "wet"]} for latin, _ in PAIRS]
    (work / "kinds.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = call("train", "classification/pooling", "--data.train", "kinds.jsonl", "--output", "run")
    assert code == 2
    assert "kinds.jsonl, line 1: the label is a list, but one label is expected." in err
    assert "--task.label labels" in err


def test_tables_are_not_joined_by_commas(train, work) -> None:
    write(work / "more.tsv", PAIRS)
    code, _, err = train(data="rivers.tsv,more.tsv")
    assert code == 2
    assert "Give tables as a list, '[" in err


def test_a_bad_row_can_always_be_left_out(work, call) -> None:
    (work / "clips.csv").write_text("source,target\ngone.wav,low\n")
    code, _, err = call(
        "train", "speech/rnnsearch", "--data.train", "clips.csv", "--data.header", "yes", "--output", "run"
    )
    assert code == 2
    assert "clips.csv, line 2: the source 'gone.wav' cannot be used: it does not exist." in err
    assert "--data.bad_rows skip leaves such rows out." in err


def test_the_help_of_a_run_has_no_options_of_other_tasks(train, work, call) -> None:
    assert train()[0] == 0
    (work / "kinds.csv").write_text("name,kind\n" + "".join(f"{s},{len(s) > 8}\n" for s, _ in PAIRS))
    columns = ["--data.text", "name", "--data.label", "kind", "--trainer.max_steps", "1"]
    small = ["--model.embedding_dim", "4", "--model.hidden_dim", "4"]
    config = ["classification/pooling", "--data.train", "kinds.csv", "--output", "kinds"]
    assert call("train", *config, *columns, *small)[0] == 0
    for run, has in (("run", True), ("kinds", False)):
        code, out, _ = call("predict", run, "--help")
        assert code == 0
        assert ("--lm-weight" in out) is has


def test_a_run_is_not_a_member(train, call) -> None:
    assert train()[0] == 0
    assert "run is a run: run/README.md describes it." in call("show", "run")[2]


@pytest.mark.parametrize(
    ("name", "fix"),
    [("rivers.xlsx", "Save the table as .csv."), ("rivers.zip", "Unpack it;"), ("rivers.npz", "Readers: ")],
)
def test_formats_that_cannot_be_read(name, fix, work, call) -> None:
    (work / name).write_bytes(b"PK")
    err = call("validate", "translation/rnnsearch", "--data.train", name)[2]
    assert f"there is no reader for {name.removeprefix('rivers')} files. {fix}" in err


def test_a_list_in_json_can_be_converted(work, call) -> None:
    rows = [{"source": latin, "target": cyrillic} for latin, cyrillic in PAIRS]
    (work / "rivers.json").write_text(json.dumps(rows))
    err = call("validate", "translation/rnnsearch", "--data.train", "rivers.json")[2]
    command = re.search(r"one object a line: (python .*\.jsonl)\.", err)[1]
    subprocess.run(command.replace("python", sys.executable, 1), shell=True, check=True)
    assert call("validate", "translation/rnnsearch", "--data.train", "rivers.jsonl")[0] == 0


def test_wrong_options_do_not_wait_for_standard_input(train, call, monkeypatch) -> None:
    class Endless:
        def read(self, *_: object) -> str:
            raise AssertionError("standard input was read")

        readline = __iter__ = __next__ = read
        buffer = property(lambda self: self)

    assert train()[0] == 0
    monkeypatch.setattr(sys, "stdin", Endless())
    code, _, err = call("predict", "run", "--beam", "0")
    assert code == 2
    assert "beam" in err


def test_the_command_line_outside_the_main_thread() -> None:
    script = """
import threading
def work():
    import sys
    sys.argv = ["saccade", "--version"]
    from saccade.__main__ import run
    try:
        run()
    except SystemExit as ended:
        print("ended with", ended.code)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "Traceback" not in done.stderr
    assert done.stdout.endswith("ended with 0\n")


def test_columns_that_end_nowhere_are_a_usage_error(train, call) -> None:
    assert train()[0] == 0
    code, _, err = call("evaluate", "run", "--data", "rivers.tsv", "--data.source", "{0", "}")
    assert code == 2
    assert "put a value with spaces in quotes: --data.source '{0 }'" in err
    assert "Traceback" not in err
