"""Every file of a run, damaged in many ways, with and without checksums that fit: a clear error or a working model."""

import itertools
import json
import os
import random
import shutil
import warnings
from pathlib import Path

import pytest

import saccade
from saccade.artifacts import CHECKSUMS, pack_tensors, read_tensors, seal
from saccade.training import Checkpoints
from tests.hostile.counting import bounded
from tests.training.run_toy import train

LETTERS = random.Random(5)
PAIRS = [(word, word[::-1]) for word in ("".join(LETTERS.choices("abcdefg", k=4)) for _ in range(20))]
TOY = {"max_steps": 3, "validate_every": 1, "average": "ema", "schedule": "plateau", "device": "cpu"}
KINDS = ("finished", "interrupted", "labels")


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """One small run, after two steps; copies of it are damaged."""
    folder = tmp_path_factory.mktemp("made") / "run"
    pairs = folder.with_name("pairs.tsv")
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    saccade.train(
        task={
            "source": {"class": "text", "tokeniser": "bpe"},
            "target": {"class": "text", "tokeniser": "unigram"},
            "metrics": ["exact_match"],
        },
        model={"class": "rnnsearch", "embedding_dim": 7, "hidden_dim": 11},
        data={"train": str(pairs), "valid": str(pairs)},
        trainer={"max_steps": 2, "batch_tokens": 130, "validate_examples": 0, "average": "ema"},
        output=folder,
    )
    return folder


@pytest.fixture(params=KINDS)
def made(request, finished, labeller, tmp_path):
    """The run; the same before its training has ended; and a run with labels."""
    if request.param == "labels":
        return Path(labeller)
    if request.param == "interrupted":
        folder = tmp_path / "interrupted"
        shutil.copytree(finished, folder)
        for name in ("model.safetensors", CHECKSUMS):
            (folder / name).unlink()
        return folder
    return finished


def flip(data, chance):
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def flip_early(data, chance):
    """In the first bytes, where lengths and headers are."""
    return flip(data[:64], chance) + data[64:]


def truncate(data, chance):
    return data[: chance.randrange(len(data))]


def zero(data, chance):
    place = chance.randrange(len(data))
    return data[:place] + b"\0" * 64 + data[place + 64 :]


def repeat(data, chance):
    place = chance.randrange(len(data))
    return data[:place] + data[max(0, place - 100) :]


def change_json(data, chance):
    """Deletes or replaces one value anywhere in a JSON file or header; other files get a line moved."""
    head, body, tail = b"", data, b""
    if data[8:9] == b"{":  # safetensors
        length = int.from_bytes(data[:8], "little")
        head, body, tail = data[:8], data[8 : 8 + length], data[8 + length :]
    try:
        value = json.loads(body)
    except ValueError:
        lines = data.splitlines(keepends=True)
        chance.shuffle(lines)
        return b"".join(lines)
    place, key = value, None
    while isinstance(place, dict | list) and place:
        parent, key = place, chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        place = parent[key]
        if chance.random() < 0.3:
            break
    if key is None:
        return b"null"
    if chance.random() < 0.3:
        del parent[key]
    else:
        parent[key] = chance.choice([None, True, -1, 0, 7, 10**18, 1e308, float("nan"), "", "x", "../x", [], {}, [[]]])
    changed = json.dumps(value).encode()
    return (len(changed).to_bytes(8, "little") if head else b"") + changed + tail


CHANGES = (flip, flip_early, truncate, zero, repeat, change_json, change_json)


def damages(folder, names, seed):
    """Endless (file, change, whether the checksums are made to fit, random numbers)."""
    chance = random.Random(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and names(path.relative_to(folder).as_posix()))
    for number in itertools.count():
        file = files[number % len(files)].relative_to(folder)
        yield file, chance.choice(CHANGES), chance.random() < 0.7, random.Random(chance.random())


def reseal(folder):
    for sums in sorted(folder.rglob(CHECKSUMS), reverse=True, key=lambda path: len(path.parts)):  # inner ones first
        listed = [path.relative_to(sums.parent).as_posix() for path in sums.parent.rglob("*") if path.is_file()]
        apart = (CHECKSUMS, "README.md", "provenance.json", "metrics.jsonl")
        seal(sums.parent, [name for name in listed if name not in apart and not name.startswith("checkpoints/")])


def damage(made, target, file, change, fitting, chance):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(made, target)
    (target / file).write_bytes(change((target / file).read_bytes(), chance))
    if fitting and file.name != CHECKSUMS:
        reseal(target)
    return f"{file} after {change.__name__}{', sealed again' * fitting}"


def refused_or_used(work, what):
    """Runs `work`, which may only succeed or give a clear error."""
    outcome = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()
    except (ValueError, OSError) as error:
        outcome = error
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    if outcome is not None:
        assert str(outcome).strip(), f"{what}: an error without a message"
        assert len(str(outcome)) < 2000, f"{what}: {outcome}"
    return outcome


def test_a_damaged_run_is_refused_or_works(request, made, tmp_path, cases):
    kind, folder = request.node.callspec.params["made"], tmp_path / "run"

    def work():
        saccade.load(folder).predict(["abcx"])

    def read(name):
        return not name.startswith("data/") and (kind == "interrupted" or not name.startswith("checkpoints/"))

    shutil.copytree(made, folder)
    reseal(folder)
    refused_or_used(work, "undamaged")
    tried = cases(f"damaged runs ({kind})", seconds=2.0, most=20, wanted=700)
    found = damages(made, read, KINDS.index(kind))
    while tried.more():
        what = damage(made, folder, *next(found))
        with tried.case(what):
            outcome = refused_or_used(work, what)
        tried.outcomes["used" if outcome is None else "refused"] += 1
    assert min(tried.outcomes["used"], tried.outcomes["refused"]) > 0  # files that `load` does not read do no harm


