"""The field of recordings."""

import copy
import csv
import json
import math
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from saccade.artifacts import ArtifactError
from saccade.data.cell import Cell
from saccade.data.corpus import Corpus
from saccade.data.errors import BadRow, DataError
from saccade.data.marks import mark
from saccade.data.storage import store
from saccade.fields import Audio, fields
from saccade.fields.audio_statistics import SpeakerTemplate, Statistics
from saccade.fields.cache import TensorCache
from saccade.interpretation.explorer import SoundAxis
from saccade.kernels.log_mel import log_mel
from tests.data.sounds import floats, pcm, tone

LOUD = tone(440.0, 0.3)


def cell(folder: Path = Path()) -> Cell:
    return Cell("table.csv", 7, "source", folder)


def encoded(field: Audio, *sounds: np.ndarray) -> list:
    return [field.encode(field.read(sound, cell())) for sound in sounds]


def test_a_path_starts_from_the_folder_of_the_table(tmp_path) -> None:
    (tmp_path / "a.wav").write_bytes(pcm(LOUD, rate=16000))
    field = Audio()
    value = field.read("a.wav", cell(tmp_path))
    wanted = {"name": "a.wav", "path": str(tmp_path / "a.wav"), "bytes": None, "samples": 2400, "rate": 16000}
    assert value == wanted
    assert field.encode(value) == {"path": str(tmp_path / "a.wav"), "bytes": None, "frames": 16}
    assert field.show(value) == "a.wav"
    assert field.read(str(tmp_path / "a.wav"), cell())["path"] == str(tmp_path / "a.wav")


def test_everything_that_can_be_a_recording_in_memory_gives_the_same_features() -> None:
    field, sound = Audio(), LOUD.astype(np.float32)
    content = floats(sound)
    given = [
        content,
        bytearray(content),
        sound,
        torch.tensor(sound),
        np.stack([sound, sound]),
        {"array": sound, "sampling_rate": 8000, "path": "a.wav"},
        {"bytes": content, "path": "a.wav"},
        {"bytes": content},
    ]
    found = field.pad([field.encode(field.read(raw, cell())) for raw in given])
    assert found["mask"].all()
    for each in found["values"]:
        torch.testing.assert_close(each, found["values"][0])
    assert [field.show(field.read(raw, cell())) for raw in given[4:]] == [
        "recording 7",
        "a.wav",
        "a.wav",
        "recording 7",
    ]


def test_features_are_those_of_the_resampled_sound_less_mean_over_deviation() -> None:
    field = Audio(mels=20)
    field.corpus = Statistics(torch.randn(20), torch.rand(20) + 0.5)
    value = field.read({"array": tone(440.0, 0.3, rate=16000), "sampling_rate": 16000}, cell())
    found = field.pad([field.encode(value)])["values"][0]
    wanted = log_mel(torch.tensor(LOUD).float(), rate=8000, mels=20, window=200, hop=80)
    loud = wanted > -8.0  # both are noise far from the tone
    torch.testing.assert_close(
        (found * field.corpus.deviation + field.corpus.mean)[3:-3][loud[3:-3]],
        wanted[3:-3][loud[3:-3]],
        rtol=0,
        atol=0.05,
    )


def test_batches_are_padded_with_zeros_and_masked() -> None:
    field = Audio()
    rows = encoded(field, LOUD, LOUD[:800], LOUD[:1])
    found = field.pad(rows)
    assert [field.size(row) for row in rows] == found["mask"].sum(dim=1).tolist() == [31, 11, 1]
    assert found["values"].shape == (3, 31, 40)
    assert found["values"].dtype == torch.float32
    assert not found["values"][~found["mask"]].any()
    for row, alone in enumerate(rows):
        torch.testing.assert_close(field.pad([alone])["values"][0], found["values"][row][found["mask"][row]])


