"""Configurations from strangers: each is refused in one clear error or becomes a plan, and none runs anything."""

import copy
import itertools
import json
import os
import random
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st

from saccade.configuration import ConfigError, override, read_config, shipped
from saccade.configuration.catalogue import Described, Kind, Parameter, catalogue, classes_in, described
from saccade.configuration.spelling import check_spelling
from saccade.configuration.yaml_files import parse_yaml
from saccade.runs.plan import Plan
from tests.hostile.counting import SECONDS, Cases, bounded

END = {"trainer": {"max_steps": 1}}
CORPUS, TRAINER = described("saccade.data.corpus.Corpus"), described("saccade.training.trainer.Trainer")


def free_form(parameter: Parameter) -> bool:
    """Whether an argument takes text, free data or a class."""
    words = set(parameter.annotation.replace("[", " ").replace("]", " ").replace(",", " ").split())
    return bool({"str", "Any", "dict", "Field", "Score", "Selection", "Tokeniser", "Optimiser", "Schedule"} & words)


def places() -> Iterator[tuple[str, ...]]:
    """The key of every free-form argument: in the sections, and in every class that one of them takes."""
    for name, member in catalogue()["tasks"].members.items():
        yield from (("task", name, p.name) for p in member.parameters.values() if free_form(p))
    for name, member in catalogue()["models"].members.items():
        yield from (("model", name, p.name) for p in member.parameters.values() if free_form(p))
    yield from (("data", "", p.name) for p in CORPUS.parameters.values() if free_form(p))
    yield from (("trainer", "", p.name) for p in TRAINER.parameters.values() if free_form(p))
    for slot, kind in (("score", "scores"), ("selection", "selections")):
        for name, member in catalogue()[kind].members.items():
            yield from (("model", "rnnsearch", slot, name, p) for p in member.parameters)
    for slot, kind in (("optimiser", "optimisers"), ("schedule", "schedules")):
        for name, member in catalogue()[kind].members.items():
            yield from (("trainer", "", slot, name, p) for p in member.parameters)
    for name, member in catalogue()["tokenisers"].members.items():
        yield from (("task", "generation", "source", "text", "tokeniser", name, p) for p in member.parameters)
    for name, member in catalogue()["fields"].members.items():
        yield from (("task", "generation", "source", name, p) for p in member.parameters)


def deep_places(member: Described, levels: int) -> Iterator[tuple[str, ...]]:
    """The key of every argument of a class, and of the classes that it takes, down to some levels."""
    for parameter in member.parameters.values():
        yield (parameter.name,)
        for kind in classes_in(parameter.annotation)[:1] if levels else ():
            for name, inner in kind.members.items():
                yield from ((parameter.name, name, *rest) for rest in deep_places(inner, levels - 1))


