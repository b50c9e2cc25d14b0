"""The utterances of the reproduction, its command at toy scale, and that online means online."""

import json
import math
import random
import sys
from itertools import accumulate, groupby

import pytest
import torch

from saccade.data.cell import Cell
from saccade.evaluation.latency import positions_read
from saccade.fields import Audio
from saccade.tasks import Attended, GeneratedText
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
        assert len(made.sound) == making.HOP * sum(durations)
        spoken = [place for place, name in enumerate(names) if name != "-"]
        wanted = [names[place] + ("+" if names[place - 1].startswith("v") else "") for place in spoken]
        assert made.letters.split() == wanted
        assert len(wanted) == phones
        ends = list(accumulate(durations))
        assert made.ends == [ends[place] for place in spoken]


def test_a_phone_is_its_chord_and_fades_into_its_neighbours(monkeypatch) -> None:
    monkeypatch.setattr(making, "NOISE", 0.0)
    monkeypatch.setattr(making, "DETUNED", 0.0)
    hertz = torch.full((making.PHONES, making.TONES), 100.0)
    hertz[2] = torch.tensor([500.0, 900.0, 1500.0])
    voice = making.Voice(hertz, torch.full_like(hertz, 0.2))
    silence, hop = making.SILENCE, making.HOP
    sound = making.speak([silence, 2, silence], [4, 5, 3], torch.Generator().manual_seed(3), voice)
    assert len(sound) == 12 * hop
    assert not sound[: 4 * hop - hop // 2].any()
    assert not sound[9 * hop + hop // 2 :].any()
    steady = sound[5 * hop : 5 * hop + 160]  # 40 ms: whole periods of the tones, which are 25 Hz apart or a multiple
    power = torch.fft.rfft(steady).abs().square()
    assert sorted((power.topk(3).indices * making.RATE / 160).tolist()) == [500.0, 900.0, 1500.0]
    assert float(power.topk(3).values.sum() / power.sum()) > 0.999
    fading = [float(sound[4 * hop + place :][: hop // 4].square().mean()) for place in (-hop // 2, 0, hop // 2)]
    assert fading == sorted(fading)


def test_what_so_many_frames_hear() -> None:
    """Sound after that point changes none of these frames, and sound right before it changes the last one."""
    field = Audio(rate=making.RATE, mels=8, window=making.WINDOW / making.RATE, hop=making.HOP / making.RATE)
    sound = torch.randn(900)

    def frames(sound):
        value = field.read(sound, Cell("memory", 1, "source"))
        return field.pad([field.encode(value)])["values"][0]

    for count in (1, 4, 7):
        until = making.heard_until(count)
        after, before = sound.clone(), sound.clone()
        after[until:] = 5.0
        before[until - 3 : until] += 50.0
        torch.testing.assert_close(frames(after)[:count], frames(sound)[:count], rtol=0, atol=0)
        assert not torch.allclose(frames(before)[count - 1], frames(sound)[count - 1])
    assert len(frames(sound)) == 1 + 900 // making.HOP


def said(text, tokens, weights) -> GeneratedText:
    return GeneratedText(text, 0.0, Attended(weights, [], []), tokens=tokens)


def test_what_was_heard_after_a_phone_is_measured_up_to_the_first_error() -> None:
    made = making.Utterance(torch.zeros(6 * 80), "v1 k9 v2", [2, 4, 6], ["v1", "v1", "k9", "k9", "v2", "v2"])
    weights = torch.zeros(4, 7)
    weights[[0, 1, 2, 3], [0, 5, 6, 6]] = 1.0
    weights[1, 4] = 0.5  # a chunk
    # A frame is 20 ms after the one before it and hears 12.5 ms more than that; nothing is heard after 120 ms.
    right = said("v1 k9 v2", [4, 5, 6], weights)
    assert speech.lags(made, right) == pytest.approx([12.5 - 40.0, 112.5 - 80.0, 0.0])
    assert speech.lags(made, said("v1 v2 v2", [4, 6, 6], weights)) == pytest.approx([-27.5])
    assert speech.lags(made, said("", [], weights[:1])) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    small = ["--steps", "2", "--utterances", "30", "--tests", "8"]
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
        score.offset.fill_(math.log(speech.THRESHOLD / (1 - speech.THRESHOLD)) + 0.6)
        score.gain.fill_(3.0)
    (test,) = speech.make_sets(7, 12)
    predictions = speech.heard(run, [each.sound for each in test])
    read = [positions_read(speech.looked(each)).tolist() for each in predictions]
    assert len({tuple(each) for each in read}) > 5  # it stops here and there
    found = speech.changed(run, test, predictions, random.Random(3))
    assert found["tried"] > 25
    assert found["letters"] == 0


def test_a_model_that_hears_more_than_it_says_is_found_out(folder) -> None:
    run = speech.saccade.load(folder / "runs" / "soft")
    disturb(run.model)
    (test,) = speech.make_sets(7, 12)
    claims = []
    for prediction in speech.heard(run, [each.sound for each in test]):

        def first(weights):
            claimed = torch.zeros_like(weights)
            claimed[:, 0] = 1.0
            return claimed

        claims.append(prediction.with_weights(first))
    assert speech.changed(run, test, claims, random.Random(3))["letters"] > 0


def test_the_claim_holds_in_the_committed_figures() -> None:
    found = json.loads((ROOT / "online-speech" / "results" / "results.json").read_text())
    for name in ONLINE:
        assert found[name]["accuracy"] >= found["soft"]["accuracy"] - 2
        assert found[name]["changed"]["letters"] == 0
        assert found[name]["changed"]["tried"] > 1000
        assert found[name]["behind"] < found["soft"]["behind"] / 2