def test_mean_and_deviation_of_each_band_are_learned(tmp_path) -> None:
    field = Audio(mels=10)
    sounds = [0.1 * np.random.default_rng(n).standard_normal(900 + 100 * n) for n in range(7)]
    values = [field.read(sound, cell()) for sound in sounds]
    raw = torch.cat([log_mel(torch.tensor(s).float(), rate=8000, mels=10, window=200, hop=80) for s in sounds])
    field.fit(iter(values))
    torch.testing.assert_close(field.corpus.mean, raw.mean(dim=0), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(field.corpus.deviation, raw.std(dim=0, correction=0), rtol=1e-4, atol=1e-4)
    field.save(tmp_path)
    other = Audio(mels=10)
    other.load(tmp_path)
    rows = [field.encode(value) for value in values]
    torch.testing.assert_close(other.pad(rows), field.pad(rows), rtol=0, atol=0)
    assert field.sizes() == {"dim": 10}
    assert field.learned() == "10 mel bands at 8 kHz"


def test_fitting_reads_a_bounded_sample(monkeypatch) -> None:
    monkeypatch.setattr("saccade.fields.audio.SAMPLED", 5)
    field, read = Audio(), []
    values = [field.read(LOUD[: 100 + n], cell()) for n in range(60)]
    spied = field._compute
    monkeypatch.setattr(field, "_compute", lambda row: read.append(row) or spied(row))
    field.fit(values)
    assert len(read) == 5
    assert any(row["bytes"] == value["bytes"] for row in read for value in values[30:])  # not merely the first


@pytest.mark.parametrize(
    "content",
    [
        "[1]",
        '{"mean": [0, 0], "deviation": [1]}',
        '{"mean": [0, 0], "deviation": [1, 0]}',
        '{"mean": [0, NaN], "deviation": [1, 1]}',
        '{"mean": [0, "a"], "deviation": [1, 1]}',
        "{",
    ],
)
def test_damaged_files_are_refused(content, tmp_path) -> None:
    (tmp_path / "audio.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"audio\.json"):
        Audio(mels=2, rate=1000).load(tmp_path)


def test_long_recordings_are_left_out_and_can_be_clipped() -> None:
    field = Audio(max_seconds=0.2)
    long, short = encoded(field, LOUD, LOUD[:1600])
    assert field.left_out(long) == "longer than max_seconds=0.2"
    assert field.left_out(short) is None
    clipped = field.clip(long, 12)
    assert field.size(clipped) == 12
    whole = field.pad([long])["values"][0]
    torch.testing.assert_close(field.pad([clipped])["values"][0], whole[:12])
    assert field.clip(short, 100) == short


def test_clipping_a_resampled_recording_leaves_what_is_before_unchanged() -> None:
    field = Audio()
    row = field.encode(field.read({"array": tone(300.0, 2.0, rate=44100), "sampling_rate": 44100}, cell()))
    torch.testing.assert_close(field.pad([field.clip(row, 50)])["values"][0], field.pad([row])["values"][0][:50])


AUGMENTED = {"gain": 6.0, "time_masks": 1, "time_width": 6, "mel_masks": 1, "mel_width": 5}


def test_augmentation_follows_from_the_generator_alone_and_needs_one() -> None:
    plain, field = Audio(), Audio(**AUGMENTED)
    rows = encoded(field, LOUD, LOUD[:1500])

    def drawn(seed):
        return field.pad(rows, torch.Generator().manual_seed(seed))["values"]

    torch.testing.assert_close(field.pad(rows)["values"], plain.pad(rows)["values"], rtol=0, atol=0)
    torch.testing.assert_close(drawn(1), drawn(1), rtol=0, atol=0)
    assert not torch.equal(drawn(1), drawn(2))
    torch.testing.assert_close(plain.pad(rows, torch.Generator())["values"], plain.pad(rows)["values"], rtol=0, atol=0)
    torch.testing.assert_close(field.pad(rows)["values"], plain.pad(rows)["values"], rtol=0, atol=0)  # nothing remains


def test_gain_is_what_a_louder_sound_would_give() -> None:
    field, sound = Audio(gain=10.0), 0.1 * np.random.default_rng(0).standard_normal(2400)
    field.corpus = field.corpus._replace(deviation=torch.rand(40) + 0.5)
    decibels = 10.0 * (2 * float(torch.rand((), generator=torch.Generator().manual_seed(3))) - 1)
    row, louder = encoded(field, sound, sound * 10 ** (decibels / 20))
    found = field.pad([row], torch.Generator().manual_seed(3))["values"]
    torch.testing.assert_close(found, field.pad([louder])["values"], rtol=1e-3, atol=1e-3)
    assert abs(decibels) > 1.0


def test_masks_blank_neighbouring_frames_and_bands() -> None:
    field = Audio(time_masks=1, time_width=6, mel_masks=1, mel_width=5)
    rows = encoded(field, *[LOUD] * 40)
    plain, masked = field.pad(rows)["values"], field.pad(rows, torch.Generator().manual_seed(0))["values"]
    widths = set()
    for before, after in zip(plain, masked, strict=True):
        blank = (after == 0.0) & (before != 0.0)
        times, bands = blank.all(dim=1).nonzero()[:, 0], blank.all(dim=0).nonzero()[:, 0]
        torch.testing.assert_close(after[~blank], before[~blank], rtol=0, atol=0)
        assert int(blank.sum()) == len(times) * 40 + len(bands) * (31 - len(times))
        for place, most in ((times, 6), (bands, 5)):
            assert len(place) <= most
            assert place.tolist() == list(range(int(place[0]), int(place[-1]) + 1)) if len(place) else True
        widths.add((len(times), len(bands)))
    assert len(widths) > 8


def test_arrow_keeps_rows_as_they_were(tmp_path) -> None:
    (tmp_path / "a.wav").write_bytes(pcm(LOUD))
    field = Audio()
    values = [field.read("a.wav", cell(tmp_path)), field.read(LOUD, cell()), field.read(pcm(LOUD), cell())]
    rows = [{"source": field.encode(value), "value": value} for value in values]
    stored = store(rows, tmp_path / "rows.arrow")
    assert list(stored) == rows
    assert [stored[n] for n in range(3)] == rows
    assert len({mark({"source": value}, ["source"]) for value in values}) == 3


def test_the_recordings_of_a_dataset_come_undecoded(tmp_path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"sound": [{"bytes": pcm(LOUD), "path": "a.wav"}, {"bytes": pcm(LOUD / 2), "path": None}]}
    datasets.Dataset.from_dict(rows).cast_column("sound", datasets.Audio()).save_to_disk(str(tmp_path / "set"))
    found = list(Corpus(columns={"source": "sound"}).read(f"hf:{tmp_path / 'set'}", {"source": Audio()}))
    assert [example["source"]["bytes"] for example in found] == [row["bytes"] for row in rows["sound"]]
    assert [example["source"]["name"] for example in found] == ["a.wav", "recording 2"]


def test_a_copy_has_its_own_cache_and_the_same_features() -> None:
    field = Audio()
    rows = encoded(field, LOUD)
    wanted = field.pad(rows)
    for other in (copy.deepcopy(field), pickle.loads(pickle.dumps(field))):
        assert other._cache.bytes == 0
        torch.testing.assert_close(other.pad(rows), wanted, rtol=0, atol=0)


def test_features_are_computed_once(monkeypatch, tmp_path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(pcm(LOUD))
    field = Audio()
    rows = [field.encode(field.read(str(path), cell()))]
    first = field.pad(rows)["values"]
    monkeypatch.setattr(field, "_compute", lambda row, speed: pytest.fail("computed again"))
    torch.testing.assert_close(field.pad(rows)["values"], first, rtol=0, atol=0)
    monkeypatch.undo()
    path.write_bytes(pcm(np.concatenate([LOUD, LOUD]) / 2))  # another sound under the same name
    assert not torch.equal(field.pad(rows)["values"], first)


def test_the_cache_is_bounded_and_keeps_what_was_used_last() -> None:
    cache = TensorCache(100)
    tensors = {key: torch.full((10,), float(key)) for key in range(4)}  # 40 bytes each
    cache.put(0, tensors[0])
    cache.put(1, tensors[1])
    assert cache.get(0) is tensors[0]
    cache.put(2, tensors[2])
    assert cache.get(1) is None
    assert cache.get(0) is tensors[0]
    assert cache.bytes == 80
    cache.put(3, torch.zeros(1000))
    assert cache.get(3) is None
    several = [threading.Thread(target=lambda: [cache.put(n, torch.zeros(10)) for n in range(500)]) for _ in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert cache.bytes == 80


def test_the_explorer_draws_and_plays_it() -> None:
    field = Audio()
    value = field.read(LOUD, cell())
    axis = field.axis(value, 8)
    assert isinstance(axis, SoundAxis)
    assert len(axis) == 8
    assert axis.seconds == pytest.approx(0.3)
    assert axis.names == field.position_names(value, 8)
    assert axis.names[:2] == ["0.00 s", "0.04 s"]
    assert len(field.axis(value)) == len(field.position_names(value)) == 31
    assert axis.wav is not None
    assert int.from_bytes(axis.wav[24:28], "little") == 8000
    assert field.unknown(value) == []


def test_a_long_recording_is_drawn_without_its_sound(monkeypatch) -> None:
    monkeypatch.setattr("saccade.fields.audio.PLAYED", 0.1)
    field = Audio()
    assert field.axis(field.read(LOUD, cell())).wav is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"rate": 10}, "rate must be"),
        ({"mels": 0}, "mels"),
        ({"mels": 200}, "mels=200 is too many"),
        ({"hop": 0.03}, "hop and window"),
        ({"window": 2.0}, "hop and window"),
        ({"max_seconds": 0.0}, "max_seconds"),
        ({"max_seconds": math.nan}, "max_seconds"),
        ({"gain": -1.0}, "gain"),
        ({"gain": 6.0, "normalise": "recording"}, "gain=6.0 has no effect with normalise='recording'"),
        ({"time_masks": -1}, "time_masks"),
        ({"mel_width": 0}, "mel_width"),
        ({"features": "mel"}, "'log_mel' or 'mfcc'"),
        ({"features": "mfcc", "mels": 20, "coefficients": 21}, "coefficients=21 cannot be more than mels=20"),
        ({"normalise": "all"}, "'corpus', 'speaker' or 'recording'"),
        ({"speaker": "{}/*"}, "is for normalise='speaker'"),
        ({"normalise": "speaker", "speaker": "*"}, "mark the speaker in a path by {}"),
        ({"normalise": "speaker", "speaker": "*****{}"}, "up to 4"),
        ({"speeds": []}, "speeds"),
        ({"speeds": [1.0, 3.0]}, "speeds"),
    ],
)
def test_arguments_that_make_no_sense(arguments, problem) -> None:
    with pytest.raises(ValueError, match=problem):
        fields.create("audio", **arguments)