def test_a_damaged_checkpoint_is_passed_over(tmp_path, cases):
    """A training always goes on: from the other checkpoint, if need be, and with the rest of its log."""
    made, target = tmp_path / "made", tmp_path / "run"
    train(made, **{**TOY, "max_steps": 2})
    tried, found = cases("resumes of damaged trainings", most=10, wanted=300), damages(made, _not_the_model, 2)
    while tried.more():
        what = damage(made, target, *next(found))
        with tried.case(what):
            outcome = refused_or_used(lambda: train(target, resume=True, **TOY), what)
        assert outcome is None, f"{what} is no reason to stop: {outcome}"
        assert Checkpoints(target / "checkpoints").latest().step == 3
        tried.outcomes["resumed"] += 1


def _not_the_model(name):
    return name != "model.safetensors"


def test_damaged_examples_are_read_again(finished, tmp_path, cases):
    """What a training stored of its data is never used unless it is what was stored."""
    target = tmp_path / "run"

    def work():
        saccade.train(resume=target, overrides={"trainer.max_steps": 3})

    shutil.copytree(finished, target)
    work()
    wanted = (target / "model.safetensors").read_bytes()
    tried = cases("resumes with damaged examples", most=2, least=2, wanted=100)
    for file, change, _, chance in damages(finished, lambda name: name.startswith("data/"), 7):
        if not tried.more():
            break
        what = damage(finished, target, file, change, False, chance)
        with tried.case(what):
            outcome = refused_or_used(work, what)
        assert outcome is None, f"{what}: {outcome}"
        assert (target / "model.safetensors").read_bytes() == wanted, f"{what} made a difference"
        tried.outcomes["equal"] += 1


FILES = ["model.safetensors", "task/source/tokeniser.json", "task/lengths.json", "task/label/labels.json"]
FILES += ["config.yaml", CHECKSUMS, f"task/{CHECKSUMS}"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in FILES for kind in ("pipe", "device")]
    + [(name, kind) for name in FILES[:2] for kind in ("missing", "folder", "broken link")],
)
def test_what_is_not_an_ordinary_file_is_refused(finished, labeller, tmp_path, name, kind):
    run = tmp_path / "run"
    shutil.copytree(labeller if "label" in name else finished, run)
    if name != CHECKSUMS:
        (run / CHECKSUMS).unlink()  # which would notice
    path = run / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to(os.path.join(os.sep, "dev", "zero"))
    elif kind == "broken link":
        path.symlink_to("nowhere")
    with bounded(f"{name} as {kind}"):
        outcome = refused_or_used(lambda: saccade.load(run), f"{name} as {kind}")
    if path.name in (CHECKSUMS, "model.safetensors"):
        return  # such a run counts as one whose training has not ended, and may be used as far as it is
    assert outcome is not None
    assert str(run) in str(outcome)


SUMS = ["{}", "[]", '{"../../x": "0"}', '{"config.yaml": 7}', "null", "[" * 1000]


@pytest.mark.parametrize(("folder", "content"), [*((".", each) for each in SUMS), ("task", "{}")])
def test_hostile_checksums_verify_nothing(finished, tmp_path, folder, content):
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / CHECKSUMS).unlink()
    (tmp_path / "run" / folder / CHECKSUMS).write_text(content)
    with bounded(content):
        outcome = refused_or_used(lambda: saccade.load(tmp_path / "run"), content[:40])
    assert "checksums.json is damaged" in str(outcome)


STATES = ["[]", "null", "{}", '{"position": []}', '{"position": {"best_step": 1e5}}', '{"position": {"best_step": -1}}']


@pytest.mark.parametrize("state", STATES)
def test_hostile_states_of_checkpoints(finished, tmp_path, state):
    """With checksums that fit: the checkpoint is left alone, or its last weights are used."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "model.safetensors").unlink()
    for path in (run / "checkpoints").glob("step-*/state.json"):
        path.write_text(state)
    reseal(run)
    (run / CHECKSUMS).unlink()
    outcome = refused_or_used(lambda: saccade.load(run), state)
    assert (outcome is None) == (state == STATES[-1])
    if outcome is not None:
        assert "none of its checkpoints can be used" in str(outcome)


def test_a_folder_that_is_a_link_is_not_searched(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "task")
    (tmp_path / "run" / "task").symlink_to(os.sep)
    with bounded("a link to everything"):
        outcome = refused_or_used(lambda: saccade.load(tmp_path / "run"), "a link")
    assert "task is a link, not a folder" in str(outcome)


@pytest.mark.parametrize(("change", "message"), [("nan", "contains NaN or infinite values"), ("half", "types differ")])
def test_weights_of_another_kind_start_no_training(finished, tmp_path, change, message):
    shutil.copytree(finished, tmp_path / "other")
    (tmp_path / "other" / CHECKSUMS).unlink()
    weights = read_tensors(tmp_path / "other" / "model.safetensors")
    changed = {name: tensor.half() if change == "half" else tensor * float("nan") for name, tensor in weights.items()}
    (tmp_path / "other" / "model.safetensors").write_bytes(pack_tensors(changed))
    with pytest.raises((OSError, ValueError), match=message):
        saccade.train(finished / "config.yaml", init_from=tmp_path / "other", output=tmp_path / "new")
