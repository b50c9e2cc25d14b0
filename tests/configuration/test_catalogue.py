"""The catalogue is read from the source; the registries say the same."""

import ast
import dataclasses
import importlib
import inspect
import subprocess
import sys

import pytest

from saccade.configuration import ConfigError
from saccade.configuration.catalogue import _module, catalogue, described, option_names
from saccade.configuration.sections import SECTIONS
from saccade.configuration.spelling import check_spelling
from saccade.registry import constructor_parameters, describe, registries

for _kind in catalogue().values():
    importlib.import_module(_kind.home)


def test_kinds_are_the_registries() -> None:
    for kind in catalogue().values():
        registry = registries[kind.plural]
        assert (kind.name, kind.home, kind.aliases) == (registry.kind, registry.home, registry.aliases)
        assert kind.base == registry.base.__name__
    assert set(catalogue()) == set(registries)


@pytest.mark.parametrize("plural", catalogue())
def test_members_are_those_of_the_registries(plural) -> None:
    kind, registry = catalogue()[plural], registries[plural]
    own = {name: member for name, member in registry.items() if member.__module__.startswith("saccade.")}
    assert list(kind.members) == list(own)
    for name, member in own.items():
        found = kind.members[name]
        assert (found.name, found.module) == (member.__name__, member.__module__)
        assert found.doc == inspect.getdoc(member)
        assert found.signature == describe(member)
        assert found.usual_classes == getattr(member, "usual_classes", {})
        for parameter in constructor_parameters(member).values():
            read = found.parameters[parameter.name]
            assert read.required == (parameter.default is parameter.empty)
            assert read.required or not read.literal or read.default == parameter.default


def test_options_of_tasks_are_those_of_their_dataclasses() -> None:
    for name, member in registries["tasks"].items():
        if member.__module__.startswith("saccade."):
            options = {field.name for field in dataclasses.fields(member.options)}
            assert {*option_names(catalogue()["tasks"].members[name])} == options


def test_sections_are_described() -> None:
    for section in SECTIONS.values():
        if section.kind is None:
            module, _, name = section.usual.rpartition(".")
            member = getattr(importlib.import_module(module), name)
            assert described(section.usual).signature == describe(member)
        else:
            assert section.usual is None or section.usual in catalogue()[section.kind].members


def test_every_misspelt_name_is_reported_at_once() -> None:
    config = {
        "taks": {},
        "task": {"label_smoothing": 3},  # a value, which is not looked at here
        "model": {
            "class": "rnnsearch",
            "hiden_dim": 3,
            "score": {"class": "sum", "scores": ["dott", {"class": "general", "query_dims": 3}]},
            "selection": {"class": "entmax", "alfa": 1.3},
        },
        "data": {"bad_row": "skip"},
        "trainer": {"max_stepz": 3, "schedule": {"class": "cosin"}, "optimiser": "adma"},
    }
    with pytest.raises(ConfigError) as raised:
        check_spelling(config)
    first, *rest = str(raised.value).splitlines()
    assert first == "9 problems:"
    wanted = [("taks", "task"), ("hiden_dim", "hidden_dim"), ("dott", "dot"), ("query_dims", "query_dim")]
    wanted += [("alfa", "alpha"), ("bad_row", "bad_rows"), ("max_stepz", "max_steps"), ("cosin", "cosine")]
    wanted += [("adma", "adam")]
    for (wrong, right), line in zip(wanted, rest, strict=True):
        assert f"{wrong!r}. Did you mean {right!r}?" in line
    assert "source_vocab" not in str(raised.value)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"model": "luong", "data": None},
        {"model": {"class": "luong", "score": "general", "selection": "null"}},
        {"model": {"class": "my.own.Model", "anything": 1}, "trainer": {"class": "my.Trainer", "x": 1}},
        {"model": {"class": "rnnsearch", "encoder": "convolutional", "score": "my.own.Score"}},
        {"model": {"class": "saccade.models.RNNSearch", "hidden_dim": 3}},
        {"model": {"class": "rnnsearch", "selection": {"temperature": 2}}},
        {"model": 3, "task": [], "trainer": "x"},  # which `Plan` refuses
    ],
)
def test_what_is_spelt_right_or_is_no_name_passes(config) -> None:
    check_spelling(config)


def test_it_answers_without_torch() -> None:
    code = (
        "import sys, time\n"
        "from saccade.commands.members import list_members, show_member\n"
        "from saccade.configuration.spelling import check_spelling\n"
        "from saccade.configuration import override, read_config\n"
        "check_spelling(override(read_config('translation/rnnsearch'), {'model.hidden_dim': '3'}))\n"
        "list_members('scores'); show_member('additive'); list_members()\n"
        "print(sorted({'torch', 'numpy'} & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
    assert "AdditiveScore(query_dim, key_dim, hidden_dim" in run.stdout
    assert "Also called general." in run.stdout


def test_bodies_of_functions_are_not_parsed(tmp_path) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        "class One:\n    def read(\n        self, a: int = 3\n    ) -> int:\n        (] nonsense\n\n    size = 5\n"
    )
    (found,) = _module(source).body
    assert [ast.unparse(each) for each in found.body] == ["def read(self, a: int=3) -> int:\n    ...", "size = 5"]
    margin = tmp_path / "margin.py"
    margin.write_text('class Two:\n    def read(self):\n        return """\n(a\n"""\n')
    assert "return" in ast.unparse(_module(margin).body[0])
