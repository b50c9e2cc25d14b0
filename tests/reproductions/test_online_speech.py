"""The utterances of the reproduction, its command at toy scale, and that online means online."""

import json
import random
import sys
from dataclasses import replace
from itertools import accumulate, groupby

import pytest
import torch

from saccade.evaluation.latency import positions_read
from saccade.tasks import Prediction
from tests.reproductions.scripts import ROOT, script

sys.path.append(str(ROOT / "online-speech"))
speech = script("online-speech")
import utterances as making  # noqa: E402 (its folder is on the path only now)

ONLINE = ("monotonic", "mocha")


def test_an_utterance() -> None:
    choices, noise = random.Random(3), torch.Generator().manual_seed(3)
    voice = making.make_voice(noise)
    for phones in (1, 2, 3, 5, 11) * 5:
        made = making.make_utterance(choices, noise, voice, phones)
        sounds = [(name, len(list(frames))) for name, frames in groupby(made.sounds)]
        names, durations = zip(*sounds, strict=True)
        assert names[0] == names[-1] == "-"
        assert all(making.SHORTEST <= duration <= making.LONGEST for duration in durations)
        assert len(made.frames.split()) == sum(durations)
        spoken = [place for place, name in enumerate(names) if name != "-"]
        wanted = [names[place] + ("+" if names[place - 1].startswith("v") else "") for place in spoken]
        assert made.letters.split() == wanted
        assert len(wanted) == phones
        ends = list(accumulate(durations))
        assert made.ends == [ends[place] for place in spoken]


def test_frames_are_of_their_phone_and_a_little_of_its_neighbour() -> None:
    noise = torch.Generator().manual_seed(3)
    voice = making.Voice(torch.eye(making.PHONES + 1), torch.zeros(1, making.PHONES + 1))
    frames = torch.stack([making.speak([7, 2], [3, 2], noise, voice) for _ in range(4000)]).mean(dim=0)
    blend = making.BLEND
    wanted = torch.zeros(5, making.PHONES + 1)
    wanted[:3, 7] = wanted[3:, 2] = 1.0
    wanted[2, 7] = wanted[3, 2] = 1 - blend
    wanted[2, 2] = wanted[3, 7] = blend
    torch.testing.assert_close(frames, wanted, rtol=0.0, atol=0.06)


def test_the_code_of_a_frame_is_the_nearest() -> None:
    frames, codebook = torch.randn(7, 3), torch.randn(5, 3)
    by_hand = [min(range(5), key=lambda code: float((frame - codebook[code]).square().sum())) for frame in frames]
    assert making.quantised(frames, codebook) == by_hand


def test_frames_read_after_a_phone_are_counted_up_to_the_first_error() -> None:
    made = making.Utterance("c1 c2 c3 c4 c5 c6", "v1 k9 v2", [2, 4, 6], ["v1", "v1", "k9", "k9", "v2", "v2"])
    weights = torch.zeros(4, 7)
    weights[[0, 1, 2, 3], [0, 5, 6, 6]] = 1.0  # the last one looks at the end, which is no frame
    weights[1, 4] = 0.5  # a chunk
    right = Prediction("v1 k9 v2", 0.0, tokens=[4, 5, 6], weights=weights)
    assert speech.lags(made, right) == [-1, 2, 0]
    assert speech.lags(made, Prediction("v1 v2 v2", 0.0, tokens=[4, 6, 6], weights=weights)) == [-1]
    assert speech.lags(made, Prediction("", 0.0, weights=weights[:1])) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    small = ["--steps", "2", "--utterances", "50", "--tests", "12"]
    assert speech.main(["--output", str(folder / "results"), "--runs", str(folder / "runs"), *small]) == 0
    return folder


def test_every_model_is_measured(folder) -> None:
    found = json.loads((folder / "results" / "results.json").read_text())
    assert set(speech.MODELS) < set(found)
    for name in speech.MODELS:
        assert found[name]["accuracy"] <= 100
        assert 0 <= found[name]["exact_match"] <= 100
        assert 0 < found[name]["read"] <= 100
        assert found[name]["changed"]["letters"] == 0
    assert found["soft"]["read"] == 100
    assert found["soft"]["changed"]["tried"] == 0
    rows = (folder / "results" / "table.md").read_text().splitlines()
    assert len(rows) == 2 + len(speech.MODELS)
    assert len({row.count("|") for row in rows}) == 1


def disturb(model) -> None:
    torch.manual_seed(5)
    with torch.no_grad():
        for weights in model.parameters():
            weights += 0.3 * torch.randn_like(weights)


@pytest.mark.parametrize("name", ONLINE)
def test_frames_after_the_last_one_read_change_no_letter_written_so_far(name, folder) -> None:
    run = speech.saccade.load(folder / "runs" / name)
    disturb(run.model)
    score = run.model.decoder.attention.score
    with torch.no_grad():  # after two updates it hardly ever stops: now it does
        score.offset.fill_(-0.5)
        score.gain.fill_(3.0)
    (test,) = speech.make_sets(7, 20)
    predictions = speech.heard(run, [each.frames for each in test])
    read = [positions_read(speech.looked(each)).tolist() for each in predictions]
    assert len({tuple(each) for each in read}) > 5  # it stops here and there
    found = speech.changed(run, test, predictions, random.Random(3))
    assert found["tried"] > 40
    assert found["letters"] == 0


def test_a_model_that_hears_more_than_it_says_is_found_out(folder) -> None:
    run = speech.saccade.load(folder / "runs" / "soft")
    disturb(run.model)
    (test,) = speech.make_sets(7, 20)
    claims = []
    for prediction in speech.heard(run, [each.frames for each in test]):
        weights = torch.zeros_like(prediction.weights)
        weights[:, 0] = 1.0
        claims.append(replace(prediction, weights=weights))
    assert speech.changed(run, test, claims, random.Random(3))["letters"] > 0


def test_the_claim_holds_in_the_committed_figures() -> None:
    found = json.loads((ROOT / "online-speech" / "results" / "results.json").read_text())
    for name in ONLINE:
        assert found[name]["accuracy"] >= found["soft"]["accuracy"] - 2
        assert found[name]["changed"]["letters"] == 0
        assert found[name]["changed"]["tried"] > 1000
        assert found[name]["behind"] < found["soft"]["behind"] / 2
