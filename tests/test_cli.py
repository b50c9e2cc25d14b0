"""The command line as a user calls it."""

import importlib
import json
import subprocess
import sys

import pytest

import saccade
from saccade.cli import COMMANDS, build_parser, main
from saccade.configuration.catalogue import catalogue
from saccade.registry import registries

for _kind in catalogue().values():
    importlib.import_module(_kind.home)
KINDS = registries


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(arguments)
    except SystemExit as leave:  # argparse leaves by itself for --help and for a wrong command line
        code = int(leave.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_list_names_every_member_within_the_terminal(kind, columns, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = run(capsys, "list", kind)
    assert code == 0
    lines = out.splitlines()
    for name, member in KINDS[kind].items():
        assert any(line.split()[:1] == [name] for line in lines)
        assert f"{member.__name__}(" in out
    assert max(map(len, lines)) <= int(columns)


def test_list_without_a_kind_lists_all(capsys) -> None:
    code, out, _ = run(capsys, "list")
    assert code == 0
    assert all(name in out for registry in KINDS.values() for name in registry.names())


def test_list_json_describes_constructors(capsys) -> None:
    code, out, _ = run(capsys, "list", "scores", "--json")
    assert code == 0
    members = {member["name"]: member for member in json.loads(out)}
    assert set(members) == set(saccade.scores.names())
    additive = members["additive"]
    assert additive["class"] == "saccade.scores.AdditiveScore"
    required = [p["name"] for p in additive["parameters"] if p["required"]]
    assert required == ["query_dim", "key_dim", "hidden_dim"]
    assert {"name": "bias", "required": False, "default": False} in additive["parameters"]
    assert all(member["summary"] for member in members.values())


@pytest.mark.parametrize("name", ["additive", "AdditiveScore"])
def test_show_prints_signature_and_docstring(name, capsys) -> None:
    code, out, _ = run(capsys, "show", name)
    assert code == 0
    assert out.startswith("saccade.scores.AdditiveScore(query_dim, key_dim, hidden_dim")
    assert "arXiv:1409.0473" in out


def test_show_prints_all_members_of_one_name(capsys) -> None:
    code, out, _ = run(capsys, "show", "feature_wise")
    assert code == 0
    kinds = [kind for kind, registry in KINDS.items() if "feature_wise" in registry.names()]
    assert all(f"saccade.{kind}." in out for kind in kinds)


def test_select_prints_weights(capsys) -> None:
    code, out, _ = run(capsys, "select", "2", "0", "-1")
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert rows["scores"] == ["2.00", "0.00", "-1.00"]
    assert rows["softmax"] == ["0.84", "0.11", "0.04"]  # e^2, 1, e^-1 over their sum 8.757
    assert rows["sparsemax"] == ["1.00", ".", "."]  # the gap of 2 exceeds 1


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["lst"], ["'lst'", "Did you mean 'list'", "select, serve, show"]),
        (
            ["list", "score"],
            [
                "'score'",
                "Did you mean 'scores'",
                "fields, formats, heads, history, models, optimisers, readers",
            ],
        ),
        (["show", "additve"], ["'additve'", "Did you mean 'additive'", "`saccade list`"]),
        (["show"], ["name"]),
        (["select"], ["at least one score"]),
        (["select", "1", "x"], ["'x'"]),
        (["select", "1", "nan"], ["finite", "nan"]),
        (["list", "--jsn"], ["--jsn"]),
    ],
)
def test_wrong_command_lines_exit_with_2_and_the_fix(arguments, parts, capsys) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert all(part in err for part in parts), err


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_where_the_list_says(kind, capsys) -> None:
    for member in json.loads(run(capsys, "list", kind, "--json")[1]):
        module, _, name = member["class"].rpartition(".")
        assert getattr(importlib.import_module(module), name) is KINDS[kind].get(member["name"])


def test_help_describes_every_command_and_argument(capsys) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert all(name in out for name in COMMANDS)
    for name in COMMANDS:
        code, out, _ = run(capsys, name, "--help")
        assert code == 0
        assert (COMMANDS[name].__doc__ or "").splitlines()[0] in " ".join(out.split())
        assert all(len(line) <= 80 or line.startswith("    ") for line in out.splitlines())
    assert run(capsys)[0] == 0
    assert build_parser()[0].prog == "saccade"


def test_module_and_version() -> None:
    result = subprocess.run([sys.executable, "-m", "saccade", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"saccade {saccade.__version__}"