def put(place: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A configuration with a value at a place."""
    section, name, *keys = place
    for number in range(len(keys) - 1, 0, -2):  # argument, class, argument, ...
        value = {"class": keys[number - 1], keys[number]: value}
    part = {keys[0]: value, **({"class": name} if name else {})}
    base: dict[str, Any] = {"model": "rnnsearch", **END}
    return {**base, section: {**(base[section] if section == "trainer" else {}), **part}}


PAYLOAD = {"class_path": "subprocess.Popen", "init_args": {"args": "touch PWNED", "shell": True}}
TEXT = json.dumps(PAYLOAD)
SPELLINGS: list[Any] = [
    PAYLOAD,
    {"x": PAYLOAD},
    TEXT,
    {"x": TEXT},
    [TEXT],
    TEXT.replace("class_path", "class_p\\u0061th"),
    {"x": TEXT.replace("class_path", "class_p\\u0061th")},
    json.dumps({"x": TEXT}),
    json.dumps(TEXT),
    {"class": "subprocess.Popen", "args": "touch PWNED", "shell": True},
    {"x": {"class": "subprocess.Popen", "args": "touch PWNED", "shell": True}},
    {"class": {"class": "subprocess.Popen", "args": "touch PWNED", "shell": True}},
    {"_target_": "os.system", "command": "touch PWNED"},
    "!!python/object/apply:os.system ['touch PWNED']",
    "os.system",
    "subprocess.Popen",
    "a_hostile_module.Hostile",
    {"class": "a_hostile_module.Hostile"},
    "saccade.__main__.X",
    {"class": "saccade.__main__.X"},
    "saccade.cli.main",
    {"class": "saccade.run_training.train"},
    "saccade.a_hostile_module.Hostile",
]
PATHS = ["builtins.eval", "functools.partial", "importlib.import_module", "torch.load", "torch.nn.Linear", "__main__.X"]
PATHS += [".a_hostile_module.Hostile", "..os.system", "saccade..os.system", "a_hostile_module.", "os:system", "this.x"]
PATHS += ["saccade.runs.workers.subprocess.Popen", "saccade.data.spool.pickle.loads", "saccade.registry.Registry"]
SPELLINGS_DEEP: list[Any] = [*SPELLINGS, *PATHS, *({"class": path} for path in PATHS)]
SPELLINGS_DEEP += [
    {"class": ["os", "system"]},
    {"class": 3},
    {"class": True},
    {"class": None},
    {"__class__": "os.system"},
]
SPELLINGS_DEEP += [{"class": "functools.partial", "func": "os.system", "args": ["touch PWNED"]}, "${oc.env:HOME}", "\0"]
SPELLINGS_DEEP += ["$(touch PWNED)", "{0.__class__.__mro__}", "__import__('os').system('touch PWNED')"]


@pytest.fixture
def trap(tmp_path, monkeypatch) -> Iterator[None]:
    """A working folder with a module that leaves a trace; afterwards there is none, and nothing was imported."""
    (tmp_path / "a_hostile_module.py").write_text("open('PWNED', 'w').close()\n\n\nclass Hostile: ...\n")
    monkeypatch.chdir(tmp_path)
    assert Plan(read_config("translation/rnnsearch")).task is not None  # imports what Saccade imports by itself
    path, modules = list(sys.path), set(sys.modules)
    yield
    assert sorted(os.listdir(tmp_path)) in (["a_hostile_module.py"], ["a_hostile_module.py", "config.yaml"])
    assert sys.path == path
    assert not {name for name in set(sys.modules) - modules if not name.startswith(("torch", "hypothesis"))}


@pytest.mark.parametrize("section", ["task", "model", "data", "trainer"])
def test_no_spelling_in_any_place_runs_anything(section, trap) -> None:
    tried = 0
    for place in places():
        if place[0] == section:
            for value in SPELLINGS:
                tried += 1
                try:
                    plan = Plan(put(place, value))
                except ConfigError:
                    continue
                found = plan.plain[section]
                for argument in place[2::2]:
                    found = found[argument]
                assert found == value  # data, which stays what it was
    assert tried >= 3 * len(SPELLINGS)


def test_nor_does_any_deeper_down(trap, cases) -> None:
    chance, tried = random.Random(5), cases("spellings in places", seconds=1.0, wanted=50_000)
    within = [("data", "", place) for place in deep_places(CORPUS, 2)]
    within += [("trainer", "", place) for place in deep_places(TRAINER, 2)]
    for section, kind in (("task", "tasks"), ("model", "models")):
        for name, member in catalogue()[kind].members.items():
            within += [(section, name, place) for place in deep_places(member, 2)]
    while tried.more():
        section, name, place = chance.choice(within)
        config = put((section, name, *place), chance.choice(SPELLINGS_DEEP))
        with tried.case(config):
            try:
                Plan(config)
                tried.outcomes["taken for data"] += 1
            except ConfigError:
                tried.outcomes["refused"] += 1


def test_the_attack_of_a_run_folder(trap) -> None:
    """Text of a run's config.yaml, as it was reported."""
    escaped = TEXT.replace("class_path", "class_p\\u0061th")
    with open("config.yaml", "w") as file:
        file.write(f"model: rnnsearch\ntrainer:\n  max_steps: 1\n  validate_options: {{prefix: '{escaped}'}}\n")
    assert Plan(read_config("config.yaml")).trainer.validate_options == {"prefix": escaped}


BOMB = "a: &a [x, x, x, x]\n" + "".join(
    f"{this}: &{this} [*{last}, *{last}, *{last}, *{last}]\n" for last, this in itertools.pairwise("abcdefghijkl")
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, r"line 2: aliases \(\*a\) are not allowed"),
        ("model: &m {class: rnnsearch}\ntask: *m\n", "aliases"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested deeper than 32 levels"),
        ("a: " + "{a: " * 5000 + "}" * 5000, "nested deeper than 32 levels"),
        ("- " * 5000, "nested deeper than 32 levels"),
        ("[" + "0," * 50_000 + "]", "more than 20000 values"),
        ("a: " + "x" * 300_000, "larger than 256 kB"),
        ("a: " + "9" * 5000, "a whole number of 5000 characters is too long"),
        ("a: 0x_\n", "not a whole number"),
        ("model: !!python/object/apply:os.system ['touch PWNED']", "tags .* are not allowed"),
        ("model: !!python/name:os.system", "tags .* are not allowed"),
        ("a: !!bool x", "tags"),
        ("a: !!timestamp x", "tags"),
        ("a: !!binary x", "tags"),
        ("!!set {a, b}", "tags"),
        ("{[a]: 1}", "a key must be a name"),
        ("{{a: 1}: 1}", "a key must be a name"),
        ("a: 1\na: 2\n", "'a' appears twice"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("a: =", "not YAML"),
        ("<<: 3", "not YAML"),
        ("a: \x00", "not YAML"),
        ("", "must have sections"),
        ("model: rnnsearch: x", "not YAML"),
        ("a: 2020-99-99\n", None),  # text, not a date
        ("a: 1:30:99999999\n", None),
    ],
)
def test_hostile_yaml(text, message, trap, tmp_path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with bounded(text[:200]):
        if message is None:
            assert read_config("config.yaml")
        else:
            with pytest.raises(ConfigError, match=message):
                read_config("config.yaml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_devices_are_no_configurations(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", "/dev/zero"):
        with pytest.raises(ConfigError, match="not a regular file"):
            read_config(path)


LOUD = {"class": "audio", "rate": 384_000, "window": 1.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.hidden_dim": 10**12}, r"model\.hidden_dim: must be at most 1,048,576, got 1000000000000"),
        ({"model.hidden_dim": "1" * 400}, r"model\.hidden_dim must be a whole number, got '111"),
        ({"model.hidden_dim": -5}, r"model\.hidden_dim: must be 1 or more, got -5"),
        ({"model.encoder_layers": 10**12}, r"model\.encoder_layers: must be at most 1,024"),
        ({"model.encoder_layers": 1024}, r"model \(rnnsearch\) has more than .* use fewer layers"),
        ({"model.hidden_dim": 2**20}, r"model \(rnnsearch\) has more than 8,589,934,592 parameters"),
        ({"model": {"class": "transformer", "num_heads": 0}}, r"num_heads: must be 1 or more"),
        ({"model": {"class": "transformer", "decoder_layers": 1000}}, r"has more than"),
        ({"model.score": {"class": "neural_tensor", "num_slices": 50_000}}, r"num_slices: must be at most 1,024"),
        ({"model.score": {"class": "monotonic_energy", "hidden_dim": 0}}, r"hidden_dim: must be 1 or more"),
        ({"trainer.max_steps": 10**30}, r"trainer\.max_steps: must be at most 2,147,483,647"),
        ({"trainer.learning_rate": float("nan")}, r"trainer\.learning_rate: nan is not a finite number"),
        ({"trainer.learning_rate": 10**400}, r"trainer\.learning_rate: must be at most"),
        ({"trainer.metric": "x" * 100_000}, r"trainer\.metric: .* is longer than 10000 characters"),
        ({"a" + ".a" * 5000: 1}, r"nested deeper than 32 levels"),
        ({"data.train": ["x"] * 50_000}, r"over 20000 values"),
        ({"task.source": {**LOUD, "mels": 20_000}}, r"mels=20000 is too many for windows of 384000 samples"),
        ({"task.source": {**LOUD, "mels": 2**18}}, r"mels=262144 is too many"),
        (
            {"task.bleu_tokenize": "flores200"},
            r"task\.bleu_tokenize: unknown value 'flores200'",
        ),  # which it would download
        ({"task": {"class": "classification", "inputs": {"../x": "text"}}}, r"'\.\./x' cannot be the name of an input"),
        ({"task": {"class": "rating", "inputs": {"/etc": "text"}}}, r"'/etc' cannot be the name of an input"),
        ({"task": {"class": "rating", "inputs": {".": "text"}}}, r"'\.' cannot be the name of an input"),
    ],
)
def test_absurd_sizes_are_refused_before_anything_is_allocated(changes, message) -> None:
    with bounded(changes), pytest.raises(ConfigError, match=message):
        Plan(override({"model": {"class": "rnnsearch"}, **END}, changes))


NAMES = [name for kind in catalogue().values() for name in (*kind.members, *kind.aliases)]
PARAMETERS = sorted(
    {p for kind in catalogue().values() for m in kind.members.values() for p in m.parameters}
    | set(TRAINER.parameters)
    | set(CORPUS.parameters)
)
numbers = st.one_of(
    st.integers(), st.integers(-3, 70), st.floats(), st.sampled_from([0, 1, 2**20, 2**31, -1, 1e308, 10**30])
)
scalars = st.one_of(
    st.none(), st.booleans(), numbers, st.text(max_size=20), st.sampled_from([*NAMES, *map(str, SPELLINGS), "null"])
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from([*PARAMETERS, "class"]), st.text(max_size=8)), inner, max_size=3),
        st.builds(
            lambda name, rest: {**rest, "class": name},
            st.sampled_from(NAMES),
            st.dictionaries(st.sampled_from(PARAMETERS), inner, max_size=3),
        ),
    ),
    max_leaves=8,
)