BAD = {
    "gone.wav": (None, "it does not exist. Check the path; relative ones start from the table's folder."),
    "short.wav": (
        pcm(LOUD)[:100],
        "it is truncated: it announces 4,800 bytes of sound but contains 56. Copy it again.",
    ),
    "empty.wav": (b"", "it is an empty file. Record or copy it again."),
    "text.wav": (b"hello there", "it is not a recording (it begins with b'hello th'). Give a WAV, FLAC or OGG file."),
    "silent.wav": (pcm(LOUD[:0]), "it contains no sound (0 samples). Record it again, or leave it out."),
    "nan.wav": (
        floats(np.array([0.1, math.nan])),
        "it contains samples that are NaN or infinite, or far too large. Record or convert it again.",
    ),
}


def manifest(folder: Path, names) -> str:
    for name in names:
        content = BAD[name][0] if name in BAD else pcm(LOUD)
        if content is not None:
            (folder / name).write_bytes(content)
    with open(folder / "table.csv", "w", newline="") as file:
        csv.writer(file).writerows([name] for name in names)
    return str(folder / "table.csv")


LEFT_OUT = " --data.bad_rows skip leaves such rows out."


@pytest.mark.parametrize("name", BAD)
def test_a_bad_recording_is_named_with_its_line(name, tmp_path) -> None:
    table = manifest(tmp_path, ["good.wav", name])
    with pytest.raises(BadRow) as caught:
        list(Corpus().read(table, {"source": Audio()}))
    assert str(caught.value) == f"{table}, line 2: the source {name!r} cannot be used: {BAD[name][1]}{LEFT_OUT}"


