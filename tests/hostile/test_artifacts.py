"""Every file of a run, damaged in many ways, with and without checksums that fit: a clear error or a working model.

A bounded number is tried by default; with SACCADE_FUZZ_SECONDS in the environment, as many as fit into that time.
"""

import itertools
import json
import os
import random
import resource
import shutil
import time
import warnings

import pytest

import saccade
from saccade.artifacts import CHECKSUMS, seal
from saccade.training import Checkpoints
from tests.hostile.counting import report
from tests.training.run_toy import train

SECONDS = float(os.environ.get("SACCADE_FUZZ_SECONDS", "0"))
LOADS, RESUMES, ENOUGH = 60, 15, 6.0
SLOW = 5.0
"""Seconds of computing, which a busy machine changes less than those of the clock."""
MUCH = 500 * 1024
"""KB of memory beyond what the process had."""
LETTERS = random.Random(5)
PAIRS = [(word, word[::-1]) for word in ("".join(LETTERS.choices("abcdefg", k=4)) for _ in range(20))]
TOY = {"max_steps": 3, "validate_every": 1, "average": "ema", "schedule": "plateau", "device": "cpu"}


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """One small run, after two steps; copies of it are damaged."""
    folder = tmp_path_factory.mktemp("made") / "run"
    saccade.train(
        task={
            "source": {"class": "text", "tokeniser": "bpe"},
            "target": {"class": "text", "tokeniser": "char"},
            "metrics": ["exact_match"],
        },
        model={"class": "rnnsearch", "embedding_dim": 7, "hidden_dim": 11},
        data={"train": PAIRS, "valid": PAIRS[:5]},
        trainer={"max_steps": 2, "batch_tokens": 130, "validate_examples": 0},
        output=folder,
    )
    return folder


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


def attempts(made, names, seed, default):
    """So many, or fewer if they take long; with a time limit as many as fit into it."""
    began, clock = time.process_time(), time.monotonic()
    for number, found in enumerate(damages(made, names, seed)):
        if SECONDS and time.monotonic() - clock > SECONDS:
            return
        if not SECONDS and (number >= default or (number >= 10 and time.process_time() - began > ENOUGH)):
            return
        yield found


def refused_or_used(work, what):
    """Runs `work`, which may only succeed or give a clear error, in reasonable time and memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()
        outcome = None
    except (ValueError, OSError) as error:
        outcome = error
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    assert time.process_time() - began < SLOW, f"{what} took {time.process_time() - began:.1f} s"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MUCH, f"{what} took too much memory"
    if outcome is not None:
        assert str(outcome).strip(), f"{what}: an error without a message"
        assert len(str(outcome)) < 2000, f"{what}: {outcome}"
    return outcome


def test_a_damaged_run_is_refused_or_works(made, tmp_path):
    def work():
        saccade.load(tmp_path / "run").predict(["abcx"])

    shutil.copytree(made, tmp_path / "run")
    reseal(tmp_path / "run")
    work()  # before any damage
    outcomes = []
    for found in attempts(made, lambda name: not name.startswith("checkpoints/"), 1, LOADS):
        what = damage(made, tmp_path / "run", *found)
        outcomes.append(refused_or_used(work, what))
    refused = [outcome for outcome in outcomes if outcome is not None]
    report("damaged runs", {"refused": len(refused), "used": len(outcomes) - len(refused)})
    assert len(refused) > len(outcomes) / 5
    assert len(refused) < len(outcomes)  # files that `load` does not read do no harm


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    """A training always goes on: from the other checkpoint, if need be, and with the rest of its log."""
    made, target = tmp_path / "made", tmp_path / "run"
    train(made, **{**TOY, "max_steps": 2})
    for found in attempts(made, lambda name: name != "model.safetensors", 2, RESUMES):
        what = damage(made, target, *found)
        outcome = refused_or_used(lambda: train(target, resume=True, **TOY), what)
        assert outcome is None, f"{what} is no reason to stop: {outcome}"
        assert Checkpoints(target / "checkpoints").latest().step == 3


@pytest.mark.parametrize("name", ["model.safetensors", "task/source/tokeniser.json", "config.yaml", CHECKSUMS])
@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "device", "broken link"])
def test_what_is_not_an_ordinary_file_is_refused(made, tmp_path, name, kind):
    shutil.copytree(made, tmp_path / "run")
    path = tmp_path / "run" / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to(os.path.join(os.sep, "dev", "zero"))
    elif kind == "broken link":
        path.symlink_to("nowhere")
    outcome = refused_or_used(lambda: saccade.load(tmp_path / "run"), f"{name} as {kind}")
    if name in (CHECKSUMS, "model.safetensors"):
        return  # such a run counts as one whose training has not ended, and may be used as far as it is
    assert outcome is not None
    assert str(tmp_path / "run") in str(outcome)


@pytest.mark.parametrize("content", ["{}", "[]", '{"../../x": "0"}', '{"config.yaml": 7}', "null", "[" * 100_000])
def test_hostile_checksums_verify_nothing(made, tmp_path, content):
    shutil.copytree(made, tmp_path / "run")
    (tmp_path / "run" / CHECKSUMS).write_text(content)
    outcome = refused_or_used(lambda: saccade.load(tmp_path / "run"), content[:40])
    assert "checksums.json is damaged" in str(outcome)