def part(parameters: list[str], names: list[str]) -> st.SearchStrategy[Any]:
    """A section in which names are mostly right, so that values are reached."""
    arguments = st.dictionaries(st.sampled_from(parameters), values, max_size=3)
    return st.one_of(
        st.builds(lambda name, rest: {**rest, **({"class": name} if name else {})}, st.sampled_from(names), arguments),
        values,
    )


def models() -> st.SearchStrategy[Any]:
    """A model with arguments of its own."""
    members = catalogue()["models"].members
    return st.one_of([part([*member.parameters], [name]) for name, member in members.items()])


wild = st.fixed_dictionaries(
    {"model": models()},
    optional={
        "task": part([*catalogue()["tasks"].members["generation"].parameters], ["generation"]),
        "data": part([*CORPUS.parameters], [""]),
        "trainer": part([*TRAINER.parameters], [""]).map(
            lambda given: {"max_steps": 1, **given} if isinstance(given, dict) else given
        ),
        "other": values,
    },
)
PLAIN = {
    "int": st.one_of(st.integers(0, 13), st.sampled_from([16, 1000, 2**20])),
    "float": st.floats(0.0, 2.0),
    "bool": st.booleans(),
    "None": st.none(),
    "str": st.text(max_size=8),
    "Any": values,
}