def test_bad_recordings_are_skipped_and_counted(tmp_path) -> None:
    table = manifest(tmp_path, ["good.wav", *BAD, "fine.wav"])
    examples = Corpus(bad_rows="skip").read(table, {"source": Audio()})
    assert [example["source"]["name"] for example in examples] == ["good.wav", "fine.wav"]
    assert examples.skipped.count == len(BAD)
    assert [row.line for row in examples.skipped.first] == list(range(2, 2 + len(BAD)))


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("", "the source is empty"),
        (None, "the source is empty"),
        (3, "is not a recording but 3"),
        (["a.wav"], "is not a recording but of length 1"),
        ({"sampling_rate": 8000}, "a dictionary without a recording"),
        ({"array": LOUD, "sampling_rate": 3}, "sample rate is 3"),
        (np.zeros((2, 2, 2)), "shape"),
        (np.zeros(0), "no sound"),
        (np.array([math.inf]), "NaN or infinite"),
    ],
)
def test_cells_that_hold_no_recording(raw, problem) -> None:
    with pytest.raises(BadRow, match=problem) as caught:
        Audio().read(raw, cell())
    assert str(caught.value).startswith("table.csv, line 7: ")


def test_a_recording_that_vanishes_or_shrinks_while_training_is_named(tmp_path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(pcm(LOUD))
    field = Audio()
    rows = [field.encode(field.read(str(path), cell()))]
    path.write_bytes(pcm(LOUD[:800]))
    with pytest.raises(DataError, match=r"a\.wav has 11 frames, and had 31 when the data was read"):
        field.pad(rows)
    path.unlink()
    with pytest.raises(DataError, match=r"a\.wav cannot be used: it does not exist"):
        field.pad(rows)


def test_a_run_cannot_make_the_field_open_anything(tmp_path, monkeypatch) -> None:
    field = Audio(mels=3, rate=1000)
    field.save(tmp_path)
    content = json.loads((tmp_path / "audio.json").read_text())
    (tmp_path / "audio.json").write_text(json.dumps({**content, "path": "/dev/zero", "name": "x"}))
    monkeypatch.setattr("saccade.fields.audio.read_samples", lambda *a: pytest.fail("opened"))
    monkeypatch.setattr("saccade.fields.audio.read_header", lambda *a: pytest.fail("opened"))
    field.load(tmp_path)


def test_mfcc_are_the_cosine_transform_of_the_bands() -> None:
    field, sound = Audio(features="mfcc", mels=23, coefficients=7), torch.randn(900) / 8
    found = field.pad(encoded(field, sound.numpy()))["values"][0]
    decibels = log_mel(sound, rate=8000, mels=23, window=200, hop=80) * 10 / math.log(10)
    for number in range(7):
        wave = torch.tensor([math.cos(math.pi * number * (2 * band + 1) / 46) for band in range(23)])
        wanted = decibels @ wave * math.sqrt((2 - (number == 0)) / 23)
        torch.testing.assert_close(found[:, number], wanted, rtol=1e-4, atol=1e-3)
    assert field.sizes() == {"dim": 7}
    assert field.learned() == "7 cepstral coefficients at 8 kHz"
    louder = Audio(features="mfcc", mels=23, coefficients=7, gain=10.0)
    gained = louder.pad(encoded(louder, sound.numpy()), torch.Generator().manual_seed(3))["values"][0]
    torch.testing.assert_close(gained[:, 1:], found[:, 1:], rtol=1e-4, atol=1e-3)
    assert ((gained - found)[:, 0].abs() > 1.0).all()


def test_training_plays_at_several_speeds() -> None:
    field = Audio(speeds=[0.8, 1.25])
    rows, other = encoded(field, tone(400.0, 0.5)), Audio()
    assert field.pad(rows)["values"].shape[1] == 51
    draws = torch.Generator().manual_seed(0)
    lengths = {field.pad(rows, draws)["values"].shape[1]: field.pad(rows, draws)["values"] for _ in range(20)}
    assert set(lengths) == {41, 63}
    assert field.longest == 1 + 100 * 30 * 100 // 80
    for frames, pitch in ((41, 500.0), (63, 320.0)):  # as a tape that runs faster, or slower
        found = next(values for _ in range(20) if (values := field.pad(rows, draws)["values"][0]).shape[0] == frames)
        wanted = other.pad(encoded(other, tone(pitch, 0.5)))["values"][0]
        assert int(found[20].argmax()) == int(wanted[20].argmax())


def speakers(folder: Path) -> list:
    """Two speakers, one ten times as loud, and what the field read of them."""
    rows = []
    for name, loudness in (("anna", 0.01), ("ben", 0.1)):
        for number in range(3):
            draws = np.random.default_rng(len(rows))
            path = folder / name / f"{number}.wav"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(floats(loudness * draws.standard_normal(1500 + number)))
            rows.append(f"{name}/{number}.wav")
    return rows


def test_each_speaker_has_mean_0_and_deviation_1(tmp_path) -> None:
    field = Audio(mels=11, normalise="speaker", speaker="{}/*")
    values = [field.read(row, cell(tmp_path)) for row in speakers(tmp_path)]
    assert [value["speaker"] for value in values] == ["anna"] * 3 + ["ben"] * 3
    field.fit(iter(values))
    field.save(tmp_path)
    other = Audio(mels=11, normalise="speaker", speaker="{}/*")
    other.load(tmp_path)
    assert other.learned() == "11 mel bands at 8 kHz, 2 speakers"
    for start in (0, 3):
        batch = other.pad([other.encode(value) for value in values[start : start + 3]])
        frames = batch["values"][batch["mask"]]
        torch.testing.assert_close(frames.mean(dim=0), torch.zeros(11), rtol=0, atol=1e-3)
        torch.testing.assert_close(frames.std(dim=0, correction=0), torch.ones(11), rtol=1e-3, atol=1e-3)
    (tmp_path / "0.wav").write_bytes((tmp_path / "ben" / "0.wav").read_bytes())
    stranger = other.read("0.wav", cell(tmp_path))
    assert stranger["speaker"] == ""
    torch.testing.assert_close(
        other.pad([other.encode(stranger)])["values"][0].mean(0), torch.zeros(11), atol=1e-4, rtol=0
    )
    named = other.read({"path": str(tmp_path / "0.wav"), "speaker": "ben"}, cell())
    torch.testing.assert_close(
        other.pad([other.encode(named)])["values"], other.pad([other.encode(values[3])])["values"]
    )


def test_each_recording_can_be_normalised_alone(tmp_path) -> None:
    field = Audio(normalise="recording")
    field.fit([])
    rows = encoded(field, LOUD, LOUD / 10)
    for generator in (None, torch.Generator().manual_seed(0)):
        batch = field.pad(rows, generator)["values"]
        torch.testing.assert_close(batch.mean(dim=1), torch.zeros(2, 40), rtol=0, atol=1e-4)
    assert field.learned() == "40 mel bands at 8 kHz"


@pytest.mark.parametrize(
    ("template", "path", "speaker"),
    [
        ("{}/*", "data/fash/an251-fash-b.wav", "fash"),
        ("{}/*", "an251.wav", ""),
        ("*_{}_*", "x/7_jackson_32.wav", "jackson"),
        ("{}-*", "anna.lee-1.wav", "anna.lee"),
        ("s{}", "s17.wav", "17"),
    ],
)
def test_paths_name_speakers(template, path, speaker, tmp_path) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(pcm(LOUD))
    assert Audio(normalise="speaker", speaker=template).read(path, cell(tmp_path))["speaker"] == speaker


def test_many_wildcards_and_odd_paths_take_no_time() -> None:
    template = SpeakerTemplate("*a*a{}b*a*")
    started = time.monotonic()
    assert template.find("a" * 250) == ""
    assert template.find("a" * 5000 + "b") == ""  # no file system has such names
    assert time.monotonic() - started < 5.0
    assert SpeakerTemplate("{}-*-*").find("x/anna-1-2-3.wav") == "anna"
    assert SpeakerTemplate("{}/*").find("anna.wav") == ""
    assert [SpeakerTemplate("{}").find(path) for path in (".", "", "..", "/")] == ["", "", "..", ""]


def test_no_speaker_at_all_is_an_error() -> None:
    field = Audio(normalise="speaker", speaker="{}/*")
    with pytest.raises(ValueError, match="finds no speaker in any path"):
        field.fit([field.read(LOUD, cell())])


def test_damaged_speakers_are_refused(tmp_path) -> None:
    field = Audio(mels=2, rate=1000, normalise="speaker", speaker="{}/*")
    for speakers in ("[1]", '{"a": 1}', '{"a": {"mean": [0], "deviation": [1, 1]}}'):
        (tmp_path / "audio.json").write_text(f'{{"mean": [0, 0], "deviation": [1, 1], "speakers": {speakers}}}')
        with pytest.raises(ArtifactError, match=r"audio\.json"):
            field.load(tmp_path)