def fitting(parameter: Parameter, levels: int = 2) -> st.SearchStrategy[Any]:
    """What an argument's annotation asks for, more or less."""
    words = re.findall(r"\w+", parameter.annotation)
    kinds = classes_in(parameter.annotation)[:1]
    found = [PLAIN[word] for word in words if word in PLAIN and not (kinds and word == "str")]
    found += [st.just(choice) for choice in re.findall(r"'(.*?)'", parameter.annotation)]
    found += [member_of(kind, levels) for kind in kinds]
    one = st.one_of(found) if found else values
    return st.lists(one, max_size=3) if words and words[0] in ("Sequence", "list", "tuple") else one


def member_of(kind: Kind, levels: int) -> st.SearchStrategy[Any]:
    """A registered class, with some of its arguments."""
    names = st.sampled_from([*kind.members])
    if not levels:
        return names
    inner = [
        st.fixed_dictionaries(
            {"class": st.just(name)},
            optional={p.name: fitting(p, levels - 1) for p in member.parameters.values()},
        )
        for name, member in kind.members.items()
    ]
    return st.one_of(names, st.deferred(lambda: st.one_of(inner)))


def changed(config: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A right configuration, a few of whose arguments are others, most of them of the right kind."""
    members = {"data": CORPUS, "trainer": TRAINER}
    for section, kind, usual in (("task", "tasks", "generation"), ("model", "models", "")):
        given = config.get(section, {})
        name = given if isinstance(given, str) else given.get("class", usual)
        members[section] = catalogue()[kind].members[name]
    changes = [
        st.tuples(st.just((section, p.name)), st.one_of(fitting(p), fitting(p), values))
        for section, member in members.items()
        for p in member.parameters.values()
    ]

    def apply(several: list[tuple[tuple[str, str], Any]]) -> dict[str, Any]:
        made = copy.deepcopy(config)
        for (section, name), value in several:
            part = made.get(section) or {}
            made[section] = {**({"class": part} if isinstance(part, str) else part), name: value}
        return made

    return st.lists(st.one_of(changes), max_size=3).map(apply)


configurations = st.one_of(*(changed(read_config(name)) for name in shipped()), wild)


def run_all(cases: Cases, check: Any) -> None:
    """Runs a hypothesis test again and again, each time with another seed."""
    limits = settings(
        max_examples=200 if SECONDS else 20,
        deadline=None,
        database=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    limited = limits(check)
    for number in itertools.takewhile(lambda _: cases.more(), itertools.count()):
        seed(number)(limited)()


def test_fuzzed_configurations(cases, trap) -> None:
    tried = cases("configurations", seconds=3.0, wanted=20_000)

    @given(configurations)
    def check(config: Any) -> None:
        with tried.case(config):
            try:
                check_spelling(config)
                plan = Plan(config)
                assert Plan(plan.plain).plain == plan.plain
                tried.outcomes["accepted"] += 1
            except ConfigError as error:
                note(str(error))
                tried.outcomes["refused"] += 1

    run_all(tried, check)
    assert tried.outcomes["refused"] > 0


def test_fuzzed_yaml(cases) -> None:
    tried = cases("texts as YAML", seconds=1.0, wanted=5_000)
    pieces = st.lists(
        st.sampled_from(
            [*"{}[]:,-&*!|>'\"#%@`? \n\t\\~<=", "a", "0x", "1e3", "<<", "---", "...", "!!int", "é", "\x07"]
        ),
        max_size=30,
    ).map("".join)

    @given(st.one_of(st.text(max_size=60), pieces))
    def check(text: str) -> None:
        with tried.case(text):
            try:
                json.dumps(parse_yaml(text, "the text"), allow_nan=True)
                tried.outcomes["read"] += 1
            except ConfigError as error:
                note(str(error))
                tried.outcomes["refused"] += 1

    run_all(tried, check)
    assert tried.outcomes["refused"] > 0
